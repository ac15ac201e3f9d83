"""The whole job with a tiny model, typed command by command: what it leaves, and that a stranger can check it."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from ledger.book import Ledger
from runners.cli.results import RESULTS
from verifiers.replay import REPLAYS

pytestmark = pytest.mark.slow  # whoever comes first waits for the job


def kinds(ledger: Ledger) -> dict[str, int]:
    """How many records of each kind."""
    found: dict[str, int] = {}
    for record in ledger.records():
        found[record.kind] = found.get(record.kind, 0) + 1
    return found


def test_the_job_leaves_one_record_for_each_step(person):
    """Nothing is recorded twice, and each acknowledged step has its batch."""
    with Ledger.read(person.ledger) as ledger:
        found = kinds(ledger)
    assert found == {
        "ledger.created": 1, "key.enrolled": 1, "model.registered": 2, "source.ingested": 1,
        "dataset.parsed": 1, "split.declared": 1, "leakage.audited": 1, "plan.prepared": 1,
        "run.launched": 1, "batch.built": 6, "update.acknowledged": 6, "checkpoint.published": 1,
        "run.ended": 1, "protocol.registered": 1, "arm.transcribed": 2, "judge.passed": 4,
        "evaluation.completed": 2, "comparison.made": 1, "promotion.refused": 1,
        "snapshot.recorded": 2,
    }  # fmt: skip


def test_a_stranger_derives_everything_again(person):
    """Every record that claims something derivable is derived again, and all blobs are re-hashed."""
    answer = person.verify()
    assert (answer.code, answer.result["findings"], answer.result["warnings"]) == (0, [], [])
    with Ledger.read(person.ledger) as ledger:
        expected = {kind: count for kind, count in kinds(ledger).items() if kind in REPLAYS}
    assert answer.result["replayed"] == expected
    assert answer.result["blobs"]["unread"] == answer.result["blobs"]["withheld"] == 0


def test_one_record_can_be_verified_with_what_it_rests_on(person):
    """Verification of the refusal reaches everything below it and not what came beside it."""
    answer = person.types("verify", person.ids["refusal"], "--level", "blobs", "--workers", 1)
    assert answer.code == 0
    assert answer.result["scope"] == person.ids["refusal"]
    assert answer.result["replayed"]["promotion.refused"] == 1
    assert answer.result["replayed"]["dataset.parsed"] == 1


def test_a_run_in_the_background_returns_at_once_and_completes(person):
    """Launching without --wait answers with a live run that then goes to its end by itself."""
    launched = json.loads((person.folder / "launched.json").read_bytes())
    status = person.gets("run", "status", person.ids["run"])
    assert (launched["state"], launched["run"]) == ("running", person.ids["run"])
    assert (status["state"], status["counters"]["updates"]) == ("completed", 6)
    assert status["checkpoint"] == person.ids["checkpoint"]


def test_weights_follow_from_weights(person):
    """Each update starts where the one before ended, and the checkpoint is the last state."""
    with Ledger.read(person.ledger) as ledger:
        updates = ledger.of_kind("update.acknowledged")
        checkpoint = ledger.get(person.ids["checkpoint"])
    states = [(item.body["before"]["value"], item.body["after"]["value"]) for item in updates]
    assert all(left[1] == right[0] for left, right in pairwise(states))
    assert len({after for _, after in states}) == 6
    assert checkpoint.body["state"]["value"] == states[-1][1]


def test_base_and_adapter_were_put_the_same_questions(person):
    """Both arms have one digest over their prompts, and other weights."""
    with Ledger.read(person.ledger) as ledger:
        base, adapter = ledger.of_kind("arm.transcribed")
    assert base.body["prompts"] == adapter.body["prompts"]
    assert base.body["weights"] != adapter.body["weights"]


def test_a_single_seed_is_not_promoted(person):
    """The refusal names that one training seed is descriptive, and what helps."""
    answer = person.types("promote", person.ids["checkpoint"])
    reasons = {reason["code"]: reason for reason in answer.result["reasons"]}
    assert (answer.code, answer.error["code"]) == (1, "PROMOTION_REFUSED")
    assert "SEEDS_TOO_FEW" in reasons
    assert all(reason["hint"] and reason["message"] for reason in reasons.values())


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["run", "list"], id="runs"),
        pytest.param(["checkpoint", "list"], id="checkpoints"),
        pytest.param(["run", "status", "@run"], id="one run"),
        pytest.param(["run", "logs", "@run"], id="its log"),
        pytest.param(["model", "catalog"], id="catalogue"),
        pytest.param(["lineage", "@refusal"], id="lineage"),
        pytest.param(["eval", "compare", "@base", "@adapter"], id="comparing again"),
        pytest.param(["data", "audit", "@split"], id="auditing again"),
    ],
)
def test_answers_have_the_promised_shape(person, words):
    """What commands about the job print as JSON is what their schema promises."""
    named = [person.ids[word[1:]] if word.startswith("@") else word for word in words]
    answer = person.types(*named)
    assert answer.code == 0
    RESULTS[answer.object["command"]].model_validate(answer.result)


def test_launching_twice_answers_with_the_first_claim(person):
    """A plan is launched once, ever: the second launch shows the first run and records nothing."""
    with Ledger.read(person.ledger) as ledger:
        before = ledger.size
    for words in ([], ["--wait"]):
        again = person.gets("run", "launch", person.ids["plan"], *words)
        assert (again["run"], again["state"]) == (person.ids["run"], "completed")
    with Ledger.read(person.ledger) as ledger:
        assert ledger.size == before
