"""Splits: groups kept whole, roles by proportion or by list."""

from __future__ import annotations

import random

import pytest
from desk_world import chat_row
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import EvidenceError, UsageError
from verifiers.data.identity import row_digest
from verifiers.data.splits import (
    ROLES,
    group_rows,
    read_assignment,
    split_by_fractions,
    split_by_list,
    values,
)


def rows_of(*keys):
    """Rows with a customer and an order each, by pairs of letters."""
    return [
        chat_row(f"r{number}", question=f"Question {number}", customer_id=customer, order_id=other)
        for number, (customer, other) in enumerate(keys)
    ]


MANY = [chat_row(f"r{n}", question=f"q {n}", customer_id=f"c{n // 3}") for n in range(300)]


def test_groups_are_transitive():
    """A shares a customer with B and B an order with C, so all three are one group; D is another."""
    rows = rows_of(("ann", "1"), ("ann", "2"), ("bob", "2"), ("eve", "3"))
    groups = group_rows(rows, ["customer_id", "order_id"])
    assert sorted(map(len, groups)) == [1, 3]
    assert len(group_rows(rows, ["customer_id"])) == 3
    assert len(group_rows(rows, [])) == 4


def test_the_same_value_of_two_fields_joins_nothing():
    """A customer who is called like an order is not that order."""
    assert len(group_rows(rows_of(("x", "1"), ("y", "x")), ["customer_id", "order_id"])) == 2


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from("123456")), min_size=3, max_size=25
    ),
    st.randoms(),
)
def test_no_value_is_in_two_groups(keys, shuffle):
    """Whatever is shared stays together, and the order of rows makes no difference."""
    rows = rows_of(*keys)
    groups = group_rows(rows, ["customer_id", "order_id"])
    where = {digest: index for index, group in enumerate(groups) for digest in group}
    for name in ("customer_id", "order_id"):
        for value in {row[name] for row in rows}:
            assert len({where[row_digest(row)] for row in rows if row[name] == value}) == 1
    shuffled = rows.copy()
    shuffle.shuffle(shuffled)
    assert group_rows(shuffled, ["customer_id", "order_id"]) == groups


def test_a_split_is_close_to_its_proportions_and_keeps_groups_whole():
    """Three hundred rows of a hundred customers are dealt 70:10:20 within two per cent, customers whole."""
    split = split_by_fractions(MANY, ["customer_id"], [70, 10, 20], seed=1)
    assert split.groups == 100
    deviation = sum(
        abs(split.roles[role] - want) for role, want in zip(ROLES, (210, 30, 60), strict=True)
    )
    assert deviation <= 6
    for customer in {row["customer_id"] for row in MANY}:
        assert (
            len({split.role_of[row_digest(row)] for row in MANY if row["customer_id"] == customer})
            == 1
        )


def test_a_split_depends_on_seed_and_rows_only():
    """The same rows in another order give the same split; another seed gives another."""
    split = split_by_fractions(MANY, ["customer_id"], [70, 10, 20], seed=1)
    mixed = MANY.copy()
    random.Random(5).shuffle(mixed)
    assert list(split_by_fractions(mixed, ["customer_id"], [70, 10, 20], seed=1).lines()) == list(
        split.lines()
    )
    assert split_by_fractions(MANY, ["customer_id"], [70, 10, 20], seed=2).role_of != split.role_of


def test_few_uneven_groups_find_their_roles():
    """Three groups of 70, 10 and 20 rows get exactly these three roles for every seed."""
    rows = [
        chat_row(f"r{n}", question=f"q {n}", customer_id="a" if n < 70 else "b" if n < 80 else "c")
        for n in range(100)
    ]
    for seed in range(20):
        split = split_by_fractions(rows, ["customer_id"], [70, 10, 20], seed)
        assert split.roles == {"train": 70, "validation": 10, "test": 20}


