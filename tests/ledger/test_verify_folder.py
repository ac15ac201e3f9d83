"""Verification of a whole folder: its end, its trust, its guards, its blobs (V1, V14 to V16)."""

from __future__ import annotations

import os
import shutil

import pytest
import samples
from pysqlite3 import dbapi2 as sqlite
from world import Draft, World, grown, key

from ledger import seals
from ledger.blobs import BlobStore
from ledger.book import BLOBS, INDEX, Ledger
from ledger.record import parse
from verifiers.verify import Options, verify

SOURCE = samples.body("source.ingested")["content"]["digest"]


def codes(findings) -> list[str]:
    """The codes of some findings."""
    return [item.code for item in findings]


def checked(folder, **options):
    """A verification in one process."""
    return verify(folder, Options(workers=1, **options))


@pytest.fixture
def world() -> World:
    """A ledger with one source and a seal."""
    made = World()
    made.add("source.ingested")
    made.seal()
    return made


def test_grown_ledger_is_verified_on_faith(folder):
    """A ledger in order is verified; without a pinned root or a mark the report says what was not shown."""
    made = grown()
    report = checked(made.write(folder))
    assert (report.verdict, report.trust, report.rollback) == ("verified", "on_faith", "unchecked")
    assert (report.records, report.root) == (made.chain.size, made.chain.tree.root().hex())


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("run.resumed", "who went on with a run, where, and whether on its plan's hardware"),
        (
            "plan.prepared",
            "that a plan's settings, library settings, code, libraries, hardware, trained tensors and budget in datums were those named",
        ),
    ],
)
def test_what_is_somebodys_word_is_said(folder, kind, sentence):
    """A record of which nothing is derived again leaves one sentence in the report, counted once a record."""
    made = World()
    made.add(kind)
    report = checked(made.write(folder), level="blobs")
    assert report.on_faith[sentence] == sum(record.kind == kind for record in made.records) == 1


def test_pinned_root_is_trusted_and_another_is_not(world, folder):
    """The root key that was pinned is what trust rests on."""
    world.write(folder)
    assert checked(folder, pinned_roots=frozenset({key("root").id})).trust == "pinned"
    report = checked(folder, pinned_roots=frozenset({key("else").id}))
    assert (report.verdict, report.trust, codes(report.wrong)) == (
        "wrong",
        "on_faith",
        ["ROOT_UNTRUSTED"],
    )


def test_seal_that_was_expected_is_in_the_ledger_or_it_is_wrong(world, folder):
    """A seal kept from before shows that nothing up to it was lost or changed since."""
    note = world.note()
    world.add("note.added")
    world.write(folder)
    assert checked(folder, expect_seal=note).rollback == "expected seal found"
    size = world.chain.size
    for head in (
        seals.Seal(world.records[0].ledger, size, b"\x07" * 32),
        seals.Seal(world.records[0].ledger, size + 1, b"\x07" * 32),
        seals.Seal("example.com/other", size, world.chain.tree.root()),
    ):
        report = checked(folder, expect_seal=seals.sign_seal(head, key("writer")))
        assert (report.verdict, codes(report.wrong)) == ("wrong", ["EXPECTED_SEAL"])


def test_expected_seal_of_no_seal_key_is_wrong(world, folder):
    """The right head under a signature that does not count shows nothing."""
    world.write(folder)
    assert codes(checked(folder, expect_seal=world.note("auditor")).wrong) == ["SEAL_INVALID"]
    assert codes(checked(folder, expect_seal=b"no note").wrong) == ["SEAL_INVALID"]


def test_cut_tail_is_found_by_the_expected_seal_only(world, folder, tmp_path):
    """Records cut off behind the last seal kept inside leave a ledger in order: only an outside mark tells."""
    for _ in range(3):
        world.add("note.added")
    note = world.note()
    shorter = World()
    shorter.add("source.ingested")
    shorter.seal()
    shorter.write(folder)
    assert checked(folder).verdict == "verified"
    assert codes(checked(folder, expect_seal=note).wrong) == ["EXPECTED_SEAL"]


def test_revocation_from_an_earlier_seq_leaves_suspects(folder):
    """The chain stays verified; the records that the key wrote since are named as suspect."""
    world = World()
    world.add("source.ingested")
    start = world.newest("source.ingested").seq
    revoked = world.add("key.revoked", key=key("writer").id, from_seq=start)
    report = checked(world.write(folder))
    assert report.verdict == "verified"
    (suspect,) = report.warnings
    assert (suspect.code, suspect.seq) == ("KEY_SUSPECT", revoked.seq)
    assert f"records {start} to {revoked.seq - 1}" in suspect.message


