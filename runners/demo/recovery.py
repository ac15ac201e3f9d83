"""The demo's run breaks off half-way and comes back, told by the public commands; then it is held against itself.

A second run to compare with would take as long as the first. It is not needed: the updates that the kill made lost are in the
ledger, the resumed run does them again, and equal digests show that it stands exactly where the lost one stood.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from ledger.digests import inventory, tree_digest
from ledger.errors import UsageError
from runners.cli.render import count
from runners.demo.breaking import kill, watch
from runners.demo.commands import Shell

LEAST_STEPS = 4
LOST = 2
BESIDE = (
    "SELECT redone.id, redone.step, lost.after_value AS before_the_kill, redone.after_value AS done_again "
    "FROM updates redone JOIN updates lost ON redone.ref_replays = lost.id ORDER BY redone.step"
)


@dataclass(frozen=True)
class Recovered:
    """What became of the run.

    Attributes:
        run: id of its launch.
        checkpoint: id of its last checkpoint.
        updates: acknowledged updates that count.
        saved_at: step of the checkpoint that it went on from.
        killed_at: step of the last update before the kill.
        redone: for each update done again its step, the state after the lost one, and the state after itself.
        executed_again: steps that were computed once more from the recorded batches.
        tree: digest of the last checkpoint's folder, rebuilt from the ledger alone.
    """

    run: str
    checkpoint: str
    updates: int
    saved_at: int
    killed_at: int
    redone: list[list[Any]]
    executed_again: int
    tree: str

    def as_dict(self) -> dict[str, Any]:
        """Its part of the demo's result."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Its part of the demo's summary."""
        return [
            f"run killed at step {self.killed_at}, resumed from its checkpoint at step {self.saved_at}",
            f"lost updates redone: {len(self.redone)}, all with the same digests",
            f"computed a third time from the recorded batches: {count(self.executed_again, 'step')}, the same figures",
            f"last checkpoint rebuilt from the ledger alone: tree {short(self.tree)}, as recorded",
        ]


def save_steps(steps: int) -> int:
    """After how many steps a checkpoint is written: half-way."""
    return steps // 2


def lost_updates(steps: int) -> int:
    """How many updates after the checkpoint the kill is to make lost: few, since each is paid for again."""
    return min(LOST, (steps - save_steps(steps)) // 2)


def short(digest: str) -> str:
    """A digest's first sixteen digits."""
    return digest.removeprefix("sha256:")[:16]


def broken_run(shell: Shell, plan: str, steps: int, say: Callable[[str], None]) -> Recovered:
    """Launch a plan, kill it half-way, get it back, and show that nothing of it changed.

    Args:
        shell: types the commands.
        plan: id of the plan, with a checkpoint half-way.
        steps: the plan's optimizer steps, at least `LEAST_STEPS`.
        say: prints a line for the person who watches.

    Raises:
        UsageError: `DEMO_FAILED`, something ended otherwise than told.
    """
    return _Telling(shell, say).tell(plan, steps)


class _Telling:
    """The chapter's scenes, in order."""

    def __init__(self, shell: Shell, say: Callable[[str], None]) -> None:
        self.shell = shell
        self.say = say

    def tell(self, plan: str, steps: int) -> Recovered:
        run = self._run("run", "launch", plan)["run"]
        saved_at, killed_at = self._break(run, lost_updates(steps))
        done = self._resume(run)
        redone = self._beside()
        again = self._execute_again(redone[-1][0])
        tree = self._rebuild(run, done["checkpoint"])
        return Recovered(
            run=run,
            checkpoint=done["checkpoint"],
            updates=done["counters"]["updates"],
            saved_at=saved_at,
            killed_at=killed_at,
            redone=[row[1:] for row in redone],
            executed_again=again,
            tree=tree,
        )

    def _break(self, run: str, lost: int) -> tuple[int, int]:
        """Kill everything soon after the first checkpoint; the steps of the checkpoint and of the last update."""
        stand = watch(self.shell.folder / "ledger", run, lost, self.say)
        groups = kill(stand.claim)
        process = stand.claim.body["process"]
        self.say(
            f"   killed by signal 9: process {process} and its trainer, {groups} process groups, soon after the "
            f"checkpoint at step {stand.saved}. Nobody could record an end."
        )
        status = self._run("run", "status", run)
        self._expect(status["state"] == "unconfirmed", f"the killed run is {status['state']}")
        killed_at = status["counters"]["updates"]
        self.say(f"   {status['state']}: {status['detail']}; {killed_at} updates are acknowledged")
        self.say(
            "   As long as nobody confirmed that it is dead, no run of an equal plan may begin."
        )
        return stand.saved, killed_at

    def _resume(self, run: str) -> dict[str, Any]:
        """Find the process gone, and go on from the newest checkpoint to the end."""
        found = self._run("run", "reconcile", run)
        self.say(f"   found {found['found']} by {found['by']}: {found['evidence']}")
        done = self._run("run", "resume", run, "--wait")
        self.say(
            f"   {done['state']}: {done['counters']['updates']} updates count, {done['superseded']} are kept and do not"
        )
        return done

    def _beside(self) -> list[list[Any]]:
        """The lost updates beside those that redid them."""
        rows: list[list[Any]] = self._run("query", BESIDE)["rows"]
        self.say("   step   state after, before the kill   state after, done again")
        for _, step, lost, found in rows:
            word = "equal" if lost == found else "NOT EQUAL"
            self.say(f"   {step:>4}   {short(lost):<29}   {short(found):<16}   {word}")
        equal = bool(rows) and all(lost == found for _, _, lost, found in rows)
        self._expect(equal, "the updates redone are not those that were lost")
        self.say(
            "   A state is a digest over every trained number: the resumed run stands where the lost one stood, to the last bit."
        )
        return rows

    def _execute_again(self, update: str) -> int:
        """An update once more, from the checkpoint's bytes and the recorded batches."""
        found = self._run("checkpoint", "reexecute", update)
        self.say(
            f"   computed a third time, from the checkpoint and the recorded batches: {count(found['steps'], 'step')}; "
            "the last agrees in loss, gradient, learning rate and the states before and after it"
        )
        return int(found["steps"])

    def _rebuild(self, run: str, checkpoint: str) -> str:
        """The last checkpoint's folder from the ledger alone, the run's own folder being gone."""
        work = self.shell.folder / "ledger" / "work" / run[7:23]
        self.say("")
        self.say(f"$ rm -r {work}")
        shutil.rmtree(work)
        folder = self.shell.folder / "recovered"
        self._run("checkpoint", "recover", checkpoint, str(folder))
        tree = tree_digest(inventory(folder))
        recorded = self._recorded_tree(checkpoint)
        self.say(f"   tree digest of the rebuilt folder   {short(tree)}")
        self.say(f"   tree digest in its record           {short(recorded)}")
        self._expect(tree == recorded, "the rebuilt folder is not the recorded one")
        self.say("   Equal: what the run left on disk may be lost, the checkpoint is not.")
        return tree

    def _recorded_tree(self, checkpoint: str) -> str:
        found = self._run("checkpoint", "list")["checkpoints"]
        return str(next(item["tree"] for item in found if item["checkpoint"] == checkpoint))

    def _run(self, *arguments: str) -> dict[str, Any]:
        result: dict[str, Any] = self.shell.run(*arguments)["result"]
        return result

    @staticmethod
    def _expect(holds: bool, otherwise: str) -> None:
        """What the story tells must be so.

        Raises:
            UsageError: `DEMO_FAILED`.
        """
        if not holds:
            raise UsageError("DEMO_FAILED", otherwise)
