"""Rules about plans and runs (docs/spec/rules.md, P1 to P4, P8, R1 to R5 and R8); lineage.py has what goes on from elsewhere."""

from __future__ import annotations

from typing import cast

from ledger.canonical import parse_real
from ledger.checks.context import Check, Context, check_state
from ledger.checks.lineage import (
    check_complete,
    check_live,
    inherited,
    launched_heir,
    plan_heir,
    plan_like,
    plan_parent,
    restored,
)
from ledger.checks.ranks import plan_processes
from ledger.records.run import PlanPrepared, RunEnded, RunLaunched
from ledger.twins import descended_digest, fresh_digest


def _plan_audit(context: Context) -> None:
    """P1: the audit is of this split; findings need a reviewer's acceptance of that audit."""
    audit = context.need("audit")
    if audit.ref("split") != context.need("split").id:
        raise context.fail(
            "AUDIT_OTHER_SPLIT",
            "the audit is of another split",
            field="refs.audit",
            expected=context.need("split").id,
            actual=audit.ref("split"),
        )
    acceptance = context.ref("acceptance")
    if acceptance is not None and acceptance.ref("audit") != audit.id:
        raise context.fail(
            "LEAKAGE_NOT_ACCEPTED", "the acceptance is of another audit", field="refs.acceptance"
        )
    if audit.body["verdict"] != "clean" and acceptance is None:
        raise context.fail(
            "LEAKAGE_NOT_ACCEPTED",
            f"audit {audit.id[7:19]} has findings and no reviewer accepted them",
            field="refs.acceptance",
        )


def _plan_method(context: Context) -> None:
    """P2: a reinforcement plan has an audited reward, zero dropout, a frozen reference, positive KL."""
    body = cast("PlanPrepared", context.body)
    if body.method != "rl":
        return
    reward = context.ref("reward")
    if reward is None or reward.body["inversions"] != 0:
        raise context.fail(
            "REWARD_NOT_AUDITED",
            "a reinforcement plan needs a reward whose audit found no inversion",
            field="refs.reward",
        )
    settings = body.settings
    if settings.get("lora_dropout") not in ("0.0", None):
        raise context.fail(
            "RL_DROPOUT",
            "lora_dropout of a reinforcement plan is 0.0",
            field="settings.lora_dropout",
        )
    if settings.get("reference") not in ("start_adapter", "adapter_off"):
        raise context.fail(
            "RL_REFERENCE",
            "reference is start_adapter or adapter_off, and frozen",
            field="settings.reference",
        )
    kl = settings.get("kl_coefficient")
    if not isinstance(kl, str) or parse_real(kl) <= 0:
        raise context.fail(
            "RL_KL", "kl_coefficient is a positive real number", field="settings.kl_coefficient"
        )


def _plan_start(context: Context) -> None:
    """P3: going on exactly or from weights needs a parent checkpoint; a fresh start has none."""
    body = cast("PlanPrepared", context.body)
    if body.fork and body.start != "exact":
        raise context.fail(
            "PLAN_START", f"a plan with start {body.start} is no fork", field="body.fork"
        )
    if (body.start == "fresh") != (context.ref("parent") is None):
        raise context.fail(
            "PLAN_START",
            f"start {body.start} and {'a' if context.ref('parent') else 'no'} parent do not fit",
            field="body.start",
        )


def _plan_digest(context: Context) -> None:
    """P8: the settings digest is that of method, settings, split, model, reward, start and parent."""
    body = context.record.body
    reward, parent = context.ref("reward"), context.ref("parent")
    expected = fresh_digest(
        body["method"],
        body["settings"],
        context.need("split").id,
        context.need("model").body["tree"],
        None if reward is None else reward.body["code"]["digest"],
    )
    if parent is not None:
        expected = descended_digest(expected, body["start"], parent.id)
    if body["settings_digest"] != expected:
        raise context.fail(
            "SETTINGS_DIGEST_WRONG",
            "the settings digest is not that of the plan's settings, split, model and start",
            field="body.settings_digest",
            expected=expected,
            actual=body["settings_digest"],
        )


def _plan_twin(context: Context) -> None:
    """P4: no second plan with the same settings while a run of the first is live."""
    body = cast("PlanPrepared", context.body)
    refuse_twin(context, body.settings_digest)


def refuse_twin(context: Context, twin: str) -> None:
    """Refuse where a live run has the same settings digest.

    Raises:
        EvidenceError: `TWIN_UNCONFIRMED`.
    """
    for run_id, run in context.state.runs.items():
        if run.twin == twin and run.status != "ended":
            raise context.fail(
                "TWIN_UNCONFIRMED",
                f"run {run_id[7:19]} of an equal plan is live or unconfirmed",
                actual=run_id,
                hint=f"wait for it or stop it: evidence run stop {run_id[7:19]}; see it: evidence run status {run_id[7:19]}",
            )


