"""Rows for the judgement tests: a real desk order, a dialogue, transcripts, raw judge lines."""

from __future__ import annotations

from typing import Any

from ledger.digests import sha256
from verifiers.judgement.judging import PARTS, likelihood_line
from verifiers.judgement.rubric import Rubric, default_rubric
from verifiers.rewards.desk_calls import call
from verifiers.rewards.desk_records import Method, Order
from verifiers.rewards.desk_rules import expected_call

RIGHT = call("cancel", reason="no longer needed").text()
REFUSAL = call("refuse", reason="wrong_status").text()

POLICY = {
    "seeds": 6,
    "alpha": "0.05",
    "power": "0.8",
    "cases": 32,
    "undecided_share": "0.05",
    "reviewers": 1,
    "reruns_updates_per_seed": 3,
    "reruns_case_share": "0.05",
    "minimum_gain": "0.03",
    "judge_accuracy": "0.8",
    "judge_family": "other",
}


def order(status: str) -> Order:
    """An order in a given status, its caller its owner."""
    card = Method("credit card", None)
    return Order("W1", "c1", "c1", status, "1 Main St", "credit card", 1000, (), (), (card,))


def desk_case(name: str, *, status: str = "pending", family: str = "cancel") -> dict[str, Any]:
    """A case in which the customer wants to cancel; right only while the order is pending."""
    wanted = call("cancel", reason="no longer needed")
    held = order(status)
    return {
        "id": name,
        "kind": "desk",
        "family": family,
        "twin": None,
        "order": held.as_json(),
        "wanted": wanted.as_json(),
        "expected": expected_call(held, wanted).as_json(),
    }


def dialogue_case(name: str) -> dict[str, Any]:
    """A case in which the right answer denies a refund."""
    return {
        "id": name,
        "kind": "dialogue",
        "family": "refund",
        "policy_facts": ["Final sale items are not refunded.", "Order W7 was a final sale."],
        "messages": [{"role": "user", "content": "I want my money back for W7."}],
        "reference": "Order W7 was a final sale, so it is not refunded.",
        "must_avoid": ["refund approved"],
    }


def transcript(
    case: str, text: str, *, truncated: bool = False, prompt: str = "p"
) -> dict[str, Any]:
    """An arm's answer to a case."""
    return {
        "case": case,
        "prompt_digest": sha256(f"{prompt}{case}".encode()),
        "prompt_tokens": 9,
        "token_ids": [1, 2],
        "text": text,
        "truncated": truncated,
        "stop": "length" if truncated else "eos",
    }


def raw_pass(order_name: str, replies: dict[str, tuple[str, float]]) -> dict[str, Any]:
    """A likelihood pass in which each reply has the margin given, in nats per token over 4 tokens."""
    alone, given = PARTS[order_name]
    lines = [
        likelihood_line(case, text, {alone: (-20.0, 4), given: (-20.0 + 4 * margin, 4)})
        for case, (text, margin) in replies.items()
    ]
    return {"pass_kind": "direction", "order": order_name, "lines": lines}


def rubric_data() -> dict[str, Any]:
    """The shipped likelihood rubric."""
    return default_rubric("likelihood")


def protocol() -> dict[str, Any]:
    """The part of a protocol's body that scoring reads."""
    return {
        "judging": "likelihood",
        "passes": ["direction"],
        "rubric": {
            "digest": Rubric.read(rubric_data()).digest(),
            "size": 1,
            "media_type": "application/json",
        },
        "undecided_share": "0.05",
    }


def line(
    case: str,
    success: bool | None,
    *,
    family: str = "f",
    kind: str = "desk",
    violations: tuple[str, ...] = (),
    truncated: bool = False,
    **detail: Any,
) -> dict[str, Any]:
    """An outcome line, as `derive_evaluation` writes it."""
    known = {"prompt_digest": sha256(case.encode()), "reason": None}
    return {
        "case": case,
        "family": family,
        "kind": kind,
        "success": success,
        "violations": list(violations),
        "truncated": truncated,
        "detail": known | detail,
    }
