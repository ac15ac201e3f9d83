"""`evidence export bundle` and `evidence import`: a ledger, or what one record rests on, as one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.errors import UsageError
from runners.cli import render
from runners.cli.commands import Group, Verb
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from ledger.bundles.export import Exported, LeftOut
    from ledger.bundles.layout import Tally

_FILE = click.Path(path_type=Path)
_ALL, _CHECKPOINTS = "all", "checkpoints"


@click.group(cls=Group)
def export() -> None:
    """Take evidence out, for others to verify."""


@export.command(
    example="evidence export bundle support-bot.tar\n"
    "evidence export bundle checkpoint.tar --of 4f2a81 --without-blobs checkpoints"
)
@click.argument("out", type=_FILE)
@click.option(
    "--of", "record", metavar="RECORD", help="Only what this record rests on, proven under a seal."
)
@click.option(
    "--without-blobs",
    "without",
    multiple=True,
    metavar="all|checkpoints|DIGEST",
    help="Leave these blobs out; may be repeated. What was withheld never travels.",
)
@pass_app
def bundle(app: App, out: Path, record: str | None, without: tuple[str, ...]) -> None:
    """Write the ledger, or what one record rests on, as one file.

    The file is a tar archive without compression; the same ledger gives the same bytes. Others may append meanwhile:
    the bundle is the ledger at one moment.
    """
    from ledger import staging
    from ledger.bundles.export import export_closure, export_ledger

    left_out = _left_out(without)
    with staging.file_at(out) as stream:
        if record is None:
            done = export_ledger(app.ledger_path, stream, left_out)
        else:
            with app.read_ledger() as ledger:
                done = export_closure(ledger, ledger.get(record), stream, left_out)
    _emit(app, out, done)


def _left_out(words: tuple[str, ...]) -> LeftOut:
    from ledger.bundles.export import LeftOut
    from ledger.digests import is_digest

    digests = frozenset(words) - {_ALL, _CHECKPOINTS}
    for word in sorted(digests):
        if not is_digest(word):
            raise UsageError(
                "USAGE",
                f"{word[:80]!r} is neither all, checkpoints nor a blob's digest",
                field="--without-blobs",
            )
    return LeftOut(_ALL in words, _CHECKPOINTS in words, digests)


def _emit(app: App, out: Path, done: Exported) -> None:
    manifest = done.manifest
    result: dict[str, Any] = {
        "file": str(out),
        "digest": done.digest,
        "bytes": done.size_bytes,
        "scope": manifest.scope,
        "origin": manifest.ledger,
        "record": manifest.record,
        "records": manifest.records,
        "size": manifest.size,
        "root": manifest.root,
        "blobs": _counts(done.blobs),
    }
    under = render.count(manifest.size, "record") if manifest.record else None
    app.emit(
        result,
        render.fields(
            [
                ("bundle", out),
                ("of", manifest.record or manifest.ledger),
                ("records", f"{manifest.records:,}"),
                ("under the seal of", under),
                ("root", manifest.root),
                ("blobs", _in_words(done.blobs)),
                ("bytes", f"{done.size_bytes:,}"),
                ("digest", done.digest),
            ]
        ),
        next_step=f"evidence verify --bundle {out}",
    )


@click.command(
    "import",
    cls=Verb,
    example="evidence import support-bot.tar --ledger copy --root ed25519:4f2a81…",
)
@click.argument("file", type=_FILE, metavar="BUNDLE")
@click.option(
    "--level",
    type=click.Choice(["records", "blobs"]),
    default="blobs",
    show_default=True,
    help="blobs: derive every number again first; records: chain, signatures, rules, and every byte.",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="KEYID",
    help="A root key that you trust; may be repeated.",
)
@click.option(
    "--expect-seal", type=_FILE, metavar="FILE", help="A seal that the ledger must contain."
)
@click.option(
    "--behind",
    is_flag=True,
    help="Also where this machine saw a longer history of it; evidence restore then goes on.",
)
@pass_app
def import_(
    app: App, file: Path, level: str, roots: tuple[str, ...], expect_seal: Path | None, behind: bool
) -> None:
    """Make a ledger of a bundle, after everything in it was verified.

    The ledger is made where --ledger says; nothing may be there. Where anything is wrong nothing is written.
    """
    from runners.bundles import import_bundle
    from runners.cli.verify import check_roots, read_seal
    from verifiers.verify import Options

    check_roots(roots)
    options = Options(
        level="blobs" if level == "blobs" else "records",
        pinned_roots=frozenset(roots),
        expect_seal=None if expect_seal is None else read_seal(expect_seal, "--expect-seal"),
        state_dir=app.state_dir,
    )
    with app.progress("importing"):
        arrived = import_bundle(file, app.ledger_path, options, behind=behind)
    report, blobs = arrived.report, arrived.unpacked.blobs
    app.emit(
        {
            "ledger": str(arrived.folder),
            "id": arrived.unpacked.manifest.ledger_id,
            "origin": report.origin,
            "records": report.records,
            "root": report.root,
            "verdict": report.verdict,
            "level": report.level,
            "trust": report.trust,
            "rollback": report.rollback,
            "blobs": _counts(blobs),
        },
        render.fields(
            [
                ("imported", report.origin),
                ("ledger", arrived.folder),
                ("verdict", f"{report.verdict} at level {report.level}"),
                ("records", f"{report.records:,}"),
                ("tree root", report.root),
                ("trust", report.trust.replace("_", " ")),
                ("rollback", report.rollback),
                ("blobs", _in_words(blobs)),
            ]
        ),
        next_step=f"evidence verify --ledger {arrived.folder} --level blobs",
    )


def _counts(blobs: Tally) -> dict[str, int]:
    return {"here": blobs.here, "withheld": blobs.withheld, "left_out": blobs.left_out}


def _in_words(blobs: Tally) -> str:
    return f"{blobs.here:,} here, {blobs.withheld:,} withheld, {blobs.left_out:,} left out"
