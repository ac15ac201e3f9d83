"""The desk data built from the real retail files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from public_data import retail_files

from ledger.errors import EvidenceError
from runners.prepare.desk_cases import GROUP_FIELDS, build
from runners.prepare.desk_prompts import POLICY_LINES, TOOLS_TEXT, check_policy
from runners.prepare.desk_wordings import POOLS, wordings
from runners.prepare.tau2 import benchmark_customers, read_retail
from verifiers.data.leakage import audit, entity_fields
from verifiers.data.rows import parse_rows
from verifiers.data.splits import split_by_fractions
from verifiers.rewards.desk import outcome, read_case
from verifiers.rewards.desk_baselines import (
    best_constant,
    record_ignored,
    right_refusals,
    twin_accuracy,
)
from verifiers.rewards.desk_calls import TOOLS

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def data():
    """The desk data of one seed."""
    return build(retail_files(), seed=7)


@pytest.fixture(scope="module")
def rows(data):
    """All of it as the parser accepts it."""
    return parse_rows([data.jsonl()])


def test_all_of_it_is_accepted(data, rows):
    """The parser rejects none of the rows and cases, and no two are the same but for their id."""
    assert rows.rejects == []
    assert rows.rows == [*data.rows, *data.cases, *data.dialogues]
    assert rows.duplicates == 0


def test_the_build_is_reproducible(data):
    """Another process with another hash seed builds the same bytes; another seed builds others."""
    code = (
        "import hashlib; from runners.prepare import desk_cases, tau2;"
        "print(hashlib.sha256(desk_cases.build(tau2.source_dir(), 7).jsonl()).hexdigest())"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT, env={"PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert printed[0] == printed[1]
    assert build(retail_files(), seed=8).jsonl() != data.jsonl()


def test_there_are_enough_families(data):
    """At least eight families, among them each action, wrong status, somebody else's order and transfer."""
    families = Counter(case["family"] for case in data.cases)
    assert {
        "cancel", "modify_address", "modify_payment", "modify_items", "return", "exchange", "transfer",
        "wrong_status", "foreign_order", "unavailable", "low_balance",
    } == set(families)  # fmt: skip
    assert min(families.values()) >= 10


def test_every_right_answer_succeeds_and_every_row_holds_it(data):
    """The training answer, run on the desk, is a success without a violation in each case."""
    answers = {
        row["id"].replace("sft", "desk"): row["messages"][-1]["content"] for row in data.rows
    }
    for case in data.cases:
        line = outcome(case, answers[case["id"]])
        assert (line["success"], line["violations"]) == (True, [])


def test_rows_and_cases_ask_with_the_same_prompt(data):
    """A training row's prompt is its case's prompt, with all tools and one example in it."""
    prompts = {case["id"]: case["messages"] for case in data.cases}
    for row in data.rows[:200]:
        if row["id"].replace("sft", "desk") in prompts:
            assert row["messages"][:-1] == prompts[row["id"].replace("sft", "desk")]
    assert all(f"{tool}(" in TOOLS_TEXT for tool in TOOLS)
    assert all(case["messages"][0]["content"].startswith(TOOLS_TEXT) for case in data.cases)


def test_twins_say_the_same_and_differ_in_the_record(data):
    """Both cases of a twin have one wording and one request; one may be done and the other may not."""
    twins: dict[str, list[dict]] = {}
    for case in data.cases:
        if case["twin"]:
            twins.setdefault(case["twin"], []).append(case)
    assert len(twins) >= 350
    for pair in twins.values():
        assert len(pair) == 2
        assert len({case["metadata"]["wording_id"] for case in pair}) == 1
        assert len({case["wanted"]["tool"] for case in pair}) == 1
        assert [case["expected"]["tool"] == "refuse" for case in pair] == [False, True]
        assert pair[0]["order_id"] != pair[1]["order_id"]


def test_ignoring_the_record_is_right_on_about_half(data):
    """Acting always is right on 50 to 55 %, on no twin; refusals are right on less than half."""
    ignoring = record_ignored(data.cases)
    share = sum(ignoring.values()) / len(ignoring)
    assert 0.50 <= share <= 0.55
    assert twin_accuracy(data.cases, ignoring)[0] == 0
    assert right_refusals(data.cases) / len(data.cases) < 0.5
    assert best_constant(data.cases)[1] / len(data.cases) < 0.4


