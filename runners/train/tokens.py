"""Chat rows to token ids and labels: the loss counts the assistant's tokens and nothing else.

Where a turn begins and ends is found by rendering growing parts of the conversation with the model's own chat template:
what the assistant wrote is what the rendering with the turn adds to the rendering that ends in the opening of that turn.
Each part must be a prefix of the next, as text and as tokens, or the row is refused: a guess would train the wrong words.
Loads the tokenizer only, never torch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from ledger.digests import sha256
from ledger.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

IGNORED = -100
"""The label of a token that the loss does not count; torch's own convention."""


class Tokenizer(Protocol):
    """What of a tokenizer is used here."""

    def apply_chat_template(self, conversation: list[dict[str, Any]], **options: Any) -> Any:
        """The conversation as text, or as token ids with `tokenize=True`."""

    def __call__(self, text: str, **options: Any) -> Any:
        """The text as token ids."""


@dataclass(frozen=True)
class EncodedRow:
    """One row as the trainer reads it.

    `labels` has the length of `ids`, `IGNORED` where the loss does not look. `prompt` is the number of tokens before the
    first that it counts, `group` a digest of the turns before the last user turn. `truncated` says that tokens beyond
    the length limit were cut off.
    """

    digest: str
    ids: tuple[int, ...]
    labels: tuple[int, ...]
    group: str
    truncated: bool

    @property
    def trainable(self) -> int:
        """How many tokens the loss counts; the first token of a sequence is never predicted."""
        return sum(label != IGNORED for label in self.labels[1:])


def load_tokenizer(folder: Path) -> Tokenizer:
    """The fast tokenizer of a model folder, from its own files and without any code of theirs."""
    from transformers import PreTrainedTokenizerFast

    loaded = PreTrainedTokenizerFast.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False
    )
    return cast("Tokenizer", loaded)


def prompt_ids(tokenizer: Tokenizer, messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """Token ids of a conversation that waits for the assistant's next turn."""
    return _ids(tokenizer, _text(tokenizer, messages, opened=True))


def prompt_digest(ids: Sequence[int]) -> str:
    """Digest of a prompt's token ids, as arms and transcripts record it."""
    return sha256(json.dumps(list(ids), separators=(",", ":")).encode())


def encode_row(
    tokenizer: Tokenizer, digest: str, messages: Sequence[Mapping[str, Any]], max_length: int
) -> EncodedRow:
    """One chat row as ids and labels, cut at `max_length` tokens.

    Args:
        tokenizer: of the model that will be trained; it has a chat template.
        digest: the row's identity, carried along.
        messages: turns with `role` and `content`.
        max_length: in tokens; what lies beyond is cut off at the end.

    Raises:
        EvidenceError: `TEMPLATE_NOT_PREFIX`, a turn cannot be located in the whole.
    """
    text = _text(tokenizer, messages, opened=False)
    ids = _ids(tokenizer, text)
    labels = [IGNORED] * len(ids)
    for turn, message in enumerate(messages):
        if message["role"] == "assistant":
            start, end = _span(tokenizer, messages, turn, text, ids)
            labels[start:end] = ids[start:end]
    group = sha256(_text(tokenizer, _before_last_user(messages), opened=False).encode())
    return EncodedRow(
        digest, tuple(ids[:max_length]), tuple(labels[:max_length]), group, len(ids) > max_length
    )


def _span(
    tokenizer: Tokenizer,
    messages: Sequence[Mapping[str, Any]],
    turn: int,
    text: str,
    ids: list[int],
) -> tuple[int, int]:
    """First and last-plus-one token of an assistant turn, its end-of-turn token included."""
    opened = _text(tokenizer, messages[:turn], opened=True)
    closed = _text(tokenizer, messages[: turn + 1], opened=False)
    before = _ids(tokenizer, opened)
    after = _ids(tokenizer, closed)
    if not (text.startswith(closed) and closed.startswith(opened)):
        raise EvidenceError(
            "TEMPLATE_NOT_PREFIX",
            f"turn {turn} is rendered differently in the whole",
            field="messages",
        )
    if ids[: len(after)] != after or after[: len(before)] != before:
        raise EvidenceError(
            "TEMPLATE_NOT_PREFIX", f"turn {turn} has other tokens in the whole", field="messages"
        )
    return len(before), len(after)


def _before_last_user(messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    last = max(
        (index for index, message in enumerate(messages) if message["role"] == "user"), default=0
    )
    return messages[:last]


def _text(tokenizer: Tokenizer, messages: Sequence[Mapping[str, Any]], *, opened: bool) -> str:
    if not messages:
        return ""
    return str(
        tokenizer.apply_chat_template(
            [dict(message) for message in messages], tokenize=False, add_generation_prompt=opened
        )
    )


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return [int(token) for token in tokenizer(text, add_special_tokens=False)["input_ids"]]
