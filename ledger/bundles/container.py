"""The container of a bundle: a tar file in one exact form (spec: bundles.md, section 1).

Any tar program unpacks it. Only this form is read: every header must be, byte for byte, the one that is written for its
name and size. So there are no links, devices, folders, extensions, owners, times, sparse files or compression to
defend against, and a bundle never unpacks to more than its own size.

    header, content, zeros up to 512      for each member, in order
    header, content, zeros up to 512      the member SHA256: the digest of all bytes before its header
    1,024 zeros                           the end of the file
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from ledger.digests import CHUNK_BYTES, PREFIX
from ledger.errors import EvidenceError

BLOCK_BYTES = 512
END = bytes(2 * BLOCK_BYTES)
DIGEST_NAME = "SHA256"
MAX_NAME_BYTES = 99
MAX_MEMBER_BYTES = 1 << 40
_OCTAL_LIMIT = 8**11
_DIGEST_BYTES = len(PREFIX) + 64 + 1
_NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-./")


def header(name: str, size: int) -> bytes:
    """The one header of a member: a plain file of root's, mode 0444, from 1970.

    Args:
        name: ASCII, at most 99 bytes.
        size: bytes of its content; from 8 GiB on in the base-256 form that tar programs share.
    """
    fields = [
        name.encode("ascii").ljust(100, b"\0"),
        b"0000444\0" + b"0000000\0" * 2,
        _size_field(size),
        b"00000000000\0",
        b" " * 8,  # the checksum counts itself as spaces
        b"0" + bytes(100),
        b"ustar\x0000" + bytes(64),
        b"0000000\0" * 2 + bytes(155 + 12),
    ]
    block = b"".join(fields)
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def _size_field(size: int) -> bytes:
    if size < _OCTAL_LIMIT:
        return b"%011o\0" % size
    return b"\x80" + size.to_bytes(11, "big")


class Writer:
    """Writes a container, member after member.

    Args:
        stream: where it goes, from its beginning.

    Attributes:
        size_bytes: how much was written so far.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._state = hashlib.sha256()
        self._left = 0
        self.size_bytes = 0

    @contextmanager
    def member(self, name: str, size: int) -> Iterator[Writer]:
        """Begin a member; in the block, `write` its content, exactly so many bytes."""
        self._put(header(name, size))
        self._left = size
        yield self
        assert self._left == 0, f"{name}: {self._left} bytes are missing"
        self._put(bytes(-size % BLOCK_BYTES))

    def write(self, data: bytes) -> None:
        """The next bytes of the member's content."""
        self._left -= len(data)
        assert self._left >= 0, "more bytes than were said"
        self._put(data)

    def add(self, name: str, data: bytes) -> None:
        """A whole member."""
        with self.member(name, len(data)):
            self.write(data)

    def finish(self) -> str:
        """Write the digest and the end; the digest of everything before it."""
        digest = PREFIX + self._state.hexdigest()
        self.add(DIGEST_NAME, f"{digest}\n".encode())
        self._put(END)
        return digest

    def _put(self, data: bytes) -> None:
        self._state.update(data)
        self._stream.write(data)
        self.size_bytes += len(data)


