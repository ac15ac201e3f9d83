"""The gate of a study, from records and blobs: what decides it and what a verifier derives again.

A seed counts where its checkpoint is nominated, its plan names the study, its run is the only one of that seed and of those settings, its
bytes are there, and it was evaluated under a test protocol that a reviewer signed for this nomination.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ledger.digests import FileEntry, tree_digest
from ledger.floors import DEFAULT_POLICY
from ledger.state import TENSORS
from verifiers.judgement import reruns
from verifiers.judgement.assemble import GATE_SEED, arm_of, judge_qualified, metadata_of
from verifiers.judgement.gate_evidence import Evidence, Limits, SeedEvidence, limits
from verifiers.judgement.gates import GateReport, decide_gates
from verifiers.judgement.resampling import generator

if TYPE_CHECKING:
    from ledger.record import Record
    from verifiers.replay.view import View


def gate_of(
    study: Record,
    nomination: Record,
    evaluations: Sequence[Record],
    policy: Mapping[str, Any] | None,
    head: str,
    view: View,
) -> GateReport:
    """Every line of a study's gate.

    Args:
        study: what was registered.
        nomination: the checkpoints that count, one a seed.
        evaluations: the baseline's and the checkpoints', under one reviewed test protocol.
        policy: the policy in force; the defaults where None.
        head: id of the last record before the gate; runs, draws and re-runs are looked for from there back.
        view: records and blobs.

    Raises:
        EvidenceError: `REF_NOT_FOUND`, `BLOB_MISSING`, `BLOB_WRONG`.
    """
    evidence, demanded = evidence_of(study, nomination, evaluations, policy, head, view)
    return decide_gates(evidence, demanded, generator(GATE_SEED))


def evidence_of(
    study: Record,
    nomination: Record,
    evaluations: Sequence[Record],
    policy: Mapping[str, Any] | None,
    head: str,
    view: View,
) -> tuple[Evidence, Limits]:
    """What a study's gate looks at, and the limits that hold; takes and raises what `gate_of` does."""
    by_subject = {_subject(item, view): item for item in evaluations}
    baseline = by_subject.get(str(study.ref("baseline")))
    protocol = view.ref(baseline, "protocol").body if baseline else None
    demanded = limits(policy or DEFAULT_POLICY, study.body, protocol)
    tried = Counter(item for plan in plans_launched(study, head, view) for item in _try_of(plan))
    made = reruns.draws_of(nomination, head, view)
    seeds = [
        _evidence(view.get(name), by_subject[name], baseline, study, nomination, tried, made, view)
        for name in nomination.ref_list("checkpoint")
        if baseline is not None and name in by_subject
    ]
    qualified = all(judge_qualified(item, view) for item in evaluations)
    exposure = None
    if baseline is not None:
        from verifiers.replay.exposure import exposure_of  # noqa: PLC0415 - replay imports this module

        exposure = exposure_of(view.ref(baseline, "protocol"), nomination, head, view)
    return Evidence(seeds, qualified, exposure), demanded


def gate_again(gate: Record, view: View) -> GateReport:
    """A recorded gate's lines, derived again from what it names.

    Raises:
        EvidenceError: as `gate_of`.
    """
    evidence, demanded = evidence_again(gate, view)
    return decide_gates(evidence, demanded, generator(GATE_SEED))


def evidence_again(gate: Record, view: View) -> tuple[Evidence, Limits]:
    """What a recorded gate looked at, gathered again; raises what `gate_of` does."""
    named = gate.ref("policy")
    return evidence_of(
        view.ref(gate, "study"),
        view.ref(gate, "nomination"),
        view.refs(gate, "evaluation"),
        view.get(named).body if named else None,
        str(gate.prev),
        view,
    )


def plans_launched(study: Record, head: str, view: View, since: int = -1) -> Iterator[Record]:
    """The plan of every run of a study, launched after a seq where one is given.

    The chain is walked back from `head`, so none can be left out.
    """
    at: str | None = head
    while at is not None:
        record = view.get(at)
        if record.seq <= max(study.seq, since):
            return
        if record.kind == "run.launched":
            plan = view.ref(record, "plan")
            if plan.ref("study") == study.id:
                yield plan
        at = record.prev


