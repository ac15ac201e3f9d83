"""A random walk over one ledger folder and two machines that write it: the model against the product, step by step.

The model is the history in the folder, the histories in the backups, the head that each machine's high-water
file holds, and what each restore record named. After every step both machines verify, and so does a reader who
has no file.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from campaigns.rollback_world import (
    Case,
    History,
    Named,
    alarm,
    codes,
    expect,
    expect_mark,
    history,
    report,
)
from ledger.highwater import path_of
from ledger.restores import Restored

STEPS = 20


@dataclass
class Machine:
    """A writer's machine: its high-water folder, and the head that the file in it must hold."""

    state: Path
    mark: History | None = None


@dataclass
class Walk:
    """The state of the model."""

    case: Case
    random: Random
    place: Path
    machines: list[Machine]
    now: History = ()
    backups: list[tuple[Path, History]] = field(default_factory=list)
    named: Named = field(default_factory=Named)
    done: Counter[str] = field(default_factory=Counter)

    @property
    def machine(self) -> Machine:
        """One of the machines, by chance; the first more often."""
        return self.machines[self.random.random() < 0.3]

    def read(self) -> History:
        """What the folder holds now."""
        return history(self.place, self.case.folder / "scratch")


def walk(case: Case, random: Random, steps: int = STEPS) -> Counter[str]:
    """Take so many steps; what they came to.

    Raises:
        WrongError: product and model differ.
    """
    machines = [Machine(case.folder / name) for name in ("here", "there")]
    made = Walk(case, random, case.folder / "ledger", machines)
    case.create(made.place, machines[0].state)
    made.now = machines[0].mark = made.read()
    _backup(made)
    for _ in range(steps):
        step = random.choice(STEPS_TAKEN)
        step(made)
        _look(made)
    return made.done


def _append(made: Walk) -> None:
    """A writer opens and appends, or is refused; a mark that a restore record names is lowered first."""
    machine = made.machine
    due = alarm(made.now, machine.mark, made.named)
    if due:
        expect(made.case.note(made.place, machine.state), due, "a writer")
        expect(made.read(), made.now, "the ledger after a refusal")
    else:
        settled = bool(machine.mark) and made.now[: len(machine.mark or ())] != machine.mark
        count = made.random.randrange(1, 4)
        expect(made.case.note(made.place, machine.state, count), None, "a writer")
        made.now = machine.mark = _grown(made)
        due = "appended, mark lowered by a restore record" if settled else "appended"
    made.done[due] += 1


def _seal(made: Walk) -> None:
    machine = made.machine
    if alarm(made.now, machine.mark, made.named):
        return
    made.case.seal(made.place, machine.state)
    made.now = machine.mark = _grown(made)
    made.done["sealed"] += 1


def _grown(made: Walk) -> History:
    found = made.read()
    expect(found[: len(made.now)], made.now, "what stood before")
    return found


def _backup(made: Walk) -> None:
    to = made.case.folder / f"backup-{len(made.backups)}"
    shutil.copytree(made.place, to)
    made.backups.append((to, made.now))
    made.done["backed up"] += 1


def _put_back(made: Walk) -> None:
    source, made.now = made.random.choice(made.backups)
    shutil.rmtree(made.place)
    shutil.copytree(source, made.place)
    made.done["put back"] += 1


def _elsewhere(made: Walk) -> None:
    """A writer whose machine has no file appends: what puts a second history beside the first."""
    made.case.note(made.place, None, made.random.randrange(1, 4))
    made.now = _grown(made)
    made.done["appended without a file"] += 1


def _crash(made: Walk) -> None:
    """A writer appends and dies between commit and high-water write: the file stays at the older head."""
    machine = made.machine
    if alarm(made.now, machine.mark, made.named) or not machine.mark:
        return
    if made.now[: len(machine.mark)] != machine.mark:
        return  # the mark would be lowered at opening, before the append
    older = machine.mark
    path = path_of(machine.state, older[0])
    data = path.read_bytes()
    made.case.note(made.place, machine.state, made.random.randrange(1, 3))
    made.now = _grown(made)
    path.write_bytes(data)
    made.done["crashed before the mark"] += 1


def _lose_the_file(made: Walk) -> None:
    machine = made.machines[1]
    path_of(machine.state, made.now[0]).unlink(missing_ok=True)
    machine.mark = None
    made.done["high-water file lost"] += 1


def _restore(made: Walk, *, crash: bool = False) -> None:
    """The owner restores; a crash leaves the record and the alarm, which the next one finishes."""
    machine = made.machine
    if machine.mark is None:
        return
    before = made.now
    settling = made.named.settling(before, machine.mark)
    due = alarm(before, machine.mark, made.named)
    path = path_of(machine.state, before[0])
    data = path.read_bytes()
    answer = made.case.restore(made.place, machine.state)
    if settling is not None and before[: len(machine.mark)] != machine.mark:
        expect(getattr(answer, "finished_earlier", answer), True, "a restore that was cut short")
        expect(made.read(), before, "the ledger after finishing a restore")
        machine.mark = before[: settling + 1]
        made.done["restore finished"] += 1
    elif due == "LEDGER_ROLLED_BACK":
        made.now = _grown(made)
        expect(len(made.now), len(before) + 1, "records of a restore")
        expect(isinstance(answer, Restored), True, f"a restore: {answer}")
        made.named.heads[made.now[-1]] = machine.mark
        if crash:
            path.write_bytes(data)
        else:
            machine.mark = made.now
        made.done["restored, then a crash" if crash else "restored"] += 1
    else:
        expect(answer, due or "NOT_ROLLED_BACK", "a restore that is not due")
        expect(made.read(), before, "the ledger after a refused restore")
        made.done[f"restore refused {due or 'NOT_ROLLED_BACK'}"] += 1


def _restore_and_crash(made: Walk) -> None:
    _restore(made, crash=True)


def _look(made: Walk) -> None:
    """Both machines and a stranger verify; each file holds what the model says."""
    stranger = report(made.place, None)
    expect((stranger.verdict, stranger.rollback), ("verified", "unchecked"), "a stranger")
    restores = sum(item in made.named.heads for item in made.now)
    warned = [item for item in stranger.warnings if item.code == "LEDGER_RESTORED"]
    expect(len(warned), restores, "restores that verify tells of")
    for machine in made.machines:
        due = alarm(made.now, machine.mark, made.named)
        found = report(made.place, machine.state)
        expect(codes(found), [due] if due else [], "a verifier beside a file")
        if not due:
            expect(found.rollback, _rollback(made, machine), "what verify says of rollback")
        if machine.mark is not None:
            expect_mark(machine.state, machine.mark)


def _rollback(made: Walk, machine: Machine) -> str:
    if machine.mark is None:
        return "unchecked"
    reached = made.now[: len(machine.mark)] == machine.mark
    return "high water reached" if reached else "high water given up by a restore"


STEPS_TAKEN: list[Callable[[Walk], None]] = [
    _append,
    _append,
    _append,
    _seal,
    _backup,
    _put_back,
    _put_back,
    _elsewhere,
    _crash,
    _restore,
    _restore,
    _restore_and_crash,
    _lose_the_file,
]
