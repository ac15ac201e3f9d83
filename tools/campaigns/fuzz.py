"""Coverage-guided fuzzing of every parser of bytes, each target in processes of its own.

The fuzzer (atheris, on libFuzzer) lives in an environment of its own, made or reused as `.venv-fuzz`; where it cannot be
installed the campaign fails. Bounds: seconds for one input and megabytes for the process. What breaks a target is kept in
the report as base64, to become a regression test.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from campaigns.fuzz_targets import TARGETS, Target
from campaigns.report import ROOT, Outcome, Settings

FULL_S = 3600
SLICE_S = 40
LEAST_S = 1
INPUT_S = 20
MEMORY_MIB = 2048
STARTING_S = 120
SHOWN_BYTES = 1500
MODULE = "campaigns.fuzz_targets"
ENVIRONMENT = (".venv-fuzz", "requirements/fuzz.txt")
EXCLUDED = {
    "libraries' own native code": "instrumented is our code; a crash of a library would still end a target and be reported",
    "model files in torch": "not parsed by us; the header of safetensors is",
}
_RUNS = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
_COVERED = re.compile(r"cov: (\d+)")


@dataclass(frozen=True)
class Fuzzed:
    """What came of one target: inputs tried, code reached, seeds, and inputs that broke it."""

    name: str
    inputs: int
    covered: int
    broken: list[str]


def run(settings: Settings) -> Outcome:
    """Every target for its share of the time, several at once."""
    outcome = Outcome(excluded=dict(EXCLUDED))
    python = make_environment()
    names = list(TARGETS) if settings.case is None else [list(TARGETS)[settings.case]]
    seconds = shares(names, (FULL_S if settings.full else SLICE_S) * settings.workers)
    with ThreadPoolExecutor(settings.workers) as pool:
        jobs = [
            pool.submit(fuzz, python, name, TARGETS[name], seconds[name], settings)
            for name in names
        ]
        for done, job in enumerate(jobs, 1):
            _count(outcome, names.index(job.result().name), job.result())
            settings.progress(done, len(names))
    return outcome


def shares(names: list[str], total_s: int) -> dict[str, int]:
    """Seconds for each target, by weight."""
    weights = sum(TARGETS[name].weight for name in names)
    return {name: max(LEAST_S, total_s * TARGETS[name].weight // weights) for name in names}


def make_environment() -> Path:
    """The fuzzer's Python, its environment made or reused.

    Raises:
        RuntimeError: it cannot be made, perhaps for want of a wheel for this Python.
    """
    folder, requirement = ENVIRONMENT
    command = [
        sys.executable,
        "tools/environment.py",
        "--folder",
        folder,
        "--requirement",
        requirement,
    ]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        message = (
            f"the fuzzer cannot be installed from {requirement} for Python {sys.version.split()[0]}"
        )
        raise RuntimeError(message)
    return Path(done.stdout.strip())


def fuzz(
    python: Path, name: str, target: Target, seconds: int, settings: Settings, module: str = MODULE
) -> Fuzzed:
    """Run one target for so many seconds, from seeds made here."""
    corpus, found = settings.folder / f"{name}-corpus", settings.folder / f"{name}-found"
    corpus.mkdir()
    found.mkdir()
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = [
        f"-max_total_time={seconds}",
        f"-timeout={INPUT_S}",
        f"-rss_limit_mb={MEMORY_MIB}",
        f"-max_len={target.max_bytes}",
        f"-seed={settings.seed}",
        f"-artifact_prefix={found}/",
        "-print_final_stats=1",
    ]
    command = [
        str(python),
        "-P",
        "-m",
        "campaigns.fuzz_target",
        module,
        name,
        *options,
        str(corpus),
    ]
    with (settings.folder / f"{name}.log").open("wb") as log:
        try:
            code = subprocess.run(
                command, cwd=ROOT, env=_environment(), stdout=log, stderr=log,
                timeout=seconds + STARTING_S, check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            code = -1
    text = (settings.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")
    broken = [_saved(path) for path in sorted(found.iterdir())]
    if code != 0 and not broken:
        broken = [f"ended with {code}: {text[-400:]}"]
    elif broken:
        broken[0] += f" after {_reason(text)}"
    runs, covered = _RUNS.search(text), _COVERED.findall(text)
    return Fuzzed(name, int(runs[1]) if runs else 0, int(covered[-1]) if covered else 0, broken)


def _environment() -> dict[str, str]:
    path = os.pathsep.join((str(ROOT), str(ROOT / "tools"), str(ROOT / "tests")))
    return os.environ | {"PYTHONPATH": os.environ.get("PYTHONPATH", path)}


def _saved(path: Path) -> str:
    """A kept input: what became of it and its bytes."""
    data = path.read_bytes()
    shown = base64.b64encode(data[:SHOWN_BYTES]).decode()
    more = f" and {len(data) - SHOWN_BYTES} bytes more" if len(data) > SHOWN_BYTES else ""
    return f"{path.name.partition('-')[0]} base64 {shown}{more}"


def _reason(text: str) -> str:
    """The line of the log that says what was raised."""
    lines = text.splitlines()
    places = [place for place, line in enumerate(lines) if "Uncaught Python exception" in line]
    return lines[places[0] + 1][:200] if places and places[0] + 1 < len(lines) else "no exception"


def _count(outcome: Outcome, case: int, fuzzed: Fuzzed) -> None:
    outcome.cases += fuzzed.inputs
    outcome.counts[f"{fuzzed.name} inputs"] = fuzzed.inputs
    outcome.figures[f"{fuzzed.name} features reached"] = fuzzed.covered
    outcome.failures += [f"case {case}: {fuzzed.name}: {item}" for item in fuzzed.broken]
    if not fuzzed.inputs and not fuzzed.broken:
        outcome.failures.append(f"case {case}: {fuzzed.name}: no input was tried")
