"""Attacks on the sequence: places changed, records reordered, removed, put in, lifted, spliced, rewritten."""

from __future__ import annotations

from random import Random
from typing import Any

from campaigns.tamper.attack import Attack, Make, at, held_by_writer, renumbered
from campaigns.tamper.base import Base, row, rows_of, sign, signed
from campaigns.tamper.growing import Note
from ledger.record import record_id
from ledger.records import KINDS
from verifiers.chain import Row

MAX_REWRITTEN = 60


def _seq_column(base: Base, random: Random) -> Attack:
    seq = random.randrange(base.size)
    other = random.choice(
        (seq + 1, seq - 1, -seq - 1, base.size, 2**62 + seq, random.randrange(2**63))
    )
    changed = [*base.rows[:seq], *base.rows[seq + 1 :], (other, *base.rows[seq][1:])]
    return Attack(sorted(changed, key=lambda item: item[0]), base.notes)


def _claim(field: str) -> Make:
    """Seq, prev or origin changed under the writer's own signature."""

    def make(base: Base, random: Random) -> Attack:
        seq = random.randrange(base.size)
        value = base.value(seq)
        value[field] = _other_claim(base, field, seq, random)
        changed = signed(seq, value, base.writers[seq])
        # record 0 may claim any origin: then its whole ledger is another one, which record 1 does not follow
        return held_by_writer(base, seq, changed) if seq == 0 else at(base, seq, changed)

    return make


def _other_claim(base: Base, field: str, seq: int, random: Random) -> Any:
    if field == "seq":
        return random.choice((seq + 1, seq + base.size, 2**53 - 1, 0 if seq else 1))
    if field == "ledger":
        return random.choice(("example.com/another-bot", base.records[0].ledger + "x"))
    ids = [item.id for item in random.sample(base.records, 3)] + ["sha256:" + "0" * 64]
    return random.choice([item for item in [*ids, None] if item != base.records[seq].prev])


def _swapped(base: Base, random: Random) -> Attack:
    first = random.randrange(base.size - 1)
    second = random.choice((first + 1, random.randrange(first + 1, base.size)))
    rows = list(base.rows)
    rows[first], rows[second] = rows[second], rows[first]
    return Attack(renumbered(rows), base.notes)


def _rotated(base: Base, random: Random) -> Attack:
    first, last = sorted(random.sample(range(base.size + 1), 2))
    stretch = base.rows[first:last]
    turn = random.randrange(len(stretch))
    rows = [*base.rows[:first], *stretch[turn:], *stretch[:turn], *base.rows[last:]]
    return Attack(renumbered(rows), base.notes)


def _removed(base: Base, random: Random) -> Attack:
    """Interior records gone, the rows after them renumbered or not."""
    first = random.randrange(base.size - 1)
    count = min(random.choice((1, 1, 2, 7)), base.size - 1 - first)
    rows = [*base.rows[:first], *base.rows[first + count :]]
    return Attack(renumbered(rows) if random.randrange(2) else rows, base.notes)


def _cut(base: Base, random: Random) -> Attack:
    """The tail gone: the first seal beyond it tells, and where there is none only what is kept elsewhere."""
    newest = base.notes[-1][0]
    size = random.choice((random.randrange(1, base.size), random.randrange(newest - 3, base.size)))
    return Attack(base.rows[:size], base.notes, outside=size >= newest, cut_to=size)


def _cut_with_seals(base: Base, random: Random) -> Attack:
    """The tail gone and every seal over it: a shorter ledger that is whole."""
    size = random.randrange(1, base.size)
    notes = [note for note in base.notes if note[0] <= size]
    return Attack(base.rows[:size], notes, outside=True, cut_to=size)


def _again(base: Base, random: Random) -> Attack:
    """An earlier record once more: right after itself, later, or at the end."""
    source = random.randrange(base.size)
    place = random.choice((source + 1, random.randrange(source + 1, base.size + 1), base.size))
    return Attack(
        renumbered([*base.rows[:place], base.rows[source], *base.rows[place:]]), base.notes
    )


def _inserted(base: Base, random: Random) -> Attack:
    """A good next record, made by a writer for this very place, in front of the one that stood there."""
    seq = random.randrange(2, base.size)
    value = base.value(1)
    value |= {"seq": seq, "prev": base.records[seq - 1].id, "kind": "note.added"}
    value["schema"] = KINDS["note.added"].version
    value |= {"body": {"text": "put in"}, "refs": {}, "actor": _writer_id(base)}
    value |= {"time": base.records[seq].time}
    value.pop("statement", None)
    entry_row = signed(seq, value, "writer")
    rows = renumbered([*base.rows[:seq], entry_row, *base.rows[seq:]])
    return Attack(rows, base.notes, latest=seq + 1, later=frozenset({"SEQ_GAP"}))


def _after_revocation(base: Base, random: Random) -> Attack:
    """A record by a key that was revoked, fit for its place: put in, or at the end."""
    revoked_at = next(item.seq for item in base.records if item.kind == "key.revoked")
    seq = random.choice((base.size, random.randrange(revoked_at + 1, base.size + 1)))
    source = next(place for place, name in enumerate(base.writers) if name == "leaver")
    value = base.value(source)
    value |= {"seq": seq, "prev": base.records[seq - 1].id, "time": base.records[seq - 1].time}
    rows = renumbered([*base.rows[:seq], signed(seq, value, "leaver"), *base.rows[seq:]])
    return Attack(rows, base.notes)


