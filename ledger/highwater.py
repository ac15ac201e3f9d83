"""The high-water file: the newest tree head a writer saw, kept outside the ledger (spec: ledger.md, section 8).

A chain alone cannot show that its tail was cut off. So a writer keeps, in the user's state directory, one
small file for each ledger, keyed by the id of record 0: size, root and last id after its newest commit.

    the ledger …                          `check` answers
    has no file here, or an empty one     unchecked
    is at the file's size, same root      equal
    has grown from the file's head        ahead     (a crash between commit and write leaves this)
    is shorter than the file says         LEDGER_ROLLED_BACK
    has another root at the file's size   LEDGER_FORKED

Trusted for: showing this user on this machine that the ledger went back. Who can write the directory can
delete the file and gets `unchecked`, which reports say; a witness is what stops that person.

The file goes forward only, but for `lower`, which a restore on purpose needs: the alarm is taken down by
compare and swap, after the record that says why is durable (`ledger.restored`). It is written whole to a temporary file and renamed, under a lock that the
processes of one machine share, so a reader sees the old head or the new one. What a crash leaves:

    durable=True    fsync of file and folder: the old head or the new one, even after a power cut
    durable=False   no fsync: the same if only processes die; after a power cut maybe an older head or,
                    on some file systems, an empty file, which counts as none
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ledger import canonical, disk
from ledger.digests import PREFIX, is_digest, open_regular
from ledger.errors import EvidenceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Standing = Literal["ahead", "equal", "unchecked"]

_FIELDS = frozenset({"ledger", "size", "root", "last_id"})
_FILE_MAX_BYTES = 4096
_FILE_MODE = 0o600
_FOLDER_MODE = 0o700
_LOCK_TRIES = 1500
_LOCK_PAUSE_S = 0.001


@dataclass(frozen=True)
class HighWater:
    """A ledger's head as a writer saw it.

    Args:
        ledger: id of the ledger's record 0.
        size: number of records, at least 1.
        root: RFC 6962 root over them, 32 bytes.
        last_id: id of the last of them.

    Raises:
        EvidenceError: `HIGHWATER_INVALID`, the fields cannot be those of a head.
    """

    ledger: str
    size: int
    root: bytes
    last_id: str

    def __post_init__(self) -> None:
        good = is_digest(self.ledger) and is_digest(self.last_id) and len(self.root) == 32
        if not good or self.size < 1:
            raise EvidenceError("HIGHWATER_INVALID", "the fields are not those of a ledger's head")

    def encode(self) -> bytes:
        """The file's content: canonical JSON and a line feed."""
        fields = {
            "ledger": self.ledger,
            "size": self.size,
            "root": self.root.hex(),
            "last_id": self.last_id,
        }
        return canonical.encode(fields) + b"\n"

    @classmethod
    def decode(cls, data: bytes) -> HighWater:
        """The head in a file's content.

        Raises:
            EvidenceError: `HIGHWATER_INVALID`, it is not what `encode` writes.
        """
        try:
            value = canonical.decode(data.removesuffix(b"\n"))
        except EvidenceError as error:
            raise EvidenceError("HIGHWATER_INVALID", error.message) from error
        if not isinstance(value, dict) or value.keys() != _FIELDS:
            raise EvidenceError("HIGHWATER_INVALID", "not an object of the four fields of a head")
        root, size = value["root"], value["size"]
        if type(size) is not int or not isinstance(root, str) or not is_digest(PREFIX + root):
            raise EvidenceError("HIGHWATER_INVALID", "size or root is malformed")
        mark = cls(value["ledger"], size, bytes.fromhex(root), value["last_id"])
        if mark.encode() != data:
            raise EvidenceError("HIGHWATER_INVALID", "the file does not end in one line feed")
        return mark


def path_of(directory: Path, ledger_id: str) -> Path:
    """Where the high-water file of a ledger lies.

    Raises:
        EvidenceError: `HIGHWATER_INVALID`, the id is not a digest.
    """
    if not is_digest(ledger_id):
        raise EvidenceError("HIGHWATER_INVALID", f"{ledger_id[:80]!r} is not the id of a record")
    return directory / f"{ledger_id.removeprefix(PREFIX)}.json"


def read(directory: Path, ledger_id: str) -> HighWater | None:
    """The head in a ledger's high-water file, or None where there is no file or an empty one.

    Raises:
        EvidenceError: `HIGHWATER_INVALID`, the file is damaged or another ledger's; `UNSAFE_PATH`, it
            is a link or no regular file.
    """
    path = path_of(directory, ledger_id)
    try:
        stream = open_regular(path)
    except FileNotFoundError:
        return None
    with stream:
        data = stream.read(_FILE_MAX_BYTES + 1)
    return _decode_file(path, data, ledger_id) if data else None


