"""The command classes: options that every command takes, and groups that import late."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import click

from runners.cli.context import App

if TYPE_CHECKING:
    from collections.abc import Callable

GLOBAL = "Options of every command"


class Verb(click.Command):
    """A command that takes `--ledger`, `--key` and `--json` and shows an example in its help.

    Args:
        example: one or more command lines, each on a line of its own.
    """

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.example = example
        self.params = [*self.params, *global_options()]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, its name known to whoever answers."""
        ctx.ensure_object(App).command = ctx.command_path.partition(" ")[2]
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options, then those of every command, then the example."""
        _write_options(self, ctx, formatter)
        if self.example:
            with formatter.section("Example"):
                formatter.write("".join(f"  {line}\n" for line in self.example.splitlines()))


class Group(click.Group):
    """A noun with its verbs; it takes the options of every command too."""

    command_class = Verb

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *global_options()]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options, then verbs."""
        _write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)


class LazyGroup(Group):
    """A group whose commands are imported when they are used.

    Args:
        registry: section title -> (name -> (`module:attribute`, one line of help)).
    """

    def __init__(
        self, *args: Any, registry: dict[str, dict[str, tuple[str, str]]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.registry = registry
        self._flat = {name: row for rows in registry.values() for name, row in rows.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Every name, in the registry's order."""
        return list(self._flat)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import and return a command."""
        if cmd_name not in self._flat:
            return None
        module, _, attribute = self._flat[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """The commands by section, from the registry alone: nothing is imported."""
        for title, rows in self.registry.items():
            with formatter.section(title):
                formatter.write_dl([(name, help_line) for name, (_, help_line) in rows.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown name is answered with the nearest ones."""
        name = args[0]
        if name not in self._flat and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, self._flat, n=3)
            hint = f", did you mean {' or '.join(near)}" if near else ""
            ctx.fail(f"no command is called {name!r}{hint}")
        return super().resolve_command(ctx, args)


def global_options() -> list[click.Option]:
    """`--ledger`, `--key` and `--json`, which store their values in the call's `App`."""
    return [
        click.Option(
            ["--ledger"],
            metavar="DIR",
            help="The ledger folder [EVIDENCE_LEDGER, else ./evidence].",
            expose_value=False,
            callback=_stores("ledger"),
        ),
        click.Option(
            ["--key"],
            metavar="FILE",
            help="Your key file [EVIDENCE_KEY, else the writer key that init made].",
            expose_value=False,
            callback=_stores("key"),
        ),
        click.Option(
            ["--json", "as_json"],
            is_flag=True,
            help="One JSON object on stdout.",
            expose_value=False,
            callback=_stores("as_json"),
        ),
    ]


def _stores(attribute: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def store(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
        if value:
            setattr(ctx.ensure_object(App), attribute, value)

    return store


def _write_options(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    own: list[tuple[str, str]] = []
    shared: list[tuple[str, str]] = []
    names = {"--ledger", "--key", "--json", "--help"}
    for param in command.get_params(ctx):
        row = param.get_help_record(ctx)
        if row is not None:
            (shared if names & set(param.opts) else own).append(row)
    for title, rows in (("Options", own), (GLOBAL, shared)):
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)
