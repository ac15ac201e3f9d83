"""The verifier's core over rows that the fuzzer changes with knowledge of their structure.

An input is read as a program: operations on the rows of a good ledger, among them changes of a field inside an entry that
is then signed anew by the writer's own key, so that what lies behind the signature is reached too.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any

from world import ORIGIN, World, sign_entry

from campaigns.fuzz_oracle import expect
from ledger import canonical, record
from ledger.codes import CODES
from ledger.errors import EvidenceError
from verifiers.chain import Row, verify_chain

MAX_OPERATIONS = 12
_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**53 - 1, "", "x", "0.5", "-0.0", "NaN", [], {}, [[]], "sha256:" + "0" * 64, ORIGIN,
    "\u202e", "2026-01-01T00:00:00.000Z", "train", ["root"],
)  # fmt: skip


class Program:
    """An input's bytes as numbers, zeros where they are used up."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._next = 0

    @property
    def more(self) -> bool:
        """Whether bytes are left."""
        return self._next < len(self._data)

    def number(self, below: int) -> int:
        """A number from two bytes."""
        pair = self._data[self._next : self._next + 2]
        self._next += 2
        return int.from_bytes(pair, "big") % below if below else 0


@lru_cache(maxsize=1)
def _good() -> tuple[tuple[Row, ...], tuple[tuple[int, bytes], ...]]:
    world = World()
    for kind in (
        "note.added",
        "policy.declared",
        "source.ingested",
        "model.registered",
        "key.revoked",
    ):
        world.need(kind)
    note = world.seal()
    rows = tuple(
        (item.seq, bytes.fromhex(item.id[7:]), item.signature, item.entry) for item in world.records
    )
    return rows, ((world.chain.size, note),)


def check(data: bytes) -> None:
    """Changed rows are found wrong by a known code, unchanged ones are not, and nothing else is raised."""
    program = Program(data)
    good, notes = _good()
    rows, kept = list(good), list(notes)
    for _ in range(MAX_OPERATIONS):
        if not program.more or not rows:
            break
        _change(program, rows, kept)
    by_seq = {row[0]: row for row in rows}
    try:
        result = verify_chain(rows, by_seq.get, kept, workers=1)
    except EvidenceError as error:
        expect(error.code in CODES, f"unknown code {error.code}")
        return
    expect(all(item.code in CODES for item in result.wrong), "a finding without a code")
    if tuple(rows) == good and tuple(kept) == notes:
        expect(not result.wrong, f"a good ledger is found wrong: {result.wrong[:1]}")
    elif tuple(rows) != good[: len(rows)]:
        resigned = all(row[2] == sign_entry(row[3], _writer(row[3])) for row in rows)
        expect(bool(result.wrong) or resigned, "a changed ledger is found good")


def _writer(entry: bytes) -> str:
    """Whose key signs again: record 0 is root's."""
    return "root" if b'"kind":"ledger.created"' in entry else "writer"


def _change(program: Program, rows: list[Row], notes: list[tuple[int, bytes]]) -> None:
    place = program.number(len(rows))
    seq, stored, signature, entry = rows[place]
    match program.number(10):
        case 0:
            rows[place] = (seq, stored, signature, _flipped(program, entry))
        case 1:
            rows[place] = (seq, stored, _flipped(program, signature), entry)
        case 2:
            rows[place] = (seq, _flipped(program, stored or b""), signature, entry)
        case 3:
            del rows[place]
        case 4:
            other = program.number(len(rows))
            rows[place], rows[other] = rows[other], rows[place]
        case 5:
            rows.insert(program.number(len(rows)), rows[place])
        case 6:
            rows[place] = (seq + program.number(5) - 2, stored, signature, entry)
        case 7 if notes:
            notes[0] = (notes[0][0], _flipped(program, notes[0][1]))
        case _:
            rows[place] = _resigned(program, rows, place)


def _flipped(program: Program, data: bytes) -> bytes:
    if not data:
        return b"\x00"
    spot = program.number(len(data))
    return data[:spot] + bytes((data[spot] ^ (1 + program.number(255)),)) + data[spot + 1 :]


def _resigned(program: Program, rows: list[Row], place: int) -> Row:
    """The row with one field changed and signed again, its links to the row before set right."""
    seq, _, signature, entry = rows[place]
    try:
        value = canonical.decode(entry)
        _set(program, value)
        if place and isinstance(value, dict):
            value["prev"] = record.record_id(rows[place - 1][2], rows[place - 1][3])
        changed = canonical.encode(value)
    except EvidenceError:
        return rows[place]
    signature = sign_entry(changed, _writer(changed))
    return seq, bytes.fromhex(record.record_id(signature, changed)[7:]), signature, changed


def _set(program: Program, value: Any) -> None:
    """Walk down by the program's choices and put another value, a copy of a sibling, or nothing there."""
    while isinstance(value, dict | list) and value:
        names: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        name = names[program.number(len(names))]
        if isinstance(value[name], dict | list) and value[name] and program.number(4):
            value = value[name]
            continue
        match program.number(4):
            case 0:
                del value[name]
            case 1:
                value[name] = copy.deepcopy(value[names[program.number(len(names))]])
            case _:
                value[name] = copy.deepcopy(_VALUES[program.number(len(_VALUES))])
        return


def seeds() -> list[bytes]:
    """Programs that reach each operation."""
    return [
        b"",
        *(
            bytes((0, place, 0, kind, 0, 7, 0, 3, 0, 1, 0, 2))
            for place in range(9)
            for kind in range(10)
        ),
    ]
