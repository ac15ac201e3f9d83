"""The rubric as data: criteria, yes/no checks, limits and thresholds, named by one digest.

A rubric is the JSON in a blob that `protocol.registered` names. `Rubric.read` is the only way in, so a
rubric that a judge was shown and a rubric that counts its verdicts can't differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ledger.canonical import encode, parse_real
from ledger.digests import sha256
from ledger.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Mapping

CRITERIA: Final = ("resolution", "accuracy", "policy", "non_repetition", "tone")
ASKS: Final = ("json", "likelihood")
DECIDERS: Final = ("judge", "code")
CODE_CHECKS: Final = (
    "policy.must_avoid",
    "accuracy.figures",
    "non_repetition.reply",
    "non_repetition.earlier_turns",
    "tone.length",
)


@dataclass(frozen=True)
class Check:
    """One yes/no check: its id `criterion.name`, the question, who decides it, whether it is required."""

    id: str
    question: str
    decided_by: str
    required: bool

    @property
    def criterion(self) -> str:
        """The criterion the check belongs to."""
        return self.id.partition(".")[0]


@dataclass(frozen=True)
class Rubric:
    """What an answer must satisfy, and how a judge is asked.

    `thresholds` are margins in nats per token, for each order, that a likelihood judge must exceed.
    """

    ask: str
    checks: tuple[Check, ...]
    max_words: int
    thresholds: Mapping[str, float]
    data: Mapping[str, Any]

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Rubric:
        """The rubric of a JSON object.

        Raises:
            EvidenceError: `RUBRIC_MALFORMED`, a field is missing, unknown or of the wrong type.
        """
        _expect(set(data) == {"ask", "checks", "max_words", "thresholds"}, "$", "other fields")
        _expect(data["ask"] in ASKS, "ask", f"is not one of {', '.join(ASKS)}")
        _expect(_is_count(data["max_words"]), "max_words", "is not a positive integer")
        _expect(isinstance(data["checks"], list), "checks", "is not a list")
        checks = tuple(_check(index, item) for index, item in enumerate(data["checks"]))
        names = [check.id for check in checks]
        _expect(len(set(names)) == len(names), "checks", "names a check twice")
        _expect(bool(names), "checks", "is empty")
        thresholds = _thresholds(data["thresholds"])
        return cls(data["ask"], checks, data["max_words"], thresholds, data)

    def digest(self) -> str:
        """Digest of the rubric's canonical bytes: what a protocol names."""
        return sha256(encode(dict(self.data)))

    def ids(self, decided_by: str) -> tuple[str, ...]:
        """Ids of the checks that the judge, or code, decides."""
        return tuple(check.id for check in self.checks if check.decided_by == decided_by)

    def required(self) -> frozenset[str]:
        """Ids of the checks that a success needs."""
        return frozenset(check.id for check in self.checks if check.required)


def default_rubric(ask: str) -> dict[str, Any]:
    """The shipped rubric for one way of asking, as JSON.

    A likelihood judge decides one check, whether reply and reference support one another. A judge
    that writes JSON is asked every question of `JUDGE_QUESTIONS`.
    """
    questions = JUDGE_QUESTIONS if ask == "json" else LIKELIHOOD_QUESTIONS
    judged = [_row(name, text, "judge", required) for name, text, required in questions]
    decided = [_row(name, text, "code", required) for name, text, required in CODE_QUESTIONS]
    return {
        "ask": ask,
        "checks": judged + decided,
        "max_words": 120,
        "thresholds": {"forward": "0.0", "reversed": "0.0"},
    }


LIKELIHOOD_QUESTIONS: Final = (
    (
        "resolution.supports_reference",
        "do the reply and the reference answer make each other likelier",
        True,
    ),
)
JUDGE_QUESTIONS: Final = (
    ("resolution.decision", "does the reply come to the same decision as the reference", True),
    ("resolution.next_step", "does the customer learn what happens next", False),
    ("accuracy.facts", "is every statement about the order or the customer in the facts", True),
    ("policy.followed", "does the reply grant and promise only what the policy allows", True),
    ("non_repetition.new", "does the reply add something to what was already said", True),
    ("tone.respectful", "is the reply respectful and plain", False),
)
CODE_QUESTIONS: Final = (
    ("policy.must_avoid", "is no forbidden phrase asserted", True),
    ("accuracy.figures", "is every figure in the facts or the conversation", True),
    ("non_repetition.reply", "does the reply not repeat itself", True),
    ("non_repetition.earlier_turns", "does the reply not repeat an earlier turn", True),
    ("tone.length", "is the reply within the length limit", False),
)


def _row(name: str, question: str, decided_by: str, required: bool) -> dict[str, Any]:
    return {"id": name, "question": question, "decided_by": decided_by, "required": required}


def _check(index: int, item: Any) -> Check:
    path = f"checks[{index}]"
    fields = {"id", "question", "decided_by", "required"}
    _expect(isinstance(item, dict) and set(item) == fields, path, "has other fields than a check")
    name = item["id"]
    _expect(isinstance(name, str), f"{path}.id", "is not text")
    criterion, _, rest = name.partition(".")
    _expect(criterion in CRITERIA and bool(rest), f"{path}.id", "does not begin with a criterion")
    _expect(item["decided_by"] in DECIDERS, f"{path}.decided_by", "is neither judge nor code")
    known = item["decided_by"] == "judge" or name in CODE_CHECKS
    _expect(known, f"{path}.id", "is no check that code can decide")
    _expect(isinstance(item["question"], str), f"{path}.question", "is not text")
    _expect(isinstance(item["required"], bool), f"{path}.required", "is not true or false")
    return Check(name, item["question"], item["decided_by"], item["required"])


def _thresholds(value: Any) -> dict[str, float]:
    known = isinstance(value, dict) and set(value) == {"forward", "reversed"}
    _expect(known, "thresholds", "does not give one margin for each order")
    texts = all(isinstance(text, str) for text in value.values())
    _expect(texts, "thresholds", "holds a margin that is not a real number in text")
    return {order: parse_real(text) for order, text in value.items()}


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _expect(fine: bool, field: str, problem: str) -> None:
    if not fine:
        raise EvidenceError("RUBRIC_MALFORMED", f"rubric field {field} {problem}", field=field)
