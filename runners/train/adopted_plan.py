"""The plan of a user's own trainer: every argument that has meaning, its adapter, its script, its base model (loads torch).

Left out are names of places, accounts and displays: they change nothing that is learnt, and a record is for strangers.
"""

from __future__ import annotations

import enum
import math
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ledger.canonical import real
from ledger.digests import digest_file, sha256
from ledger.errors import EvidenceError, UsageError
from ledger.twins import descended_digest, fresh_digest
from runners.environment import library_versions, machine
from runners.prepare.data import UNKNOWN_LICENCE
from runners.prepare.models import ModelFolder, describe
from runners.prepare.register import add_folder
from runners.prepare.shelf import place, remember
from runners.train.adopted_weights import is_of_folder
from runners.train.plans import code_digests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledger.book import Ledger
    from ledger.record import Record
    from runners.train.adopted_rows import AdoptedRows
    from runners.train.adopted_weights import LiveWeights

METHODS = {
    "SFTTrainer": "sft",
    "DPOTrainer": "dpo",
    "KTOTrainer": "kto",
    "RewardTrainer": "reward",
}
"""The method of a plan, by the name of the library's trainer that the user's is or descends from."""

_SLUG = re.compile(r"[A-Za-z0-9._:/+-]{1,80}")
_ENDS_LEFT_OUT = ("_dir", "_token", "_url", "_key", "_tqdm", "_name_or_path")
_STARTS_LEFT_OUT = ("hub_", "push_to_hub", "logging_", "log_", "trackio_", "wandb_")
_LEFT_OUT = frozenset(
    {
        "base_model_name_or_path", "disable_tqdm", "include_num_input_tokens_seen", "project",
        "report_to", "resume_from_checkpoint", "run_name", "save_total_limit",
    }
)  # fmt: skip
REQUIRED = (
    ("world_size", 1, "it trains in several processes"),
    ("fp16", False, "fp16 leaves out steps whose gradient overflows: use bf16"),
    ("auto_find_batch_size", False, "auto_find_batch_size begins again after a failure"),
    ("packing", False, "packing mixes rows, so a batch no longer has rows"),
    (
        "load_best_model_at_end",
        False,
        "load_best_model_at_end puts other weights in place at the end",
    ),
)
"""Arguments that must have a value: name, value, and why another is refused."""

NO_SCRIPT = "the script that trains is no file, so its code is not on record"
DECODED = "the rows are decoded from tokens; the audit compares these texts whole"
NOT_ESTABLISHED = [
    "that rows became the tokens that were read: the script and the library made them",
    "how many rows were cut off or left out before the trainer was adopted",
    "what modules of its own the script imported",
    "that a step's loss was taken on the rows of its batch: the script's process computed it",
]
NOT_DECODED = "that the texts are those which became tokens: they were decoded from them"


def method_of(trainer: Any) -> str:
    """The method of a trainer.

    Raises:
        UsageError: `ADOPTION_REFUSED`, it is none of `METHODS`, or set up in a way that cannot be put on record.
    """
    names = [kind.__name__ for kind in type(trainer).__mro__]
    method = next((METHODS[name] for name in names if name in METHODS), None)
    if method is None:
        raise _refused(
            "trainer",
            f"a {names[0]} is none of {', '.join(METHODS)}",
            "a trainer with rollouts needs groups and an audited reward on record: use LedgerGRPOTrainer, docs/own-script.md",
        )
    for name, needed, why in REQUIRED:
        if getattr(trainer.args, name, needed) != needed:
            raise _refused(f"args.{name}", why)
    if trainer.args.n_gpu > 1:
        raise _refused("args.n_gpu", "one process drives several accelerators: make one visible")
    if trainer.is_deepspeed_enabled or trainer.is_fsdp_enabled:
        raise _refused("args", "its weights are in pieces (DeepSpeed or FSDP)")
    if trainer.model_init is not None:
        raise _refused("model_init", "its model is made anew when training begins")
    if str(trainer.args.optim).rpartition(".")[2].lower() in ("lomo", "adalomo"):
        raise _refused("args.optim", "the optimizer changes weights within the backward pass")
    return method


def settings_of(trainer: Any, weights: LiveWeights) -> dict[str, Any]:
    """Every setting that has meaning, flat, real numbers as text."""
    named: dict[str, Any] = dict(_flat("", trainer.args.to_dict()))
    if weights.adapter is not None:
        adapter = trainer.model.peft_config[weights.adapter].to_dict()
        named |= dict(_flat("adapter.", adapter))
    kinds = {
        "trainer": trainer,
        "collator": trainer.data_collator,
        "optimizer.given": trainer.optimizer,
        "reference": getattr(trainer, "ref_model", None),
    }
    named |= {name: type(item).__name__ for name, item in kinds.items() if item is not None}
    named["dtype"] = str(trainer.model.dtype).removeprefix("torch.")
    named["attention"] = str(getattr(trainer.model.config, "_attn_implementation", None))
    named["deterministic"] = torch.are_deterministic_algorithms_enabled()
    return dict(sorted(named.items()))


def settings_digest(body: dict[str, Any], refs: dict[str, Any], base: Record) -> str:
    """What tells a plan from another: see `ledger.twins`."""
    fresh = fresh_digest(body["method"], body["settings"], str(refs["split"]), base.body["tree"])
    return descended_digest(fresh, "weights", str(refs["parent"])) if "parent" in refs else fresh


