"""A minimal valid body of every kind, as a table.

The bodies are plain data: what depends on a ledger's state (seqs, counters, weight states, ids of other
records) is put in by `world.World`. `BLOBS` holds the bytes of every blob that a body names.
"""

from __future__ import annotations

from typing import Any

from ledger import canonical
from ledger.digests import FileEntry, sha256, tree_digest
from ledger.ed25519 import PrivateKey

BLOBS: dict[str, bytes] = {}
ZERO = "0" * 64
KEY = PrivateKey.from_seed(b"sample key of the sample bodies!")


def digest(name: str) -> str:
    """A digest that stands for something called `name`."""
    return sha256(name.encode())


def blob(name: str, data: bytes | None = None) -> dict[str, Any]:
    """A blob of bytes that are its own name, unless others are given."""
    content = name.encode() if data is None else data
    BLOBS[sha256(content)] = content
    return {"digest": sha256(content), "size": len(content), "media_type": "text/plain"}


def weights(step: int) -> dict[str, str]:
    """The state of the trainable weights after a number of updates."""
    return {"scheme": "tensors", "value": digest(f"weights after {step}")}


DERIVED = digest("derived when it is signed")
"""Stands where the settings digest of a plan will."""
_TENSORS = blob("tensors of a checkpoint")


def weights_left(step: int) -> dict[str, Any]:
    """What a run that completed after a number of updates leaves."""
    return {"state": weights(step), "tensors": _TENSORS, "parameters": 3, "norm": "1.0"}


_FILE = {"path": "model.safetensors", "size": 12, "digest": blob("weights file")["digest"]}
_GATE = {"name": "seeds", "value": "6", "threshold": "6", "passed": True, "code": None}

IDENTITY: dict[str, dict[str, Any]] = {
    "ledger.created": {"format": 1, "root_key": KEY.id, "root_public": KEY.public.hex()},
    "key.enrolled": {
        "key": KEY.id,
        "public_key": KEY.public.hex(),
        "roles": ["ingest"],
        "from_seq": 1,
        "owner": "somebody",
    },
    "key.revoked": {"key": KEY.id, "from_seq": 1, "reason": "its owner left"},
    "root.rotated": {
        "old_key": KEY.id,
        "new_key": KEY.id,
        "new_public": KEY.public.hex(),
        "acceptance": "0" * 128,
    },
    "policy.declared": {
        "seeds": 6,
        "alpha": "0.05",
        "power": "0.8",
        "cases": 32,
        "undecided_share": "0.05",
        "reviewers": 1,
        "reruns_updates_per_seed": 3,
        "reruns_case_share": "0.05",
        "minimum_gain": "0.02",
        "judge_accuracy": "0.8",
        "judge_family": "other",
    },
    "ledger.restored": {
        "lost_from": 1,
        "high_water": {"size": 2, "root": ZERO},
        "why": "the disk failed",
    },
    "snapshot.recorded": {"state": blob("state"), "tree": []},
    "note.added": {"text": "seen"},
}

DATA: dict[str, dict[str, Any]] = {
    "source.ingested": {
        "name": "dialogues",
        "content": blob("source bytes"),
        "licence": "Apache-2.0",
        "origin": "written for this test",
        "review": {"status": "reviewed", "reviewer": "a person"},
    },
    "dataset.parsed": {
        "name": "dialogues",
        "format": "chat-jsonl",
        "parser": "chat/1",
        "rows": blob("rows"),
        "identity": digest("rows identity"),
        "accepted": 4,
        "rejected": 0,
        "reasons": {},
        "rejects": None,
        "duplicates": 0,
    },
    "split.declared": {
        "assignment": blob("assignment"),
        "roles": {"train": 2, "validation": 1, "test": 1},
        "method": "fractions",
        "by": ["group_id"],
        "fractions": [50, 25, 25],
        "seed": 0,
        "groups": 4,
    },
    "leakage.audited": {
        "method": "leakage/1",
        "levels": {"exact": 0, "normalised": 0, "masked": 0, "near_duplicate": 0, "annotation": 0},
        "entities": {},
        "pairs": 0,
        "findings": None,
        "verdict": "clean",
    },
    "leakage.accepted": {"why": "the two rows are greetings"},
    "reward.audited": {
        "name": "desk/1",
        "reward_version": 1,
        "code": blob("reward code"),
        "suite": blob("reward suite"),
        "pairs": 8,
        "inversions": 0,
        "findings": None,
    },
    "model.registered": {
        "name": "a small model",
        "family": "qwen",
        "architecture": "Qwen2ForCausalLM",
        "parameters": 1000,
        "files": [_FILE],
        "tree": tree_digest([FileEntry(_FILE["path"], _FILE["size"], _FILE["digest"])]),
        "tokenizer": digest("tokenizer"),
        "chat_template": digest("template"),
        "licence": "Apache-2.0",
        "source": "a folder",
        "revision": None,
        "hosted": False,
    },
}

