"""The `vllm` engine of a run: a server that is given the learner's weights before it samples under them (loads torch).

Completions are sampled where a generation begins, so weights are renewed there, once for each policy state that samples:
merged into a folder, loaded by the server, and seen to be in use by a probe. The probe is the newest completion: that is
where the policy moves. Its scores under the weights before were taken while those were live.
"""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

from ledger.canonical import real
from ledger.errors import EvidenceError, UsageError
from runners.train.serving.merged import write_merged
from runners.train.serving.place import Place
from runners.train.serving.probe import probe
from runners.train.serving.samples import Drawing, Sampled
from runners.train.serving.vllm_client import VllmSampler
from runners.train.serving.vllm_server import VllmServer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from runners.train.rl_config import RlSettings
    from runners.train.serving.samples import Ask

Completion = Sampled | EvidenceError
"""A completion, or why the sampler's reply is none."""

LOG = "sampler.log"
WEIGHTS = "sampler-weights"
LAST_WORDS_S = 10.0


class Engine(Protocol):
    """What samples a draw outside the learner's own process."""

    served: dict[str, str] | None
    """What was seen of it: the digest of its weights, the probe's gap and how far the weights moved, in nats a token."""

    def sample(self, asks: Sequence[Sequence[Ask]], state: str) -> list[list[Completion]]:
        """The completions of each group under a policy state."""

    def close(self) -> None:
        """Let go of it."""


class VllmEngine:
    """A vLLM server, started at the first draw where it is ours.

    Args:
        model: the live policy, an adapter on its base.
        model_folder: of the base model.
        settings: of the run.
        place: where the server is.
        work: a folder for its log and its weights.
        prompts: of all tasks, as token ids; the first is the probe before anything was sampled.
        ends: tokens that end a completion.
    """

    def __init__(
        self,
        model: Any,
        model_folder: Path,
        settings: RlSettings,
        place: Place,
        work: Path,
        prompts: Sequence[Sequence[int]],
        ends: Collection[int],
    ) -> None:
        self.served: dict[str, str] | None = None
        self._model, self._folder, self._settings = model, model_folder, settings
        self._place, self._work = place, work
        self._text = list(prompts[0])
        self._longest = max(len(prompt) for prompt in prompts) + settings.max_new_tokens + 1
        self._state: str | None = None
        self._server: VllmServer | None = None
        self._client: VllmSampler | None = None
        self._drawing = Drawing(
            settings.max_new_tokens, settings.temperature, settings.top_p, settings.top_k, settings.min_p,
            tuple(sorted(ends)),
        )  # fmt: skip
        with model.disable_adapter():
            self._before = scores(model, self._text)

    @property
    def weights(self) -> Path:
        """The folder that renewed weights are written into."""
        named = self._place.weights
        return self._work / WEIGHTS if named is None else Path(named)

    def sample(self, asks: Sequence[Sequence[Ask]], state: str) -> list[list[Completion]]:
        """The completions of each group, all groups asked at once; the weights are renewed first where they are others.

        Raises:
            EvidenceError: `SAMPLER_STALE`, the server does not compute with the weights it was given; `SAMPLER_FAILED`;
                `SAMPLER_REPLY`.
            UsageError: `SAMPLER_UNREACHABLE`.
        """
        flat = [ask for group in asks for ask in group]
        try:
            client = self._client or self._connected()
            if state != self._state:
                self._renew(client)
                self._state = state
            found = iter(client.each(flat, self._drawing))
        except UsageError as error:
            if self._server is None or error.code != "SAMPLER_UNREACHABLE":
                raise
            raise self._failure() from None
        made = [[next(found) for _ in group] for group in asks]
        self._remember(flat, [item for group in made for item in group])
        return made

    def close(self) -> None:
        """End the server where it is ours, and remove the weights where the folder is ours."""
        if self._client is not None:
            self._client.close()
        if self._server is not None:
            self._server.close()
        shutil.rmtree(self._work / WEIGHTS, ignore_errors=True)

    def _connected(self) -> VllmSampler:
        self._work.mkdir(parents=True, exist_ok=True)
        url = self._place.url
        if url is None:
            url = self._started().url
        self._client = VllmSampler(url, self.weights)
        return self._client

    def _started(self) -> VllmServer:
        settings, python = self._settings, self._place.python
        assert python is not None  # a place has one of the two
        log = self._work / LOG
        log.unlink(missing_ok=True)
        self._server = VllmServer(
            Path(python), self._folder, log, threads=settings.threads, dtype=settings.dtype,
            max_model_tokens=self._longest,
        )  # fmt: skip
        _say(f"starting vLLM; its log is {log}")
        self._server.wait_ready()
        return self._server

    def _renew(self, client: VllmSampler) -> None:
        digest = client.renew(partial(write_merged, self._model, self._folder))
        now = scores(self._model, self._text)
        tolerance = self._settings.sampler_tolerance
        found = probe(now, self._before, client.score(self._text), tolerance)
        self.served = {"weights": digest, "probe": real(found.gap), "moved": real(found.moved)}
        telling = "" if found.tells else ", too little to tell the two apart"
        _say(f"weights {digest[7:19]}: gap {found.gap:.2e}, moved {found.moved:.2e}{telling}")

    def _remember(self, asks: Sequence[Ask], found: Sequence[Completion]) -> None:
        """The text of the next probe, scored under the weights that are live now."""
        pairs = zip(asks, found, strict=True)
        texts = [[*ask.prompt, *item.ids] for ask, item in pairs if isinstance(item, Sampled)]
        if texts:
            self._text = texts[0]
            self._before = scores(self._model, self._text)

    def _failure(self) -> EvidenceError:
        assert self._server is not None  # it is ours
        return self._server.failure("does not answer", LAST_WORDS_S)


@torch.no_grad()
def scores(model: Any, ids: Sequence[int]) -> list[float]:
    """The log-probability of each token after the first, as the model computes it in its mode for answers."""
    training = model.training
    model.train(mode=False)
    try:
        device = next(model.parameters()).device
        row = torch.tensor([list(ids)], device=device)
        table = torch.log_softmax(model(input_ids=row).logits[0].float(), dim=-1)
        found = table[:-1].gather(1, row[0, 1:].unsqueeze(1)).squeeze(1)
        return [float(value) for value in found.cpu()]
    finally:
        model.train(mode=training)


def engine_of(
    job: Mapping[str, Any],
    settings: RlSettings,
    model: Any,
    prompts: Sequence[Sequence[int]],
    ends: Collection[int],
) -> VllmEngine | None:
    """The engine that a job names; None where the live model samples.

    Raises:
        UsageError: `SAMPLER_UNREACHABLE`, the job does not say where it is; `SETTING_INVALID`.
    """
    if settings.engine == "transformers":
        return None
    place = Place.of(job.get("sampler") or {})
    if place is None:
        raise UsageError("SAMPLER_UNREACHABLE", "the job names no sampling server")
    folder, work = Path(job["model"]["path"]), Path(job["journal"]).parent
    return VllmEngine(model, folder, settings, place, work, prompts, ends)


def _say(line: str) -> None:
    sys.stderr.write(f"sampler: {line}\n")
    sys.stderr.flush()
