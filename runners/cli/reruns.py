"""`evidence audit draw` and `evidence audit run`: what is run again, and what came of it."""

from __future__ import annotations

import secrets
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from ledger.errors import EvidenceError
from runners.cli import render
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledger.record import Record
    from verifiers.judgement.draws import Escape, Target

_ABOUT = ("candidate.nominated", "study.registered")


@click.command(cls=Verb, example="evidence audit draw 4f2a81 --key auditor.pem")
@click.argument("about", metavar="STUDY|NOMINATION")
@pass_app
def draw(app: App, about: str) -> None:
    """Draw what is run again of a nomination: updates, and cases of every arm and pass of its test.

    How many is the policy's to say. Takes a key with role audit and no other. What is hit follows from the tree root
    over this very record, so nobody knew it before. Draw after the test was evaluated: what comes later is not drawn from.
    """
    from runners.assess.drawing import make_draw
    from verifiers.judgement.draws import FORGED_SHARES, escapes
    from verifiers.judgement.reruns import back_from, strata_of, targets_of
    from verifiers.replay.view import View

    with app.open_ledger() as ledger:
        record = make_draw(ledger, ledger.get(about, *_ABOUT), secrets.token_hex(32))
        view = View(ledger, ledger.blobs)
        strata = strata_of(record, list(back_from(record, view)), view)
        targets = targets_of(record.id, view)
    chances = escapes(strata, FORGED_SHARES)
    app.emit(
        {
            "draw": record.id,
            "drawn_from": record.seq + 1,
            "targets": [
                {"index": item.index, "role": item.role, "record": item.record, "case": item.case}
                for item in targets
            ],
            "members": sum(len(item.members) for item in strata),
            "escape": [
                {"forged": item.forged, "one": float(item.one), "every": float(item.every)}
                for item in chances
            ],
        },
        _drawn(record, targets, chances),
        next_step=f"evidence audit run {render.short(record.id)}",
    )


def _drawn(record: Record, targets: Sequence[Target], chances: Sequence[Escape]) -> list[str]:
    counts = Counter(item.role for item in targets)
    rows = [
        (f"{float(item.forged):.0%}", f"{float(item.one):.4f}", f"{float(item.every):.3g}")
        for item in chances
    ]
    return [
        *render.fields(
            [
                ("draw", render.short(record.id)),
                ("root over", f"{record.seq + 1:,} records"),
                *((f"{role} targets", str(counts[role])) for role in ("update", "arm", "pass")),
            ]
        ),
        *(
            []
            if counts["arm"]
            else ["no arm stands under a review of it yet: draw again after the test"]
        ),
        "",
        "chance that a forgery escapes, by the share that is forged",
        *render.table(("forged", "in one place", "everywhere alike"), rows),
    ]


@click.command(cls=Verb, example="evidence audit run 4f2a81 --key auditor.pem")
@click.argument("about", metavar="DRAW|NOMINATION|STUDY")
@pass_app
def run(app: App, about: str) -> None:
    """Run again what a draw hits, from bytes, and record for each target whether it agreed.

    Takes a key with role audit and no other. What has its record already is not run again. Exits with 1 where
    something disagreed.
    """
    from runners.assess.asking import Place
    from runners.assess.drawing import draw_of
    from runners.assess.rerun import run_again
    from runners.cli.evaluation import teller
    from runners.prepare.shelf import default_shelf

    with app.open_ledger() as ledger, app.progress("running again", 100) as step:
        made = draw_of(ledger, ledger.get(about, "draw.made", *_ABOUT))
        place = Place(default_shelf(), app.ledger_path / "work" / "audit")
        run_again(ledger, made, place, teller(app, step))
        checks = ledger.referrers(made.id, "draw", "check.reproduced")
    wrong = [item for item in checks if not item.body["agreed"]]
    app.emit(
        {
            "draw": made.id,
            "checks": len(checks),
            "agreed": len(checks) - len(wrong),
            "disagreed": [_result(item) for item in wrong],
        },
        _lines(made, checks, wrong),
        next_step="evidence study decide STUDY",
        failure=_failure(wrong),
    )


def _result(item: Record) -> dict[str, Any]:
    return {"check": item.id, "target": _target(item)} | {
        name: item.body[name] for name in ("index", "case", "detail", "changed", "processor")
    }


def _target(item: Record) -> str:
    return next(str(item.ref(role)) for role in ("update", "arm", "pass") if item.ref(role))


def _lines(made: Record, checks: Sequence[Record], wrong: Sequence[Record]) -> list[str]:
    rows = [
        (render.short(_target(item)), item.body["case"] or "", item.body["detail"])
        for item in wrong
    ]
    return [
        *render.fields(
            [
                ("draw", render.short(made.id)),
                ("run again", str(len(checks))),
                ("agreed", str(len(checks) - len(wrong))),
            ]
        ),
        *(["", *render.table(("target", "case", "what differs"), rows)] if rows else []),
    ]


def _failure(wrong: Sequence[Record]) -> EvidenceError | None:
    if not wrong:
        return None
    first = wrong[0]
    return EvidenceError(
        "NOT_REPRODUCED",
        f"{len(wrong)} re-run(s) did not give what was recorded: {first.body['detail']}",
        record=_target(first),
        seq=first.seq,
    )
