"""One process of the signature pool: frames in on standard input, one answer a chunk on standard output.

A chunk is a u32 count of records, then for each: u32 length of the entry, u64 seq, 32 bytes public key,
64 bytes signature, the entry. The answer is the u64 seq of the first bad record, or `NONE_BAD`.
"""

from __future__ import annotations

import struct
import sys
from typing import BinaryIO

from ledger.dsse import pae
from ledger.ed25519 import verify

PAYLOAD_TYPE = "application/vnd.evidence-ledger.record+json"
COUNT = struct.Struct(">I")
HEAD = struct.Struct(">IQ32s64s")
ANSWER = struct.Struct(">Q")
NONE_BAD = 2**64 - 1

Task = tuple[int, bytes, bytes, bytes]
"""(seq, raw public key, entry, signature)"""


def first_bad(tasks: list[Task]) -> int | None:
    """The seq of the first task whose signature is not the key's, or None."""
    for seq, public, entry, signature in tasks:
        if not verify(public, pae(PAYLOAD_TYPE, entry), signature):
            return seq
    return None


def encode(tasks: list[Task]) -> bytes:
    """A chunk as its frame."""
    parts = [COUNT.pack(len(tasks))]
    for seq, public, entry, signature in tasks:
        parts += [HEAD.pack(len(entry), seq, public, signature), entry]
    return b"".join(parts)


def _read_chunk(stream: BinaryIO) -> list[Task] | None:
    head = stream.read(COUNT.size)
    if not head:
        return None
    tasks: list[Task] = []
    for _ in range(COUNT.unpack(head)[0]):
        length, seq, public, signature = HEAD.unpack(stream.read(HEAD.size))
        tasks.append((seq, public, stream.read(length), signature))
    return tasks


def main() -> None:
    """Answer chunks until standard input ends."""
    while (tasks := _read_chunk(sys.stdin.buffer)) is not None:
        bad = first_bad(tasks)
        sys.stdout.buffer.write(ANSWER.pack(NONE_BAD if bad is None else bad))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
