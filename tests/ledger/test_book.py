"""The ledger folder: appending, reading, threads, processes, copies, damage to what is derived."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import samples
from pysqlite3 import dbapi2 as sqlite
from world import ORIGIN, WRITER_ROLES, SeqClock, World, clock_at, grown, key, row_of

from ledger import appending, highwater
from ledger import record as record_module
from ledger.admission import Chain
from ledger.blobs import JSON, BlobStore
from ledger.book import BLOBS, DATABASE, INDEX, Draft, Ledger
from ledger.errors import EvidenceError, UsageError
from ledger.merkle import CompactRange
from ledger.records.identity import NoteAdded
from verifiers.verify import Options, verify

TESTS = Path(__file__).resolve().parents[1]


def reopen(folder, name="writer", **options) -> Ledger:
    """The ledger, opened by the key of a name."""
    return Ledger.open(folder, key=key(name), clock=lambda: clock_at(9999), **options)


def usage(call, *arguments, **options) -> UsageError:
    """The call's refusal as the caller's fault."""
    with pytest.raises(UsageError) as caught:
        call(*arguments, **options)
    return caught.value


def check(folder, records: int, warnings: tuple[str, ...] = ()) -> None:
    """The verifier, told nothing, finds every record in order."""
    report = verify(folder, Options(workers=1))
    codes = tuple(item.code for item in report.warnings)
    assert (report.verdict, report.records, codes) == ("verified", records, warnings)


def test_appending_gives_the_bytes_that_admission_gives(folder):
    """Every kind, appended through the book, has the same id as in the world without files."""
    world = grown()
    with world.replay(folder) as ledger:
        assert [record.id for record in ledger.records()] == [item.id for item in world.records]
        assert ledger.head() == (world.chain.size, world.chain.tree.root(), world.chain.last_id)
        assert ledger.state() == world.chain.state
    check(folder, len(world.records), ("LEDGER_RESTORED",))


def test_new_ledger_holds_its_creation_and_its_writer(ledger, folder):
    """The folder begins with record 0 and the writer's enrolment under root's statement, and is private."""
    assert [record.kind for record in ledger.records()] == ["ledger.created", "key.enrolled"]
    assert ledger.origin == ORIGIN
    assert ledger.at(1).statement.key == key("root").id
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / DATABASE).stat().st_mode & 0o077 == 0


def test_folder_that_is_not_empty_is_left_alone(tmp_path):
    """A ledger is never made over something else."""
    (tmp_path / "letter").write_text("keep me")
    arguments = {"origin": ORIGIN, "root_key": key("root"), "writer_key": key("writer")}
    error = usage(Ledger.create, tmp_path, **arguments, writer_roles=WRITER_ROLES, nonce="0" * 32)
    assert error.code == "LEDGER_EXISTS"
    assert [item.name for item in tmp_path.iterdir()] == ["letter"]


def test_folder_that_cannot_be_made_is_told_with_a_code(tmp_path):
    """A ledger below a file, which the system refuses, is one clean error."""
    (tmp_path / "file").write_text("no folder")
    error = usage(
        Ledger.create,
        tmp_path / "file" / "ledger",
        origin=ORIGIN,
        root_key=key("root"),
        writer_key=key("writer"),
        writer_roles=WRITER_ROLES,
        nonce=f"{1:032x}",
    )
    assert error.code == "OS_REFUSED"


def test_writer_waits_for_another_only_as_long_as_it_is_told(folder):
    """A ledger that another process holds is `LEDGER_BUSY` after the caller's own patience."""
    World().write(folder)
    with reopen(folder) as holder, reopen(folder, busy_timeout_ms=1) as ledger:
        with holder.store.transaction():
            assert usage(ledger.append, "note.added", {"text": "?"}).code == "LEDGER_BUSY"
        assert ledger.append("note.added", {"text": "now"}).seq == ledger.size - 1


def test_no_ledger_is_the_caller_s_fault(tmp_path):
    """A folder without a database is reported as not found, for readers and writers."""
    assert usage(Ledger.read, tmp_path).code == "LEDGER_NOT_FOUND"
    assert usage(reopen, tmp_path).code == "LEDGER_NOT_FOUND"


