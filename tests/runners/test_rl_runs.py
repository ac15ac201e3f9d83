"""A reinforcement run by the public commands: what it records, what it logs, how it ends, how it goes on."""

from __future__ import annotations

import json

import pytest
import rl_job
from small_job import Person, needs_torch, settle

from ledger.book import Ledger
from ledger.canonical import decode, parse_real
from runners.train.rl_config import RlSettings
from verifiers.learning.advantages import advantages
from verifiers.replay.rollouts import datum_digest


@pytest.fixture(scope="module")
def done(tmp_path_factory, tiny_model):
    """Somebody whose run of four updates is over."""
    needs_torch()
    folder = tmp_path_factory.mktemp("rl-runs")
    with pytest.MonkeyPatch.context() as patch:
        settle(patch, Person(folder))
        person = rl_job.begin(folder, tiny_model)
        person.writes("done.json", rl_job.runs(person, save_steps=2))
        yield person


@pytest.fixture
def person(done, tmp_path, monkeypatch):
    """Somebody with a copy of everything."""
    copied = done.copied_to(tmp_path / "person")
    settle(monkeypatch, copied)
    return copied


def test_groups_are_recorded_before_what_is_made_of_them(done):
    """Two generations of two groups serve four updates, in the order group, batch, update; the counters say so."""
    with Ledger.read(done.ledger) as ledger:
        kinds = [record.kind for record in ledger.records() if record.ref("run")]
        ended = ledger.of_kind("run.ended")[-1].body
        groups = {item.id: item for item in ledger.of_kind("rollout.group")}
        batches = ledger.of_kind("batch.built")
    assert kinds[:4] == ["rollout.group", "rollout.group", "batch.built", "update.acknowledged"]
    assert ended["counters"] == {
        "groups": len(groups), "datums": 32, "updates": 4, "outcomes": 0,
    }  # fmt: skip
    for batch in batches:
        names = batch.ref_list("group")
        assert set(names) <= groups.keys()
        datums = [(name, place) for name in names for place in range(groups[name].body["members"])]
        assert batch.body["digest"] == datum_digest(datums)
        assert batch.body["datums"] == 8
    assert batches[0].body["digest"] == batches[1].body["digest"] != batches[2].body["digest"]


def test_a_group_says_all_that_it_rests_on(done):
    """Its files hold the agreed tensors and lines, its advantages follow from its rewards, its sampler is the plan's."""
    numpy = pytest.importorskip("safetensors.numpy")
    with Ledger.read(done.ledger) as ledger:
        settings = ledger.get(done.ids["plan"]).body["settings"]
        for group in ledger.of_kind("rollout.group"):
            body = group.body
            data = ledger.blobs.read(body["samples"]["digest"])
            tensors = numpy.load(data)
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            types = {name: entry["dtype"] for name, entry in header.items()}
            lines = [
                decode(line) for line in ledger.blobs.read(body["trace"]["digest"]).splitlines()
            ]
            assert types == {
                "prompt_ids": "I32", "lengths": "I32", "completion_ids": "I32", "mask": "U8", "logprobs": "F32",
            }  # fmt: skip
            assert tensors["lengths"].tolist() == [line["turns"][0]["tokens"] for line in lines]
            assert tensors["logprobs"].max() <= 0
            assert [line["reward"] for line in lines] == body["rewards"]
            assert len({line["seed"] for line in lines}) == body["members"] == 4
            rewards = [parse_real(text) for text in body["rewards"]]
            defined = advantages(rewards, rl_job_rule())
            assert [parse_real(text) for text in body["advantages"]] == list(defined)
            assert body["sampler"] == {name: settings[name] for name in body["sampler"]}
            assert sum(body["stops"].values()) == 4


def rl_job_rule():
    """The rule of advantages of the small plan."""
    return RlSettings.from_values(rl_job.RL).rule()


