"""`evidence backup` and `evidence gc`: a copy of a live ledger, and blobs that no record names."""

from __future__ import annotations

import time
from pathlib import Path

import click

from runners.cli import render
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app

HOUR_S = 3600


@click.command(cls=Verb, example="evidence backup /media/disk/support-bot-monday")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@pass_app
def backup(app: App, folder: Path) -> None:
    """Copy the ledger while others append, and verify the copy.

    DIR must not be there yet; it appears only once the copy is whole and every signature in it was checked. Keys and the
    high-water file are not copied. For one file that travels see evidence export bundle.
    """
    from runners.backups import back_up
    from verifiers.verify import Options

    with app.progress("copying"):
        done = back_up(app.ledger_path, folder, Options())
    report, copied = done.report, done.copied
    app.emit(
        {
            "folder": str(folder),
            "origin": report.origin,
            "size": report.records,
            "root": report.root,
            "blobs": copied.blobs,
            "bytes": copied.blob_bytes,
            "absent": copied.absent,
        },
        render.fields(
            [
                ("backup", folder),
                ("of", report.origin),
                ("records", f"{report.records:,}, every signature checked"),
                ("root", report.root),
                ("blobs", f"{copied.blobs:,}, each hashed"),
                ("not there", f"{len(copied.absent):,} blobs" if copied.absent else None),
            ]
        ),
        next_step=f"to put it back: copy {folder} into the ledger's place, then evidence restore --why TEXT",
    )


@click.command(cls=Verb, example="evidence gc --dry-run\nevidence gc --older-than 72")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option(
    "--older-than",
    type=click.IntRange(min=1),
    default=24,
    show_default=True,
    metavar="HOURS",
    help="Leave what was written or used again in the last hours: somebody may be about to record it.",
)
@pass_app
def gc(app: App, older_than: int, dry_run: bool) -> None:
    """Remove blobs that no record names.

    A blob that any record names is never removed, nor one that somebody is writing. A ledger that is behind its high-water
    file is left alone.
    """
    from ledger.sweep import sweep

    found = sweep(
        app.ledger_path,
        now_s=time.time(),
        state_dir=app.state_dir,
        grace_s=older_than * HOUR_S,
        dry_run=dry_run,
    )
    done = "would remove" if dry_run else "removed"
    app.emit(
        {
            "dry_run": dry_run,
            "removed": found.digests,
            "leftovers": found.leftovers,
            "bytes": found.size_bytes,
            "young": found.young,
            "named": found.kept,
        },
        render.fields(
            [
                (done, f"{render.count(len(found.digests), 'blob')} that no record names"),
                ("half-written", f"{len(found.leftovers):,}" if found.leftovers else None),
                ("bytes", f"{found.size_bytes:,}"),
                ("left for now", f"{found.young:,} of the last hours" if found.young else None),
                ("named by records", f"{found.kept:,}"),
            ]
        ),
        next_step="evidence gc" if dry_run else "evidence verify --level blobs",
    )
