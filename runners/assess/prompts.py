"""The chat template that a protocol's prompts are rendered with, and whether a checkpoint was trained with the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger.digests import sha256
from ledger.errors import UsageError
from runners.train.templates import in_effect, model_template, template_text

if TYPE_CHECKING:
    from pathlib import Path

    from ledger.book import Ledger
    from ledger.record import Record


def write_template(
    ledger: Ledger, protocol: Record, base: Record, folder: Path, path: Path, plan: Record | None
) -> None:
    """Write the template in effect to a file: the protocol's, else the base model's own.

    Args:
        ledger: open for reading or writing.
        protocol: a registered protocol.
        base: the model that speaks, or that an adapter is put on.
        folder: where it lies.
        path: the file to write.
        plan: of the run that published the checkpoint; None for a model as it is.

    Raises:
        UsageError: `TEMPLATE_OTHER`, the checkpoint was trained with another template or told another day;
            `TEMPLATE_MISSING`, `TEMPLATE_UNSTABLE`.
        EvidenceError: `TEMPLATE_INVALID`, `TEMPLATE_UNSTABLE`; `BLOB_MISSING`, `BLOB_WRONG`.
    """
    blob, day = protocol.body.get("template"), protocol.body["generation"].get("template_date")
    if blob is not None:
        text = template_text(ledger.blobs.read(blob["digest"]))
    else:
        text = model_template(folder, str(base.body["name"]))
    effective = in_effect(text, day)
    if plan is not None:
        _check_same(plan, sha256(text.encode()), day, asks=effective != text)
    path.write_bytes(effective.encode())


def _check_same(plan: Record, digest: str, day: str | None, *, asks: bool) -> None:
    told: dict[str, Any] | None = plan.body.get("reading")
    if told is None:  # a plan of an earlier version: it had the model's own template
        return
    pairs: list[tuple[str, str | None, str | None]] = [
        ("chat_template", told["template"]["digest"], digest)
    ]
    if asks:
        pairs.append(("template_date", plan.body["settings"].get("template_date"), day))
    for field, trained, shown in pairs:
        if trained != shown:
            raise UsageError(
                "TEMPLATE_OTHER",
                f"the checkpoint was trained with another {field} than the protocol's prompts have",
                field=field,
                expected=trained,
                actual=shown,
                hint=f"register a protocol with the {field} of the plan: evidence eval register CONFIG",
            )
