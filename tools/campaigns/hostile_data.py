"""Hostile data sets: JSON-lines files for `evidence data ingest`."""

from __future__ import annotations

import gzip
import json
import os
from random import Random
from typing import Any

from campaigns.hostile_bytes import BOM, ESCAPES, Maker, mutated, odd_name, special
from campaigns.hostile_child import Attack
from campaigns.hostile_place import Place

DEEP = 100_000
DIGITS = 1_000_000


def _row(**changes: Any) -> dict[str, Any]:
    turns = [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "Here."}]
    return {"id": "t1", "messages": turns, **changes}


GOOD = (json.dumps(_row()) + "\n").encode()


def _ingest(place: Place, data: bytes, *, accepts: bool, name: bytes = b"rows.jsonl") -> Attack:
    path = place.put(name, data)
    return Attack(place.own("data", "ingest", "--", bytes(path)), accepts=accepts)


def one_bad_line(rng: Random, place: Place) -> Attack:
    """A line that alone is refused with its reason, beside a good one: the file is taken in."""
    return _ingest(place, GOOD + _bad(rng) + b"\n", accepts=True)


def only_bad_lines(rng: Random, place: Place) -> Attack:
    """No good line at all: nothing is recorded."""
    return _ingest(place, _bad(rng) + b"\n" + _bad(rng), accepts=False)


def _bad(rng: Random) -> bytes:
    return rng.choice(
        (
            b"[" * DEEP,
            b'{"a":' * DEEP + b"1" + b"}" * DEEP,
            b'{"messages":' + b"9" * DIGITS + b"}",
            b'{"messages":[],"n":1e400}',
            b'{"messages":NaN}',
            b'{"id":"\\ud800","messages":[]}',
            b'{"id":"a","id":"b"}',
            b"\xff\xfe\x00",
            b"\0" * 5000,
            b'"' + b"x" * (2 << 20),
            b"[]",
            b"-0",
            b'{"messages":[{"role":["user"],"content":1}]}',
            json.dumps(_row(**{"\x1b[2J\u202e": 1})).encode(),
            json.dumps(_row(id="\x1b[2J" * 90)).encode(),
            json.dumps({"kind": "\u202e\x9b" * 30}).encode(),
        )
    )


def text(rng: Random, place: Place) -> Attack:
    """Text that a terminal obeys, in good rows and in the names of files and of the data set."""
    nasty = rng.choice(ESCAPES)
    row = _row(id=nasty[:100], metadata={nasty: nasty})
    row["messages"][0]["content"] = nasty + "?"
    path = place.put(odd_name(rng, ".jsonl"), json.dumps(row).encode())
    words = (
        "data",
        "ingest",
        "--name",
        nasty.replace("\0", ""),
        "--licence",
        nasty.replace("\0", ""),
    )
    return Attack(place.own(*words, "--", bytes(path)), accepts=True)


def mark(rng: Random, place: Place) -> Attack:
    """A byte order mark before the first row."""
    return _ingest(place, BOM * rng.randint(1, 2) + GOOD, accepts=True)


def many_lines(rng: Random, place: Place) -> Attack:
    """Millions of lines with nothing on them."""
    return _ingest(
        place, rng.choice((b"\n", b"{\n", b"\r\n")) * rng.choice((10**6, 8 * 10**6)), accepts=False
    )


def packed(rng: Random, place: Place) -> Attack:
    """A compressed file that unpacks to a gigabyte: it is not unpacked."""
    bomb = gzip.compress(bytes(8 << 20), 9) * 20
    name = rng.choice((b"rows.jsonl.gz", b"rows.zip", b"rows.parquet", b"rows.jsonl"))
    return _ingest(
        place,
        rng.choice((bomb, b"PAR1" + bomb + b"PAR1", b"PK\x03\x04" + bomb)),
        accepts=False,
        name=name,
    )


def no_file(rng: Random, place: Place) -> Attack:
    """No plain file where the rows should be."""
    return Attack(place.own("data", "ingest", special(rng, place, "rows.jsonl")))


def device(rng: Random, place: Place) -> Attack:
    """A device or the standard input."""
    path = rng.choice(("/dev/zero", "/dev/stdin", "/dev/null", "/proc/self/mem", "/dev/fd/0"))
    return Attack(place.own("data", "ingest", path), stdin=GOOD)


def changing(rng: Random, place: Place) -> Attack:
    """A file that is written to while it is read: what was kept is what is parsed, or it is refused."""
    path = place.put("rows.jsonl", GOOD + b"x" * (4 << 20) + b"\n")

    def meddle() -> None:
        for _ in range(2000):
            with path.open("r+b") as stream:
                stream.seek(rng.randrange(4 << 20))
                stream.write(rng.randbytes(10))
        os.truncate(path, rng.randrange(4 << 20))

    return Attack(place.own("data", "ingest", path), accepts=True, meddle=meddle)


def changed(rng: Random, place: Place) -> Attack:
    """Good rows with a few random changes."""
    rows = b"".join(json.dumps(_row(id=f"t{number}")).encode() + b"\n" for number in range(4))
    return _ingest(place, mutated(rng, rows), accepts=True, name=odd_name(rng, ".jsonl"))


KINDS: dict[str, Maker] = {
    "one-bad-line": one_bad_line,
    "only-bad-lines": only_bad_lines,
    "text": text,
    "mark": mark,
    "many-lines": many_lines,
    "packed": packed,
    "no-file": no_file,
    "device": device,
    "changing": changing,
    "changed": changed,
}
