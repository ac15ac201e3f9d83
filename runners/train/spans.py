"""Where in a rendered row the assistant speaks, and whether the rendering says all that the row says.

A turn's span is what the rendering with the turn adds to the rendering that ends in the opening of that turn. Each must
be a prefix of the whole, as text and as tokens. Where the template has markers of its own, these decide, after they were
held against the spans. A template that overlooks tools, calls or text would train on something else than the row: what
stands in the row has to stand in its place in the rendering, white space aside.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError
from runners.train.rendering import leaves, squeezed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runners.train.rendering import Rendering

    Turns = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Located:
    """A rendered row.

    Attributes:
        ids: the tokens of the whole.
        learned: for each token, whether the loss counts it.
        unended: at least one turn's closing token is left out by the template's markers, so its end is not learnt.
    """

    ids: list[int]
    learned: list[bool]
    unended: bool


@dataclass(frozen=True)
class _Span:
    """First and last-plus-one token of a turn."""

    turn: int
    start: int
    end: int


def locate(rendering: Rendering, messages: Turns) -> Located:
    """Every assistant turn of a row, found and checked.

    Raises:
        EvidenceError: `TEMPLATE_NOT_PREFIX`, a turn is rendered differently in the whole; `TEMPLATE_DROPS`, the rendering
            leaves something out; `TEMPLATE_MASK`, markers and spans disagree; `TEMPLATE_FAILED`.
    """
    text = rendering.text(messages, opened=False)
    ids = rendering.ids(text)
    spans: list[_Span] = []
    past = 0  # turns and characters that earlier spans account for
    before = ""
    for turn, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        opened = rendering.text(messages[:turn], opened=True)
        whole = turn + 1 == len(messages)
        alone = text if whole else rendering.text(messages[: turn + 1], opened=False)
        closed = rendering.within(alone, text)
        spans.append(_span(rendering, turn, (text, ids), opened, closed))
        if not spans[1:]:
            _check_tools(rendering, messages[:turn], opened)
        _check_said(messages[past:turn], past, opened[len(before) :])
        _check_turn(rendering, messages[: turn + 1], closed[len(opened) :], alone)
        past, before = turn + 1, closed
    learned = [False] * len(ids)
    for span in spans:
        learned[span.start : span.end] = [True] * (span.end - span.start)
    if not rendering.has_markers:
        return Located(ids, learned, unended=False)
    marks = rendering.marks(messages, ids)
    unended = _check_marks(rendering, messages, (text, ids), marks, spans)
    both = [mark and there for mark, there in zip(marks, learned, strict=True)]
    return Located(ids, both, unended)


def _span(
    rendering: Rendering, turn: int, whole: tuple[str, list[int]], opened: str, closed: str
) -> _Span:
    text, ids = whole
    if not (text.startswith(closed) and closed.startswith(opened)):
        raise _moved(f"turn {turn} is rendered differently in the whole")
    before = rendering.ids(opened)
    after = ids if closed == text else rendering.ids(closed)
    if ids[: len(after)] != after or after[: len(before)] != before:
        raise _moved(f"turn {turn} has other tokens in the whole")
    return _Span(turn, len(before), len(after))


def _moved(message: str) -> EvidenceError:
    return EvidenceError("TEMPLATE_NOT_PREFIX", message, field="messages")


def _check_said(messages: Turns, first: int, rendered: str) -> None:
    """What others said between two turns of the assistant stands between them."""
    found = squeezed(rendered)
    for number, message in enumerate(messages, first):
        if not _stands(message.get("content") or "", found):
            raise _dropped(f"the text of turn {number} ({message['role']})")


def _check_turn(rendering: Rendering, messages: Turns, added: str, alone: str) -> None:
    """What the assistant says and calls in the last turn stands in what the turn adds."""
    turn, message = len(messages) - 1, messages[-1]
    found = squeezed(added)
    if not _stands(message.get("content") or "", found):
        raise _dropped(f"text of turn {turn} (assistant)")
    calls = message.get("tool_calls")
    if not calls:
        return
    for call in calls:
        function = call["function"]
        if not all(
            _stands(part, found) for part in (function["name"], *leaves(function["arguments"]))
        ):
            raise _dropped(f"a tool call of turn {turn}")
    silent = {name: value for name, value in message.items() if name != "tool_calls"}
    silent["content"] = silent.get("content") or ""
    if _same(rendering, [*messages[:-1], silent], alone, opened=False):
        raise _dropped(f"the tool calls of turn {turn}")


def _check_tools(rendering: Rendering, messages: Turns, opened: str) -> None:
    """The tools that the row offers are shown before the assistant first speaks."""
    if rendering.tools is None:
        return
    found = squeezed(opened)
    for tool in rendering.tools:
        function = tool.get("function")
        name = (function if isinstance(function, dict) else tool).get("name")
        if isinstance(name, str) and not _stands(name, found):
            raise _dropped(f"the tool {name[:40]}")
    if _same(rendering.without_tools(), messages, opened, opened=True):
        raise _dropped("the tools")


def _same(rendering: Rendering, messages: Turns, text: str, *, opened: bool) -> bool:
    """Whether a row with something taken away looks the same; one that is refused does not."""
    try:
        return rendering.text(messages, opened=opened) == text
    except EvidenceError:
        return False


def _dropped(what: str) -> EvidenceError:
    return EvidenceError(
        "TEMPLATE_DROPS", f"the chat template does not show {what}", field="messages"
    )


def _stands(text: str, found: str) -> bool:
    """Whether a text is in a squeezed rendering, as it is or as JSON writes it."""
    return squeezed(text) in found or any(
        squeezed(json.dumps(text, ensure_ascii=ascii_only)[1:-1]) in found
        for ascii_only in (False, True)
    )


def _check_marks(
    rendering: Rendering,
    messages: Turns,
    whole: tuple[str, list[int]],
    marks: list[bool],
    spans: list[_Span],
) -> bool:
    """Hold the template's markers against the spans; whether one of them leaves the closing token out.

    Raises:
        EvidenceError: `TEMPLATE_MASK`: a token outside all spans and their openings is marked, or of a span more than its
            closing is not.
    """
    stray, ids = list(marks), whole[1]
    unended = False
    for span in spans:
        stray[span.start : span.end] = [False] * (span.end - span.start)
        marked = sum(marks[span.start : span.end])
        end = span.start + marked
        if not marked or not all(marks[span.start : end]):
            raise _disagree(f"turn {span.turn} is not marked from its first token on")
        if rendering.plain(ids[end : span.end]):
            raise _disagree(f"the end of turn {span.turn} is not marked")
        unended |= bool(squeezed(str(rendering.whole(ids[end : span.end]))))
    for span in spans if any(stray) else ():
        first = _opening(rendering, messages[: span.turn], whole)
        stray[first : span.start] = [False] * max(0, span.start - first)
    if any(stray):
        raise _disagree("something is marked that the assistant did not say")
    return unended


def _opening(rendering: Rendering, messages: Turns, whole: tuple[str, list[int]]) -> int:
    """The first token of the opening of the assistant's turn, which the prompt gives and nothing has to learn."""
    text, ids = whole
    before = rendering.ids(rendering.within(rendering.text(messages, opened=False), text))
    return len(before) if ids[: len(before)] == before else len(ids)


def _disagree(message: str) -> EvidenceError:
    return EvidenceError("TEMPLATE_MASK", message, field="messages")
