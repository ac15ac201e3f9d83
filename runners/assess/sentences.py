"""An account in plain sentences, each with the record that it is about and the command that derives it again. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from runners.assess.words import LINES, RIVALS, VERDICTS

Item = dict[str, Any]
SECTIONS: Final = {
    "verdict": "How it stands",
    "gate": "The gate, line by line",
    "missing": "What stands against a promotion now",
    "test": "The test, and who looked at it",
    "reruns": "What was run again",
    "derived": "What this account could not derive, or found wrong",
    "faith": "What is on faith",
    "not_the_gate": "Not the gate: what weaker analyses would have said",
}
NO_DEPLOYMENT: Final = "A promotion is no approval of deployment."


@dataclass(frozen=True)
class Sentence:
    """One sentence: its section, its words, the record that it is about, the command that derives it again."""

    section: str
    text: str
    record: str | None
    command: str

    def as_dict(self) -> Item:
        """As `--json` gives it."""
        return {
            "section": self.section,
            "text": self.text,
            "record": self.record,
            "command": self.command,
        }


def tell(account: Item) -> list[Sentence]:
    """Everything that the account says, in the order of `SECTIONS`."""
    parts = (_verdict, _gate, _missing, _test, _reruns, _derived, _faith, _rivals)
    return [sentence for part in parts for sentence in part(account)]


def number(value: float) -> str:
    """A number as it is printed: at most six digits that say something."""
    return f"{value:.6g}"


def _verdict(account: Item) -> Iterator[Sentence]:
    about, promotion, gate = account["about"], account["promotion"], account["gate"]
    command = account["commands"]["gate"]
    record = promotion["withdrawn"] or promotion["granted"] or about["gate"] or about["checkpoint"]
    yield Sentence("verdict", VERDICTS[account["verdict"]], record, command)
    if gate is not None:
        failed = sum(not line["passed"] for line in gate["lines"])
        text = (
            f"Of {len(gate['lines'])} lines of the gate {len(gate['lines']) - failed} pass "
            f"and {failed} fail."
        )
        yield Sentence("verdict", text, about["gate"], command)
    if promotion["granted"]:
        listed = account["commands"]["promotion"]
        text = f"It was promoted for: {promotion['scope']}. {NO_DEPLOYMENT}"
        yield Sentence("verdict", text, promotion["granted"], listed)
    if promotion["withdrawn"]:
        text = f"It was withdrawn because: {promotion['withdrawn_why']}"
        yield Sentence("verdict", text, promotion["withdrawn"], account["commands"]["promotion"])
    yield from _standing_notes(account)
    if account["rests_on"]["suspect"]:
        text = f"It is suspect: {account['rests_on']['suspect']}"
        yield Sentence("verdict", text, about["checkpoint"], account["commands"]["checkpoint"])


def _standing_notes(account: Item) -> Iterator[Sentence]:
    """What limits the weight of it, and what a refusal on record said."""
    about, figures, test = account["about"], account["figures"], account["test"]
    command = account["commands"]["account"]
    for words in limits_of(figures, test):
        yield Sentence("verdict", words, about["gate"], command)
    refused = account["promotion"]["refused"]
    for reason in account["promotion"]["refused_for"]:
        text = f"A refusal on record said [{reason['code']}]: {reason['message']}."
        digits = refused[-1].removeprefix("sha256:")[:12]
        yield Sentence("verdict", text, refused[-1], f"evidence verify {digits} --level blobs")


def limits_of(figures: Item | None, test: Item | None) -> list[str]:
    """Labels that belong beside a result: one seed is descriptive, fixed dialogues are a diagnostic."""
    found = []
    if figures is not None and len(figures.get("seeds", [])) == 1:
        found.append("Descriptive: one training seed, however good it looks.")
    if test is not None and "dialogue" in test.get("kinds", {}):
        found.append("Diagnostic: the customer's turns of its dialogues are fixed beforehand.")
    return found


def _gate(account: Item) -> Iterator[Sentence]:
    gate = account["gate"]
    if gate is None:
        return
    name, command = account["about"]["gate"], account["commands"]["gate"]
    if gate["problem"] is not None:
        text = "The lines are those on record: they could not be derived again now."
        yield Sentence("gate", text, name, command)
    for line in sorted(gate["lines"], key=lambda line: line["passed"]):
        yield Sentence("gate", line_in_words(line), name, command)
    for differs in gate["differs"]:
        text = f"The record gives another {differs} than the evidence does."
        yield Sentence("gate", text, name, command)


def line_in_words(line: Item) -> str:
    """A line of a gate as one sentence; a failed one with what its code means and what to do."""
    what = LINES.get(line["name"], line["name"])
    said = f"{what}: {line['value']}, demanded {line['threshold']}"
    if line["passed"]:
        return f"Passed. {said}."
    why = f" That means: {line['means']}. What helps: {line['hint']}." if line["means"] else ""
    return f"Failed [{line['code']}]. {said}.{why}"


def _missing(account: Item) -> Iterator[Sentence]:
    command, name = account["commands"]["checkpoint"], account["about"]["checkpoint"]
    promotion = account["promotion"]
    if promotion["granted"]:
        return
    lines = {line["code"] for line in (account["gate"] or {"lines": []})["lines"]}
    for reason in promotion["missing"]:
        if reason["code"] not in lines:
            text = f"Missing [{reason['code']}]. {reason['message']}. What helps: {reason['hint']}."
            yield Sentence("missing", text, name, command)
    if not promotion["missing"]:
        text = "Nothing is missing but the promoter's statement."
        yield Sentence("missing", text, name, command)


def _test(account: Item) -> Iterator[Sentence]:
    test, command = account["test"], account["commands"]["account"]
    if test is None or "problem" in test:
        return
    seen = len(test["seen"])
    yield Sentence(
        "test",
        f"The test has {test['cases']} cases; this was look {test['look']} at them; "
        f"{seen} of them had been trained or validated on.",
        test["protocol"],
        account["commands"]["gate"],
    )
    for review in test["reviews"]:
        text = (
            f"A reviewer says of paraphrases: {review['paraphrase']}; "
            f"of contamination elsewhere: {review['contamination']}."
        )
        yield Sentence("test", text, review["review"], command)
    for approval in account["approvals"]:
        text = f"Reviewer {approval['reviewer']} approved: {approval['why']}"
        yield Sentence("test", text, approval["approval"], command)


def _reruns(account: Item) -> Iterator[Sentence]:
    if account["gate"] is None or not isinstance(account["draws"], list):
        return
    command = account["commands"]["account"]
    if not account["draws"]:
        text = "Nothing was run again, so all of it may be invented by the key that wrote it."
        yield Sentence("reruns", text, account["about"]["nomination"], "evidence audit draw")
    for draw in account["draws"]:
        text = (
            f"A draw from {draw['members']} updates and cases hit {draw['targets']}; "
            f"{draw['run']} were run again, {draw['agreed']} agreed, {len(draw['disagreed'])} did not."
        )
        yield Sentence("reruns", text, draw["draw"], command)
        for item in draw["escape"]:
            text = (
                f"A forgery of {item['forged']:.0%} in one place had a chance of {number(item['one'])} "
                f"to escape this draw; of as much everywhere, {number(item['every'])}."
            )
            yield Sentence("reruns", text, draw["draw"], command)


def _derived(account: Item) -> Iterator[Sentence]:
    parts = {name: account[name] for name in ("gate", "figures", "test", "draws")}
    for part, found in parts.items():
        problem = found.get("problem") if isinstance(found, dict) else None
        if isinstance(problem, dict):
            text = f"Not derived: {part}. {problem['message']} [{problem['code']}]."
            yield Sentence("derived", text, account["about"]["gate"], account["commands"]["gate"])
        elif problem:
            text = f"No figures: {problem}."
            yield Sentence("derived", text, account["about"]["gate"], account["commands"]["gate"])
    for item in account["derived"]["problems"]:
        text = f"Found [{item['code']}]: {item['message']}."
        yield Sentence("derived", text, item["record"], account["commands"]["gate"])


def _faith(account: Item) -> Iterator[Sentence]:
    for item in account["derived"]["on_faith"]:
        records = "1 record" if item["records"] == 1 else f"{item['records']} records"
        text = f"On faith, in {records}: {item['what']}."
        name = account["about"]["gate"] or account["about"]["record"]
        yield Sentence("faith", text, name, account["commands"]["gate"])


def _rivals(account: Item) -> Iterator[Sentence]:
    figures = account["figures"]
    if figures is None or figures.get("rivals") is None:
        return
    name, command = account["about"]["gate"], account["commands"]["account"]
    for rival, (what, flaw) in RIVALS.items():
        value = figures["rivals"][rival]
        said = "not defined here" if value is None else number(value)
        yield Sentence("not_the_gate", f"Not the gate: {what} is {said}; {flaw}.", name, command)