def _evidence(
    checkpoint: Record,
    evaluation: Record,
    baseline: Record,
    study: Record,
    nomination: Record,
    tried: Counter[int | str],
    made: tuple[Sequence[Record], Sequence[Record]],
    view: View,
) -> SeedEvidence:
    run = view.ref(checkpoint, "run")
    plan = view.ref(run, "plan")
    protocol = view.ref(evaluation, "protocol")
    signed = all(reviewed(item, nomination, view) for item in (evaluation, baseline))
    of_study = plan.ref("study") == study.id and all(tried[item] == 1 for item in _try_of(plan))
    again = reruns.again(checkpoint, (evaluation, baseline), *made, view)
    return SeedEvidence(
        seed=_seed(plan),
        checkpoint=checkpoint.body["tree"],
        state=checkpoint.body["state"]["value"],
        traced=of_study
        and signed
        and _own_weights_spoke(evaluation, baseline, nomination, view)
        and _bytes_are_there(checkpoint, view),
        baseline=arm_of(baseline, view).lines,
        candidate=arm_of(evaluation, view).lines,
        settings=(_settings(baseline, view), _settings(evaluation, view)),
        metadata=metadata_of(protocol, plan, view),
        updates_reproduced=again.updates,
        share_reproduced=float(again.share),
        disagreed=again.disagreed,
        not_run=again.missing,
    )


def _seed(plan: Record) -> int:
    """A plan's training seed; -1, which no study plans, where it has none."""
    return int(plan.body["seeds"].get("training", -1))


def _try_of(plan: Record) -> tuple[int, str]:
    """What a run of the study may be the only one of: a seed, and settings with all that they rest on."""
    return _seed(plan), plan.body["settings_digest"]


def _subject(evaluation: Record, view: View) -> str:
    """What was evaluated: a model or a checkpoint; more than one is nobody's evaluation."""
    arms = view.refs(evaluation, "arm")
    subjects = {str(arm.ref("checkpoint") or arm.ref("model")) for arm in arms}
    return subjects.pop() if len(subjects) == 1 else ""


def reviewed(evaluation: Record, nomination: Record, view: View) -> bool:
    """Whether an evaluation read a test, and each of its arms under a review of this nomination."""
    if view.ref(evaluation, "protocol").body["role"] != "test":
        return False
    reviews = [arm.ref("review") for arm in view.refs(evaluation, "arm")]
    return all(
        name is not None and view.get(name).ref("nomination") == nomination.id for name in reviews
    )


def _own_weights_spoke(
    evaluation: Record, baseline: Record, nomination: Record, view: View
) -> bool:
    """Whether the weights that answered a test are those that answered for the same checkpoint on validation.

    They are not the baseline's, and where both were asked with the same settings they have the same digest. That the writer
    told the truth about them is shown by re-runs alone.
    """
    spoke = {arm.body["weights"] for arm in view.refs(evaluation, "arm")}
    if spoke & {arm.body["weights"] for arm in view.refs(baseline, "arm")}:
        return False
    generation = view.ref(evaluation, "protocol").body["generation"]
    before = {
        arm.body["weights"]
        for made in view.refs(nomination, "comparison")
        for compared in view.refs(made, "evaluation")
        if _subject(compared, view) == _subject(evaluation, view)
        and view.ref(compared, "protocol").body["generation"] == generation
        for arm in view.refs(compared, "arm")
    }
    return not before or spoke == before


def _settings(evaluation: Record, view: View) -> dict[str, str]:
    protocol = view.ref(evaluation, "protocol")
    return {"protocol": protocol.id, "cases": protocol.body["cases"]["digest"]}


def _bytes_are_there(checkpoint: Record, view: View) -> bool:
    if checkpoint.body["state"]["scheme"] != TENSORS:
        return False
    files = [
        FileEntry(item["path"], len(view.blobs.read(item["digest"])), item["digest"])
        for item in checkpoint.body["files"]
    ]
    return bool(tree_digest(files) == checkpoint.body["tree"])
