"""Supervised runs killed at random moments and recovered, held against the same run that nobody disturbed.

The child or the supervisor is killed by signal 9, while the model loads, while it trains or soon after a checkpoint, some
of them twice in a row and some during the recovery; or the run is asked to stop. Each time the run is reconciled where nobody ended it, and resumed.
At the end its last checkpoint has the same bytes, file by file (adapter, optimizer, random states, schedule, sampler), every
update on the live path the same batch and state, each batch once; what was lost is kept, and named by what redid it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from campaigns.interrupted import Interruption, Timing, attempt, timed
from campaigns.report import Outcome, Settings
from campaigns.sft_world import SftWorld, make_world
from ledger.book import Ledger
from ledger.record import Record
from runners.train.status import run_status
from verifiers.verify import Options, verify

KILLS_FULL = 50
MOST_CASES = 100
SLICE = (
    (Interruption("child", "saved", 0.0), Interruption("supervisor", "loading", 0.2)),
    (Interruption("request", "saved", 0.0),),
)
EXCLUDED = {
    "power cuts": "a process is killed, the machine is not; what is durable is the store's own campaign",
    "other hardware": "bit for bit is promised on one kind of processor, with the same threads and libraries",
}


@dataclass(frozen=True)
class Course:
    """What a finished run came to: per step the batch and the state, and the files of its last checkpoint."""

    steps: dict[int, tuple[str, str]]
    files: dict[str, str]


def run(settings: Settings) -> Outcome:
    """Run the campaign."""
    return run_on(make_world(settings.folder / "world", settings.model), settings)


def run_on(world: SftWorld, settings: Settings) -> Outcome:
    """Run the campaign on a world that is ready."""
    outcome = Outcome(excluded=dict(EXCLUDED))
    whole = world.copied(settings.folder / "whole")
    timing = timed(whole)
    reference = _path(whole)
    outcome.figures |= {"steps": len(reference.steps), "files": sorted(reference.files)}
    outcome.counts["undisturbed run verified"] += int(_verified(whole))
    for case, planned in _cases(settings, outcome):
        outcome.cases += 1
        disturbed = world.copied(settings.folder / f"case-{case}")
        try:
            _disturb(disturbed, planned, timing, outcome)
        except RuntimeError as error:
            outcome.failures.append(f"case {case}: {error}")
            continue
        outcome.failures += [f"case {case}: {line}" for line in _judge(disturbed, reference)]
        settings.progress(_kills(outcome), KILLS_FULL)
    return outcome


def _cases(settings: Settings, outcome: Outcome) -> Iterator[tuple[int, tuple[Interruption, ...]]]:
    """The cases to run: a fixed few, or as many random ones as it takes until enough processes were killed."""
    if settings.case is not None:
        yield settings.case, _plan(settings, settings.case)
        return
    for case in range(MOST_CASES):
        if case >= len(SLICE) and (not settings.full or _kills(outcome) >= KILLS_FULL):
            return
        yield case, _plan(settings, case)


def _plan(settings: Settings, case: int) -> tuple[Interruption, ...]:
    """What happens to a case's run, in order; all of it from the seed."""
    if case < len(SLICE):
        return SLICE[case]
    source = settings.random(case)
    if source.random() < 0.1:
        return (_interruption(source, ("request",), 0.0),)
    again = source.choice((1, 1, 2, 2, 3))
    victims = ("child", "supervisor")
    return tuple(_interruption(source, victims, 0.4 if index else 0.1) for index in range(again))


def _interruption(source: random.Random, victims: tuple[str, ...], loading: float) -> Interruption:
    phase = "loading" if source.random() < loading else source.choice(("training", "saved"))
    return Interruption(source.choice(victims), phase, source.random())


def _kills(outcome: Outcome) -> int:
    return sum(number for name, number in outcome.counts.items() if " killed while " in name)


def _disturb(
    world: SftWorld, planned: tuple[Interruption, ...], timing: Timing, outcome: Outcome
) -> None:
    """Interrupt a run as planned, then let it end.

    Raises:
        RuntimeError: it could not be recovered, or did not end.
    """
    struck = 0
    for interruption in planned:
        if world.state() == "completed":
            return
        found = attempt(world, interruption, timing)
        outcome.counts[f"{found} while {interruption.phase}"] += 1
        struck = struck + 1 if found.endswith("killed") else 0
        if struck > 1:
            outcome.counts["killed again before it had ended"] += 1
    if world.state() != "completed":
        attempt(world, None, timing)
    if world.state() != "completed":
        raise RuntimeError(f"the run ended {world.state()}: {world.detail()}")


def _judge(world: SftWorld, reference: Course) -> list[str]:
    """What of a recovered run is not as in the undisturbed one; nothing where all is well."""
    wrong = []
    found = _path(world)
    if found.files != reference.files:
        names = sorted(found.files.items() ^ reference.files.items())
        wrong.append(f"the last checkpoint differs in {sorted({name for name, _ in names})}")
    if found.steps != reference.steps:
        steps = sorted(dict(found.steps.items() ^ reference.steps.items()))
        wrong.append(f"batches or states differ at steps {steps}")
    with Ledger.read(world.ledger) as ledger:
        wrong += _superseded(ledger, world.run(ledger))
    if not _verified(world):
        wrong.append("the ledger does not verify")
    return wrong


def _superseded(ledger: Ledger, launched: Record) -> list[str]:
    """Whether each update that does not count is named by the one that redid it, and status counts them."""
    live = {item.id for item in _live(ledger, launched)}
    updates = ledger.referrers(launched.id, "run", "update.acknowledged")
    lost = {item.id for item in updates} - live
    redone = {str(item.ref("replays")) for item in updates if item.ref("replays")}
    wrong = [] if lost == redone else ["a superseded update is not named by one that redid it"]
    counted = run_status(ledger, launched).superseded
    return wrong if counted == len(lost) else [*wrong, f"status counts {counted} of {len(lost)}"]


def _path(world: SftWorld) -> Course:
    with Ledger.read(world.ledger) as ledger:
        launched = world.run(ledger)
        steps = {}
        fed: list[str] = []
        for update in _live(ledger, launched):
            batches = update.ref_list("batch")
            fed += batches
            digest = ",".join(str(ledger.get(name).body["digest"]) for name in batches)
            steps[int(update.body["step"])] = digest, str(update.body["after"]["value"])
        if len(fed) != len(set(fed)):
            steps[0] = "a batch was fed twice", ""
        last = ledger.referrers(launched.id, "run", "checkpoint.published")[-1]
        files = {item["path"]: item["digest"] for item in last.body["files"]}
    return Course(steps, files)


def _live(ledger: Ledger, launched: Record) -> list[Record]:
    """The updates on a completed run's live path, newest first."""
    ended = ledger.referrers(launched.id, "run", "run.ended")[-1]
    found, name = [], ended.ref("last_update")
    while name is not None:
        update = ledger.get(name)
        found.append(update)
        name = update.ref("previous")
    return found


def _verified(world: SftWorld) -> bool:
    report = verify(world.ledger, Options(level="blobs", workers=1))
    return report.verdict == "verified"
