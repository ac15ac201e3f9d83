"""A record that lies at another place than it says: nobody goes on from it, and nobody passes over others because of it."""

from __future__ import annotations

import shutil
import time

import pytest
from pysqlite3 import dbapi2 as sqlite
from world import WRITER_ROLES, World, clock_at, key, row_of

from ledger import record as record_module
from ledger import seals
from ledger.blobs import JSON, BlobStore
from ledger.book import BLOBS, DATABASE, INDEX, Ledger
from ledger.errors import EvidenceError
from ledger.merkle import CompactRange
from ledger.store.connection import expected_objects, sql
from verifiers.verify import Options, verify

NOTES = 20
COPIED = """UPDATE records SET entry = late.entry, signature = late.signature
FROM records late WHERE late.seq = {} AND records.seq = 5"""


def edited(folder, *statements: tuple) -> None:
    """What somebody does to the file who puts the guards back afterwards."""
    guards = {
        name: text
        for (kind, name), text in expected_objects("schema.sql").items()
        if kind == "trigger"
    }
    db = sqlite.connect(str(folder / DATABASE), isolation_level=None)
    for name in guards:
        db.execute(f"DROP TRIGGER {name}")
    for statement, *values in statements:
        db.execute(statement, values)
    for text in guards.values():
        db.execute(text)
    db.close()


def snapshot(world, seq: int, prev: bytes, tree: list[str], state) -> record_module.Record:
    """A snapshot record that nobody signed."""
    entry = record_module.build_entry(
        ledger=world.chain.state.origin,
        seq=seq,
        prev=f"sha256:{prev.hex()}",
        kind="snapshot.recorded",
        schema=1,
        time=clock_at(99),
        actor=key("writer").id,
        refs={},
        body={"state": state, "tree": tree},
        statement=None,
    )
    return record_module.parse(entry, bytes(64))


def test_writer_goes_on_from_no_snapshot_that_lies_at_another_place(folder, tmp_path):
    """A planted snapshot of a size beyond the mark, with the mark's root for its tree, is refused, not written after."""
    world = World()
    for _ in range(NOTES):
        world.add("note.added")
    world.replay(folder).close()
    state = tmp_path / "state"
    with Ledger.open(folder, key=key("writer"), state_dir=state) as ledger:
        ledger.append("note.added", {"text": "marked"})
        size, root, _ = ledger.head()
    size_after = 1 << size.bit_length()  # a power of two: its compact range is one hash
    invented = World()
    invented.enroll("stranger", WRITER_ROLES)
    blob = BlobStore(folder / BLOBS).put(invented.chain.state.to_bytes(), JSON)
    stored = bytes(range(32))
    planted = snapshot(world, size_after, stored, [root.hex()], blob.model_dump())
    _, own_id, _, signature, entry = row_of(planted)
    edited(
        folder,
        (
            "UPDATE records SET id = ?, signature = ?, entry = ? WHERE seq = 3",
            own_id,
            signature,
            entry,
        ),
        (
            "INSERT INTO records VALUES (?, ?, ?, ?, ?)",
            size_after - 1,
            stored,
            own_id,
            signature,
            entry,
        ),
    )
    (folder / INDEX).unlink()
    db = sqlite.connect(str(folder / INDEX), isolation_level=None)
    db.executescript(sql("index.sql"))
    db.execute("UPDATE indexed SET size = ?, last_id = ?", (size_after, own_id))
    db.execute("INSERT INTO kinds VALUES ('snapshot.recorded', 3)")
    db.close()
    with pytest.raises(EvidenceError) as caught:
        Ledger.open(folder, key=key("writer"), state_dir=state).append("note.added", {"text": "x"})
    assert caught.value.code == "SEQ_GAP"
    assert verify(folder, Options(workers=1)).verdict == "wrong"


@pytest.fixture
def kept(folder) -> bytes:
    """A ledger with a snapshot and a seal over it late, and the seal."""
    world = World()
    for _ in range(NOTES):
        world.add("note.added")
    note = world.seal()
    world.add("note.added")
    world.write(folder)
    return note


def test_verification_since_an_early_size_begins_at_no_later_snapshot(folder, kept):
    """A true snapshot copied to an early place does not hide the records between the two from the pass."""
    head = seals.read_unverified(kept)
    edited(
        folder,
        (COPIED.format(head.size - 1),),
        ("UPDATE records SET entry = x'7b7d' WHERE seq = 12",),
    )
    report = verify(folder, Options(workers=1, since=10, expect_seal=kept))
    assert report.verdict == "wrong"


def test_verification_since_a_seal_does_not_walk_through_a_gap(folder, kept):
    """A row near the last seq there can be makes nobody look through all that lies before it."""
    edited(
        folder,
        (
            f"INSERT INTO records SELECT {2**63 - 2}, id, prev, signature, entry FROM records WHERE seq = 4",
        ),
    )
    begun = time.process_time()
    report = verify(folder, Options(workers=1, since=2**62))
    assert report.verdict == "wrong"
    assert time.process_time() - begun < 60  # not a speed: walking would take thousands of years


def test_look_up_by_place_gives_no_record_of_another_place(folder):
    """`@5` is the record that says it is the fifth, or an error that names the place."""
    world = World()
    for _ in range(NOTES):
        world.add("note.added")
    world.write(folder)
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    edited(
        copy,
        (COPIED.format(6),),
    )
    with Ledger.read(folder) as ledger:
        assert ledger.get("@5").seq == 5
    with Ledger.read(copy) as ledger:
        with pytest.raises(EvidenceError) as caught:
            ledger.get("@5")
        assert (caught.value.code, caught.value.seq) == ("SEQ_GAP", 5)


def test_blob_that_was_damaged_is_healed_when_its_bytes_come_again(folder):
    """Keeping bytes whose blob lies there with other bytes puts the right ones in its place, by both ways of keeping."""
    store = BlobStore(folder / BLOBS)
    for data, put in ((b"one" * 100, store.put), (b"two" * 100, None)):
        digest = store.put(data, JSON).digest
        path = store.path(digest)
        path.chmod(0o600)
        path.write_bytes(b"damaged")
        if put:
            put(data, JSON)
        else:
            source = folder / "source"
            source.write_bytes(data)
            store.put_file(source, JSON)
        assert store.read(digest) == data


def test_tree_of_one_hash_is_what_makes_the_attack_possible():
    """A compact range of a power of two is one hash: whoever knows a root can claim it for such a size."""
    root = bytes(range(32))
    assert CompactRange.from_hashes(64, [root]).root() == root
