"""Restoring a ledger from a backup: root's record, then the lower mark, and nothing in between is lost."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from world import ORIGIN, WRITER_ROLES, clock_at, key, row_of

from ledger import canonical, highwater, restores, statements
from ledger import record as records
from ledger.admission import Chain
from ledger.book import DATABASE, Ledger
from ledger.errors import EvidenceError, LedgerError
from ledger.highwater import HighWater
from ledger.store.sqlite import SqliteStore
from verifiers.report import Report
from verifiers.verify import Options, verify


@dataclass
class Bench:
    """A ledger with a backup, and the high-water folder of the machine that writes it."""

    folder: Path
    backup: Path
    state: Path
    nonces: int = 100

    def open(self, state: Path | None = None) -> Ledger:
        """The ledger, opened to append on this machine or on another one."""
        return Ledger.open(self.folder, key=key("writer"), state_dir=state or self.state)

    def note(self, count: int = 1) -> None:
        """Append notes."""
        with self.open() as ledger:
            for _ in range(count):
                ledger.append("note.added", {"text": f"note {ledger.size}"})

    def put_back(self) -> None:
        """The backup in the ledger's place."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.backup, self.folder)

    def restore(self, signer: str = "root", **changes) -> restores.Restored:
        """Restore with a statement by a key, its parts changed."""
        self.nonces += 1
        nonce = f"{self.nonces:032x}"

        def state(body, seen):
            parts = {"ledger": ORIGIN, "kind": restores.KIND, "refs": {}, "body": body}
            parts |= {"seal": seen, "nonce": nonce, **changes}
            return statements.make(key(signer), **parts)

        return Ledger.restore(
            self.folder, key=key("writer"), state_dir=self.state, why="the disk failed", state=state
        )

    def mark(self) -> HighWater:
        """The head in the high-water file."""
        (path,) = self.state.glob("*.json")
        return HighWater.decode(path.read_bytes())

    def verify(self, state: Path | None = None) -> Report:
        """The verifier's report on this machine or on another one."""
        return verify(self.folder, Options(workers=1, state_dir=state or self.state))

    def kinds(self) -> list[str]:
        """The kinds of the records, in order."""
        with Ledger.read(self.folder) as ledger:
            return [record.kind for record in ledger.records()]


@pytest.fixture
def bench(tmp_path) -> Bench:
    """A ledger of four records, backed up, and then three more."""
    made = Bench(tmp_path / "ledger", tmp_path / "backup", tmp_path / "state")
    Ledger.create(
        made.folder,
        origin=ORIGIN,
        root_key=key("root"),
        writer_key=key("writer"),
        writer_roles=WRITER_ROLES,
        nonce=f"{1:032x}",
        state_dir=made.state,
    ).close()
    made.note(2)
    shutil.copytree(made.folder, made.backup)
    made.note(3)
    return made


def refusal(act, *arguments, **options) -> LedgerError:
    """The error that something raises."""
    with pytest.raises(LedgerError) as caught:
        act(*arguments, **options)
    return caught.value


@pytest.mark.parametrize("lost", [1, 3, 20])
def test_a_restored_ledger_goes_on(bench, lost):
    """The record names what was lost, the file is lowered to it, writers go on, and verify says what is missing."""
    bench.note(lost - 1)
    bench.put_back()
    seen = Bench(bench.folder, bench.backup, bench.state).mark()
    assert refusal(bench.open).code == "LEDGER_ROLLED_BACK"
    done = bench.restore()
    assert done.record.body["lost_from"] == done.record.seq == 4
    assert done.record.body["high_water"] == {"size": seen.size, "root": seen.root.hex()}
    assert (bench.mark().size, bench.mark().last_id) == (5, done.record.id)
    bench.note(lost + 3)
    report = bench.verify()
    assert (report.verdict, report.rollback) == ("verified", "high water reached")
    (warning,) = report.warnings
    assert (warning.code, warning.step, warning.seq) == ("LEDGER_RESTORED", "V14", 4)
    assert f"records 4 to {seen.size - 1} of" in warning.message
    assert "the disk failed" in warning.message