REFUSED = {
    "unknown kind": (("note.removed", {}), "KIND_UNKNOWN"),
    "unknown field": (("note.added", {"text": "x", "size": 1}), "BODY_INVALID"),
    "float": (("note.added", {"text": 0.5}), "NOT_CANONICAL"),
    "70 kilobytes": (("note.added", {"text": "x", "tags": ["x" * 70_000]}), "ENTRY_TOO_LARGE"),
    "wrong role": (("judge.qualified", samples.body("note.added")), "BODY_INVALID"),
    "missing ref": (("split.declared", samples.body("split.declared")), "REF_MISSING"),
    "ref name": (("note.added", {"text": "x"}, {"who": samples.digest("x")}), "REF_UNEXPECTED"),
    "ref to nothing": (
        ("note.added", {"text": "x"}, {"about": [samples.digest("x")]}),
        "REF_NOT_FOUND",
    ),
    "ref no id": (("note.added", {"text": "x"}, {"about": ["x"]}), "ENVELOPE_INVALID"),
    "no statement": (("policy.declared", samples.body("policy.declared")), "STATEMENT_MISSING"),
    "blob not there": (
        (
            "source.ingested",
            samples.body(
                "source.ingested",
                content={"digest": samples.digest("never put"), "size": 9, "media_type": "a/b"},
            ),
        ),
        "BLOB_MISSING",
    ),
    "blob malformed": (
        ("source.ingested", {"content": {"digest": 5, "size": "x", "media_type": 1}}),
        "BODY_INVALID",
    ),
    "blob with a bad name": (
        ("source.ingested", {"content": {"digest": "../x", "size": 1, "media_type": "a/b"}}),
        "BODY_INVALID",
    ),
}


