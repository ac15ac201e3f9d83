"""`evidence policy`: the floors that every promotion in a ledger must reach."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import click

from ledger.errors import EvidenceError, UsageError
from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app
from runners.cli.keys import root_key_option

MAX_FILE_BYTES = 65_536

TEMPLATE = """\
# The floors of every promotion in this ledger. A study may be stricter, never laxer.
seeds = 6                    # independent training runs a candidate needs
alpha = 0.05                 # largest p-value that counts
power = 0.80                 # chance of seeing the smallest gain that matters
cases = 32                   # test cases at least
undecided_share = 0.05       # largest share of cases that the judges may leave open
reviewers = 1                # distinct reviewers who approve
reruns_updates_per_seed = 3  # updates re-executed from bytes for each seed
reruns_case_share = 0.05     # share of test cases re-run from bytes
minimum_gain = 0.03          # smallest gain in success rate that matters
judge_accuracy = 0.8         # lower bound of a judge's accuracy on labelled cases
judge_family = "other"       # "other": not the candidate's own family; or "any"
"""


@click.group(cls=Group)
def policy() -> None:
    """Declare the floors of every promotion."""


@policy.command(
    example="evidence policy declare --template > policy.toml\nevidence policy declare policy.toml"
)
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE]")
@click.option("--template", is_flag=True, help="Print a file with the defaults; record nothing.")
@root_key_option
@pass_app
def declare(app: App, file: Path | None, template: bool, root_key: Path | None) -> None:
    """Record the policy in FILE (TOML or JSON), by root's statement."""
    if template:
        app.emit({"template": TEMPLATE}, TEMPLATE.splitlines())
        return
    if file is None:
        raise UsageError(
            "USAGE",
            "a file is missing",
            field="FILE",
            hint="make one: evidence policy declare --template",
        )
    body = read(file)
    with app.open_ledger() as ledger:
        signer = app.root_key(ledger, root_key)
        record = ledger.append_stated(
            "policy.declared", body, {}, signer=signer, nonce=secrets.token_hex(16)
        )
    app.emit(
        {"policy": record.id, "seq": record.seq, "floors": body},
        render.table(("floor", "value"), body.items()),
        next_step="evidence data ingest FILE",
    )


def read(path: Path) -> dict[str, Any]:
    """A policy's body from a TOML or JSON file, its numbers written as the record has them.

    Raises:
        UsageError: `INPUT_MISSING`.
        EvidenceError: `BODY_INVALID`, the file is neither, or a field is missing, unknown or malformed.
    """
    from ledger.record import check_body

    body = {name: _recorded(name, value) for name, value in _parse(path).items()}
    return check_body("policy.declared", 1, body).model_dump()


def _parse(path: Path) -> dict[str, Any]:
    from ledger import canonical
    from ledger.digests import open_regular

    with open_regular(path) as stream:
        data = stream.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise EvidenceError("TOO_LARGE", f"{path} has more than {MAX_FILE_BYTES} bytes")
    value = canonical.loads(data) if path.suffix == ".json" else _toml(path, data)
    if not isinstance(value, dict):
        raise EvidenceError("BODY_INVALID", f"{path} holds no table of floors")
    return value


def _toml(path: Path, data: bytes) -> dict[str, Any]:
    from runners.settings import parse_object

    try:
        value = parse_object(data, as_json=False)
    except ValueError as error:
        raise EvidenceError("BODY_INVALID", f"{path} is not TOML: {str(error)[:200]}") from None
    assert isinstance(value, dict)  # a TOML file is one
    return value


def _recorded(name: str, value: Any) -> Any:
    """A number as the field's type has it: a real is a string, a count stays an integer."""
    from ledger import canonical
    from ledger.records.identity import PolicyDeclared

    field = PolicyDeclared.model_fields.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if field is not None and field.annotation is str and is_number:
        return canonical.real(value)
    return value
