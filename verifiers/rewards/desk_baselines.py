"""Answerers that need no model, to stand beside a score, and the figures that go with one.

*Best constant*: one call given to every case, the best there is. *Record ignored*: knows what the customer
wants, copies every value perfectly, and always acts, whatever the record says. A model that does not beat
the second has not been shown to read the record.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from verifiers.rewards.desk import outcome, read_case

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def best_constant(cases: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    """The call that is right in most cases, as text, and in how many; the first by text among equals."""
    counts = Counter(read_case(case).expected.text() for case in cases)
    if not counts:
        return "", 0
    text = min(counts, key=lambda text: (-counts[text], text))
    return text, counts[text]


def record_ignored(cases: Iterable[Mapping[str, Any]]) -> dict[str, bool]:
    """Whether the answerer that ignores the record succeeds, by case id."""
    return {
        case["id"]: bool(outcome(case, read_case(case).wanted.text())["success"]) for case in cases
    }


def twin_accuracy(
    cases: Iterable[Mapping[str, Any]], success: Mapping[str, bool]
) -> tuple[int, int]:
    """In how many twins every case succeeded, and how many twins there are.

    A twin counts only where at least two of its cases are among `cases`.
    """
    members: dict[str, list[bool]] = defaultdict(list)
    for case in cases:
        if case.get("twin") is not None:
            members[case["twin"]].append(success.get(case["id"], False))
    whole = [results for results in members.values() if len(results) > 1]
    return sum(all(results) for results in whole), len(whole)


def refusals(outcomes: Iterable[Mapping[str, Any]]) -> int:
    """In how many outcomes the model refused, rightly or not."""
    return sum(line["detail"].get("call", {}).get("tool") == "refuse" for line in outcomes)


def right_refusals(cases: Iterable[Mapping[str, Any]]) -> int:
    """In how many cases a refusal is right."""
    return sum(read_case(case).expected.tool == "refuse" for case in cases)


def take_cases(cases: Sequence[Mapping[str, Any]], count: int) -> list[Mapping[str, Any]]:
    """At most `count` cases as a fair sample: whole twins only, families in the same proportion.

    Deterministic in the order of `cases`: units (a twin, or a case without one) are sorted by the families
    they hold, and every n-th is taken.
    """
    units: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for case in cases:
        units[case["id"] if case.get("twin") is None else case["twin"]].append(case)
    ordered = sorted(units.values(), key=lambda unit: sorted(case["family"] for case in unit))
    for wanted in range(len(ordered), 0, -1):
        chosen = [ordered[place * len(ordered) // wanted] for place in range(wanted)]
        if sum(map(len, chosen)) <= count:
            return [case for unit in chosen for case in unit]
    return []
