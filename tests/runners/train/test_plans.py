"""A plan says everything before anything runs, and is refused where something is missing or misspelt."""

from __future__ import annotations

import pytest
from small_job import SFT

from ledger.book import Ledger
from ledger.codes import CODES
from ledger.errors import UsageError
from runners.train.config import SftSettings
from runners.train.plans import code_digests, read_config

pytestmark = pytest.mark.slow  # whoever comes first waits for the job


def test_a_plan_holds_every_effective_setting(person):
    """What the file leaves out has its default in the record, libraries, code and hardware beside it."""
    plan = person.plans().result["plan"]
    with Ledger.read(person.ledger) as ledger:
        body = ledger.get(plan).body
    assert body["settings"] == SftSettings.from_values(SFT).effective()
    assert (body["budget_updates"], body["budget_datums"], body["start"]) == (6, 24, "fresh")
    assert body["rows"] == {"input": 12, "effective": 12, "truncated": 0, "dropped": 0}
    assert body["code"] == code_digests()
    assert {"torch", "transformers", "trl", "peft"} <= set(body["libraries"])
    assert body["hardware"]["threads"] == SFT["threads"]


def test_a_check_records_nothing(person):
    """--check gives the same figures and leaves the ledger as it was."""
    with Ledger.read(person.ledger) as ledger:
        size = ledger.size
    answer = person.types("plan", "sft", person.folder / "sft.json", "--check")
    assert (answer.code, answer.result["plan"]) == (0, None)
    assert answer.result["rows"]["effective"] == 12
    with Ledger.read(person.ledger) as ledger:
        assert ledger.size == size


def test_a_split_without_an_audit_is_not_planned_on(person):
    """The error names the split, and the hint is the very command that audits it."""
    split = person.splits("--seed", 5)
    answer = person.plans()
    assert (answer.code, answer.error["code"]) == (1, "REF_MISSING")
    assert answer.error["message"] == f"split {split[7:19]} has no leakage audit"
    assert (answer.error["record"], answer.error["field"]) == (split, "refs.audit")
    assert answer.error["hint"] == f"make it first: evidence data audit {split[7:19]}"
    person.gets("data", "audit", split[7:19])
    assert person.plans().code == 0


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        pytest.param(
            {"learning_rat": 1}, "SETTING_UNKNOWN",
            "no setting is named learning_rat; the nearest is learning_rate", id="misspelt",
        ),
        pytest.param({"steps": 0}, "SETTING_INVALID", "steps: ", id="out of range"),
        pytest.param({"steps": "6"}, "SETTING_INVALID", "steps: ", id="another type"),
        pytest.param({"warmup_steps": 6}, "SETTING_INVALID", "warmup_steps is not below steps", id="at odds"),
        pytest.param({"split": 7}, "SETTING_INVALID", "sft.json names no split", id="no split"),
        pytest.param({"model": None}, "SETTING_INVALID", "sft.json names no model", id="no model"),
    ],
)  # fmt: skip
def test_a_wrong_configuration_is_named_by_its_setting(person, settings, code, words):
    """The caller's file is at fault: exit 2, the setting named, with the nearest name where one is misspelt."""
    answer = person.plans(**settings)
    assert (answer.code, answer.error["code"]) == (2, code)
    assert words in answer.error["message"]
    assert answer.error["hint"]


def test_a_plan_that_truncates_warns(person):
    """Rows that lose tokens are counted and warned of, rows that lose every label are dropped and named."""
    answer = person.plans(max_length=100)
    assert answer.code == 0
    rows = answer.result["rows"]
    assert rows["truncated"] + rows["dropped"] > 0
    assert len(answer.result["warnings"]) == (rows["truncated"] > 0) + (rows["dropped"] > 0)


def test_rows_without_a_label_left_cannot_be_planned_on(person):
    """Where the limit cuts every answer away there is nothing to learn."""
    answer = person.plans(max_length=8)
    assert (answer.code, answer.error["code"]) == (1, "ROW_UNTRAINABLE")
    assert answer.error["hint"] == CODES["ROW_UNTRAINABLE"].hint


def test_a_toml_file_reads_like_a_json_file(tmp_path):
    """Both forms give one configuration."""
    (tmp_path / "a.toml").write_text('split = "s"\nmodel = "m"\nsteps = 3\n')
    (tmp_path / "a.json").write_text('{"split": "s", "model": "m", "steps": 3}')
    assert read_config(tmp_path / "a.toml") == read_config(tmp_path / "a.json")


def test_a_configuration_that_is_not_there(tmp_path):
    """The path is named."""
    with pytest.raises(UsageError, match=r"INPUT_MISSING.*absent\.toml"):
        read_config(tmp_path / "absent.toml")


def test_a_plan_of_other_libraries_is_not_launched(person):
    """Where a library changed since the plan, the launch is refused, the library named, and no run recorded."""
    plan = person.plans(seed=91).result["plan"]
    with person.opens() as ledger:
        honest = ledger.get(plan)
        libraries = {**honest.body["libraries"], "torch": "0.0.1"}
        body = {**honest.body, "libraries": libraries}
        stale = ledger.append("plan.prepared", body, honest.refs)
        runs = len(ledger.of_kind("run.launched"))
    answer = person.types("run", "launch", stale.id, "--wait")
    assert (answer.code, answer.error["code"], answer.error["field"]) == (1, "PLAN_STALE", "torch")
    assert answer.error["expected"] == "0.0.1"
    with Ledger.read(person.ledger) as ledger:
        assert len(ledger.of_kind("run.launched")) == runs