def test_an_empty_role_is_an_error():
    """Two groups cannot fill three roles."""
    with pytest.raises(UsageError) as caught:
        split_by_fractions(
            rows_of(("a", "1"), ("a", "2"), ("b", "3")), ["customer_id"], [1, 1, 1], seed=0
        )
    assert caught.value.code == "SPLIT_ROLE_EMPTY"


@pytest.mark.parametrize(
    ("by", "weights", "field"),
    [
        (["customer_id"], [1, 1], "fractions"),
        (["customer_id"], [8, 0, 2], "fractions"),
        (["customer_id"], [8, -1, 2], "fractions"),
        (["costumer_id"], [8, 1, 1], "by"),
    ],
    ids=["two numbers", "a zero", "a negative number", "a field that no row has"],
)
def test_settings_that_make_no_sense(by, weights, field):
    """Wrong fractions and unknown fields are refused and named."""
    with pytest.raises(UsageError) as caught:
        split_by_fractions(MANY, by, weights, seed=0)
    assert (caught.value.code, caught.value.field) == ("SPLIT_SETTINGS", field)


def test_roles_from_a_list():
    """A list by id decides, once every row has a role and every role a row."""
    rows = rows_of(("a", "1"), ("b", "2"), ("c", "3"))
    split = split_by_list(rows, ["customer_id"], {"r0": "train", "r1": "validation", "r2": "test"})
    assert [split.role_of[row_digest(row)] for row in rows] == list(ROLES)


@pytest.mark.parametrize(
    ("roles", "code"),
    [
        (("train", "validation", None, "test"), "SPLIT_SETTINGS"),
        (("train", "validation", "dev", "test"), "SPLIT_SETTINGS"),
        (("train", "validation", "validation", "train"), "SPLIT_ROLE_EMPTY"),
        (("train", "validation", "test", "test"), "SPLIT_GROUP_TORN"),
    ],
    ids=["a row without a role", "an unknown role", "an empty role", "a torn group"],
)
def test_lists_that_are_refused(roles, code):
    """A list that leaves a row out, empties a role or tears a group is refused."""
    rows = rows_of(("a", "1"), ("b", "2"), ("c", "3"), ("a", "4"))
    with pytest.raises(UsageError) as caught:
        split_by_list(
            rows, ["customer_id"], {f"r{n}": role for n, role in enumerate(roles) if role}
        )
    assert caught.value.code == code


def test_an_assignment_survives_its_lines():
    """What a split writes is read back; sorted by digest, one line a row."""
    split = split_by_fractions(MANY, ["customer_id"], [70, 10, 20], seed=1)
    written = list(split.lines())
    assert [line["row"] for line in written] == sorted(split.role_of)
    assert read_assignment(written, [row_digest(row) for row in MANY]) == dict(split.role_of)


ONE = {"row": "x", "role": "train"}


@pytest.mark.parametrize(
    "written",
    [
        [],
        [ONE, ONE],
        [{**ONE, "role": "dev"}],
        [{**ONE, "why": ""}],
        [{"row": "y", "role": "train"}],
        [{"row": "x"}],
    ],
    ids=[
        "a row missing",
        "a row twice",
        "an unknown role",
        "an unknown field",
        "another row",
        "no role",
    ],
)
def test_assignments_that_do_not_fit(written):
    """An assignment that is not exactly the data set's rows is SPLIT_WRONG."""
    with pytest.raises(EvidenceError) as caught:
        read_assignment(written, ["x"])
    assert caught.value.code == "SPLIT_WRONG"


def test_values_of_a_field():
    """A field may be absent, one value, a list, or inside the metadata."""
    row = {"a_id": "x", "b_id": ["y", "z"], "metadata": {"c_id": 3}}
    found = [values(row, name) for name in ("a_id", "b_id", "metadata.c_id", "d_id", "a_id.b")]
    assert found == [("x",), ("y", "z"), ("3",), (), ()]
