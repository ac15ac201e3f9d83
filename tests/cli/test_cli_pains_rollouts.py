"""Public reports about log-probabilities, rewards, groups and samplers: for each a ledger that is refused, and the corrected one.

Each row names its report. A ledger is refused where a record is appended, or by a verifier that reads the blobs; what
settings alone show is in the table of traps, and an adapter whose B stays zero is refused where checkpoints are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import rl_ledger
import samples
from campaigns.group_faults import FAULTS
from rl_ledger import RlLedger

from ledger.errors import LedgerError, UsageError
from verifiers.learning.corrections import Correction, weights
from verifiers.learning.traps import traps_in

Work = Callable[[RlLedger], object]


@dataclass(frozen=True)
class Pain:
    """A report: what fails and with which code, and the same mended, which must be verified."""

    report: str
    what: str
    code: str
    failing: Work
    corrected: Work


def spoiled(fault: str, **body) -> Work:
    """A group with a fault of the campaign's table is recorded."""
    return lambda rl: rl.sample(1, spoil=FAULTS[fault].spoil, **body)


def good(rl: RlLedger) -> None:
    """A group as planned."""
    rl.sample(1)


def batch_of(*, constant: bool) -> Work:
    """A batch of four groups of equal rewards, or with one that is informative among them."""

    def work(rl: RlLedger) -> None:
        groups = [rl.sample(number, constant=True) for number in range(3)]
        rl.batch(*groups, rl.sample(9, constant=constant))

    return work


def sampled_after(*, stale: bool) -> Work:
    """Three updates, and then a group; the sampler has the first weights or the newest."""

    def work(rl: RlLedger) -> None:
        for number in range(3):
            rl.update(rl.batch(rl.sample(number)))
        rl.sample(7, **({"state": samples.weights(0)} if stale else {}))

    return work


def shrunk(rl: RlLedger) -> None:
    """A group of three where four were planned."""
    rl.sample(1, spoil=FAULTS["short"].spoil)


PAINS = [
    Pain("huggingface/trl#6789", "top_p at the sampler alone biases every ratio", "GROUP_SAMPLER", lambda rl: rl.sample(1, sampler={**rl.made_sampler(), "top_p": "0.8"}), good),
    Pain("THUDM/slime#1976", "the sampler's log-probabilities were thrown away", "LOGPROBS_WRONG", spoiled("log-probabilities missing"), good),
    Pain("THUDM/slime#1976", "fewer log-probabilities than tokens", "LOGPROBS_WRONG", spoiled("log-probabilities too few"), good),
    Pain("huggingface/trl#3857", "no group of a batch has a signal", "BATCH_NO_SIGNAL", batch_of(constant=True), batch_of(constant=False)),
    Pain("jsboige/CoursIA PR #10380", "a misspelt column makes every reward None", "GROUP_REWARD", spoiled("reward None"), good),
    Pain("awslabs/agentcore-rl-toolkit PR #122", "a rollout that failed is trained on as a reward of 0", "GROUP_FAILED", spoiled("environment failed"), good),
    Pain("huggingface/trl PR #7176", "a failed rollout is left out, and the group shrinks", "GROUP_SIZE", shrunk, good),
    Pain("radixark/miles#2800", "the missing member is filled up with a copy", "GROUP_DUPLICATE_MEMBER", spoiled("member twice, renumbered"), good),
    Pain("verl-project/verl#7495", "the adapter never reached the sampler", "STATE_BROKEN", sampled_after(stale=True), sampled_after(stale=False)),
    Pain("verl-project/verl#4232", "rewards are recorded beside other trajectories than theirs", "GROUP_REWARD", lambda rl: rl.sample(1, rewards=rl.shuffled(1)), good),
]  # fmt: skip


def refusal(cli, rl: RlLedger, work: Work) -> list[str]:
    """The codes with which a ledger is refused, while it is written or when it is verified."""
    try:
        work(rl)
    except LedgerError as error:
        return [error.code]
    report = cli.json("verify", "--level", "blobs").result
    return [item["code"] for item in report["findings"]]


@pytest.mark.parametrize("pain", PAINS, ids=[f"{n}-{pain.report}" for n, pain in enumerate(PAINS)])
def test_a_report_about_rollouts_is_answered(made, tmp_path, pain):
    """The failing ledger is refused by its code, and the corrected one is verified: nothing else differs."""
    rl = rl_ledger.begin(made, tmp_path, steps_per_generation=1)
    assert refusal(made, rl, pain.corrected) == [], pain.what
    assert refusal(made, rl, pain.failing) == [pain.code], pain.what


def test_a_reward_with_the_wrong_sign_reaches_no_plan(made, tmp_path):
    """NVlabs/alpamayo-recipes#29: the audit finds it, and no reinforcement plan rests on it."""
    (tmp_path / "signed.py").write_text(
        "from verifiers.rewards.support import reward as ours\n"
        "def reward(scenario, reply):\n    return -ours(scenario, reply)[0]\n"
    )
    assert made.json("reward", "audit", tmp_path / "signed.py").error["code"] == "REWARD_INVERTED"
    with pytest.raises(UsageError) as refused:
        rl_ledger.begin(made, tmp_path, reward=str(tmp_path / "signed.py"))
    assert refused.value.code == "REWARD_NOT_AUDITED"
    assert rl_ledger.begin(made, tmp_path).run


def test_a_dropped_share_can_be_seen(made):
    """huggingface/trl#4772: at 0.012 nats a token a completion of 100 tokens loses its whole weight, one of 91 none."""
    del made
    rule = Correction(level="product", rule="mask", high=3.0)
    for tokens, kept in ((100, 0.0), (91, 1.0)):
        found = weights(np.full(tokens, -0.5), np.full(tokens, -0.512), rule)
        assert np.mean(found > 0) == kept
    at_risk = {"use_vllm": True, "num_iterations": 2, "max_completion_length": 100}
    assert [item.number for item in traps_in("trl", at_risk)] == [2]


@pytest.mark.parametrize("report", ["huggingface/trl#3452", "modelscope/ms-swift#4570"])
def test_a_loss_of_zero_alone_says_nothing(report):
    """Where one step reads a generation the loss is zero whatever is learnt; the settings say so before the run."""
    numbers = [item.number for item in traps_in("trl", {"metric_for_best_model": "loss"})]
    assert numbers == [10, 14], report
    assert traps_in("trl", {"metric_for_best_model": "reward", "num_iterations": 2}) == []
