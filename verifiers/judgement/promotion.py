"""Whether a checkpoint may be promoted: everything that is missing or failed, each by code and next command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ledger.codes import CODES

if TYPE_CHECKING:
    from verifiers.judgement.gates import GateLine, GateReport


@dataclass(frozen=True)
class PromotionEvidence:
    """What the ledger holds about a checkpoint, and what its bytes on disk are.

    Args:
        checkpoint: the record id of the checkpoint.
        study: the body of the study that its run belongs to, registered before the run was launched.
        runs_left_out: runs of the study's plans that no evaluation counts.
        nominated: the record id that the nomination chose; None without a nomination.
        test_reviewed: whether a reviewer signed the test protocol.
        gate: the gate as it was decided again now; None where there is nothing to decide it on.
        reviewers: key ids of the approvals of this gate and checkpoint.
        tree: tree digest that the checkpoint's record gives; None for a hosted checkpoint without bytes.
        tree_found: tree digest of the bytes on disk; None where they were not read.
        policy_changed: whether another policy is in force than the one that the gate was decided by.
    """

    checkpoint: str
    study: Mapping[str, Any] | None = None
    runs_left_out: Sequence[str] = ()
    nominated: str | None = None
    test_reviewed: bool = False
    gate: GateReport | None = None
    reviewers: frozenset[str] = frozenset()
    tree: str | None = None
    tree_found: str | None = None
    policy_changed: bool = False


@dataclass(frozen=True)
class Reason:
    """One reason for a refusal."""

    code: str
    message: str
    hint: str

    def as_dict(self) -> dict[str, str]:
        """The reason as `promotion.refused` carries it."""
        return {"code": self.code, "message": self.message, "hint": self.hint}


@dataclass(frozen=True)
class PromotionDecision:
    """Granted, or every reason why not, with the gate's lines beside."""

    reasons: tuple[Reason, ...]
    gates: tuple[GateLine, ...]

    @property
    def granted(self) -> bool:
        """Whether nothing is missing and nothing failed."""
        return not self.reasons

    def refusal(self) -> dict[str, Any]:
        """The body of `promotion.refused`."""
        return {
            "reasons": [reason.as_dict() for reason in self.reasons],
            "gates": [line.as_dict() for line in self.gates],
        }


def decide_promotion(policy: Mapping[str, Any], evidence: PromotionEvidence) -> PromotionDecision:
    """Everything that stands between a checkpoint and its promotion.

    Args:
        policy: body of `policy.declared`; `reviewers` says how many approvals are needed.
        evidence: what there is.
    """
    lines = evidence.gate.lines if evidence.gate is not None else ()
    found = [(code, check(policy, evidence)) for code, check in CONDITIONS]
    reasons = [_reason(code, message) for code, message in found if message is not None]
    reasons += [_gate_reason(line) for line in lines if not line.passed]
    return PromotionDecision(tuple(reasons), lines)


# What is wrong, or None.
_Condition = Callable[[Mapping[str, Any], PromotionEvidence], str | None]


def _study(_policy: Mapping[str, Any], evidence: PromotionEvidence) -> str | None:
    if evidence.study is None:
        return "no study was registered before the run was launched"
    return None


def _power(_policy: Mapping[str, Any], evidence: PromotionEvidence) -> str | None:
    if evidence.study is not None and evidence.study["descriptive"]:
        return "the study was registered as descriptive: no promotion can rest on it"
    return None


def _runs(_policy: Mapping[str, Any], evidence: PromotionEvidence) -> str | None:
    left_out = evidence.runs_left_out
    return (
        f"{len(left_out)} runs of the study are left out, e.g. {left_out[0]}" if left_out else None
    )


def _nomination(_policy: Mapping[str, Any], evidence: PromotionEvidence) -> str | None:
    return "no nomination names a checkpoint" if evidence.nominated is None else None


def _nominated(_policy: Mapping[str, Any], evidence: PromotionEvidence) -> str | None:
    if evidence.nominated in (None, evidence.checkpoint):
        return None
    return f"the nomination names {evidence.nominated}, not this checkpoint"


def _test_review(_policy: Mapping[str, Any], evidence: PromotionEvidence) -> str | None:
    return None if evidence.test_reviewed else "no reviewer signed a test protocol for it"


def _gate(_policy: Mapping[str, Any], evidence: PromotionEvidence) -> str | None:
    return "no gate was decided" if evidence.gate is None or not evidence.gate.lines else None


def _approvals(policy: Mapping[str, Any], evidence: PromotionEvidence) -> str | None:
    found, needed = len(evidence.reviewers), policy["reviewers"]
    return f"{found} of {needed} reviewers approved" if found < needed else None


def _in_force(_policy: Mapping[str, Any], evidence: PromotionEvidence) -> str | None:
    if evidence.policy_changed:
        return "another policy is in force than the gate was decided by: decide it again"
    return None


def _bytes(_policy: Mapping[str, Any], evidence: PromotionEvidence) -> str | None:
    if evidence.tree is None:
        return "the checkpoint has no bytes here: what is hosted elsewhere can't be promoted"
    if evidence.tree_found is None:
        return "the checkpoint's bytes were not read again"
    if evidence.tree_found != evidence.tree:
        return "the bytes on disk are not the checkpoint's"
    return None


CONDITIONS: Final[tuple[tuple[str, _Condition], ...]] = (
    ("STUDY_MISSING", _study),
    ("STUDY_DESCRIPTIVE", _power),
    ("RUNS_LEFT_OUT", _runs),
    ("NOMINATION_MISSING", _nomination),
    ("NOT_NOMINATED", _nominated),
    ("REVIEW_MISSING", _test_review),
    ("GATE_MISSING", _gate),
    ("POLICY_OTHER", _in_force),
    ("APPROVAL_MISSING", _approvals),
    ("BYTES_DIFFER", _bytes),
)

ONE_SEED: Final = "one seed is descriptive, however good it looks"


def _reason(code: str, message: str) -> Reason:
    return Reason(code, message, CODES[code].hint)


def _gate_reason(line: GateLine) -> Reason:
    message = f"gate {line.name}: {line.value}, demanded {line.threshold}"
    if line.name == "seeds" and line.value == "1":
        message = f"{message}; {ONE_SEED}"
    return _reason(str(line.code), message)