def test_the_record_shown_is_the_real_one(data):
    """Status, items and prices of each case are those of the shop's order."""
    retail = read_retail(retail_files())
    for case in data.cases:
        real, shown = retail.orders[case["order_id"]], case["order"]
        assert (shown["status"], shown["owner_id"]) == (real["status"], real["user_id"])
        assert [item["item_id"] for item in shown["items"]] == [
            item["item_id"] for item in real["items"]
        ]
        assert [item["price_cents"] for item in shown["items"]] == [
            round(item["price"] * 100) for item in real["items"]
        ]
        told = case["messages"][-1]["content"]
        assert told.endswith(f"Status: {real['status']}.")
        assert ("Owner: caller." in told) == (case["customer_id"] == real["user_id"])


def test_somebody_elses_order_is_otherwise_in_order(data):
    """A foreign order would be acted on for its owner, so that only the owner decides."""
    for case in data.cases:
        if case["family"] in ("foreign_order", "wrong_status"):
            read = read_case(case)
            assert (read.order.caller_id != read.order.owner_id) == (
                case["family"] == "foreign_order"
            )


def test_customers_of_the_benchmark_are_left_out(data):
    """No case is about a customer or an order of the benchmark's test tasks."""
    skipped = benchmark_customers(read_retail(retail_files()))
    assert not skipped & {case["customer_id"] for case in data.cases}
    assert not skipped & {case["order"]["owner_id"] for case in data.cases}


@pytest.mark.parametrize("seed", range(3))
def test_the_recommended_split_is_clean(rows, seed):
    """Split by customer, order and wording, no held-out row is touched at any level or through any entity."""
    split = split_by_fractions(rows.rows, GROUP_FIELDS, [70, 10, 20], seed)
    found = audit(rows.rows, split.role_of, entity_fields(rows.rows))
    assert (found.verdict, set(found.entities)) == (
        "clean",
        {"customer_id", "order_id", "metadata.wording_id"},
    )
    held_out = [
        row
        for row, digest in zip(rows.rows, rows.digests, strict=True)
        if split.role_of[digest] == "test"
    ]
    assert sum(row.get("kind") == "desk" for row in held_out) >= 48
    assert len({row["family"] for row in held_out if row.get("kind") == "desk"}) >= 8


def test_a_split_by_customer_alone_is_not_clean(rows):
    """Without the wordings in the grouping, templates and orders are shared, and the audit says so."""
    split = split_by_fractions(rows.rows, ["customer_id"], [70, 10, 20], seed=1)
    found = audit(rows.rows, split.role_of, entity_fields(rows.rows))
    assert found.verdict == "findings"
    assert found.levels["masked"] > 0
    assert found.entities["customer_id"] == 0
    assert found.entities["order_id"] > 0


def test_wordings_are_all_different():
    """No two pools share a wording, and every request has two in every pool."""
    requests = [*POLICY_LINES]
    found = [
        wording
        for request in requests
        for pool in range(POOLS)
        for wording in wordings(request, pool)
    ]
    assert len(found) == 2 * POOLS * len(requests)
    assert (
        len({wording[0] for wording in found})
        == len({wording[1] for wording in found})
        == len(found)
    )


def test_a_policy_that_says_something_else(tmp_path):
    """A policy without a line that we quote is SOURCE_CHANGED, and nothing is built."""
    folder = shutil.copytree(retail_files(), tmp_path / "retail")
    policy = (folder / "policy.md").read_text()
    check_policy(policy)
    (folder / "policy.md").write_text(
        policy.replace("can only be returned if", "may be returned if")
    )
    with pytest.raises(EvidenceError) as caught:
        build(folder, seed=7)
    assert caught.value.code == "SOURCE_CHANGED"


def test_dialogues_have_an_answer_that_the_record_decides(data):
    """Each topic has both answers among its dialogues, and the wrong one is what must be avoided."""
    for topic in ("refund_time", "may_modify", "may_return"):
        cases = [case for case in data.dialogues if case["family"] == topic]
        assert len(cases) == POOLS
        assert (
            len({case["reference"].split()[0] + case["reference"].split()[-1] for case in cases})
            >= 2
        )
        assert all(case["reference"] not in case["must_avoid"] for case in cases)
    assert json.loads(data.jsonl().splitlines()[-1])["kind"] == "dialogue"
