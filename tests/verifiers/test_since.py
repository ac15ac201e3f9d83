"""Verification from a snapshot on: what it checks, what must vouch for the rest, what it does not rely on."""

from __future__ import annotations

import pytest
from pysqlite3 import dbapi2 as sqlite
from world import Draft, World, key, row_of

from ledger import highwater, seals
from ledger.blobs import JSON, BlobStore
from ledger.book import BLOBS, DATABASE, INDEX
from ledger.merkle import CompactRange
from ledger.state import State
from ledger.store.sqlite import SqliteStore
from verifiers.verify import Options, verify

OLD = 20
NEW = 10


def checked(folder, since="last", **options):
    """A verification in one process from a snapshot on."""
    return verify(folder, Options(workers=1, since=since, **options))


def codes(findings) -> list[str]:
    """The codes of some findings."""
    return [item.code for item in findings]


@pytest.fixture
def world() -> World:
    """Some records, a seal over a snapshot, and more records that name records before it."""
    made = World()
    made.first = [made.add("note.added") for _ in range(OLD)]
    made.kept = made.seal()
    made.size = made.chain.size
    for record in made.first[:NEW]:
        draft = made.draft("note.added")
        draft.refs = {"about": [record.id]}
        made.admit(draft)
    return made


def falsify(folder, seq: int, **columns: object) -> None:
    """Change a row as an administrator could."""
    db = sqlite.connect(str(folder / DATABASE))
    db.execute("DROP TRIGGER records_no_update")
    for name, value in columns.items():
        db.execute(f"UPDATE records SET {name} = ? WHERE seq = ?", (value, seq))
    db.commit()
    db.close()


def test_begins_at_the_snapshot_and_ends_at_the_same_root(world, folder):
    """The pass begins at the newest snapshot that the seal covers and derives the head of all records."""
    world.write(folder)
    report = checked(folder, expect_seal=world.kept)
    assert (report.verdict, report.since) == ("verified", world.size - 1)
    assert report.root == verify(folder, Options(workers=1)).root
    assert report.rollback == "expected seal found"


def test_says_nothing_of_what_lies_before(world, folder):
    """A record changed before the snapshot is not looked at; the whole verification finds it."""
    world.write(folder)
    seq = world.first[NEW + 3].seq
    falsify(folder, seq, signature=b"\x01" * 64)
    assert checked(folder, expect_seal=world.kept).verdict == "verified"
    assert verify(folder, Options(workers=1)).wrong[0].seq == seq


def test_record_before_it_that_is_named_is_certified_by_its_hash(world, folder):
    """A changed record before the snapshot is refused as soon as a later one rests on it."""
    world.write(folder)
    falsify(folder, world.first[0].seq, signature=b"\x01" * 64)
    report = checked(folder, expect_seal=world.kept)
    assert codes(report.wrong) == ["REF_NOT_FOUND"]


@pytest.mark.parametrize("back", [0, 1, NEW - 1])
def test_finds_what_the_whole_verification_finds_after_it(world, folder, back):
    """The first bad record after the snapshot has the same code and place as in a whole verification."""
    world.write(folder)
    falsify(folder, world.chain.size - 1 - back, signature=b"\x01" * 64)
    report, whole = checked(folder, expect_seal=world.kept), verify(folder, Options(workers=1))
    assert report.wrong == whole.wrong
    assert codes(report.wrong) == ["SIGNATURE_INVALID"]


def test_nothing_vouches_makes_it_incomplete(world, folder):
    """Without a mark beyond the snapshot the verdict is never verified."""
    world.write(folder)
    report = checked(folder, since=world.chain.size)
    assert (report.verdict, codes(report.missing)) == ("incomplete", ["SINCE_UNANCHORED"])


def test_every_mark_lies_beyond_the_beginning(world, folder, tmp_path):
    """The pass begins under the seal given and under the high-water file: neither stands in for the other."""
    older = World()
    older.add("note.added")
    later = world.seal()
    world.add("note.added")
    world.write(folder)
    head = world.chain
    mark = highwater.HighWater(world.records[0].id, head.size, head.tree.root(), str(head.last_id))
    highwater.write(tmp_path / "state", mark)
    foreign = seals.sign_seal(seals.Seal("example.com/other", 9, b"\x07" * 32), key("writer"))
    zero = seals.sign_seal(seals.Seal(world.records[0].ledger, 2, bytes(32)), key("writer"))
    for since in ("last", head.size, 7):
        options = {"since": since, "state_dir": tmp_path / "state"}
        assert checked(folder, expect_seal=later, **options).verdict == "verified"
        assert checked(folder, expect_seal=older.note(), **options).since == 0
        for note in (foreign, zero):
            report = checked(folder, expect_seal=note, **options)
            assert codes(report.wrong) == ["EXPECTED_SEAL"]


