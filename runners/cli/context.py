"""What every command is given: where the ledger and the key are, and one way to answer.

A command parses, makes one library call and hands its result to `App.emit`. `runners.cli.main` prints
it: one JSON object with `--json`, short lines for a person without.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.errors import LedgerError, UsageError
from runners.cli import render
from runners.cli.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ledger.book import Ledger
    from ledger.ed25519 import PrivateKey
    from ledger.query.segments import History
    from ledger.store.address import Address

DEFAULT_LEDGER = "evidence"
PASSPHRASE_VARIABLE = "EVIDENCE_KEY_PASSPHRASE"  # noqa: S105 - the variable's name, not a secret


@dataclass
class Outcome:
    """A command's answer: the JSON result, the lines for a person, the next command, maybe a failure.

    `data` stands for the lines where a program reads on: bytes that go out as they are.
    """

    result: dict[str, Any]
    lines: Sequence[str] = ()
    data: bytes | None = None
    next_step: str | None = None
    failure: LedgerError | None = None
    exit_code: int = 0


@dataclass
class App:
    """One call of the command line.

    Attributes:
        environment: the process's environment variables.
        home: the user's home folder.
        ledger: the ledger folder, where an option named it.
        key: the key file, where an option named it.
        as_json: whether `--json` was given.
        command: the command's name without the program's, e.g. `key list`.
        outcome: what the command answered, once it has.
        run: the id of the run that the call is about, once it is known; hints then name it.
        written: the ledger that was opened to append, whose warnings are worth a line.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    home: Path = field(default_factory=Path.home)
    ledger: str | None = None
    key: str | None = None
    as_json: bool = False
    command: str = ""
    outcome: Outcome | None = None
    run: str | None = None
    written: Ledger | None = None

    # --- where things are ----------------------------------------------------------------------

    @property
    def ledger_path(self) -> Path:
        """The ledger folder: `--ledger`, else `EVIDENCE_LEDGER`, else `./evidence`.

        Raises:
            UsageError: `STORE_ADDRESS`, it is a server's address that is wrong or names no folder.
        """
        address = self.store_address
        if address is None:
            return Path(self.ledger_text)
        if address.folder is None:
            raise UsageError(
                "STORE_ADDRESS", "the address names no folder for the blobs: add ?folder=DIR"
            )
        return address.folder

    @property
    def ledger_text(self) -> str:
        """The ledger as it was named: a folder, or a server's address with the folder of its blobs."""
        return self.ledger or self.environment.get("EVIDENCE_LEDGER") or DEFAULT_LEDGER

    @property
    def store_address(self) -> Address | None:
        """The server that was named as the ledger's store, from now on for this process and its children."""
        from ledger.store import address

        if not address.is_address(self.ledger_text):
            return None
        found = address.parse(self.ledger_text)
        os.environ[address.VARIABLE] = self.ledger_text
        return found

    @property
    def config_dir(self) -> Path:
        """The user's configuration folder for this program."""
        from ledger import places

        return places.config_dir(self.environment, self.home)

    @property
    def state_dir(self) -> Path:
        """Where the user's high-water files lie."""
        from ledger import places

        return places.state_dir(self.environment, self.home)

    @property
    def history(self) -> History:
        """Where sealed history lies, and from which size on: `EVIDENCE_SEGMENTS_FROM`, else a million records.

        Raises:
            UsageError: `USAGE`, the variable is no number above zero.
        """
        from ledger import places
        from ledger.query.segments import FROM_RECORDS, History

        text = self.environment.get("EVIDENCE_SEGMENTS_FROM", "")
        if text and not (text.isascii() and text.isdecimal() and 0 < int(text) < 2**53):
            raise UsageError(
                "USAGE", f"EVIDENCE_SEGMENTS_FROM is {text[:40]!r}, not a number of records"
            )
        folder = places.segments_dir(self.environment, self.home)
        return History(folder, int(text) if text else FROM_RECORDS)

    def key_dir(self, ledger: Ledger) -> Path:
        """Where the user's own keys of a ledger lie."""
        from ledger import places

        first = ledger.at(0)
        if first is None:
            raise UsageError("KEY_MISSING", "the ledger is empty, so it has no keys")
        return places.key_dir(self.config_dir, first.actor)

    # --- opening -------------------------------------------------------------------------------

    def read_ledger(self, path: Path | None = None) -> Ledger:
        """The ledger, to read; use it in a `with` block.

        Raises:
            LedgerError: see `Ledger.read`.
        """
        from ledger.book import Ledger

        return Ledger.read(path or self.ledger_path)

    def open_ledger(self, key: PrivateKey | None = None) -> Ledger:
        """The ledger, to append with the given key or the user's; use it in a `with` block.

        Raises:
            LedgerError: see `writer_key` and `Ledger.open`.
        """
        from ledger.book import Ledger

        writer = key or self.writer_key()
        self.written = Ledger.open(self.ledger_path, key=writer, state_dir=self.state_dir)
        return self.written

    def writer_key(self) -> PrivateKey:
        """The key of `--key` or `EVIDENCE_KEY`, else the writer key that `evidence init` made.

        Raises:
            LedgerError: `KEY_MISSING`, there is neither; what `PrivateKey.load` says of the file.
        """
        from ledger import places

        named = self.key or self.environment.get("EVIDENCE_KEY")
        if named:
            return self.load_key(Path(named))
        with self.read_ledger() as ledger:
            path = self.key_dir(ledger) / places.WRITER_KEY
        return self._default_key(path, "writer", "--key FILE or EVIDENCE_KEY")

    def root_key(self, ledger: Ledger, path: Path | None = None) -> PrivateKey:
        """The key of a given file, else the ledger's current root key from the user's folder.

        Raises:
            LedgerError: `KEY_MISSING`, it is not in the user's folder; what `PrivateKey.load` says.
        """
        from ledger import places

        if path is not None:
            return self.load_key(path)
        folder, current = self.key_dir(ledger), ledger.state().root_key
        rotated = places.rotated_root(folder, current)
        file = rotated if rotated.exists() else folder / places.ROOT_KEY
        found = self._default_key(file, "root", "--root-key FILE")
        if found.id != current:
            raise UsageError(
                "KEY_MISSING",
                f"the root key is now {current}, and {file} holds an earlier one",
                field="--root-key",
                hint="give the file of the key that it was rotated to: --root-key FILE",
            )
        return found

    def load_key(self, path: Path, variable: str = PASSPHRASE_VARIABLE) -> PrivateKey:
        """A private key file, opened with the passphrase in an environment variable.

        Raises:
            LedgerError: see `PrivateKey.load`.
        """
        from ledger.ed25519 import PrivateKey

        return PrivateKey.load(path, self.passphrase(variable))

    def passphrase(self, variable: str = PASSPHRASE_VARIABLE) -> bytes | None:
        """The passphrase in an environment variable, None where it is not set."""
        text = self.environment.get(variable)
        return text.encode("utf-8", "surrogateescape") if text else None

    def new_passphrase(self, variable: str) -> bytes | None:
        """The passphrase for a key about to be made; a variable that was named on purpose must hold one.

        Raises:
            UsageError: `KEY_LOCKED`. What was given as the variable's name is not repeated: it may be the
                passphrase itself.
        """
        passphrase = self.passphrase(variable)
        if passphrase is None and variable != PASSPHRASE_VARIABLE:
            raise UsageError(
                "KEY_LOCKED",
                "the environment variable named by --passphrase-env holds no passphrase",
                field="--passphrase-env",
                hint="give the name of a variable that is set, never the passphrase itself",
            )
        return passphrase

    def _default_key(self, path: Path, role: str, option: str) -> PrivateKey:
        if not path.exists():
            raise UsageError(
                "KEY_MISSING",
                f"no {role} key of this ledger at {path}",
                field="key",
                hint=f"give the key with {option}",
            )
        return self.load_key(path)

    # --- answering -----------------------------------------------------------------------------

    def emit(
        self,
        result: dict[str, Any],
        lines: Sequence[str] = (),
        *,
        data: bytes | None = None,
        next_step: str | None = None,
        failure: LedgerError | None = None,
        exit_code: int | None = None,
    ) -> None:
        """Answer, once: printed when the command has returned, so an error after it still is the answer.

        Args:
            result: the JSON result; see `schemas/cli/`.
            lines: what a person reads on stdout, e.g. from `render.table`.
            data: bytes for stdout instead of the lines, never for a terminal.
            next_step: the command to run next, shown on stderr as the last line.
            failure: why the work was done and yet did not succeed (`verify` that found something wrong):
                the JSON object then has `ok` false, the error and the result.
            exit_code: 1 where there is a failure and 0 where there is none, unless given.
        """
        code = (1 if failure else 0) if exit_code is None else exit_code
        self.outcome = Outcome(result, lines, data, next_step, failure, code)

    def say(self, line: str) -> None:
        """A remark for a person, on stderr; under `--json` only where EVIDENCE_PROGRESS is set."""
        if not self.as_json or self.environment.get("EVIDENCE_PROGRESS"):
            render.write(line, err=True, color=self.color(sys.stderr.isatty()))

    @contextmanager
    def progress(self, label: str, total: int | None = None) -> Iterator[Progress]:
        """A line on stderr that says how far work of over two seconds is; call it to take a step.

        Only a terminal shows it, and `--json` never does.

        Args:
            label: what is being done.
            total: how many steps there are; None where nobody knows yet.
        """
        shown = sys.stderr.isatty() and not self.as_json
        bar = Progress(render.clean(label), total, sys.stderr if shown else None)
        try:
            yield bar
        finally:
            bar.close()

    def color(self, terminal: bool) -> bool:
        """Whether to colour: on a terminal, unless `NO_COLOR` is set (no-color.org)."""
        return terminal and not self.environment.get("NO_COLOR")


pass_app = click.make_pass_decorator(App)
