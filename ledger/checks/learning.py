"""Rules about groups, batches, updates and checkpoints (docs/spec/rules.md, U1 to U7, R9)."""

from __future__ import annotations

from typing import cast

from ledger.canonical import parse_real
from ledger.checks.context import Check, Context, check_state
from ledger.checks.ranks import update_ranks
from ledger.record import Record
from ledger.records.learning import (
    BatchBuilt,
    CheckpointPublished,
    RolloutGroup,
    UpdateAcknowledged,
)
from ledger.state import RunState


def _group(context: Context) -> None:
    """U1: as many rewards and advantages as members, sampled by the live policy state."""
    body = cast("RolloutGroup", context.body)
    run = context.open_run()
    if not len(body.rewards) == len(body.advantages) == body.members:
        raise context.fail(
            "GROUP_SIZE",
            "members, rewards and advantages differ in number",
            field="body.rewards",
            expected=str(body.members),
            actual=f"{len(body.rewards)} and {len(body.advantages)}",
        )
    check_state(
        context,
        run.state(),
        body.state,
        "body.state",
        "the group was sampled by another policy state than the last acknowledged one",
    )


def _rejected(context: Context) -> None:
    """R3: what belongs to a run is recorded while it is live."""
    context.open_run()


def _batch(context: Context) -> None:
    """U2: a batch reads the plan's split or groups of its own run, and is the next step's."""
    body = cast("BatchBuilt", context.body)
    run = context.open_run()
    split = context.ref("split")
    if split is not None and split.id != run.split:
        raise context.fail(
            "BATCH_OTHER_SPLIT",
            "the batch reads another split than the plan's",
            field="refs.split",
            expected=run.split,
            actual=split.id,
        )
    run_id = context.need("run").id
    for group in context.refs.get("group", []):
        if group.ref("run") != run_id:
            raise context.fail(
                "BATCH_OTHER_RUN", "a group of the batch belongs to another run", field="refs.group"
            )
    if body.step != run.live + 1:
        raise context.fail(
            "UPDATE_OUT_OF_ORDER",
            f"the batch is for step {body.step}, the run comes to {run.live + 1}",
            field="body.step",
            expected=str(run.live + 1),
            actual=str(body.step),
        )
    _check_rows(context, body, of_rows=split is not None)


def _check_rows(context: Context, body: BatchBuilt, *, of_rows: bool) -> None:
    """Rows stand in one place: two lists would leave it open which of them was fed."""
    if of_rows and not body.rows and body.rows_blob is None:
        raise context.fail(
            "BODY_INVALID", "the batch names its rows or a blob of them", field="body.rows"
        )
    if body.rows and body.rows_blob is not None:
        raise context.fail(
            "BODY_INVALID", "the batch names rows beside a blob of them", field="body.rows"
        )
    both = sorted(set(body.rows) & {item.row for item in body.dropped})
    if both:
        raise context.fail(
            "BODY_INVALID",
            f"row {both[0][7:19]} is read and left out",
            field="body.dropped",
            actual=both[0],
        )


def _loaded(context: Context) -> None:
    """R9: an attempt that begins at a checkpoint says that it loaded it before its first batch."""
    if context.open_run().unrestored:
        raise context.fail(
            "STATE_NOT_RESTORED",
            "the attempt begins at a checkpoint and has not said that it loaded it",
            field="refs.run",
        )


def _update_place(context: Context) -> None:
    """U3: update n+1 names update n, starts from its state and stays within the budget."""
    body = cast("UpdateAcknowledged", context.body)
    run = context.open_run()
    if body.step != run.live + 1:
        raise context.fail(
            "UPDATE_OUT_OF_ORDER",
            f"step {body.step} where {run.live + 1} comes next",
            field="body.step",
            expected=str(run.live + 1),
            actual=str(body.step),
        )
    root = context.state.root_of(run)
    lineage_spent = root is None or root.live + root.elsewhere >= root.budget
    if run.live >= run.budget or lineage_spent:
        raise context.fail(
            "BUDGET_EXCEEDED",
            f"the budget of {run.budget} updates is spent, by this run or its lineage",
            field="body.step",
        )
    previous = context.ref("previous")
    if (previous.id if previous else None) != run.last_update:
        raise context.fail(
            "UPDATE_NOT_CONTINUED",
            "previous is not the newest update on the live path",
            field="refs.previous",
            expected=str(run.last_update),
            actual=previous.id if previous else "none",
        )
    check_state(
        context,
        run.state(),
        body.before,
        "body.before",
        "the state before is not the state after the previous update",
    )
    if body.before.scheme != body.after.scheme:
        raise context.fail(
            "STATE_BROKEN",
            "a run keeps the scheme of its states",
            field="body.after.scheme",
            expected=body.before.scheme,
            actual=body.after.scheme,
        )


