"""Rules about what goes on from elsewhere: parents, heirs, forks, restored states (docs/spec/rules.md, P5 to P7, R6, R7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from ledger.checks.context import Context, check_state
from ledger.record import Record
from ledger.records.learning import CheckpointRestored
from ledger.records.run import PlanPrepared
from ledger.state import RunState

ALIKE = ("method", "settings", "seeds", "libraries", "code")
"""What of a plan's body an exact continuation shares with the plan of its parent."""
LEARNER_FILES = frozenset({"optimizer.safetensors", "random.safetensors", "learner.json"})
"""The files of a checkpoint that hold the learner's state beside the weights."""


def plan_parent(context: Context) -> None:
    """P5: what starts from a checkpoint has its model; exactly: a whole state, all settings, code, libraries, data."""
    parent = context.ref("parent")
    if parent is None:
        return
    body = cast("PlanPrepared", context.body)
    plan = context.fetch(str(context.fetch(str(parent.ref("run"))).ref("plan")))
    _check_alike(context, plan, ("model",), ())
    if body.start != "exact":
        return
    check_complete(context, parent, "refs.parent")
    _check_alike(context, plan, ("split",), ALIKE)
    if not parent.body["spent_updates"] < body.budget_updates <= plan.body["budget_updates"]:
        raise context.fail(
            "BUDGET_EXCEEDED",
            f"{parent.body['spent_updates']} of {plan.body['budget_updates']} updates are spent at the checkpoint",
            field="body.budget_updates",
            expected=str(plan.body["budget_updates"]),
            actual=str(body.budget_updates),
        )


def plan_like(context: Context) -> None:
    """P6: a plan that is made like another has its settings, model and split, and starts fresh."""
    other = context.ref("like")
    if other is None:
        return
    _check_alike(context, other, ("model", "split"), ("method", "settings", "seeds"))
    if context.ref("parent") is not None:
        raise context.fail(
            "PLAN_START", "a plan is made like another or goes on, not both", field="refs.like"
        )


def plan_heir(context: Context) -> None:
    """P7: whom an exact plan goes on from has ended, has budget left and no other heir, or the plan is a fork."""
    body = cast("PlanPrepared", context.body)
    if body.start == "exact":
        _check_heir(context, context.need("parent"), fork=body.fork)


def launched_heir(context: Context) -> None:
    """R6: at its launch a plan becomes the one heir of the checkpoint that it goes on from, or is a fork."""
    plan = context.need("plan")
    if plan.body["start"] == "exact":
        checkpoint = context.fetch(str(plan.ref("parent")))
        _check_heir(context, checkpoint, fork=plan.body.get("fork", False))


def restored(context: Context) -> None:
    """R7: what was restored is the checkpoint where the run stands, with its state and its files' digests."""
    body = cast("CheckpointRestored", context.body)
    run = context.open_run()
    checkpoint = context.need("checkpoint")
    plan = context.fetch(run.plan)
    if body.mode == "exact":
        stands = checkpoint.ref("update") == run.last_update
    else:
        begins = run.last_update is None and plan.body["start"] == "weights"
        stands = begins and plan.ref("parent") == checkpoint.id
    if not stands:
        raise context.fail(
            "CHECKPOINT_OTHER_UPDATE",
            "the run does not stand at this checkpoint",
            field="refs.checkpoint",
        )
    check_state(
        context,
        checkpoint.body["state"],
        body.state,
        "body.state",
        "the state restored is not the checkpoint's",
    )
    files = {item["path"]: item["digest"] for item in checkpoint.body["files"]}
    if not body.digests.items() <= files.items():
        raise context.fail(
            "STATE_DIFFERS", "a part restored is not the checkpoint's", field="body.digests"
        )
    unsaid = sorted((LEARNER_FILES & files.keys()) - body.digests.keys())
    if body.mode == "exact" and unsaid:
        raise context.fail(
            "STATE_DIFFERS",
            f"it is not said with which {unsaid[0]} the run goes on",
            field="body.digests",
            expected=files[unsaid[0]],
            actual="none",
        )
    if body.fork != plan.body.get("fork", False):
        raise context.fail("PLAN_START", "fork is what the plan says", field="body.fork")


def check_complete(context: Context, checkpoint: Record, field: str) -> None:
    """Refuse a checkpoint from which nothing can go on exactly.

    Raises:
        EvidenceError: `STATE_INCOMPLETE`.
    """
    absent = [name for name, there in checkpoint.body["completeness"].items() if not there]
    if absent:
        raise context.fail(
            "STATE_INCOMPLETE",
            f"checkpoint {checkpoint.id[7:19]} lacks {', '.join(absent)}",
            field=field,
        )
    # a provider keeps its own state; of tensors there is nothing but their files
    if checkpoint.body["state"]["scheme"] == "tensors" and not checkpoint.body["files"]:
        raise context.fail(
            "STATE_INCOMPLETE",
            f"checkpoint {checkpoint.id[7:19]} has no files to go on from",
            field=field,
        )


def check_live(context: Context, run: RunState, checkpoint: Record, field: str) -> None:
    """Refuse a checkpoint whose update was superseded.

    Raises:
        EvidenceError: `CHECKPOINT_SUPERSEDED`.
    """
    update = run.last_update
    if run.live >= checkpoint.body["step"]:
        for _ in range(run.live - checkpoint.body["step"]):
            update = context.fetch(str(update)).ref("previous")
        if update == checkpoint.ref("update"):
            return
    raise context.fail(
        "CHECKPOINT_SUPERSEDED",
        f"the run's live path does not go through checkpoint {checkpoint.id[7:19]}",
        field=field,
    )


def inherited(plan: Record, resolve: Callable[[str], Record | None]) -> Record | None:
    """The checkpoint whose place a run of this plan inherits: its parent, where it goes on exactly."""
    return resolve(str(plan.ref("parent"))) if plan.body["start"] == "exact" else None


def _check_alike(
    context: Context, plan: Record, roles: tuple[str, ...], fields: tuple[str, ...]
) -> None:
    pairs = [(f"refs.{role}", plan.ref(role), context.record.ref(role)) for role in roles]
    pairs += [(f"body.{name}", plan.body[name], context.record.body[name]) for name in fields]
    for field, expected, actual in pairs:
        if expected != actual:
            raise context.fail(
                "PARENT_DIFFERS",
                f"{field} is not that of plan {plan.id[7:19]}",
                field=field,
                expected=str(expected)[:200],
                actual=str(actual)[:200],
            )


def _check_heir(context: Context, checkpoint: Record, *, fork: bool) -> None:
    run = context.state.runs.get(str(checkpoint.ref("run")))
    root = context.state.root_of(run) if run is not None else None
    if run is None or root is None or root.live + root.elsewhere >= root.budget:
        raise context.fail(
            "BUDGET_EXCEEDED",
            "the budget of the checkpoint's run is spent, forks and heirs included",
            field="refs.parent",
        )
    if run.status != "ended":
        name = str(checkpoint.ref("run"))
        raise context.fail(
            "RUN_STILL_OPEN",
            "the checkpoint's run is live or unconfirmed",
            field="refs.parent",
            actual=name,
            hint=f"see its state: evidence run status {name[7:19]}; where its process is gone: evidence run reconcile {name[7:19]}",
        )
    if fork:
        return
    if run.heir is not None:
        raise context.fail(
            "HEIR_EXISTS",
            f"run {run.heir[7:19]} went on from this run already",
            field="refs.parent",
            actual=run.heir,
        )
    check_live(context, run, checkpoint, "refs.parent")
