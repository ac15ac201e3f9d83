"""Splits of data sets and audits of splits: what is decided by pure code, with its blobs, into records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.prepare.data import dataset_rows, keep, put_lines, roles_of, split_rows
from verifiers.data import leakage, splits
from verifiers.data.role_lists import roles_in_field, roles_in_list
from verifiers.replay.history import READERS, history_of, past_rows
from verifiers.replay.view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledger.book import Ledger
    from ledger.record import Record


def declare_split(
    ledger: Ledger, dataset: Record, by: Sequence[str], weights: Sequence[int], seed: int
) -> Record:
    """Deal a dataset's rows to train, validation and test, and record who got what.

    Raises:
        UsageError: `SPLIT_SETTINGS`, `SPLIT_ROLE_EMPTY`, `HELD_OUT_ROW`.
    """
    split = splits.split_by_fractions(dataset_rows(ledger, dataset), by, weights, seed)
    method = {"method": "fractions", "fractions": list(weights), "seed": seed}
    return _record_split(ledger, dataset, by, split, method)


def import_split(ledger: Ledger, dataset: Record, by: Sequence[str], published: Path) -> Record:
    """Take over a published split of a dataset, its file kept.

    Raises:
        UsageError: `INPUT_MISSING`, `SPLIT_SETTINGS`, `SPLIT_GROUP_TORN`, `SPLIT_ROLE_EMPTY`, `HELD_OUT_ROW`.
    """
    blob = keep(ledger, published)
    rows = dataset_rows(ledger, dataset)
    split = splits.split_as_published(rows, by, ledger.blobs.read(blob.digest))
    method = {"method": "published", "roles_from": blob.model_dump()}
    return _record_split(ledger, dataset, by, split, method)


def assign_split(ledger: Ledger, dataset: Record, by: Sequence[str], source: str) -> Record:
    """Give rows the roles that a file lists, or, where there is no such file, those in a field of theirs.

    Raises:
        UsageError: `SPLIT_SETTINGS`, `SPLIT_GROUP_TORN`, `SPLIT_ROLE_EMPTY`, `HELD_OUT_ROW`.
    """
    rows = dataset_rows(ledger, dataset)
    method: dict[str, Any] = {"method": "explicit"}
    if Path(source).is_file():
        blob = keep(ledger, Path(source))
        roles = roles_in_list(ledger.blobs.read(blob.digest))
        method["roles_from"] = blob.model_dump()
    else:
        roles = roles_in_field(rows, source)
        method["roles_by"] = source
    return _record_split(ledger, dataset, by, splits.split_by_list(rows, by, roles), method)


def _record_split(
    ledger: Ledger,
    dataset: Record,
    by: Sequence[str],
    split: splits.Split,
    method: dict[str, Any],
) -> Record:
    body = {
        "assignment": put_lines(ledger, split.lines()).model_dump(),
        "roles": split.roles,
        "by": list(by),
        "groups": split.groups,
        "fractions": None,
        "seed": None,
        **method,
    }
    return ledger.append("split.declared", body, {"dataset": [dataset.id]})


def audit_split(
    ledger: Ledger, split: Record, *, fields: Sequence[str] = (), against_history: bool = False
) -> Record:
    """Look for held-out rows among the training rows and record what was found.

    Args:
        ledger: the ledger.
        split: the split.
        fields: fields to compare beside those that name entities.
        against_history: whether to look among the rows that this ledger has read before as well.
    """
    rows = split_rows(ledger, split)
    role_of = roles_of(ledger, split)
    entities = sorted({*leakage.entity_fields(rows), *fields})
    past, ids = None, list[str]()
    if against_history:
        view = View(ledger, ledger.blobs)
        readers = [record for kind in READERS for record in ledger.of_kind(kind)]
        ids = history_of(sorted(readers, key=lambda record: record.seq), split.id, view)
        past = list(past_rows(ids, view))
    found = leakage.audit(rows, role_of, entities, past=past)
    findings = (
        put_lines(ledger, (item.as_json() for item in found.findings)) if found.findings else None
    )
    refs: dict[str, str | list[str]] = {"split": split.id}
    if ids:
        refs["history"] = ids
    return ledger.append(
        "leakage.audited",
        {
            "method": leakage.METHOD,
            "settings": found.settings,
            "levels": found.levels,
            "entities": found.entities,
            "pairs": found.pairs,
            "findings": findings.model_dump() if findings else None,
            "verdict": found.verdict,
            "history": found.history,
        },
        refs,
    )
