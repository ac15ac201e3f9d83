"""What becomes of groups: recorded or rejected, drawn again, dealt to updates; and what a child may not say of them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the train extra")

from rl_run import RlRun, settings
from safetensors.numpy import load, save

from ledger.canonical import real
from ledger.errors import EvidenceError, UsageError
from runners.train.child_events import check_event
from runners.train.group_checks import check_sampled
from runners.train.group_files import Group, Member, read_group, samples_bytes, trace_bytes
from runners.train.rewarding import earned
from runners.train.sampled import RL_FIELDS
from verifiers.learning.advantages import advantages

TASK, SCRIPT = "sha256:" + "1" * 64, "sha256:" + "2" * 64
MEMBERS = tuple(
    Member(seed, (5, 6, 2), (-1.0, -0.5, -0.25), "a reply", "end", reward, {"part": reward})
    for seed, reward in ((1, 1.0), (2, 0.0), (3, 0.5), (4, 0.25))
)
GROUP = Group(TASK, SCRIPT, (9, 8, 7), MEMBERS)
SETTINGS = settings()


def test_a_group_comes_back_from_its_files():
    """Samples and trace hold the whole group, and the same group gives the same bytes."""
    again = read_group(samples_bytes(GROUP), trace_bytes(GROUP))
    assert again == GROUP
    assert (samples_bytes(again), trace_bytes(again)) == (samples_bytes(GROUP), trace_bytes(GROUP))


def body(**change):
    """The record of the group, with something changed."""
    rewards = [real(member.reward) for member in MEMBERS]
    gains = [real(float(value)) for value in advantages(GROUP.rewards, SETTINGS.rule())]
    return {
        "task": TASK, "script": SCRIPT, "members": 4, "rewards": rewards, "advantages": gains,
        "sampler": SETTINGS.sampler(), "stops": {"end": 4},
        "state": {"scheme": "tensors", "value": "x"}, **change,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "change", "given"),
    [
        ("GROUP_FAILED", {"members": (*MEMBERS[:3], replace(MEMBERS[3], failed="why"))}, {TASK}),
        ("GROUP_SIZE", {"members": MEMBERS[:3]}, {TASK}),
        ("GROUP_DUPLICATE_MEMBER", {"members": (*MEMBERS[:3], MEMBERS[0])}, {TASK}),
        ("GROUP_OTHER_TASK", {}, set()),
        ("LOGPROBS_WRONG", {"members": (replace(MEMBERS[0], logprobs=(0.5, -1.0, -1.0)), *MEMBERS[1:])}, {TASK}),
    ],
)  # fmt: skip
def test_a_group_that_does_not_count_is_refused(tmp_path, code, change, given):
    """The verifier's rules decide before anything is recorded; the group as it is is not refused."""
    files = tmp_path / "samples", tmp_path / "trace"
    for group, refused in ((GROUP, None), (replace(GROUP, **change), code)):
        files[0].write_bytes(samples_bytes(group))
        files[1].write_bytes(trace_bytes(group))
        if refused is None:
            check_sampled(body(), *files, {TASK}, SETTINGS.effective())
            continue
        with pytest.raises(EvidenceError) as caught:
            check_sampled(body(), *files, given, SETTINGS.effective())
        assert caught.value.code == refused


def test_a_reward_that_fails_is_no_zero():
    """A case that cannot be judged gives no number and says why, so that its group is rejected."""
    reward, parts, failed = earned(
        {"kind": "desk", "id": "x"}, "hello", "end", 2, settings(reward="desk")
    )
    assert (reward, parts) == (None, {})
    assert failed.startswith("CASE_BROKEN")


def test_length_costs_what_is_planned():
    """Within the buffer a completion loses a part of the penalty, at the limit all of it."""
    of = settings(overlong_buffer=4, overlong_penalty=2.0)  # of 12 tokens
    row = {"kind": "scenario", "opening": "Hello", "turns": [], "policy_facts": [], "context": "", "expected": {"decision": "refuse"}, "must_avoid": []}  # fmt: skip
    free = earned(row, "some words", "end", 8, of)[0]
    assert earned(row, "some words", "end", 10, of)[0] == free - 1.0
    assert earned(row, "some words", "end", 12, of)[0] == free - 2.0