def write(directory: Path, mark: HighWater, *, durable: bool = True) -> None:
    """Bring a ledger's high-water file forward to a head; a head behind it changes nothing.

    Call it after the commit, never before: the file may lag the ledger and must not lead it. See the
    module's text for what a crash leaves with and without `durable`.

    Raises:
        EvidenceError: `LEDGER_FORKED`, the file has another root at this size; `HIGHWATER_INVALID` or
            `UNSAFE_PATH`, see `read`.
        OSError: the directory cannot be written, or another process holds the file's lock for seconds.
    """
    path = path_of(directory, mark.ledger)
    with _locked(path):
        seen = read(directory, mark.ledger)
        if seen is None or seen.size < mark.size:
            _replace(path, mark.encode(), durable=durable)
        elif seen.size == mark.size:
            expect_root(seen, mark.root)


def lower(directory: Path, seen: HighWater, head: HighWater) -> bool:
    """Set a ledger's high-water file back to a head, durably, if it still says what the caller saw.

    Call it only once the record of the restore is durable. A crash before it leaves the alarm up.

    Args:
        directory: where high-water files are kept.
        seen: what the file must still hold.
        head: what it is to hold.

    Returns:
        Whether the file held `seen` and now holds `head`; False where somebody else changed it.

    Raises:
        EvidenceError: `HIGHWATER_INVALID`, the heads are of two ledgers; it or `UNSAFE_PATH`, see `read`.
        UsageError: `LEDGER_BUSY`, another process holds the file's lock for seconds.
        OSError: the directory cannot be written.
    """
    if head.ledger != seen.ledger:
        raise EvidenceError("HIGHWATER_INVALID", "the two heads are of different ledgers")
    path = path_of(directory, seen.ledger)
    try:
        with _locked(path):
            if read(directory, seen.ledger) != seen:
                return False
            _replace(path, head.encode(), durable=True)
            return True
    except BlockingIOError:
        raise UsageError(
            "LEDGER_BUSY", f"another process holds {path.with_suffix('.lock')}"
        ) from None


def check(directory: Path, ledger_id: str, size: int, root_at: Callable[[int], bytes]) -> Standing:
    """How a ledger stands to its high-water file; `root_at` is asked for one root at most.

    Args:
        directory: where high-water files are kept.
        ledger_id: id of the ledger's record 0.
        size: the ledger's number of records now.
        root_at: root of the ledger over its first n records, for 1 <= n <= size.

    Raises:
        EvidenceError: `LEDGER_ROLLED_BACK`, the ledger is shorter than the file says; `LEDGER_FORKED`,
            its root at the file's size is another; `HIGHWATER_INVALID` or `UNSAFE_PATH`, see `read`.
    """
    return standing(read(directory, ledger_id), size, root_at)


def standing(seen: HighWater | None, size: int, root_at: Callable[[int], bytes]) -> Standing:
    """`check` with a head that was read before the ledger's size was.

    Where others append, the file must be read first: read after the size it may rightly be ahead of it.

    Raises:
        EvidenceError: `LEDGER_ROLLED_BACK` or `LEDGER_FORKED`, see `check`.
    """
    if seen is None:
        return "unchecked"
    if size < seen.size:
        raise EvidenceError(
            "LEDGER_ROLLED_BACK",
            f"the ledger has {size} records, it had {seen.size} when last written here",
            record=seen.last_id,
            seq=seen.size - 1,
            expected=str(seen.size),
            actual=str(size),
        )
    expect_root(seen, root_at(seen.size))
    return "equal" if size == seen.size else "ahead"


def expect_root(seen: HighWater, root: bytes) -> None:
    """Refuse a ledger whose root at the file's size is another than the file's.

    Raises:
        EvidenceError: `LEDGER_FORKED`.
    """
    if root != seen.root:
        raise EvidenceError(
            "LEDGER_FORKED",
            f"the ledger's first {seen.size} records are not those last written here",
            record=seen.last_id,
            seq=seen.size - 1,
            expected=seen.root.hex(),
            actual=root.hex(),
        )


def _decode_file(path: Path, data: bytes, ledger_id: str) -> HighWater:
    try:
        mark = HighWater.decode(data)
    except EvidenceError as error:
        raise EvidenceError(
            "HIGHWATER_INVALID", f"the high-water file {path} is damaged: {error.message}"
        ) from error
    if mark.ledger != ledger_id:
        raise EvidenceError(
            "HIGHWATER_INVALID",
            f"the high-water file {path} is of another ledger",
            field="ledger",
            expected=ledger_id,
            actual=mark.ledger,
        )
    return mark


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock beside a high-water file; the system frees it when the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(path.with_suffix(".lock"), flags, _FILE_MODE)
    try:
        _lock(handle)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    """Wait a while for the lock: a process that was stopped while it held it must not stop everybody.

    Raises:
        BlockingIOError: it is held for longer.
    """
    for _ in range(_LOCK_TRIES):
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE_S)
    return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _replace(path: Path, data: bytes, *, durable: bool) -> None:
    temporary = path.with_suffix(".tmp")  # one name: the lock is held
    temporary.unlink(
        missing_ok=True
    )  # a leftover, whatever it is: opening a pipe would wait for ever
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(temporary, flags, _FILE_MODE)
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
        stream.flush()
        if durable:
            os.fsync(handle)
    temporary.replace(path)
    if durable:
        disk.sync_folder(path.parent)
