"""From records to the inputs of judgement: what runners call to write a record and the verifier to check it.

Everything is fetched through a `View`, so a blob that is missing or altered is noticed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger.floors import DEFAULT_POLICY
from ledger.state import TENSORS
from verifiers.judgement.comparison import Arm, derive_comparison
from verifiers.judgement.evaluation_inputs import judged_replies, planned_cases
from verifiers.judgement.gate_evidence import Evidence, SeedEvidence, limits
from verifiers.judgement.gates import decide_gates
from verifiers.judgement.outcomes import derive_evaluation, derive_verdicts
from verifiers.judgement.promotion import PromotionDecision, PromotionEvidence, decide_promotion
from verifiers.judgement.resampling import generator
from verifiers.rewards import desk_baselines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ledger.record import Record
    from verifiers.replay.view import View

GATE_SEED = 0


def verdicts_of(
    protocol: Record, arm: Record, raw_pass: Mapping[str, Any], view: View
) -> tuple[list[dict[str, Any]], int]:
    """Verdict lines of one pass over an arm, and how many are undecided."""
    return derive_verdicts(
        _cases(protocol, view), _transcripts(arm, view), raw_pass, _rubric(protocol, view) or {}
    )


def judge_items(protocol: Record, arm: Record, view: View) -> list[dict[str, Any]]:
    """What a judge is shown of each dialogue answer: conversation, facts, reference, reply."""
    cases = planned_cases(_cases(protocol, view))
    answers = {line["case"]: line for line in _transcripts(arm, view)}
    return [
        {
            "item": name,
            "messages": cases[name]["messages"],
            "facts": cases[name]["policy_facts"],
            "reference": cases[name]["reference"],
            "reply": reply,
        }
        for name, reply in judged_replies(cases, answers).items()
    ]


def raw_pass(record: Record, view: View) -> dict[str, Any]:
    """A recorded pass in the form that judging reads: kind, order, raw lines."""
    body = record.body
    return {
        "pass_kind": body["pass_kind"],
        "order": body["order"],
        "lines": list(view.lines(body["raw_output"])),
    }


def evaluation_of(
    protocol: Record, arm: Record, passes: Sequence[Record], view: View
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Outcome lines of an arm and the fields of `evaluation.completed` but `outcomes`."""
    return derive_evaluation(
        protocol.body,
        _cases(protocol, view),
        _transcripts(arm, view),
        [raw_pass(item, view) for item in passes],
        _rubric(protocol, view),
    )


def comparison_of(baseline: Record, evaluations: Sequence[Record], view: View) -> dict[str, Any]:
    """The body of `comparison.made` for evaluations of one protocol.

    Raises:
        UsageError: `PAIRING_BROKEN`, `NOTHING_TO_COMPARE`.
    """
    protocol = view.ref(baseline, "protocol")
    arms = [arm_of(item, view) for item in evaluations]
    qualified = all(judge_qualified(item, view) for item in (baseline, *evaluations))
    return derive_comparison(
        arm_of(baseline, view),
        arms,
        judge_qualified=qualified,
        baselines=baselines_of(_cases(protocol, view), arms[0].lines),
    )


