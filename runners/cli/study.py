"""`evidence study`: what would count is fixed before any run; tables from elsewhere are read beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledger.record import Record
    from runners.assess.studies import Drafted
    from verifiers.judgement.imported import Analysis

ATTAINABLE = ("attainable_gain", "minimum_p", "best_power", "power")


@click.group(cls=Group)
def study() -> None:
    """Fix what would count before any run, and read tables from elsewhere."""


@study.command(
    example="evidence study register --template > study.toml\nevidence study register study.toml --check\n"
    "evidence study register study.toml"
)
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE]")
@click.option("--check", is_flag=True, help="Compute and print everything, record nothing.")
@click.option(
    "--underpowered",
    is_flag=True,
    help="Record it as descriptive where no promotion could rest on it.",
)
@click.option("--template", is_flag=True, help="Print a file to start from; record nothing.")
@pass_app
def register(app: App, file: Path | None, check: bool, underpowered: bool, template: bool) -> None:
    """Record a study: seeds, settings, baseline, tests, limits, and what they can show.

    FILE is TOML or JSON. Refused where even a candidate that never fails would not pass, or where the gain looked for
    would be missed too often; the error says what would do.
    """
    from ledger.errors import UsageError
    from runners.assess import studies

    if template:
        app.emit(_result(None, None), studies.TEMPLATE.splitlines())
        return
    if file is None:
        hint = "make one: evidence study register --template"
        raise UsageError("USAGE", "a file is missing", field="FILE", hint=hint)
    given = studies.StudySettings.read(file)
    app.say("simulating how often the gate would find the gain")
    with app.read_ledger() if check else app.open_ledger() as ledger:
        drafted = studies.draft(ledger, given)
        if drafted.weak and not underpowered:
            raise studies.refusal(drafted)
        record = None if check else studies.record(ledger, drafted)
    app.emit(
        _result(record, drafted),
        _lines(record, drafted),
        next_step=(
            f"evidence plan sft CONFIG --study {render.short(record.id)}"
            if record
            else f"evidence study register {file}"
        ),
    )


def _result(record: Record | None, drafted: Drafted | None) -> dict[str, Any]:
    body = drafted.body if drafted else {}
    return {
        "study": record.id if record else None,
        "descriptive": body.get("descriptive"),
        "attainable": {name: body[name] for name in ATTAINABLE if name in body},
        "reasons": [
            {"code": item.code, "field": item.field, "message": item.message}
            for item in (drafted.weak if drafted else [])
        ],
        **({"body": body} if body else {}),
    }


def _lines(record: Record | None, drafted: Drafted) -> list[str]:
    body = drafted.body
    standing = (
        "descriptive: no promotion can rest on it" if drafted.weak else "a promotion can rest on it"
    )
    planned = ("cases", "families", "rollouts", "comparisons", "alpha", "minimum_gain", "effect")
    return [
        *render.fields(
            [
                ("study", render.short(record.id) if record else "not recorded"),
                ("seeds", ", ".join(map(str, body["seeds"]))),
                *((name.replace("_", " "), body[name]) for name in planned),
                ("baseline's rate", body["baseline_rate"]),
                ("spread between seeds", body["spread"]),
            ]
        ),
        "",
        *render.fields(
            [
                ("largest gain possible", body["attainable_gain"]),
                ("smallest p possible", body["minimum_p"]),
                ("power of a perfect candidate", body["best_power"]),
                ("power for the effect", f"{body['power']} ({drafted.floor} demanded)"),
                ("standing", standing),
            ]
        ),
        *(f"{item.code}: {item.message}" for item in drafted.weak),
    ]


@study.command(example="evidence study decide 4f2a81")
@click.argument("study_id", metavar="STUDY")
@pass_app
def decide(app: App, study_id: str) -> None:
    """Decide the gate of a study's newest nomination, and record every line.

    The evaluations are those under the test that a reviewer signed for the nomination. Exits with 1 where the gate does
    not pass; the record is made all the same. It carries no authority: verification derives each line again.
    """
    from ledger.errors import UsageError
    from runners.assess.decide import decide as record_gate

    with app.open_ledger() as ledger:
        found = ledger.get(study_id, "study.registered")
        record = record_gate(ledger, found)
    body = record.body
    rows = [
        (line["name"], line["value"], line["threshold"], "passed" if line["passed"] else "failed")
        for line in body["gates"]
    ]
    count = sum(not line["passed"] for line in body["gates"])
    app.emit(
        {"gate": record.id, "study": found.id, "passed": body["passed"], "gates": body["gates"]},
        [
            *render.fields([("gate", render.short(record.id))]),
            "",
            *render.table(("gate", "value", "threshold", "verdict"), rows),
        ],
        next_step=f"evidence show {render.short(record.id)}",
        failure=None
        if body["passed"]
        else UsageError("GATE_FAILED", f"{count} lines of the gate failed", record=record.id),
    )


@study.command(
    example="evidence study analyse outcomes.csv\nevidence study analyse outcomes.csv --record --licence CC-BY-4.0"
)
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--alpha", type=float, help="Largest p that counts [the policy's].")
@click.option("--minimum-gain", type=float, help="Smallest mean gain, a share of 1 [the policy's].")
@click.option(
    "--comparisons", type=click.IntRange(1), default=1, show_default=True, help="Planned ones."
)
@click.option("--record", is_flag=True, help="Keep the table in the ledger as a source.")
@click.option("--licence", help="The table's licence, with --record.")
@click.option("--from", "origin", default="", help="Where the table comes from, with --record.")
@pass_app
def analyse(
    app: App,
    table: Path,
    alpha: float | None,
    minimum_gain: float | None,
    comparisons: int,
    record: bool,
    licence: str | None,
    origin: str,
) -> None:
    """Say what the gate would say of outcomes from elsewhere, and what weaker analyses would have said.

    TABLE is CSV (seed, case, family, baseline, candidate, rollouts: successes out of rollouts) or JSON lines with the
    same names, or one line an answer (seed, arm, case, family, success). It satisfies no gate. Floors are the policy's
    where there is a ledger with one, the defaults otherwise.
    """
    from runners.assess import outcome_files
    from verifiers.judgement.imported import analyse as analyse_table
    from verifiers.judgement.imported import as_result

    read = outcome_files.read(table)
    floors = _floors(app, alpha, minimum_gain)
    analysis = analyse_table(read, floors, comparisons=comparisons)
    kept = _keep(app, table, licence, origin) if record else None
    app.emit(
        {**as_result(analysis), "source": kept.id if kept else None},
        _analysis_lines(analysis, kept),
        next_step="evidence study register --template",
    )


def _floors(app: App, alpha: float | None, minimum_gain: float | None) -> Mapping[str, Any]:
    from ledger.errors import UsageError
    from ledger.floors import DEFAULT_POLICY
    from ledger.store.choose import is_there

    floors = DEFAULT_POLICY
    if is_there(app.ledger_path):
        with app.read_ledger() as ledger:
            named = ledger.state().policy
            floors = ledger.get(named).body if named else floors
    given = {"alpha": alpha, "minimum_gain": minimum_gain}
    for name, value in given.items():
        if value is not None and not 0.0 <= value <= 1.0:
            field = f"--{name.replace('_', '-')}"
            raise UsageError("SETTING_INVALID", f"{field} is not within 0 to 1", field=field)
    return {**floors, **_recorded(given)}


def _recorded(given: Mapping[str, float | None]) -> dict[str, str]:
    from ledger.canonical import real

    return {name: real(value) for name, value in given.items() if value is not None}


def _keep(app: App, table: Path, licence: str | None, origin: str) -> Record:
    from runners.assess import outcome_files
    from runners.prepare.data import UNKNOWN_LICENCE, SourceNote

    note = SourceNote(licence or UNKNOWN_LICENCE, origin or f"table {table.name}")
    with app.open_ledger() as ledger:
        return outcome_files.record(ledger, table, note)


def _analysis_lines(analysis: Analysis, kept: Record | None) -> list[str]:
    from verifiers.judgement.imported import STANDING

    found, best = analysis.found, analysis.attainable
    gates = [
        (line.name, line.value, line.threshold, "passed" if line.passed else "failed")
        for line in analysis.lines
    ]
    rivals = [
        (name.replace("_", " "), None if value is None else f"{value:.5g}")
        for name, value in analysis.rivals.items()
    ]
    return [
        *render.fields(
            [
                ("seeds", ", ".join(map(str, found.seeds))),
                ("mean gain", f"{float(found.mean_gain):.6g}"),
                ("sign-flip p, exact", analysis.p),
                (
                    "95 % interval",
                    f"{analysis.interval.lower:.6g} to {analysis.interval.upper:.6g}",
                ),
                ("largest gain possible", f"{best.gain:.6g}"),
                ("smallest p possible", best.minimum_p),
                ("power of a perfect candidate", f"{best.perfect_power:.3f}"),
                ("source", render.short(kept.id) if kept else None),
            ]
        ),
        "",
        *render.table(("gate", "value", "threshold", "verdict"), gates),
        "",
        *render.table(("not the gate", "figure"), rivals),
        "",
        STANDING,
    ]
