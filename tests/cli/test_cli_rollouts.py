"""`evidence verify --level blobs` on a ledger with a reinforcement run: groups and their batches are derived again."""

from __future__ import annotations

import pytest
import rl_ledger
import samples
from campaigns.group_faults import FAULTS
from campaigns.group_maker import STATE

from ledger.errors import UsageError
from verifiers.replay.rollouts import datum_digest


@pytest.fixture
def rl(made, tmp_path):
    """A launched run of the support reward."""
    return rl_ledger.begin(made, tmp_path)


def findings(cli):
    """Codes and kinds of what a verifier finds."""
    report = cli.json("verify", "--level", "blobs").result
    return [(item["code"], item["step"]) for item in report["findings"]], report


def test_a_run_of_groups_is_derived_again(made, rl):
    """Two groups feed two updates, a third is sampled after them: all of it is verified, and the rest is said."""
    groups = [rl.sample(1), rl.sample(2)]
    for item in groups:
        rl.update(rl.batch(item))
    rl.update(rl.batch(rl.sample(3)))
    found, report = findings(made)
    assert found == []
    assert report["verdict"] == "verified"
    assert report["replayed"]["rollout.group"] == report["replayed"]["batch.built"] == 3
    assert any("were fed" in text or "was fed" in text for text in report["on_faith"])
    assert any("with these log-probabilities" in text for text in report["on_faith"])


def test_a_batch_may_name_its_completions(made, rl):
    """A batch that reads completions in an order of its own lists them, and the list is what counts."""
    group = rl.sample(1)
    order = [(group.id, 2), (group.id, 0)]
    data = "".join(f'{{"group":"{name}","member":{member}}}\n' for name, member in order).encode()
    tokens = sum(rl.made[0][1].group.trainable(member) for _, member in order)
    listed = {"rows_blob": rl.put(data, "application/jsonl"), "digest": datum_digest(order)}
    rl.batch(group, **listed, datums=2, trainable_tokens=tokens)
    assert findings(made)[0] == []
    rl.batch(group, **listed, datums=2, trainable_tokens=tokens + 1)
    assert findings(made)[0] == [("BATCH_GROUPS", "V18")]


WRONG_GROUPS = {
    "an invented reward": ({"rewards": ["1.0", "1.0", "1.0", "1.0"]}, "GROUP_REWARD"),
    "other advantages": ({"advantages": ["9.0", "0.0", "0.0", "0.0"]}, "GROUP_ADVANTAGE"),
    "another script": ({"script": samples.digest("script")}, "GROUP_OTHER_SCRIPT"),
    "another task": ({"task": samples.digest("task")}, "GROUP_OTHER_TASK"),
    "no trace": ({"trace": None}, "GROUP_MALFORMED"),
    "another temperature": ({"sampler": {}}, "GROUP_SAMPLER"),
}


@pytest.mark.parametrize(("change", "code"), WRONG_GROUPS.values(), ids=WRONG_GROUPS)
def test_a_group_that_is_not_so_is_found(made, rl, change, code):
    """What the chain's rules let pass is found by its code where the blobs are read."""
    rl.sample(1, **change)
    assert findings(made)[0] == [(code, "V18")]


def test_a_held_out_row_is_no_task(made, rl):
    """A group of a row that is not for training is found, however right all else is."""
    held_out = min(set(rl.rows) - set(rl.train))
    rl.sample(1, row=held_out)
    assert findings(made)[0] == [("GROUP_OTHER_TASK", "V18")]


@pytest.mark.parametrize(
    "change",
    [{"datums": 3}, {"trainable_tokens": 1}, {"digest": samples.digest("batch")}],
    ids=["datums", "tokens", "digest"],
)
def test_a_batch_of_other_groups_than_named_is_found(made, rl, change):
    """Counts and digest follow from the groups."""
    rl.batch(rl.sample(1), **change)
    assert findings(made)[0] == [("BATCH_GROUPS", "V18")]


def test_a_group_of_an_old_policy_is_stale(made, rl):
    """A group serves as many updates as the plan says, and not one more."""
    group = rl.sample(1)
    planned = rl.settings["num_iterations"] * rl.settings["steps_per_generation"]
    for _ in range(planned):
        rl.update(rl.batch(group))
    assert findings(made)[0] == []
    rl.batch(group)
    assert findings(made)[0] == [("GROUP_STALE", "V18")]


def test_a_group_of_another_state_than_its_policy_is_found(made, rl):
    """The state that a group names is that of the policy record it names, not only the run's newest."""
    rl.update(rl.batch(rl.sample(1)))
    with pytest.raises(UsageError) as refused:
        rl.sample(2, state=STATE)
    assert refused.value.code == "STATE_BROKEN"


def test_a_group_that_names_another_policy_than_its_state_is_found(made, rl):
    """The state is the run's newest, and the policy record that is named is not where it came to be."""
    rl.update(rl.batch(rl.sample(1)))
    rl.update(rl.batch(rl.sample(2)))
    state = rl.updates[-1].body["after"]
    newest = rl.updates.pop()
    rl.sample(3, state=state)
    rl.updates.append(newest)
    assert findings(made)[0] == [("GROUP_STATE", "V18")]


@pytest.mark.parametrize(
    ("fault", "code"),
    [("mask flipped", "GROUP_TOKENS"), ("samples cut", "TENSORS_INVALID"), ("stops miscounted", "GROUP_CUT")],
)  # fmt: skip
def test_a_group_whose_files_are_not_so_is_found(made, rl, fault, code):
    """What is wrong in the blobs is found through the record that names them."""
    rl.sample(1, spoil=FAULTS[fault].spoil)
    assert findings(made)[0] == [(code, "V18")]


def test_a_batch_without_signal_is_found(made, tmp_path):
    """A batch of nothing but constant groups teaches nothing; beside an informative group a constant one may stand."""
    rl = rl_ledger.begin(made, tmp_path, steps_per_generation=1)
    rl.batch(rl.sample(1, constant=True), rl.sample(2))
    assert findings(made)[0] == []
    rl.batch(rl.sample(3, constant=True), rl.sample(4, constant=True))
    assert findings(made)[0] == [("BATCH_NO_SIGNAL", "V18")]


def test_an_own_reward_is_on_faith(made, tmp_path):
    """What a reward of one's own gave is somebody's word, and the report says so; all else of the group is checked."""
    (tmp_path / "mine.py").write_text(
        "from verifiers.rewards.support import reward as ours\n"
        "def reward(scenario, reply):\n    return ours(scenario, reply)[0]\n"
    )
    rl = rl_ledger.begin(made, tmp_path, reward=str(tmp_path / "mine.py"))
    rl.sample(1)
    found, report = findings(made)
    assert found == []
    assert any("a reward of one's own" in text for text in report["on_faith"])