def _update_batch(context: Context) -> None:
    """U4: each batch is this run's, for this step, and acknowledged once."""
    body = cast("UpdateAcknowledged", context.body)
    run = context.open_run()
    for batch in context.refs["batch"]:
        if batch.id not in run.pending:
            raise context.fail(
                "BATCH_ALREADY_ACKNOWLEDGED",
                f"batch {batch.id[7:19]} was acknowledged before or is not this run's",
                field="refs.batch",
                actual=batch.id,
            )
        if batch.body["step"] != body.step:
            raise context.fail(
                "BATCH_OTHER_STEP",
                f"the batch was built for step {batch.body['step']}",
                field="refs.batch",
                expected=str(body.step),
                actual=str(batch.body["step"]),
            )


def _update_signal(context: Context) -> None:
    """U5: a supervised update has a gradient that is not zero; every figure is finite by its type."""
    body = cast("UpdateAcknowledged", context.body)
    run = context.open_run()
    if run.method != "rl" and parse_real(body.gradient_norm) <= 0:
        raise context.fail(
            "BAD_GRADIENT",
            "a supervised update needs a positive gradient norm",
            field="body.gradient_norm",
            actual=body.gradient_norm,
        )


def _update_replay(context: Context) -> None:
    """U6: a redone update names the superseded one: the same batches, the same state where that was promised."""
    replays = context.ref("replays")
    body = cast("UpdateAcknowledged", context.body)
    run = context.open_run()
    superseded = run.superseded.get(str(body.step))
    if (replays.id if replays else None) != superseded:
        raise context.fail(
            "REPLAY_OTHER_UPDATE",
            "replays names the superseded update of the same run and step, where there is one",
            field="refs.replays",
            expected=superseded or "none",
            actual=replays.id if replays else "none",
        )
    if replays is None:
        return
    before = [_batch_digest(context, ref) for ref in replays.ref_list("batch")]
    now = [batch.body["digest"] for batch in context.refs["batch"]]
    if before != now:
        raise context.fail(
            "REPLAY_OTHER_BATCH",
            "the redone update read other batches than the superseded one",
            field="refs.batch",
            expected=", ".join(before),
            actual=", ".join(now),
        )
    if run.exact and replays.body["after"] != context.record.body["after"]:
        raise context.fail(
            "REPLAY_OTHER_STATE",
            "the redone update gives another state, where the same one was promised",
            field="body.after",
            expected=replays.body["after"]["value"],
            actual=body.after.value,
        )


def _batch_digest(context: Context, record_id: str) -> str:
    return str(context.fetch(record_id).body["digest"])


def _checkpoint(context: Context) -> None:
    """U7: a checkpoint is of the newest live update: its run, step, state and spending."""
    body = cast("CheckpointPublished", context.body)
    run = context.open_run()
    update = context.need("update")
    if update.id != run.last_update:
        raise context.fail(
            "CHECKPOINT_OTHER_UPDATE",
            "the checkpoint's update is not the newest on the run's live path",
            field="refs.update",
            expected=str(run.last_update),
            actual=update.id,
        )
    _check_checkpoint_body(context, body, update, run)


def _check_checkpoint_body(
    context: Context, body: CheckpointPublished, update: Record, run: RunState
) -> None:
    check_state(
        context, update.body["after"], body.state, "body.state", "the state is not the update's"
    )
    pairs = (
        ("CHECKPOINT_OTHER_UPDATE", "body.step", update.body["step"], body.step),
        ("COUNTERS_WRONG", "body.spent_updates", run.live, body.spent_updates),
        ("COUNTERS_WRONG", "body.spent_datums", run.datums, body.spent_datums),
    )
    for code, field, expected, actual in pairs:
        if expected != actual:
            raise context.fail(
                code,
                f"{field} is not what the ledger says",
                field=field,
                expected=str(expected),
                actual=str(actual),
            )


CHECKS: dict[str, tuple[Check, ...]] = {
    "rollout.group": (_group,),
    "rollout.rejected": (_rejected,),
    "batch.built": (_batch, _loaded),
    "update.acknowledged": (
        _update_place,
        _update_batch,
        _update_signal,
        _update_replay,
        update_ranks,
    ),
    "checkpoint.published": (_checkpoint,),
}
