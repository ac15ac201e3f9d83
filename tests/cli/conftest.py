"""A command line to call in this process, with its user's folders below the test's own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from world import World, grown

from runners.cli.main import main
from runners.cli.results import RESULTS
from runners.cli.results.base import Failure, Warned

ORIGIN = "example.com/tests"


@dataclass(frozen=True)
class Called:
    """What a call left behind."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        return json.loads(self.out)

    @property
    def result(self) -> dict[str, Any]:
        """Its result."""
        return self.answer["result"]

    @property
    def error(self) -> dict[str, Any]:
        """Its error."""
        return self.answer["error"]


class Cli:
    """Calls `evidence` in this process.

    Attributes:
        ledger: the ledger folder that every call is given, None for none.
        home: the user's home, configuration and state folder.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str], home: Path) -> None:
        self._capsys = capsys
        self.home = home
        self.ledger: Path | None = None

    def __call__(self, *words: object) -> Called:
        """Call a command line; `json` below for one with `--json`."""
        place = [] if self.ledger is None else ["--ledger", str(self.ledger)]
        self._capsys.readouterr()
        code = main([*place, *(str(word) for word in words)])
        out, err = self._capsys.readouterr()
        return Called(code, out, err)

    def json(self, *words: object) -> Called:
        """Call with `--json`: nothing may be on stderr."""
        called = self(*words, "--json")
        assert called.err == ""
        check_shape(called)
        return called

    def key_files(self) -> list[Path]:
        """Every private key in the user's configuration folder."""
        return sorted((self.home / "config").rglob("*.pem"))


def check_shape(called: Called) -> None:
    """An answer is one line of ASCII, of the shape that its command promises, and agrees with the exit code."""
    assert called.out.isascii()
    assert called.out.count("\n") == 1
    answer = called.answer
    assert answer["ok"] == (called.code == 0)
    assert answer.keys() <= {"ok", "command", "result", "error", "warnings"}
    if "error" in answer:
        Failure.model_validate(answer["error"])
        assert not answer["ok"]
    if "result" in answer:
        RESULTS[answer["command"]].model_validate(answer["result"])
    for warning in answer.get("warnings", []):
        Warned.model_validate(warning)
    assert answer.keys() & {"result", "error"}


@pytest.fixture
def cli(capsys, monkeypatch, tmp_path) -> Cli:
    """A command line of a user who has nothing yet."""
    home = tmp_path / "home"
    for variable in ("EVIDENCE_LEDGER", "EVIDENCE_KEY", "EVIDENCE_KEY_PASSPHRASE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.delenv("EVIDENCE_SEGMENTS_FROM", raising=False)
    monkeypatch.chdir(tmp_path)
    return Cli(capsys, home)


@pytest.fixture
def made(cli, tmp_path) -> Cli:
    """A command line with a ledger that `evidence init` just made."""
    folder = tmp_path / "ledger"
    assert cli("init", folder, "--origin", ORIGIN).code == 0
    cli.ledger = folder
    return cli


@pytest.fixture(scope="session")
def full_world() -> World:
    """A world with at least one record of every kind."""
    return grown()


@pytest.fixture
def full(cli, tmp_path, full_world) -> Cli:
    """A command line before somebody else's ledger that holds every kind."""
    cli.ledger = full_world.write(tmp_path / "full")
    return cli
