"""TRL's group trainer on recorded groups: what it reads is given, what its loss does is measured (loads torch).

The library samples, rewards, normalises and shuffles by itself. Here groups come from `runners.train.generations`, with the
sampler's own log-probabilities as the policy that the ratio is taken against, and advantages in the plan's rule; an
update reads whole groups, in their order. The library's forward passes, reference and loss are used as they are. What it
says and when: `runners.train.recorded`; before a `batch` the groups of a new generation are said with `groups`.
"""

from __future__ import annotations

import math
import sys
import time
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load, save
from torch.utils.data import DataLoader
from trl.trainer.grpo_trainer import GRPOTrainer

from ledger.canonical import parse_real, real
from ledger.errors import EvidenceError, UsageError
from runners.train.recorded import RecordedTrainer, Recording
from runners.train.rl_figures import Measured, figures_of
from verifiers.learning.learner_state import LEARNER_FILE, ROLLOUTS_FILE, read_learner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runners.train.generations import Generation, Recorded, Sampler
    from runners.train.rl_config import RlSettings

Batch = dict[str, Any]
NEEDED = frozenset(
    {
        "completion_ids",
        "completion_mask",
        "advantages",
        "old_per_token_logps",
        "ref_per_token_logps",
    }
)
"""What a step reads of a batch, beside its prompts."""

REFERENCE = "ref"
"""What the library calls the frozen copy of the starting adapter."""