def test_a_ledger_that_is_whole_is_not_restored(bench):
    """Nothing is lowered where nothing was lost: at the high water, beyond it, or without a file."""
    older = bench.mark().encode()
    assert refusal(bench.restore).code == "NOT_ROLLED_BACK"
    bench.note()
    (path,) = bench.state.glob("*.json")
    path.write_bytes(older)
    assert refusal(bench.restore).code == "NOT_ROLLED_BACK"
    path.unlink()
    assert refusal(bench.restore).code == "NOT_ROLLED_BACK"
    assert restores.KIND not in bench.kinds()


def test_a_restored_ledger_is_not_restored_again(bench):
    """One loss, one record."""
    bench.put_back()
    bench.restore()
    assert refusal(bench.restore).code == "NOT_ROLLED_BACK"
    assert bench.kinds().count(restores.KIND) == 1


@pytest.mark.parametrize("more", [3, 8])
def test_a_fork_is_not_restored(bench, more):
    """Another history that reaches the high water is refused, the hint says what remains, the file stays."""
    bench.put_back()
    with Ledger.open(bench.folder, key=key("writer")) as other:
        for _ in range(more):
            other.append("note.added", {"text": "another history"})
    seen = bench.mark()
    error = refusal(bench.restore)
    assert (error.code, error.hint) == ("LEDGER_FORKED", restores.NO_RESTORE_OF_A_FORK)
    assert bench.mark() == seen
    assert restores.KIND not in bench.kinds()


@pytest.mark.parametrize(
    ("signer", "changes", "code"),
    [
        ("writer", {}, "STATEMENT_ROLE"),
        ("nobody", {}, "KEY_UNKNOWN"),
        ("root", {"body": {"why": "else"}}, "STATEMENT_INVALID"),
        ("root", {"kind": "key.revoked"}, "STATEMENT_INVALID"),
        ("root", {"ledger": "example.com/other"}, "STATEMENT_INVALID"),
        ("root", {"nonce": f"{1:032x}"}, "STATEMENT_REPLAYED"),
    ],
)
def test_only_root_says_that_a_ledger_is_restored(bench, signer, changes, code):
    """Another key, other words and a used nonce record nothing, and the alarm stays up."""
    bench.put_back()
    seen = bench.mark()
    assert refusal(bench.restore, signer, **changes).code == code
    assert bench.mark() == seen
    assert restores.KIND not in bench.kinds()
    assert refusal(bench.open).code == "LEDGER_ROLLED_BACK"


def test_a_statement_that_saw_another_head_is_stale(bench):
    """Root states over what is left, not over a head that was never sealed."""
    bench.put_back()
    with Ledger.read(bench.folder) as ledger:
        first = restores.replay(ledger, 3)
    seen = {"size": 3, "root": first.tree.root().hex()}
    stale = statements.Seen(**seen)
    assert refusal(bench.restore, seal=stale).code == "STATEMENT_STALE"


def test_a_damaged_or_foreign_file_is_no_alarm_to_lower(bench):
    """What the file said is not known, so nothing is recorded about it."""
    bench.put_back()
    (path,) = bench.state.glob("*.json")
    other = HighWater("sha256:" + "1" * 64, 9, bytes(32), "sha256:" + "2" * 64)
    for content in (b"size 7\n", other.encode()):
        path.write_bytes(content)
        assert refusal(bench.restore).code == "HIGHWATER_INVALID"
        assert path.read_bytes() == content
    assert restores.KIND not in bench.kinds()


def test_a_cut_tail_with_its_seals_is_no_backup(bench):
    """A seal beyond the end shows that the tail was cut out of a later database."""
    with bench.open() as ledger:
        ledger.seal()
    db = sqlite3.connect(bench.folder / DATABASE, isolation_level=None)
    trigger = db.execute(
        "SELECT sql FROM sqlite_master WHERE name = 'records_no_delete'"
    ).fetchone()
    db.execute("DROP TRIGGER records_no_delete")
    db.execute("DELETE FROM records WHERE seq >= 5")
    db.execute(trigger[0])
    db.close()
    assert refusal(bench.restore).code == "TAIL_CUT"


def test_what_is_left_is_verified_before_it_is_restored(bench):
    """A backup with a signature that is not its writer's is not recorded upon."""
    bench.put_back()
    with Ledger.open(bench.folder, key=key("writer")) as ledger:
        ledger._sign = forging(ledger)
        ledger.append("note.added", {"text": "forged"})
    assert refusal(bench.restore).code == "SIGNATURE_INVALID"
    assert restores.KIND not in bench.kinds()


