"""Leakage audits: each level on planted rows, and the published defects of a real benchmark split."""

from __future__ import annotations

import json
import random

import pytest
from desk_world import chat_row
from public_data import retail_files

from ledger.digests import sha256
from verifiers.data.identity import row_bytes, row_digest
from verifiers.data.leakage import LEVELS, METHODS, PastRow, audit, entity_fields
from verifiers.data.splits import split_by_fractions

LONG = "please send the blue lamp that I ordered last week to my sister in the old town"


def audited(*rows_and_roles, entities=()):
    """An audit of rows given with their roles."""
    rows = [row for row, _ in rows_and_roles]
    roles = {row_digest(row): role for row, role in rows_and_roles}
    return audit(rows, roles, list(entities))


def counts(**given):
    """All levels, those not given being 0."""
    return {level: given.get(level, 0) for level in LEVELS}


TRAIN = chat_row("a", question=LONG, answer="Sure.")

PLANTED = [
    ("the same text", chat_row("b", question=LONG, answer="Sure."), counts(exact=1, normalised=1, masked=1, near_duplicate=1, edited=1)),
    ("other case and spacing", chat_row("b", question=LONG.upper().replace(" ", "  "), answer="SURE."), counts(normalised=1, masked=1, near_duplicate=1, edited=1)),
    ("another answer", chat_row("b", question=LONG, answer="No."), counts(masked=1, near_duplicate=1, edited=1, annotation=1)),
    ("an id added", chat_row("b", question=f"{LONG} #W17", answer="Sure."), counts(masked=1, near_duplicate=1, edited=1)),
    ("a word changed at the end", chat_row("b", question=LONG.replace("town", "city"), answer="Sure."), counts(near_duplicate=1, edited=1)),
    ("a word changed in the middle", chat_row("b", question=LONG.replace("ordered", "bought"), answer="Sure."), counts(edited=1)),
    ("other words", chat_row("b", question="may I return these shoes for a refund to my card", answer="Sure."), counts()),
    ("the same answer alone", chat_row("b", question="so would you do it or not", answer="Sure."), counts()),
]  # fmt: skip


@pytest.mark.parametrize("role", ["validation", "test"])
@pytest.mark.parametrize(("row", "levels"), [c[1:] for c in PLANTED], ids=[c[0] for c in PLANTED])
def test_planted_leaks(row, levels, role):
    """A held-out row made from a training row is counted at the levels that see it, and at no other."""
    found = audited((TRAIN, "train"), (row, role))
    assert found.levels == levels
    assert found.verdict == ("findings" if any(levels.values()) else "clean")
    assert all(item.held_out == row_digest(row) for item in found.findings)
    assert all(
        (item.other, item.other_role) == (row_digest(TRAIN), "train") for item in found.findings
    )
    assert found.pairs == (1 if any(levels.values()) else 0)


def test_a_test_row_among_the_validation_rows_is_a_leak():
    """What was selected on may not be tested on."""
    row = chat_row("b", question=LONG, answer="Sure.")
    assert audited((TRAIN, "validation"), (row, "test")).levels["exact"] == 1


def test_rows_of_one_role_touch_each_other_freely():
    """Duplicates within a role are no leak."""
    row = chat_row("b", question=LONG, answer="Sure.")
    for role in ("train", "validation", "test"):
        assert audited((TRAIN, role), (row, role)).verdict == "clean"


def test_instructions_are_no_leak():
    """Rows that share nothing but their system turn are clean."""
    first, second = chat_row("a", "one thing", "x"), chat_row("b", "quite another", "y")
    for row in (first, second):
        row["messages"][0]["content"] = LONG
    assert audited((first, "train"), (second, "test")).verdict == "clean"


def test_a_short_masked_input_is_no_template():
    """Inputs of which fewer than three words are left after masking say too little to be the same."""
    first, second = chat_row("a", "order 17", "x"), chat_row("b", "order 18", "y")
    assert audited((first, "train"), (second, "test")).levels == counts()


def test_each_held_out_row_counts_once_a_level():
    """Three training copies of one test row are one row touched."""
    copies = [chat_row(f"c{n}", question=LONG, answer="Sure.") for n in range(3)]
    found = audited(*((row, "train") for row in copies), (TRAIN, "test"))
    assert found.levels == counts(exact=1, normalised=1, masked=1, near_duplicate=1, edited=1)


