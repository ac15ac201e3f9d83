"""Data into the ledger and out of it: files become sources and a data set, blobs first, then their record."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ledger.blobs import BINARY, JSON_LINES, TEXT
from ledger.canonical import loads
from ledger.errors import EvidenceError, UsageError
from runners.prepare import desk_cases, desk_dated, tau2
from runners.prepare.saved_folder import files_of
from verifiers.data import secrets, splits
from verifiers.data.hand_out import check_counts
from verifiers.data.identity import row_bytes, row_digest, rows_bytes
from verifiers.data.rows import PARSER, ParsedRows, parse_rows
from verifiers.data.sources import START_BYTES, SourceFile, form_of, parse_sources
from verifiers.replay.data_rows import KEPT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ledger.book import Ledger
    from ledger.record import Record
    from ledger.records.base import Blob

TAU2_PARSER = "tau2-retail-desk/1"
MAX_SOURCE_BYTES = 1 << 31
UNKNOWN_LICENCE = "not stated"


@dataclass(frozen=True)
class SourceNote:
    """What the person who ingests a source says about it."""

    licence: str = UNKNOWN_LICENCE
    origin: str = ""
    review: str = "unreviewed"
    reviewer: str | None = None


def ingest_files(
    ledger: Ledger,
    paths: Sequence[Path],
    name: str,
    note: SourceNote,
    *,
    keep_held_out: bool = False,
) -> tuple[list[Record], Record, ParsedRows]:
    """Keep files as they are, parse their rows, record both.

    Args:
        ledger: the ledger.
        paths: files of any form that `verifiers.data.sources` reads, and folders of data sets saved to disk.
        name: the data set's name.
        note: what is said about the files.
        keep_held_out: whether a chat row that declares itself held out is a row all the same.

    Returns:
        The source records, the dataset record, and what was parsed.

    Raises:
        UsageError: `INPUT_MISSING`; `DATASET_EMPTY`, no row was accepted; nothing is recorded.
        EvidenceError: `UNSAFE_PATH`, `TOO_LARGE`, `SOURCE_UNREADABLE`.
    """
    named = [item for path in paths for item in files_of(path)]
    blobs = [keep(ledger, path) for _, path in named]
    files = [
        SourceFile(title, _form(ledger, title, blob), partial(ledger.blobs.read, blob.digest))
        for (title, _), blob in zip(named, blobs, strict=True)
    ]
    parsed = parse_sources(files, keep_held_out=keep_held_out)
    check_not_empty(parsed)
    sources = [
        record_source(ledger, title, blob, note, origin=note.origin or f"file {title}")
        for (title, _), blob in zip(named, blobs, strict=True)
    ]
    forms = [file.form for file in files]
    settings: dict[str, Any] = {"forms": forms}
    if keep_held_out:
        settings["held_out"] = KEPT
    form = forms[0] if len(set(forms)) == 1 else "mixed"
    return sources, record_dataset(ledger, sources, name, form, PARSER, settings, parsed), parsed


def ingest_tau2(ledger: Ledger, seed: int) -> tuple[list[Record], Record, ParsedRows]:
    """Keep the tau2 retail files, build the desk data from them, record both.

    Raises:
        UsageError: `DATA_MISSING`, the package is not installed.
        EvidenceError: `SOURCE_CHANGED`, its files are not what the builder knows.
    """
    folder = tau2.source_dir()
    licence = b"\n".join(path.read_bytes() for path in tau2.licence_files())
    licence_blob = ledger.blobs.put(licence, TEXT)
    note = SourceNote(licence=tau2.LICENCE, review="unreviewed")
    origin = f"package {tau2.PACKAGE} {tau2.package_version()}, {tau2.RETAIL_FOLDER}"
    sources = [
        record_source(
            ledger, path.name, keep(ledger, path), note, origin=origin, licence_text=licence_blob
        )
        for path in (folder / file for file in tau2.RETAIL_FILES)
    ]
    parsed = parse_rows([desk_cases.build(folder, seed).jsonl()])
    dataset = record_dataset(
        ledger, sources, "tau2-retail-desk", "tau2-retail", TAU2_PARSER, {"seed": seed}, parsed
    )
    return sources, dataset, parsed


def ingest_dated(ledger: Ledger, seed: int) -> tuple[list[Record], Record, ParsedRows]:
    """Make the desk cases of the synthetic book with days, keep them as a source, parse and record them.

    They are made here and so need no file; from the recorded bytes on they are data like any other.
    """
    blob = ledger.blobs.put(rows_bytes(desk_dated.dated_cases(seed)), JSON_LINES)
    form, title = "jsonl", "desk-dated.jsonl"
    parsed = parse_sources([SourceFile(title, form, partial(ledger.blobs.read, blob.digest))])
    origin = (
        f"made by this program of seed {seed}; synthetic: customers, orders and days are made up"
    )
    sources = [record_source(ledger, title, blob, SourceNote(licence="Apache-2.0"), origin=origin)]
    settings = {"forms": [form]}
    return (
        sources,
        record_dataset(ledger, sources, "desk-dated", form, PARSER, settings, parsed),
        parsed,
    )


def record_dataset(
    ledger: Ledger,
    sources: Sequence[Record],
    name: str,
    form: str,
    parser: str,
    settings: dict[str, Any],
    parsed: ParsedRows,
) -> Record:
    """Record what was parsed, rows and rejects in blobs.

    Raises:
        UsageError: `DATASET_EMPTY`.
    """
    check_not_empty(parsed)
    rows = put_lines(ledger, (row for row in parsed.rows))
    rejects = (
        put_lines(ledger, (reject.as_json() for reject in parsed.rejects))
        if parsed.rejects
        else None
    )
    found = secrets.scan(parsed.rows, parsed.digests)
    flagged = put_lines(ledger, (item.as_json() for item in found)) if found else None
    return ledger.append(
        "dataset.parsed",
        {
            "name": name,
            "format": form,
            "parser": parser,
            "parser_settings": {**settings, "secrets": secrets.SCANNER},
            "rows": rows.model_dump(),
            "identity": parsed.identity,
            "accepted": len(parsed.rows),
            "rejected": len(parsed.rejects),
            "reasons": parsed.reasons,
            "rejects": rejects.model_dump() if rejects else None,
            "duplicates": parsed.duplicates,
            "secrets": secrets.counts(found),
            "flagged": flagged.model_dump() if flagged else None,
        },
        {"source": list(dict.fromkeys(source.id for source in sources))},
    )


def check_not_empty(parsed: ParsedRows) -> None:
    """Refuse a data set without rows, before anything is recorded.

    Raises:
        UsageError: `DATASET_EMPTY`, naming the first line's reason.
    """
    if not parsed.rows:
        first = parsed.rejects[0] if parsed.rejects else None
        why = f"; line {first.line}: {first.code}: {first.message}" if first else ""
        raise UsageError("DATASET_EMPTY", f"none of {len(parsed.rejects)} lines was accepted{why}")


def dataset_rows(ledger: Ledger, dataset: Record) -> list[dict[str, Any]]:
    """A dataset's rows, re-hashed, in their order."""
    return read_lines(ledger, dataset.body["rows"])


