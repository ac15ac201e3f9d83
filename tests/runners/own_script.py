"""A user's own script in miniature: rows that share no wording, and trainers of the library on the tiny model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_job import QUESTIONS, WORDINGS

from runners.train.callback import LedgerCallback
from verifiers.verify import Options, Report, verify

pytest.importorskip("trl", reason="needs the train extra")

import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)
from trl.trainer.dpo_config import DPOConfig
from trl.trainer.dpo_trainer import DPOTrainer
from trl.trainer.kto_config import KTOConfig
from trl.trainer.kto_trainer import KTOTrainer
from trl.trainer.reward_config import RewardConfig
from trl.trainer.reward_trainer import RewardTrainer
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

torch.set_num_threads(1)  # several threads wait for one another on a busy machine

__all__ = ["AutoModelForCausalLM", "AutoTokenizer", "Dataset", "LedgerCallback", "torch"]

ARGUMENTS: dict[str, Any] = {
    "max_steps": 3,
    "per_device_train_batch_size": 2,
    "gradient_accumulation_steps": 2,
    "learning_rate": 0.01,
    "max_length": 128,
    "bf16": False,
    "gradient_checkpointing": False,
    "use_cpu": True,
    "save_strategy": "no",
    "report_to": [],
    "disable_tqdm": True,
    "logging_strategy": "no",
    "seed": 5,
}


def said(role: str, content: str) -> dict[str, str]:
    """A turn."""
    return {"role": role, "content": content}


def chats(**more: Any) -> list[dict[str, Any]]:
    """Ten conversations, each in words of its own."""
    return [
        {"messages": [said("user", text), said("assistant", f"We see to it, case {number}.")]}
        | more
        for number, text in enumerate(WORDINGS)
    ]


def pairs() -> list[dict[str, Any]]:
    """Ten prompts with a better and a worse answer."""
    return [
        {
            "prompt": [said("user", text)],
            "chosen": [said("assistant", f"We see to it, case {number}.")],
            "rejected": [said("assistant", "No.")],
        }
        for number, text in enumerate(WORDINGS)
    ]


def held_out(folder: Path) -> Path:
    """A file of conversations that nobody trains on."""
    path = folder / "held-out.jsonl"
    rows = [
        {"messages": [said("user", f"{text}?"), said("assistant", "Soon.")]} for text in QUESTIONS
    ]
    path.write_bytes(
        Dataset.from_list(rows).to_pandas().to_json(orient="records", lines=True).encode()
    )
    return path


def lora() -> LoraConfig:
    """A small adapter."""
    return LoraConfig(
        r=2, lora_alpha=4, target_modules=["q_proj", "down_proj"], task_type="CAUSAL_LM"
    )


def sft(model: Path, folder: Path, rows: Any = None, **changes: Any) -> SFTTrainer:
    """A supervised trainer on conversations."""
    named = {name: changes.pop(name) for name in ("eval_dataset", "callbacks") if name in changes}
    adapter = changes.pop("adapter", lora())
    live = changes.pop("live", None) or AutoModelForCausalLM.from_pretrained(model)
    data = rows if rows is not None else chats()
    return SFTTrainer(
        model=live,
        args=SFTConfig(output_dir=str(folder / "out"), **{**ARGUMENTS, **changes}),
        train_dataset=Dataset.from_list(data) if isinstance(data, list) else data,
        processing_class=AutoTokenizer.from_pretrained(model),
        peft_config=adapter,
        **named,
    )


def dpo(model: Path, folder: Path, rows: Any = None, **changes: Any) -> DPOTrainer:
    """A trainer on preferences."""
    return DPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(model),
        args=DPOConfig(output_dir=str(folder / "out"), **{**ARGUMENTS, **changes}),
        train_dataset=Dataset.from_list(rows or pairs()),
        processing_class=AutoTokenizer.from_pretrained(model),
        peft_config=lora(),
    )


def kto(model: Path, folder: Path) -> KTOTrainer:
    """A trainer on answers that were liked or not."""
    rows = [
        {
            "prompt": row["prompt"],
            "completion": row["chosen" if liked else "rejected"],
            "label": liked,
        }
        for row in pairs()
        for liked in (True, False)
    ]
    return KTOTrainer(
        model=AutoModelForCausalLM.from_pretrained(model),
        args=KTOConfig(output_dir=str(folder / "out"), **ARGUMENTS),
        train_dataset=Dataset.from_list(rows),
        processing_class=AutoTokenizer.from_pretrained(model),
        peft_config=lora(),
    )


def reward(model: Path, folder: Path) -> RewardTrainer:
    """A trainer of a model that scores answers."""
    return RewardTrainer(
        model=AutoModelForSequenceClassification.from_pretrained(model, num_labels=1),
        args=RewardConfig(output_dir=str(folder / "out"), **ARGUMENTS),
        train_dataset=Dataset.from_list(pairs()),
        processing_class=AutoTokenizer.from_pretrained(model),
        peft_config=LoraConfig(r=2, target_modules=["q_proj"], task_type="SEQ_CLS"),
    )


def verified(folder: Path) -> Report:
    """The report of a whole verification, which found nothing wrong."""
    report = verify(folder, Options(level="blobs", workers=1))
    assert report.verdict == "verified", report.findings
    return report
