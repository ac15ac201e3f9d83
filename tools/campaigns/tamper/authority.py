"""Attacks on statements and on seals: somebody else's word moved, replayed, made up or changed."""

from __future__ import annotations

from random import Random
from typing import Any

from campaigns.tamper.attack import Attack, Make, at
from campaigns.tamper.base import Base, signed
from campaigns.tamper.growing import OTHER_ORIGIN, Note, key
from ledger import notes as signed_notes
from ledger import seals, statements
from ledger.dsse import pae
from ledger.record import PAYLOAD_TYPE
from ledger.records.base import Seen

_STATED = "statement"


def _stated(base: Base, random: Random) -> int:
    return random.choice([item.seq for item in base.records if item.statement is not None])


def _again_at_the_end(base: Base, random: Random) -> Attack:
    """A record with a statement once more, made for the next place: the nonce was used."""
    value = base.value(_stated(base, random))
    value |= {"seq": base.size, "prev": base.records[-1].id, "time": base.records[-1].time}
    return at(base, base.size, signed(base.size, value, "writer"), instead_of=0)


def _nonce_used(base: Base, random: Random) -> Attack | None:
    """A statement newly made, with a nonce of before."""
    seq = _stated(base, random)
    earlier = [item for item in base.records[:seq] if item.statement is not None]
    if not earlier:
        return None
    nonce = random.choice(earlier).statement.nonce  # type: ignore[union-attr] # filtered above
    return _restated(base, seq, base.staters[seq], nonce=nonce)


def _moved(base: Base, random: Random) -> Attack | None:
    """Another record's statement under this record's refs and body."""
    seq, other = _stated(base, random), _stated(base, random)
    if seq == other:
        return None
    value = base.value(seq)
    value[_STATED] = base.value(other)[_STATED]
    return at(base, seq, signed(seq, value, base.writers[seq]))


def _field_changed(base: Base, random: Random) -> Attack:
    seq = _stated(base, random)
    value = base.value(seq)
    statement: dict[str, Any] = value[_STATED]
    name = random.choice(("key", "nonce", "signature", "size", "root"))
    holder = statement["seal"] if name in ("size", "root") else statement
    holder[name] = _changed(holder[name], random)
    return at(base, seq, signed(seq, value, base.writers[seq]))


def _changed(value: Any, random: Random) -> Any:
    if isinstance(value, int):
        return value + random.choice((1, -1, 7))
    spot = len(value) - 1 - random.randrange(16)
    digit = random.choice([item for item in "0123456789abcdef" if item != value[spot]])
    return value[:spot] + digit + value[spot + 1 :]


def _content_changed(base: Base, random: Random) -> Attack | None:
    """The body changed under a statement that was made for another."""
    seq = _stated(base, random)
    value = base.value(seq)
    texts = [name for name, item in value["body"].items() if isinstance(item, str)]
    if not texts:
        return None
    name = random.choice(texts)
    value["body"][name] = _changed(value["body"][name].ljust(16, "x"), random)
    return at(base, seq, signed(seq, value, base.writers[seq]))


def _other_head(base: Base, random: Random) -> Attack:
    """Made by the right key over a head that never was this ledger's."""
    seq = _stated(base, random)
    size = base.records[seq].statement.seal.size  # type: ignore[union-attr] # _stated chose it
    fork_root = random.choice(base.forks).world.chain.tree.root()
    root = random.choice((random.randbytes(32), fork_root, bytes(32))).hex()
    return _restated(base, seq, base.staters[seq], seal=Seen(size=size, root=root))


def _stale_head(base: Base, random: Random) -> Attack | None:
    """Made by the right key over a true head of before that was not sealed, or over one to come."""
    seq = _stated(base, random)
    heads = base.state_before(seq).heads
    sizes = [size for size in range(base.size) if size != seq and str(size) not in heads]
    size = random.choice(sizes)
    return _restated(
        base, seq, base.staters[seq], seal=Seen(size=size, root=base.root_at(size).hex())
    )


def _wrong_key(base: Base, random: Random) -> Attack | None:
    """Made by a key that may not: another role's, a revoked one, one nobody enrolled."""
    seq = _stated(base, random)
    offices = {"reviewer": "reviewer2", "reviewer2": "reviewer"}
    names = {"writer", "promoter", "reviewer", "auditor", "leaver", "nobody", "root-after-rotation"}
    names -= {base.staters[seq], offices.get(str(base.staters[seq]))}
    return _restated(base, seq, random.choice(sorted(str(name) for name in names)))


def _other_protocol(base: Base, random: Random) -> Attack:
    """The right key's signature over the right payload, made for something that is no statement."""
    seq = _stated(base, random)
    record = base.records[seq]
    value = base.value(seq)
    assert record.statement is not None  # _stated chose it
    payload = statements.payload(
        record.ledger,
        record.kind,
        record.refs,
        record.body,
        record.statement.seal,
        record.statement.nonce,
    )
    message = random.choice((payload, pae(PAYLOAD_TYPE, payload), pae("application/json", payload)))
    value[_STATED]["signature"] = key(str(base.staters[seq])).sign(message).hex()
    return at(base, seq, signed(seq, value, base.writers[seq]))


def _missing(base: Base, random: Random) -> Attack:
    seq = _stated(base, random)
    value = base.value(seq)
    del value[_STATED]
    return at(base, seq, signed(seq, value, base.writers[seq]))


