"""Rows of a data set, line by line: each is accepted, or rejected with a reason. Nothing is skipped in silence.

What a row may be is in `row_rules`; how files of other forms come to lines is in `sources`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError
from verifiers.data.chat import Refused
from verifiers.data.identity import content_digest, dataset_identity, row_digest
from verifiers.data.row_rules import (
    LATEST,
    MAX_LINE_BYTES,
    REASONS,
    Rules,
    declares_held_out,
    read_row,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PARSER = "rows/3"
SECOND_PARSER = "rows/2"
FIRST_PARSER = "rows/1"
MAX_REJECTS = 200_000


@dataclass(frozen=True)
class Accepted:
    """A row that was accepted: its physical line (from 1), its value and its digest."""

    line: int
    row: dict[str, Any]
    digest: str


@dataclass(frozen=True)
class Rejected:
    """A line that was rejected: its number (from 1), a key of `REASONS`, and what exactly is wrong.

    `source` is the place of its file among the data set's sources, from 0; None where there is only one.
    """

    line: int
    code: str
    message: str
    source: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The reject as one line of a rejects blob."""
        place = {} if self.source is None else {"source": self.source}
        return {**place, "line": self.line, "code": self.code, "message": self.message}


@dataclass
class ParsedRows:
    """All of a file: rows in file order, rejects, and the counts that a dataset record states."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    rejects: list[Rejected] = field(default_factory=list)
    duplicates: int = 0

    @property
    def reasons(self) -> dict[str, int]:
        """How many lines were rejected for each reason, by name."""
        return dict(sorted(Counter(reject.code for reject in self.rejects).items()))

    @property
    def identity(self) -> str:
        """The dataset's identity: the same for the same rows in any order."""
        return dataset_identity(self.digests)


def parse_rows(chunks: Iterable[bytes], rules: Rules = LATEST) -> ParsedRows:
    """All rows and rejects of JSON lines, handed over in chunks of any size.

    `duplicates` counts accepted rows that an earlier one equals in everything but its id.

    Raises:
        EvidenceError: `TOO_LARGE`, more lines are rejected than anybody would look at: it is another sort of file.
    """
    return collected(iterate_rows(chunks, rules))


def iterate_rows(chunks: Iterable[bytes], rules: Rules = LATEST) -> Iterator[Accepted | Rejected]:
    """One verdict a physical line, in file order; memory holds ids and digests only."""
    return Judge(rules).verdicts(lines_of(chunks))


class Judge:
    """Decides about lines, of one file or of several: ids and rows are unique over all of them."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._ids: set[str] = set()
        self._digests: set[str] = set()

    def verdicts(
        self,
        lines: Iterable[tuple[int, bytes | None]],
        source: int | None = None,
        split: str | None = None,
    ) -> Iterator[Accepted | Rejected]:
        """One verdict a line.

        Args:
            lines: number and bytes; None stands for a line beyond the limit.
            source: which file it is, for rejects.
            split: what the file says that its rows are for, where the rows do not say it themselves.
        """
        for number, line in lines:
            try:
                row = read_row(line, self.rules, split)
                digest = _new_digest(row, self._ids, self._digests)
            except Refused as refused:
                yield Rejected(number, refused.reason, refused.message, source)
            else:
                yield Accepted(number, row, digest)


def collected(verdicts: Iterable[Accepted | Rejected]) -> ParsedRows:
    """All verdicts, with what a record says about them.

    Raises:
        EvidenceError: `TOO_LARGE`, see `parse_rows`.
    """
    parsed = ParsedRows()
    contents: set[str] = set()
    for found in verdicts:
        if isinstance(found, Rejected):
            parsed.rejects.append(found)
            if len(parsed.rejects) > MAX_REJECTS:
                raise EvidenceError("TOO_LARGE", f"more than {MAX_REJECTS} lines were rejected")
            continue
        content = content_digest(found.row)
        parsed.duplicates += content in contents
        contents.add(content)
        parsed.rows.append(found.row)
        parsed.digests.append(found.digest)
    return parsed


def lines_of(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Physical lines by number; None stands for a line beyond the limit, whose bytes are dropped."""
    number, rest, overlong = 1, b"", False
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield number, None if overlong or len(line) > MAX_LINE_BYTES else line
            number, overlong = number + 1, False
        if len(rest) > MAX_LINE_BYTES:
            rest, overlong = b"", True
    if rest or overlong:
        yield number, None if overlong else rest


def _new_digest(row: dict[str, Any], ids: set[str], digests: set[str]) -> str:
    if row.get("id") in ids:
        raise Refused("duplicate_id", f"an earlier row has the id {row['id'][:40]!r}")
    digest = row_digest(row)
    if digest in digests:
        raise Refused("duplicate_row", REASONS["duplicate_row"])
    if "id" in row:
        ids.add(row["id"])
    digests.add(digest)
    return digest


__all__ = [
    "FIRST_PARSER",
    "MAX_LINE_BYTES",
    "PARSER",
    "REASONS",
    "SECOND_PARSER",
    "Accepted",
    "Judge",
    "ParsedRows",
    "Rejected",
    "declares_held_out",
    "iterate_rows",
    "parse_rows",
]
