"""The rules table: which kind demands whose key and which earlier kinds (spec: rules.md).

One row a kind. Admission (append) and replay (verify) both read this table; the reference pages and the
refusal tests are generated from it. Rules beyond one record's refs are in `ledger.checks`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ANY = ("any",)


@dataclass(frozen=True)
class Ref:
    """What may stand under a role of `refs`.

    `kinds` are the kinds allowed (`ANY` for all), `many` says a list, `required` that it must be there,
    `made_by` is the command that makes the missing record.
    """

    kinds: tuple[str, ...]
    many: bool = False
    required: bool = True
    made_by: str = ""


@dataclass(frozen=True)
class Rule:
    """One kind's row.

    `roles` are the roles of which the writer's key must hold one (`ANY`: any enrolled key); `statement`
    is the role whose statement the record must carry; `one_of` lists sets of ref roles of which exactly
    one must be there.
    """

    kind: str
    roles: tuple[str, ...]
    refs: dict[str, Ref] = field(default_factory=dict)
    statement: str | None = None
    one_of: tuple[tuple[str, ...], ...] = ()


def one(*kinds: str, by: str = "") -> Ref:
    """Exactly one ref, required."""
    return Ref(kinds, made_by=by)


def maybe(*kinds: str, by: str = "") -> Ref:
    """One ref or none."""
    return Ref(kinds, required=False, made_by=by)


def some(*kinds: str, by: str = "") -> Ref:
    """One or more refs, required."""
    return Ref(kinds, many=True, made_by=by)


def any_number(*kinds: str, by: str = "") -> Ref:
    """Any number of refs, none too."""
    return Ref(kinds, many=True, required=False, made_by=by)


_RUN = one("run.launched", by="evidence run launch PLAN")
_CHECKPOINT = "checkpoint.published"

_ROWS = (
    # --- identity ---
    Rule("ledger.created", ("root",)),
    Rule("key.enrolled", ANY, statement="root"),
    Rule("key.revoked", ANY, statement="root"),
    Rule("root.rotated", ANY, statement="root"),
    Rule("policy.declared", ANY, statement="root"),
    Rule("ledger.restored", ANY, statement="root"),
    Rule("snapshot.recorded", ("seal",)),
    Rule("note.added", ANY, {"about": any_number("any")}),
    # --- data ---
    Rule("source.ingested", ("ingest",)),
    Rule(
        "dataset.parsed",
        ("ingest",),
        {"source": some("source.ingested", by="evidence data ingest FILE")},
    ),
    Rule(
        "split.declared",
        ("ingest",),
        {"dataset": some("dataset.parsed", by="evidence data ingest FILE")},
    ),
    Rule(
        "leakage.audited",
        ("ingest",),
        {
            "split": one("split.declared", by="evidence data split DATASET"),
            "history": any_number("split.declared", "protocol.registered"),
        },
    ),
    Rule(
        "leakage.accepted",
        ANY,
        {"audit": one("leakage.audited", by="evidence data audit SPLIT")},
        statement="review",
    ),
    Rule("reward.audited", ("ingest",)),
    Rule(
        "model.registered",
        ("ingest",),
    ),
    # --- run ---
    Rule(
        "plan.prepared",
        ("train",),
        {
            "split": one("split.declared", by="evidence data split DATASET"),
            "audit": one("leakage.audited", by="evidence data audit SPLIT"),
            "model": one("model.registered", by="evidence model add DIR"),
            "acceptance": maybe("leakage.accepted", by="evidence data accept AUDIT"),
            "parent": maybe(_CHECKPOINT, by="evidence run launch PLAN"),
            "like": maybe("plan.prepared", by="evidence plan sft CONFIG"),
            "study": maybe("study.registered", by="evidence study register FILE"),
            "reward": maybe("reward.audited"),
        },
    ),
    Rule(
        "run.launched",
        ("train",),
        {"plan": one("plan.prepared", by="evidence plan sft CONFIG")},
    ),
    Rule(
        "run.resumed",
        ("train",),
        {"run": _RUN, "checkpoint": maybe(_CHECKPOINT)},
    ),
    Rule("run.stop_requested", ("train",), {"run": _RUN}),
    Rule(
        "run.ended",
        ("train",),
        {
            "run": _RUN,
            "last_update": maybe("update.acknowledged"),
            "checkpoint": maybe(_CHECKPOINT),
        },
    ),
    Rule("run.reconciled", ("train",), {"run": _RUN}),
    # --- learning ---
    Rule(
        "rollout.group",
        ("train",),
        {"run": _RUN, "policy": one("run.launched", "update.acknowledged", _CHECKPOINT)},
    ),
    Rule(
        "rollout.rejected",
        ("train",),
        {"run": _RUN, "policy": one("run.launched", "update.acknowledged", _CHECKPOINT)},
    ),
    Rule(
        "batch.built",
        ("train",),
        {
            "run": _RUN,
            "group": any_number("rollout.group"),
            "split": maybe("split.declared", by="evidence data split DATASET"),
        },
        one_of=(("group", "split"),),
    ),
    Rule(
        "update.acknowledged",
        ("train",),
        {
            "run": _RUN,
            "batch": some("batch.built"),
            "previous": maybe("update.acknowledged"),
            "replays": maybe("update.acknowledged"),
        },
    ),
    Rule(
        _CHECKPOINT,
        ("train",),
        {"run": _RUN, "update": one("update.acknowledged")},
    ),
    Rule("checkpoint.restored", ("train",), {"run": _RUN, "checkpoint": one(_CHECKPOINT)}),
    # --- managed backends ---
    Rule("operation.intended", ("train",), {"run": _RUN}),
    Rule("operation.settled", ("train",), {"operation": one("operation.intended")}),
    # --- evaluation ---
    Rule(
        "study.registered",
        ("judge",),
        {
            "baseline": one("model.registered", _CHECKPOINT, by="evidence model add DIR"),
            "split": some("split.declared", by="evidence data split DATASET"),
            "evaluation": maybe("evaluation.completed", by="evidence eval run PROTOCOL MODEL"),
            "protocol": maybe("protocol.registered", by="evidence eval register CONFIG"),
        },
    ),
    Rule(
        "protocol.registered",
        ("judge",),
        {
            "split": maybe("split.declared", by="evidence data split DATASET"),
            "dataset": maybe("dataset.parsed", by="evidence data ingest FILE"),
            "judge": maybe("model.registered", by="evidence model add DIR"),
        },
        one_of=(("split", "dataset"),),
    ),
    Rule(
        "judge.qualified",
        ("audit",),
        {"model": one("model.registered", by="evidence model add DIR")},
    ),
    Rule(
        "arm.transcribed",
        ("judge",),
        {
            "protocol": one("protocol.registered", by="evidence eval register CONFIG"),
            "model": maybe("model.registered", by="evidence model add DIR"),
            "checkpoint": maybe(_CHECKPOINT, by="evidence run launch PLAN"),
            "review": maybe("test.reviewed", by="evidence review test NOMINATION PROTOCOL"),
        },
        one_of=(("model", "checkpoint"),),
    ),
    Rule(
        "judge.passed",
        ("judge",),
        {
            "protocol": one("protocol.registered", by="evidence eval register CONFIG"),
            "arm": one("arm.transcribed", by="evidence eval run PROTOCOL MODEL"),
            "qualification": maybe("judge.qualified"),
        },
    ),
    Rule(
        "evaluation.completed",
        ("judge",),
        {
            "protocol": one("protocol.registered", by="evidence eval register CONFIG"),
            "arm": some("arm.transcribed", by="evidence eval run PROTOCOL MODEL"),
            "pass": any_number("judge.passed", by="evidence eval run PROTOCOL MODEL"),
        },
    ),
    Rule(
        "comparison.made",
        ("judge",),
        {
            "baseline": one("evaluation.completed", by="evidence eval run PROTOCOL MODEL"),
            "evaluation": some("evaluation.completed", by="evidence eval run PROTOCOL MODEL"),
        },
    ),
    # --- promotion ---
    Rule(
        "candidate.nominated",
        ANY,
        {
            "study": one("study.registered", by="evidence study register FILE"),
            "comparison": some("comparison.made", by="evidence eval compare BASELINE EVALUATION"),
            "checkpoint": some(_CHECKPOINT, by="evidence run launch PLAN"),
        },
        statement="promote",
    ),
    Rule(
        "test.reviewed",
        ANY,
        {
            "nomination": one("candidate.nominated", by="evidence nominate STUDY COMPARISON"),
            "protocol": one("protocol.registered", by="evidence eval register CONFIG"),
        },
        statement="review",
    ),
    Rule(
        "draw.made",
        ("audit",),
        {"nomination": one("candidate.nominated", by="evidence nominate STUDY COMPARISON")},
    ),
    Rule(
        "check.reproduced",
        ("audit",),
        {
            "draw": one("draw.made", by="evidence audit draw NOMINATION"),
            "update": maybe("update.acknowledged"),
            "arm": maybe("arm.transcribed"),
            "pass": maybe("judge.passed"),
        },
        one_of=(("update", "arm", "pass"),),
    ),
    Rule(
        "gate.decided",
        ("judge",),
        {
            "study": one("study.registered", by="evidence study register FILE"),
            "nomination": one("candidate.nominated", by="evidence nominate STUDY COMPARISON"),
            "evaluation": some("evaluation.completed", by="evidence eval run PROTOCOL MODEL"),
            "check": any_number("check.reproduced"),
            "policy": maybe("policy.declared", by="evidence policy declare FILE"),
        },
    ),
    Rule(
        "promotion.approved",
        ANY,
        {
            "gate": one("gate.decided", by="evidence study decide STUDY"),
            "checkpoint": one(_CHECKPOINT, by="evidence run launch PLAN"),
        },
        statement="review",
    ),
    Rule(
        "promotion.granted",
        ANY,
        {
            "gate": one("gate.decided", by="evidence study decide STUDY"),
            "nomination": one("candidate.nominated", by="evidence nominate STUDY COMPARISON"),
            "approval": some("promotion.approved", by="evidence promotion approve GATE"),
            "checkpoint": one(_CHECKPOINT, by="evidence run launch PLAN"),
        },
        statement="promote",
    ),
    Rule(
        "promotion.refused",
        ("promote", "judge"),
        {
            "checkpoint": one(_CHECKPOINT, by="evidence run launch PLAN"),
            "comparison": any_number(
                "comparison.made", by="evidence eval compare BASELINE EVALUATION"
            ),
            "gate": maybe("gate.decided"),
            "policy": maybe("policy.declared", by="evidence policy declare FILE"),
        },
    ),
    Rule(
        "promotion.withdrawn",
        ANY,
        {"promotion": one("promotion.granted", by="evidence promotion grant GATE DIR")},
        statement="promote",
    ),
    Rule("blob.withheld", ANY, {"record": one("any")}, statement="review"),
)

RULES: dict[str, Rule] = {row.kind: row for row in _ROWS}


def makers(kinds: tuple[str, ...]) -> list[str]:
    """The commands that make records of these kinds, as the refs of the table name them."""
    refs = [ref for rule in _ROWS for ref in rule.refs.values() if set(ref.kinds) <= set(kinds)]
    found = (ref.made_by for kind in kinds for ref in refs if kind in ref.kinds and ref.made_by)
    return list(dict.fromkeys(found))
