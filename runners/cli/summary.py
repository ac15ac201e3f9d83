"""A record in a few words: which fields of its body tell it from others of its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runners.cli import render

if TYPE_CHECKING:
    from ledger.record import Record

FIELDS: dict[str, tuple[str, ...]] = {
    "ledger.created": ("root_key",),
    "key.enrolled": ("owner", "roles"),
    "key.revoked": ("key", "from_seq"),
    "root.rotated": ("new_key",),
    "policy.declared": ("seeds", "alpha", "reviewers"),
    "ledger.restored": ("lost_from", "why"),
    "note.added": ("text",),
    "source.ingested": ("name", "licence"),
    "dataset.parsed": ("name", "accepted", "rejected"),
    "split.declared": ("method", "roles"),
    "leakage.audited": ("verdict", "pairs"),
    "leakage.accepted": ("why",),
    "reward.audited": ("name", "pairs", "inversions"),
    "model.registered": ("name", "family"),
    "plan.prepared": ("method", "budget_updates", "start", "fork"),
    "run.launched": ("host", "process"),
    "run.resumed": ("from_update", "exact"),
    "run.stop_requested": ("why",),
    "run.ended": ("outcome", "failure"),
    "run.reconciled": ("found", "by"),
    "rollout.group": ("members",),
    "rollout.rejected": ("code",),
    "batch.built": ("step", "datums", "trainable_tokens"),
    "update.acknowledged": ("step", "loss", "gradient_norm"),
    "checkpoint.published": ("step", "tree"),
    "checkpoint.restored": ("mode", "fork"),
    "operation.intended": ("provider",),
    "operation.settled": ("outcome", "peer"),
    "study.registered": ("seeds", "descriptive"),
    "protocol.registered": ("name", "role"),
    "judge.qualified": ("right", "total", "qualified"),
    "arm.transcribed": ("cases", "tokens", "truncated"),
    "judge.passed": ("pass_kind", "order", "undecided"),
    "evaluation.completed": ("success", "failure", "undecided", "diagnostic"),
    "comparison.made": ("recommendation", "descriptive"),
    "candidate.nominated": ("chosen",),
    "test.reviewed": ("fresh",),
    "draw.made": ("updates_per_seed", "case_share"),
    "check.reproduced": ("agreed", "index"),
    "gate.decided": ("passed",),
    "promotion.approved": ("reviewer",),
    "promotion.granted": ("scope",),
    "promotion.refused": ("reasons",),
    "promotion.withdrawn": ("why",),
    "blob.withheld": ("digest", "why"),
}


def summary(record: Record) -> str:
    """The telling fields of a record's body, e.g. `step 3, loss 1.25`; empty where it has none."""
    pairs = ((name, record.body.get(name)) for name in FIELDS.get(record.kind, ()))
    words = [_phrase(name, value) for name, value in pairs if value is not None]
    redone = record.ref("replays")
    return ", ".join(words if redone is None else [*words, f"redoes {render.short(redone)}"])


def _phrase(name: str, value: Any) -> str:
    if name == "diagnostic":
        return f"one seed: descriptive; diagnostic: {', '.join(value)}"
    if isinstance(value, bool):
        return name if value else f"not {name}"
    if isinstance(value, list):
        return ", ".join(_item(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{_item(value[key])} {key}" for key in sorted(value))
    text = _item(value)
    bare = str(value).startswith(("sha256:", "ed25519:")) or text[:1].isdigit()
    return f"{name.replace('_', ' ')} {text}" if bare else text


def _item(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("code") or value.get("name") or "…")
    text = str(value)
    if text.startswith(("sha256:", "ed25519:")):
        return render.short(text)
    return f"{float(text):.4g}" if _is_real(text) else text


def _is_real(text: str) -> bool:
    digits = text.removeprefix("-").replace(".", "", 1).replace("e-", "", 1).replace("e+", "", 1)
    return "." in text and digits.isdecimal()