def _launched(context: Context) -> None:
    """R1: a plan is launched once, ever."""
    plan = context.need("plan")
    body = cast("RunLaunched", context.body)
    if plan.id not in context.state.plans:
        raise context.fail(
            "PLAN_LAUNCHED", f"plan {plan.id[7:19]} was launched before", field="refs.plan"
        )
    refuse_twin(context, context.state.plans[plan.id])
    if body.seen.size > context.record.seq:
        raise context.fail("SEAL_AHEAD", "the head seen lies beyond this record", field="body.seen")


def _resumed(context: Context) -> None:
    """R2: only an attempt that ended short or was reconciled goes on, from its own whole checkpoint on its live path."""
    run_id = context.need("run").id
    run = context.state.runs.get(run_id)
    if run is None or run.status != "ended":
        raise context.fail(
            "RUN_STILL_OPEN",
            "the run is live, unconfirmed or completed; only an ended attempt goes on",
            field="refs.run",
        )
    checkpoint = context.ref("checkpoint")
    if checkpoint is not None and checkpoint.ref("run") != run_id:
        raise context.fail(
            "CHECKPOINT_OTHER_RUN", "the checkpoint belongs to another run", field="refs.checkpoint"
        )
    if run.heir is not None:
        raise context.fail(
            "HEIR_EXISTS",
            f"run {run.heir[7:19]} went on from a checkpoint of this one",
            field="refs.run",
            actual=run.heir,
        )
    if checkpoint is not None:
        check_complete(context, checkpoint, "refs.checkpoint")
        check_live(context, run, checkpoint, "refs.checkpoint")
    origin = checkpoint or inherited(context.fetch(run.plan), context.resolve)
    step = origin.body["step"] if origin else 0
    if context.record.body["from_update"] != step:
        raise context.fail(
            "UPDATE_OUT_OF_ORDER",
            "from_update is the step of the checkpoint, without one that of the run's start",
            field="body.from_update",
            expected=str(step),
            actual=str(context.record.body["from_update"]),
        )


def _open(context: Context) -> None:
    """R3: what belongs to a run is recorded while it is live."""
    context.open_run()


def _reconciled(context: Context) -> None:
    """R5: a run that is live or unconfirmed is reconciled, one that ended is not."""
    context.open_run(unconfirmed=True)


def _ended(context: Context) -> None:
    """R4: the counters are the ledger's own; completed means the whole budget."""
    body = cast("RunEnded", context.body)
    run = context.open_run()
    # no outcome is evaluated inside a run yet, so a run that claims some counts what is not there
    counted = {"groups": run.groups, "datums": run.datums, "updates": run.live, "outcomes": 0}
    for name, value in counted.items():
        claimed = getattr(body.counters, name)
        if claimed != value:
            raise context.fail(
                "COUNTERS_WRONG",
                f"the run claims {claimed} {name}, the ledger has {value}",
                field=f"body.counters.{name}",
                expected=str(value),
                actual=str(claimed),
            )
    last = context.ref("last_update")
    if (last.id if last else None) != run.last_update:
        raise context.fail(
            "UPDATE_NOT_CONTINUED",
            "last_update is the newest update on the live path",
            field="refs.last_update",
            expected=str(run.last_update),
            actual=last.id if last else "none",
        )
    if body.outcome == "completed" and run.live != run.budget:
        raise context.fail(
            "SHORT_RUN",
            f"{run.live} of {run.budget} updates were acknowledged; that is failed: short_run",
            field="body.outcome",
            expected=str(run.budget),
            actual=str(run.live),
        )
    if (body.outcome == "failed") != (body.failure is not None):
        raise context.fail(
            "BODY_INVALID",
            "failure is named where the outcome is failed, only there",
            field="body.failure",
        )


def _completed(context: Context) -> None:
    """R8: a completed supervised or reinforcement run names the checkpoint of its last update and binds the weights in it."""
    body = cast("RunEnded", context.body)
    run = context.open_run()
    if body.outcome != "completed" or run.method not in ("sft", "rl"):
        return
    checkpoint = context.ref("checkpoint")
    if checkpoint is None or checkpoint.ref("update") != run.last_update:
        raise context.fail(
            "COMPLETION_UNBOUND",
            "a completed run names the checkpoint of its last update",
            field="refs.checkpoint",
            expected=str(run.last_update),
            actual=str(checkpoint.ref("update")) if checkpoint else "none",
        )
    if checkpoint.body.get("hosted") is not None:
        return
    check_state(
        context,
        run.state(),
        body.weights.state if body.weights else None,
        "body.weights",
        "the weights that a completed run leaves are those of its last update",
        "COMPLETION_UNBOUND",
    )


CHECKS: dict[str, tuple[Check, ...]] = {
    "plan.prepared": (
        _plan_audit,
        _plan_method,
        _plan_start,
        _plan_digest,
        _plan_twin,
        plan_parent,
        plan_like,
        plan_heir,
        plan_processes,
    ),
    "run.launched": (_launched, launched_heir),
    "run.resumed": (_resumed,),
    "run.stop_requested": (_open,),
    "run.ended": (_ended, _completed),
    "run.reconciled": (_reconciled,),
    "checkpoint.restored": (_open, restored),
    "operation.intended": (_open,),
}
