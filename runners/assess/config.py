"""The settings of generation and of likelihood judging (torch-free)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runners.settings import Settings


class GenerationSettings(Settings):
    """How every arm of a protocol answers: always greedy, in fixed batches, to a fixed budget of new tokens.

    Batches are part of the settings: a row alone and the same row beside a longer one differ in their last bits.
    """

    max_new_tokens: Annotated[int, Field(ge=1, le=8192)] = 48
    batch_size: Annotated[int, Field(ge=1, le=512)] = 16
    dtype: Literal["float32", "bfloat16"] = "float32"
    threads: Annotated[int, Field(ge=1, le=1024)] = 2


class LikelihoodSettings(Settings):
    """How a judge is asked for log-probabilities: in fixed batches, texts cut at `max_length` tokens never."""

    batch_size: Annotated[int, Field(ge=1, le=512)] = 8
    max_length: Annotated[int, Field(ge=8, le=131_072)] = 2048
    dtype: Literal["float32", "bfloat16"] = "float32"
    threads: Annotated[int, Field(ge=1, le=1024)] = 2