class Reader:
    """Reads a container, member after member, and nothing beyond its bytes.

    Args:
        stream: a file from somebody else, at its beginning.
        total_bytes: how large it is.
    """

    def __init__(self, stream: BinaryIO, total_bytes: int) -> None:
        self._stream = stream
        self._total = total_bytes
        self._at = 0
        self._state = hashlib.sha256()
        self._member: Member | None = None

    def next(self) -> Member | None:
        """The next member; None after the last one, whose digest was then found right.

        Raises:
            EvidenceError: `BUNDLE_MALFORMED`, the file is in another form; `BUNDLE_DAMAGED`, its digest is not
                that of its bytes.
        """
        if self._member is not None:
            self._member.skip()
            self._padding(self._member.size)
        before = self._state.copy()
        block = self.take(BLOCK_BYTES)
        name, size = _read_header(block, self._at - BLOCK_BYTES)
        if size > self._total - self._at:
            raise _malformed(f"{name} goes on beyond the end of the file", self._at)
        if name == DIGEST_NAME:
            self._end(size, PREFIX + before.hexdigest())
            return None
        self._member = Member(self, name, size)
        return self._member

    def take(self, count: int) -> bytes:
        """Exactly so many bytes.

        Raises:
            EvidenceError: `BUNDLE_MALFORMED`, the file ends before.
        """
        data = self._stream.read(count)
        if len(data) != count:
            raise _malformed("the file ends too soon", self._at + len(data))
        self._at += count
        self._state.update(data)
        return data

    def _padding(self, size: int) -> None:
        if self.take(-size % BLOCK_BYTES).strip(b"\0"):
            raise _malformed("bytes stand where zeros are due", self._at)

    def _end(self, size: int, actual: str) -> None:
        claimed = self.take(size) if size == _DIGEST_BYTES else b""
        if claimed != f"{actual}\n".encode():
            raise EvidenceError(
                "BUNDLE_DAMAGED",
                "the digest at the bundle's end is not that of its bytes",
                expected=claimed.decode("ascii", "replace").strip()[:80],
                actual=actual,
            )
        self._padding(size)
        if self.take(len(END)) != END or self._stream.read(1):
            raise _malformed("the file does not end where it must", self._at)


class Member:
    """One member: a bounded stream over its content, to be read once, in order.

    Attributes:
        name: its name; one that a bundle can have, and not yet compared with the one that is due.
        size: bytes of its content.
    """

    def __init__(self, reader: Reader, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self._reader = reader
        self._left = size

    def read(self, count: int = -1) -> bytes:
        """Up to so many bytes, all that are left for -1; nothing at the end."""
        wanted = self._left if count < 0 else min(count, self._left)
        self._left -= wanted
        return self._reader.take(wanted) if wanted else b""

    def whole(self, max_bytes: int) -> bytes:
        """All of it.

        Raises:
            EvidenceError: `TOO_LARGE`.
        """
        if self.size > max_bytes:
            raise EvidenceError("TOO_LARGE", f"{self.name} has more than {max_bytes} bytes")
        return self.read()

    def lines(self, max_bytes: int) -> Iterator[bytes]:
        """Its lines without their line feed.

        Raises:
            EvidenceError: `BUNDLE_MALFORMED`, a line is longer, or the last one has no line feed.
        """
        rest = b""
        while chunk := self.read(CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if len(line) > max_bytes:
                    raise EvidenceError("BUNDLE_MALFORMED", f"a line of {self.name} is too long")
                yield line
            if len(rest) > max_bytes:
                raise EvidenceError("BUNDLE_MALFORMED", f"a line of {self.name} is too long")
        if rest:
            raise EvidenceError("BUNDLE_MALFORMED", f"the last line of {self.name} has no end")

    def skip(self) -> None:
        """Read to the end."""
        while self.read(CHUNK_BYTES):
            pass


def _read_header(block: bytes, at: int) -> tuple[str, int]:
    """Name and size of a member, where the block is the one header that they have."""
    name = block[:100].rstrip(b"\0").decode("ascii", "replace")
    field = block[124:136]
    if field[:1] == b"\x80":
        size = int.from_bytes(field[1:], "big")
    elif set(field[:11]) <= set(b"01234567"):
        size = int(field[:11], 8)
    else:
        size = -1
    sound = 0 < len(name) <= MAX_NAME_BYTES and set(name) <= _NAME_LETTERS
    if not (sound and 0 <= size <= MAX_MEMBER_BYTES and header(name, size) == block):
        raise _malformed("no member of a bundle begins here", at)
    return name, size


def _malformed(message: str, at: int) -> EvidenceError:
    return EvidenceError("BUNDLE_MALFORMED", f"{message} (byte {at})")
