"""Supervised fine-tuning of an adapter: the child process, top to bottom.

    python -m runners.train.sft          job on stdin, events on stdout (runners.protocol), log on stderr

Job: `model` {path, name, files}, `rows` (JSON Lines of chat rows, each with its digest in `row`), `settings`
(`SftSettings.effective`), `output` (an empty folder for checkpoints).
Events: `start`, then per step `batch`, `update`, sometimes `checkpoint`, then `end`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.protocol import Channel, serve

if TYPE_CHECKING:
    from runners.train.config import SftSettings
    from runners.train.preflight import Encoded


def main() -> int:
    """Serve one job; the exit code is 0 unless it failed."""
    return serve(train)


def train(channel: Channel, job: dict[str, Any]) -> dict[str, Any]:
    """Train as the job says.

    Returns:
        The fields of `end`: outcome, steps done, last state.

    Raises:
        EvidenceError: the model or the rows are not what they should be.
        UsageError: a setting, a step without gradient, a supervisor that refuses; `SHORT_RUN`, fewer steps than planned.
    """
    from ledger.errors import UsageError
    from runners.seeding import seed_everything
    from runners.train.config import SftSettings
    from runners.train.preflight import encode_rows, read_rows
    from runners.train.tokens import load_tokenizer

    settings = SftSettings.from_values(job["settings"])
    tokenizer = load_tokenizer(Path(job["model"]["path"]))
    encoded = encode_rows(tokenizer, read_rows(Path(job["rows"])), settings.max_length)
    seed_everything(settings.seed, settings.threads, settings.matmul)
    trainer = build(channel, job, settings, encoded, tokenizer)
    channel.ask("start", **start_fields(trainer, encoded, settings))
    trainer.train()
    done = trainer.state.global_step
    if done < settings.steps and not channel.stop:
        raise UsageError("SHORT_RUN", f"{done} of {settings.steps} steps were taken")
    outcome = "completed" if done >= settings.steps else "stopped"
    return {
        "outcome": outcome,
        "steps": done,
        "state": trainer.state_digest,
        "rows": encoded.account(),
    }


def build(
    channel: Channel, job: dict[str, Any], settings: SftSettings, encoded: Encoded, tokenizer: Any
) -> Any:
    """The trainer on a freshly loaded model with a fresh adapter, and the data in the order of the steps."""
    from datasets import Dataset

    from runners.train.order import micro_batches
    from runners.train.trainer import Collator, LedgerSFTTrainer

    order = [position for batch in micro_batches(encoded.rows, settings) for position in batch]
    data = Dataset.from_dict(
        {
            "input_ids": [list(encoded.rows[position].ids) for position in order],
            "labels": [list(encoded.rows[position].labels) for position in order],
            "rows": order,
        }
    )
    return LedgerSFTTrainer(
        channel=channel,
        rows=encoded.rows,
        settings=settings,
        model=adapted_model(job, settings),
        args=arguments(job, settings),
        train_dataset=data,
        processing_class=tokenizer,
        data_collator=Collator(int(tokenizer.pad_token_id)),
    )


def adapted_model(job: dict[str, Any], settings: SftSettings) -> Any:
    """The base model with a fresh adapter on it.

    Raises:
        EvidenceError: the model is not what was registered.
        UsageError: `SETTING_INVALID`, the model has no module of a target's name, or no such layer.
    """
    from peft import get_peft_model

    from ledger.errors import UsageError
    from runners.loading import load_model

    base = load_model(job["model"], settings.dtype, settings.attention)
    names = {name.rpartition(".")[2] for name, _ in base.named_modules()}
    for target in settings.lora_targets:
        if target not in names:
            raise UsageError(
                "SETTING_INVALID", f"the model has no module named {target}", field="lora_targets"
            )
    model = get_peft_model(base, adapter_config(job, settings))
    # The adapter's file names the base model; the library would write this machine's path to it.
    model.peft_config["default"].base_model_name_or_path = job["model"]["name"]
    return model


def adapter_config(job: dict[str, Any], settings: SftSettings) -> Any:
    """The LoRA adapter of the settings."""
    from peft import LoraConfig

    return LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules=list(settings.lora_targets),
        layers_to_transform=layers(job, settings) if settings.first_layer else None,
        layers_pattern="layers" if settings.first_layer else None,
        task_type="CAUSAL_LM",
    )


def layers(job: dict[str, Any], settings: SftSettings) -> list[int]:
    """The transformer layers that carry an adapter.

    Raises:
        UsageError: `SETTING_INVALID`, the model has fewer layers than `first_layer`.
    """
    from ledger.canonical import loads
    from ledger.errors import UsageError

    count = int(
        loads((Path(job["model"]["path"]) / "config.json").read_bytes())["num_hidden_layers"]
    )
    if settings.first_layer >= count:
        raise UsageError(
            "SETTING_INVALID",
            f"first_layer is not below the model's {count} layers",
            field="first_layer",
        )
    return list(range(settings.first_layer, count))


def arguments(job: dict[str, Any], settings: SftSettings) -> Any:
    """The library's arguments, each one that matters said outright."""
    import torch
    from trl.trainer.sft_config import SFTConfig

    return SFTConfig(
        output_dir=job["output"],
        max_steps=settings.steps,
        per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulation,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=settings.schedule,
        warmup_steps=settings.warmup_steps,
        weight_decay=settings.weight_decay,
        adam_beta1=settings.adam_beta1,
        adam_beta2=settings.adam_beta2,
        adam_epsilon=settings.adam_epsilon,
        max_grad_norm=settings.max_gradient_norm,
        optim="adamw_torch",
        seed=settings.seed,
        data_seed=settings.seed,
        train_sampling_strategy="sequential",
        dataset_kwargs={"skip_prepare_dataset": True},
        remove_unused_columns=False,
        max_length=None,
        bf16=False,
        gradient_checkpointing=settings.gradient_checkpointing,
        use_cpu=not torch.cuda.is_available(),
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="no",
        eval_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )


def start_fields(trainer: Any, encoded: Encoded, settings: SftSettings) -> dict[str, Any]:
    """What a `start` event says: rows, weights before the first step, versions, machine, threads."""
    from runners.environment import library_versions, machine

    trainable = sum(
        parameter.numel() for parameter in trainer.model.parameters() if parameter.requires_grad
    )
    return {
        "rows": encoded.account(),
        "dropped": [{"row": row, "reason": reason} for row, reason in encoded.dropped],
        "state": trainer.state_digest,
        "trainable_parameters": trainable,
        "libraries": library_versions(),
        "machine": machine().as_dict(),
        "threads": settings.threads,
    }


if __name__ == "__main__":
    sys.exit(main())
