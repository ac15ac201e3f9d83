"""Protocols, evaluations, comparisons and promotions: what they rest on, and what is refused without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from other_plans import another_plan
from small_job import EVAL

from ledger.blobs import BlobStore
from ledger.book import Ledger
from ledger.codes import CODES
from ledger.errors import UsageError
from runners.assess import asking, evaluate, promote
from runners.assess.protocols import read_config
from runners.prepare.data import read_lines
from verifiers.judgement.promotion import PromotionDecision

pytestmark = pytest.mark.slow  # whoever comes first waits for the job


def registers(person, **settings):
    """Register a protocol on the job's split."""
    named = {"split": person.ids["split"], "judge": person.ids["judge"]}
    config = {**named, **EVAL, **settings}
    given = {name: value for name, value in config.items() if value is not None}
    return person.types("eval", "register", person.writes("another.json", given))


@pytest.mark.parametrize(
    ("settings", "exit_code", "code", "words"),
    [
        pytest.param({"judge": None}, 1, "JUDGE_MISSING", "dialogue", id="dialogues without a judge"),
        pytest.param({"dialogue_cases": 99}, 1, "CASES_TOO_FEW", "2 dialogue", id="too many dialogues"),
        pytest.param(
            {"desk_cases": 0, "dialogue_cases": 0, "judge": None}, 1, "CASES_TOO_FEW", "4 desk", id="no case"
        ),
        pytest.param({"max_new_token": 9}, 2, "SETTING_UNKNOWN", "the nearest is max_new_tokens", id="misspelt"),
        pytest.param({"role": "train"}, 2, "SETTING_INVALID", "validation or test", id="training rows"),
        pytest.param({"desk_cases": "all"}, 2, "SETTING_INVALID", "desk_cases", id="a word for a number"),
        pytest.param({"split": None}, 2, "SETTING_INVALID", "names no split", id="no split"),
    ],
)  # fmt: skip
def test_a_protocol_that_cannot_be_is_refused(person, settings, exit_code, code, words):
    """Cases, judge and settings are checked before anything is recorded."""
    answer = registers(person, **settings)
    assert (answer.code, answer.error["code"]) == (exit_code, code)
    assert words in answer.error["message"]
    assert answer.error["hint"]


def test_a_protocol_takes_whole_twins_of_its_role(person):
    """Its cases are the split's, of the role that it names."""
    found = registers(person, desk_cases=2, dialogue_cases=0, judge=None).result
    with Ledger.read(person.ledger) as ledger:
        protocol = ledger.get(found["protocol"])
        cases = read_lines(ledger, protocol.body["cases"])
    assert {case["twin"] for case in cases} == {cases[0]["twin"]}
    assert (found["cases"], protocol.body["judging"]) == ({"desk": 2}, None)
    assert person.verify().result["verdict"] == "verified"


def test_a_test_set_is_not_read_without_a_review(person):
    """A protocol on test rows may be registered, but no arm is recorded under it."""
    protocol = registers(person, role="test").result["protocol"]
    with person.opens() as ledger:
        arm = ledger.of_kind("arm.transcribed")[0]
        refs = {**arm.refs, "protocol": protocol}
        with pytest.raises(UsageError, match="TEST_NOT_REVIEWED"):
            ledger.append("arm.transcribed", arm.body, refs)


def test_only_what_is_registered_is_evaluated(person):
    """An unknown model or another kind's record: the error names what is needed and both ways to make it."""
    for name, code in (("abcdef012345", "REF_NOT_FOUND"), (person.ids["dataset"], "REF_KIND")):
        answer = person.types("eval", "run", person.ids["protocol"], name)
        assert (answer.code, answer.error["code"], answer.error["record"]) == (1, code, name)
        assert answer.error["expected"] == "model.registered or checkpoint.published"
        assert answer.error["hint"] == (
            "make it: evidence model add DIR or evidence run launch PLAN; or find its id: evidence log"
        )
    answer = person.types("eval", "run", "abcdef012345", person.ids["model"])
    assert answer.error["hint"].startswith("make it: evidence eval register CONFIG; ")


