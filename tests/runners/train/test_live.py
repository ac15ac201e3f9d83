"""The figures of a run that goes on are those of its newest updates, and say nothing where nothing is known."""

from __future__ import annotations

import descent
import pytest
from world import World, clock_at

from ledger.book import Ledger
from runners.cli.run_views import duration
from runners.train.live import PACE_UPDATES, Live, live
from runners.train.status import PREPARED, STATES, launch_of, run_status, unlaunched


def figures(world, run, folder, later_s=0):
    """The figures of a run so many seconds after its newest record."""
    with Ledger.read(world.write(folder)) as ledger:
        found = run_status(ledger, ledger.get(run.id))
        return live(ledger, found, clock_at(world.records[-1].seq + later_s))


def test_before_the_first_update_nothing_is_claimed(tmp_path):
    """A run that has just begun has no loss, no pace and no time left."""
    world = World()
    run = descent.begun(world, updates=0)
    assert figures(world, run, tmp_path / "l") == Live()


def test_pace_and_ages_come_from_the_records_times(tmp_path):
    """A record a second: an update takes two, the batch before it being the other; ages count to the time given."""
    world = World()
    run = descent.begun(world, updates=3)
    saved = descent.publish(world, run)
    found = figures(world, run, tmp_path / "l", later_s=5)
    assert (found.loss, found.gradient_norm, found.learning_rate) == ("2.5", "0.7", "0.0001")
    assert found.updates_per_s == 0.5
    assert (found.last_update_age_s, found.checkpoint_age_s) == (6.0, 5.0)
    assert found.checkpoint_step == saved.body["step"] == 3
    assert found.left_s is None  # no process of this machine works at it


def test_pace_is_of_this_attempt_and_of_the_newest_updates(tmp_path):
    """What lies between a break and a resumption is no training time; old updates are not looked at."""
    world = World()
    run = descent.launch(world, descent.plan(world, budget_updates=4 * PACE_UPDATES))
    descent.step(world, run, PACE_UPDATES)
    saved = descent.publish(world, run)
    descent.end(world, run)
    for _ in range(50):
        world.add("note.added")
    descent.resume(world, run, saved)
    assert figures(world, run, tmp_path / "resumed").updates_per_s is None
    descent.step(world, run, 2)
    assert figures(world, run, tmp_path / "two").updates_per_s == 0.5


def test_a_clock_that_went_back_gives_no_pace_and_no_age_below_zero(tmp_path):
    """Times are claims: figures that cannot be are left out or cut at zero."""
    world = World()
    run = descent.begun(world, updates=1)
    draft = descent.next_update(world, run)
    draft.time = clock_at(0)
    world.admit(draft)
    with Ledger.read(world.write(tmp_path / "l")) as ledger:
        found = live(ledger, run_status(ledger, ledger.get(run.id)), "2025-01-01T00:00:00.000Z")
    assert (found.updates_per_s, found.last_update_age_s) == (None, 0.0)


def test_plans_that_nobody_launched_are_prepared(tmp_path):
    """A plan is prepared until its launch, and only then."""
    world = World()
    first, second = descent.plan(world), descent.plan(world)
    run = descent.launch(world, first)
    with Ledger.read(world.write(tmp_path / "l")) as ledger:
        assert [item.id for item in unlaunched(ledger)] == [second.id]
        assert launch_of(ledger, first).id == run.id
        assert launch_of(ledger, second) is None
    assert PREPARED in STATES


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (200, "3 min 20 s"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (273_600, "3 d 4 h"),
    ],
)
def test_durations_are_said_as_a_person_says_them(seconds, said):
    """Two units at most, the lower one left out where it is nothing."""
    assert duration(seconds) == said
