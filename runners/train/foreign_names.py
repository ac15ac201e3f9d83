"""What settings of other tools are called here: a name of ours, or why there is no such setting."""

from __future__ import annotations

_TEMPLATE = "the loss counts every turn of the assistant and nothing else"
_TYPES = "dtype is the type of the weights, autocast that of the products; float16 is not supported"
_RECORDS = "the ledger itself is the record; see evidence run status"
_STEPS = "a run is planned in steps: one epoch is rows / (batch_size * accumulation) of them"
_ADAMW = "the optimizer is AdamW"
_OFFLINE = "models are registered first: evidence model add DIR"
_LABELS = "chat rows need no field names; see docs/spec/data.md"

FOREIGN: dict[str, str] = {
    # the trainer's arguments
    "max_steps": "steps",
    "num_steps": "steps",
    "total_steps": "steps",
    "num_train_epochs": _STEPS,
    "num_epochs": _STEPS,
    "epochs": _STEPS,
    "per_device_train_batch_size": "batch_size",
    "train_batch_size": "batch_size",
    "micro_batch_size": "batch_size",
    "gradient_accumulation_steps": "accumulation",
    "grad_accum": "accumulation",
    "lr": "learning_rate",
    "lr_scheduler_type": "schedule",
    "lr_scheduler": "schedule",
    "warmup_ratio": "warmup_steps",
    "max_grad_norm": "max_gradient_norm",
    "gradient_clipping": "max_gradient_norm",
    "optim": _ADAMW,
    "optimizer": _ADAMW,
    "fp16": _TYPES,
    "bf16": "autocast",
    "tf32": _TYPES,
    "torch_dtype": "dtype",
    "attn_implementation": "attention",
    "data_seed": "seed",
    "num_processes": "processes",
    "nproc_per_node": "processes",
    "evaluation_strategy": "eval_steps",
    "eval_strategy": "eval_steps",
    "save_strategy": "save_steps",
    "save_total_limit": "every checkpoint is kept by digest, and equal files once",
    "report_to": _RECORDS,
    "logging_steps": _RECORDS,
    "output_dir": "checkpoints are kept in the ledger; evidence checkpoint recover writes a folder",
    "resume_from_checkpoint": "a run goes on with evidence run resume RUN",
    # supervised fine-tuning
    "max_seq_length": "max_length",
    "max_seq_len": "max_length",
    "sequence_len": "max_length",
    "cutoff_len": "max_length",
    "model_max_length": "max_length",
    "assistant_only_loss": _TEMPLATE,
    "completion_only_loss": _TEMPLATE,
    "train_on_inputs": _TEMPLATE,
    "train_on_responses_only": _TEMPLATE,
    "chat_template_path": "chat_template",
    "dataset_text_field": _LABELS,
    "dataset": "split",
    "dataset_name": "split",
    "datasets": "split",
    "train_file": "split",
    "data_path": "split",
    "model_name": "model",
    "model_name_or_path": "model",
    "base_model": "model",
    "push_to_hub": _OFFLINE,
    "trust_remote_code": "code of a model is never run",
    # the adapter
    "r": "lora_rank",
    "lora_r": "lora_rank",
    "rank": "lora_rank",
    "alpha": "lora_alpha",
    "target_modules": "lora_targets",
    "ddp_timeout": "rank_wait_s",
    "lora_target_modules": "lora_targets",
    "lora_target": "lora_targets",
    "load_in_4bit": "weights are not quantised",
    "load_in_8bit": "weights are not quantised",
}