RUN: dict[str, dict[str, Any]] = {
    "plan.prepared": {
        "method": "sft",
        "settings": {"learning_rate": "0.0001", "lora_dropout": "0.0"},
        "settings_digest": DERIVED,
        "libraries": {"torch": "2.13.0"},
        "code": {"runners/train": digest("code")},
        "hardware": {"processor": "a processor", "accelerator": None, "threads": 1},
        "seeds": {"data": 0},
        "budget_updates": 2,
        "budget_datums": 8,
        "start": "fresh",
        "rows": {"input": 2},
        "warnings": [],
    },
    "run.launched": {
        "host": "a-host",
        "process": 100,
        "start_token": "boot-1",
        "seen": {"size": 1, "root": ZERO},
    },
    "run.resumed": {
        "host": "a-host",
        "process": 101,
        "start_token": "boot-1",
        "from_update": 0,
        "exact": True,
    },
    "run.stop_requested": {"why": "enough"},
    "run.ended": {
        "outcome": "stopped",
        "detail": "asked to stop",
        "counters": {"groups": 0, "datums": 0, "updates": 0, "outcomes": 0},
        "rows": {"input": 2, "effective": 2, "truncated": 0, "dropped": 0},
        "not_established": ["that the model got better"],
        "metrics": None,
    },
    "run.reconciled": {"found": "dead", "by": "observation", "evidence": "the process is gone"},
}

LEARNING: dict[str, dict[str, Any]] = {
    "rollout.group": {
        "task": digest("task"),
        "script": digest("script"),
        "members": 2,
        "samples": blob("samples"),
        "state": weights(0),
        "rewards": ["1.0", "0.0"],
        "advantages": ["1.0", "-1.0"],
        "dialect": "grpo",
        "sampler": {"temperature": "1.0"},
        "stops": {"eos": 2},
        "trace": None,
    },
    "rollout.rejected": {"code": "reward_failed", "detail": "the scorer raised", "seen": None},
    "batch.built": {
        "step": 1,
        "digest": digest("batch 1"),
        "rows": [digest("row a"), digest("row b")],
        "datums": 2,
        "trainable_tokens": 10,
    },
    "update.acknowledged": {
        "step": 1,
        "learning_rate": "0.0001",
        "loss": "2.5",
        "gradient_norm": "0.7",
        "before": weights(0),
        "after": weights(1),
    },
    "checkpoint.published": {
        "step": 1,
        "files": [_FILE],
        "tree": digest("checkpoint tree"),
        "state": weights(1),
        "completeness": {
            "weights": True,
            "optimizer": True,
            "scheduler": True,
            "random": True,
            "sampler": True,
        },
        "spent_updates": 1,
        "spent_datums": 2,
    },
    "checkpoint.restored": {
        "mode": "exact",
        "state": weights(1),
        "digests": {_FILE["path"]: _FILE["digest"]},
        "fork": False,
    },
    "operation.intended": {
        "provider": "a-provider",
        "request": digest("request"),
        "idempotency_key": "op-1",
        "expected_policy": None,
        "price": None,
    },
    "operation.settled": {
        "outcome": "acknowledged",
        "peer": "loopback",
        "response": digest("response"),
        "provider_ids": {},
        "detail": "",
    },
}

