"""Whether a checkpoint may be promoted, and every reason why not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from judgement_rows import POLICY

from ledger.codes import CODES
from ledger.records.promotion import PromotionRefused
from verifiers.judgement.gates import GateLine, GateReport
from verifiers.judgement.promotion import CONDITIONS, PromotionEvidence, decide_promotion

PASSED = GateReport((GateLine("seeds", "6", "at least 6", True, None),))
COMPLETE = PromotionEvidence(
    checkpoint="sha256:c",
    study={"descriptive": False},
    nominated="sha256:c",
    test_reviewed=True,
    gate=PASSED,
    reviewers=frozenset({"ed25519:r"}),
    tree="sha256:t",
    tree_found="sha256:t",
)


def test_complete_evidence_is_granted() -> None:
    """With everything in place no reason is left."""
    decision = decide_promotion(POLICY, COMPLETE)
    assert decision.granted
    assert decision.reasons == ()


LACKS = {
    "STUDY_MISSING": {"study": None},
    "STUDY_DESCRIPTIVE": {"study": {"descriptive": True}},
    "RUNS_LEFT_OUT": {"runs_left_out": ("sha256:r",)},
    "NOMINATION_MISSING": {"nominated": None},
    "NOT_NOMINATED": {"nominated": "sha256:other"},
    "REVIEW_MISSING": {"test_reviewed": False},
    "GATE_MISSING": {"gate": GateReport(())},
    "POLICY_OTHER": {"policy_changed": True},
    "APPROVAL_MISSING": {"reviewers": frozenset()},
    "BYTES_DIFFER": {"tree_found": "sha256:other"},
}


@pytest.mark.parametrize("code", LACKS)
def test_each_lack_is_one_reason(code: str) -> None:
    """One thing missing is one reason, with its code, a message and the next command."""
    decision = decide_promotion(POLICY, replace(COMPLETE, **LACKS[code]))
    assert [reason.code for reason in decision.reasons] == [code]
    assert decision.reasons[0].hint == CODES[code].hint
    assert not decision.granted


def test_every_condition_has_its_lack() -> None:
    """The table of lacks covers the table of conditions."""
    assert list(LACKS) == [code for code, _ in CONDITIONS]


@pytest.mark.parametrize(
    ("tree", "found", "said"),
    [
        (None, None, "hosted elsewhere"),
        (None, "sha256:t", "hosted elsewhere"),
        ("sha256:t", None, "were not read again"),
        ("sha256:t", "sha256:u", "are not the checkpoint's"),
    ],
)
def test_bytes_must_be_there_and_the_same(tree: str | None, found: str | None, said: str) -> None:
    """Without bytes, without reading them, or with other bytes nothing is promoted."""
    decision = decide_promotion(POLICY, replace(COMPLETE, tree=tree, tree_found=found))
    assert [reason.code for reason in decision.reasons] == ["BYTES_DIFFER"]
    assert said in decision.reasons[0].message


def test_two_reviewers_where_the_policy_says_two() -> None:
    """Approvals count by distinct key against the policy's number."""
    decision = decide_promotion(POLICY | {"reviewers": 2}, COMPLETE)
    assert [reason.message for reason in decision.reasons] == ["1 of 2 reviewers approved"]


def test_one_good_seed_is_refused_line_by_line() -> None:
    """A lone seed without a study is refused, every lack and failed gate by code, as a valid record."""
    gate = GateReport(
        (
            GateLine("seeds", "1", "at least 6", False, "SEEDS_TOO_FEW"),
            GateLine("gain", "0.4", "at least 0.03", True, None),
            GateLine("reproduced", "0 updates", "3 updates", False, "NOT_REPRODUCED"),
        )
    )
    bare = PromotionEvidence("sha256:c", gate=gate, tree="sha256:t", tree_found="sha256:t")
    decision = decide_promotion(POLICY, bare)
    assert [reason.code for reason in decision.reasons] == [
        "STUDY_MISSING",
        "NOMINATION_MISSING",
        "REVIEW_MISSING",
        "APPROVAL_MISSING",
        "SEEDS_TOO_FEW",
        "NOT_REPRODUCED",
    ]
    assert (
        "gate seeds: 1, demanded at least 6; one seed is descriptive" in decision.reasons[4].message
    )
    PromotionRefused.model_validate(decision.refusal())
