"""A study's gate and nomination, derived again from records and blobs: what passes, and what each dodge costs."""

from __future__ import annotations

import pytest
from study_world import SEEDS, StudyWorld

from ledger.errors import EvidenceError
from ledger.records.promotion import GateDecided
from verifiers.judgement.assemble import promotion_of
from verifiers.replay import REPLAYS

GATE, NOMINATION = REPLAYS["gate.decided"], REPLAYS["candidate.nominated"]


def failed(gate) -> set[str]:
    """Names of the lines that did not pass."""
    return {line["name"] for line in gate.body["gates"] if not line["passed"]}


def test_a_whole_study_passes_and_is_derived_again(tmp_path) -> None:
    """Six seeds, planned, trained once, nominated, reviewed, tested and run again pass every line."""
    made = StudyWorld()
    view = made.view(tmp_path / "blobs")
    gate = made.gate(view)
    GateDecided.model_validate(gate.body)
    assert failed(gate) == set()
    assert {line["name"]: line["value"] for line in gate.body["gates"]}["gain"] == "0.25"
    assert GATE(gate, view) is None
    assert NOMINATION(made.nomination, view) is not None


def test_an_invented_line_is_found(tmp_path) -> None:
    """A gate whose number, threshold or verdict is not what the evidence gives is unfounded."""
    made = StudyWorld(seeds=SEEDS[1:])
    view = made.view(tmp_path / "blobs")
    honest = made.gate(view)
    assert "planned_seeds" in failed(honest)
    claimed = [{**line, "passed": True, "code": None} for line in honest.body["gates"]]
    altered = [{**line, "value": "0.5"} for line in honest.body["gates"]]
    for lines, passed in ((claimed, True), (altered, False)):
        gate = made.gate(view, gates=lines, passed=passed)
        with pytest.raises(EvidenceError) as caught:
            GATE(gate, view)
        assert caught.value.code == "GATE_UNFOUNDED"


def leave_out(made: StudyWorld) -> None:
    """Put one seed's test evaluation away."""
    del made.evaluations[-1]


def no_baseline(made: StudyWorld) -> None:
    """Put the baseline's evaluation away."""
    del made.evaluations[0]


def disagree(made: StudyWorld) -> None:
    """Let every re-run be told of twice, the second time as a disagreement."""
    made.run_again(agreed=False)


def draw_and_leave(made: StudyWorld) -> None:
    """Draw once more and run nothing of it."""
    drawn, made.checks = made.checks, []
    made.admit("draw.made", {}, {"nomination": made.nomination.id}, writer="auditor")
    made.checks = drawn


def other_nomination(made: StudyWorld) -> None:
    """Decide on a nomination that no reviewer saw."""
    made.nomination, made.checks = made.nominate(made.checkpoints), []


DODGES = {
    "an evaluation left out": (StudyWorld, leave_out, {"seeds", "planned_seeds", "significance"}),
    "a seed never trained": (
        lambda: StudyWorld(seeds=SEEDS[1:]),
        None,
        {"seeds", "planned_seeds", "significance"},
    ),
    "one run under six seeds": (lambda: StudyWorld(one_setting=True), None, {"identities"}),
    "states that no tensor gives": (lambda: StudyWorld(elsewhere=True), None, {"identities"}),
    "one state in six folders": (lambda: StudyWorld(one_state=True), None, {"identities"}),
    "a seed tried twice": (lambda: StudyWorld(second_run=True), None, {"identities"}),
    "tested on validation": (
        lambda: StudyWorld(role="validation"),
        None,
        {"identities", "fresh"},
    ),
    "another nomination's test": (
        StudyWorld,
        other_nomination,
        {"identities", "looks", "reruns"},
    ),
    "nothing run again": (lambda: StudyWorld(again=False), None, {"reruns"}),
    "a draw that was not run": (StudyWorld, draw_and_leave, {"reruns"}),
    "a re-run disagreed": (StudyWorld, disagree, {"reproduced"}),
}


