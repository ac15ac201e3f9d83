"""The rules for a row's turns: who may speak when, and what a turn may hold."""

from __future__ import annotations

import re
from typing import Any

ROLES = ("system", "developer", "user", "assistant", "tool")

# Which role may follow which; None is the start. A tool's result may follow another tool's result.
FOLLOWS: dict[str | None, tuple[str, ...]] = {
    None: ("system", "developer", "user"),
    "system": ("developer", "user"),
    "developer": ("user",),
    "user": ("assistant",),
    "assistant": ("user", "tool"),
    "tool": ("tool", "assistant"),
}

# Control tokens of common chat templates: inside a turn's text they would begin a turn of another role.
_MARKER = re.compile(
    r"<\|(?:im_start|im_end|start_header_id|end_header_id|eot_id|system|user|assistant|end|endoftext)\|>"
    r"|</?(?:start_of_turn|end_of_turn)>|\[/?INST\]|<</?SYS>>"
)

_TURN_FIELDS = {
    "system": {"role", "content"},
    "developer": {"role", "content"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls"},
    "tool": {"role", "content", "name", "tool_call_id"},
}


class Refused(Exception):
    """A row breaks a rule: `reason` is one of `verifiers.data.rows.REASONS`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def check_messages(messages: Any, *, ends_with: str) -> None:
    """Check a list of turns.

    Args:
        messages: what the row holds under `messages`.
        ends_with: the role that has to speak last.

    Raises:
        Refused: a turn breaks a rule; the message names it by number, the first being 0.
    """
    if not isinstance(messages, list):
        raise Refused("wrong_type", "messages is not a list")
    if not messages:
        raise Refused("empty", "there is no turn")
    before: str | None = None
    open_calls: set[str] = set()
    seen_calls: set[str] = set()
    for number, turn in enumerate(messages):
        role = _role(number, turn)
        if role == "tool":
            _check_result(number, turn, open_calls)
        elif open_calls:
            raise Refused(
                "call_unanswered", f"turn {number} comes before the result of a tool call"
            )
        if role not in FOLLOWS[before]:
            raise Refused("turn_order", f"turn {number} is by {role} after {before or 'the start'}")
        _check_content(number, turn, role)
        open_calls |= _calls(number, turn, seen_calls)
        before = role
    if before != ends_with or open_calls:
        raise Refused("wrong_end", f"the last turn is not an answered one by {ends_with}")


def _role(number: int, turn: Any) -> str:
    if not isinstance(turn, dict):
        raise Refused("wrong_type", f"turn {number} is not an object")
    role = turn.get("role")
    if isinstance(role, list) or len(set(turn) & set(ROLES)) > 1:
        raise Refused("two_roles", f"turn {number} names more than one role")
    if not isinstance(role, str) or role not in ROLES:
        raise Refused("invalid_role", f"turn {number} has no role of {', '.join(ROLES)}")
    unknown = sorted(set(turn) - _TURN_FIELDS[role])
    if unknown:
        raise Refused("unknown_field", f"turn {number} has the unknown field {unknown[0][:40]!r}")
    return role


def _check_content(number: int, turn: dict[str, Any], role: str) -> None:
    content = turn.get("content")
    if content is None and turn.get("tool_calls"):
        return
    if not isinstance(content, str):
        raise Refused("wrong_type", f"the content of turn {number} is not text")
    if not content.strip() and role != "tool" and not turn.get("tool_calls"):
        raise Refused("empty", f"turn {number} says nothing")
    _check_markers(number, content)


def check_text(number: int, content: str) -> None:
    """Check what a customer says in a turn of a scenario.

    Raises:
        Refused: `empty`, `two_roles`.
    """
    if not content.strip():
        raise Refused("empty", f"turn {number} says nothing")
    _check_markers(number, content)


def _check_markers(number: int, content: str) -> None:
    marker = _MARKER.search(content)
    if marker:
        raise Refused(
            "two_roles", f"turn {number} holds {marker.group()!r}, which begins another turn"
        )


def _check_result(number: int, turn: dict[str, Any], open_calls: set[str]) -> None:
    call_id = turn.get("tool_call_id")
    if not isinstance(call_id, str) or call_id not in open_calls:
        raise Refused("result_without_call", f"turn {number} is the result of no open tool call")
    open_calls.discard(call_id)


def _calls(number: int, turn: dict[str, Any], seen: set[str]) -> set[str]:
    calls = turn.get("tool_calls")
    if calls is None:
        return set()
    if not isinstance(calls, list) or not calls:
        raise Refused("wrong_type", f"tool_calls of turn {number} is not a list with calls")
    found = {_call_id(number, call) for call in calls}
    if len(found) != len(calls) or found & seen:
        raise Refused("call_id_twice", f"turn {number} gives a tool call an id that is taken")
    seen |= found
    return found


def _call_id(number: int, call: Any) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    if (
        not isinstance(function, dict)
        or set(call) - {"id", "type", "function"}
        or set(function) != {"name", "arguments"}
        or not isinstance(function["name"], str)
        or not isinstance(function["arguments"], dict)
        or not isinstance(call.get("id"), str)
    ):
        raise Refused(
            "wrong_type", f"turn {number} has a tool call without id, name or object arguments"
        )
    return str(call["id"])
