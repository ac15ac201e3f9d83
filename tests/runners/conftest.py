"""One tiny model, and one whole job done with it, for all tests of the runners that need a real one."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from small_job import Person, do_the_job, needs_torch, settle


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny model, shared: tests read it and never write to it."""
    needs_torch()
    return pytest.importorskip("tiny").make_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """The whole job, done once by the public commands for all tests and all worker processes."""
    needs_torch()

    def make(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            settle(patch, Person(folder))
            do_the_job(folder)

    folder = once(tmp_path_factory, "small-job", make)
    return Person(folder, json.loads((folder / "ids.json").read_bytes()))


@pytest.fixture
def person(finished: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    """Somebody with a copy of the whole job, and an environment in which commands mean that copy."""
    copied = finished.copied_to(tmp_path / "person")
    settle(monkeypatch, copied)
    return copied


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that the first worker process makes and the others wait for."""
    base = factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = base / name, base / f"{name}.done"
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder
