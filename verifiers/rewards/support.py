"""The support reward, version 3: what a written reply to a customer earns, by code alone.

Seven parts, each 0 to 1 and recorded. *Resolution* and *policy* gate the rest: a reply earns at least `FLOOR` exactly
where its decision is the expected one and nothing forbidden is granted or asserted; every other reply earns at most
`CEILING`. So no politeness lifts a wrong decision above a right one.

    resolution     the actions granted, and the amount, are the expected ones; where refusal is expected it declines and grants nothing
    policy         nothing is granted that is not expected, and no phrase of `must_avoid` is asserted
    accuracy       every figure of the reply stands in the facts, the context or the customer's turns
    responsiveness it takes up words of the customer's last turn
    brevity        1 up to `BRIEF_WORDS`, falling to 0 at `LONG_WORDS`
    non_repetition it repeats neither itself nor an earlier turn
    readable       it has words, and most of its words are said once or twice

`expected`, of a scenario row: `decision` (an action of `verifiers.rewards.decisions`, or `refuse`) and, with an action
that moves money, perhaps `amount` as text.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError
from verifiers.judgement.text_checks import (
    asserted_phrases,
    invented_figures,
    numbers_of,
    repeats_earlier,
    repeats_itself,
    words_of,
)
from verifiers.rewards.decisions import ACTIONS, Decisions, read_decisions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "support"
VERSION = 3
REFUSE = "refuse"
FLOOR = 0.5
CEILING = 0.25
BRIEF_WORDS = 120
LONG_WORDS = 240
_STOP_LENGTH = 3
_SHARE_SAID_ONCE = 0.5
_QUALITIES = ("accuracy", "responsiveness", "brevity", "non_repetition", "readable")


def reward(
    scenario: Mapping[str, Any], reply: str, earlier: Sequence[str] = ()
) -> tuple[float, dict[str, float]]:
    """What a reply earns in a scenario, and its parts by name.

    Args:
        scenario: a scenario row.
        reply: the assistant's last turn.
        earlier: the assistant's turns before it.

    Raises:
        EvidenceError: `CASE_BROKEN`, the scenario's `expected` is not one of this reward; the reply raises nothing.
    """
    decision, amount = read_expected(scenario)
    decisions = read_decisions(reply)
    asked = [scenario["opening"], *scenario["turns"]]
    sources = [*scenario["policy_facts"], scenario["context"], *asked]
    parts = {
        "resolution": float(_resolves(decisions, decision, amount)),
        "policy": float(_keeps_policy(decisions, decision, reply, scenario["must_avoid"])),
        "accuracy": float(not invented_figures(reply, sources)),
        "responsiveness": _responsiveness(reply, asked[-1]),
        "brevity": _brevity(len(words_of(reply))),
        "non_repetition": float(not repeats_itself(reply) and not repeats_earlier(reply, earlier)),
        "readable": _readable(reply),
    }
    quality = sum(parts[name] for name in _QUALITIES) / len(_QUALITIES)
    if parts["resolution"] == parts["policy"] == 1.0:
        return FLOOR + (1 - FLOOR) * quality, parts
    # keeping to the policy without deciding is better than breaking it
    return CEILING * quality * parts["policy"], parts


def read_expected(scenario: Mapping[str, Any]) -> tuple[str, str | None]:
    """The decision and the amount that a scenario expects.

    Raises:
        EvidenceError: `CASE_BROKEN`, naming the field.
    """
    expected = scenario["expected"]
    unknown = expected.keys() - {"decision", "amount"}
    if unknown:
        name = min(unknown)
        raise EvidenceError(
            "CASE_BROKEN", f"the support reward cannot judge {name!r}", field=f"expected.{name}"
        )
    decision, amount = expected.get("decision"), expected.get("amount")
    if decision != REFUSE and decision not in ACTIONS:
        raise EvidenceError(
            "CASE_BROKEN",
            "the expected decision is none that the support reward knows",
            field="expected.decision",
            expected=", ".join([*ACTIONS, REFUSE]),
            actual=str(decision)[:40],
        )
    if amount is not None and (not isinstance(amount, str) or len(numbers_of(amount)) != 1):
        raise EvidenceError(
            "CASE_BROKEN", "the expected amount is not one number as text", field="expected.amount"
        )
    return str(decision), amount


def _resolves(decisions: Decisions, decision: str, amount: str | None) -> bool:
    if decision == REFUSE:
        return not decisions.granted and (decisions.declines or bool(decisions.denied))
    if set(decisions.granted) != {decision} or decision in decisions.denied:
        return False
    return amount is None or decisions.granted[decision] == frozenset(numbers_of(amount))


def _keeps_policy(
    decisions: Decisions, decision: str, reply: str, must_avoid: Sequence[str]
) -> bool:
    allowed = set() if decision == REFUSE else {decision}
    return set(decisions.granted) <= allowed and not asserted_phrases(reply, must_avoid)


def _responsiveness(reply: str, asked: str) -> float:
    wanted = {word for word in words_of(asked) if len(word) > _STOP_LENGTH}
    said = set(words_of(reply))
    if not wanted:
        return float(bool(said))
    return min(1.0, 4 * len(wanted & said) / len(wanted))


def _brevity(words: int) -> float:
    if words == 0:
        return 0.0
    return max(0.0, min(1.0, (LONG_WORDS - words) / (LONG_WORDS - BRIEF_WORDS)))


def _readable(reply: str) -> float:
    """0 for nothing and for a heap of the same words."""
    counts = Counter(words_of(reply))
    if not counts:
        return 0.0
    few = sum(count for count in counts.values() if count <= 2)
    return float(few / counts.total() >= _SHARE_SAID_ONCE)
