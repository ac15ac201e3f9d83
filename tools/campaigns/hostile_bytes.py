"""Ways to make bytes hostile that every sort of file shares."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

from campaigns.hostile_child import Attack
from campaigns.hostile_place import Place

HUGE_BYTES = 5 << 30
BOM = b"\xef\xbb\xbf"
ESCAPES = (
    "\x1b[2J\x1b[31mok\x07",
    "\x1b]0;title\x07",
    "\u202eevil\u202c",
    "a\u200bb\u2060c",
    "\x9b31m\x85",
    "e" + "\u0301" * 400,
    "\u0430dmin",
    "line\nerror: nothing\n",
    "\r\x08\x08over",
    "\U000e0041\U000e0042",
    "\x7f\x00"[:1],
)
"""Text that a terminal obeys, that hides, or that looks like other text."""

Special = Callable[[Path], None]
Maker = Callable[[Random, Place], Attack]
"""Makes one thing hostile and says what to call."""


def mutated(rng: Random, data: bytes) -> bytes:
    """The bytes with one to eight changes: a bit, a byte, a run taken out, doubled or moved."""
    value = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        place = rng.randrange(len(value) + 1)
        length = rng.choice((1, 1, 2, 7, 64))
        match rng.randrange(5):
            case 0 if place < len(value):
                value[place] ^= 1 << rng.randrange(8)
            case 1:
                value[place:place] = rng.randbytes(length)
            case 2:
                del value[place : place + length]
            case 3:
                value[place:place] = value[place : place + length] * rng.randint(1, 50)
            case _:
                value[place:place] = rng.choice(ESCAPES).encode()
    return bytes(value)


def special(rng: Random, place: Place, name: str) -> Path:
    """Something under a file's name that is no plain file, or one that is empty or far too large."""
    path = place.input / name
    path.parent.mkdir(parents=True, exist_ok=True)
    rng.choice(SPECIALS)(path)
    return path


def sparse(path: Path) -> None:
    """Five gigabytes that take no room."""
    path.touch(0o600)
    os.truncate(path, HUGE_BYTES)


def empty(path: Path) -> None:
    """Nothing at all."""
    path.touch(0o600)


SPECIALS: tuple[Special, ...] = (
    sparse,
    lambda path: os.mkfifo(path, 0o600),
    lambda path: path.mkdir(),
    empty,
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: path.symlink_to(path.parent.parent / "outside/canary"),
    lambda path: path.symlink_to(path),
    lambda path: path.symlink_to("absent"),
)


def odd_name(rng: Random, suffix: str) -> bytes:
    """A file name that is legal here and awkward anywhere else."""
    choices = [text.encode().replace(b"/", b"") for text in ESCAPES]
    choices += [
        b"\xff\xfe",
        b"a\nb",
        b"-rf",
        b"C:\\x",
        b"..\\..\\x",
        b"%00",
        b"?mode=rw&x=",
        b"#a",
        b"'; --",
    ]
    return rng.choice(choices).replace(b"\0", b"")[:200] + suffix.encode()
