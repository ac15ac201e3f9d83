"""V17: datasets, splits and audits are derived again from the bytes they name."""

from __future__ import annotations

from typing import Any

from ledger.record import Record
from verifiers.data import leakage, role_lists, secrets, splits
from verifiers.data.identity import rows_bytes
from verifiers.data.rows import ParsedRows
from verifiers.replay.data_rows import DERIVED, from_sources, kept_rows, rows_of_split
from verifiers.replay.history import history_of, past_rows, records_before
from verifiers.replay.view import Replay, View, deriving, expect


def dataset(record: Record, view: View) -> str | None:
    """A dataset's counts and identity follow from its rows, and its rows from its sources' bytes.

    Raises:
        EvidenceError: `DATASET_WRONG`.
    """
    body = record.body
    kept = kept_rows(body, view)
    expect("DATASET_WRONG", "rejects among the rows kept", len(kept.rejects), 0)
    expect("DATASET_WRONG", "accepted", body["accepted"], len(kept.rows))
    expect("DATASET_WRONG", "identity", body["identity"], kept.identity)
    expect("DATASET_WRONG", "duplicates", body["duplicates"], kept.duplicates)
    expect("DATASET_WRONG", "rejected", body["rejected"], sum(body["reasons"].values()))
    _secrets(body, kept, view)
    if body["parser"] not in DERIVED:
        listed = _kept(body["rejects"], view).count(b"\n")
        expect("DATASET_WRONG", "rejects listed", body["rejected"], listed)
        return f"that {body['parser']} made these rows from the sources named"
    with deriving("DATASET_WRONG"):
        parsed = from_sources(record, view)
    expect("DATASET_WRONG", "rows", view.bytes(body["rows"]), rows_bytes(parsed.rows))
    expect("DATASET_WRONG", "rejected", body["rejected"], len(parsed.rejects))
    expect("DATASET_WRONG", "reasons", body["reasons"], parsed.reasons)
    rejects = rows_bytes([reject.as_json() for reject in parsed.rejects])
    expect("DATASET_WRONG", "rejects", _kept(body["rejects"], view), rejects)
    return None


def _secrets(body: dict[str, Any], kept: ParsedRows, view: View) -> None:
    """What looks like a secret is flagged wherever the record says that it was looked for."""
    scanned = body["parser_settings"].get("secrets") == secrets.SCANNER
    found = secrets.scan(kept.rows, kept.digests) if scanned else []
    expect("DATASET_WRONG", "secrets", body.get("secrets", {}), secrets.counts(found))
    lines = rows_bytes([item.as_json() for item in found])
    expect("DATASET_WRONG", "flagged", _kept(body.get("flagged"), view), lines)


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
    derived = _derived(body, rows, view)
    if derived is None:
        with deriving(
            "SPLIT_WRONG"
        ):  # nobody says where the roles come from, but they tear no group all the same
            splits.split_by_list(rows.rows, body["by"], role_of, needed=("train",))
        return f"that the {body['method']} assignment was made before its results were known"
    expect("SPLIT_WRONG", "assignment", role_of, dict(derived.role_of))
    return None


def _derived(body: dict[str, Any], rows: ParsedRows, view: View) -> splits.Split | None:
    """The split that the record's method gives; None where it does not say where the roles come from."""
    by, source, name = body["by"], body.get("roles_from"), body.get("roles_by")
    with deriving("SPLIT_WRONG"):
        if body["method"] == "fractions":
            return splits.split_by_fractions(rows.rows, by, body["fractions"], body["seed"])
        if body["method"] == "published" and source is not None:
            return splits.split_as_published(rows.rows, by, view.bytes(source))
        if source is not None:
            roles = role_lists.roles_in_list(view.bytes(source))
            return splits.split_by_list(rows.rows, by, roles)
        if name is not None:
            roles = role_lists.roles_in_field(rows.rows, name)
            return splits.split_by_list(rows.rows, by, roles)
    return None


def audit(record: Record, view: View) -> None:
    """An audit's counts and verdict are what its split gives, and what the ledger had read before it.

    Raises:
        EvidenceError: `AUDIT_WRONG`.
    """
    body = record.body
    expect("AUDIT_WRONG", "method is known", body["method"] in leakage.METHODS, derived=True)
    split_record = view.ref(record, "split")
    rows = rows_of_split(split_record, view)
    role_of = splits.read_assignment(
        list(view.lines(split_record.body["assignment"])), rows.digests
    )
    past = None
    if body.get("history") is not None:
        with deriving("AUDIT_WRONG"):
            ids = history_of(records_before(record, view), split_record.id, view)
            expect("AUDIT_WRONG", "history named", record.ref_list("history"), ids)
            past = list(past_rows(ids, view))
    entities = _entities(body, rows)
    found = leakage.audit(rows.rows, role_of, entities, past=past, method=body["method"])
    claims: dict[str, Any] = {
        "settings": found.settings,
        "levels": found.levels,
        "entities": found.entities,
        "pairs": found.pairs,
        "verdict": found.verdict,
    }
    for name, derived in claims.items():
        expect("AUDIT_WRONG", name, body[name], derived)
    expect("AUDIT_WRONG", "history", body.get("history"), found.history)
    lines = rows_bytes([item.as_json() for item in found.findings])
    expect("AUDIT_WRONG", "findings", _kept(body["findings"], view), lines)


def _entities(body: dict[str, Any], rows: ParsedRows) -> list[str]:
    """The fields that were compared: at least those that name entities, more where the record says so."""
    named = body["settings"].get("entities")
    entities = list(named) if isinstance(named, list) else []
    left_out = sorted(set(leakage.entity_fields(rows.rows)) - set(entities))
    expect("AUDIT_WRONG", "entity fields left out", left_out, [])
    return entities


def _kept(blob: dict[str, Any] | None, view: View) -> bytes:
    """The lines of a blob that is left out where there are none."""
    return b"" if blob is None else view.bytes(blob)


REPLAYS: dict[str, Replay] = {
    "dataset.parsed": dataset,
    "split.declared": split,
    "leakage.audited": audit,
}

__all__ = ["REPLAYS", "audit", "dataset", "rows_of_split", "split"]