def test_a_rejected_group_is_not_read(tiny_model, tmp_path):
    """Where the supervisor rejects a group the batch is filled from further draws, and says how many were rejected."""
    turned_down = []

    def answer(event):
        if event["event"] != "groups":
            return {}
        files = sorted(Path(event["path"]).glob("*.safetensors"))
        names = [f"sha256:{event['draw']:063d}{number}" for number in range(len(files))]
        if event["draw"] == 0:
            turned_down.append(names[0])
            return {"groups": [None, *names[1:]]}
        return {"groups": names}

    run = RlRun(tiny_model, tmp_path, settings(steps=1), answer)
    assert run.here()["outcome"] == "completed"
    read = {name for event in run.of("batch") for name, _ in event["groups"]}
    assert not read & set(turned_down)
    assert run.of("update")[0]["figures"]["groups_rejected"] == 1
    assert len(run.of("groups")) > 1


def test_dynamic_sampling_reads_no_constant_group(tiny_model, tmp_path):
    """Every group of every update says something, whatever number of draws that takes; the figures say how many."""
    of = settings(
        objective="dapo", overlong_penalty=0.0, overlong_buffer=0, steps=2, redraw_limit=20
    )
    run = RlRun(tiny_model, tmp_path, of)
    run.here()
    first = run.of("update")[0]["figures"]
    assert first["signal"] == "1.0"
    assert first["redrawn"] == len({event["draw"] for event in run.of("groups")}) - 1 > 0
    assert first["groups_constant"] > 0


def test_each_update_reads_a_group_that_says_something(tiny_model, tmp_path):
    """Groups are dealt so that no slice of a generation is made of constant groups alone."""
    of = settings(
        steps=2, groups_per_batch=4, steps_per_generation=2, num_iterations=1, group_size=3
    )
    run = RlRun(tiny_model, tmp_path, of)
    run.here()
    assert all(event["figures"]["signal"] != "0.0" for event in run.of("update"))
    assert [len(event["groups"]) for event in run.of("batch")] == [2, 2]


def test_completions_of_another_policy_are_not_trained_on(tiny_model, tmp_path):
    """Log-probabilities that the live weights do not give end the run before the optimizer's step."""
    first = RlRun(tiny_model, tmp_path / "first", settings(steps=1))
    first.here()
    shutil.copytree(tmp_path / "first" / "journal", tmp_path / "second" / "journal")
    for path in (tmp_path / "second" / "journal").glob("*/*.safetensors"):
        tensors = load(path.read_bytes())
        path.write_bytes(save({**tensors, "logprobs": tensors["logprobs"] / 2}))
    second = RlRun(tiny_model, tmp_path / "second", settings(steps=1))
    with pytest.raises(UsageError) as caught:
        second.here()
    assert caught.value.code == "SAMPLER_OTHER"
    assert second.of("update") == []


def test_nothing_but_constant_groups_is_no_signal(tiny_model, tmp_path):
    """A sampler that always says the same comes to the limit of draws and to NO_SIGNAL, without a batch."""
    run = RlRun(tiny_model, tmp_path, settings(temperature=0.001, redraw_limit=2))
    with pytest.raises(UsageError) as caught:
        run.here()
    assert caught.value.code == "NO_SIGNAL"
    assert [event["draw"] for event in run.of("groups")] == [0, 1, 2]
    assert run.of("batch") == []


@pytest.mark.parametrize(
    "event",
    [
        {"event": "groups", "generation": 0, "draw": 0, "state": "x", "path": "y"},
        {"event": "batch", "step": 1, "micro_batches": [], "trainable_tokens": 1},
        {"event": "sampled"},
    ],
)
def test_a_child_says_groups_in_one_form(event):
    """An event that lacks a field, or is of another method, is refused."""
    with pytest.raises(EvidenceError) as caught:
        check_event(event, RL_FIELDS)
    assert caught.value.code == "CHILD_PROTOCOL"
