"""Runs in the background whose child has no model: who launches them, what lives of them, and how it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from small_job import WAIT_S

from ledger.book import Ledger
from runners.train import supervisor
from runners.train.processes import start_token
from runners.train.status import run_status

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(__file__).resolve().parent / "children" / "site"
LEARNER = "tests.runners.children.learner"
LONG = {"steps": 2000, "step_s": 0.3}
"""A run that goes on for as long as any test of it needs."""


class Away:
    """A person whose runs go on in processes of their own; with `model` it is the tiny model that learns."""

    def __init__(self, person, monkeypatch, *, model=False):
        self.person = person
        self.seed = 1000
        self.clients = []
        path = str(ROOT)
        if not model:
            monkeypatch.setattr(supervisor, "CHILD", LEARNER)
            monkeypatch.setenv("HOME", str(person.folder))
            path = f"{SITE}{os.pathsep}{ROOT}"
        monkeypatch.setenv("PYTHONPATH", path)

    def plans(self, steps=4, settings=None, **script):
        """A new plan of so many steps, its child's script; the plan."""
        self.seed += 1
        self.scripts(**script)
        answer = self.person.plans(steps=steps, seed=self.seed, **(settings or {}))
        return answer.result["plan"]

    def scripts(self, **script):
        """What the child and the supervisor do from now on."""
        self.person.writes("script.json", script)

    def client(self, *words, as_json=True):
        """A command in a process of its own that is not waited for."""
        command = [sys.executable, "-P", "-m", "runners.cli.main", *words]
        command += ["--json"] if as_json else []
        with as_in_a_terminal():
            client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.clients.append(client)
        return client

    def launches(self, steps=4, **script):
        """A new plan launched in the background; its run."""
        plan = self.plans(steps, **script)
        self.person.ids["plan"] = plan
        self.person.ids["run"] = self.person.types_apart("run", "launch", plan).result["run"]
        return self.person.ids["run"]

    def updates(self, count):
        """Wait until the run has so many updates."""
        return self.person.waits(lambda found: found["counters"]["updates"] >= count)

    def status(self):
        """How the run stands."""
        return self.person.gets("run", "status", self.person.ids["run"])

    def supervisor(self):
        """The number of the process that supervises the run's newest attempt."""
        with Ledger.read(self.person.ledger) as ledger:
            found = run_status(ledger, ledger.get(self.person.ids["run"]))
        return found.claim.body["process"]

    def records(self, kind):
        """The run's records of a kind."""
        with Ledger.read(self.person.ledger) as ledger:
            return ledger.referrers(self.person.ids["run"], "run", kind)

    def ends(self):
        """Kill what still lives of any command and any run."""
        for client in self.clients:
            with client:
                client.kill()
        with Ledger.read(self.person.ledger) as ledger:
            found = [*ledger.of_kind("run.launched"), *ledger.of_kind("run.resumed")]
        for claim in found:
            pid = claim.body["process"]
            works = start_token(pid) == claim.body["start_token"]
            if works and pid != os.getpid():  # an attempt that was waited for was this process's
                for child in children(pid):
                    kills(child)
                kills(pid)


@contextmanager
def as_in_a_terminal():
    """What is started within the block ignores no signal, also where these tests run in the background or under nohup."""
    numbers = (signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def children(pid):
    """A process's children."""
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(word) for word in thread.read_text().split()]
    return found


def kills(pid, number=signal.SIGKILL):
    """Send a signal, and wait until the process is gone where it must be."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
    if number == signal.SIGKILL:
        until(lambda: start_token(pid) == "gone")


def until(condition):
    """Wait for something."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
