"""A trainer's rows into the ledger: ingested beside what is held out, split by declaration, audited.

Every row that is not trained on has the role test, the strictest: nobody can choose by it through this split. Where the
rows, all of them, are training rows of a split that is named, that split is the run's own and nothing new is recorded.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.digests import sha256
from ledger.errors import UsageError
from runners.prepare.data import SourceNote, ingest_files, read_lines, roles_of, split_rows
from runners.prepare.divide import audit_split, import_split
from verifiers.data.hand_out import KINDS_OF_METHOD, hand_out
from verifiers.data.identity import row_bytes, row_digest, rows_bytes
from verifiers.data.sources import START_BYTES, SourceFile, form_of, parse_sources
from verifiers.data.splits import Split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ledger.book import Ledger
    from ledger.record import Record
    from runners.train.adopted_rows import AdoptedRows

TRAINED = "trained.jsonl"
DECLARED = "held-out.jsonl"


@dataclass(frozen=True)
class HeldOut:
    """What a trainer's rows are compared with: files of the user's, and rows that came from elsewhere by digest."""

    files: tuple[Path, ...]
    rows: dict[str, dict[str, Any]]


def training_digests(ledger: Ledger, split: Record, method: str) -> frozenset[str]:
    """What a run of a method may read of a split.

    Raises:
        EvidenceError: `HELD_OUT_ROW`, `SPLIT_WRONG`.
    """
    rows, role_of = split_rows(ledger, split), roles_of(ledger, split)
    kinds = KINDS_OF_METHOD[method]
    return frozenset(
        item.digest for kind in kinds for item in hand_out(rows, role_of, "train", kind)
    )


def check_trained_on(ledger: Ledger, split: Record, method: str, rows: AdoptedRows) -> None:
    """Refuse rows that a split does not give to training.

    Raises:
        UsageError: `HELD_OUT_ROW`, the split holds the row out; `ADOPTION_REFUSED`, the split does not know it.
    """
    allowed = training_digests(ledger, split, method)
    roles = roles_of(ledger, split)
    for position, digest in enumerate(rows.digests):
        if digest not in allowed:
            known = roles.get(digest)
            raise UsageError(
                "HELD_OUT_ROW" if known not in (None, "train") else "ADOPTION_REFUSED",
                f"row {position} of the trainer's data set is {known or 'no row'} in split {split.id[7:19]}",
                field=f"train_dataset[{position}]",
                record=split.id,
            )


def declared_held_out(ledger: Ledger) -> dict[str, dict[str, Any]]:
    """Every row that the ledger holds out: validation and test rows of all splits, cases of all protocols."""
    found: dict[str, dict[str, Any]] = {}
    for split in ledger.of_kind("split.declared"):
        found |= held_out_of(ledger, split)
    for protocol in ledger.of_kind("protocol.registered"):
        found |= {row_digest(row): row for row in read_lines(ledger, protocol.body["cases"])}
    return found


def held_out_of(ledger: Ledger, split: Record) -> dict[str, dict[str, Any]]:
    """The validation and test rows of one split, by digest."""
    roles = roles_of(ledger, split)
    named = ((row_digest(row), row) for row in split_rows(ledger, split))
    return {digest: row for digest, row in named if roles[digest] != "train"}


def adopted_split(
    ledger: Ledger, rows: AdoptedRows, held_out: HeldOut, name: str, note: SourceNote
) -> Record:
    """The split of a trainer's rows and what is held out; one that is there already is taken again.

    Args:
        ledger: open for writing with an ingest key.
        rows: the trainer's.
        held_out: what they are compared with.
        name: the data set's name.
        note: what is said about the files.

    Raises:
        UsageError: `HELD_OUT_ROW`, a row is held out elsewhere; `ADOPTION_REFUSED`, nothing is held out, or a held-out row
            cannot be read.
        EvidenceError: `SOURCE_UNREADABLE`, `UNSAFE_PATH`.
    """
    trained = frozenset(rows.digests)
    _check_apart(rows, _digests_of_files(held_out.files) | held_out.rows.keys())
    with tempfile.TemporaryDirectory(prefix="evidence-adopt-") as scratch:
        paths = _written(Path(scratch), rows, held_out)
        parsed = parse_sources([_source(path) for path in paths], keep_held_out=True)
        _check_rejects(parsed.rejects, paths)
        roles = {digest: "train" if digest in trained else "test" for digest in parsed.digests}
        if "test" not in roles.values():
            raise UsageError(
                "ADOPTION_REFUSED",
                "nothing is held out that the rows could be compared with",
                field="held_out",
                hint='name a file of rows that are never trained on: held_out="held-out.jsonl"',
            )
        found = _existing(ledger, Split(roles, len(roles)))
        if found is not None:
            return found
        _, dataset, _ = ingest_files(ledger, paths, name, note, keep_held_out=True)
        listed = Path(scratch) / "roles.jsonl"
        listed.write_bytes(rows_bytes(Split(roles, len(roles)).lines()))
        return import_split(ledger, dataset, (), listed)


def audited(ledger: Ledger, split: Record) -> dict[str, str | list[str]]:
    """Refs of a plan to a split's newest audit, made where there is none, and to its acceptance.

    Raises:
        UsageError: `LEAKAGE_NOT_ACCEPTED`, naming the first finding.
    """
    audits = ledger.referrers(split.id, "split", "leakage.audited")
    audit = audits[-1] if audits else audit_split(ledger, split)
    refs: dict[str, str | list[str]] = {"split": split.id, "audit": audit.id}
    accepted = ledger.referrers(audit.id, "audit", "leakage.accepted")
    if accepted:
        refs["acceptance"] = accepted[-1].id
    elif audit.body["verdict"] != "clean":
        raise _not_accepted(ledger, audit)
    return refs


def _not_accepted(ledger: Ledger, audit: Record) -> UsageError:
    findings = read_lines(ledger, audit.body["findings"])
    first, short = findings[0], audit.id[7:19]
    return UsageError(
        "LEAKAGE_NOT_ACCEPTED",
        f"{len(findings)} findings, the first {first['level']}: held-out row {first['held_out'][7:19]} is touched by "
        f"{first['other_role']} row {first['other'][7:19]}: {first['detail']}",
        field="train_dataset",
        record=audit.id,
        hint=f"take those rows out, or have a reviewer accept: evidence data accept {short} --why WHY --review-key FILE",
    )


def _check_apart(rows: AdoptedRows, held_out: Iterable[str]) -> None:
    apart = frozenset(held_out)
    for position, digest in enumerate(rows.digests):
        if digest in apart:
            raise UsageError(
                "HELD_OUT_ROW",
                f"row {position} of the trainer's data set is held out",
                field=f"train_dataset[{position}]",
                record=digest,
            )


def _digests_of_files(files: Sequence[Path]) -> frozenset[str]:
    missing = next((path for path in files if not path.is_file()), None)
    if missing is not None:
        raise UsageError("INPUT_MISSING", f"there is no file {missing}", field="held_out")
    parsed = parse_sources([_source(path) for path in files], keep_held_out=True)
    return frozenset(parsed.digests)


def _written(folder: Path, rows: AdoptedRows, held_out: HeldOut) -> list[Path]:
    """The files to ingest: the trainer's rows, the user's own files, the rows that came from elsewhere."""
    (folder / TRAINED).write_bytes(rows.jsonl())
    paths = [folder / TRAINED, *held_out.files]
    if held_out.rows:
        taken = _ids(paths)
        (folder / DECLARED).write_bytes(b"".join(_renamed(held_out.rows, taken)))
        paths.append(folder / DECLARED)
    return paths


def _ids(paths: Sequence[Path]) -> set[str]:
    parsed = parse_sources([_source(path) for path in paths], keep_held_out=True)
    return {row["id"] for row in parsed.rows if "id" in row}


def _renamed(rows: dict[str, dict[str, Any]], taken: set[str]) -> Iterator[bytes]:
    """Rows as lines; an id that is taken is told apart, since ids are unique in a data set."""
    for digest, row in sorted(rows.items()):
        line = row
        if row.get("id") in taken:
            line = {**row, "id": f"{row['id'][:150]}@{digest[7:19]}"}
        if "id" in line:
            taken.add(line["id"])
        yield row_bytes(line) + b"\n"


def _source(path: Path) -> SourceFile:
    with path.open("rb") as stream:
        form = form_of(path.name, stream.read(START_BYTES))
    return SourceFile(path.name, form, partial(path.read_bytes))


def _check_rejects(rejects: Sequence[Any], paths: Sequence[Path]) -> None:
    """A held-out row that is not read is not compared; only repetitions may be left out."""
    for reject in rejects:
        if reject.code != "duplicate_row":
            name = paths[reject.source or 0].name
            raise UsageError(
                "ADOPTION_REFUSED",
                f"{name}, line {reject.line}: {reject.code}: {reject.message}",
                field="held_out" if reject.source else "train_dataset",
            )


def _existing(ledger: Ledger, split: Split) -> Record | None:
    """A split of the same rows in the same roles, the newest."""
    wanted = sha256(rows_bytes(split.lines()))
    found = (
        item
        for item in reversed(list(ledger.of_kind("split.declared")))
        if item.body["assignment"]["digest"] == wanted
    )
    return next(found, None)
