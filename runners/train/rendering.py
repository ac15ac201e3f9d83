"""One chat row through a model's template: text, tokens, marks; what a template of a stranger throws becomes one code.

The library renders in a sandbox without files, and gives the template nothing but plain values.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from jinja2 import TemplateError

from ledger.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_RENDERED = 1 << 23
"""Characters of one rendering: eight times what a row may hold."""

TOOL_FIELDS = ("type", "function", "name", "description", "parameters", "properties", "required")

_MARKERS = re.compile(r"\{%-?\s*generation\s*-?%\}")

# What the code of a template may end in, besides the template engine's own errors.
_THROWN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


class Tokenizer(Protocol):
    """What of a tokenizer is used here."""

    chat_template: Any
    eos_token: Any

    def apply_chat_template(self, conversation: list[dict[str, Any]], **options: Any) -> Any:
        """The conversation as text, or as token ids with `tokenize=True`."""

    def __call__(self, text: str, **options: Any) -> Any:
        """The text as token ids."""

    def decode(self, token_ids: Sequence[int], **options: Any) -> Any:
        """Token ids as text."""


class ChatRow(NamedTuple):
    """A chat row: its digest, its turns, the tools that it offers, and the id that a person knows it by."""

    digest: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None = None
    name: str | None = None


class Rendering:
    """How a conversation with its tools looks to the model.

    Args:
        tokenizer: with its chat template.
        tools: what the conversation offers the model; None or empty for nothing.
    """

    def __init__(
        self, tokenizer: Tokenizer, tools: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        self._tokenizer = tokenizer
        self.tools = [in_order(tool) for tool in tools or ()] or None

    def without_tools(self) -> Rendering:
        """The same with no tool offered."""
        return Rendering(self._tokenizer)

    def text(self, messages: Sequence[Mapping[str, Any]], *, opened: bool) -> str:
        """The turns as text.

        Args:
            messages: the turns; none of them gives an empty text.
            opened: with the opening of the assistant's next turn at the end.

        Raises:
            EvidenceError: `TEMPLATE_FAILED`, the template refuses the turns, ends in an error or writes without end.
        """
        if not messages:
            return ""
        text = str(self._apply(messages, tokenize=False, add_generation_prompt=opened))
        if len(text) > MAX_RENDERED:
            raise EvidenceError(
                "TEMPLATE_FAILED", f"the rendering has more than {MAX_RENDERED} characters"
            )
        return text

    def within(self, part: str, whole: str) -> str:
        """A rendered part as it stands in the whole: some templates put an end-of-text token behind every rendering.

        Returns:
            The part without that token where it is a prefix of the whole only so; else as it is.
        """
        end = self._tokenizer.eos_token
        if whole.startswith(part) or not isinstance(end, str) or not end:
            return part
        return part.removesuffix(end)

    def ids(self, text: str) -> list[int]:
        """The token ids of a rendered text."""
        return [
            int(token) for token in self._tokenizer(text, add_special_tokens=False)["input_ids"]
        ]

    @property
    def has_markers(self) -> bool:
        """Whether the template itself marks what the assistant says."""
        template = self._tokenizer.chat_template
        return isinstance(template, str) and _MARKERS.search(template) is not None

    def marks(self, messages: Sequence[Mapping[str, Any]], ids: Sequence[int]) -> list[bool]:
        """Which tokens the template's own markers enclose.

        Raises:
            EvidenceError: `TEMPLATE_FAILED`; `TEMPLATE_MASK`, the marked rendering has other tokens.
        """
        found = self._apply(
            messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True
        )
        if list(found["input_ids"]) != list(ids):
            raise EvidenceError("TEMPLATE_MASK", "with markers the template gives other tokens")
        return [bool(mark) for mark in found["assistant_masks"]]

    def plain(self, ids: Sequence[int]) -> str:
        """What tokens say besides control tokens and white space."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True)).strip()

    def whole(self, ids: Sequence[int]) -> str:
        """What tokens say, control tokens included."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def _apply(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Any:
        turns = [dict(message) for message in messages]
        try:
            return self._tokenizer.apply_chat_template(turns, tools=self.tools, **options)
        except TemplateError as error:
            raise EvidenceError("TEMPLATE_FAILED", _said(error)) from None
        except _THROWN as error:
            # the one boundary: a template is a program of a stranger and may end in anything
            raise EvidenceError("TEMPLATE_FAILED", _said(error)) from None


def _said(error: Exception) -> str:
    words = " ".join(str(error).split())[:200]
    return f"the chat template says {words!r}" if words else f"it ends in {type(error).__name__}"


def in_order(value: Any) -> Any:
    """A tool with its fields in the order in which templates are written for them: rows of a ledger have them sorted."""
    if isinstance(value, list):
        return [in_order(item) for item in value]
    if not isinstance(value, dict):
        return value
    names = [name for name in TOOL_FIELDS if name in value]
    names += [name for name in value if name not in TOOL_FIELDS]
    return {name: in_order(value[name]) for name in names}


def squeezed(text: str) -> str:
    """The text without white space, which templates trim and put as they like."""
    return "".join(text.split())


def leaves(value: Any) -> Iterator[str]:
    """The texts and numbers of a JSON value and the names of its fields, as any template writes them."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield str(name)
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
