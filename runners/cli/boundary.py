"""The one boundary where errors become messages and exit codes.

0    done, or verified
1    refused, or found wrong
2    misused, unreadable or incomplete
130  interrupted (128 + SIGINT, as shells have it); the ledger is whole
141  whoever read the output went away (128 + SIGPIPE)
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from ledger.errors import LedgerError, UsageError
from runners.cli import render

if TYPE_CHECKING:
    from runners.cli.context import App, Outcome

PROGRAM = "evidence"
DONE, REFUSED, MISUSED, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141

EXIT_2 = frozenset(
    {
        "BLOB_MISSING",
        "BLOB_WITHHELD",
        "BUNDLE_MALFORMED",
        "BUNDLE_PARTIAL",
        "DISK_FULL",
        "FORMAT_UNKNOWN",
        "INPUT_MISSING",
        "KEY_FILE_EXISTS",
        "KEY_FILE_MISSING",
        "KEY_FILE_OPEN",
        "KEY_INSIDE_LEDGER",
        "KEY_LOCKED",
        "KEY_MALFORMED",
        "KEY_MISSING",
        "LEDGER_BUSY",
        "LEDGER_EMPTY",
        "LEDGER_EXISTS",
        "LEDGER_NOT_FOUND",
        "LEDGER_READ_ONLY",
        "LEDGER_SCHEMA",
        "LEDGER_UNREADABLE",
        "MODEL_UNKNOWN",
        "NOT_SEALED",
        "OS_REFUSED",
        "PROOF_OUT_OF_RANGE",
        "QUERY_FAILED",
        "QUERY_LIMITS",
        "QUERY_REFUSED",
        "QUERY_UNKNOWN",
        "REF_AMBIGUOUS",
        "REF_MALFORMED",
        "SCHEMA_FUTURE",
        "SETTING_INVALID",
        "SETTING_UNKNOWN",
        "SQLITE_UNSAFE",
        "STATEMENT_FILE",
        "UNSAFE_PATH",
        "USAGE",
    }
)


def exit_code(code: str) -> int:
    """The exit code of an error: 2 where the call or its input was unusable, else 1."""
    if code == "INTERRUPTED":
        return INTERRUPTED
    return MISUSED if code in EXIT_2 else REFUSED


def run(app: App, command: click.Group, arguments: list[str]) -> int:
    """Run a command line and print its answer.

    Args:
        app: the call; `as_json` already tells how to answer if parsing itself fails.
        command: the root command.
        arguments: what follows the program's name.

    Returns:
        The exit code.
    """
    try:
        code = _guarded(app, command, arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # nobody reads on: leave without a second error when the interpreter flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except OSError as error:
        # the answer itself could not be written, to a full disk perhaps: say so on the other stream
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        with suppress(OSError):  # where not even this can be written, the exit status says it
            render.write(
                f"error: the answer could not be written: {error.strerror} [OS_REFUSED]", err=True
            )
        return MISUSED
    return code


def _guarded(app: App, command: click.Group, arguments: list[str]) -> int:
    try:
        with command.make_context(PROGRAM, arguments, obj=app) as ctx:
            command.invoke(ctx)
        return _answer(app)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        return _fail(app, _misuse(error, app))
    except (KeyboardInterrupt, click.Abort):
        return _fail(app, _interrupted())
    except LedgerError as error:
        return _fail(app, error)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _fail(app, _refused_by_system(error))
    except MemoryError:
        return _fail(app, UsageError("OS_REFUSED", "out of memory"))


def _answer(app: App) -> int:
    outcome = app.outcome
    assert outcome is not None, "a command that returns has answered"
    if app.as_json:
        failure = outcome.failure
        error = {"error": failure.as_dict()} if failure else {}
        _print_object(app, ok=failure is None, **error, result=outcome.result, **_warned(app))
    else:
        _print_lines(app, outcome)
    return outcome.exit_code


def _print_lines(app: App, outcome: Outcome) -> None:
    color = app.color(sys.stdout.isatty())
    if outcome.data is not None:
        sys.stdout.flush()
        sys.stdout.buffer.write(outcome.data)
    for line in outcome.lines:
        render.write(line, color=color)
    _print_warnings(app)
    if outcome.failure is not None:
        _print_error(app, outcome.failure)
    elif outcome.next_step is not None:
        app.say(render.Styled(f"next: {_with_ledger(app, outcome.next_step)}", dim=True))


def _warnings(app: App) -> list[dict[str, str]]:
    """What was recorded is durable; that the mark against a rollback was not written must be said all the same."""
    from ledger.codes import CODES

    codes = {code for code, _ in app.written.warnings} if app.written else set()
    return [
        {"code": code, "message": CODES[code].means, "hint": CODES[code].hint}
        for code in sorted(codes & {"HIGHWATER_LAGS"})
    ]


def _warned(app: App) -> dict[str, Any]:
    found = _warnings(app)
    return {"warnings": found} if found else {}


def _print_warnings(app: App) -> None:
    for warning in _warnings(app):
        app.say(f"warning: {warning['message']} [{warning['code']}]")


def _with_ledger(app: App, step: str) -> str:
    """The next command with the ledger that this call named by option, so that it can be typed as it stands."""
    command, comma, rest = step.partition(", ")
    if app.ledger is None or not command.startswith("evidence ") or "--ledger" in command:
        return step
    return f"{command} --ledger {shlex.quote(app.ledger)}{comma}{rest}"


def _with_run(app: App, error: LedgerError) -> LedgerError:
    """The error, its hint naming the run that the call is about where a code's own hint says RUN."""
    if app.run is not None:
        error.hint = re.sub(r"\bRUN\b", render.short(app.run), error.hint)
    return error