def _lifted(base: Base, random: Random) -> Attack:
    """Records of another ledger under the same keys."""
    foreign, _ = base.elsewhere
    seq = random.randrange(min(base.size, len(foreign)))
    count = random.choice((1, 3, base.size))
    taken = foreign[seq : seq + count]
    # record 0 of the other ledger is a good beginning, of that ledger: the next of this one does not follow it
    latest = seq + len(taken) if seq == 0 and len(taken) < base.size else None
    later = frozenset({"CHAIN_BROKEN", "ORIGIN_FOREIGN", "SEAL_INVALID"})
    made = at(base, seq, *taken, instead_of=len(taken), latest=latest)
    if seq == 0 and count == base.size:
        first_seal = base.notes[0][0]
        return Attack(made.rows, made.notes, latest=first_seal - 1, later=later)
    return Attack(made.rows, made.notes, made.latest, later=later)


def _spliced(base: Base, random: Random) -> Attack | None:
    """A stretch of another history of this ledger, not from the fork's beginning."""
    made = random.choice(base.forks)
    other = rows_of(made)
    begins = first_difference(base.rows, other)
    seq = random.randrange(begins + 1, min(base.size, len(other)))
    count = random.choice((1, 4, base.size))
    return at(base, seq, *other[seq : seq + count], instead_of=len(other[seq : seq + count]))


def _forked(base: Base, random: Random) -> Attack:
    """Another history from where it began, under this one's seals: the next seal tells."""
    other = rows_of(random.choice(base.forks))
    seq = first_difference(base.rows, other)
    sealed = base.sealed_after(seq)
    assert sealed is not None  # forks begin long before the last seal
    rows = other[: random.randrange(sealed, len(other) + 1)]
    return Attack(rows, base.notes, latest=sealed - 1, later=frozenset({"SEAL_WRONG"}))


def _forked_and_sealed(base: Base, random: Random) -> Attack:
    """Another history with seals of its own by the same seal key: only who kept a head can tell."""
    made = random.choice(base.forks)
    return Attack(rows_of(made), made.notes, outside=True)


def _rewritten(base: Base, random: Random) -> Attack:
    """A record changed, and those after it written anew by their own writers; the seal key is not theirs.

    Seals, statements and snapshots still speak of the old history. The first of them tells, or the record
    after the last one written anew.
    """
    seq = random.randrange(1, base.size)
    value = base.value(seq)
    value["time"] = value["time"][:-4] + f"{random.randrange(1, 999):03d}Z"
    rows = [*base.rows]
    new_ids: list[tuple[bytes, bytes]] = []
    stop = min(base.size, seq + 1 + random.randrange(MAX_REWRITTEN))
    rows[seq] = signed(seq, value, base.writers[seq])
    for place in range(seq + 1, stop):
        new_ids.append((_id(base.rows[place - 1]), _id(rows[place - 1])))
        entry = base.rows[place][3]
        for old, new in new_ids:
            entry = entry.replace(old, new)
        rows[place] = row(place, entry, sign(entry, base.writers[place]))
    return _until_told(base, seq, stop, rows, base.notes)


def _until_told(base: Base, seq: int, stop: int, rows: list[Row], notes: list[Note]) -> Attack:
    sealed = base.sealed_after(seq)
    ends = [sealed - 1] if sealed is not None else []
    if stop < base.size:
        ends.append(stop)
    if not ends:
        return Attack(rows, notes, latest=base.size - 1, outside=True, later=None)
    return Attack(rows, notes, latest=min(ends), later=None)


def first_difference(rows: list[Row], other: list[Row]) -> int:
    """The first position at which two ledgers differ; the shorter's size where one begins the other."""
    for place, (one, two) in enumerate(zip(rows, other, strict=False)):
        if one != two:
            return place
    return min(len(rows), len(other))


def _id(of: Row) -> bytes:
    return record_id(of[2], of[3]).encode()


def _writer_id(base: Base) -> str:
    return next(
        item.actor
        for item, name in zip(base.records, base.writers, strict=True)
        if name == "writer"
    )


SEQUENCES: dict[str, Make] = {
    "place: the row's number": _seq_column,
    "place: seq, signed again": _claim("seq"),
    "place: prev, signed again": _claim("prev"),
    "place: origin, signed again": _claim("ledger"),
    "order: two records swapped": _swapped,
    "order: a stretch rotated": _rotated,
    "removed: from the middle": _removed,
    "removed: the tail, seals left": _cut,
    "removed: the tail and its seals": _cut_with_seals,
    "put in: a record once more": _again,
    "put in: a record made for the place": _inserted,
    "put in: by a key after its revocation": _after_revocation,
    "lifted: from a ledger of another origin": _lifted,
    "spliced: the middle of another history": _spliced,
    "spliced: another history under these seals": _forked,
    "spliced: another history, sealed anew": _forked_and_sealed,
    "rewritten: with the writers' keys, not the seal key": _rewritten,
}