def baselines_of(
    cases: Sequence[dict[str, Any]], lines: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """What stands beside a score on desk cases, as shares of the desk cases (twins: of the twins)."""
    desk = [case for case in cases if case["kind"] == "desk"]
    if not desk:
        return {}
    outcomes = [dict(line) for line in lines if line["kind"] == "desk"]
    success = {line["case"]: line["success"] is True for line in outcomes}
    ignored = desk_baselines.record_ignored(desk)
    right, twins = desk_baselines.twin_accuracy(desk, success)
    ignoring_right, _ = desk_baselines.twin_accuracy(desk, ignored)
    total = len(desk)
    return {
        "best_constant": desk_baselines.best_constant(desk)[1] / total,
        "record_ignored": sum(ignored.values()) / total,
        "refusals": desk_baselines.refusals(outcomes) / total,
        "right_refusals": desk_baselines.right_refusals(desk) / total,
        **(
            {"twins": right / twins, "twins_record_ignored": ignoring_right / twins}
            if twins
            else {}
        ),
    }


def promotion_of(
    checkpoint: Record,
    policy: Mapping[str, Any] | None,
    comparisons: Sequence[Record],
    tree_found: str | None,
    view: View,
) -> PromotionDecision:
    """Whether a checkpoint may be promoted on what the ledger holds: a decision with every reason.

    The gate is decided on the comparisons that are named, one training seed for each run, so that a
    refusal says by how far each line was missed. The study is the one that the run's plan names.
    """
    floors = policy or DEFAULT_POLICY
    named = view.ref(view.ref(checkpoint, "run"), "plan").ref("study")
    study = view.get(named).body if named else None
    seeds = [item for record in comparisons for item in _seed_evidence(checkpoint, record, view)]
    gate = None
    if seeds:
        qualified = all(
            judge_qualified(view.ref(record, "baseline"), view) for record in comparisons
        )
        gate = decide_gates(Evidence(seeds, qualified), limits(floors, study), generator(GATE_SEED))
    evidence = PromotionEvidence(
        checkpoint=checkpoint.id,
        study=study,
        gate=gate,
        tree=checkpoint.body["tree"] if checkpoint.body["state"]["scheme"] == TENSORS else None,
        tree_found=tree_found,
    )
    return decide_promotion(floors, evidence)


def _seed_evidence(checkpoint: Record, record: Record, view: View) -> list[SeedEvidence]:
    baseline = view.ref(record, "baseline")
    protocol = view.ref(baseline, "protocol")
    found = []
    for evaluation in view.refs(record, "evaluation"):
        arm = view.ref(evaluation, "arm")
        if arm.ref("checkpoint") != checkpoint.id:
            continue
        plan = view.ref(view.ref(checkpoint, "run"), "plan")
        settings = {"protocol": protocol.id, "cases": protocol.body["cases"]["digest"]}
        found.append(
            SeedEvidence(
                seed=plan.body["seeds"]["training"],
                checkpoint=checkpoint.body["tree"],
                state=checkpoint.body["state"]["value"],
                traced=True,
                baseline=arm_of(baseline, view).lines,
                candidate=arm_of(evaluation, view).lines,
                settings=(settings, settings),
                metadata=metadata_of(protocol, plan, view),
            )
        )
    return found


def metadata_of(protocol: Record, plan: Record, view: View) -> dict[str, str]:
    """What a gate demands to be pinned, by digest: model, judge, rubric, package."""
    judge = protocol.ref("judge")
    rubric = protocol.body["rubric"]
    return {
        "model": view.ref(plan, "model").body["tree"],
        "judge": view.get(judge).body["tree"] if judge else "none",
        "rubric": rubric["digest"] if rubric else "none",
        "package": plan.body["code"].get("evidence-ledger", ""),
    }


def arm_of(evaluation: Record, view: View) -> Arm:
    """An evaluation as an arm of a comparison."""
    arm = view.ref(evaluation, "arm")
    checkpoint = arm.ref("checkpoint")
    step = view.get(checkpoint).body["step"] if checkpoint else 0
    named = view.get(checkpoint or str(arm.ref("model")))
    label = f"checkpoint at step {step}" if checkpoint else named.body["name"]
    return Arm(
        evaluation.id,
        str(evaluation.ref("protocol")),
        label,
        step,
        list(view.lines(evaluation.body["outcomes"])),
    )


def judge_qualified(evaluation: Record, view: View) -> bool:
    """Whether every pass behind an evaluation is by a judge that qualified and is not the model that it judged.

    An evaluation without passes has none.
    """
    passes = view.refs(evaluation, "pass")
    return bool(passes) and all(_may_count(item, view) for item in passes)


def _may_count(judged: Record, view: View) -> bool:
    judge = view.ref(judged, "protocol").ref("judge")
    if not judged.body["qualified"] or judge is None:
        return False
    arm = view.ref(judged, "arm")
    checkpoint = arm.ref("checkpoint")
    if checkpoint is None:
        spoken = view.ref(arm, "model")
    else:
        spoken = view.ref(view.ref(view.ref(view.get(checkpoint), "run"), "plan"), "model")
    return bool(view.get(judge).body["tree"] != spoken.body["tree"])


def too_near(judge: Record, spoken: Record, policy: Mapping[str, Any] | None) -> str | None:
    """Why a model may not judge another one, or None.

    Args:
        judge: record of the model that would judge.
        spoken: record of the model that answered, or of the base of the adapter that did.
        policy: the policy in force; the defaults where None.
    """
    if judge.body["tree"] == spoken.body["tree"]:
        return (
            f"{judge.body['name']} would judge its own answers, or those of weights trained from it"
        )
    demanded = (policy or DEFAULT_POLICY)["judge_family"]
    if demanded == "other" and judge.body["family"] == spoken.body["family"]:
        return f"{judge.body['name']} is of the family that it would judge, {spoken.body['family']}"
    return None


def _cases(protocol: Record, view: View) -> list[dict[str, Any]]:
    return list(view.lines(protocol.body["cases"]))


def _transcripts(arm: Record, view: View) -> list[dict[str, Any]]:
    return list(view.lines(arm.body["transcripts"]))


def _rubric(protocol: Record, view: View) -> dict[str, Any] | None:
    blob = protocol.body["rubric"]
    if blob is None:
        return None
    value = view.json(blob)
    return value if isinstance(value, dict) else {}
