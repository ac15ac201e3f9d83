"""From a judge's raw output to a verdict a case. Whatever can't be read is *undecided*, never wrong.

A pass is one JSON object `{"pass_kind", "order", "lines"}`; its lines are the judge's raw output:

* likelihood: `{"case", "reply_digest", "parts": {name: {"logprob_sum": real as text, "tokens": int}}}`, the
  parts of its order by `PARTS`, in nats summed over the scored text's tokens;
* json: `{"case", "reply_digest", "attempts": [text]}`, a second attempt only where the first can't be read.

`reply_digest` binds a line to the answer it is about. A case's verdict line is
`{"case", "satisfied": true|false|null, "margin": real as text|null, "checks": {id: bool}, "reason": text|null}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scipy.stats import binomtest

from ledger.canonical import parse_real, real
from ledger.digests import sha256
from ledger.errors import EvidenceError
from verifiers.judgement import json_verdicts
from verifiers.judgement.rubric import Rubric
from verifiers.judgement.statistics import Interval, wilson

ORDERS: Final = ("forward", "reversed")
PARTS: Final = {
    "forward": ("reply_alone", "reply_given_reference"),
    "reversed": ("reference_alone", "reference_given_reply"),
}
# Which passes a way of asking can make of one arm. `position_swap` compares two arms: see `swapped`.
PASS_KINDS: Final = {"likelihood": ("direction",), "json": ("criteria_reversal",)}
POSITION_ALPHA = 0.01


@dataclass(frozen=True)
class Verdict:
    """One pass over one case; `satisfied` is None where undecided, and then `reason` says why."""

    case: str
    satisfied: bool | None
    margin: float | None = None
    checks: Mapping[str, bool] | None = None
    reason: str | None = None

    def line(self) -> dict[str, Any]:
        """The verdict as a line of the verdicts blob."""
        return {
            "case": self.case,
            "satisfied": self.satisfied,
            "margin": None if self.margin is None else real(self.margin),
            "checks": dict(self.checks or {}),
            "reason": self.reason,
        }


def likelihood_line(
    case: str, reply: str, parts: Mapping[str, tuple[float, int]]
) -> dict[str, Any]:
    """The raw line of a likelihood pass, as a runner writes it.

    Args:
        case: id of the case.
        reply: the answer that was judged.
        parts: for each part its summed log-probability in nats and how many tokens were summed.

    Raises:
        EvidenceError: `NOT_A_REAL`, a sum is not finite; leave such a case's line out.
    """
    written = {
        name: {"logprob_sum": real(total), "tokens": tokens}
        for name, (total, tokens) in parts.items()
    }
    return {"case": case, "reply_digest": reply_digest(reply), "parts": written}


def json_line(case: str, reply: str, attempts: Sequence[str]) -> dict[str, Any]:
    """The raw line of a pass that was asked for JSON, as a runner writes it."""
    return {"case": case, "reply_digest": reply_digest(reply), "attempts": list(attempts)}


def reply_digest(reply: str) -> str:
    """Digest of an answer's UTF-8 bytes, a lone surrogate as it came."""
    return sha256(reply.encode("utf-8", "surrogatepass"))


def verdicts(
    rubric: Rubric, raw_pass: Mapping[str, Any], replies: Mapping[str, str]
) -> dict[str, Verdict]:
    """The verdict of one pass on each answer, by case id.

    Args:
        rubric: whose judge checks were asked, with the margins a likelihood must exceed.
        raw_pass: the pass, see the module's text.
        replies: the answer of each case that was to be judged.

    Raises:
        EvidenceError: `JUDGE_PASS_MIXED`, the pass is of another kind than the rubric asks for;
            `JUDGE_LINE_UNPLANNED`, a line is about no case of the arm or about one twice.
    """
    order = check_pass(rubric, raw_pass)
    lines = _by_case(raw_pass["lines"], replies)
    return {
        case: _verdict(rubric, order, case, _bound(lines.get(case), reply))
        for case, reply in replies.items()
    }


def check_pass(rubric: Rubric, raw_pass: Mapping[str, Any]) -> str:
    """The order of a pass whose kind fits the rubric.

    Raises:
        EvidenceError: `JUDGE_PASS_MIXED`, another kind or no known order.
    """
    kind, order = raw_pass["pass_kind"], raw_pass["order"]
    if kind not in PASS_KINDS[rubric.ask] or order not in ORDERS:
        raise EvidenceError(
            "JUDGE_PASS_MIXED",
            f"a {kind} pass, {order}, does not belong to a rubric asked by {rubric.ask}",
            field="pass_kind",
            expected=" or ".join(PASS_KINDS[rubric.ask]),
            actual=str(kind),
        )
    return str(order)


