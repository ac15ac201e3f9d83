"""Fuzz targets of the record book: canonical bytes, records, notes, seals, proofs, keys, stores."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from world import ORIGIN, World, key, row_of

from campaigns import fuzz_chain
from campaigns.fuzz_oracle import Parts, expect, refusals
from campaigns.pem import encrypted_pem, pbkdf2, scrypt
from ledger import canonical, digests, notes, proofs, record, seals
from ledger.blobs import BlobStore, blobs_of, named_blobs
from ledger.ed25519 import PrivateKey, verify
from ledger.errors import UsageError
from ledger.highwater import HighWater
from ledger.query import engine
from ledger.state import State
from ledger.store.durable import FIRST_SEQ
from ledger.store.index import Index, IndexReader
from ledger.store.sqlite import SqliteStore


@lru_cache(maxsize=1)
def world() -> World:
    """A small ledger: the first kinds, a snapshot, a model, a plan."""
    made = World(staffed=False)
    for kind in (
        "note.added",
        "policy.declared",
        "source.ingested",
        "snapshot.recorded",
        "model.registered",
    ):
        made.need(kind)
    return made


@lru_cache(maxsize=1)
def scratch() -> Path:
    """A folder for targets that read files, gone when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def check_canonical(data: bytes) -> None:
    """What decodes is the one encoding of its value."""
    with refusals():
        canonical.loads(data)
    with refusals():
        expect(
            canonical.encode(canonical.decode(data)) == data, "another encoding of the same value"
        )


def check_record(data: bytes) -> None:
    """An entry that parses is what its fields build, and its body is its model's or refused."""
    with refusals():
        found = record.parse(data[64:], data[:64])
        fields = {
            name: getattr(found, name)
            for name in ("ledger", "seq", "prev", "kind", "schema", "time")
        }
        built = record.build_entry(
            **fields, actor=found.actor, refs=found.refs, body=found.body, statement=found.statement
        )
        expect(built == found.entry, "the entry is not what its fields build")
        expect(found.as_dict()["id"] == found.id, "another id")
        record.check_body(found.kind, found.schema, found.body)
        list(blobs_of(found.kind, found.body))


def check_body(data: bytes) -> None:
    """Any JSON as the body of any kind is its model or refused."""
    with refusals():
        value = canonical.decode(data)
        if isinstance(value, dict) and value:
            kind = str(next(iter(value)))
            body = value[kind]
            list(named_blobs(body))
            if isinstance(body, dict):
                record.check_body(kind, 1, body)


def check_state(data: bytes) -> None:
    """A reducer state reads back to its bytes."""
    with refusals():
        expect(State.from_bytes(data).to_bytes() == data, "another state")


def check_note(data: bytes) -> None:
    """A note that parses is written back; a vkey too."""
    with refusals():
        note = notes.parse(data)
        expect(notes.serialise(note) == data, "another note")
        notes.verify(note, [notes.VerifierKey(ORIGIN, notes.ED25519, key("writer").public)])
    with refusals():
        text = data.decode("utf-8", "replace")
        expect(notes.VerifierKey.decode(text).encode() == text, "another verifier key")


def check_seal(data: bytes) -> None:
    """A seal that opens is one that was signed."""
    with refusals():
        head = seals.read_unverified(data)
        expect(seals.Seal.parse(head.text()) == head, "another seal")
        opened = seals.open_seal(data, ORIGIN, [key("writer").public])
        expect(opened.text().encode() in _signed_heads(), "a seal that nobody signed")
    with refusals():
        seals.cosignatures(
            data, [notes.VerifierKey("w", notes.COSIGNATURE, key("reviewer").public)]
        )


def check_proof(data: bytes) -> None:
    """A proof that parses is written back, and proves only what is in the tree."""
    with refusals():
        proof = proofs.TlogProof.decode(data)
        expect(proof.encode() == data, "another proof")
        index, _ = proofs.verify(data, _leaves()[0], ORIGIN, [key("writer").public])
        expect(index == 0, "record 0 proven elsewhere")


def check_high_water(data: bytes) -> None:
    """A high-water file that is read is written back."""
    with refusals():
        expect(HighWater.decode(data).encode() == data, "another high-water file")


def check_key_file(data: bytes) -> None:
    """A key file holds a key or is refused, in bounded time, with a passphrase and without."""
    path = scratch() / "key.pem"
    path.write_bytes(data)
    path.chmod(0o600)
    for passphrase in (None, b"x"):
        with refusals():
            loaded = PrivateKey.load(path, passphrase)
            expect(verify(loaded.public, b"m", loaded.sign(b"m")), "a key that does not sign")


def check_names(data: bytes) -> None:
    """No text becomes a path outside the folder of blobs."""
    text = data.decode("utf-8", "replace")
    folder = Path("/nowhere/blobs")
    with refusals():
        path = BlobStore(folder).path(text)
        expect(path.is_relative_to(folder) and ".." not in path.parts, f"a path outside: {path}")
        expect(digests.is_digest(text), "a path of no digest")


def check_query(data: bytes) -> None:
    """A statement is admitted or refused as misuse; nothing is run."""
    try:
        engine.check(_database(), data.decode("utf-8", "replace"))
    except UsageError as error:
        expect(error.code in {"QUERY_REFUSED", "QUERY_FAILED"}, f"refused as {error.code}")


