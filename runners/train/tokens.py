"""Chat rows to token ids and labels: the loss counts the assistant's tokens and nothing else.

Where the assistant speaks is found in `runners.train.spans`; a row in which that cannot be said for sure is refused: a
guess would train the wrong words. Loads the tokenizer only, never torch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ledger.canonical import encode
from ledger.digests import sha256
from runners.train.rendering import ChatRow, Rendering, Tokenizer
from runners.train.spans import locate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

IGNORED = -100
"""The label of a token that the loss does not count; torch's own convention."""


@dataclass(frozen=True)
class EncodedRow:
    """One row as the trainer reads it.

    `labels` has the length of `ids`, `IGNORED` where the loss does not look. `group` is a digest of the turns before the
    last user turn and of the tools. `truncated` says that tokens beyond the length limit were cut off, `cut_labels` how
    many of them the loss would have counted, `length` how many tokens the whole row has. `unended`: see
    `runners.train.spans.Located`.
    """

    digest: str
    ids: tuple[int, ...]
    labels: tuple[int, ...]
    group: str
    truncated: bool
    length: int = 0
    cut_labels: int = 0
    unended: bool = False

    @property
    def trainable(self) -> int:
        """How many tokens the loss counts; the first token of a sequence is never predicted."""
        return sum(label != IGNORED for label in self.labels[1:])


def load_tokenizer(folder: Path, template: Path | None = None) -> Tokenizer:
    """The fast tokenizer of a model folder, from its own files and without any code of theirs.

    Args:
        folder: the model's.
        template: a file with the chat template in effect; the model's own where it is None.
    """
    from transformers import PreTrainedTokenizerFast

    loaded = PreTrainedTokenizerFast.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False
    )
    if template is not None:
        loaded.chat_template = template.read_bytes().decode()
    return cast("Tokenizer", loaded)


def prompt_ids(
    tokenizer: Tokenizer,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> list[int]:
    """Token ids of a conversation that waits for the assistant's next turn.

    Raises:
        EvidenceError: `TEMPLATE_FAILED`, the chat template refuses it.
    """
    rendering = Rendering(tokenizer, tools)
    return rendering.ids(rendering.text(messages, opened=True))


def prompt_digest(ids: Sequence[int]) -> str:
    """Digest of a prompt's token ids, as arms and transcripts record it."""
    return sha256(json.dumps(list(ids), separators=(",", ":")).encode())


def encode_row(
    tokenizer: Tokenizer,
    digest: str,
    messages: Sequence[Mapping[str, Any]],
    max_length: int,
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> EncodedRow:
    """One chat row as ids and labels, cut at `max_length` tokens.

    Args:
        tokenizer: of the model that will be trained; it has a chat template.
        digest: the row's identity, carried along.
        messages: turns with `role` and `content`, maybe `tool_calls`.
        max_length: in tokens; what lies beyond is cut off at the end.
        tools: what the row offers the model.

    Raises:
        EvidenceError: `TEMPLATE_NOT_PREFIX`, `TEMPLATE_DROPS`, `TEMPLATE_MASK`, `TEMPLATE_FAILED`: the template cannot
            render the row so that it is sure which tokens are the assistant's.
    """
    found = locate(Rendering(tokenizer, tools), messages)
    labels = [
        token if learned else IGNORED
        for token, learned in zip(found.ids, found.learned, strict=True)
    ]
    return EncodedRow(
        digest,
        tuple(found.ids[:max_length]),
        tuple(labels[:max_length]),
        _group(messages, tools),
        len(found.ids) > max_length,
        len(found.ids),
        sum(label != IGNORED for label in labels[max_length:]),
        found.unended,
    )


def _group(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None) -> str:
    """Rows of one group open alike: the same turns before the last one by the user, and the same tools."""
    last = max((index for index, item in enumerate(messages) if item["role"] == "user"), default=0)
    return sha256(encode([[dict(item) for item in messages[:last]], list(tools or ())]))


__all__ = [
    "IGNORED",
    "ChatRow",
    "EncodedRow",
    "Tokenizer",
    "encode_row",
    "load_tokenizer",
    "prompt_digest",
    "prompt_ids",
]
