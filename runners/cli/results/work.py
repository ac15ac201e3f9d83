"""Results of the commands that do the work: what of them is promised; more fields may stand beside."""

from __future__ import annotations

from typing import Any

from runners.cli.results.base import Id, Number, OpenResult, Result


class DataIngest(OpenResult):
    """`evidence data ingest`."""

    source: Id | list[Id]
    dataset: Id
    accepted: Number
    rejected: Number
    reasons: dict[str, Number]
    duplicates: Number


class DataSplit(OpenResult):
    """`evidence data split`: rows for each role."""

    split: Id
    roles: dict[str, Number]


class Levels(OpenResult):
    """Held-out rows touched, a level each."""

    exact: Number
    normalised: Number
    masked: Number
    near_duplicate: Number


class DataAudit(OpenResult):
    """`evidence data audit`: a count is the number of held-out rows touched."""

    audit: Id
    verdict: str
    levels: Levels
    entities: dict[str, Number]


class DataAccept(OpenResult):
    """`evidence data accept`."""

    acceptance: Id
    audit: Id


class Plan(OpenResult):
    """`evidence plan sft`: every effective setting; `plan` is null with `--check`."""

    plan: Id | None
    settings: dict[str, Any]
    warnings: list[str]


class Counters(OpenResult):
    """Groups sampled, datums built, updates acknowledged, outcomes evaluated."""

    groups: Number
    datums: Number
    updates: Number
    outcomes: Number


class Run(OpenResult):
    """`evidence run launch` and `evidence run status`."""

    run: Id
    state: str
    counters: Counters
    checkpoint: Id | None = None


RESULTS: dict[str, type[Result]] = {
    "data accept": DataAccept,
    "data audit": DataAudit,
    "data ingest": DataIngest,
    "data split": DataSplit,
    "plan sft": Plan,
    "run launch": Run,
    "run status": Run,
}