def check_store(data: bytes) -> None:
    """Any bytes in the database's place are read as rows or refused."""
    path = scratch() / "ledger.sqlite"
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.write_bytes(data)
    with refusals():
        store = SqliteStore.open_reader(path)
        try:
            store.tail()
            for _, row in zip(range(2000), store.rows(FIRST_SEQ), strict=False):
                expect(len(row[3]) <= 1 << 16, "an entry beyond the limit")
            list(store.seals())
        finally:
            store.close()


def check_index(data: bytes) -> None:
    """Any bytes in the derived index's place are used, or done without."""
    path = scratch() / "index.sqlite"
    path.write_bytes(data)
    with refusals(), IndexReader(path) as reader:
        reader.counts()
        reader.has_record(world().records[0])
    with refusals():
        index = Index(path, writable=False)
        try:
            index.seq_of(world().records[1].id)
            index.with_prefix("00")
            index.of_kind("note.added")
            index.referrers(0)
        finally:
            index.close()


@lru_cache(maxsize=1)
def _database() -> Any:
    return engine.connect()


@lru_cache(maxsize=1)
def _sealed() -> tuple[bytes, ...]:
    return (world().note(),)


@lru_cache(maxsize=1)
def _signed_heads() -> frozenset[bytes]:
    return frozenset(note.split(b"\n\n")[0] + b"\n" for note in _sealed())


@lru_cache(maxsize=1)
def _leaves() -> tuple[bytes, ...]:
    return tuple(bytes.fromhex(item.id[7:]) for item in world().records)


def _entries() -> list[bytes]:
    return [item.entry for item in world().records]


def _records() -> list[bytes]:
    return [item.signature + item.entry for item in world().records]


def _bodies() -> list[bytes]:
    return [canonical.encode({item.kind: item.body}) for item in world().records]


def _states() -> list[bytes]:
    return [State().to_bytes(), world().chain.state.to_bytes()]


def _notes() -> list[bytes]:
    vkey = notes.VerifierKey(ORIGIN, notes.ED25519, key("writer").public).encode()
    return [*_sealed(), vkey.encode()]


def _seals() -> list[bytes]:
    return [*_sealed(), seals.cosign_seal(_sealed()[0], "w", key("reviewer"), 1_700_000_000)]


def _proofs() -> list[bytes]:
    first = world().records[0]
    return [proofs.build(_sealed()[0], 0, _leaves()[0], _leaves(), first.signature + first.entry)]


def _marks() -> list[bytes]:
    chain = world().chain
    ids = world().records[0].id, world().records[-1].id
    return [HighWater(ids[0], chain.size, chain.tree.root(), ids[1]).encode()]


def _key_files() -> list[bytes]:
    found = [
        encrypted_pem(pbkdf2(2048)),
        encrypted_pem(pbkdf2(2**40)),
        encrypted_pem(scrypt(16384, 8, 1)),
    ]
    for name, passphrase in (("plain", None), ("locked", b"x")):
        path = scratch() / name
        path.unlink(missing_ok=True)
        key("writer").save(path, passphrase)
        found.append(path.read_bytes())
    return found


def _names() -> list[bytes]:
    return [digests.sha256(b"x").encode(), b"sha256:../../" + b"a" * 60, b"sha256:" + b"/" * 64]


def _queries() -> list[bytes]:
    return [
        b"SELECT step, loss FROM updates ORDER BY step",
        b"WITH a AS (SELECT 1) SELECT * FROM a; DROP TABLE records",
        b"SELECT * FROM read_csv('/etc/passwd')",
        b"INSERT INTO notes VALUES (1)",
    ]


def _stores() -> list[bytes]:
    path = scratch() / "seed.sqlite"
    path.unlink(missing_ok=True)
    store = SqliteStore.create(path)
    with store.transaction():
        store.append([row_of(item) for item in world().records])
        store.put_seal(world().chain.size, _sealed()[0])
    store.close()
    return [path.read_bytes()]


def _indexes() -> list[bytes]:
    path = scratch() / "seed-index.sqlite"
    path.unlink(missing_ok=True)
    index = Index(path)
    for item in world().records:
        index.add(item, [(role, world().by_id[ref].seq) for role, ref in item.all_refs()])
    index.close()
    return [path.read_bytes()]


TARGETS: dict[str, Parts] = {
    "canonical": (check_canonical, _entries, 2, 4096),
    "record": (check_record, _records, 3, 8192),
    "body": (check_body, _bodies, 2, 8192),
    "state": (check_state, _states, 2, 8192),
    "note": (check_note, _notes, 2, 4096),
    "seal": (check_seal, _seals, 2, 4096),
    "proof": (check_proof, _proofs, 2, 8192),
    "high-water": (check_high_water, _marks, 1, 4096),
    "key-file": (check_key_file, _key_files, 2, 4096),
    "names": (check_names, _names, 1, 200),
    "query": (check_query, _queries, 2, 2000),
    "chain": (fuzz_chain.check, fuzz_chain.seeds, 4, 600),
    "store": (check_store, _stores, 4, 65_536),
    "index": (check_index, _indexes, 2, 65_536),
}
