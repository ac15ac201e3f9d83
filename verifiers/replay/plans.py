"""V18: what a supervised plan says of its rows: template and tokenizer, and the rows that are cut or dropped."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ledger.record import Record
from verifiers.data.hand_out import SUPERVISED_KIND
from verifiers.replay.learning import CUT, rows_of_role, training_rows
from verifiers.replay.view import Replay, View, expect


def plan(record: Record, view: View) -> str | None:
    """The template is the model's or the one that the settings name, and the rows listed are those counted.

    Raises:
        EvidenceError: `PLAN_WRONG`.
    """
    _budget(record)
    told = record.body.get("reading")
    if told is None:
        return "how a plan's rows become tokens, and how many of them it counts"
    model = view.ref(record, "model").body
    expect("PLAN_WRONG", "tokenizer", told["tokenizer"], model["tokenizer"])
    named = record.body["settings"].get("chat_template")
    wanted = model["chat_template"] if named is None else named
    expect("PLAN_WRONG", "template", told["template"]["digest"], wanted)
    _rows(record, told, view)
    return "that the rows gave these tokens and labels (planning again would show it)"


def _budget(record: Record) -> None:
    """A supervised plan of ours goes to the end of its schedule; one that goes on exactly may end earlier."""
    settings, budget = record.body["settings"], record.body["budget_updates"]
    if record.body["method"] != "sft" or "trainer" in settings or "steps" not in settings:
        return
    steps = settings["steps"]
    if record.body["start"] == "exact":
        expect("PLAN_WRONG", "a budget beyond the schedule", budget > steps, derived=False)
    else:
        expect("PLAN_WRONG", "budget_updates", budget, steps)


def _rows(record: Record, told: dict[str, Any], view: View) -> None:
    """Counts and list agree with each other and with the training rows of the split."""
    lines = [] if told["listed"] is None else list(view.lines(told["listed"]))
    rows = record.body["rows"]
    training = training_rows(str(record.ref("split")), (SUPERVISED_KIND,), view)
    listed = [str(line["row"]) for line in lines]
    reasons = Counter(str(line["reason"]) for line in lines)
    cut = sum(reasons[name] for name in CUT)
    expect("PLAN_WRONG", "rows listed twice", len(listed) - len(set(listed)), 0)
    expect("PLAN_WRONG", "rows that are no training rows", len(set(listed) - training), 0)
    expect("PLAN_WRONG", "reasons", told["reasons"], dict(reasons))
    derived = {
        "input": len(training),
        "effective": len(training) - (len(lines) - cut),
        "truncated": cut,
        "dropped": len(lines) - cut,
    }
    evaluated = _evaluated(record, view)
    if evaluated:
        derived["validation"] = evaluated
    expect("PLAN_WRONG", "rows", rows, derived)


def _evaluated(record: Record, view: View) -> int:
    """How many validation rows the run is evaluated on while it trains."""
    settings = record.body["settings"]
    if not settings.get("eval_steps"):
        return 0
    held = rows_of_role(str(record.ref("split")), "validation", (SUPERVISED_KIND,), view)
    return min(int(settings["eval_rows"]), len(held))


REPLAYS: dict[str, Replay] = {"plan.prepared": plan}
