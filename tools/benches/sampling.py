"""Tokens a second of the two sampling engines on one model, in turns: the embedded one, and vLLM's server.

Prompts of 200 tokens, 64 new ones each, float32, two threads; the first round of each engine warms it up and does not
count. What the server's numbers leave out stands beside: how long it takes to start, and to take new weights. vLLM is
measured where `EVIDENCE_VLLM_PYTHON` names an interpreter that has it; without one its rows are missing.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from campaigns.report import ROOT

from benches.report import ENVIRONMENT, Row, Settings
from runners.prepare.shelf import default_shelf

if TYPE_CHECKING:
    from benches.engines import Engine

T = TypeVar("T")
PROMPT, NEW, THREADS, ROUNDS = 200, 64, 2, 3
AT_ONCE = (1, 8, 16)
MODEL = "smollm2"
MAKE_MODEL = "import sys; from pathlib import Path; import tiny; tiny.make_model(Path(sys.argv[1]), width=256)"


def run(settings: Settings) -> list[Row]:
    """Medians of the rounds for each number of completions at once."""
    from benches.engines import Embedded, Served, adapted  # noqa: PLC0415 - the registry is read without torch

    folder = default_shelf() / MODEL if settings.full else tiny(settings.scratch / "tiny-256")
    model = adapted(folder, THREADS)
    python = os.environ.get("EVIDENCE_VLLM_PYTHON")
    with ExitStack() as stack:
        engines: dict[str, Engine] = {"transformers": Embedded(model, NEW)}
        rows: list[Row] = []
        if python is None:
            settings.say("EVIDENCE_VLLM_PYTHON names no interpreter with vLLM: transformers alone")
        else:
            started, took_s = timed_s(
                lambda: Served(Path(python), folder, settings.scratch, PROMPT + NEW, NEW, THREADS)
            )
            engines["vllm"] = stack.enter_context(started)
            renewals = [timed_s(lambda: started.renew(model, folder))[1] for _ in range(ROUNDS)]
            rows += [
                Row("vllm, start of the server", round(took_s, 1), "s", "less"),
                Row(
                    "vllm, merged weights written and loaded", round(statistics.median(renewals), 2),
                    "s", "less", details={"rounds": [round(value, 3) for value in renewals]},
                ),
            ]  # fmt: skip
        return measured(settings, engines, model.config.vocab_size) + rows


def tiny(folder: Path) -> Path:
    """A tiny model whose heads vLLM's attention knows, made by a process of its own."""
    if not folder.exists():
        path = f"{ENVIRONMENT['PYTHONPATH']}:{ROOT / 'tests' / 'runners'}"
        command = [sys.executable, "-c", MAKE_MODEL, str(folder)]
        subprocess.run(command, env={**ENVIRONMENT, "PYTHONPATH": path}, check=True)
    return folder


def measured(settings: Settings, engines: dict[str, Engine], vocabulary: int) -> list[Row]:
    """Tokens a second by engine and number at once, the engines in turns."""
    from benches.engines import asked  # noqa: PLC0415 - the same

    rows = []
    for count in AT_ONCE:
        asks = asked(vocabulary, PROMPT, count)
        rates: dict[str, list[float]] = {name: [] for name in engines}
        for number in range(ROUNDS + 1):
            settings.say(f"{count} at once, round {number} of {ROUNDS}")
            for name, engine in engines.items():
                tokens, took_s = timed_s(partial(engine.tokens, asks))
                rates[name].append(tokens / took_s)
        rows += [_row(f"{name}, {count} at once", found[1:]) for name, found in rates.items()]
    return rows


def _row(name: str, rates: list[float]) -> Row:
    details = {"rounds": [round(rate, 1) for rate in rates]}
    return Row(name, round(statistics.median(rates), 1), "tokens/s", "more", details=details)


def timed_s(work: Callable[[], T]) -> tuple[T, float]:
    """What the work gave, and its seconds on the wall: a server's processor time is not ours to see."""
    begun = time.perf_counter()
    found = work()
    return found, time.perf_counter() - begun
