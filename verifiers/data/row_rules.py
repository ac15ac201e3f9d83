"""What one row may be: kinds, fields, types; from the bytes of one line to the row, or the reason against it.

Rows for training: a *chat* row (`kind` may be left out), a *preference* (a prompt with a chosen and a rejected answer),
*feedback* (an answer with a thumb up or down), a *text*. For rollouts and evaluation: a *scenario*, a *desk* case, a
*dialogue* case. Shapes of other tools become one of them (`verifiers.data.shapes`). Nothing else is rewritten and
nothing is repaired.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError
from verifiers.data.chat import Refused, check_messages, check_text
from verifiers.data.json_text import loads_unique
from verifiers.data.shapes import (
    as_chat,
    as_feedback,
    as_preference,
    is_feedback,
    is_preference,
    is_prompt,
    is_task,
    task_as_scenario,
)
from verifiers.rewards.desk import read_case

if TYPE_CHECKING:
    from verifiers.data.shapes import People

MAX_LINE_BYTES = 1 << 20
MAX_DEPTH = 16
MAX_ID_CHARS = 200

REASONS: dict[str, str] = {
    "too_large": f"the line is longer than {MAX_LINE_BYTES} bytes",
    "too_deep": f"the line nests deeper than {MAX_DEPTH} levels",
    "not_json": "the line is not JSON in UTF-8, or holds NaN, an infinity or an integer beyond 64 bits",
    "duplicate_key": "an object names one key twice",
    "not_an_object": "the line is JSON but not an object",
    "unknown_kind": "the kind is none that is known",
    "unknown_field": "the row or a turn has a field that is not known",
    "missing_field": "a field that the kind needs is not there",
    "wrong_type": "a field or turn is of another type than it should be",
    "empty": "the line, the list of turns or a turn is empty",
    "invalid_role": "a turn has no role, or one that is not known",
    "two_roles": "a turn names two roles, or its text begins a turn of another role",
    "turn_order": "a role speaks when it is not its turn",
    "wrong_end": "the last turn is not the one the kind ends with",
    "same_answers": "the chosen and the rejected answer are the same, which prefers nothing",
    "prompt_answered": "a prompt holds an answer, which a chat row would train on like the completion",
    "call_id_twice": "a tool call has an id that an earlier one has",
    "call_unanswered": "somebody speaks before a tool's result is there",
    "result_without_call": "a tool's result names no open call",
    "held_out": "a training row declares itself held out",
    "case_broken": "a desk case's record or call is not what it should be",
    "case_disagrees": "a desk case's expected call is not the one the rules give",
    "duplicate_id": "an earlier row has this id",
    "duplicate_row": "an earlier row is the same, byte for byte",
}

TRAINING_KINDS = ("chat", "feedback", "preference", "text")
_SINCE_THIRD = ("feedback", "preference", "text")
_TRAINING_ROLES = ("train", "training")
_SHARED = {"id", "kind", "family", "metadata", "review", "split", "role"}
_NEEDED: dict[str, dict[str, type]] = {
    "chat": {"messages": list},
    "desk": {
        "messages": list, "id": str, "family": str, "rules": list, "order": dict, "request": str,
        "wanted": dict, "expected": dict,
    },
    "dialogue": {
        "messages": list, "id": str, "family": str, "policy_facts": list, "reference": str, "must_avoid": list,
    },
    "feedback": {"prompt": list, "completion": list, "label": bool},
    "preference": {"prompt": list, "chosen": list, "rejected": list},
    "text": {"text": str},
    "scenario": {
        "id": str, "family": str, "opening": str, "policy_facts": list, "context": str, "turns": list,
        "expected": dict, "must_avoid": list,
    },
}  # fmt: skip
_OPTIONAL: dict[str, set[str]] = {
    "chat": {"tools"}, "desk": {"twin"}, "dialogue": set(), "feedback": {"tools"}, "preference": {"tools"},
    "scenario": set(), "text": set(),
}  # fmt: skip
_TYPES: dict[str, tuple[type, ...]] = {
    "id": (str,), "family": (str,), "metadata": (dict,), "review": (dict,), "tools": (list,),
    "split": (str,), "role": (str,), "twin": (str, type(None)),
}  # fmt: skip
_TEXT_LISTS = ("rules", "policy_facts", "must_avoid", "turns")


@dataclass(frozen=True)
class Rules:
    """Which rules a row is read by.

    Args:
        first: those of the parser's first version: no scenarios, no other shapes, one value to an entity field.
        keep_held_out: a chat row that declares itself held out is a row all the same.
        tuning: preferences, feedback and texts are rows too, as from the parser's third version on.
        people: who is meant by what a tau2 task says, where its database is among the sources.
    """

    first: bool = False
    keep_held_out: bool = False
    tuning: bool = True
    people: People | None = None


LATEST = Rules()


def read_row(line: bytes | None, rules: Rules, split: str | None = None) -> dict[str, Any]:
    """The row of one line; None stands for a line beyond the limit.

    Args:
        line: its bytes.
        rules: what it is read by.
        split: what its file says that it is for, where the row does not say it.

    Raises:
        Refused: with a key of `REASONS`.
    """
    if line is None or len(line) > MAX_LINE_BYTES:
        raise Refused("too_large", REASONS["too_large"])
    if not line.strip():
        raise Refused("empty", "the line is empty")
    row = _json(line)
    if not isinstance(row, dict):
        raise Refused("not_an_object", f"the line is a JSON {type(row).__name__}")
    if not rules.first:
        row = _in_our_shape(row, rules)
    if split is not None:
        row.setdefault("split", split)
    return check_row(row, rules)


def check_row(row: dict[str, Any], rules: Rules) -> dict[str, Any]:
    """A row that may be accepted.

    Raises:
        Refused: with a key of `REASONS`.
    """
    kind = row.get("kind", "chat")
    kinds = _kinds(rules)
    if not isinstance(kind, str) or kind not in kinds:
        raise Refused("unknown_kind", f"the kind {str(kind)[:40]!r} is none of {', '.join(kinds)}")
    _check_fields(row, kind, rules)
    if kind == "scenario":
        for number, text in enumerate((row["opening"], *row["turns"])):
            check_text(number, text)
        return row
    _check_turns(row, kind)
    if kind in TRAINING_KINDS and declares_held_out(row) and not rules.keep_held_out:
        raise Refused("held_out", "the row declares another role than train")
    if kind == "desk":
        _check_case(row)
    return row


def _kinds(rules: Rules) -> list[str]:
    unknown = {"scenario", *_SINCE_THIRD} if rules.first else set()
    return [
        name
        for name in _NEEDED
        if name not in unknown and (rules.tuning or name not in _SINCE_THIRD)
    ]


def _check_turns(row: dict[str, Any], kind: str) -> None:
    """The turns of a row, each answer behind its prompt."""
    if kind == "text":
        if not row["text"].strip():
            raise Refused("empty", "the text says nothing")
        return
    answers = {"feedback": ("completion",), "preference": ("chosen", "rejected")}.get(kind)
    if answers is None:
        check_messages(row["messages"], ends_with="assistant" if kind == "chat" else "user")
        return
    check_messages(row["prompt"], ends_with="user")
    for name in answers:
        try:
            check_messages([*row["prompt"], *row[name]], ends_with="assistant")
        except Refused as refused:
            raise Refused(refused.reason, f"with {name}, {refused.message}") from None
    if kind == "preference" and row["chosen"] == row["rejected"]:
        raise Refused("same_answers", REASONS["same_answers"])


def declares_held_out(row: dict[str, Any]) -> bool:
    """Whether a row itself says that it is not for training, in `split`, `role` or its metadata."""
    metadata = row.get("metadata")
    places = (row, metadata if isinstance(metadata, dict) else {})
    said = [place[name] for place in places for name in ("split", "role") if name in place]
    return any(str(value).strip().casefold() not in _TRAINING_ROLES for value in said)


def _in_our_shape(row: dict[str, Any], rules: Rules) -> dict[str, Any]:
    if rules.tuning and is_preference(row):
        return as_preference(row)
    if rules.tuning and is_feedback(row):
        return as_feedback(row)
    if rules.tuning and "text" in row and not row.keys() & {"kind", "messages", "prompt"}:
        return {**row, "kind": "text"}
    if is_prompt(row) and not (rules.tuning and row.get("kind") == "feedback"):
        return as_chat(row)
    if is_task(row):
        return task_as_scenario(row, rules.people)
    if "opening" in row and "kind" not in row:
        return {**row, "kind": "scenario"}
    return row


def _json(line: bytes) -> Any:
    try:
        return loads_unique(line, MAX_DEPTH)
    except EvidenceError as error:
        if error.code == "DUPLICATE_KEY":
            raise Refused("duplicate_key", error.message) from None
        reason = "too_deep" if error.message.startswith("nested deeper") else "not_json"
        raise Refused(reason, error.message) from None


def _check_fields(row: dict[str, Any], kind: str, rules: Rules) -> None:
    needed = _NEEDED[kind]
    known = _SHARED | set(needed) | _OPTIONAL[kind]
    unknown = sorted(name for name in row if name not in known and not name.endswith("_id"))
    if unknown:
        raise Refused("unknown_field", f"the row has the unknown field {unknown[0][:40]!r}")
    missing = [name for name in needed if name not in row]
    if missing:
        raise Refused("missing_field", f"the row has no {missing[0]}")
    for name, value in row.items():
        if name.endswith("_id"):
            _check_entity(name, value, many=not rules.first)
        elif name != "messages":  # its own check knows more to say
            _check_type(name, value, (needed[name],) if name in needed else _TYPES.get(name, ()))
    for name in _TEXT_LISTS:
        if not all(isinstance(text, str) for text in row.get(name, ())):
            raise Refused("wrong_type", f"{name} is not a list of texts")
    if not 0 < len(row.get("id", "-")) <= MAX_ID_CHARS:
        raise Refused("wrong_type", f"the id is empty or longer than {MAX_ID_CHARS} characters")


def _check_type(name: str, value: Any, expected: tuple[type, ...]) -> None:
    if expected and type(value) not in expected:
        raise Refused("wrong_type", f"{name} is not of type {expected[0].__name__}")


def _check_entity(name: str, value: Any, *, many: bool) -> None:
    if many and isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return
    _check_type(name, value, (str,))


def _check_case(row: dict[str, Any]) -> None:
    try:
        read_case(row)
    except EvidenceError as error:
        raise Refused(error.code.lower(), error.message) from None
