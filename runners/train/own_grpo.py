"""`LedgerGRPOTrainer`: group-relative reinforcement in a user's own script, every group and update on record (loads torch).

    from runners.train.own_grpo import LedgerGRPOTrainer

    trainer = LedgerGRPOTrainer(model=…, reward_funcs=reward, args=…, train_dataset=…, processing_class=…, peft_config=…,
                                ledger="evidence", held_out="held-out.jsonl")
    trainer.train()

It takes what the library's `GRPOTrainer` takes. What samples, deals groups to updates and keeps their log-probabilities is
what our own runs use; model, reference, loss and optimizer are the library's. An argument that would be followed otherwise is
refused by its name.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM

from ledger.errors import UsageError
from runners.assess.generate import end_ids
from runners.prepare.shelf import model_folder
from runners.seeding import seed_everything
from runners.train.adapted import adapter_config, trained_model
from runners.train.adopted_weights import LiveWeights
from runners.train.expansion import check_trained
from runners.train.generations import Sampler
from runners.train.journal import Journal
from runners.train.methods import JOURNAL
from runners.train.own_rl_arguments import check_same, refused, settings_of
from runners.train.own_rl_plan import OwnReward, OwnWishes, record_plan, tasks_of
from runners.train.own_rl_run import OwnRun
from runners.train.recorded import Recording
from runners.train.rewarding import earned
from runners.train.rl import encoded_prompts
from runners.train.rl_arguments import arguments
from runners.train.rl_trainer import RecordedGRPOTrainer
from runners.train.supervisor import planned_job
from runners.train.templates import in_effect, model_template
from runners.train.trained import live_state

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record


class LedgerGRPOTrainer(RecordedGRPOTrainer):
    """A `GRPOTrainer` of a user's script that trains on recorded groups.

    Args:
        model: the base model, or its folder.
        reward_funcs: a function `reward(row, completion)` of an audited file, or the name of one of our rewards.
        args: a `GRPOConfig`.
        train_dataset: scenario or desk rows, the tasks.
        processing_class: the model's tokenizer.
        peft_config: a `LoraConfig` that names its modules.
        ledger: open for writing with the roles ingest and train; or its folder, opened with your own key.
        more: settings that `GRPOConfig` does not have, such as `advantage_centre` or `redraw_limit`.
        wishes: see `runners.train.own_rl_plan.OwnWishes`: `held_out`, `name`, `licence`, `shelf`.

    Attributes:
        plan: of the run.
        run: the launch, once training has begun.
        ended: how it ended, once it is over.

    Raises:
        UsageError: `REWARD_NOT_AUDITED`; `ADOPTION_REFUSED`, an argument or a row that cannot be on record; `HELD_OUT_ROW`;
            `LEAKAGE_NOT_ACCEPTED`; or what the rules refuse.
        EvidenceError: a held-out file or the base model's folder is broken.
    """

    def __init__(
        self,
        *,
        model: Any,
        reward_funcs: Any,
        args: Any,
        train_dataset: Any,
        processing_class: Any,
        peft_config: Any,
        ledger: Ledger | str | Path,
        more: dict[str, Any] | None = None,
        **wishes: Any,
    ) -> None:
        live = _loaded(model)
        reward = OwnReward.of(reward_funcs)
        settings = settings_of(args, peft_config, {**_surroundings(live, reward), **(more or {})})
        rows, tasks = tasks_of(train_dataset, processing_class)
        wanted = OwnWishes(**wishes)
        self._closes = isinstance(ledger, str | Path)
        book: Any = _opened(Path(str(ledger))) if self._closes else ledger
        self.ledger = book
        try:
            seed_everything(settings.seed, settings.threads)
            job: dict[str, Any] = {
                "output": str(args.output_dir),
                "accelerator": _accelerator(),
                "model": {},
            }
            given = arguments(job, settings)
            check_same(args, given, peft_config, adapter_config(job, settings))
            self.plan = record_plan(
                book, settings, reward, rows, LiveWeights(live), processing_class, wanted
            )
            base = book.get(str(self.plan.ref("model")))
            self._folder = model_folder(wanted.shelf, base)
            _check_template(self._folder, base, processing_class)
            self._prompts = encoded_prompts(processing_class, tasks, settings.max_prompt_tokens)
            self._ends = end_ids(live) | {int(processing_class.eos_token_id)}
            seed_everything(settings.seed, settings.threads)
            job = planned_job(self.plan, base, self._folder)
            adapted = trained_model(live, job, settings)
            check_trained(adapted, job["trained"])
            super().__init__(
                settings=settings,
                model=adapted,
                args=given,
                train_dataset=Dataset.from_list([{"prompt": ""}]),
                processing_class=processing_class,
            )
        except BaseException:
            self._close()
            raise
        self._tasks, self._reward = tasks, reward
        self._record: OwnRun | None = None
        self.ended: Record | None = None

    @property
    def run(self) -> Record | None:
        """The launch, once training has begun."""
        return None if self._record is None else self._record.launch

    @property
    def checkpoint(self) -> Record | None:
        """The newest checkpoint on record."""
        return None if self._record is None else self._record.records.checkpoint

    def train(
        self,
        resume_from_checkpoint: str | bool | None = None,
        trial: Any = None,
        ignore_keys_for_eval: list[str] | None = None,
    ) -> Any:
        """Launch the plan, train, and record how that ended.

        Raises:
            UsageError: `ADOPTION_REFUSED`, it would resume; `PLAN_LAUNCHED`, the plan was used; `NO_SIGNAL`; `BAD_GRADIENT`;
                `STATE_BROKEN`; `SAMPLER_OTHER`; or what the rules refuse.
        """
        if resume_from_checkpoint or trial is not None or ignore_keys_for_eval:
            raise refused("train", "a run of groups on record begins at its plan's start")
        if self._record is not None:
            raise UsageError(
                "PLAN_LAUNCHED",
                "this trainer has recorded a run",
                record=self._record.launch.id,
                hint="make the trainer again: each training is a run of its own",
            )
        try:
            self._record = run = OwnRun(
                self.ledger, self.plan, [task.digest for task in self._tasks]
            )
            try:
                self._begin(run)
                result = super().train()
            except BaseException as error:
                self.ended = run.broke(error)
                raise
            self.ended = run.done()
            return result
        finally:
            self._close()

    def _begin(self, run: OwnRun) -> None:
        self.args.output_dir = str(run.output)
        sampler = Sampler(
            model=self.model,
            tokenizer=self.processing_class,
            tasks=self._tasks,
            prompts=self._prompts,
            ends=self._ends,
            settings=self.settings,
            journal=Journal(run.work / JOURNAL),
            channel=run,
            judge=earned if self._reward.function is None else self._reward.earned,
        )
        recording = Recording(run, self.settings, self.settings.steps, self._folder)
        self.begin_sampling(recording, sampler)

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        """The norm; whatever else the script does, the weights are still those of the last update.

        Raises:
            UsageError: `BAD_GRADIENT`; `STATE_BROKEN`.
        """
        found = live_state(self.adapted)
        if found != self.state_digest:
            raise UsageError(
                "STATE_BROKEN",
                f"before step {self.state.global_step + 1}, the weights are not those of the last update: something else"
                " changed them",
                field="model",
                expected=self.state_digest,
                actual=found,
            )
        return super()._get_grad_norm(model, grad_norm=grad_norm)

    def _close(self) -> None:
        if self._closes:
            self._closes = False
            self.ledger.close()


def _loaded(model: Any) -> Any:
    """The model, from its folder where that is given."""
    if isinstance(model, str | Path):
        return AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    if hasattr(model, "peft_config"):
        raise refused("model", "it has an adapter already: give the base model, and peft_config")
    return model


def _surroundings(live: Any, reward: OwnReward) -> dict[str, Any]:
    """The settings that the model, the reward and this process say."""
    return {
        "reward": reward.name,
        "reward_version": reward.version,
        "dtype": str(live.dtype).removeprefix("torch."),
        "attention": str(live.config._attn_implementation),  # noqa: SLF001 - nothing else says it
        "threads": torch.get_num_threads(),
    }


def _accelerator() -> str | None:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def _check_template(folder: Path, base: Record, tokenizer: Any) -> None:
    """Prompts are rendered with the model's own chat template.

    Raises:
        UsageError: `ADOPTION_REFUSED`, the tokenizer has another; `TEMPLATE_MISSING`.
    """
    text = in_effect(model_template(folder, str(base.body["name"])), None)
    if tokenizer.chat_template != text:
        raise refused("processing_class", "it has another chat template than its model's folder")


def _opened(path: Path) -> Ledger:
    """A ledger folder, opened to append with the user's own key, as the commands do."""
    from runners.cli.context import App

    return App(ledger=str(path)).open_ledger()


__all__ = ["LedgerGRPOTrainer"]
