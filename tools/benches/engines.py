"""The two sampling engines as a run uses them, each asked for tokens (loads torch)."""

from __future__ import annotations

import random
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from runners.train.sampling import sample
from runners.train.serving.merged import write_merged
from runners.train.serving.samples import Ask, Drawing
from runners.train.serving.vllm_client import VllmSampler
from runners.train.serving.vllm_server import VllmServer

ADAPTED = ["q_proj", "v_proj", "down_proj"]


class Engine(Protocol):
    """What samples."""

    def tokens(self, asks: list[Ask]) -> int:
        """How many tokens it sampled for them."""


def adapted(folder: Path, threads: int) -> Any:
    """A model with an adapter, as a run has it."""
    torch.set_num_threads(threads)
    base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    config = LoraConfig(r=16, lora_alpha=32, target_modules=ADAPTED)
    return get_peft_model(base, config).eval()


def asked(vocabulary: int, prompt: int, count: int) -> list[Ask]:
    """Prompts of seeded tokens."""
    source = random.Random(11)  # noqa: S311 - choices, no secrets
    return [
        Ask(tuple(source.randrange(3, vocabulary) for _ in range(prompt)), seed)
        for seed in range(count)
    ]


class Embedded:
    """The live model; nothing ends a completion early."""

    def __init__(self, model: Any, new: int) -> None:
        self._model, self._new = model, new

    def tokens(self, asks: list[Ask]) -> int:
        """How many tokens it sampled for them."""
        found = sample(
            self._model, [ask.prompt for ask in asks], [ask.seed for ask in asks],
            ends=(), pad=0, max_new_tokens=self._new, temperature=1.0,
        )  # fmt: skip
        return sum(len(item.ids) for item in found)


class Served:
    """A vLLM server; a completion may end early, and its tokens are counted as they come."""

    def __init__(
        self, python: Path, model: Path, work: Path, most: int, new: int, threads: int
    ) -> None:
        log = work / "vllm.log"
        self._server = VllmServer(python, model, log, max_model_tokens=most, threads=threads)
        self._server.wait_ready()
        self._client = VllmSampler(self._server.url, work / "weights")
        self._new = new

    def tokens(self, asks: list[Ask]) -> int:
        """How many tokens it sampled for them."""
        found = self._client.sample(asks, Drawing(self._new))
        return sum(len(item.ids) for item in found)

    def renew(self, model: Any, folder: Path) -> None:
        """Give it the adapted weights."""
        self._client.renew(lambda place: write_merged(model, folder, place))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()
        self._server.close()