def test_a_checkpoint_without_its_files_is_not_evaluated(person):
    """The record alone is not enough: where the bytes are gone nothing is transcribed."""
    with Ledger.read(person.ledger) as ledger:
        checkpoint = ledger.get(person.ids["checkpoint"])
        size = ledger.size
    store = BlobStore(person.ledger / "blobs")
    store.path(checkpoint.body["files"][0]["digest"]).unlink()
    answer = person.types("eval", "run", person.ids["protocol"], person.ids["checkpoint"])
    assert (answer.code, answer.error["code"]) == (2, "BLOB_MISSING")
    assert answer.error["hint"] == CODES["BLOB_MISSING"].hint
    with Ledger.read(person.ledger) as ledger:
        assert ledger.size == size


def test_an_evaluation_without_judge_passes_is_refused(person):
    """A judged protocol counts nothing until both orders of every pass are there; the error lists them."""
    with person.opens() as ledger:
        honest = ledger.get(person.ids["adapter"])
        for passes in ([], honest.ref_list("pass")[:1]):
            refs = {"protocol": person.ids["protocol"], "arm": honest.ref_list("arm")}
            if passes:
                refs["pass"] = passes
            with pytest.raises(UsageError) as refused:
                ledger.append("evaluation.completed", honest.body, refs)
            error = refused.value
            assert (error.code, error.field) == ("PASSES_MISSING", "refs.pass")
            assert "direction reversed of" in error.message
            assert error.as_dict()["hint"] == CODES["PASSES_MISSING"].hint
    assert "evidence eval run PROTOCOL" in CODES["PASSES_MISSING"].hint


def test_arms_are_not_compared_before_they_are_judged(person):
    """What was transcribed and not evaluated is no evaluation; the command that makes one is named."""
    with Ledger.read(person.ledger) as ledger:
        arm = ledger.of_kind("arm.transcribed")[0].id
    answer = person.types("eval", "compare", arm, person.ids["adapter"])
    assert (answer.code, answer.error["code"], answer.error["record"]) == (1, "REF_KIND", arm)
    assert answer.error["expected"] == "evaluation.completed"
    assert answer.error["hint"].startswith("make it: evidence eval run PROTOCOL")


def test_evaluations_of_two_protocols_are_not_compared(person):
    """The same cases under another protocol are another question."""
    protocol = registers(person, name="again").result["protocol"]
    with person.opens() as ledger:
        honest = ledger.get(person.ids["adapter"])
        old = ledger.get(honest.ref_list("arm")[0])
        arm = ledger.append("arm.transcribed", old.body, {**old.refs, "protocol": protocol})
        passes = [
            ledger.append(item.kind, item.body, {"protocol": protocol, "arm": arm.id})
            for item in map(ledger.get, honest.ref_list("pass"))
        ]
        other = evaluate.complete(ledger, ledger.get(protocol), arm, passes)
    answer = person.types("eval", "compare", person.ids["base"], other.id)
    assert (answer.code, answer.error["code"]) == (1, "PAIRING_BROKEN")
    assert "another protocol" in answer.error["message"]
    assert "evidence eval run PROTOCOL" in answer.error["hint"]
    assert person.verify().result["verdict"] == "verified"


def test_an_evaluation_is_not_compared_with_itself(person):
    """The baseline is not among the candidates."""
    answer = person.types("eval", "compare", person.ids["base"], person.ids["base"])
    assert (answer.code, answer.error["code"]) == (1, "PAIRING_BROKEN")


def test_an_evaluation_that_the_child_breaks_off_counts_nothing(person, monkeypatch):
    """A child that crashes leaves its log, whose place is said, and no arm."""
    monkeypatch.setattr(evaluate, "GENERATE", "tests.runners.children.behave")
    answer = person.types("eval", "run", person.ids["protocol"], person.ids["model"])
    assert (answer.code, answer.error["code"]) == (1, "EVALUATION_FAILED")
    message, _, log = answer.error["message"].partition("; log: ")
    assert message == "answering ended failed: CHILD_DIED: it ended with exit code 1"
    assert "KeyError: 'do'" in Path(log).read_text()
    with Ledger.read(person.ledger) as ledger:
        assert len(ledger.of_kind("arm.transcribed")) == 2


