"""A desk's tools, and the strict reading of a model's text as one call of one of them.

The whole text has to be one flat JSON object, `{"tool": …}` with exactly that tool's arguments, all
strings; a single Markdown fence around it is allowed. Text that claims an action is no call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.errors import EvidenceError
from verifiers.data.json_text import loads_unique

TOOLS: dict[str, tuple[str, ...]] = {
    "cancel": ("reason",),
    "modify_address": ("address",),
    "modify_payment": ("method",),
    "modify_items": ("item", "new", "pay_with"),
    "return": ("item", "refund_to"),
    "exchange": ("item", "new", "pay_with"),
    "refuse": ("reason",),
    "transfer": (),
}
EPISODE_TOOLS: dict[str, tuple[str, ...]] = {**TOOLS, "lookup": ("order",), "finish": ()}
"""In a conversation of several turns there is also what looks a record up, and what ends the case."""

MAX_TEXT_CHARS = 2000
MAX_ARGUMENT_CHARS = 200

_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*?)\n?```\Z", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """One tool call: the tool's name and its arguments in the tool's order."""

    tool: str
    arguments: tuple[tuple[str, str], ...]

    def __getitem__(self, name: str) -> str:
        return dict(self.arguments)[name]

    def as_json(self) -> dict[str, Any]:
        """The call as a case or a transcript writes it: `{"tool", "arguments"}`."""
        return {"tool": self.tool, "arguments": dict(self.arguments)}

    def text(self) -> str:
        """The call as the model is to write it, in the shortest JSON."""
        return json.dumps(
            {"tool": self.tool, **dict(self.arguments)}, ensure_ascii=False, separators=(",", ":")
        )


@dataclass(frozen=True)
class NoCall:
    """Why a text is not one call: `not_json`, `not_an_object`, `unknown_tool`, `wrong_arguments`, `too_long`."""

    reason: str


def call(tool: str, **arguments: str) -> Call:
    """A call by name, its arguments put into the tool's order.

    Raises:
        KeyError: no such tool, or an argument is missing (a programming error).
    """
    return Call(tool, tuple((name, arguments[name]) for name in EPISODE_TOOLS[tool]))


def parse_call(text: str, tools: Mapping[str, tuple[str, ...]] = TOOLS) -> Call | NoCall:
    """The one call that a model's text is, or why it is none.

    Args:
        text: everything that the model wrote in its turn.
        tools: those that it has, each with its arguments.
    """
    if len(text) > MAX_TEXT_CHARS:
        return NoCall("too_long")
    text = text.strip()
    fenced = _FENCE.match(text)
    try:
        value = loads_unique(
            (fenced.group(1) if fenced else text).encode(errors="replace"), max_depth=3
        )
    except EvidenceError:
        return NoCall("not_json")
    if not isinstance(value, dict):
        return NoCall("not_an_object")
    return _call_of(value.pop("tool", None), value, tools)


def read_call(value: Any) -> Call:
    """A call from its `{"tool", "arguments"}` object in a case.

    Raises:
        EvidenceError: `CASE_BROKEN`, it is not one.
    """
    if not isinstance(value, dict) or set(value) != {"tool", "arguments"}:
        raise EvidenceError("CASE_BROKEN", "a call has exactly the fields arguments and tool")
    found = _call_of(value["tool"], value["arguments"], TOOLS)
    if isinstance(found, NoCall):
        raise EvidenceError("CASE_BROKEN", f"not a call of one of the desk's tools: {found.reason}")
    return found


def _call_of(tool: Any, arguments: Any, tools: Mapping[str, tuple[str, ...]]) -> Call | NoCall:
    if not isinstance(tool, str) or tool not in tools:
        return NoCall("unknown_tool")
    if not isinstance(arguments, dict) or set(arguments) != set(tools[tool]):
        return NoCall("wrong_arguments")
    values = arguments.values()
    if not all(isinstance(value, str) and 0 < len(value) <= MAX_ARGUMENT_CHARS for value in values):
        return NoCall("wrong_arguments")
    return call(tool, **arguments)
