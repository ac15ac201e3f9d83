"""Making segments: a stretch of the ledger's rows as Parquet files, and the list that names them.

Run as a process of its own by `ask`, or by `evidence segments build`. Killed at any point it leaves the list that
was there, or a longer one; files that no list names are removed by the next.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ledger import disk
from ledger.digests import sha256
from ledger.errors import EvidenceError, LedgerError, UsageError
from ledger.merkle import CompactRange
from ledger.query.columns import columns
from ledger.query.places import Before
from ledger.query.sealed import Sealed, check_chain, id_at, mapped
from ledger.query.segments import (
    MANIFEST,
    TABLES,
    History,
    Manifest,
    Segment,
    SegmentFile,
    Stretch,
    invalid,
    layout,
    opened,
    path_of,
    stat_of,
    stretches,
)
from ledger.query.tables import load
from ledger.store.choose import open_reader
from ledger.store.durable import Store

if TYPE_CHECKING:
    from collections.abc import Callable

ROW_GROUP_ROWS = 16_384
_UNIQUE = {"id", "target", "prev", "refs", "body"}


@dataclass(frozen=True)
class Built:
    """What a ledger's segments are after a build.

    Args:
        sealed: records in segments.
        size: records of the ledger.
        segments: how many segments.
        made: how many of them are new.
        refused: why what was there before was not kept, or None.
        bytes: of all files.
    """

    sealed: int
    size: int
    segments: int
    made: int
    refused: str | None
    bytes: int


def build(ledger: Path, history: History, tell: Callable[[int, int], None] | None = None) -> Built:
    """Bring a ledger's segments forward to its size; one that disagrees with the ledger is made anew.

    Args:
        ledger: its folder.
        history: where segments lie.
        tell: called with records sealed and records to seal.

    Raises:
        UsageError: `LEDGER_NOT_FOUND`, `DISK_FULL`, `OS_REFUSED`.
        EvidenceError: a row is no record; the store's own.
    """
    store = open_reader(ledger)
    try:
        ledger_id = id_at(store, 0)
        if ledger_id is None:
            raise EvidenceError("LEDGER_EMPTY", f"{ledger} holds no record")
        folder = history.of(ledger_id)
        with disk.translated(folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return _build(store, folder, ledger_id, history.unit, tell)
    finally:
        store.close()


def check(ledger: Path, history: History, tell: Callable[[int, int], None] | None = None) -> Built:
    """Make every segment again from the ledger's rows and compare roots and bytes; nothing is changed.

    Raises:
        UsageError: as `build`.
        EvidenceError: `SEGMENT_INVALID`, one of them is not what the ledger says; `LEDGER_EMPTY`; the store's own.
    """
    store = open_reader(ledger)
    try:
        ledger_id = id_at(store, 0)
        if ledger_id is None:
            raise EvidenceError("LEDGER_EMPTY", f"{ledger} holds no record")
        folder = history.of(ledger_id)
        found = Manifest.read(folder, ledger_id)
        segments = [] if found is None else found.segments
        check_chain(store, segments)
        for place, item in enumerate(segments):
            earlier = _sealed(folder, ledger_id, segments[:place]).before()
            root, contents = _contents(store, (item.start, item.stop), earlier)
            _compare(folder, item, root, contents)
            if tell is not None:
                tell(item.stop, segments[-1].stop)
        return _built(segments, store, 0, None)
    finally:
        store.close()


def _compare(folder: Path, segment: Segment, root: str, contents: dict[str, bytes]) -> None:
    if root != segment.root:
        raise invalid(f"records {segment.start} to {segment.stop - 1} have another root")
    made = {table: sha256(data) for table, data in contents.items()}
    if made != {table: item.digest for table, item in segment.files.items()}:
        raise invalid(f"records {segment.start} to {segment.stop - 1} give other files")
    for table in segment.files:
        if sha256(bytes(mapped(folder, segment, table))) != made[table]:
            raise invalid(f"{table} of {segment.start} is not the file that was written")


def _build(
    store: Store,
    folder: Path,
    ledger_id: str,
    unit: int,
    tell: Callable[[int, int], None] | None,
) -> Built:
    there, refused = _still_good(store, folder, ledger_id)
    size, _ = store.tail()
    wanted = list(stretches(size, unit))
    kept: list[Segment] = []
    made = 0
    for stretch in wanted:
        segment = there.get(stretch)
        if segment is None:
            segment = _made(store, folder, stretch, _sealed(folder, ledger_id, kept).before())
            made += 1
        kept.append(segment)
        if stretch not in there:
            _write_manifest(folder, ledger_id, kept)
        if made and tell is not None:
            tell(stretch[1], wanted[-1][1])
    if made:
        _sweep(folder, kept)
    return _built(kept, store, made, refused)


def _built(segments: list[Segment], store: Store, made: int, refused: str | None) -> Built:
    size = sum(file.bytes for item in segments for file in item.files.values())
    stop = segments[-1].stop if segments else 0
    return Built(stop, store.tail()[0], len(segments), made, refused, size)


def _sealed(folder: Path, ledger_id: str, segments: list[Segment]) -> Sealed:
    return Sealed(folder, _manifest(ledger_id, segments))


def _manifest(ledger_id: str, segments: list[Segment]) -> Manifest:
    tables = sorted({table for item in segments for table in item.files})
    layouts = {table: layout(table) for table in tables}
    return Manifest(layouts=layouts, ledger=ledger_id, segments=segments)


def _still_good(
    store: Store, folder: Path, ledger_id: str
) -> tuple[dict[Stretch, Segment], str | None]:
    """The segments that may stay, up to the first that may not, and what is wrong with that one."""
    good: dict[Stretch, Segment] = {}
    try:
        manifest = Manifest.read(folder, ledger_id)
        if manifest is None:
            return good, None
        for item in manifest.segments:
            check_chain(store, [item])
            if any(manifest.layouts.get(table) != layout(table) for table in item.files):
                raise invalid("the tables have other columns than when they were sealed")
            for table in item.files:
                mapped(folder, item, table).close()
            good[item.start, item.stop] = item
    except EvidenceError as error:
        if error.code not in ("SEGMENT_INVALID", "UNSAFE_PATH"):
            raise
        return good, error.message
    return good, None


def _made(store: Store, folder: Path, stretch: Stretch, before: Before) -> Segment:
    root, contents = _contents(store, stretch, before)
    last = id_at(store, stretch[1] - 1)
    assert last is not None  # its row was read a moment ago
    files = {table: _write(folder, stretch, table, data) for table, data in contents.items()}
    return Segment(start=stretch[0], stop=stretch[1], root=root, last=last, files=files)


def _contents(store: Store, stretch: Stretch, before: Before) -> tuple[str, dict[str, bytes]]:
    """The root of a stretch as a subtree, and the file of each table that has rows in it."""
    start, stop = stretch
    rows = list(store.rows(start, stop))
    if len(rows) != stop - start:
        raise EvidenceError("LEDGER_UNREADABLE", f"rows are missing between {start} and {stop}")
    subtree = load(rows, frozenset(), before=Before(CompactRange(), before.find)).root
    loaded = load(rows, frozenset(TABLES), before=before)
    contents = {
        name: _parquet(name, table) for name, table in loaded.tables.items() if table.num_rows
    }
    return subtree, contents


def _parquet(name: str, table: Any) -> bytes:
    """A table as the bytes of a Parquet file: the same table, the same bytes."""
    sink = pa.BufferOutputStream()
    words = [
        item.name for item in columns(name) if "text" in item.type and item.name not in _UNIQUE
    ]
    pq.write_table(
        table,
        sink,
        row_group_size=ROW_GROUP_ROWS,
        compression="zstd",
        use_dictionary=[
            f"{item}.list.element" if _is_list(table, item) else item for item in words
        ],
        write_page_checksum=True,
        store_schema=False,
    )
    return bytes(sink.getvalue())


def _is_list(table: Any, name: str) -> bool:
    return bool(pa.types.is_list(table.schema.field(name).type))


def _write(folder: Path, stretch: Stretch, table: str, data: bytes) -> SegmentFile:
    path = path_of(folder, stretch, table)
    _put(path, data)
    with opened(path) as stream:
        now = stat_of(stream)
    return SegmentFile(digest=sha256(data), bytes=len(data), rows=_rows(data), stat=now)


def _rows(data: bytes) -> int:
    found: int = pq.read_metadata(pa.BufferReader(data)).num_rows
    return found


def _put(path: Path, data: bytes) -> None:
    """A file under its name, whole or not at all, whatever lay there before."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(temporary, flags, 0o400), "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(
            stream.fileno()
        )  # else a power cut could leave a file that looks the same and is empty
    temporary.replace(path)


def _write_manifest(folder: Path, ledger_id: str, segments: list[Segment]) -> None:
    _put(folder / MANIFEST, _manifest(ledger_id, segments).encode())


def _sweep(folder: Path, segments: list[Segment]) -> None:
    """Remove what no list names any more; who still reads it has it mapped."""
    named = {
        path_of(folder, (item.start, item.stop), table) for item in segments for table in item.files
    }
    for path in folder.iterdir():
        if path not in named and path.name != MANIFEST and path.suffix == ".parquet":
            path.unlink(missing_ok=True)


def main() -> None:
    """Read a request, build, answer with a line of JSON; a line `SEALED OF` before for each segment."""
    request = json.load(sys.stdin)
    history = History(Path(request["folder"]), request["from_records"])

    def tell(sealed: int, of: int) -> None:
        _say({"sealed": sealed, "of": of})

    try:
        found: dict[str, Any] = {"built": vars(build(Path(request["ledger"]), history, tell))}
    except LedgerError as error:
        found = {"error": error.as_dict(), "usage": isinstance(error, UsageError)}
    _say(found)


def _say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
