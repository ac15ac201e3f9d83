"""Public reports about judges, denominators and registries: for each the failing input in small, and what is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import samples
from judgement_rows import dialogue_case, protocol, raw_pass, rubric_data, transcript
from study_data import Answers, adapter_files, failing, files_body
from study_world import SEEDS, StudyWorld
from world import key

from ledger.errors import UsageError
from ledger.promotions import tree_of
from ledger.query.by_bytes import record_of_folder
from runners.train.recovery import recover
from verifiers.judgement.comparison import Arm, derive_comparison
from verifiers.judgement.imported import analyse
from verifiers.judgement.judging import answers_by_position, flip_rate, json_line, swapped, verdicts
from verifiers.judgement.outcome_table import read_table
from verifiers.judgement.outcomes import derive_evaluation
from verifiers.judgement.rubric import Rubric, default_rubric


def test_an_unreadable_judge_is_neither_wrong_nor_the_minimum() -> None:
    """UKGovernmentBEIS/inspect_ai#4026, openai/evals#1712: "GRID: C" leaves its case undecided; nothing is scored from it."""
    rubric = Rubric.read(default_rubric("json"))
    raw = {
        "pass_kind": "criteria_reversal",
        "order": "forward",
        "lines": [json_line("c", "a reply", ["GRID: C", "GRID: C"])],
    }
    found = verdicts(rubric, raw, {"c": "a reply"})["c"]
    assert (found.satisfied, found.reason) == (None, "unreadable")


def test_undecided_cases_stay_in_the_denominator() -> None:
    """The same reports: one dialogue of two that no pass can read is counted as undecided, and no case is lost."""
    cases = [dialogue_case("a"), dialogue_case("b")]
    said = "Order W7 was a final sale, so it is not refunded."
    answers = [transcript("a", said), transcript("b", said)]
    passes = [raw_pass(order, {"a": (said, 3.0)}) for order in ("forward", "reversed")]
    lines, counts = derive_evaluation(protocol(), cases, answers, passes, rubric_data())
    assert len(lines) == counts["cases"] == 2
    assert (counts["success"], counts["failure"], counts["undecided"]) == (1, 0, 1)


def test_a_judge_that_prefers_the_first_is_reported_and_refused() -> None:
    """lm-sys/FastChat#3911: 12.9 % of verdicts flip on swap; always the first answer never wins, and is refused in 60 cases."""
    assert {swapped(*pair) for pair in [("A", "B")] * 60} == {"tie"}
    assert answers_by_position(first=60, second=0)
    assert flip_rate(387, 2999).lower < 0.129 < flip_rate(387, 2999).upper


def test_greedy_output_that_drifts_is_a_noise_floor() -> None:
    """EleutherAI/lm-evaluation-harness#3357, vllm-project/vllm#5898: the same model twice, one flip; p is 1 and nobody is better."""
    made = StudyWorld(seeds=SEEDS[:1])
    validation = made.world.by_id[
        str(made.world.by_id[made.comparison.ref("baseline")].ref("protocol"))
    ]
    runs = [
        made.evaluate(validation, made.baseline, Answers(frozenset({number}))) for number in (3, 9)
    ]
    view = made.here()
    arms = [
        Arm(run.id, validation.id, "A", 0, list(view.lines(run.body["outcomes"]))) for run in runs
    ]
    body = derive_comparison(arms[0], arms[1:], judge_qualified=False, baselines={})
    (found,) = body["candidates"]
    assert (found["paired"]["candidate_only"], found["paired"]["baseline_only"]) == (1, 1)
    assert (found["mcnemar_p"], found["eligible"], body["recommendation"]) == (
        "1.0",
        False,
        "baseline",
    )


def test_two_logs_with_ids_are_paired(tmp_path: Path) -> None:
    """UKGovernmentBEIS/inspect_ai#2176: two arms' answers by case are paired; six discordant cases are not six seeds."""
    rows = [
        {"seed": 1, "arm": arm, "case": f"c{number}", "family": "f", "success": arm == "candidate" or number > 5}
        for arm in ("baseline", "candidate")
        for number in range(40)
    ]  # fmt: skip
    table = read_table("".join(json.dumps(row) + "\n" for row in rows).encode(), as_csv=False)
    found = analyse(
        table, {**StudyWorld(seeds=SEEDS[:1]).world.need("policy.declared").body}, comparisons=1
    )
    assert found.rivals["mcnemar_p"] == 0.03125
    assert found.p == 1.0
    assert not all(line.passed for line in found.lines)


@pytest.fixture
def two_models(tmp_path: Path):
    """One run that published two checkpoints, as a ledger."""
    made = StudyWorld(seeds=SEEDS[:1])
    made.launch(SEEDS[1])
    trees = []
    for step in (1, 2):
        files, state = adapter_files(100 + step, made.baseline.body)
        named, tree = files_body(files)
        after = {"scheme": "tensors", "value": state}
        before = made.world.newest("update.acknowledged").body["after"] if step == 2 else None
        update = {"after": after, **({"before": before} if before else {})}
        made.world.add("update.acknowledged", **update)
        made.world.blobs |= samples.BLOBS
        made.world.blobs |= samples.BLOBS
        made.world.add("checkpoint.published", files=named, tree=tree, state=after)
        trees.append(tree)
    with made.world.replay(tmp_path / "ledger") as ledger:
        yield ledger, trees


def test_a_folder_leads_to_its_run_by_bytes(two_models, tmp_path) -> None:
    """mlflow/mlflow#8150, amesar/mlflow-export-import#38: two models of one run are told apart by bytes, whatever their folders are called."""
    ledger, trees = two_models
    found = [item for item in ledger.of_kind("checkpoint.published") if item.body["tree"] in trees]
    for number, checkpoint in enumerate(found):
        folder = tmp_path / f"the-other-{1 - number}"
        recover(ledger, checkpoint, folder)
        assert tree_of(folder) == checkpoint.body["tree"]
        assert record_of_folder(ledger, folder).id == checkpoint.id
        assert not ledger.is_promoted(folder, key("root").id)
    (folder / "adapter_config.json").unlink()
    with pytest.raises(UsageError) as caught:
        record_of_folder(ledger, folder)
    assert caught.value.code == "REF_NOT_FOUND"


def test_a_version_without_a_run_is_no_candidate() -> None:
    """mlflow/mlflow#18501: what no run of the study published cannot be nominated, however good it is."""
    made = StudyWorld(seeds=SEEDS[:1], tested_answers=failing(0))
    made.study = made.register_study(name="another study")
    gate = made.gate(made.here())
    line = next(item for item in gate.body["gates"] if item["name"] == "identities")
    assert (line["passed"], line["code"]) == (False, "IDENTITY_UNPROVEN")