def test_a_sum_that_is_not_finite_is_left_out():
    """A judge whose log-probability overflowed said nothing about that part."""
    raw = [
        {"item": "a", "part": "good", "tokens": 3, "logprob_sum": "-1.5"},
        {"item": "a", "part": "alone", "tokens": 3, "logprob_sum": "-inf"},
    ]
    for order, parts in asking.PARTS.items():
        lines = asking.raw_lines(
            order, [dict(raw[0], part=parts[0]), dict(raw[1], part=parts[1])], {"a": "x"}
        )
        assert str(lines).count("-1.5") == 1
        assert "inf" not in str(lines)


def test_nothing_is_promoted_that_was_never_compared(person):
    """Without a comparison there is nothing to weigh; the command that makes one is named."""
    with person.opens() as ledger:
        plan = another_plan(ledger, ledger.get(person.ids["plan"]), seed=4711)
        honest = ledger.get(person.ids["run"]).body
        seen = ledger.seen().model_dump()
        run = ledger.append("run.launched", {**honest, "seen": seen}, {"plan": plan.id})
        refs = {"run": run.id, "split": person.ids["split"]}
        batch = ledger.append("batch.built", ledger.of_kind("batch.built")[0].body, refs)
        update = ledger.of_kind("update.acknowledged")[0].body
        update = ledger.append("update.acknowledged", update, {"run": run.id, "batch": [batch.id]})
        old = ledger.get(person.ids["checkpoint"]).body
        spent = {"step": 1, "spent_updates": 1, "spent_datums": batch.body["datums"]}
        body = {**old, **spent, "state": update.body["after"]}
        checkpoint = ledger.append(
            "checkpoint.published", body, {"run": run.id, "update": update.id}
        )
    answer = person.types("promote", checkpoint.id)
    assert (answer.code, answer.error["code"]) == (1, "COMPARISON_MISSING")
    assert answer.error["record"] == checkpoint.id
    assert answer.error["hint"] == CODES["COMPARISON_MISSING"].hint


def test_this_version_grants_nothing(person, monkeypatch):
    """Where nothing is missing the command says what a grant still needs, and records neither."""
    decision = PromotionDecision(reasons=(), gates=())
    monkeypatch.setattr(promote, "promotion_of", lambda *_: decision)
    answer = person.types("promote", person.ids["checkpoint"])
    assert (answer.code, answer.error["code"]) == (1, "GRANT_NOT_OFFERED")
    with Ledger.read(person.ledger) as ledger:
        assert len(ledger.of_kind("promotion.refused")) == 1
        assert not ledger.of_kind("promotion.granted")


def test_a_refusal_weighs_the_declared_policy(person):
    """Floors that root declared are named by the refusal and change its reasons; verify derives them again."""
    floors = person.folder / "floors.json"
    floors.write_text(
        '{"seeds": 1, "alpha": "0.05", "power": "0.8", "cases": 4, "undecided_share": "0.5", "reviewers": 2,'
        ' "reruns_updates_per_seed": 3, "reruns_case_share": "0.05", "minimum_gain": "0.03",'
        ' "judge_accuracy": "0.8", "judge_family": "other"}'
    )
    with Ledger.read(person.ledger) as ledger:
        before = {item["code"] for item in ledger.get(person.ids["refusal"]).body["reasons"]}
    policy = person.gets("policy", "declare", floors)["policy"]
    answer = person.types("promote", person.ids["checkpoint"])
    with Ledger.read(person.ledger) as ledger:
        refusal = ledger.get(answer.result["refusal"])
    after = {item["code"] for item in refusal.body["reasons"]}
    assert refusal.ref("policy") == policy
    assert before - after == {"SEEDS_TOO_FEW", "CASES_NOT_AS_PLANNED"}
    assert person.verify().result["verdict"] == "verified"


def test_a_protocol_file_may_be_toml(tmp_path):
    """What is left out has its default."""
    (tmp_path / "cases.toml").write_text('split = "s"\nbatch_size = 2\n')
    config = read_config(tmp_path / "cases.toml")
    assert (config.name, config.judge, config.role, config.desk_cases) == (
        "cases",
        None,
        "validation",
        64,
    )
    assert config.generation.batch_size == 2