def test_high_water_file_vouches_too(world, folder, tmp_path):
    """The head that this user's writer saw last is a mark from outside."""
    world.write(folder)
    head = world.chain
    mark = highwater.HighWater(world.records[0].id, head.size, head.tree.root(), str(head.last_id))
    highwater.write(tmp_path / "state", mark)
    report = checked(folder, state_dir=tmp_path / "state")
    assert (report.verdict, report.rollback) == ("verified", "high water reached")
    assert report.since == world.size - 1


def test_invented_snapshot_is_refused_by_the_mark(world, folder):
    """A snapshot of another state, signed by its own keys, is not what the kept seal has seen."""
    forged = World()
    tree = CompactRange()
    for _ in range(world.size - 1):
        tree.append(b"\x05" * 32)
    state = State.from_bytes(forged.chain.state.to_bytes())
    forged.chain.state, forged.chain.tree = state, tree
    blob = BlobStore(folder / BLOBS).put(state.to_bytes(), JSON)
    hashes = [item.hex() for item in tree.to_hashes()]
    body = {"state": blob.model_dump(), "tree": hashes}
    fake = forged.sign(Draft("snapshot.recorded", body))
    store = SqliteStore.create(folder / DATABASE)
    db = sqlite.connect(str(folder / DATABASE))
    db.execute("DROP TRIGGER records_append")
    for record in (*world.records[: world.size - 1], fake):
        db.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?)", row_of(record))
    db.commit()
    db.close()
    store.close()
    assert codes(checked(folder, since=world.size).missing) == ["SINCE_UNANCHORED"]
    assert codes(checked(folder, expect_seal=world.kept).wrong) == ["EXPECTED_SEAL"]


@pytest.mark.parametrize("index", ["none", "true", "lying", "damaged"])
def test_index_is_only_a_hint(world, folder, index):
    """Records before the snapshot are found with the index, without it, and in spite of it."""
    world.replay(folder).close()
    if index == "none":
        (folder / INDEX).unlink()
    elif index == "damaged":
        (folder / INDEX).write_bytes(b"no database" * 900)
    elif index == "lying":
        db = sqlite.connect(str(folder / INDEX))
        db.execute("UPDATE ids SET seq = (seq + 3) % 19")
        db.commit()
        db.close()
    report = checked(folder, expect_seal=world.kept)
    assert (report.verdict, report.since) == ("verified", world.size - 1)


def test_snapshot_without_its_blob_is_passed_over(world, folder):
    """Where the newest snapshot's state is absent an earlier beginning is taken, at last record 0."""
    world.write(folder)
    record = world.newest("snapshot.recorded")
    BlobStore(folder / BLOBS).path(record.body["state"]["digest"]).unlink()
    report = checked(folder, expect_seal=world.kept)
    assert (report.verdict, report.since) == ("verified", 0)


def test_seals_before_the_beginning_are_not_judged(world, folder):
    """A seal of a head before the snapshot has no tree to be held against; those after it have."""
    world.write(folder)
    store = SqliteStore.open_writer(folder / DATABASE)
    early = seals.sign_seal(seals.Seal(world.records[0].ledger, 5, b"\x07" * 32), key("writer"))
    store.put_seal(5, early)
    store.put_seal(world.size, world.kept)
    store.put_seal(world.chain.size, world.note())
    store.close()
    report = checked(folder, expect_seal=world.kept)
    assert (report.verdict, report.seals) == ("verified", 2)
    assert codes(verify(folder, Options(workers=1)).wrong) == ["SEAL_WRONG"]


def test_blobs_after_the_beginning_are_read(world, folder):
    """At level blobs the records from the beginning on are derived again, and no earlier ones."""
    world.add("source.ingested")
    world.write(folder)
    report = checked(folder, level="blobs", expect_seal=world.kept)
    assert (report.verdict, report.blobs.checked) == ("verified", 2)