def plan_body(
    trainer: Any,
    method: str,
    weights: LiveWeights,
    refs: dict[str, str | list[str]],
    rows: AdoptedRows,
    budget: int,
) -> dict[str, Any]:
    """The body of a plan for a trainer as it stands, but for its settings digest (`settings_digest`)."""
    settings = settings_of(trainer, weights)
    start = "weights" if "parent" in refs else "fresh"
    code, warnings = _code()
    read = trainer.args.train_batch_size * trainer.args.gradient_accumulation_steps * budget
    here = machine()
    return {
        "method": method,
        "settings": settings,
        "libraries": library_versions(),
        "code": code,
        "hardware": {
            "processor": here.processor,
            "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
            "threads": torch.get_num_threads(),
        },
        "seeds": _seeds(trainer.args),
        "budget_updates": budget,
        "budget_datums": read,
        "start": start,
        "rows": {
            "input": len(rows.digests),
            "effective": len(rows.digests),
            "truncated": _at_the_limit(trainer),
            "dropped": 0,
        },
        "warnings": warnings + ([DECODED] if rows.decoded else []),
    }


def registered_base(
    ledger: Ledger,
    weights: LiveWeights,
    tokenizer: Any,
    shelf: Path,
    licence: str = UNKNOWN_LICENCE,
) -> Record:
    """The base model's record: of the folder that it came from, where its tensors are that folder's, else of a copy.

    The copy of a model that came from memory lies on the shelf, so that evaluations find it.

    Raises:
        EvidenceError: `TENSORS_INVALID`, a file of the folder is broken.
    """
    tensors = weights.whole()
    named = Path(str(weights.base.config.name_or_path or "nowhere"))
    found = _described(named) if named.is_dir() else None
    if found is not None and is_of_folder(tensors, named):
        folder, source = named, "folder that the script named"
    else:
        folder, found = _shelved(weights, tensors, tokenizer, shelf)
        source = "memory of the script that trained"
    known = [item for item in ledger.of_kind("model.registered") if item.body["tree"] == found.tree]
    if known:
        remember(shelf, found.tree, folder)
        return known[-1]
    title = named.name if named.name != "nowhere" else type(weights.base).__name__
    return add_folder(
        ledger, folder, shelf, name=title, licence=licence, source=source, revision=None
    )


def _described(folder: Path) -> ModelFolder | None:
    """A folder that may be loaded; None where it holds links or formats that run code, as caches do."""
    try:
        return describe(folder)
    except EvidenceError as error:
        if error.code not in ("MODEL_UNSAFE", "UNSAFE_PATH"):
            raise
        return None


def _shelved(
    weights: LiveWeights, tensors: dict[str, Any], tokenizer: Any, shelf: Path
) -> tuple[Path, ModelFolder]:
    """The base model written to the shelf under its own digest."""
    shelf.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="adopted-", dir=shelf) as scratch:
        made = Path(scratch) / "model"
        plain = {name: item.detach().cpu().contiguous() for name, item in tensors.items()}
        weights.base.save_pretrained(made, state_dict=plain)
        tokenizer.save_pretrained(made)
        found = describe(made)
        folder = place(shelf, found.tree)
        if not folder.exists():
            shutil.move(made, folder)
    return folder, found


def _flat(prefix: str, values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if name in _LEFT_OUT or name.endswith(_ENDS_LEFT_OUT) or name.startswith(_STARTS_LEFT_OUT):
            continue
        full = f"{prefix}{name}"
        if isinstance(value, dict) and not all(_SLUG.fullmatch(str(key)) for key in value):
            yield full, str(sorted((str(key), str(item)) for key, item in value.items()))
        elif isinstance(value, dict):
            yield from _flat(f"{full}.", {str(key): item for key, item in value.items()})
        elif value is not None:
            yield full, _plain(value)


def _plain(value: Any) -> Any:
    """A value as a record holds it: lists of one type, real numbers as text, a file as its digest."""
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return real(value) if math.isfinite(value) else str(value)
    if isinstance(value, set | frozenset):
        return sorted(str(item) for item in value)
    if isinstance(value, list | tuple):
        whole = all(type(item) is int for item in value)
        return list(value) if whole else [str(_plain(item)) for item in value]
    text = str(value)
    if os.sep in text and Path(text).is_file():
        return digest_file(Path(text))[0]
    return text


def _code() -> tuple[dict[str, str], list[str]]:
    """Digests of our code and of the script that runs, and a warning where that is no file."""
    digests = code_digests()
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if file is None or not Path(file).is_file():
        return digests, [NO_SCRIPT]
    return {**digests, "script": sha256(Path(file).read_bytes())}, []


def _seeds(args: Any) -> dict[str, int]:
    seeds = {"training": int(args.seed)}
    if args.data_seed is not None:
        seeds["data"] = int(args.data_seed)
    return seeds


def _at_the_limit(trainer: Any) -> int:
    """How many rows have as many tokens as the limit allows: those that may have been cut off."""
    limit = getattr(trainer.args, "max_length", None)
    if limit is None or "input_ids" not in trainer.train_dataset.column_names:
        return 0
    return sum(len(ids) >= limit for ids in trainer.train_dataset["input_ids"])


def _refused(field: str, why: str, hint: str | None = None) -> UsageError:
    return UsageError("ADOPTION_REFUSED", why, field=field, hint=hint)
