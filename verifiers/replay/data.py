"""V17: datasets, splits and audits are derived again from the bytes they name."""

from __future__ import annotations

from typing import Any

from ledger.record import Record
from verifiers.data import leakage, splits
from verifiers.data.identity import rows_bytes
from verifiers.data.rows import PARSER, ParsedRows, parse_rows, parse_sources
from verifiers.replay.view import Replay, View, expect


def dataset(record: Record, view: View) -> str | None:
    """A dataset's counts and identity follow from its rows; a JSON-lines one from its sources' bytes too.

    Raises:
        EvidenceError: `DATASET_WRONG`.
    """
    body = record.body
    kept = parse_rows([view.bytes(body["rows"])])
    expect("DATASET_WRONG", "rejects among the rows kept", len(kept.rejects), 0)
    expect("DATASET_WRONG", "accepted", body["accepted"], len(kept.rows))
    expect("DATASET_WRONG", "identity", body["identity"], kept.identity)
    expect("DATASET_WRONG", "duplicates", body["duplicates"], kept.duplicates)
    expect("DATASET_WRONG", "rejected", body["rejected"], sum(body["reasons"].values()))
    if body["parser"] != PARSER:
        listed = _kept(body["rejects"], view).count(b"\n")
        expect("DATASET_WRONG", "rejects listed", body["rejected"], listed)
        return f"that {body['parser']} made these rows from the sources named"
    _from_sources(record, view)
    return None


def _from_sources(record: Record, view: View) -> None:
    body = record.body
    sources = view.refs(record, "source")
    contents = (view.bytes(source.body["content"]) for source in sources)
    parsed = parse_sources(contents, several=len(sources) > 1)
    expect("DATASET_WRONG", "rows", view.bytes(body["rows"]), rows_bytes(parsed.rows))
    expect("DATASET_WRONG", "rejected", body["rejected"], len(parsed.rejects))
    expect("DATASET_WRONG", "reasons", body["reasons"], parsed.reasons)
    rejects = rows_bytes([reject.as_json() for reject in parsed.rejects])
    expect("DATASET_WRONG", "rejects", _kept(body["rejects"], view), rejects)


def split(record: Record, view: View) -> str | None:
    """A split's assignment covers its rows exactly and is what its method gives.

    Raises:
        EvidenceError: `SPLIT_WRONG`.
    """
    body = record.body
    rows = rows_of_split(record, view)
    role_of = splits.read_assignment(list(view.lines(body["assignment"])), rows.digests)
    counts = splits.Split(role_of, body["groups"]).roles
    expect("SPLIT_WRONG", "roles", body["roles"], counts)
    grouped = len(splits.group_rows(rows.rows, body["by"]))
    expect("SPLIT_WRONG", "groups", body["groups"], grouped)
    if body["method"] != "fractions":
        expect("SPLIT_WRONG", "fractions and seed", (body["fractions"], body["seed"]), (None, None))
        return f"that the {body['method']} assignment was made before its results were known"
    derived = splits.split_by_fractions(rows.rows, body["by"], body["fractions"], body["seed"])
    expect("SPLIT_WRONG", "assignment", role_of, dict(derived.role_of))
    return None


def audit(record: Record, view: View) -> None:
    """An audit's counts and verdict are what its split gives.

    Raises:
        EvidenceError: `AUDIT_WRONG`.
    """
    body = record.body
    split_record = view.ref(record, "split")
    rows = rows_of_split(split_record, view)
    role_of = splits.read_assignment(
        list(view.lines(split_record.body["assignment"])), rows.digests
    )
    found = leakage.audit(rows.rows, role_of, leakage.entity_fields(rows.rows))
    claims: dict[str, Any] = {
        "method": leakage.METHOD,
        "settings": found.settings,
        "levels": found.levels,
        "entities": found.entities,
        "pairs": found.pairs,
        "verdict": found.verdict,
    }
    for name, derived in claims.items():
        expect("AUDIT_WRONG", name, body[name], derived)
    lines = rows_bytes([item.as_json() for item in found.findings])
    expect("AUDIT_WRONG", "findings", _kept(body["findings"], view), lines)


def rows_of_split(record: Record, view: View) -> ParsedRows:
    """Every row that a split deals, parsed again."""
    blobs = [view.bytes(item.body["rows"]) for item in view.refs(record, "dataset")]
    return parse_rows(blobs)


def _kept(blob: dict[str, Any] | None, view: View) -> bytes:
    """The lines of a blob that is left out where there are none."""
    return b"" if blob is None else view.bytes(blob)


REPLAYS: dict[str, Replay] = {
    "dataset.parsed": dataset,
    "split.declared": split,
    "leakage.audited": audit,
}
