"""Hostile seals and proofs: `verify --expect-seal` and `prove --check`."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from campaigns.hostile_bytes import BOM, ESCAPES, Maker, mutated, odd_name, special
from campaigns.hostile_child import Attack
from campaigns.hostile_place import ORIGIN, Place
from ledger import proofs
from ledger.book import DATABASE
from ledger.store.sqlite import SqliteStore


def _own(place: Place) -> tuple[bytes, bytes]:
    """The user's newest seal, and a good proof of record 0 under it."""
    store = SqliteStore.open_reader(place.ledger / DATABASE)
    try:
        found = store.newest_seal()
        assert found is not None
        rows = list(store.rows(0, found[0]))
    finally:
        store.close()
    leaves = [row[1] for row in rows]
    proof = proofs.build(found[1], 0, leaves[0], leaves, rows[0][2] + rows[0][3])
    return found[1], proof


def _seal(place: Place, data: bytes, *, accepts: bool = False) -> Attack:
    return Attack(place.own("verify", "--expect-seal", place.put("x.seal", data)), accepts=accepts)


def _proof(rng: Random, place: Place, data: bytes) -> Attack:
    path = place.put("x.tlog-proof", data)
    return Attack(place.own("prove", "--check", path, *rng.choice(((), ("@1",), ("@0",)))))


def seal_changed(rng: Random, place: Place) -> Attack:
    """A seal with a few changes; what only adds signatures of unknown keys is still a seal."""
    return _seal(place, mutated(rng, _own(place)[0]), accepts=True)


def proof_changed(rng: Random, place: Place) -> Attack:
    """A proof with one byte changed: some other record, place, path or seal."""
    _, proof = _own(place)
    spot = rng.randrange(len(proof))
    changed = proof[:spot] + bytes((proof[spot] ^ 1 << rng.randrange(8),)) + proof[spot + 1 :]
    attack = _proof(rng, place, changed)
    # what a proof carries along vouches for nothing: with the record named it is not even looked at
    carried = proof.index(b"extra ") < spot < proof.index(b"\nindex ")
    return replace(attack, accepts=carried and "@0" in attack.words)


def form(rng: Random, place: Place) -> Attack:
    """Seals and proofs that are malformed in one way each."""
    seal, proof = _own(place)
    nasty = rng.choice(ESCAPES).encode()
    data = rng.choice(
        (
            BOM + seal,
            seal.replace(b"\n", b"\r\n"),
            seal.replace(ORIGIN.encode(), nasty),
            seal + b"\xe2\x80\x94 " + nasty.replace(b"\n", b"") + b" AAAA\n",
            seal.replace(b"\n3\n", b"\n" + b"9" * 100_000 + b"\n"),
            b"\n" * (5 << 20),
            proof.replace(b"index 0", b"index " + b"9" * 100_000),
            proof.replace(b"index 0", b"extra " + b"A" * (5 << 20) + b"\nindex 0"),
            proof.replace(b"index 0\n", b"index 0\n" + b"A" * 44 + b"\n" * 2000),
            proof.replace(b"@v1", b"@v9" + nasty),
            b"",
            b"\xff" * 5000,
        )
    )
    return rng.choice((_seal(place, data), _proof(rng, place, data)))


def no_file(rng: Random, place: Place) -> Attack:
    """No plain file where the seal or proof should be."""
    path = special(rng, place, "x.seal")
    return Attack(place.own(*rng.choice((("verify", "--expect-seal"), ("prove", "--check"))), path))


def keys(rng: Random, place: Place) -> Attack:
    """Verifier keys that are none, given on the command line."""
    path = place.put("x.tlog-proof", _own(place)[1])
    nasty = rng.choice(ESCAPES).replace("\0", "")
    options = rng.choice(
        (
            ("--vkey", f"{nasty}+00000000+AAAA"),
            ("--vkey", "+" * 1000),
            ("--vkey", "a+deadbeef+" + "A" * 100_000),
            ("--origin", nasty, "--public", "0" * 64),
            ("--origin", ORIGIN, "--public", "01" + "0" * 62),
            ("--origin", ORIGIN, "--public", odd_name(rng, "")),
        )
    )
    return Attack(place.own("prove", "--check", path, *options))


KINDS: dict[str, Maker] = {
    "seal-changed": seal_changed,
    "proof-changed": proof_changed,
    "form": form,
    "no-file": no_file,
    "keys": keys,
}
