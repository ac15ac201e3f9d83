"""What a plan says of its rows: the chat template in effect, the rows that are cut or dropped, the encoding of the rest.

The counting itself happens in a process of its own (`runners.train.preflight_child`).
"""

from __future__ import annotations

import json
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.blobs import JSON_LINES, TEXT
from ledger.digests import sha256
from ledger.errors import EvidenceError, UsageError
from ledger.records.base import Blob
from runners.child import Event, Reply, run_child
from runners.train.bounds import SECONDS, whole_seconds
from runners.train.preflight import CUT
from runners.train.templates import in_effect, model_template, template_text
from verifiers.data.identity import rows_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ledger.book import Ledger
    from ledger.record import Record
    from runners.train.config import SftSettings

CHILD = "runners.train.preflight_child"
TRUNCATED = "rows lose tokens to max_length"
UNENDED = (
    "the chat template's markers leave the end of a turn out: the model does not learn to stop"
)


@dataclass(frozen=True)
class Kept:
    """Bytes that a record will name: the blob as it stands in the body, and what to put where it lies."""

    blob: Blob
    data: bytes

    @classmethod
    def of(cls, data: bytes, media_type: str, count: int | None = None) -> Kept:
        """Bytes as a blob that is not kept yet."""
        blob = Blob(digest=sha256(data), size=len(data), media_type=media_type, count=count)
        return cls(blob, data)


def template_of(
    ledger: Ledger, model: Record, folder: Path, settings: SftSettings, given: str | None
) -> str:
    """The text of the chat template of a plan: given, named by its settings, or the model's own.

    Args:
        ledger: where a template lies that an earlier plan named.
        model: its record.
        folder: the model's.
        settings: `chat_template` names the template by digest; None for the model's own.
        given: its text, where it was just read from a file.

    Raises:
        UsageError: `TEMPLATE_MISSING`.
        EvidenceError: `TEMPLATE_INVALID`, `MODEL_UNSAFE`; `BLOB_MISSING`, the ledger does not have the named template.
    """
    if given is not None:
        return given
    if settings.chat_template is not None:
        return template_text(ledger.blobs.read(settings.chat_template))
    return model_template(folder, str(model.body["name"]))


def counted(
    folder: Path,
    rows: bytes,
    settings: SftSettings,
    template: str,
    tell: Callable[[int, int], None],
) -> dict[str, Any]:
    """The figures of `runners.train.preflight.preflight`, from a process of its own.

    Args:
        folder: the model's.
        rows: JSON Lines of chat rows.
        settings: of the run.
        template: the chat template's text.
        tell: called a few times a second with rows done and all rows.

    Raises:
        UsageError: `ROW_UNTRAINABLE`, no row is left; `TEMPLATE_UNSTABLE`, see `in_effect`.
        EvidenceError: `TEMPLATE_UNBOUNDED`, the template did not come to an end; `TEMPLATE_INVALID`, `TEMPLATE_UNSTABLE`;
            `CHILD_DIED`.
        KeyboardInterrupt: Ctrl-C.
    """
    effective = in_effect(template, settings.template_date)

    def answer(event: Event) -> Reply:
        tell(int(event["done"]), int(event["total"]))
        return {}

    with tempfile.TemporaryDirectory(prefix="evidence-plan-") as name:
        scratch = Path(name)
        (scratch / "rows.jsonl").write_bytes(rows)
        (scratch / "template.jinja").write_bytes(effective.encode())
        job = {
            "model": str(folder),
            "rows": str(scratch / "rows.jsonl"),
            "settings": settings.effective(),
            "template": str(scratch / "template.jinja"),
            "at": str(scratch / "at"),
            "seconds": SECONDS,
            "whole": whole_seconds(len(rows.splitlines())),
            "output": str(scratch / "figures.json"),
        }
        done = run_child(CHILD, job, answer, scratch / "log", threads=1)
        if done.outcome == "stopped":
            raise KeyboardInterrupt
        if done.code is not None:
            raise _failed(done.code, done.returncode, done.end, scratch, rows)
        figures: dict[str, Any] = json.loads((scratch / "figures.json").read_bytes())
        return figures


def _failed(
    code: str, status: int, end: Event, scratch: Path, rows: bytes
) -> EvidenceError | UsageError:
    """The child's own error; where the system ended it in a row, that row's."""
    at = scratch / "at"
    if code != "CHILD_DIED" or not at.exists() or not at.read_bytes().strip():
        if code == "CHILD_DIED":
            lines = (scratch / "log").read_text(encoding="utf-8", errors="replace").splitlines()
            return EvidenceError(code, f"counting the rows: {lines[-1][:300] if lines else status}")
        told = {name: end[name] for name in ("field", "hint") if name in end}
        family = UsageError if code == "ROW_UNTRAINABLE" else EvidenceError
        return family(code, str(end.get("message", code)), **told)
    number = int(at.read_bytes())
    row = json.loads(rows.splitlines()[number])
    named = row.get("id") or str(row.get("row", ""))[7:19]
    why = (
        f"took more than {SECONDS} s of processor time, or all rows up to it more than"
        f" {whole_seconds(len(rows.splitlines()))} s"
        if status == -signal.SIGXCPU
        else f"ended the process with status {status}"
    )
    return EvidenceError(
        "TEMPLATE_UNBOUNDED", f"row {named}: the chat template {why}", field="chat_template"
    )


def reading(
    model: Record, template: str, figures: dict[str, Any]
) -> tuple[dict[str, Any], list[Kept]]:
    """What `plan.prepared` says under `reading`, and the bytes that it names."""
    kept = [Kept.of(template.encode(), TEXT)]
    listed = figures["listed"]
    if listed:
        kept.append(Kept.of(rows_bytes(listed), JSON_LINES, len(listed)))
    body = {
        "tokenizer": model.body["tokenizer"],
        "template": kept[0].blob.model_dump(),
        "encoding": figures["encoding"],
        "reasons": figures["reasons"],
        "listed": kept[1].blob.model_dump() if listed else None,
    }
    return body, kept


def keep(ledger: Ledger, items: Sequence[Kept]) -> None:
    """Put the bytes that a record will name."""
    for item in items:
        ledger.blobs.put(item.data, item.blob.media_type, item.blob.count)


def warnings_of(figures: dict[str, Any]) -> list[str]:
    """What a person should know about the rows before anything runs."""
    rows, reasons = figures["rows"], figures["reasons"]
    found = []
    if rows["truncated"]:
        cut = reasons.get("labels_cut", 0)
        found.append(f"{rows['truncated']} of {rows['input']} {TRUNCATED}, {cut} of them labels")
    if rows["dropped"]:
        why = ", ".join(f"{name} {count}" for name, count in reasons.items() if name not in CUT)
        found.append(f"{rows['dropped']} of {rows['input']} rows cannot be trained on: {why}")
    if figures["unended"]:
        found.append(f"{figures['unended']} of {rows['input']} rows: {UNENDED}")
    return found


def template_job(ledger: Ledger, plan: Record, folder: Path) -> dict[str, Any]:
    """What a child's job says of the plan's rendering: the template's file in a folder, the digest of the encoding.

    Raises:
        LedgerError: `BLOB_MISSING`, `BLOB_WRONG`; see `in_effect`.
    """
    told = plan.body.get("reading")
    if told is None:
        return {"template": None, "encoding": None}
    path = folder / "template.jinja"
    text = template_text(ledger.blobs.read(told["template"]["digest"]))
    path.write_bytes(in_effect(text, plan.body["settings"].get("template_date")).encode())
    return {"template": str(path), "encoding": told["encoding"]}
