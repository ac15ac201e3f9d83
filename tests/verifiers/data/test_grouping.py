"""Groups by what rows say, not only by their fields; and a real benchmark split that should have had them."""

from __future__ import annotations

import random

import pytest
from desk_world import chat_row
from public_data import retail_files

from ledger.errors import UsageError
from verifiers.data.grouping import group_rows
from verifiers.data.identity import row_digest
from verifiers.data.leakage import audit, entity_fields
from verifiers.data.sources import in_memory, parse_sources
from verifiers.data.splits import split_as_published, split_by_fractions

LONG = "please send the blue lamp that I ordered last week to my sister in the old town"
PAIRS = [
    ("text:request", LONG, LONG.upper().replace(" ", "\u00a0 ")),
    ("text:masked", f"{LONG} #W17", f"{LONG} #W23"),
    ("text:near", LONG, LONG.replace("ordered", "bought")),
    ("text:near", LONG, LONG.replace("town", "city")),
    ("text:near", "Hello?", "hello?"),
]


@pytest.mark.parametrize(("field", "one", "other"), PAIRS)
def test_texts_that_belong_together(field, one, other):
    """Rows whose texts are the same by the field's measure are one group; a third is another."""
    rows = [
        chat_row("a", one),
        chat_row("b", other),
        chat_row("c", "may I return these shoes then"),
    ]
    assert sorted(map(len, group_rows(rows, [field]))) == [1, 2]
    assert len(group_rows(rows, [])) == 3


def test_a_chain_of_edits_is_one_group():
    """Each text is like the one before it only, and all are one group, in whatever order they stand."""
    words = LONG.split()
    rows = []
    for number in range(8):
        rows.append(chat_row(f"r{number}", " ".join(words)))
        words[2 * number : 2 * number + 2] = [f"new{number}", f"word{number}"]
    mixed = rows.copy()
    random.Random(1).shuffle(mixed)
    groups = group_rows(mixed, ["text:near"])
    assert groups == group_rows(rows, ["text:near"])
    assert [len(group) for group in groups] == [8]


def test_a_text_field_that_does_not_exist():
    """A misspelt field is named."""
    with pytest.raises(UsageError) as caught:
        group_rows([chat_row()], ["text:close"])
    assert (caught.value.code, caught.value.field) == ("SPLIT_SETTINGS", "by")


FIGURES = {
    "retail": (
        {"exact": 0, "normalised": 0, "near_duplicate": 10, "annotation": 1},
        {"order_id": 29, "user_id": 18, "customer_id": 30, "context": 25},
    ),
    "airline": (
        {"exact": 0, "normalised": 0, "near_duplicate": 1, "annotation": 1},
        {"reservation_id": 7, "user_id": 8, "customer_id": 8, "context": 3},
    ),
}


@pytest.mark.parametrize("domain", FIGURES)
def test_the_published_split_of_tau2_shares_customers_and_ours_does_not(domain):
    """Row by row the published split is clean; 30 of 40 retail test tasks share a customer with training. Grouped, none."""
    folder = retail_files().parent / domain
    files = [(name, (folder / name).read_bytes()) for name in ("tasks.json", "db.json")]
    parsed = parse_sources([in_memory(name, data) for name, data in files])
    assert parsed.rejects == []
    fields = sorted({*entity_fields(parsed.rows), "context"})
    published = split_as_published(parsed.rows, [], (folder / "split_tasks.json").read_bytes())
    found = audit(parsed.rows, published.role_of, fields)
    levels, entities = FIGURES[domain]
    assert {name: found.levels[name] for name in levels} == levels
    assert found.entities == entities
    by = [*fields, "text:request", "text:masked", "text:near"]
    ours = split_by_fractions(parsed.rows, by, [70, 10, 20], seed=1)
    clean = audit(parsed.rows, ours.role_of, fields)
    assert (clean.verdict, clean.findings) == ("clean", [])
    assert set(ours.role_of) == {row_digest(row) for row in parsed.rows}
