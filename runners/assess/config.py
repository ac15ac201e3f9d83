"""The settings of generation and of judging, by likelihood and by JSON (torch-free)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ledger.records.base import DIGEST_PATTERN
from runners.settings import Day, Settings


class GenerationSettings(Settings):
    """How every arm of a protocol answers: always greedy, in fixed batches, to a fixed budget of new tokens.

    Batches are part of the settings: a row alone and the same row beside a longer one differ in their last bits.
    `chat_template` is the digest of a template in place of the models' own (a file's path in a configuration),
    `template_date` the day that a template is told which asks for it.
    """

    max_new_tokens: Annotated[int, Field(ge=1, le=8192)] = 48
    batch_size: Annotated[int, Field(ge=1, le=512)] = 16
    dtype: Literal["float32", "bfloat16"] = "float32"
    threads: Annotated[int, Field(ge=1, le=1024)] = 2
    chat_template: Annotated[str, Field(pattern=DIGEST_PATTERN)] | None = None
    template_date: Day | None = None


class LikelihoodSettings(Settings):
    """How a judge is asked for log-probabilities: in fixed batches, texts cut at `max_length` tokens never."""

    batch_size: Annotated[int, Field(ge=1, le=512)] = 8
    max_length: Annotated[int, Field(ge=8, le=131_072)] = 2048
    dtype: Literal["float32", "bfloat16"] = "float32"
    threads: Annotated[int, Field(ge=1, le=1024)] = 2


class AskSettings(Settings):
    """How a judge is asked for a verdict in JSON: greedily, in fixed batches, to a fixed budget of new tokens."""

    max_new_tokens: Annotated[int, Field(ge=1, le=4096)] = 160
    batch_size: Annotated[int, Field(ge=1, le=512)] = 8
    dtype: Literal["float32", "bfloat16"] = "float32"
    threads: Annotated[int, Field(ge=1, le=1024)] = 2