def test_stale_index_is_a_warning(folder, tmp_path):
    """A derived file that does not fit changes no verdict."""
    grown().replay(tmp_path / "other").close()
    World().write(folder)
    shutil.copy(tmp_path / "other" / INDEX, folder / INDEX)
    report = checked(folder)
    assert (report.verdict, codes(report.warnings)) == ("verified", ["INDEX_STALE"])


def test_index_of_records_appended_meanwhile_is_not_stale(world, folder):
    """Records that a writer appends and indexes during the verification are no fault of the index."""
    world.write(folder)

    def append(stage: str, done: int, total: int) -> None:
        if stage == "blobs" and done == total - 1:
            with Ledger.open(folder, key=key("writer")) as ledger:
                ledger.append("note.added", {"text": "meanwhile"})

    report = checked(folder, level="blobs", progress=append)
    assert report.records == world.chain.size
    assert "INDEX_STALE" not in codes(report.warnings)


def test_index_that_a_writer_holds_is_not_called_stale(folder):
    """A file that is just being written says nothing about what is in it."""
    grown().replay(folder).close()
    writer = sqlite.connect(str(folder / INDEX), isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    for level in ("records", "blobs"):
        assert "INDEX_STALE" not in codes(checked(folder, level=level).warnings)
    writer.execute("ROLLBACK")
    writer.close()


def test_absent_blob_makes_it_incomplete_and_changed_bytes_make_it_wrong(world, folder):
    """At level blobs every blob is re-hashed; absent is another verdict than wrong."""
    world.write(folder)
    report = checked(folder, level="blobs")
    assert (report.verdict, report.blobs.unread) == ("verified", 0)
    assert report.blobs.checked == 2
    path = BlobStore(folder / BLOBS).path(SOURCE)
    path.chmod(0o600)
    path.write_bytes(b"other")
    report = checked(folder, level="blobs")
    assert (report.verdict, codes(report.wrong)) == ("wrong", ["BLOB_WRONG"])
    path.unlink()
    report = checked(folder, level="blobs")
    assert (report.verdict, codes(report.missing), report.blobs.unread) == (
        "incomplete",
        ["BLOB_MISSING"],
        1,
    )
    assert checked(folder).verdict == "verified"


def test_blob_of_another_size_than_recorded_is_wrong(folder):
    """The size in the record is checked beside the digest."""
    world = World()
    body = samples.body("source.ingested")
    body["content"]["size"] += 1
    world.admit(Draft("source.ingested", body))
    assert codes(checked(world.write(folder), level="blobs").wrong) == ["BLOB_WRONG"]


def test_withheld_blob_is_named_and_not_missing(world, folder):
    """A reviewer's word for an absence turns the finding into a warning; others stay missing."""
    made = world.draft("blob.withheld")
    made.body["digest"] = SOURCE
    world.admit(made)
    world.write(folder)
    BlobStore(folder / BLOBS).path(SOURCE).unlink()
    report = checked(folder, level="blobs")
    assert (codes(report.warnings), report.blobs.withheld, report.missing) == (
        ["BLOB_WITHHELD"],
        1,
        [],
    )


def test_empty_and_absent_ledgers_are_never_verified(tmp_path, folder):
    """Nothing there is incomplete, and the code says which nothing it is."""
    assert codes(checked(tmp_path).missing) == ["LEDGER_NOT_FOUND"]
    world = World(staffed=False)
    world.records.clear()
    assert codes(checked(world.write(folder)).missing) == ["LEDGER_EMPTY"]


@pytest.mark.slow
def test_signatures_are_checked_in_processes_too(folder):
    """Beyond four thousand records the worker processes find the bad signature, and the first one."""
    world = World(staffed=False)
    for number in range(4100):
        entry, signature = world.sign_bytes(Draft("note.added", {"text": str(number)}))
        record = parse(entry, bytes(64) if number in (1000, 3000) else signature)
        world.chain.admit(record, signature_known_good=True)
        world.records.append(record)
    report = verify(world.write(folder), Options(workers=2))
    assert [(item.code, item.seq) for item in report.wrong] == [("SIGNATURE_INVALID", 1002)]


def test_reader_of_a_stranger_s_ledger_needs_no_index(folder):
    """A folder that holds only the database is read and verified."""
    made = grown()
    made.write(folder)
    shutil.rmtree(folder / BLOBS)
    with Ledger.read(folder) as ledger:
        assert ledger.get(made.records[-1].id).id == made.records[-1].id
    assert checked(folder).verdict == "verified"


def test_an_invented_gate_is_not_called_verified(folder):
    """A gate whose lines no evidence gives is wrong at level blobs, and so is the grant that rests on it."""
    world = World()
    world.need("policy.declared")
    grant = world.add("promotion.granted")
    gate = world.need("gate.decided")
    world.write(folder)
    assert checked(folder).verdict == "verified"  # level records says nothing of numbers
    report = checked(folder, level="blobs")
    assert report.verdict == "wrong"
    assert {gate.seq, grant.seq} <= {item.seq for item in report.wrong}


@pytest.mark.parametrize("name", ["ledger.sqlite-journal", "ledger.sqlite-wal", INDEX])
def test_a_pipe_beside_the_records_holds_nobody(folder, name):
    """A pipe under a name that the library would open is refused or passed over, and nothing hangs."""
    grown().write(folder)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    report = checked(folder)
    if name == INDEX:
        assert codes(report.warnings) == ["LEDGER_RESTORED", "INDEX_STALE"]
    else:
        assert codes(report.wrong) == ["UNSAFE_PATH"]


def test_a_reader_leaves_a_stranger_s_index_alone(folder):
    """Reading a ledger changes no byte of the derived file that came with it."""
    grown().replay(folder).close()
    (folder / INDEX).write_bytes(b"not an index")
    with Ledger.read(folder) as ledger:
        assert ledger.of_kind("ledger.created")
    assert (folder / INDEX).read_bytes() == b"not an index"


def test_an_endless_entry_is_refused_before_it_is_read(folder):
    """An entry beyond the format's limit ends as one finding at its row, whatever its size."""
    grown().write(folder)
    database = folder / "ledger.sqlite"
    db = sqlite.connect(database, isolation_level=None)
    db.execute("PRAGMA ignore_check_constraints = ON")
    (trigger,) = db.execute(
        "SELECT sql FROM sqlite_master WHERE name = 'records_no_update'"
    ).fetchone()
    db.execute("DROP TRIGGER records_no_update")
    db.execute("UPDATE records SET entry = zeroblob(50000000) WHERE seq = 2")
    db.execute(trigger)
    db.close()
    report = checked(folder)
    assert [(item.code, item.seq) for item in report.wrong] == [("ENTRY_TOO_LARGE", 2)]


def test_a_root_key_that_handed_over_is_said(folder):
    """Whoever pinned the root key of before a rotation is told that another one holds the office now."""
    world = World()
    old = key("root").id
    world.add("root.rotated")
    report = checked(world.write(folder), pinned_roots=frozenset([old]))
    assert (report.verdict, report.trust) == ("verified", "pinned")
    assert codes(report.warnings) == ["ROOT_ROTATED"]
    new = world.chain.state.root_key
    assert checked(folder, pinned_roots=frozenset([new])).warnings == []


FALSIFIED = {
    "a link to nowhere": None,
    "no last id": "UPDATE indexed SET last_id = NULL",
    "an end before the beginning": "UPDATE indexed SET size = -3",
    "nothing said to be in it": "UPDATE indexed SET size = 0",
    "a text that is no Unicode": "UPDATE sqlite_master SET sql = CAST(x'435245415445205441cc' AS TEXT)",
}


@pytest.mark.parametrize("statement", FALSIFIED.values(), ids=FALSIFIED.keys())
@pytest.mark.parametrize("level", ["records", "blobs"])
def test_falsified_index_is_said_and_changes_no_verdict(folder, level, statement):
    """However the derived file is falsified at its end or as a whole, it is a warning, also at level records."""
    World(staffed=False).replay(folder).close()
    if statement is None:
        (folder / INDEX).unlink()
        (folder / INDEX).symlink_to("nowhere")
    else:
        db = sqlite.connect(str(folder / INDEX), isolation_level=None)
        db.execute("PRAGMA writable_schema = ON")
        db.execute(statement)
        db.close()
    report = checked(folder, level=level)
    assert (report.verdict, codes(report.warnings)) == ("verified", ["INDEX_STALE"])
    with Ledger.read(folder) as ledger:
        assert len(ledger.of_kind("ledger.created")) == 1
