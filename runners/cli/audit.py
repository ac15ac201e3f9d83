"""`evidence audit`: what a reviewer looks at before a promotion, and what an auditor runs again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app
from runners.cli.reruns import draw, run

if TYPE_CHECKING:
    from collections.abc import Iterable

Item = dict[str, Any]
SHOWN = 8


@click.group(cls=Group)
def audit() -> None:
    """Audit what stands behind a checkpoint, and run it again."""


audit.add_command(draw)
audit.add_command(run)


@audit.command(example="evidence audit lineage 9c03de")
@click.argument("checkpoint")
@pass_app
def lineage(app: App, checkpoint: str) -> None:
    """Show on one screen what a checkpoint rests on.

    Its sources with licences and reviews, its splits, the leaks found or accepted, its updates, every look at
    a test set, what is missing for a promotion, and what is taken on faith. Nothing is recorded.
    """
    from runners.assess.lineage_audit import audit_lineage

    with app.read_ledger() as ledger:
        found = ledger.get(checkpoint, "checkpoint.published")
        result = audit_lineage(ledger, found)
    app.emit(
        result,
        _lines(result),
        next_step=f"evidence verify {render.short(found.id)} --level blobs",
    )


def _lines(result: Item) -> list[str]:
    head = render.fields(
        [
            ("checkpoint", f"{render.short(result['checkpoint'])} at step {result['step']}"),
            ("bytes", render.short(result["tree"])),
            ("suspect", result["suspect"]),
        ]
    )
    return [
        *head,
        *_section("models", ("name", "licence", "from"), map(_model, result["models"])),
        *_section(
            "sources",
            ("name", "licence", "review", "bytes", "withheld"),
            map(_source, result["sources"]),
        ),
        *_section("splits", ("split", "method", "roles"), map(_split, result["splits"])),
        *_section(
            "leaks", ("audit", "verdict", "touched", "accepted"), map(_leak, result["leaks"])
        ),
        *_section(
            "updates",
            ("run", "start", "outcome", "attempts", "on path", "live", "superseded"),
            map(_run, result["runs"]),
        ),
        *_section(
            "looks at tests",
            ("protocol", "cases", "by", "review", "before the checkpoint", "time"),
            map(_look, result["test_looks"]),
        ),
        *_promotion(result["promotion"]),
        *_faith(result),
    ]


def _section(title: str, headers: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> list[str]:
    found = list(rows)
    if not found:
        return ["", render.Styled(f"{title}: none", bold=True)]
    lines = render.table(headers, found[:SHOWN])
    if len(found) > SHOWN:
        lines.append(f"and {len(found) - SHOWN} more: --json shows all")
    return ["", render.Styled(title, bold=True), *(f"  {line}" for line in lines)]


def _model(item: Item) -> tuple[object, ...]:
    return item["name"], item["licence"], item["source"]


def _source(item: Item) -> tuple[object, ...]:
    review = item["review"] + (f" by {item['reviewer']}" if item["reviewer"] else "")
    return item["name"], item["licence"], review, render.short(item["bytes"]), item["withheld"]


def _split(item: Item) -> tuple[object, ...]:
    method = item["method"] + (f" by {', '.join(item['by'])}" if item["by"] else "")
    return render.short(item["split"]), method, _counts(item["roles"])


def _leak(item: Item) -> tuple[object, ...]:
    touched = _counts({**item["touched"], **item["entities"]}) or "nothing"
    return render.short(item["audit"]), item["verdict"], touched, item["why"]


def _run(item: Item) -> tuple[object, ...]:
    return (
        render.short(item["run"]),
        item["start"] + (", fork" if item["fork"] else ""),
        item["outcome"] or "not ended",
        item["attempts"],
        item["on_path"],
        item["live"],
        item["superseded"],
    )


def _look(item: Item) -> tuple[object, ...]:
    review = render.short(item["review"]) if item["review"] else None
    before = "yes" if item["before_checkpoint"] else "no"
    return (
        item["name"],
        item["cases"],
        render.short(item["answered_by"]),
        review,
        before,
        item["time"],
    )


def _promotion(item: Item) -> list[str]:
    if item["granted"]:
        end = f", withdrawn by {render.short(item['withdrawn'])}" if item["withdrawn"] else ""
        return ["", render.Styled(f"promoted by {render.short(item['granted'])}{end}", bold=True)]
    if not item["missing"]:
        return ["", render.Styled("missing for a promotion: nothing but its statements", bold=True)]
    rows = [f"  {reason['code']}: {reason['message']}" for reason in item["missing"]]
    return ["", render.Styled("missing for a promotion", bold=True), *rows]


def _faith(result: Item) -> list[str]:
    rows = [f"  {sentence} ({number})" for sentence, number in result["on_faith"].items()]
    rows += [
        f"  {kind} cannot be derived again by this version ({number})"
        for kind, number in result["underived"].items()
    ]
    return ["", render.Styled("taken on faith, whatever is verified", bold=True), *rows]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