def forging(ledger):
    """A ledger's signing that gives each record the signature of another key."""
    real = ledger._sign

    def sign(chain: Chain, draft):
        honest, ledger._key = ledger._key, key("forger")
        try:
            made = real(chain, draft)
        finally:
            ledger._key = honest
        return ledger_record(made, honest.id)

    return sign


def ledger_record(made, actor):
    """The record with another writer's name in it, its signature as it is."""
    fields = canonical.decode(made.entry)
    return records.parse(canonical.encode({**fields, "actor": actor}), made.signature)


def cut_short(bench):
    """A restore whose process died between the record and the high-water file."""
    seen = bench.mark()
    bench.restore()
    (path,) = bench.state.glob("*.json")
    path.write_bytes(seen.encode())
    return seen


def test_a_restore_that_a_crash_cut_short_is_finished_without_a_second_record(bench):
    """Running it again finds the record and only lowers the file."""
    bench.put_back()
    cut_short(bench)
    done = bench.restore("nobody")
    assert done.finished_earlier
    assert bench.mark().last_id == done.record.id
    assert bench.kinds().count(restores.KIND) == 1


@pytest.mark.parametrize("lost", [1, 5])
def test_the_next_writer_finishes_a_restore_too(bench, lost):
    """Opening lowers the file, warns, and appends after the record."""
    bench.note(lost - 1)
    bench.put_back()
    cut_short(bench)
    with bench.open() as ledger:
        assert ledger.warnings == [("LEDGER_RESTORED", 4)]
        assert bench.mark().size == 5
        ledger.append("note.added", {"text": "on"})
    assert (bench.mark().size, bench.verify().verdict) == (6, "verified")


def test_a_forged_restore_record_takes_no_alarm_down(bench):
    """Who can write the folder and holds no key cannot settle the alarm: signatures are checked first."""
    bench.put_back()
    with Ledger.open(bench.folder, key=key("writer")) as ledger:
        ledger._sign = forging(ledger)
        seen = bench.mark()
        body = {
            "lost_from": 4,
            "high_water": {"size": seen.size, "root": seen.root.hex()},
            "why": "trust me",
        }
        ledger.append_stated(restores.KIND, body, {}, signer=key("root"), nonce=f"{77:032x}")
    assert refusal(bench.open).code == "SIGNATURE_INVALID"
    assert bench.mark() == seen


@pytest.mark.parametrize("body", [{}, {"high_water": 1}, {"high_water": {"size": []}}], ids=str)
def test_a_restore_record_of_no_shape_is_one_clear_error(bench, body):
    """Hostile bytes in a restore record end as an error with a code, and the alarm stays up."""
    bench.put_back()
    seen = bench.mark()
    with Ledger.read(bench.folder) as ledger:
        prev = ledger.head()[2]
    entry = records.build_entry(
        ledger=ORIGIN,
        seq=4,
        prev=prev,
        kind=restores.KIND,
        schema=1,
        time=clock_at(9),
        actor=key("writer").id,
        refs={},
        body=body,
        statement=None,
    )
    store = SqliteStore.open_writer(bench.folder / DATABASE)
    with store.transaction():
        store.append([row_of(records.parse(entry, bytes(64)))])
    store.close()
    assert refusal(bench.open).code == "BODY_INVALID"
    assert refusal(bench.restore).code == "BODY_INVALID"
    assert bench.mark() == seen


def test_a_mark_that_moved_meanwhile_is_left_alone(bench, monkeypatch):
    """A writer of the lost history that commits during the restore keeps the alarm up: the file is not lowered."""
    shutil.copytree(bench.folder, bench.folder.with_name("lost"))
    bench.put_back()
    real = highwater.lower

    def late(directory, seen, head):
        with Ledger.open(
            bench.folder.with_name("lost"), key=key("writer"), state_dir=bench.state
        ) as lost:
            lost.append("note.added", {"text": "still here"})
        return real(directory, seen, head)

    monkeypatch.setattr(highwater, "lower", late)
    assert refusal(bench.restore).code == "LEDGER_ROLLED_BACK"
    monkeypatch.undo()
    assert bench.mark().size == 8
    bench.restore()
    assert bench.kinds().count(restores.KIND) == 2
    bench.note()
    assert bench.verify().verdict == "verified"


