"""Hints must lead somewhere: every command that a code or a rule names exists."""

from __future__ import annotations

import re

import click
import pytest

from ledger.codes import CODES
from ledger.rules import RULES
from runners.cli.main import root

COMMAND = re.compile(r"evidence ((?:[a-z][a-z-]* ?)+)")
HINTS = {code: row.hint for code, row in CODES.items()}
HINTS |= {
    f"{rule.kind}.{role}": ref.made_by for rule in RULES.values() for role, ref in rule.refs.items()
}


@pytest.mark.parametrize(
    "name", sorted(name for name, hint in HINTS.items() if "evidence " in hint)
)
def test_commands_named_by_hints_exist(name: str) -> None:
    """A hint that names a command names one that the program has, down to its last verb."""
    context = click.Context(root)
    for match in COMMAND.finditer(HINTS[name]):
        command: click.Command = root
        for word in match[1].split():
            if not isinstance(command, click.Group):
                break
            found = command.get_command(context, word)
            assert found is not None, f"{name}: {match[0]!r} is no command"
            command = found
