"""Supervised fine-tuning of an adapter or of a whole model: the child process, top to bottom.

    python -m runners.train.sft          job on stdin, events on stdout (runners.protocol), log on stderr

Job: `model` {path, name, files, revision}, `rows` (JSON Lines of chat rows, each with its digest in `row`), `settings`
(`SftSettings.effective`), `template` (the file of the chat template in effect) and `encoding` (the digest of what the
rows became when they were planned), either may be null, `output` (an empty folder for checkpoints), `until` (the step to end after), `start` (see
`Start`), `validation` (rows like `rows`, or null), and what the plan says of this machine's libraries: `library_settings`,
`trained`, `accelerator`; see `runners.train.expansion`. With `batches` (the rows of each step from the start on, by digest) those are fed instead of the plan's own.
Events: `start`, `restored` where a state was put back, then per step `batch`, `update`, sometimes `checkpoint`, then `end`.
With `processes` above 1 each of them runs all of this on its share of the rows, and they speak as one
(`runners.train.shared_channel`).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError
from runners.protocol import Channel, serve
from runners.train.learner_settings import library_arguments
from runners.train.shared_channel import claim, ranks_of

if TYPE_CHECKING:
    from runners.train.config import SftSettings
    from runners.train.preflight import Encoded


MAX_NAMED = 64
"""How many dropped rows the first event names; the plan lists them all."""


@dataclass(frozen=True)
class Start:
    """Where a run begins.

    Attributes:
        mode: `fresh`, `weights` (an adapter, and nothing else of its run) or `exact` (a whole learner's state).
        step: the step before the first, 0 unless the start is exact.
        checkpoint: `path` of a checkpoint's folder, `files`, its inventory, and `state`, its state digest.
    """

    mode: str = "fresh"
    step: int = 0
    checkpoint: dict[str, Any] | None = None

    @classmethod
    def of(cls, job: dict[str, Any]) -> Start:
        """The job's start."""
        return cls(**job["start"])


def main() -> int:
    """Serve one job; the exit code is 0 unless it failed."""
    return serve(train, claim)


def train(channel: Channel, job: dict[str, Any]) -> dict[str, Any]:
    """Train as the job says.

    Returns:
        The fields of `end`: outcome, steps done, last state.

    Raises:
        EvidenceError: the model, the rows or the state to go on from are not what they should be.
        UsageError: a setting, a step without gradient, a supervisor that refuses; `SHORT_RUN`, fewer steps than planned.
    """
    from ledger.errors import UsageError
    from runners.seeding import seed_everything
    from runners.train.config import SftSettings
    from runners.train.preflight import check_encoding, encode_rows, given_template, read_rows
    from runners.train.tokens import load_tokenizer
    from runners.train.world_size import check_size

    settings = SftSettings.from_values(job["settings"])
    ranks = ranks_of(channel)
    check_size(settings, ranks.size)
    until, start = int(job["until"]), Start.of(job)
    tokenizer = load_tokenizer(Path(job["model"]["path"]), given_template(job))
    encoded = encode_rows(tokenizer, read_rows(Path(job["rows"])), settings.max_length)
    check_encoding(encoded, job.get("encoding"))
    seed_everything(settings.seed, settings.threads, settings.matmul)
    trainer = build(channel, job, settings, encoded, tokenizer)
    ranks.seed_apart(settings.seed)
    channel.ask("start", **start_fields(trainer, encoded, settings))
    done = start.step
    if done < until:
        if start.mode == "weights":
            channel.ask("restored", step=0, state=trainer.state_digest, mode="weights", digests={})
        trainer.train()
        done = trainer.state.global_step
    if done < until and not channel.stop:
        raise UsageError("SHORT_RUN", f"{done} of {until} steps were taken")
    outcome = "completed" if done >= until else "stopped"
    return {
        "outcome": outcome,
        "steps": done,
        "state": trainer.state_digest,
        "rows": encoded.account(),
    }


def build(
    channel: Channel, job: dict[str, Any], settings: SftSettings, encoded: Encoded, tokenizer: Any
) -> Any:
    """The trainer on a freshly loaded model with its adapter, and the data in the order of the steps to come."""
    from datasets import Dataset

    from runners.train.evaluation import validation_of
    from runners.train.expansion import check_expansion
    from runners.train.order import share
    from runners.train.recorded import Origin, Recording
    from runners.train.trainer import Collator, LedgerSFTTrainer

    start = Start.of(job)
    given = arguments(job, settings)
    check_expansion(given, job, settings)
    collator = Collator(int(tokenizer.pad_token_id))
    order = share(reading_order(job, settings, encoded), settings, ranks_of(channel).rank)
    data = Dataset.from_dict(
        {
            "input_ids": [list(encoded.rows[position].ids) for position in order],
            "labels": [list(encoded.rows[position].labels) for position in order],
            "rows": order,
        }
    )
    exact = start.checkpoint if start.mode == "exact" else None
    origin = None if exact is None else Origin(Path(exact["path"]), start.step)
    return LedgerSFTTrainer(
        recording=Recording(
            channel, settings, int(job["until"]), Path(job["model"]["path"]), origin
        ),
        rows=encoded.rows,
        settings=settings,
        validation=validation_of(job, settings, tokenizer, collator),
        model=adapted_model(job, settings),
        args=given,
        train_dataset=data,
        processing_class=tokenizer,
        data_collator=collator,
    )


def reading_order(job: dict[str, Any], settings: SftSettings, encoded: Encoded) -> list[int]:
    """The rows of the steps to come, as positions among the encoded rows: the plan's, or those that the job recorded.

    Raises:
        EvidenceError: `BATCH_ROWS`, a recorded batch has a row that the run does not have, or another number of them.
    """
    from runners.train.order import micro_batches, rows_of_step

    per_step = rows_of_step(settings)
    if "batches" not in job:
        whole = [row for batch in micro_batches(encoded.rows, settings) for row in batch]
        return whole[Start.of(job).step * per_step :] or whole[-per_step:]
    position = {row.digest: number for number, row in enumerate(encoded.rows)}
    for batch in job["batches"]:
        if len(batch) != per_step or not position.keys() >= set(batch):
            raise EvidenceError("BATCH_ROWS", "a recorded batch is none of this run's rows")
    return [position[row] for batch in job["batches"] for row in batch]


def adapted_model(job: dict[str, Any], settings: SftSettings) -> Any:
    """The model to train: the base, with an adapter on it or not, and the weights of the checkpoint that the run starts from.

    Raises:
        EvidenceError: the model or the checkpoint is not what was registered, or does not fit the settings.
        UsageError: `SETTING_INVALID`, the model has no module of a target's name, or no such layer; `PLAN_STALE`, the
            libraries train other tensors than the plan says.
    """
    from runners.loading import load_model
    from runners.train.adapted import trained_model
    from runners.train.expansion import check_trained
    from runners.train.trained import load_weights

    base = load_model(job["model"], settings.dtype, settings.attention)
    model = trained_model(base, job, settings)
    check_trained(model, job.get("trained"))
    start = Start.of(job)
    if start.checkpoint is not None:
        load_weights(model, start.checkpoint)
    return model


def arguments(job: dict[str, Any], settings: SftSettings) -> Any:
    """The library's arguments, each one that matters said outright."""
    from trl.trainer.sft_config import SFTConfig

    return SFTConfig(
        **library_arguments(job, settings),
        per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulation,
        train_sampling_strategy="sequential",
        dataset_kwargs={"skip_prepare_dataset": True},
        max_length=None,
        packing=False,
    )


def start_fields(trainer: Any, encoded: Encoded, settings: SftSettings) -> dict[str, Any]:
    """What a `start` event says: rows, weights before the first step, versions, machine, threads."""
    from runners.environment import library_versions, machine

    trainable = sum(
        parameter.numel() for parameter in trainer.model.parameters() if parameter.requires_grad
    )
    return {
        "rows": encoded.account(),
        "dropped": [{"row": row, "reason": reason} for row, reason in encoded.dropped[:MAX_NAMED]],
        "state": trainer.state_digest,
        "trainable_parameters": trainable,
        "libraries": library_versions(),
        "machine": machine().as_dict(),
        "threads": settings.threads,
    }


if __name__ == "__main__":
    sys.exit(main())
