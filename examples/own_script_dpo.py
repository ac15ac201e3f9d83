"""Learning from preferences (DPO) by a script of your own, with every step on record.

    python examples/own_script_dpo.py MODEL PAIRS HELD_OUT LEDGER

MODEL is a folder, PAIRS are JSON lines with `prompt`, `chosen` and `rejected`, HELD_OUT are JSON lines that are never
trained on, LEDGER is a folder that `evidence init` made.
"""

import sys

from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl.trainer.dpo_config import DPOConfig
from trl.trainer.dpo_trainer import DPOTrainer

from runners.train.callback import LedgerCallback

model, pairs, held_out, ledger = sys.argv[1:]

trainer = DPOTrainer(
    model=AutoModelForCausalLM.from_pretrained(model),
    args=DPOConfig(
        output_dir="own-script-dpo",
        max_steps=4,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        learning_rate=1e-3,
        save_steps=2,
        bf16=False,
        report_to=[],
    ),
    train_dataset=Dataset.from_json(pairs),
    processing_class=AutoTokenizer.from_pretrained(model),
    peft_config=LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"),
)
run = LedgerCallback.adopt(trainer, ledger=ledger, held_out=held_out)
trainer.train()
print(f"run {run.run.id}: {run.ended.body['outcome']}, checkpoint {run.checkpoint.id}")