def test_of_two_restores_at_once_one_is_recorded(bench):
    """Whoever comes second stated something about a ledger that has moved on, and records nothing."""
    bench.put_back()

    def late(body, seen):
        bench.restore()
        return statements.make(
            key("root"),
            ledger=ORIGIN,
            kind=restores.KIND,
            refs={},
            body=body,
            seal=seen,
            nonce=f"{55:032x}",
        )

    error = refusal(
        Ledger.restore,
        bench.folder,
        key=key("writer"),
        state_dir=bench.state,
        why="the disk failed",
        state=late,
    )
    assert error.code == "STATEMENT_STALE"
    assert bench.kinds().count(restores.KIND) == 1
    bench.note()
    assert bench.verify().verdict == "verified"


def other_machine(bench, name):
    """A copy of this machine's high-water folder."""
    shutil.copytree(bench.state, bench.state.with_name(name))
    return bench.state.with_name(name)


def test_another_machine_takes_the_restore_that_names_its_mark(bench):
    """Its verifier says that its mark was given up, its writer lowers it; grown beyond it or not."""
    elsewhere = other_machine(bench, "elsewhere")
    bench.put_back()
    bench.restore()
    for more in (0, 6):
        bench.note(more)
        report = bench.verify(elsewhere)
        assert report.verdict == "verified"
        assert report.rollback == "high water given up by a restore"
    with bench.open(elsewhere) as ledger:
        assert ledger.warnings == [("LEDGER_RESTORED", 4)]
    assert bench.verify(elsewhere).rollback == "high water reached"


@pytest.mark.parametrize(("more", "code"), [(0, "LEDGER_ROLLED_BACK"), (6, "LEDGER_FORKED")])
def test_another_machine_whose_mark_no_restore_names_keeps_its_alarm(bench, more, code):
    """A mark inside the lost records cannot be told from another history's: wrong for reader and writer."""
    elsewhere = other_machine(bench, "elsewhere")
    bench.note()
    bench.put_back()
    bench.restore()
    bench.note(more)
    report = bench.verify(elsewhere)
    assert [item.code for item in report.wrong] == [code]
    assert refusal(bench.open, elsewhere).code == code


def test_a_mark_that_was_given_up_vouches_for_no_snapshot(bench):
    """A pass that begins at a snapshot is not anchored by a head on the lost history: incomplete, not verified."""
    with bench.open() as ledger:
        ledger.seal()
    shutil.rmtree(bench.backup)
    shutil.copytree(bench.folder, bench.backup)
    bench.note(2)
    elsewhere = other_machine(bench, "elsewhere")
    bench.put_back()
    bench.restore()
    options = Options(workers=1, state_dir=elsewhere)
    assert verify(bench.folder, options).verdict == "verified"
    found = verify(bench.folder, replace(options, since=8))
    assert found.since > 0
    codes = [item.code for item in found.missing]
    assert (found.verdict, codes) == ("incomplete", ["SINCE_UNANCHORED"])


def test_a_restore_is_named_by_size_and_root(bench):
    """The same size with another root is not the head that root gave up."""
    bench.put_back()
    record = bench.restore().record
    size, root = record.body["high_water"]["size"], bytes.fromhex(record.body["high_water"]["root"])
    last = "sha256:" + "2" * 64
    assert restores.names(record, HighWater(bench.mark().ledger, size, root, last))
    for wrong in ((size - 1, root), (size + 1, root), (size, bytes(32))):
        assert not restores.names(record, HighWater(bench.mark().ledger, *wrong, last))


def test_an_empty_ledger_is_not_restored(tmp_path):
    """A database without a record has no root who could say anything."""
    (tmp_path / "empty").mkdir()
    SqliteStore.create(tmp_path / "empty" / DATABASE).close()
    bench = Bench(tmp_path / "empty", tmp_path, tmp_path / "state")
    with pytest.raises(EvidenceError) as caught:
        bench.restore()
    assert caught.value.code == "LEDGER_EMPTY"
