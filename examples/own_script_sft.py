"""Supervised fine-tuning by a script of your own, with every step on record.

    python examples/own_script_sft.py MODEL ROWS HELD_OUT LEDGER

MODEL is a folder, ROWS and HELD_OUT are JSON lines with `messages`, LEDGER is a folder that `evidence init` made.
"""

import sys

from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from runners.train.callback import LedgerCallback

model, rows, held_out, ledger = sys.argv[1:]

trainer = SFTTrainer(
    model=AutoModelForCausalLM.from_pretrained(model),
    args=SFTConfig(
        output_dir="own-script-sft",
        max_steps=4,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        learning_rate=1e-3,
        save_steps=2,
        bf16=False,
        report_to=[],
    ),
    train_dataset=Dataset.from_json(rows),
    processing_class=AutoTokenizer.from_pretrained(model),
    peft_config=LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM"),
)
run = LedgerCallback.adopt(trainer, ledger=ledger, held_out=held_out)
trainer.train()
print(f"run {run.run.id}: {run.ended.body['outcome']}, checkpoint {run.checkpoint.id}")
