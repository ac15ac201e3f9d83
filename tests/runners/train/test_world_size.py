"""A run works in as many processes as its plan names, or not at all."""

from __future__ import annotations

import pytest
from several import begun_by
from test_resume import of_run
from test_supervisor import ended, is_whole, launched, scripted
from world import World

from ledger.book import Ledger
from ledger.errors import EvidenceError, UsageError
from runners.train.config import SftSettings
from runners.train.order import micro_batches, rows_of_step, sampler_position, share
from runners.train.tokens import EncodedRow
from runners.train.world_size import check_child, check_size, crowded, processes_of

__all__ = ["scripted"]


def encoded(count):
    """Rows that differ in nothing but their name."""
    return [
        EncodedRow(f"row-{number}", (1, 2), (1, 2), f"group-{number % 3}", False)
        for number in range(count)
    ]


@pytest.mark.parametrize("order", ["random", "grouped"])
@pytest.mark.parametrize(("processes", "accumulation"), [(1, 1), (2, 1), (2, 3), (3, 2)])
def test_shares_are_the_order_of_one_process(order, processes, accumulation):
    """Put together rank by rank, each step's shares are what one process with the same number of rows reads."""
    shape = {"steps": 5, "batch_size": 2, "order": order, "seed": 4}
    several = SftSettings(processes=processes, accumulation=accumulation, **shape)
    alone = SftSettings(accumulation=accumulation * processes, **shape)
    rows = encoded(7)
    whole = [row for batch in micro_batches(rows, alone) for row in batch]
    assert [row for batch in micro_batches(rows, several) for row in batch] == whole
    shares = [share(whole, several, rank) for rank in range(processes)]
    own = accumulation * 2
    together = [
        row for step in range(5) for part in shares for row in part[step * own : (step + 1) * own]
    ]
    assert together == whole
    assert rows_of_step(several) == rows_of_step(alone)
    assert sampler_position(4, 7, several) == sampler_position(4, 7, alone)


def test_threads_beyond_the_cores_are_said():
    """Processes whose threads wait for one another are worth a warning; one process is the machine's own matter."""
    assert crowded(SftSettings(processes=2, threads=2), 2) == [
        "2 processes of 2 threads share 2 cores"
    ]
    assert crowded(SftSettings(processes=2, threads=1), 2) == []
    assert crowded(SftSettings(threads=8), 2) == []


def test_a_child_of_another_size_refuses_its_job():
    """Settings for two processes are no job for one."""
    check_size(SftSettings(processes=2), 2)
    with pytest.raises(UsageError, match="2 processes") as caught:
        check_size(SftSettings(processes=2), 1)
    assert caught.value.code == "WORLD_SIZE"


@pytest.mark.slow
def test_a_launcher_of_another_size_is_refused_before_the_claim(scripted, monkeypatch):
    """Neither launch nor resume begins anything where the surroundings name another number of processes."""
    person = scripted(do="die", at=2)
    monkeypatch.setenv("WORLD_SIZE", "2")
    answer = person.types("run", "launch", person.ids["plan"], "--wait")
    assert (answer.error["code"], answer.error["expected"]) == ("WORLD_SIZE", "1")
    assert "WORLD_SIZE" in answer.error["hint"]
    with Ledger.read(person.ledger) as ledger:
        assert ledger.referrers(person.ids["plan"], "plan", "run.launched") == []
    monkeypatch.delenv("WORLD_SIZE")
    launched(person)
    monkeypatch.setenv("WORLD_SIZE", "many")
    assert person.types("run", "resume", person.ids["run"], "--wait").error["code"] == "WORLD_SIZE"
    assert of_run(person, "run.resumed") == []
    monkeypatch.setenv("WORLD_SIZE", "1")
    person.writes("script.json", {})
    assert person.gets("run", "resume", person.ids["run"], "--wait")["state"] == "completed"


@pytest.mark.slow
@pytest.mark.train
def test_a_child_that_works_alone_is_refused(scripted, person):
    """Two processes are planned and started, and one says that it works by itself: refused before any batch."""
    scripted()
    assert person.plans(steps=4, seed=79, processes=2).code == 0
    answer = person.types("run", "launch", person.ids["plan"], "--wait")
    body, counted = ended(person)
    assert (answer.error["code"], body["failure"]) == ("WORLD_SIZE", "refused")
    assert body["detail"].startswith("WORLD_SIZE: the child works in 1")
    assert set(counted.values()) == {0}
    is_whole(person)


def test_a_child_of_another_size_is_refused():
    """What a child says is compared with the plan of its run, and both numbers are named."""
    world = World()
    plan = world.by_id[str(begun_by(world, 2).ref("plan"))]
    assert processes_of(plan) == 2
    check_child(plan, 2)
    with pytest.raises(EvidenceError) as caught:
        check_child(plan, 3)
    assert (caught.value.expected, caught.value.actual) == ("2", "3")
