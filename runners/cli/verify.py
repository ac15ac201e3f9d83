"""`evidence verify`: the verifier's report, for a person and for a program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ledger.errors import EvidenceError
from runners.cli import render
from runners.cli.boundary import MISUSED, REFUSED
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from collections.abc import Callable

    from runners.cli.progress import Progress
    from verifiers.report import Finding, Report
    from verifiers.verify import Options

_COLORS = {"verified": "green", "wrong": "red", "incomplete": "yellow"}
_EXIT = {"verified": 0, "wrong": REFUSED, "incomplete": MISUSED}
FINDINGS_SHOWN = 20
_MAX_SEAL_BYTES = 1_000_000


@click.command(
    cls=Verb,
    example="evidence verify --level blobs --root ed25519:4f2a81… --expect-seal latest.seal\n"
    "evidence verify 4f2a81 --level blobs\n"
    "evidence verify --bundle support-bot.tar --root ed25519:4f2a81…",
)
@click.argument("record", required=False)
@click.option(
    "--level",
    type=click.Choice(["records", "blobs"]),
    default="records",
    show_default=True,
    help="records: chain, signatures, rules, seals; blobs: also every byte and every number.",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="KEYID",
    help="A root key that you trust; may be repeated.",
)
@click.option(
    "--expect-seal",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A seal that the ledger must contain; --since FILE expects it too.",
)
@click.option(
    "--since",
    metavar="SEAL|SIZE|last",
    help="Check only what follows the newest snapshot under a seal that you kept (a file), among the "
    "first SIZE records, or under what this user's high-water file saw last.",
)
@click.option(
    "--bundle",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Check this bundle instead of a ledger; it is unpacked into the system's folder for temporary files.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes for signatures [all cores].",
)
@pass_app
def verify(
    app: App,
    record: str | None,
    level: str,
    roots: tuple[str, ...],
    expect_seal: Path | None,
    since: str | None,
    bundle: Path | None,
    workers: int | None,
) -> None:
    """Check everything again from the bytes.

    With RECORD, level blobs is limited to what that record rests on, and a record that is suspect is wrong.
    Exits with 0 verified, 1 wrong, 2 incomplete or unreadable.
    """
    from verifiers.verify import Options

    check_roots(roots)
    if bundle is not None and since is not None:
        raise click.UsageError("a bundle is checked whole: leave --since out")
    begin, kept = _since(since)
    note = None if expect_seal is None else read_seal(expect_seal, "--expect-seal")
    if kept is not None and note is not None:
        raise click.UsageError("--since with a seal's file is --expect-seal too: give it once")
    note = note or kept
    with app.progress("verifying") as bar:
        options = Options(
            level="blobs" if level == "blobs" else "records",
            record=record,
            pinned_roots=frozenset(roots),
            expect_seal=note,
            state_dir=app.state_dir,
            since=begin,
            workers=workers,
            progress=_progress(bar),
        )
        report = _run(app, bundle, options)
    app.emit(
        report.as_dict(),
        _lines(report),
        next_step=_next(report),
        # a person reads the findings above; a program finds the first of them as the error too
        failure=_failure(report) if app.as_json else None,
        exit_code=_EXIT[report.verdict],
    )


def _run(app: App, bundle: Path | None, options: Options) -> Report:
    if bundle is None:
        from verifiers.verify import verify as run

        return run(app.ledger_path, options)
    from runners.bundles import verify_apart

    return verify_apart(bundle, options)


def check_roots(roots: tuple[str, ...]) -> None:
    """Refuse what is no whole key id.

    Raises:
        UsageError: `USAGE`.
    """
    import re

    from ledger.errors import UsageError
    from ledger.records.base import KEY_ID_PATTERN

    for root in roots:
        if not re.fullmatch(KEY_ID_PATTERN, root):
            raise UsageError(
                "USAGE",
                f"{root[:80]!r} is no whole key id",
                field="--root",
                hint="give all of it, as evidence key list shows it",
            )


def _since(text: str | None) -> tuple[int | Literal["last"] | None, bytes | None]:
    """Where to begin, and the seal that was named for it."""
    if text is None:
        return None, None
    if text == "last":
        return "last", None
    if text.isascii() and text.isdecimal() and len(text) < 18:
        return int(text), None
    return "last", read_seal(Path(text), "--since")


def read_seal(path: Path, option: str) -> bytes:
    """A seal's file; one that holds none is the caller's mistake, not a finding about the ledger.

    Raises:
        UsageError: `USAGE`.
    """
    from ledger import seals
    from ledger.digests import open_regular
    from ledger.errors import UsageError

    with open_regular(path) as stream:
        note = stream.read(_MAX_SEAL_BYTES)
    try:
        seals.read_unverified(note)
    except EvidenceError as error:
        raise UsageError("USAGE", f"no seal: {error.message}", field=option) from None
    return note


def _progress(bar: Progress) -> Callable[[str, int, int], None]:
    def report(stage: str, done: int, total: int) -> None:
        bar.label, bar.total = f"verifying {stage}", total
        bar.to(done)

    return report


def _failure(report: Report) -> EvidenceError | None:
    """The first finding as the answer's error: a script that looks at `ok` alone is not misled."""
    if not report.findings:
        return None
    return report.findings[0].as_error()


