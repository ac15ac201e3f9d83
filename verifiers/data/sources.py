"""Files of every form as lines for the one parser: JSON lines, JSON lists, Parquet, data sets saved to disk.

Whatever the form, a row's rules are the same, and a row has a place: its physical line in a text file, its number
in a table. A file that cannot be read at all is refused whole, so that no row goes missing in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ledger.errors import EvidenceError
from verifiers.data.arrow_lines import table_lines
from verifiers.data.json_list import elements
from verifiers.data.json_text import loads_unique
from verifiers.data.row_rules import MAX_DEPTH, Rules
from verifiers.data.rows import Accepted, Judge, ParsedRows, Rejected, collected, lines_of
from verifiers.data.shapes import People

FORMS = ("jsonl", "json", "parquet", "arrow", "saved-state", "saved-dict", "tau2-database")

START_BYTES = 4096
_CHUNK_BYTES = 1 << 20
_MARK = b"\xef\xbb\xbf"
_SUFFIXES = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".parquet": "parquet", ".arrow": "arrow",
}  # fmt: skip
_SAVED = {"state.json": "saved-state", "dataset_dict.json": "saved-dict"}


@dataclass(frozen=True)
class SourceFile:
    """One file: the name its source has, its form, and what reads its bytes when it is its turn."""

    name: str
    form: str
    read: Callable[[], bytes]


def in_memory(name: str, data: bytes) -> SourceFile:
    """A file whose bytes are at hand, of the form that its name says."""
    return SourceFile(name, form_of(name, data[:START_BYTES]), lambda: data)


def form_of(name: str, begins: bytes) -> str:
    """A file's form by its name; a list of rows and a database are told apart by how they begin."""
    path = PurePosixPath(name)
    if path.name in _SAVED and len(path.parts) > 1:
        return _SAVED[path.name]
    form = _SUFFIXES.get(path.suffix.lower(), "jsonl")
    if form == "json" and begins.removeprefix(_MARK).lstrip()[:1] != b"[":
        return "tau2-database"
    return form


def parse_sources(
    files: Sequence[SourceFile], *, keep_held_out: bool = False, tuning: bool = True
) -> ParsedRows:
    """All rows and rejects of a data set's files; ids and rows are unique over all of them.

    Args:
        files: in the order of the data set's sources.
        keep_held_out: whether a row for training that declares itself held out is a row all the same.
        tuning: whether preferences, feedback and texts are rows, as they are from the parser's third version on.

    Raises:
        EvidenceError: `SOURCE_UNREADABLE`, a file is not of its form; `TOO_LARGE`, too many rejects.
    """
    rules = Rules(keep_held_out=keep_held_out, tuning=tuning, people=_people(files))
    return collected(_verdicts(files, Judge(rules)))


def _verdicts(files: Sequence[SourceFile], judge: Judge) -> Iterator[Accepted | Rejected]:
    roles: list[str] = []
    split: str | None = None
    awaited: list[str] = []
    several = sum(file.form not in ("tau2-database", "saved-state", "saved-dict") for file in files)
    for place, file in enumerate(files):
        if file.form == "saved-dict":
            roles = _roles(file)
        elif file.form == "saved-state":
            split, awaited = _state(file, roles)
        elif file.form != "tau2-database":
            mine = awaited.pop(0) if awaited and file.form == "arrow" else None
            _expect_name(file, mine)
            own = split if mine is not None else None
            yield from judge.verdicts(_lines(file), place if several > 1 else None, own)
    if awaited:
        raise _unreadable(files[-1], f"the saved data set has no {awaited[0]}")


def _lines(file: SourceFile) -> Iterable[tuple[int, bytes | None]]:
    if file.form == "jsonl":
        return lines_of(_chunks(file.read().removeprefix(_MARK)))
    if file.form == "json":
        return elements(file.read().removeprefix(_MARK), file.name)
    if file.form in ("parquet", "arrow"):
        return table_lines(file.read(), file.form, file.name)
    raise _unreadable(file, f"{file.form[:40]!r} is no form that is known")


def _chunks(data: bytes) -> Iterator[bytes]:
    """Bytes piece by piece, so that not all lines are there twice at a time."""
    for start in range(0, len(data), _CHUNK_BYTES):
        yield data[start : start + _CHUNK_BYTES]


def _people(files: Iterable[SourceFile]) -> People | None:
    found: People | None = None
    for file in files:
        if file.form == "tau2-database":
            found = found or People()
            found.add(_object(file))
    return found


def _roles(file: SourceFile) -> list[str]:
    names = _object(file).get("splits")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _unreadable(file, "it names no splits")
    return names


def _state(file: SourceFile, roles: list[str]) -> tuple[str | None, list[str]]:
    """What a saved data set is for, and the names of its files.

    In a folder of several splits the folder's name says it, for every row; else the state does, and it is written
    into the rows only where it is not for training.
    """
    state = _object(file)
    items = state.get("_data_files")
    listed = [
        item.get("filename") if isinstance(item, dict) else None
        for item in (items if isinstance(items, list) else ())
    ]
    names = [name for name in listed if isinstance(name, str) and "/" not in name]
    if not names or len(names) != len(listed):
        raise _unreadable(file, "it names no data files")
    if state.get("_indices_files") or state.get("_indices_data_files"):
        raise _unreadable(
            file, "its rows are chosen by an index; save it again after flatten_indices()"
        )
    folder = PurePosixPath(file.name).parent.name
    if roles:
        if folder not in roles:
            raise _unreadable(file, f"the folder names no split {folder[:40]!r}")
        return folder, names
    split = state.get("_split")
    return (split if isinstance(split, str) and split != "train" else None), names


def _expect_name(file: SourceFile, name: str | None) -> None:
    if name is not None and PurePosixPath(file.name).name != name:
        raise _unreadable(file, f"the saved data set's next file is {name[:80]!r}")


def _object(file: SourceFile) -> dict[str, Any]:
    try:
        value = loads_unique(file.read().removeprefix(_MARK), MAX_DEPTH)
    except EvidenceError as error:
        raise _unreadable(file, error.message) from None
    if not isinstance(value, dict) or (
        file.form == "tau2-database" and not isinstance(value.get("users"), dict)
    ):
        raise _unreadable(file, "it is neither a list of rows nor a database of users")
    return value


def _unreadable(file: SourceFile, message: str) -> EvidenceError:
    return EvidenceError("SOURCE_UNREADABLE", f"{file.name}: {message}", field=file.name)