class RecordedGRPOTrainer(RecordedTrainer, GRPOTrainer):
    """A `GRPOTrainer` that trains on recorded groups.

    Args:
        settings: of the run.
        options: what `GRPOTrainer` takes; the model has the starting adapter on it.
    """

    def __init__(self, *, settings: RlSettings, **options: Any) -> None:
        rewards: Any = self._rewards
        super().__init__(
            reward_funcs=rewards, rollout_func=lambda _prompts, _trainer: self._rollout(),
            **options,
        )  # fmt: skip
        self.settings = settings
        self.generation_number = 0
        self.draws = 0
        self.generation: Generation | None = None
        self.slices: list[Batch] = []
        self.slice_groups: list[list[tuple[str, int]]] = []
        self.measured: Measured | None = None
        self.seconds = time.monotonic()
        self.current: Batch = {}
        self.gap = 0.0
        self.fed: list[tuple[Recorded, ...]] | None = None
        self._skips = False
        if settings.reference == "adapter_off":
            adapted: Any = self.model
            adapted.delete_adapter(REFERENCE)

    def begin_sampling(self, recording: Recording, sampler: Sampler) -> None:
        """Take up the recording and the sampler, before the first step; the weights to begin with are in the model."""
        self.sampler = sampler
        self.begin(recording)

    # --- what the library reads ----------------------------------------------------------------------

    def get_train_dataloader(self) -> DataLoader[Any]:
        """As many empty batches as steps: what a step reads is chosen in `get_batch_samples`."""
        nothing: Any = list(range(self.settings.steps))
        return DataLoader(nothing, batch_size=1)

    def get_batch_samples(
        self, _iterator: Iterator[Batch], _count: int, _device: torch.device
    ) -> tuple[list[Batch], None]:
        """The completions of one step, recorded before anything is computed on them."""
        step = self.state.global_step
        if self.origin is not None and self.origin.step == step:
            self.restored(self.origin)
        place = step % self.settings.cycle
        number = place % self.settings.steps_per_generation
        if self.fed is not None:
            self._feed(self.fed.pop(0), number)
        elif place == 0:
            self._begin_generation()
        self.current = self.slices[number]
        self.channel.ask(
            "batch",
            step=step + 1,
            groups=[[name, members] for name, members in self.slice_groups[number]],
            trainable_tokens=int(self.current["completion_mask"].sum()),
        )
        self.step_loss = 0.0
        return [self.current], None

    def _prepare_inputs(self, inputs: Batch) -> Batch:
        """A step's completions are prepared already."""
        return inputs

    def _begin_generation(self) -> None:
        """A new generation: sampled or replayed, recorded, and made into one batch for each of its steps."""
        found = self.sampler.generation(self.generation_number, self.draws, self.state_digest)
        self.generation = found
        self.generation_number += 1
        self.draws = found.draws
        per_step = self.settings.groups_per_step
        parts = [
            found.groups[start : start + per_step]
            for start in range(0, len(found.groups), per_step)
        ]
        self.slices = [self._batch(part) for part in parts]
        self.slice_groups = [
            [(item.id, len(item.group.members)) for item in part] for part in parts
        ]

    def _feed(self, groups: tuple[Recorded, ...], number: int) -> None:
        """Put recorded groups in the place that the next step reads: what it did is done again."""
        missing = self.settings.steps_per_generation - len(self.slices)
        self.slices += [{} for _ in range(missing)]
        self.slice_groups += [[] for _ in range(missing)]
        self.slices[number] = self._batch(groups)
        self.slice_groups[number] = [(item.id, len(item.group.members)) for item in groups]

    def _batch(self, groups: tuple[Recorded, ...]) -> Batch:
        """The library's own batch of some groups, with the sampler's log-probabilities and the planned advantages."""
        self._given = groups
        self._skips = self.settings.cycle > 1
        rows: list[dict[str, Any]] = [{"prompt": ""} for item in groups for _ in item.group.members]
        with torch.no_grad():
            batch: Batch = self._generate_and_score_completions(rows)
        batch["old_per_token_logps"] = batch.pop("sampling_per_token_logps")
        values = [value for item in groups for value in item.advantages]
        device = batch["completion_ids"].device
        batch["advantages"] = torch.tensor(values, dtype=torch.float32, device=device)
        # The library divides a sum over tokens by those of the generation, shared out among its steps; a step's mean is
        # over its own tokens.
        tokens = batch["completion_mask"].sum() * self.settings.steps_per_generation
        batch["num_items_in_batch"] = tokens
        return batch

    def _rollout(self) -> dict[str, list[Any]]:
        members = [(item.group, member) for item in self._given for member in item.group.members]
        return {
            "prompt_ids": [list(group.prompt) for group, _ in members],
            "completion_ids": [list(member.ids) for _, member in members],
            "logprobs": [list(member.logprobs) for _, member in members],
        }

    def _rewards(self, **_columns: Any) -> list[float]:
        return [value for item in self._given for value in item.group.rewards]

    # --- what the loss does --------------------------------------------------------------------------

    def _get_per_token_logps_and_entropies(self, *arguments: Any, **options: Any) -> Any:
        """The library's forward pass; of the one that learns, log-probabilities and entropies are kept for the figures.

        For updates to come the library computes first what the policy gives now; the sampler's own are there.
        """
        if self._skips and not torch.is_grad_enabled():
            self._skips = False
            ids, kept = arguments[1], arguments[3]
            return torch.zeros(ids.shape[0], kept, device=ids.device), None, None
        found = super()._get_per_token_logps_and_entropies(*arguments, **options)
        if torch.is_grad_enabled():
            self.measured = Measured(found[0].detach(), found[1].detach())
        return found

    def training_step(self, *arguments: Any, **options: Any) -> torch.Tensor:
        """One pass; its loss is kept."""
        loss: torch.Tensor = super().training_step(*arguments, **options)  # type: ignore[no-untyped-call]  # the library has no types
        self._check_gap()
        self.step_loss += loss.item()
        return loss

    def _check_gap(self) -> None:
        """Refuse completions that another policy sampled: before an update has changed it, ratios are 1 but for rounding.

        Raises:
            UsageError: `SAMPLER_OTHER`.
        """
        if self.state.global_step % self.settings.cycle:
            return
        assert self.measured is not None  # a pass was made
        mask = self.current["completion_mask"].bool()
        distance = self.measured.logprobs - self.current["old_per_token_logps"]
        self.gap = float(distance[mask].abs().max())
        if not self.gap <= self.settings.sampler_tolerance:
            raise UsageError(
                "SAMPLER_OTHER",
                f"step {self.state.global_step + 1}: the learner's log-probabilities are up to {self.gap:.3g} from the"
                " sampler's, before any update of its batch",
            )

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        """The norm, which may be zero, but is a number.

        Raises:
            UsageError: `BAD_GRADIENT`, it is not finite.
        """
        norm = super()._get_grad_norm(model, grad_norm=grad_norm)  # type: ignore[no-untyped-call]  # the same
        self.step_norm = float(norm)
        if not (math.isfinite(self.step_norm) and math.isfinite(self.step_loss)):
            step = self.state.global_step + 1
            raise UsageError("BAD_GRADIENT", f"step {step} has a gradient norm of {self.step_norm}")
        return norm

    def step_figures(self) -> dict[str, Any]:
        """What the step's ratios, clips and divergences were; a line of it goes to the log."""
        assert self.measured is not None  # a step has had its forward pass
        values = figures_of(self.measured, self.current, self.settings)
        now = time.monotonic()
        seconds, self.seconds = now - self.seconds, now
        counts: dict[str, int] = {}
        if self.generation is not None and self.state.global_step % self.settings.cycle == 0:
            found = self.generation
            values["sampler_gap"] = self.gap
            if found.served is not None:
                values["sampler_probe"] = parse_real(found.served["probe"])
                values["sampler_moved"] = parse_real(found.served["moved"])
            counts = {
                "groups_sampled": found.sampled,
                "groups_constant": found.constant,
                "groups_rejected": found.rejected,
                "redrawn": found.redrawn,
            }
        sys.stderr.write(_line(self.state.global_step + 1, self._reward_mean(), values, seconds))
        sys.stderr.flush()
        return {name: real(value) for name, value in values.items()} | counts

    def _reward_mean(self) -> float:
        if self.generation is None:  # the generation was sampled before a resumption
            return math.nan
        rewards = [value for item in self.generation.groups for value in item.group.rewards]
        return sum(rewards) / len(rewards)

    # --- the learner's state -------------------------------------------------------------------------

    def sampler_position(self) -> dict[str, Any]:
        """Where the reading stands, in completions; and generations, draws and what steps to come still read."""
        rows = len(self.sampler.tasks) * self.settings.group_size
        epoch, position = divmod(self.state.global_step * self.settings.datums_per_step, rows)
        names = [
            [[name, members] for name, members in groups] for groups in self.slice_groups
        ]  # fmt: skip
        return {
            "order": "tasks",
            "epoch": epoch,
            "position": position,
            "rows": rows,
            "generations": self.generation_number,
            "draws": self.draws,
            "slices": names if self._midway() else [],
        }

    def more_state(self) -> dict[str, bytes]:
        """The batches that steps to come still read."""
        tensors = {
            f"{number}.{name}": value.detach().cpu().contiguous()
            for number, batch in enumerate(self.slices if self._midway() else [])
            for name, value in batch.items()
        }
        return {ROLLOUTS_FILE: save(tensors)}

    def restore_more(self, folder: Path) -> None:
        """Put generations, draws and batches back.

        Raises:
            EvidenceError: `STATE_DIFFERS`, the batches are not those that the state names.
        """
        value = read_learner(lambda: (folder / LEARNER_FILE).open("rb"))["sampler"]
        self.generation_number, self.draws = value["generations"], value["draws"]
        self.slice_groups = [
            [(name, members) for name, members in groups] for groups in value["slices"]
        ]
        self.slices = [{} for _ in self.slice_groups]
        for name, tensor in load((folder / ROLLOUTS_FILE).read_bytes()).items():
            number, _, field = name.partition(".")
            if int(number) < len(self.slices):
                self.slices[int(number)][field] = tensor
        if not all(batch.keys() >= NEEDED for batch in self.slices):
            raise EvidenceError(
                "STATE_DIFFERS", f"{ROLLOUTS_FILE} lacks completions that the state names"
            )

    def _midway(self) -> bool:
        """Whether the next step reads what an earlier one has read or sampled."""
        return self.state.global_step % self.settings.cycle != 0


def _line(step: int, reward: float, values: dict[str, float], seconds: float) -> str:
    return (
        f"step {step}: reward {reward:.4f}, signal {values['signal']:.2f}, ratio {values['ratio_mean']:.4f}"
        f" (largest {values['ratio_max']:.4f}), clipped {values['clipped']:.3f}, kl {values['kl']:.5f}, {seconds:.1f} s\n"
    )
