"""`evidence promotion`: from a passed gate to a folder that whoever loads it can check, and back."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app
from runners.cli.stating import Stating, stating_options

if TYPE_CHECKING:
    from collections.abc import Collection

    from ledger.book import Ledger
    from ledger.record import Record

NO_DEPLOYMENT = "a promotion is no approval of deployment"
_DIR = click.Path(path_type=Path)


@click.group(cls=Group)
def promotion() -> None:
    """Approve, grant, check and withdraw promotions."""


@promotion.command(
    example="evidence promotion approve 4f2a81 --why 'read every lost case' --review-key reviewer.pem\n"
    "evidence promotion approve 4f2a81 --why 'read every lost case' --reviewer ed25519:… --request approve.json\n"
    "evidence promotion approve 4f2a81 --statement approve.json.signed"
)
@click.argument("gate_id", metavar="GATE")
@click.option("--why", metavar="TEXT", help="The reviewer's reason.")
@click.option("--reviewer", metavar="KEYID", help="With --request: the key that is asked to sign.")
@stating_options("review")
@pass_app
def approve(
    app: App,
    gate_id: str,
    why: str | None,
    reviewer: str | None,
    signer_key: Path | None,
    request: Path | None,
    statement: Path | None,
) -> None:
    """Approve a gate and the checkpoint that it is about, as one of as many reviewers as the policy asks for."""
    from ledger.floors import DEFAULT_POLICY
    from runners.assess.grants import chosen_of
    from verifiers.judgement.grants import approvals_since, reviewers_of
    from verifiers.replay.view import View

    how = Stating(app, signer_key, request, statement)
    how.check()
    words = how.words(why=why, reviewer=_reviewer(app, how, reviewer))
    with app.open_ledger() as ledger:
        gate = ledger.get(gate_id, "gate.decided")
        _passed(gate)
        checkpoint = chosen_of(ledger, gate)
        refs: dict[str, str | list[str]] = {"gate": gate.id, "checkpoint": checkpoint.id}
        record = how.record(ledger, "promotion.approved", dict(words), refs)
        approvals = approvals_since(gate, str(ledger.head()[2]), View(ledger, ledger.blobs))
        policy = ledger.state().policy
        needed = (ledger.get(policy).body if policy else DEFAULT_POLICY)["reviewers"]
    count = len(reviewers_of(gate, checkpoint.id, approvals))
    if record is None:
        how.asked("promotion.approved", {"gate": gate.id, "checkpoint": checkpoint.id})
        return
    app.emit(
        {
            "approval": record.id,
            "gate": gate.id,
            "checkpoint": checkpoint.id,
            "reviewers": count,
            "needed": needed,
        },
        render.fields(
            [
                ("approval", render.short(record.id)),
                ("checkpoint", render.short(checkpoint.id)),
                ("reviewers", f"{count} of {needed}"),
            ]
        ),
        next_step=f"evidence promotion grant {render.short(gate.id)} DIR --promote-key FILE",
    )


def _reviewer(app: App, how: Stating, named: str | None) -> str | None:
    """The key that approves: that of the file, or the one named for a request."""
    return named if how.key is None else app.load_key(how.key).id


def _passed(gate: Record) -> None:
    from ledger.errors import UsageError

    if not gate.body["passed"]:
        raise UsageError("GATE_FAILED", "the gate did not pass", record=gate.id, field="GATE")


@promotion.command(
    example="evidence promotion grant 4f2a81 ./promoted --scope 'shadow traffic' --promote-key promoter.pem\n"
    "evidence promotion grant 4f2a81 ./promoted --statement grant.json.signed"
)
@click.argument("gate_id", metavar="GATE")
@click.argument("folder", metavar="DIR", type=_DIR)
@click.option("--scope", metavar="TEXT", help="What the promotion is for.")
@stating_options("promote")
@pass_app
def grant(
    app: App,
    gate_id: str,
    folder: Path,
    scope: str | None,
    signer_key: Path | None,
    request: Path | None,
    statement: Path | None,
) -> None:
    """Promote a gate's chosen checkpoint and put its bytes into DIR.

    Everything is derived again first. DIR must not exist; it is made from the ledger's blobs before the record, and taken away
    where the record is refused. With --request nothing is written but the request.
    """
    from ledger.errors import LedgerError
    from runners.assess import grants
    from runners.train.recovery import recover

    how = Stating(app, signer_key, request, statement)
    words = how.words(scope=scope)
    with app.open_ledger() as ledger:
        gate = ledger.get(gate_id, "gate.decided")
        approvals, decision = grants.weigh(ledger, gate)
        if not decision.granted:
            raise grants.refusal(gate, decision)
        checkpoint = grants.chosen_of(ledger, gate)
        refs = grants.grant_refs(ledger, gate, approvals)
        body = {"tree": checkpoint.body["tree"], **words}
        made = request is None
        if made:
            recover(ledger, checkpoint, folder)
        try:
            record = how.record(ledger, "promotion.granted", body, refs)
        except LedgerError:
            if made:  # whatever else lies there is somebody's
                shutil.rmtree(folder)
            raise
    told = {"gate": gate.id, "checkpoint": checkpoint.id, "tree": body["tree"]}
    if record is None:
        how.asked("promotion.granted", told)
        return
    app.emit(
        {"promotion": record.id, **told, "folder": str(folder), "scope": words["scope"]},
        [
            *render.fields(
                [
                    ("promotion", render.short(record.id)),
                    ("checkpoint", render.short(checkpoint.id)),
                    ("folder", folder),
                    ("tree", body["tree"]),
                    ("scope", words["scope"]),
                ]
            ),
            NO_DEPLOYMENT,
        ],
        next_step=f"evidence promotion check {folder} --root ROOT_KEY_ID",
    )


@promotion.command(example="evidence promotion check ./promoted --root ed25519:4f2a81…")
@click.argument("folder", metavar="DIR", type=_DIR)
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="KEYID",
    help="A root key that you trust; may be repeated [EVIDENCE_ROOT].",
)
@click.option(
    "--level",
    type=click.Choice(["records", "blobs"]),
    default="records",
    show_default=True,
    help="blobs: also derive again all that the promotion rests on.",
)
@pass_app
def check(app: App, folder: Path, roots: tuple[str, ...], level: str) -> None:
    """Say whether a folder's bytes are promoted, before you load them.

    Works offline, with the ledger alone. Exits with 1 where one byte differs, where the promotion was withdrawn or is void, where the
    ledger does not verify, and where no root key is pinned: whose promotion it is matters as much as that there is one.
    """
    from ledger.promotions import check_folder

    named = roots or tuple(app.environment.get("EVIDENCE_ROOT", "").split())
    _check_roots(named)
    with app.read_ledger() as ledger:
        found = check_folder(ledger, folder, named)
    report = None
    if level == "blobs":
        report = _derived(app, found, named)
    app.emit(
        {
            "promoted": True,
            "promotion": found.id,
            "checkpoint": str(found.ref("checkpoint")),
            "tree": found.body["tree"],
            "scope": found.body["scope"],
            "derived": report,
        },
        [
            *render.fields(
                [
                    ("promoted", "yes"),
                    ("promotion", render.short(found.id)),
                    ("scope", found.body["scope"]),
                    ("derived again", report or "no: --level blobs"),
                ]
            ),
            NO_DEPLOYMENT,
        ],
        next_step=f"evidence verify {render.short(found.id)} --level blobs",
    )


def _check_roots(roots: Collection[str]) -> None:
    from ledger.errors import UsageError
    from ledger.records.base import KEY_ID_PATTERN

    for root in roots:
        if not re.fullmatch(KEY_ID_PATTERN, root):
            raise UsageError("USAGE", f"{root[:80]!r} is no whole key id", field="--root")


def _derived(app: App, found: Record, roots: Collection[str]) -> str:
    """The verdict over all that a promotion rests on.

    Raises:
        EvidenceError: `NOT_PROMOTED`, something of it is wrong or cannot be derived.
    """
    from ledger.errors import EvidenceError
    from verifiers.verify import Options
    from verifiers.verify import verify as run

    options = Options(
        level="blobs",
        record=found.id,
        pinned_roots=frozenset(roots),
        state_dir=app.state_dir,
    )
    report = run(app.ledger_path, options)
    if report.verdict != "verified":
        first = (report.wrong or report.missing)[0]
        raise EvidenceError(
            "NOT_PROMOTED",
            f"what the promotion rests on is {report.verdict}: {first.code}: {first.message}",
            record=found.id,
            hint=f"see all of it: evidence verify {render.short(found.id)} --level blobs",
        )
    return report.verdict


@promotion.command(
    example="evidence promotion withdraw 4f2a81 --why 'a source was withdrawn' --promote-key promoter.pem"
)
@click.argument("promotion_id", metavar="PROMOTION")
@click.option("--why", metavar="TEXT", help="Why it no longer stands.")
@stating_options("promote")
@pass_app
def withdraw(
    app: App,
    promotion_id: str,
    why: str | None,
    signer_key: Path | None,
    request: Path | None,
    statement: Path | None,
) -> None:
    """Withdraw a promotion: whoever asks from then on is told that it no longer stands."""
    how = Stating(app, signer_key, request, statement)
    words = how.words(why=why)
    with app.open_ledger() as ledger:
        found = ledger.get(promotion_id, "promotion.granted")
        refs: dict[str, str | list[str]] = {"promotion": found.id}
        record = how.record(ledger, "promotion.withdrawn", dict(words), refs)
    if record is None:
        how.asked("promotion.withdrawn", {"promotion": found.id})
        return
    app.emit(
        {"withdrawal": record.id, "promotion": found.id, "why": words["why"]},
        render.fields(
            [("withdrawal", render.short(record.id)), ("of promotion", render.short(found.id))]
        ),
        next_step="evidence seal, and give the new seal to whoever loads the model",
    )


@promotion.command(name="list", example="evidence promotion list")
@pass_app
def list_promotions(app: App) -> None:
    """List promotions, oldest first, and how each stands."""
    from runners.assess.grants import promotions

    with app.read_ledger() as ledger:
        found = promotions(ledger)
        rows = [_row(ledger, item, found.withdrawals) for item in found.grants]
    app.emit(
        {"promotions": rows},
        render.table(
            ("promotion", "checkpoint", "scope", "standing"),
            [
                (
                    render.short(row["promotion"]),
                    render.short(row["checkpoint"]),
                    row["scope"],
                    row["standing"],
                )
                for row in rows
            ],
        ),
        next_step="evidence promotion check DIR --root ROOT_KEY_ID",
    )


def _row(ledger: Ledger, item: Record, withdrawals: dict[str, Record]) -> dict[str, Any]:
    from ledger.suspects import find_suspect, windows_in

    suspect = find_suspect([item], windows_in(ledger.of_kind("key.revoked")), ledger.find)
    standing = "void" if suspect else "withdrawn" if item.id in withdrawals else "stands"
    return {
        "promotion": item.id,
        "checkpoint": str(item.ref("checkpoint")),
        "tree": item.body["tree"],
        "scope": item.body["scope"],
        "time": item.time,
        "standing": standing,
        "why": str(withdrawals[item.id].body["why"]) if item.id in withdrawals else None,
    }