def test_the_ledger_verifies(done):
    """Groups, rewards, advantages, batches and checkpoints are derived again from the blobs, and nothing is wrong."""
    answer = done.types("verify", "--level", "blobs", "--workers", 1)
    assert (answer.code, answer.result["findings"]) == (0, [])
    replayed = answer.result["replayed"]
    with Ledger.read(done.ledger) as ledger:
        assert replayed["rollout.group"] == len(ledger.of_kind("rollout.group")) > 0
    assert (replayed["checkpoint.published"], replayed["batch.built"]) == (2, 4)


def test_the_log_has_a_line_for_each_update(done):
    """`run logs` shows reward, share with signal, ratio, divergence and seconds of each step."""
    lines = done.gets("run", "logs", done.ids["run"], "--lines", 200)["lines"]
    steps = [line for line in lines if line.startswith("step ")]
    assert [line.split(":")[0] for line in steps] == ["step 1", "step 2", "step 3", "step 4"]
    assert all(word in steps[1] for word in ("reward", "signal", "ratio", "clipped", "kl", " s"))


def test_an_update_says_what_its_ratios_did(done):
    """The first update of a generation has ratios of 1, the second has moved; both are in the record."""
    with Ledger.read(done.ledger) as ledger:
        updates = [item.body["figures"] for item in ledger.of_kind("update.acknowledged")]
    assert parse_real(updates[0]["ratio_max"]) == pytest.approx(1, abs=1e-3)
    assert parse_real(updates[1]["ratio_max"]) > 1.001
    assert parse_real(updates[0]["sampler_gap"]) < 1e-3
    assert updates[0]["groups_sampled"] >= 2


def test_updates_on_groups_are_executed_again(done):
    """From the run's start, every loss, norm and state comes out of the recorded groups as it was recorded."""
    found = done.gets("checkpoint", "reexecute", "--run", done.ids["run"], "--all")
    assert (found["updates"], found["agreed"], found["steps"]) == (4, 4, 4)
    assert (found["disagreements"], found["changed"]) == ([], [])


def test_one_update_is_executed_again_from_the_nearest_checkpoint(done):
    """The last update of four takes two steps from the checkpoint after the second."""
    [*_, last] = rl_job.of_run(done, "update.acknowledged")
    found = done.gets("checkpoint", "reexecute", last.id)
    assert (found["updates"], found["agreed"], found["steps"]) == (1, 1, 2)


def test_constant_rewards_make_no_update(person):
    """Where every member says the same nothing is learned: the run fails as `no_signal` after the stated draws."""
    rl_job.plans(person, temperature=0.001, redraw_limit=1, seed=9)
    answer = person.types("run", "launch", person.ids["plan"], "--wait")
    assert answer.error["code"] == "RUN_FAILED"
    with Ledger.read(person.ledger) as ledger:
        ended = ledger.of_kind("run.ended")[-1]
        groups = ledger.referrers(str(ended.ref("run")), "run", "rollout.group")
    assert (ended.body["outcome"], ended.body["failure"]) == ("failed", "no_signal")
    assert "2 draws of 2 groups" in ended.body["detail"]
    assert ended.body["counters"] == {"groups": 4, "datums": 0, "updates": 0, "outcomes": 0}
    assert len(groups) == 4


def test_a_run_begins_with_a_checkpoints_weights(person):
    """From another run's checkpoint: its adapter is the frozen reference, so the first divergence is 0."""
    person.ids["checkpoint"] = json.loads((person.folder / "done.json").read_bytes())["checkpoint"]
    rl_job.plans(person, "--init-from", person.ids["checkpoint"], seed=21, steps=2)
    person.ids["run"] = person.gets("run", "launch", person.ids["plan"], "--wait")["run"]
    [restored] = rl_job.of_run(person, "checkpoint.restored")
    first, second = rl_job.of_run(person, "update.acknowledged")
    assert restored.body["mode"] == "weights"
    assert first.body["before"] == restored.body["state"]
    assert first.body["figures"]["kl"] == "0.0"
    assert parse_real(second.body["figures"]["kl"]) > 0