@pytest.mark.parametrize("name", DODGES)
def test_each_dodge_fails_its_lines(tmp_path, name) -> None:
    """Leaving out a seed, training one twice, an unreviewed test or missing re-runs fail just these lines."""
    make, dodge, lines = DODGES[name]
    made = make()
    if dodge is not None:
        dodge(made)
    view = made.view(tmp_path / "blobs")
    gate = made.gate(view)
    assert failed(gate) == lines
    assert GATE(gate, view) is None


def test_without_the_baseline_nothing_is_computed(tmp_path) -> None:
    """A gate without the baseline's evaluation has no seed, and no figure."""
    made = StudyWorld()
    no_baseline(made)
    gate = made.gate(made.view(tmp_path / "blobs"))
    values = {line["name"]: line["value"] for line in gate.body["gates"]}
    assert (values["seeds"], values["significance"], values["gain"]) == ("0", "none", "none")


def test_bytes_that_are_gone_are_no_verdict(tmp_path) -> None:
    """Where a checkpoint's bytes are missing the gate can't be derived, by the code of the blob."""
    made = StudyWorld()
    view = made.view(tmp_path / "blobs")
    gate = made.gate(view)
    view.blobs.path(made.checkpoints[0].body["files"][0]["digest"]).unlink()
    with pytest.raises(EvidenceError) as caught:
        GATE(gate, view)
    assert caught.value.code == "BLOB_MISSING"


def test_a_nomination_names_compared_checkpoints_of_distinct_seeds(tmp_path) -> None:
    """A checkpoint that was not compared, one of another study, two of a seed, or a comparison on test cases is found."""
    made = StudyWorld(seeds=SEEDS[:2])
    view = made.view(tmp_path / "blobs")
    assert NOMINATION(made.nomination, view)
    made.train(SEEDS[0])
    uncompared = made.nominate(made.checkpoints)
    made.comparison = made.compare()
    twice = made.nominate(made.checkpoints)
    made.study = made.world.add("study.registered")
    strange = made.nominate(made.checkpoints[:2])
    for record, words in (
        (uncompared, "not compared"),
        (twice, "training seeds"),
        (strange, "studies"),
    ):
        with pytest.raises(EvidenceError, match=words) as caught:
            NOMINATION(record, view)
        assert caught.value.code == "NOMINATION_WRONG"


def test_a_nomination_rests_on_validation(tmp_path) -> None:
    """Checkpoints compared on test cases were not chosen on validation."""
    made = StudyWorld(seeds=SEEDS[:1])
    entry = made.comparison.body["candidates"][0]
    refs = {"baseline": made.evaluations[0].id, "evaluation": [made.evaluations[1].id]}
    body = {"candidates": [{**entry, "evaluation": made.evaluations[1].id}]}
    made.comparison = made.admit("comparison.made", body, refs)
    record = made.nominate(made.checkpoints)
    with pytest.raises(EvidenceError) as caught:
        NOMINATION(record, made.view(tmp_path / "blobs"))
    assert (caught.value.code, caught.value.actual) == ("NOMINATION_WRONG", "test")


def test_a_refusal_knows_the_study_of_the_plan(tmp_path) -> None:
    """A checkpoint whose plan names a study is not refused for want of one, but for what is missing after it."""
    made = StudyWorld()
    view = made.view(tmp_path / "blobs")
    policy = made.world.need("policy.declared").body
    first = made.checkpoints[0]
    decision = promotion_of(first, policy, [made.comparison], first.body["tree"], view)
    codes = {reason.code for reason in decision.reasons}
    assert "STUDY_MISSING" not in codes
    assert {"NOMINATION_MISSING", "GATE_MISSING"} & codes
    lines = {line.name: line.threshold for line in decision.gates}
    assert lines["planned_seeds"] == ", ".join(map(str, SEEDS))
