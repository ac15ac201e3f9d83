"""Nomination: of each planned seed the checkpoint that ranks first on validation, and which of them is to be promoted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledger.book import Ledger
    from ledger.record import Record


@dataclass(frozen=True)
class Choice:
    """What is nominated: a checkpoint for each seed, the one to be promoted, seeds whose checkpoint breaks a guard."""

    by_seed: Mapping[int, Record]
    chosen: Record
    not_eligible: tuple[int, ...]


def choose(ledger: Ledger, study: Record, comparison: Record) -> Choice:
    """The first of each seed in the comparison's ranking; the best that is eligible is to be promoted.

    A seed whose checkpoint is not eligible is nominated all the same: no planned seed may be dropped.

    Raises:
        UsageError: `SEEDS_NOT_AS_PLANNED`, a planned seed has no checkpoint in the comparison; `NOMINATION_OTHER`, none is
            eligible.
    """
    by_seed: dict[int, Record] = {}
    eligible: dict[int, bool] = {}
    for candidate in comparison.body["candidates"]:
        checkpoint = _checkpoint(ledger, candidate["evaluation"])
        if checkpoint is None:
            continue
        plan = ledger.get(str(ledger.get(str(checkpoint.ref("run"))).ref("plan")))
        if plan.ref("study") == study.id and plan.body["seeds"]["training"] not in by_seed:
            seed = plan.body["seeds"]["training"]
            by_seed[seed], eligible[seed] = checkpoint, candidate["eligible"]
    missing = [seed for seed in study.body["seeds"] if seed not in by_seed]
    if missing:
        raise UsageError(
            "SEEDS_NOT_AS_PLANNED",
            f"the comparison has no checkpoint of planned seed {', '.join(map(str, missing))}",
            field="COMPARISON",
            record=comparison.id,
        )
    # by_seed keeps the order of the ranking
    best = next((seed for seed in by_seed if eligible[seed]), None)
    if best is None:
        raise UsageError(
            "NOMINATION_OTHER",
            "no checkpoint of the study is eligible: each breaks a guard or is no better than the baseline",
            record=comparison.id,
            hint="see which cases: evidence eval compare BASELINE EVALUATION",
        )
    weak = tuple(sorted(seed for seed, fine in eligible.items() if not fine))
    return Choice(by_seed, by_seed[best], weak)


def _checkpoint(ledger: Ledger, evaluation_id: str) -> Record | None:
    evaluation = ledger.get(evaluation_id, "evaluation.completed")
    names = {ledger.get(arm).ref("checkpoint") for arm in evaluation.ref_list("arm")}
    name = names.pop() if len(names) == 1 else None
    return ledger.get(name) if name else None