def agreed(forward: Verdict, backward: Verdict) -> bool | None:
    """What two passes say together: success needs both, an unreadable one leaves it undecided."""
    if forward.satisfied is None or backward.satisfied is None:
        return None
    return forward.satisfied and backward.satisfied


def flipped(forward: Verdict, backward: Verdict) -> bool | None:
    """Whether two readable passes contradict one another; None where one can't be read."""
    if forward.satisfied is None or backward.satisfied is None:
        return None
    return forward.satisfied != backward.satisfied


def flip_rate(flips: int, compared: int) -> Interval:
    """Wilson 95 % interval of the share of cases whose two passes contradict one another."""
    return wilson(flips, compared)


def swapped(forward: str | None, backward: str | None) -> str | None:
    """The winner of a position swap: `A` or `B` if both orders name it, otherwise `tie`.

    Args:
        forward: the winner's name with A shown first; None where it can't be read.
        backward: the winner's name with B shown first.
    """
    if forward is None or backward is None:
        return None
    return forward if forward == backward else "tie"


def answers_by_position(first: int, second: int, alpha: float = POSITION_ALPHA) -> bool:
    """Whether a judge's contradictions follow the position rather than the answer.

    Args:
        first: cases in which it chose the answer shown first in both orders.
        second: cases in which it chose the answer shown second in both orders.
        alpha: how often a judge without such a habit may be refused.
    """
    if first + second == 0:
        return False
    return float(binomtest(first, first + second).pvalue) <= alpha


_Reader = Callable[[Rubric, str, Mapping[str, Any]], "Verdict | str"]


def _bound(line: Mapping[str, Any] | None, reply: str) -> Mapping[str, Any] | str:
    """The line about this very answer, or why there is none."""
    if line is None:
        return "no_line"
    return line if line.get("reply_digest") == reply_digest(reply) else "other_reply"


def _verdict(rubric: Rubric, order: str, case: str, line: Mapping[str, Any] | str) -> Verdict:
    found = line if isinstance(line, str) else _READERS[rubric.ask](rubric, order, line)
    return Verdict(case, None, reason=found) if isinstance(found, str) else found


def _read_likelihood(rubric: Rubric, order: str, line: Mapping[str, Any]) -> Verdict | str:
    """The verdict of a likelihood line, or why it can't be read."""
    parts = line.get("parts")
    if not isinstance(parts, dict):
        return "parts_missing"
    alone, given = (_part(parts.get(name)) for name in PARTS[order])
    if isinstance(alone, str) or isinstance(given, str):
        return alone if isinstance(alone, str) else str(given)
    if alone[1] != given[1]:
        return "tokens_differ"
    margin = given[0] / given[1] - alone[0] / alone[1]
    satisfied = margin > rubric.thresholds[order]
    checks = dict.fromkeys(rubric.ids("judge"), satisfied)
    return Verdict(line["case"], satisfied, margin, checks)


def _part(part: Any) -> tuple[float, int] | str:
    """Summed log-probability and token count of a part, or why it can't be read."""
    if not isinstance(part, dict):
        return "part_missing"
    tokens = part.get("tokens")
    if type(tokens) is not int or tokens < 1:
        return "tokens_malformed"
    total = _finite(part.get("logprob_sum"))
    if total is None:
        return "logprob_malformed"
    return "logprob_positive" if total > 0 else (total, tokens)


def _finite(text: Any) -> float | None:
    if not isinstance(text, str):
        return None
    try:
        return parse_real(text)
    except EvidenceError:
        # A number that can't be read is a state of its own here: the case becomes undecided.
        return None


def _read_json(rubric: Rubric, _order: str, line: Mapping[str, Any]) -> Verdict | str:
    """The verdict of a JSON line, or why it can't be read."""
    checks = json_verdicts.read_attempts(line.get("attempts"), rubric.ids("judge"))
    if isinstance(checks, str):
        return checks
    required = rubric.required()
    satisfied = all(value for name, value in checks.items() if name in required)
    return Verdict(line["case"], satisfied, None, checks)


_READERS: Final[Mapping[str, _Reader]] = {"likelihood": _read_likelihood, "json": _read_json}


def _by_case(lines: Sequence[Any], replies: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for number, line in enumerate(lines):
        case = line.get("case") if isinstance(line, dict) else None
        if not isinstance(case, str) or case not in replies or case in found:
            raise EvidenceError(
                "JUDGE_LINE_UNPLANNED",
                f"line {number} of the judge's output is about no answer of the arm, or about one twice",
                field="case",
                actual=str(case)[:80],
            )
        found[case] = line
    return found