def _unexpected(base: Base, random: Random) -> Attack:
    """A statement on a kind that carries none."""
    seq = random.choice([item.seq for item in base.records if item.statement is None])
    value = base.value(seq)
    value[_STATED] = base.value(_stated(base, random))[_STATED]
    return at(base, seq, signed(seq, value, base.writers[seq]))


def _restated(base: Base, seq: int, stater: str | None, **changes: Any) -> Attack:
    """The record with a statement made anew by a name, over the head before it unless told otherwise."""
    record = base.records[seq]
    plain: dict[str, Any] = {
        "ledger": record.ledger,
        "kind": record.kind,
        "refs": record.refs,
        "body": record.body,
        "seal": Seen(size=seq, root=base.root_at(seq).hex()),
        "nonce": f"{seq + 2**64:032x}",
    }
    value = base.value(seq)
    made = statements.make(key(str(stater)), **{**plain, **changes})
    value[_STATED] = made.model_dump()
    return at(base, seq, signed(seq, value, base.writers[seq]))


# --- seals ------------------------------------------------------------------------------------


def _with_notes(base: Base, notes: list[Note]) -> Attack:
    return Attack(base.rows, sorted(notes, key=lambda note: note[0]))


def _instead(base: Base, place: int, size: int, note: bytes) -> Attack:
    return _with_notes(base, [*base.notes[:place], (size, note), *base.notes[place + 1 :]])


def _seal_bytes(base: Base, random: Random) -> Attack:
    place = random.randrange(len(base.notes))
    size, note = base.notes[place]
    changed = bytearray(note)
    spot = random.randrange(len(changed))
    what = random.randrange(4)
    if what == 0:
        changed[spot] ^= 1 << random.randrange(8)
    elif what == 1:
        changed[spot:spot] = random.choice((b"\n", b" ", b"0", random.randbytes(2)))
    elif what == 2:
        del changed[spot : spot + random.randrange(1, 40)]
    else:
        changed += random.choice((b"\n", b"x", bytes(note[-30:])))
    return _instead(base, place, size, bytes(changed))


def _seal_signer(base: Base, random: Random) -> Attack:
    """The true head, signed by a key that may not seal."""
    place = random.randrange(len(base.notes))
    size, note = base.notes[place]
    name = random.choice(("reviewer", "auditor", "promoter", "root", "leaver", "nobody"))
    return _instead(base, place, size, seals.sign_seal(seals.read_unverified(note), key(name)))


def _seal_content(base: Base, random: Random) -> Attack:
    """A head that is not the ledger's, signed by its seal key."""
    place = random.randrange(len(base.notes))
    size, note = base.notes[place]
    true = seals.read_unverified(note)
    other = random.choice(base.forks)
    choices = (
        seals.Seal(true.origin, size + random.choice((-1, 1, 5)), true.root),
        seals.Seal(true.origin, size, random.choice((bytes(32), base.root_at(size - 1)))),
        seals.Seal(OTHER_ORIGIN, size, true.root),
        seals.Seal(true.origin, size, other.world.chain.tree.root()),
    )
    return _instead(base, place, size, seals.sign_seal(random.choice(choices), key("writer")))


def _seal_place(base: Base, random: Random) -> Attack:
    """A good seal kept under another size; where it lay before, there is none."""
    place = random.randrange(len(base.notes))
    size, note = base.notes[place]
    taken = {item for item, _ in base.notes}
    sizes = (size - 1, size + 1, 0, -3, base.size + 9, 2**62, random.randrange(base.size))
    other = random.choice([item for item in sizes if item not in taken])
    made = _instead(base, place, other, note)
    # that the seal is gone from its place shows nowhere; that it lies elsewhere shows there, or at the end
    latest = min(max(other - 1, 0), base.size - 1)
    return Attack(made.rows, made.notes, latest, later=None)


def _seal_invented(base: Base, random: Random) -> Attack:
    """One more seal, where there was none: beyond the end, or over a head that never was."""
    taken = {item for item, _ in base.notes}
    size = random.choice([item for item in range(1, base.size + 40) if item not in taken])
    note = seals.sign_seal(
        seals.Seal(base.records[0].ledger, size, random.randbytes(32)), key("writer")
    )
    return _with_notes(base, [*base.notes, (size, note)])


def _seal_double_key(base: Base, random: Random) -> Attack:
    """A second signature line of the same key that is wrong: one good line does not save the note."""
    place = random.randrange(len(base.notes))
    size, data = base.notes[place]
    note = signed_notes.parse(data)
    good = note.signatures[0]
    bad = signed_notes.Signature(good.name, good.key_id, random.randbytes(64))
    lines = random.choice(((good, bad), (bad, good), (bad,)))
    return _instead(base, place, size, signed_notes.serialise(signed_notes.Note(note.text, lines)))


AUTHORITY: dict[str, Make] = {
    "statement: the record once more at the end": _again_at_the_end,
    "statement: a nonce used before": _nonce_used,
    "statement: moved to another record": _moved,
    "statement: a field changed": _field_changed,
    "statement: the body under it changed": _content_changed,
    "statement: over a head of nobody's": _other_head,
    "statement: over a stale head": _stale_head,
    "statement: by a key that may not": _wrong_key,
    "statement: signed for another protocol": _other_protocol,
    "statement: missing": _missing,
    "statement: where none is due": _unexpected,
    "seal: bytes changed": _seal_bytes,
    "seal: by a key that may not": _seal_signer,
    "seal: of another size, root or origin": _seal_content,
    "seal: kept at another size": _seal_place,
    "seal: one more": _seal_invented,
    "seal: a wrong second line of the same key": _seal_double_key,
}