def _lines(report: Report) -> list[str]:
    what = report.scope or report.origin or "no record"
    lines: list[str] = [
        render.Styled(f"{report.verdict}: {what}", bold=True, fg=_COLORS[report.verdict])
    ]
    lines += render.fields(
        [
            ("level", report.level),
            ("records", f"{_good(report)}, {render.count(report.seals, 'seal')}"),
            *_since_fields(report),
            ("tree root", report.root),
            ("trust", _trust(report)),
            ("rollback", report.rollback),
            *_blob_fields(report),
        ]
    )
    lines += _section("findings", report.findings)
    return lines + _section("warnings", report.warnings)


def _good(report: Report) -> str:
    """How many records stand; those after the first bad one were not judged."""
    if report.verdict == "wrong" and any(item.seq == report.records for item in report.wrong):
        return f"{report.records:,} good, none judged after them"
    return f"{report.records:,}"


def _since_fields(report: Report) -> list[tuple[str, object]]:
    if not report.since:
        return []
    by = "nothing" if report.rollback == "unchecked" else report.rollback
    return [("since", f"checked from seq {report.since:,} on; vouched for before it by: {by}")]


def _trust(report: Report) -> str:
    if report.trust == "pinned" and report.since:
        return "pinned: the root key is one you named, in a snapshot that the mark vouches for"
    if report.trust == "pinned":
        return "pinned: the root key is one you named"
    if report.verdict == "wrong":
        return "on faith: the pass ended before the root key was compared, or it is another"
    return "on faith: the root key was taken from the ledger itself"


def _blob_fields(report: Report) -> list[tuple[str, object]]:
    faith = [
        ("on faith", f"{number:,} x {what}") for what, number in sorted(report.on_faith.items())
    ]
    if report.level != "blobs":
        return [*faith]
    blobs = report.blobs
    replayed = ", ".join(f"{number} {kind}" for kind, number in sorted(report.replayed.items()))
    return [
        (
            "blobs",
            f"{blobs.checked:,} whole, {blobs.wrong:,} wrong, {blobs.withheld:,} withheld, {blobs.unread:,} unread",
        ),
        ("derived", replayed or "nothing"),
        *faith,
    ]


def _section(title: str, findings: list[Finding]) -> list[str]:
    if not findings:
        return []
    lines: list[str] = ["", render.Styled(title, bold=True)]
    for finding in findings[:FINDINGS_SHOWN]:
        lines += _finding_lines(finding)
    if len(findings) > FINDINGS_SHOWN:
        lines.append(f"  and {len(findings) - FINDINGS_SHOWN:,} more: evidence verify --json")
    return lines


def _finding_lines(finding: Finding) -> list[str]:
    place = "" if finding.seq is None else f" at seq {finding.seq}"
    record = f" ({render.short(finding.id)})" if finding.id else ""
    pairs = [
        ("field", finding.field),
        ("expected", finding.expected),
        ("actual", finding.actual),
        ("hint", finding.hint),
    ]
    head = f"  {finding.step} {finding.code}{place}{record}: {finding.message}"
    return [head, *(f"     {line}" for line in render.fields(pairs))]


def _next(report: Report) -> str:
    if report.verdict == "wrong":
        return "keep this copy as it is and rest nothing on it; see docs/spec/verification.md for the step named"
    if report.trust == "on_faith":
        return "evidence verify --root KEYID, with the root key's id from somebody you trust"
    if report.level == "records":
        return "evidence verify --level blobs"
    return "evidence log"