EVALUATION: dict[str, dict[str, Any]] = {
    "study.registered": {
        "name": "more right answers than the model that is served",
        "seeds": [1, 2, 3, 4, 5, 6],
        "streams": 1,
        "settings": {"learning_rate": "0.0001"},
        "settings_digest": sha256(canonical.encode({"learning_rate": "0.0001"})),
        "tests": ["sign_flip", "bootstrap_seeds_cases"],
        "comparisons": 1,
        "alpha": "0.05",
        "minimum_gain": "0.03",
        "effect": "0.2",
        "spread": "0.0",
        "baseline_rate": "0.5",
        "cases": 64,
        "families": 4,
        "rollouts": 1,
        "undecided_share": "0.05",
        "guards": [],
        "attainable_gain": "0.5",
        "minimum_p": "0.03125",
        "best_power": "1.0",
        "power": "0.933",
        "simulation": {"method": "gate-power/1", "seed": 0, "trials": 1000, "replicates": 1000},
        "descriptive": False,
    },
    "protocol.registered": {
        "name": "validation desk and dialogues",
        "role": "validation",
        "cases": blob("cases"),
        "identity": digest("cases identity"),
        "case_kinds": {"desk": 1, "dialogue": 1},
        "families": {"refund": 2},
        "generation": {"max_new_tokens": 64},
        "judging": "json",
        "passes": ["criteria_reversal"],
        "rubric": blob("rubric"),
        "undecided_share": "0.05",
        "guards": [],
    },
    "judge.qualified": {
        "cases": blob("labelled cases"),
        "shipped": False,
        "asked": "json",
        "rubric": blob("rubric"),
        "judge_weights": digest("judge weights"),
        "engine": {"name": "transformers"},
        "raw_forward": blob("raw judge output"),
        "raw_reversed": blob("raw judge output"),
        "right": 63,
        "total": 64,
        "undecided": 0,
        "flips": [1, 64],
        "lower": "0.9167",
        "upper": "0.9973",
        "floor": "0.8",
        "reasons": [],
        "qualified": True,
    },
    "arm.transcribed": {
        "transcripts": blob("transcripts"),
        "cases": 2,
        "prompts": digest("prompts"),
        "tokens": 20,
        "truncated": 0,
        "weights": digest("weights that spoke"),
        "engine": {"name": "transformers"},
    },
    "judge.passed": {
        "pass_kind": "criteria_reversal",
        "order": "forward",
        "judge_weights": digest("judge weights"),
        "raw_input": blob("judge input"),
        "raw_output": blob("judge output"),
        "verdicts": blob("verdicts"),
        "undecided": 0,
        "qualified": False,
    },
    "evaluation.completed": {
        "outcomes": blob("outcomes"),
        "cases": 2,
        "success": 1,
        "failure": 1,
        "undecided": 0,
        "violations": 0,
        "truncated": 0,
        "families": {"refund": [1, 2]},
        "flips": None,
        "diagnostic": [],
    },
    "comparison.made": {
        "candidates": [
            {
                "evaluation": digest("an evaluation"),
                "paired": {"both": 1, "candidate_only": 1, "baseline_only": 0, "neither": 0},
                "mcnemar_p": "1.0",
                "gain": "0.5",
                "guards": {},
                "eligible": True,
            }
        ],
        "baselines": {},
        "recommendation": "none",
        "recommended": None,
        "descriptive": True,
        "notes": [],
    },
}

PROMOTION: dict[str, dict[str, Any]] = {
    "candidate.nominated": {"chosen": digest("a checkpoint"), "why": "best on validation"},
    "test.reviewed": {
        "fresh": True,
        "findings": None,
        "look": 1,
        "paraphrase": "none found",
        "contamination": "none known",
    },
    "draw.made": {"nonce": ZERO, "updates_per_seed": 3, "case_share": "0.05"},
    "check.reproduced": {
        "drawn_from": 3,
        "index": 0,
        "case": None,
        "changed": [],
        "agreed": True,
        "detail": "equal digests",
        "processor": "another processor",
    },
    "gate.decided": {"gates": [_GATE], "passed": True},
    "promotion.approved": {"reviewer": KEY.id, "why": "read the dossier"},
    "promotion.granted": {"tree": digest("checkpoint tree"), "scope": "shadow traffic"},
    "promotion.refused": {
        "reasons": [{"code": "STUDY_MISSING", "message": "no study", "hint": "register one"}]
    },
    "promotion.withdrawn": {"why": "a source was withdrawn"},
    "blob.withheld": {"digest": digest("source bytes"), "why": "personal data"},
}

BODIES: dict[str, dict[str, Any]] = {
    **IDENTITY,
    **DATA,
    **RUN,
    **LEARNING,
    **EVALUATION,
    **PROMOTION,
}


def body(kind: str, **changes: Any) -> dict[str, Any]:
    """A kind's minimal body of its own, with fields changed."""
    plain: dict[str, Any] = canonical.decode(canonical.encode(BODIES[kind]))
    return {**plain, **changes}
