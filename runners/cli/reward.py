"""Commands about rewards."""

from __future__ import annotations

from pathlib import Path

import click

from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app

SHOWN = 10


@click.group(cls=Group)
def reward() -> None:
    """Try rewards before anything is trained on them."""


@reward.command(
    example="evidence reward audit support\nevidence reward audit desk\nevidence reward audit my_reward.py --pairs pairs.jsonl"
)
@click.argument("name", metavar="NAME|FILE")
@click.option(
    "--pairs",
    type=click.Path(path_type=Path),
    help="Pairs of replies in JSON Lines [those that come with the program].",
)
@pass_app
def audit(app: App, name: str, pairs: Path | None) -> None:
    """Put a reward to pairs of a right and a wrong reply, and record how it orders them.

    NAME is `support` (replies in words), `desk` (one call) or `desk_episode` (a call a line); FILE is a Python file of your
    own that defines reward(scenario, reply), and is run. The audit is recorded either way; the exit status is 1 where a wrong reply earns as much as the right one.
    """
    from ledger.errors import EvidenceError
    from runners.prepare.rewards import audit_reward

    with app.open_ledger() as ledger:
        done = audit_reward(ledger, name, pairs)
    body, found = done.record.body, done.inversions
    rows = [
        (item.pair.id, item.pair.trap, f"{item.right:.3f}", f"{item.wrong:.3f}")
        for item in found[:SHOWN]
    ]
    failure = None
    if found:
        failure = EvidenceError(
            "REWARD_INVERTED",
            f"{len(found)} of {body['pairs']} pairs are ordered wrongly",
            record=done.record.id,
        )
    result = {field: body[field] for field in ("name", "reward_version", "pairs", "inversions")}
    app.emit(
        {
            "audit": done.record.id,
            **result,
            "inverted": [
                {"pair": item.pair.id, "right": item.right, "wrong": item.wrong} for item in found
            ],
        },
        [
            *render.fields(
                [
                    ("audit", render.short(done.record.id)),
                    ("reward", f"{body['name']}, version {body['reward_version']}"),
                    ("pairs", str(body["pairs"])),
                    ("ordered wrongly", str(body["inversions"])),
                ]
            ),
            *(["", *render.table(("pair", "trap", "right", "wrong"), rows)] if rows else []),
        ],
        failure=failure,
    )
