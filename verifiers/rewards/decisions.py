"""What a reply to a customer decides, read from its words: which actions it grants, which it denies, for which amounts.

A *decision* is an action of a short list that a clause grants in the reply's own voice: "I have refunded 25 dollars", "your order will be
cancelled". A negation in the clause makes it a denial. Questions, conditions, offers to choose and statements about the
policy decide nothing. English only; an action spelled in other words than those below is not seen, and then the reply
has not decided: the reader is strict on purpose, since what it overlooks earns nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verifiers.judgement.text_checks import clauses_of, is_negated, numbers_of, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

ACTIONS: dict[str, str] = {
    "refund": r"refund(?:s|ed|ing)?|reimburs(?:e|es|ed|ing|ement)|money back",
    "exchange": r"exchang(?:e|es|ed|ing)|swap(?:s|ped|ping)?",
    "replace": r"replac(?:e|es|ed|ing|ement)s?",
    "cancel": r"cancel(?:s|led|ed|ling|ing|lation)?",
    "credit": r"(?:store|shop|account) credit|vouchers?|gift cards?|coupons?",
    "escalate": (
        r"(?:transfer(?:red|ring)?|forward(?:ed|ing)?|escalat(?:e|ed|ing)|hand(?:ed|ing)?|pass(?:ed|ing)?)\b.{0,40}"
        r"\b(?:colleagues?|human|person|specialists?|supervisors?|managers?|agents?|team)"
    ),
}
_ACTION = {name: re.compile(rf"\b(?:{words})\b") for name, words in ACTIONS.items()}
# The reply's own voice: it acts, has acted, or tells the customer what is coming.
_COMMITTED = re.compile(
    r"\b(?:i|we)(?:'ve|'ll|'m|'re| have| will| am| are| can| did| just| gladly|\s+\w+ed\b)"
    r"|\b(?:you)(?:'ll| will| are getting|'re getting| get| receive| can expect)"
    r"|\byour\b.{0,60}\b(?:is|are|was|were|has been|have been|will be|will arrive|is on)\b"
    r"|\b(?:approved|granted|processed|issued|initiated|arranged|confirmed|done|completed)\b"
    r"|\b(?:is|has been|will be) on (?:its|the) way\b"
)
_OPEN = re.compile(
    r"\?|\b(?:if|whether|unless|would you|do you|could you|should you|may i|shall i|once you|in case|when you)\b"
)
_CONDITION = re.compile(r"^\W*(?:if|once|when|whenever|unless|in case|should you|as soon as)\b")
_RULE = re.compile(
    r"\b(?:polic(?:y|ies)|rules?|terms|in general|generally|usually|normally|customers|anyone|everyone|eligible items)\b"
)
# A clause about orders, items or refunds as such is policy, and decides neither way.
_GENERAL = re.compile(
    r"^\W*(?:(?:and|but|so|since|because|as|after that)\W+)?"
    r"(?:(?:an?|any|all|every|each|no)\b|(?:refunds|exchanges|replacements|cancellations|credits|vouchers)\s+(?:are|can|may|will)\b)"
)
# "Unable to", "have to decline": a denial that names no action still denies the one that was asked for.
_DENIAL = re.compile(
    r"\b(?:unable to|not able to|cannot|can't|won't|not possible|impossible|not eligible|ineligible"
    r"|(?:must|have to) (?:decline|refuse|deny)|decline[ds]?|denied|refuse[ds]?)\b"
)


# The last branch of both takes a number of another sort whole, so that no part of it is looked at again.
_MONEY = re.compile(
    r"(?:[$€£]|\b(?:usd|eur|gbp)) ?(\d[\d,]*(?:\.\d+)?)|(?<![\w.])(\d[\d,]*+(?:\.\d++)?) ?(?:[$€£]|(?:dollars?|euros?|pounds?|usd|eur|gbp)\b)"
    r"|(?<![\w.])\d[\d,]*+"
)
_COUNTED = re.compile(
    r"(#?(?<![\w.])\d[\d,.]*+(?:-\d++)? ?(?:%|(?:business |working )?(?:days?|hours?|minutes?|weeks?|months?|years?|items?|pairs?|pieces?)\b))"
    r"|(?<![\w.])\d[\d,.]*+"
)


@dataclass(frozen=True)
class Decisions:
    """What a reply decides.

    Attributes:
        granted: actions that it grants, each with the amounts of the clauses that grant it, numbers as text.
        denied: actions that it denies.
        declines: whether any clause declines, whatever it names.
    """

    granted: dict[str, frozenset[str]]
    denied: frozenset[str]
    declines: bool


def read_decisions(reply: str) -> Decisions:
    """The decisions of a reply, clause by clause."""
    granted: dict[str, frozenset[str]] = {}
    denied: set[str] = set()
    declines = False
    for clause in _deciding(reply):
        declines = declines or _DENIAL.search(clause) is not None
        for name, pattern in _ACTION.items():
            found = pattern.search(clause)
            if found is None:
                continue
            before, after = clause[: found.start()], clause[found.end() :]
            if is_negated(before, after) or _DENIAL.search(before):
                denied.add(name)
            elif _COMMITTED.search(clause) and not _RULE.search(clause):
                granted[name] = granted.get(name, frozenset()) | amounts_of(clause)
    return Decisions(granted, frozenset(denied), declines)


def amounts_of(clause: str) -> frozenset[str]:
    """The amounts of a clause: what is marked as money; where nothing is, every number that counts no days or things."""
    text = plain(clause)
    marked = [first or last for first, last in _MONEY.findall(text) if first or last]
    return frozenset(numbers_of(" ".join(marked) if marked else _COUNTED.sub(_uncounted, text)))


def _uncounted(found: re.Match[str]) -> str:
    """Nothing for what counts days or things, any other number as it stands."""
    return " " if found.group(1) else found.group()


def _deciding(reply: str) -> Iterator[str]:
    """The clauses that may decide: no policy, no question, no condition, nor what hangs on one in the same sentence."""
    for sentence in clauses_of(reply):
        if sentence and _CONDITION.search(sentence[0]):
            continue
        for clause in sentence:
            if not _OPEN.search(clause) and not _GENERAL.search(clause):
                yield clause
