"""The rows of data sets and splits, read again from what their records name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ledger.errors import EvidenceError
from ledger.record import Record
from verifiers.data.row_rules import Rules
from verifiers.data.rows import FIRST_PARSER, PARSER, SECOND_PARSER, ParsedRows, parse_rows
from verifiers.data.sources import SourceFile, parse_sources
from verifiers.replay.view import View

KEPT = "kept"
DERIVED = (FIRST_PARSER, SECOND_PARSER, PARSER)


def rows_of_split(record: Record, view: View) -> ParsedRows:
    """Every row that a split deals, parsed again."""
    datasets = view.refs(record, "dataset")
    rules = Rules(keep_held_out=any(keeps_held_out(item.body) for item in datasets))
    return parse_rows([view.bytes(item.body["rows"]) for item in datasets], rules)


def kept_rows(body: Mapping[str, Any], view: View) -> ParsedRows:
    """A data set's rows blob, parsed again."""
    return parse_rows([view.bytes(body["rows"])], Rules(keep_held_out=keeps_held_out(body)))


def from_sources(record: Record, view: View) -> ParsedRows:
    """A data set parsed again from the bytes of its sources, as its parser's version did.

    Raises:
        EvidenceError: `DATASET_WRONG`, the record does not say of what form each source is.
    """
    sources = view.refs(record, "source")
    if record.body["parser"] == FIRST_PARSER:
        contents = (view.bytes(source.body["content"]) for source in sources)
        return parse_rows(map(_ended, contents), Rules(first=True))
    forms = record.body["parser_settings"].get("forms")
    if not isinstance(forms, list) or len(forms) != len(sources):
        raise EvidenceError("DATASET_WRONG", "the record does not name a form for each source")
    files = [
        SourceFile(source.body["name"], str(form), partial(view.bytes, source.body["content"]))
        for source, form in zip(sources, forms, strict=True)
    ]
    return parse_sources(
        files,
        keep_held_out=keeps_held_out(record.body),
        tuning=record.body["parser"] != SECOND_PARSER,
    )


def keeps_held_out(body: Mapping[str, Any]) -> bool:
    """Whether a data set kept chat rows that declare themselves held out."""
    return bool(body["parser_settings"].get("held_out") == KEPT)


def _ended(data: bytes) -> bytes:
    """Bytes that end their last line: the first parser read all files as one."""
    return data if data.endswith(b"\n") or not data else data + b"\n"