def _fail(app: App, error: LedgerError) -> int:
    error = _with_run(app, error)
    if app.as_json:
        _print_object(app, ok=False, error=error.as_dict(), **_warned(app))
    else:
        _print_warnings(app)
        _print_error(app, error)
    return exit_code(error.code)


def _print_object(app: App, *, ok: bool, **parts: Any) -> None:
    """One line of ASCII: escapes in it are JSON's own, so no terminal obeys what a ledger holds."""
    import json

    text = json.dumps({"ok": ok, "command": app.command, **parts}, allow_nan=False)
    click.echo(text.replace("\x7f", "\\u007f"))


def _print_error(app: App, error: LedgerError) -> None:
    app.say(render.Styled(f"error: {error.message} [{error.code}]", fg="red"))
    seq = None if error.seq is None else str(error.seq)
    pairs = [
        ("field", error.field),
        ("record", error.record),
        ("seq", seq),
        ("expected", error.expected),
        ("actual", error.actual),
        ("next", error.hint),
    ]
    for line in render.fields(pairs):
        app.say(f"  {line}")


def _misuse(error: click.ClickException, app: App) -> UsageError:
    """A click error as ours; it may come before any command was found."""
    path = PROGRAM
    if isinstance(error, click.UsageError) and error.ctx is not None:
        path = error.ctx.command_path
        app.command = path.removeprefix(PROGRAM).strip()
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return UsageError("USAGE", "a command is missing", hint=f"see {path} --help")
    message = error.format_message().rstrip(".")
    if "PRIVATE KEY" in message:  # a pasted key begins like an option; it is not printed back
        message = "a private key was given where a file's name or an option belongs"
    field = getattr(getattr(error, "param", None), "opts", [None])[0]
    lower = message[:1].lower() + message[1:]
    return UsageError("USAGE", lower, field=field, hint=f"see {path} --help")


def _interrupted() -> UsageError:
    return UsageError(
        "INTERRUPTED",
        "interrupted: the ledger is whole, and what was acknowledged is in it",
        hint="run the command again; see what was recorded with evidence log",
    )


def _refused_by_system(error: OSError) -> UsageError:
    where = f"{error.filename}: " if error.filename else ""
    reason = (error.strerror or str(error)).lower()
    code = "INPUT_MISSING" if isinstance(error, FileNotFoundError) else "OS_REFUSED"
    return UsageError(code, f"{where}{reason}", field=None)
