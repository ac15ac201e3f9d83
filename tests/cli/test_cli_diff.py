"""`evidence diff`: two runs, plans or checkpoints beside each other."""

from __future__ import annotations

import pytest
import samples
from descent import begun, end, launch, plan, publish, resume, step
from world import Draft, World

from ledger.record import Record


class Pair:
    """Two runs of one ledger, of plans that differ in two settings, which part at the second step."""

    def __init__(self) -> None:
        self.world = world = World()
        world.add("plan.prepared")  # what both rest on
        self.plans = [
            plan(world, settings={"learning_rate": rate, "lora_dropout": "0.0", **more})
            for rate, more in (("0.0001", {}), ("0.001", {"warmup": 3}))
        ]
        self.runs = [launch(world, item) for item in self.plans]
        step(world, self.runs[0], 1)
        step(world, self.runs[1], 1)
        self.checkpoints = [publish(world, run) for run in self.runs]
        step(world, self.runs[0], 2)
        self.other(self.runs[1])
        end(world, self.runs[0])
        end(world, self.runs[1])

    def other(self, run: Record) -> None:
        """An update that reads another batch and comes to another state."""
        state = self.world.chain.state.runs[run.id]
        body = samples.body("batch.built", step=2, digest=samples.digest("another batch"))
        batch = self.world.admit(Draft("batch.built", body, {"run": run.id, "split": state.split}))
        states = {"before": samples.weights(1), "after": samples.weights(77)}
        body = samples.body("update.acknowledged", step=2, **states)
        refs = {"run": run.id, "batch": [batch.id], "previous": str(state.last_update)}
        self.world.admit(Draft("update.acknowledged", body, refs))


@pytest.fixture(scope="module")
def pair() -> Pair:
    """The two runs."""
    return Pair()


@pytest.fixture
def beside(cli, tmp_path, pair):
    """A command line before their ledger."""
    cli.ledger = pair.world.write(tmp_path / "pair")
    return cli


def differing(result: dict[str, object]) -> dict[str, tuple[object, object]]:
    """The fields that differ, by path."""
    return {item["field"]: (item["a"], item["b"]) for item in result["differences"]}


def test_plans_differ_in_their_settings_only(beside, pair):
    """A setting with another value and one that only one plan has are shown, what is equal is counted."""
    result = beside.json("diff", *(item.id for item in pair.plans)).result
    found = differing(result)
    assert found.pop("settings_digest")
    assert found == {"settings.learning_rate": ("0.0001", "0.001"), "settings.warmup": (None, 3)}
    assert (result["kind"], result["parting"]) == ("plan.prepared", None)
    assert result["equal"] > 10


def test_runs_are_followed_to_the_step_where_they_part(beside, pair):
    """Of runs the plans are compared too, the ends, and the updates step by step."""
    result = beside.json("diff", *(item.id for item in pair.runs)).result
    found = differing(result)
    assert found["plan.settings.learning_rate"] == ("0.0001", "0.001")
    assert found["end.counters.updates"] == (3, 2)
    assert result["steps"] == 2
    assert result["parting"] == {"step": 2, "batch": True, "state": True}
    text = beside("diff", *(item.id[7:19] for item in pair.runs)).out
    assert "from step 2 on they read other batches and they came to other states" in text


def test_checkpoints_are_compared_with_the_plans_behind_them(beside, pair):
    """Equal bytes of two runs differ in their run and its plan, in nothing else."""
    result = beside.json("diff", *(item.id for item in pair.checkpoints)).result
    outside = {name for name in differing(result) if not name.startswith("plan.")}
    assert outside == {"refs.run", "refs.update"}
    assert "plan.settings.learning_rate" in differing(result)


def test_a_record_beside_itself_has_no_difference(beside, pair):
    """Nothing differs, and no step parts."""
    run = pair.runs[0].id
    result = beside.json("diff", run, run).result
    assert (result["differences"], result["parting"], result["steps"]) == ([], None, 3)
    assert "run.launched: 0 fields differ" in beside("diff", run, run).out


def test_two_kinds_are_refused(beside, pair):
    """A run and a plan have no common fields; the error says what to name instead."""
    called = beside.json("diff", pair.runs[0].id, pair.plans[0].id)
    assert (called.code, called.error["code"]) == (1, "REF_KIND")
    assert "two runs" in called.error["hint"]


def test_superseded_updates_are_left_out(cli, tmp_path):
    """A run that went back is followed on its live path: its lost update is no step of it."""
    world = World()
    runs = [begun(world), begun(world)]
    checkpoint = publish(world, runs[0])
    step(world, runs[0])
    end(world, runs[0])
    resume(world, runs[0], checkpoint)
    step(world, runs[1])
    cli.ledger = world.write(tmp_path / "back")
    result = cli.json("diff", *(item.id for item in runs)).result
    assert (result["steps"], result["parting"]) == (1, None)
