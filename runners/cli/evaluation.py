"""Commands about evaluation: register, run, compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from ledger.record import Record


@click.group(cls=Group)
def evaluation() -> None:
    """Put models to the same cases and compare them."""


@evaluation.command(example="evidence eval register eval.toml")
@click.argument("config", type=click.Path(path_type=Path))
@pass_app
def register(app: App, config: Path) -> None:
    """Choose the cases and how answers are scored, before any model sees them.

    CONFIG is a TOML or JSON file: split, judge, role (validation or test), desk_cases, dialogue_cases, and
    generation settings that differ from the defaults.
    """
    from runners.assess.protocols import read_config
    from runners.assess.protocols import register as record_protocol

    read = read_config(config)
    with app.open_ledger() as ledger:
        record = record_protocol(ledger, read)
    body = record.body
    app.emit(
        {
            "protocol": record.id,
            "role": body["role"],
            "cases": body["case_kinds"],
            "families": body["families"],
        },
        [
            *render.fields(
                [
                    ("protocol", render.short(record.id)),
                    ("role", body["role"]),
                    *((kind, str(count)) for kind, count in body["case_kinds"].items()),
                ]
            ),
            "",
            *render.table(
                ("family", "cases"),
                [(name, str(n)) for name, n in sorted(body["families"].items())],
            ),
        ],
        next_step=f"evidence eval run {render.short(record.id)} MODEL",
    )


@evaluation.command(
    name="run",
    example="evidence eval run 4f2a81 91c0de\nevidence eval run 4f2a81 91c0de --review 77ab12",
)
@click.argument("protocol")
@click.argument("subject", metavar="MODEL|CHECKPOINT")
@click.option("--review", "review_id", metavar="REVIEW", help="Read a test under this review.")
@click.option(
    "--again", is_flag=True, help="Look at a test once more; no promotion can rest on the result."
)
@pass_app
def run_evaluation(
    app: App, protocol: str, subject: str, review_id: str | None, again: bool
) -> None:
    """Put one model or checkpoint through a protocol.

    A test is read only under a review, by the models of its nomination.
    """
    from runners.assess.asking import Place
    from runners.assess.evaluate import evaluate
    from runners.assess.reviews import admit_look
    from runners.prepare.shelf import default_shelf

    with app.open_ledger() as ledger, app.progress("evaluating", 100) as step:
        place = Place(default_shelf(), app.ledger_path / "work" / "eval")
        cases = ledger.get(protocol, "protocol.registered")
        review = ledger.get(review_id, "test.reviewed") if review_id else None
        model = ledger.get(subject, "model.registered", "checkpoint.published")
        admit_look(ledger, cases, review, model, again=again)
        record = evaluate(ledger, cases, model, place, teller(app, step), review)
    body = record.body
    app.emit(
        {
            "evaluation": record.id,
            "cases": body["cases"],
            "success": body["success"],
            "failure": body["failure"],
            "undecided": body["undecided"],
            "violations": body["violations"],
            "truncated": body["truncated"],
            "families": body["families"],
            "flips": body["flips"],
            "diagnostic": body["diagnostic"],
            "descriptive": True,
        },
        [
            *render.fields(
                [("evaluation", render.short(record.id))]
                + [
                    (name, str(body[name]))
                    for name in (
                        "cases",
                        "success",
                        "failure",
                        "undecided",
                        "violations",
                        "truncated",
                    )
                ]
            ),
            "",
            *render.table(
                ("family", "right", "cases"),
                [
                    (name, str(pair[0]), str(pair[1]))
                    for name, pair in sorted(body["families"].items())
                ],
            ),
            *_standing(body),
        ],
        next_step=f"evidence eval compare BASELINE {render.short(record.id)}",
    )


STANDS_FOR = {
    "desk": "desk cases, scored by execution",
    "fixed_dialogue": "fixed dialogues, in which the customer never answers what the model said",
}


def _standing(body: dict[str, Any]) -> list[str]:
    """What an evaluation can and cannot show, in words."""
    diagnostic = [STANDS_FOR[name] for name in body["diagnostic"]]
    return [
        "one training seed: descriptive, no promotion can rest on it alone",
        *(f"diagnostic: {words}" for words in diagnostic),
    ]


def teller(app: App, step: Any) -> Any:
    """What shows the progress of a child: the bar, and a line at each quarter."""
    shown: dict[str, int] = {}

    def tell(what: str, done: int, total: int) -> None:
        step(0)
        if done == total or done - shown.get(what, 0) >= max(1, total // 4):
            shown[what] = done
            app.say(f"{what}: {done} of {total}")

    return tell


@evaluation.command(name="test", example="evidence eval test 77ab12")
@click.argument("review_id", metavar="REVIEW")
@click.option(
    "--again", is_flag=True, help="Look at a test once more; no promotion can rest on the result."
)
@pass_app
def run_test(app: App, review_id: str, again: bool) -> None:
    """Let a nomination's arms read the test that a reviewer signed: the baseline, then each checkpoint.

    All of them together are one look. What has its evaluation already is left alone, so a broken test goes on.
    """
    from runners.assess.asking import Place
    from runners.assess.evaluate import evaluate
    from runners.assess.reviews import admit_look, arm_under, readers
    from runners.prepare.shelf import default_shelf

    found: dict[str, Record] = {}
    with app.open_ledger() as ledger, app.progress("testing", 100) as step:
        review = ledger.get(review_id, "test.reviewed")
        cases = ledger.get(str(review.ref("protocol")), "protocol.registered")
        admit_look(ledger, cases, review, again=again)
        place = Place(default_shelf(), app.ledger_path / "work" / "eval")
        for subject in readers(ledger, review):
            arm = arm_under(ledger, review, subject)
            done = ledger.referrers(arm.id, "arm", "evaluation.completed") if arm else []
            tell = teller(app, step)
            found[subject.id] = (
                done[-1] if done else evaluate(ledger, cases, subject, place, tell, review)
            )
        nomination = ledger.get(str(review.ref("nomination")))
    rows = [
        (
            render.short(name),
            str(item.body["success"]),
            str(item.body["cases"]),
            render.short(item.id),
        )
        for name, item in found.items()
    ]
    app.emit(
        {
            "review": review.id,
            "protocol": cases.id,
            "evaluations": {name: item.id for name, item in found.items()},
        },
        render.table(("model", "right", "cases", "evaluation"), rows),
        next_step=f"evidence study decide {render.short(str(nomination.ref('study')))}",
    )


@evaluation.command(example="evidence eval compare 4f2a81 91c0de")
@click.argument("baseline")
@click.argument("evaluations", nargs=-1, required=True, metavar="EVALUATION...")
@pass_app
def compare(app: App, baseline: str, evaluations: tuple[str, ...]) -> None:
    """Hold evaluations against a baseline's, case by case."""
    from runners.assess.evaluate import compare as record_comparison

    kind = "evaluation.completed"
    with app.open_ledger() as ledger:
        record = record_comparison(
            ledger, ledger.get(baseline, kind), [ledger.get(item, kind) for item in evaluations]
        )
    body = record.body
    rows = [_row(item) for item in body["candidates"]]
    guards = [
        f"{render.short(item['evaluation'])}: {name}: {', '.join(cases[:5])}"
        + (f" and {len(cases) - 5} more" if len(cases) > 5 else "")
        for item in body["candidates"]
        for name, cases in item["guards"].items()
        if cases
    ]
    app.emit(
        {"comparison": record.id, **body},
        [
            *render.table(
                (
                    "candidate",
                    "both",
                    "only it",
                    "only baseline",
                    "neither",
                    "McNemar p",
                    "eligible",
                ),
                rows,
            ),
            "",
            *render.table(
                ("beside it", "share"), [(n, v) for n, v in sorted(body["baselines"].items())]
            ),
            *(["", "guards that do not hold:", *guards] if guards else []),
            "",
            *body["notes"],
            f"recommendation: {body['recommendation']}",
        ],
        next_step="evidence promote CHECKPOINT",
    )


def _row(item: dict[str, Any]) -> tuple[str, ...]:
    paired = item["paired"]
    return (
        render.short(item["evaluation"]),
        *(str(paired[name]) for name in ("both", "candidate_only", "baseline_only", "neither")),
        item["mcnemar_p"],
        "yes" if item["eligible"] else "no",
    )