def test_entities_are_counted_by_field():
    """A held-out row is touched through each field whose value occurs in an earlier role."""
    one = chat_row("a", "one two three", customer_id="ann", order_id="#1")
    other = chat_row("b", "four five six", customer_id="ann", order_id="#2")
    third = chat_row("c", "seven eight nine", customer_id="bob", order_id="#2")
    found = audited(
        (one, "train"), (other, "validation"), (third, "test"), entities=["customer_id", "order_id"]
    )
    assert found.entities == {"customer_id": 1, "order_id": 1}
    assert found.verdict == "findings"
    assert found.levels == counts()


def test_entity_fields_are_found_by_name():
    """Fields that end in _id name entities, in the row and in its metadata; the row's own id does not."""
    row = chat_row("a", customer_id="ann", family="f", metadata={"wording_id": "w", "pool": 1})
    assert entity_fields([row, chat_row("b")]) == ["customer_id", "metadata.wording_id"]


def test_an_audit_does_not_depend_on_the_order_of_rows():
    """The same rows in another order give the same findings."""
    rows = [
        chat_row(f"r{n}", question=f"{LONG} {n % 7} times", answer=str(n % 3)) for n in range(40)
    ]
    split = split_by_fractions(rows, [], [6, 2, 2], seed=3)
    mixed = rows.copy()
    random.Random(4).shuffle(mixed)
    assert audit(mixed, split.role_of, []) == audit(rows, split.role_of, [])


def test_a_finding_as_a_line():
    """A finding names level, both rows, both roles and an excerpt that is not long."""
    item = audited(
        (TRAIN, "train"), (chat_row("b", question=LONG, answer="Sure."), "test")
    ).findings[0]
    line = item.as_json()
    assert set(line) == {"level", "held_out", "held_out_role", "other", "other_role", "detail"}
    assert len(line["detail"]) <= 160


def test_an_audit_of_the_first_method_is_derived_as_it_was():
    """Under `leakage/1` there is no level of edited texts, and the findings and settings are those of then."""
    rows = [chat_row(f"r{n}", f"{LONG} {n % 7} times", str(n % 3)) for n in range(40)]
    split = split_by_fractions(rows, [], [6, 2, 2], seed=3)
    then = audit(rows, split.role_of, [], method=METHODS[0])
    assert then.levels == {
        "exact": 12, "normalised": 12, "masked": 16, "near_duplicate": 16, "annotation": 16,
    }  # fmt: skip
    assert then.settings["band_rows"] == 3
    lines = b"".join(row_bytes(item.as_json()) for item in then.findings)
    assert sha256(lines)[:15] == "sha256:5565bd83"


def test_rows_of_the_past_touch_every_held_out_row():
    """What an earlier run trained on counts under its role, whatever the split says; training rows are not looked at."""
    old = chat_row("old", LONG, "Sure.", customer_id="ann")
    kept = chat_row("kept", "quite another thing altogether", "Yes.", customer_id="eve")
    fresh = chat_row("new", LONG.upper(), "Sure.", customer_id="ann")
    roles = {row_digest(kept): "train", row_digest(fresh): "test"}
    past = [PastRow("train", old), PastRow("test", kept)]
    found = audit([kept, fresh], roles, ["customer_id"], past=past)
    assert set(found.levels.values()) == {0}
    assert found.history == {
        "train/edited": 1, "train/entity:customer_id": 1, "train/masked": 1,
        "train/near_duplicate": 1, "train/normalised": 1,
    }  # fmt: skip
    assert {item.other_role for item in found.findings} == {"past train"}
    assert found.verdict == "findings"
    assert audit([kept, fresh], roles, [], past=[]).history == {}
    assert audit([kept, fresh], roles, []).history is None


@pytest.mark.parametrize(("domain", "near"), [("retail", 10), ("airline", 1)])
def test_the_published_defects_of_tau2(domain, near):
    """In the benchmark's own splits 10 of 40 retail and 1 of 20 airline test requests nearly repeat training ones."""
    folder = retail_files().parent / domain
    tasks = {str(task["id"]): task for task in json.loads((folder / "tasks.json").read_bytes())}
    splits = json.loads((folder / "split_tasks.json").read_bytes())
    pairs = [
        (
            chat_row(
                f"{role}-{name}",
                tasks[name]["user_scenario"]["instructions"]["reason_for_call"],
                name,
            ),
            role,
        )
        for role in ("train", "test")
        for name in splits[role]
    ]
    assert audited(*pairs).levels["near_duplicate"] == near
