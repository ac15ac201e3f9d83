"""Invented evidence buys no promotion: each way of inventing it ends in its code."""

from __future__ import annotations

import forgeries as by
import pytest
from study_world import StudyWorld
from world import key

from verifiers.verify import Options, verify

FORGERIES = {
    by.hand_typed_report: "EVALUATION_WRONG",
    by.hand_typed_comparison: "COMPARISON_WRONG",
    by.random_digests: "BLOB_MISSING",
    by.invented_gate: "GATE_UNFOUNDED",
    by.grant_on_an_invented_gate: "GRANT_UNFOUNDED",
    by.copied_evaluation: "SEEDS_NOT_AS_PLANNED",
    by.another_checkpoints_evaluation: "TEST_OTHER_ARM",
    by.transcripts_of_other_weights: "IDENTITY_UNPROVEN",
    by.weights_changed_since_validation: "IDENTITY_UNPROVEN",
    by.asked_until_it_was_right: "TEST_LOOKED_AGAIN",
    by.adapter_that_is_no_model: "TENSORS_INVALID",
    by.adapter_without_tensors: "WEIGHTS_EMPTY",
    by.adapter_of_other_weights: "CHECKPOINT_WRONG",
    by.one_seed_twice_in_a_study: "STUDY_SEEDS",
    by.seed_tried_again: "IDENTITY_UNPROVEN",
    by.one_run_under_six_seeds: "IDENTITY_UNPROVEN",
    by.one_adapter_under_six_seeds: "IDENTITY_UNPROVEN",
    by.seed_left_out: "SEEDS_NOT_AS_PLANNED",
    by.seed_not_nominated: "SEEDS_NOT_AS_PLANNED",
    by.study_after_its_runs: "NOMINATION_WRONG",
    by.trained_on_until_it_passed: "GRANT_UNFOUNDED",
    by.looser_than_the_policy: "STUDY_LAXER",
    by.policy_changed_after_the_gate: "POLICY_OTHER",
    by.trainer_as_reviewer: "REVIEW_KEY_SHARED",
    by.trainer_as_auditor: "AUDIT_KEY_SHARED",
    by.trainer_signs_the_review: "STATEMENT_ROLE",
    by.trainer_runs_again: "ROLE_MISSING",
    by.one_reviewer_for_two: "REVIEW_MISSING",
    by.nobody_approved: "REVIEW_MISSING",
    by.judge_output_edited: "BLOB_WRONG",
    by.judge_output_that_gives_other_verdicts: "EVALUATION_WRONG",
    by.cases_trained_on: "TEST_SEEN",
    by.review_that_hides_a_finding: "REVIEW_WRONG",
    by.second_look_behind_other_ids: "TEST_LOOKED_AGAIN",
    by.another_test_after_a_bad_one: "TEST_LOOKED_AGAIN",
    by.nominated_again_for_another_test: "TEST_LOOKED_AGAIN",
    by.second_look_called_the_first: "REVIEW_WRONG",
    by.one_byte_changed: "NOT_PROMOTED",
    by.one_file_added: "NOT_PROMOTED",
}


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_invented_evidence_ends_in_its_code(forge) -> None:
    """What the function of this row invents is refused, found or not loaded, by the code beside it."""
    assert FORGERIES[forge] in forge()


def test_the_world_that_is_forged_is_granted(tmp_path) -> None:
    """Unforged, the same world is granted its promotion and nothing of what that rests on is wrong."""
    made = StudyWorld()
    grant = made.granted()
    folder = made.world.write(tmp_path / "ledger")
    options = Options(
        level="blobs", record=grant.id, pinned_roots=frozenset({key("root").id}), workers=1
    )
    report = verify(folder, options)
    assert report.wrong == []
    assert report.replayed["promotion.granted"] == report.replayed["gate.decided"] == 1
    assert report.replayed["test.reviewed"] == 1
    assert report.missing == []