def split_rows(ledger: Ledger, split: Record) -> list[dict[str, Any]]:
    """The rows of every dataset that a split deals."""
    datasets = [ledger.get(item) for item in split.ref_list("dataset")]
    return [row for dataset in datasets for row in dataset_rows(ledger, dataset)]


def roles_of(ledger: Ledger, split: Record) -> dict[str, str]:
    """Role by row digest, for exactly the rows of the split's data sets.

    Raises:
        EvidenceError: `SPLIT_WRONG`, the assignment is not of these rows or not of the counts that the split states.
    """
    lines = read_lines(ledger, split.body["assignment"])
    role_of = splits.read_assignment(lines, [row_digest(row) for row in split_rows(ledger, split)])
    check_counts(role_of, split.body["roles"])
    return role_of


def put_lines(ledger: Ledger, rows: Iterable[Any]) -> Blob:
    """Keep rows as a JSON-lines blob with their count."""
    lines = [row_bytes(row) for row in rows]
    return ledger.blobs.put(b"".join(line + b"\n" for line in lines), JSON_LINES, len(lines))


def read_lines(ledger: Ledger, blob: dict[str, Any]) -> list[Any]:
    """A JSON-lines blob's values, re-hashed."""
    return [loads(line, 64) for line in ledger.blobs.read(blob["digest"]).splitlines()]


def keep(ledger: Ledger, path: Path) -> Blob:
    """Keep a file's bytes.

    Raises:
        UsageError: `INPUT_MISSING`, `TOO_LARGE`.
        EvidenceError: `UNSAFE_PATH`, it is a pipe, a device or a folder.
    """
    if not path.exists():
        raise UsageError("INPUT_MISSING", f"there is no file {path}")
    if not path.is_file():
        raise EvidenceError("UNSAFE_PATH", f"{path} is no regular file")
    if path.stat().st_size > MAX_SOURCE_BYTES:
        raise UsageError("TOO_LARGE", f"{path.name} has more than {MAX_SOURCE_BYTES} bytes")
    # the size that a file states is not always where it ends
    return ledger.blobs.put_file(path, BINARY, max_bytes=MAX_SOURCE_BYTES)


def _form(ledger: Ledger, name: str, blob: Blob) -> str:
    with ledger.blobs.open(blob.digest) as stream:
        return form_of(name, stream.read(START_BYTES))


def record_source(
    ledger: Ledger,
    name: str,
    blob: Blob,
    note: SourceNote,
    *,
    origin: str,
    licence_text: Blob | None = None,
) -> Record:
    """Record bytes that were kept as a source."""
    return ledger.append(
        "source.ingested",
        {
            "name": name,
            "content": blob.model_dump(),
            "licence": note.licence,
            "licence_text": licence_text.model_dump() if licence_text else None,
            "origin": origin,
            "review": {"status": note.review, "reviewer": note.reviewer},
        },
    )