@pytest.mark.parametrize(("draft", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_append_writes_nothing_and_the_next_one_goes_on(ledger, draft, code):
    """What the rules refuse is the caller's error with the rule's code; the ledger is as it was."""
    World(staffed=False).put_blobs(ledger.blobs)
    before = ledger.head()
    error = usage(ledger.append, *draft)
    assert error.code == code
    assert ledger.head() == before
    assert ledger.append("note.added", {"text": "on"}).seq == before[0]


def test_wrong_role_is_refused(ledger):
    """The writer's key cannot write what an auditor must."""
    world = World(staffed=False)
    world.put_blobs(ledger.blobs)
    model = ledger.append("model.registered", samples.body("model.registered"))
    error = usage(
        ledger.append, "judge.qualified", samples.body("judge.qualified"), {"model": model.id}
    )
    assert (error.code, error.expected) == ("ROLE_MISSING", "audit")


def test_ref_to_a_wrong_kind_is_refused_with_both_kinds(ledger):
    """The caller learns what was named and what belongs there."""
    World(staffed=False).put_blobs(ledger.blobs)
    note = ledger.append("note.added", NoteAdded(text="x"))
    error = usage(
        ledger.append, "dataset.parsed", samples.body("dataset.parsed"), {"source": [note.id]}
    )
    assert (error.code, error.expected, error.actual) == (
        "REF_KIND",
        "source.ingested",
        "note.added",
    )


def test_appending_many_stops_at_the_first_refusal(ledger):
    """Drafts before the refused one stay, those after it are not tried."""
    good, bad = Draft("note.added", {"text": "x"}), Draft("note.removed", {})
    assert usage(ledger.append_many, [good, good, bad, good]).code == "KIND_UNKNOWN"
    assert ledger.size == 4


def test_drafts_of_one_group_may_name_each_other_s_records(ledger):
    """A record is there for the next one before its transaction is over, also across groups."""
    first = ledger.append("note.added", {"text": "0"})
    about = {"about": [first.id]}
    made = ledger.append_many([Draft("note.added", {"text": str(n)}, about) for n in range(1100)])
    assert len(ledger.referrers(first.id, role="about", kind="note.added")) == 1100
    assert [record.seq for record in made] == list(range(3, 1103))


def test_clock_backwards_is_kept_as_a_warning(ledger):
    """A clock that was set back does not stop the writer; the seq is remembered."""
    ledger._clock = lambda: clock_at(0)
    record = ledger.append("note.added", {"text": "x"})
    assert ledger.warnings == [("CLOCK_BACKWARDS", record.seq)]


def test_reader_appends_nothing(ledger, folder):
    """A ledger opened without a key refuses to write by its own code."""
    with Ledger.read(folder) as reader:
        assert usage(reader.append, "note.added", {"text": "x"}).code == "LEDGER_READ_ONLY"
        assert usage(reader.seal).code == "LEDGER_READ_ONLY"


def test_key_that_is_not_enrolled_appends_nothing(ledger, folder):
    """Whoever opens the folder with another key is refused at the first append."""
    with reopen(folder, "a stranger") as other:
        assert usage(other.append, "note.added", {"text": "x"}).code == "KEY_UNKNOWN"


def test_records_are_found_by_id_prefix_and_seq(ledger):
    """A whole id, six digits of it, or `@seq` name a record; less or something else does not."""
    record = ledger.append("note.added", {"text": "x"})
    digits = record.id[7:]
    for name in (record.id, digits, digits[:6], record.id[:20], digits[:10].upper(), "@2"):
        assert ledger.get(name) == record
    for name in ("", "sha256:", digits[:5], digits + "0", "@x", "@-1", "xyzxyz", "../etc"):
        assert usage(ledger.get, name).code == "REF_MALFORMED", name
    for name in ("@3", "f" * 64, "0123456789"):
        assert usage(ledger.get, name).code == "REF_NOT_FOUND", name


def test_prefix_of_several_records_is_refused(ledger):
    """A prefix that fits two records names neither."""
    ledger.append_many([Draft("note.added", {"text": f"n{number}"}) for number in range(520)])
    by_prefix: dict[str, list[str]] = {}
    for record in ledger.records():
        by_prefix.setdefault(record.id[7:13], []).append(record.id)
    twins = [prefix for prefix, ids in by_prefix.items() if len(ids) > 1]
    assert twins, (
        "with these keys, times and texts two ids begin alike; a new format needs new texts"
    )
    assert usage(ledger.get, twins[0]).code == "REF_AMBIGUOUS"


def test_reader_finds_what_was_appended_after_it_opened(ledger, folder):
    """An id that a reader meets further on is found by it too, and so is what names it."""
    with Ledger.read(folder) as reader:
        first = ledger.append("note.added", {"text": "later"})
        second = ledger.append("note.added", {"text": "about it"}, {"about": [first.id]})
        assert reader.find(second.id) == second
        assert reader.get(first.id) == first
        assert reader.referrers(first.id) == [second]


def test_kinds_and_referrers_are_found_after_reopening(folder):
    """What the derived index answers from its file is what it answered from memory."""
    world = grown()
    with world.replay(folder) as ledger:
        queries = [(kind, [item.id for item in ledger.of_kind(kind)]) for kind in samples.BODIES]
        edges = [
            (item.id, [found.id for found in ledger.referrers(item.id)]) for item in world.records
        ]
    for opened in (Ledger.read(folder), reopen(folder)):
        with opened as ledger:
            for kind, ids in queries:
                assert [item.id for item in ledger.of_kind(kind)] == ids
            for name, ids in edges:
                assert [item.id for item in ledger.referrers(name)] == ids
            assert ledger.referrers(samples.digest("nobody")) == []


def test_state_after_reopening_is_the_same_with_and_without_the_snapshot(folder):
    """The short cut through a snapshot gives the state bytes and root that a full replay gives."""
    world = grown()
    with world.replay(folder) as ledger:
        ledger._clock = lambda: clock_at(9999)
        ledger.seal()
        ledger.append("note.added", {"text": "after the snapshot"})
        expected = ledger.state().to_bytes(), ledger.head()
    with reopen(folder) as ledger:
        started = ledger._load_chain(ledger.size)
        assert started.size == len(world.records)
        assert (ledger.state().to_bytes(), ledger.head()) == expected
    shutil.rmtree(folder / BLOBS)
    with reopen(folder) as ledger:
        assert ledger._load_chain(ledger.size).size == 0
        assert (ledger.state().to_bytes(), ledger.head()) == expected


def test_snapshot_is_made_every_so_many_records(ledger, monkeypatch):
    """A writer that may seal records a snapshot by itself once the tail is long."""
    monkeypatch.setattr(appending, "SNAPSHOT_RECORDS", 10)
    for number in range(30):
        ledger.append("note.added", {"text": str(number)})
    seqs = [record.seq for record in ledger.of_kind("snapshot.recorded")]
    assert len(seqs) >= 2
    assert max(second - first for first, second in itertools.pairwise(seqs)) <= 11


def test_seal_is_over_the_snapshot_and_verifies(ledger, folder):
    """A seal is kept in the store, and the verifier finds its root at its size."""
    note = ledger.seal()
    size, root, _ = ledger.head()
    assert ledger.seals() == [(size, note)]
    ledger.append("note.added", {"text": "x"})
    report = verify(folder, Options(workers=1, expect_seal=note))
    assert (report.verdict, report.seals, report.rollback) == ("verified", 1, "expected seal found")
    assert root.hex() != report.root


def test_key_without_the_role_seals_nothing(folder):
    """Sealing needs the seal role."""
    with World().replay(folder):
        pass
    with reopen(folder, "auditor") as ledger:
        assert usage(ledger.seal).code == "ROLE_MISSING"


# --- together -------------------------------------------------------------------------------------

APPENDER = """
import sys
from pathlib import Path
from world import clock_at, key
from ledger.book import Ledger
folder, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with Ledger.open(folder, key=key("writer"), clock=lambda: clock_at(9999)) as ledger:
    for number in range(count):
        record = ledger.append("note.added", {"text": f"{name} {number}"})
        print(record.seq, record.id, flush=True)
"""


def appender(folder, name: str, count: int) -> subprocess.Popen[str]:
    """A process that appends notes and prints each once it is acknowledged."""
    command = [sys.executable, "-c", APPENDER, str(folder), name, str(count)]
    environment = {"PYTHONPATH": f"{TESTS}:{TESTS.parent}"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def acknowledged(process: subprocess.Popen[str]) -> list[tuple[int, str]]:
    """What the process said was durable; a line cut short by its death was not said."""
    assert process.stdout is not None
    with process, process.stdout:
        lines = process.stdout.read().split("\n")[:-1]
    return [(int(seq), name) for seq, name in (line.split() for line in lines)]


def test_threads_and_processes_append_to_one_chain(ledger, folder):
    """8 threads and 3 processes: the chain never forks and every acknowledged record is in it."""
    ledger._clock = lambda: clock_at(9999)
    made: list[tuple[int, str]] = []

    def work(name: int) -> None:
        for number in range(25):
            record = ledger.append("note.added", {"text": f"thread {name} {number}"})
            made.append((record.seq, record.id))

    processes = [appender(folder, f"process {name}", 40) for name in range(3)]
    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in processes:
        made += acknowledged(process)
        assert process.returncode == 0
    assert len(made) == 8 * 25 + 3 * 40
    assert sorted(made) == [(record.seq, record.id) for record in ledger.records(2)]
    assert ledger.size == 2 + len(made)
    check(folder, 2 + len(made))


def test_refusal_of_one_thread_does_not_touch_the_others(ledger):
    """In a shared transaction a refused draft fails alone."""
    outcomes: list[str] = []

    def work(number: int) -> None:
        try:
            ledger.append("note.added" if number % 2 else "note.removed", {"text": str(number)})
        except UsageError as error:
            outcomes.append(error.code)
        else:
            outcomes.append("appended")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["KIND_UNKNOWN"] * 8 + ["appended"] * 8
    assert ledger.size == 10


@pytest.mark.parametrize("after", [1, 7, 20, 45, 80])
def test_killed_while_appending_every_acknowledged_record_is_there(ledger, folder, after):
    """Killed without warning at any point, the ledger opens by itself and verifies whole."""
    ledger.close()
    process = appender(folder, "doomed", 10_000)
    assert process.stdout is not None
    head = [process.stdout.readline() for _ in range(after)]
    process.kill()
    said = [(int(seq), name) for seq, name in (line.split() for line in head)]
    said += acknowledged(process)
    assert process.returncode == -9
    with reopen(folder) as again:
        there = {record.seq: record.id for record in again.records()}
        assert all(there[seq] == name for seq, name in said)
        assert again.size >= 2 + len(said)
        again.append("note.added", {"text": "on"})
        size = again.size
    check(folder, size)


# --- what is derived or outside --------------------------------------------------------------------


def falsify(folder, statement: str, *values) -> None:
    """Change the derived index behind the ledger's back."""
    db = sqlite.connect(str(folder / INDEX), isolation_level=None)
    db.execute(statement, values)
    db.close()


def filled(folder) -> list[str]:
    """A ledger with a written index; ids of its records."""
    world = World()
    for _ in range(3):
        world.add("note.added")
    world.replay(folder).close()
    return [record.id for record in world.records]


def test_index_that_was_deleted_is_made_anew(folder):
    """Nothing is lost with the index, it is derived."""
    ids = filled(folder)
    (folder / INDEX).unlink()
    with reopen(folder) as ledger:
        assert [ledger.get(name).id for name in ids] == ids
        assert not ledger.index_was_stale
    check(folder, len(ids))


@pytest.mark.parametrize(
    "damage",
    [b"", b"no database at all, but rather long" * 100, None],
    ids=["empty", "other bytes", "middle overwritten"],
)
def test_index_that_is_damaged_is_not_used(folder, damage):
    """A damaged index is done without: readers and writers answer from the ledger, and the next opening makes it anew."""
    ids = filled(folder)
    path = folder / INDEX
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096) if damage is None else damage)
    with Ledger.read(folder) as ledger:
        assert [ledger.get(name).id for name in ids] == ids
    with reopen(folder) as ledger:
        assert [ledger.get(name).id for name in ids] == ids
        ids.append(ledger.append("note.added", NoteAdded(text="seen"), {"about": [ids[-1]]}).id)
        assert [item.id for item in ledger.referrers(ids[-2])] == [ids[-1]]
    with reopen(folder) as ledger:
        assert not ledger.index_was_stale
        assert [ledger.get(name).id for name in ids] == ids
    check(folder, len(ids))


def test_index_that_another_process_holds_is_done_without(folder):
    """While somebody holds the index's lock, a reader still finds records and a writer's append still succeeds."""
    ids = filled(folder)
    with Ledger.read(folder) as reader, reopen(folder) as writer:
        holder = sqlite.connect(folder / INDEX, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        assert [reader.get(name).id for name in ids] == ids
        writer._cache = type(writer._cache)(1)  # what it named long ago is not in memory any more
        ids.append(writer.append("note.added", NoteAdded(text="seen"), {"about": [ids[-2]]}).id)
        assert [item.id for item in writer.referrers(ids[-3])] == [ids[-1]]
        assert reader.get(ids[-1]).id == ids[-1]
        holder.execute("ROLLBACK")
        holder.close()
    check(folder, len(ids))


def test_index_of_another_ledger_is_noticed(folder, tmp_path):
    """An index that ends in a record which is not this ledger's is made anew."""
    ids = filled(folder)
    other = tmp_path / "other"
    with grown().replay(other) as ledger:
        size = ledger.size
    assert size > len(ids)
    shutil.copy(other / INDEX, folder / INDEX)
    with reopen(folder) as ledger:
        assert ledger.index_was_stale
        assert [ledger.get(name).id for name in ids] == ids


def test_index_that_lies_about_a_place_gives_no_wrong_record(folder):
    """An id is certified by the row's own hash: a falsified place gives nothing, never another record."""
    ids = filled(folder)
    falsify(folder, "UPDATE ids SET seq = 3 WHERE seq = 5")
    with reopen(folder) as ledger:
        assert ledger.find(ids[5]) is None
        assert ledger.find(ids[3]).id == ids[3]


def test_index_that_invents_edges_and_kinds_gives_no_false_ones(folder):
    """Referrers and kinds are proven by the row they point to."""
    ids = filled(folder)
    falsify(folder, "INSERT INTO edges VALUES (4, 3, 'about')")
    falsify(folder, "INSERT INTO kinds VALUES ('run.launched', 3)")
    falsify(folder, "INSERT INTO kinds VALUES ('run.launched', 9999999)")
    with reopen(folder) as ledger:
        assert ledger.referrers(ids[4]) == []
        assert ledger.of_kind("run.launched") == []


@pytest.mark.parametrize(
    "cursor", ["size = -1", "size = 9999", "last_id = x'00'", "last_id = NULL"]
)
def test_index_that_lies_about_its_end_is_made_anew(folder, cursor):
    """A falsified cursor does not hide records."""
    ids = filled(folder)
    falsify(folder, f"UPDATE indexed SET {cursor}")
    with reopen(folder) as ledger:
        assert [ledger.get(name).id for name in ids] == ids


def test_index_laid_out_in_another_way_is_not_used(folder):
    """An index with a view or trigger more, or another table, is thrown away unread."""
    ids = filled(folder)
    for statement in (
        "CREATE TRIGGER evil AFTER INSERT ON ids BEGIN DELETE FROM edges; END",
        "CREATE VIEW more AS SELECT * FROM ids",
    ):
        falsify(folder, statement)
        with reopen(folder) as ledger:
            assert [ledger.get(name).id for name in ids] == ids


def test_stranger_s_snapshot_raises_nothing_raw(folder):
    """A snapshot record whose body is no snapshot, or whose state is nonsense, is only no short cut."""
    world = World()
    for body in ({}, {"state": 1, "tree": 2}, {"state": samples.blob("no state"), "tree": ["zz"]}):
        record = world.sign(replace_body(world, body))
        world.chain.tree.append(bytes.fromhex(record.id[7:]))
        world.chain.last_id = record.id
        world.records.append(record)
    world.write(folder)
    with Ledger.read(folder) as ledger, pytest.raises(EvidenceError) as caught:
        ledger.head()
    assert (caught.value.code, caught.value.seq) == ("BODY_INVALID", len(world.records) - 3)


def replace_body(world: World, body):
    """A snapshot draft with another body."""
    draft = world.draft("snapshot.recorded")
    draft.body = body
    return draft


def high_water(folder, state_dir, name="writer") -> Ledger:
    """The ledger opened beside a high-water file."""
    return reopen(folder, name, state_dir=state_dir)


def test_older_copy_is_refused_to_a_writer(folder, tmp_path):
    """Whoever wrote more here is told that the ledger went back."""
    filled(folder)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    with high_water(folder, tmp_path / "state") as ledger:
        ledger.append("note.added", {"text": "more"})
    with pytest.raises(EvidenceError) as caught:
        high_water(copy, tmp_path / "state")
    assert caught.value.code == "LEDGER_ROLLED_BACK"
    report = verify(copy, Options(workers=1, state_dir=tmp_path / "state"))
    assert [item.code for item in report.wrong] == ["LEDGER_ROLLED_BACK"]


def test_high_water_that_cannot_be_written_takes_no_record_back(folder, tmp_path):
    """What fails after the commit is a warning: the append returns its durable record."""
    filled(folder)
    with high_water(folder, tmp_path / "state") as ledger:
        shutil.rmtree(tmp_path / "state", ignore_errors=True)
        (tmp_path / "state").write_text("a file where the folder should be")
        record = ledger.append("note.added", {"text": "kept"})
        assert ("HIGHWATER_LAGS", record.seq) in ledger.warnings
        assert ledger.at(record.seq) == record
        ledger.seal()
        warned = len(ledger.warnings)
    assert ledger.warnings[warned:] == [("HIGHWATER_LAGS", ledger._chain.size - 1)]
    with pytest.raises(sqlite.ProgrammingError):
        ledger.store._db.execute("SELECT 1")  # closed all the same


def test_opening_while_another_process_appends_is_no_alarm(folder, tmp_path, monkeypatch):
    """A high-water file that another writer brings forward during the opening is not a rollback."""
    filled(folder)
    read = highwater.read
    with high_water(folder, tmp_path) as other:

        def read_after_an_append(*arguments):
            monkeypatch.setattr(highwater, "read", read)
            other.append("note.added", {"text": "meanwhile"})
            return read(*arguments)

        monkeypatch.setattr(highwater, "read", read_after_an_append)
        with high_water(folder, tmp_path) as ledger:
            assert ledger.size == other.size


def test_a_forged_snapshot_behind_the_mark_hides_no_rollback(folder, tmp_path):
    """Padding up to the lost size, and a snapshot there that claims the lost tree, do not pass for the records."""
    ids = filled(folder)
    copy, state = tmp_path / "copy", tmp_path / "state"
    shutil.copytree(folder, copy)
    with high_water(folder, state) as ledger:
        ledger.append("note.added", {"text": "lost"})
        lost = CompactRange()
        for record in ledger.records():
            lost.append(bytes.fromhex(record.id[7:]))
    with reopen(copy) as ledger:
        ledger.append("note.added", {"text": "padding"})
        kept = ledger.blobs.put(ledger.state().to_bytes(), JSON).model_dump()
        tree = [item.hex() for item in lost.to_hashes()]
        entry = record_module.build_entry(
            ledger=ledger.origin,
            seq=ledger.size,
            prev=ledger.head()[2],
            kind="snapshot.recorded",
            schema=1,
            time=clock_at(99),
            actor=key("writer").id,
            refs={},
            body={"state": kept, "tree": tree},
            statement=None,
        )
        forged = record_module.parse(entry, bytes(64))
        with ledger.store.transaction():
            ledger.store.append([row_of(forged)])
    assert highwater.read(state, ids[0]).root == lost.root()
    with pytest.raises(EvidenceError) as caught:
        high_water(copy, state)
    assert caught.value.code == "LEDGER_FORKED"


def test_fork_is_refused_to_a_writer(folder, tmp_path):
    """Another history of the same length is told apart from the one that was written here."""
    filled(folder)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    with high_water(folder, tmp_path / "state") as ledger:
        ledger.append("note.added", {"text": "one"})
    with reopen(copy) as ledger:
        ledger.append("note.added", {"text": "other"})
    with pytest.raises(EvidenceError) as caught:
        high_water(copy, tmp_path / "state")
    assert caught.value.code == "LEDGER_FORKED"


def test_high_water_is_the_head_after_closing(folder, tmp_path):
    """After a writer closes, its file holds the ledger's size, root and last id."""
    ids = filled(folder)
    with high_water(folder, tmp_path) as ledger:
        record = ledger.append("note.added", {"text": "x"})
        head = ledger.head()
    mark = highwater.read(tmp_path, ids[0])
    assert (mark.size, mark.root, mark.last_id) == (head[0], head[1], record.id)


def test_error_of_an_append_is_a_json_object(ledger):
    """What the command line prints of a refusal is plain data with code, field and hint."""
    error = usage(ledger.append, "split.declared", samples.body("split.declared"))
    plain = json.loads(json.dumps(error.as_dict()))
    assert plain["code"] in ("REF_MISSING", "BLOB_MISSING")
    assert plain["hint"]


def test_empty_store_is_told_as_such(folder):
    """A store without any record has no origin and takes no append but its creation."""
    world = World(staffed=False)
    world.records.clear()
    world.write(folder)
    with reopen(folder) as ledger:
        with pytest.raises(EvidenceError) as caught:
            _ = ledger.origin
        assert caught.value.code == "LEDGER_EMPTY"
        with pytest.raises((EvidenceError, UsageError)) as refused:
            ledger.append("note.added", {"text": "x"})
        assert refused.value.code == "LEDGER_EMPTY"
    assert verify(folder, Options(workers=1)).verdict == "incomplete"


def test_clock_of_these_tests_gives_each_seq_its_second():
    """The fixed clock is what makes the bytes of these ledgers repeatable."""
    clock = SeqClock()
    assert [clock(), clock()] == ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.000Z"]


def intruder(folder, *, snapshot: bool) -> None:
    """What somebody with the folder and no key writes: perhaps a snapshot of a state with his key, then a note."""
    world = World()
    for _ in range(3):
        world.add("note.added")
    world.enroll("stranger", WRITER_ROLES)  # in a history of his own
    with sqlite.connect(str(folder / DATABASE), isolation_level=None) as db:
        rows = db.execute("SELECT signature, entry FROM records ORDER BY seq").fetchall()
        chain = Chain(world.chain.state, CompactRange(), None, {}.get)
        for signature, entry in rows:
            record = record_module.parse(entry, signature)
            chain.tree.append(bytes.fromhex(record.id[7:]))
            chain.last_id = record.id
        world.chain = chain
        drafts = [world.draft("snapshot.recorded")] if snapshot else []
        for draft in [*drafts, world.draft("note.added")]:
            draft.writer, draft.seq, draft.prev = "stranger", chain.size, chain.last_id
            record = world.sign(draft)
            db.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?)", row_of(record))
            chain.tree.append(bytes.fromhex(record.id[7:]))
            chain.last_id = record.id
    db.close()
    store = BlobStore(folder / BLOBS)
    for data in world.blobs.values():
        store.put(data, JSON)


@pytest.mark.parametrize("snapshot", [True, False])
@pytest.mark.parametrize("mark", [True, False])
def test_records_of_somebody_without_a_key_are_not_gone_on_from(folder, tmp_path, snapshot, mark):
    """A writer adopts no row that no enrolled key signed, whatever snapshot stands before it, and seals none."""
    filled(folder)
    state = tmp_path / "state" if mark else None
    with high_water(folder, state) as ledger:
        size = ledger.append("note.added", {"text": "mine"}).seq + 1
    intruder(folder, snapshot=snapshot)
    with high_water(folder, state) as ledger:
        for call in (lambda: ledger.append("note.added", {"text": "after it"}), ledger.seal):
            with pytest.raises(EvidenceError) as caught:
                call()
            assert (caught.value.code, caught.value.seq) == ("KEY_UNKNOWN", size)
            assert "evidence verify" in caught.value.hint
        assert ledger.size == size + 1 + snapshot
    assert verify(folder, Options(workers=1)).wrong[0].seq == size


def test_writer_that_is_open_adopts_no_forged_row_either(folder, tmp_path):
    """Rows that came while a writer was open are checked like those that were there before."""
    filled(folder)
    with high_water(folder, tmp_path / "state") as ledger:
        ledger.append("note.added", {"text": "mine"})
        intruder(folder, snapshot=True)
        for _ in range(2):
            with pytest.raises(EvidenceError) as caught:
                ledger.append("note.added", {"text": "x"})
            assert caught.value.code == "KEY_UNKNOWN"


def test_signature_of_another_process_is_checked_once_the_mark_lags(folder, tmp_path):
    """A row in an enrolled key's name whose signature is not that key's is refused where no mark vouches for it."""
    filled(folder)
    with high_water(folder, tmp_path / "state") as ledger:
        mine = ledger.append("note.added", {"text": "mine"})
        entry = mine.entry.replace(
            f'"seq":{mine.seq}'.encode(), f'"seq":{mine.seq + 1}'.encode()
        ).replace(str(mine.prev).encode(), mine.id.encode())
        forged = record_module.parse(entry, mine.signature)
        db = sqlite.connect(str(folder / DATABASE), isolation_level=None)
        db.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?)", row_of(forged))
        db.close()
        with pytest.raises(EvidenceError) as caught:
            ledger.append("note.added", {"text": "x"})
        assert caught.value.code == "SIGNATURE_INVALID"


def test_seal_beyond_the_end_is_refused_to_a_writer(folder):
    """Without any high-water file a writer notices a tail that was cut off from under a seal."""
    filled(folder)
    with reopen(folder) as ledger:
        ledger.seal()
        size = ledger.size
    db = sqlite.connect(str(folder / DATABASE), isolation_level=None)
    trigger = db.execute(
        "SELECT sql FROM sqlite_master WHERE name = 'records_no_delete'"
    ).fetchone()
    db.execute("DROP TRIGGER records_no_delete")
    db.execute("DELETE FROM records WHERE seq = ?", (size - 1,))
    db.execute(trigger[0])
    db.close()
    with pytest.raises(EvidenceError) as caught:
        reopen(folder)
    error = caught.value
    assert (error.code, error.expected, error.actual) == ("TAIL_CUT", str(size), str(size - 1))
