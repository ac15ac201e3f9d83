"""Roles from elsewhere: published lists, assignments by line, fields of the rows."""

from __future__ import annotations

import json

import pytest
from desk_world import chat_row

from ledger.errors import UsageError
from verifiers.data.identity import row_digest
from verifiers.data.role_lists import roles_in_field, roles_in_list
from verifiers.data.splits import split_as_published, split_by_list

ROWS = [chat_row(f"r{n}", f"Question {n}", customer_id=f"c{n % 3}") for n in range(4)]
PUBLISHED = {"train": ["r0", "r1"], "test": ["r2", "r3"], "base": ["r0", "r1", "r2", "r3"]}


def by_line(**roles):
    """A list of roles as JSON lines."""
    return b"".join(json.dumps({"id": i, "role": r}).encode() + b"\n" for i, r in roles.items())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (json.dumps({"Train": ["a"], "dev": [7], "full": ["a", "b"]}).encode(), {"a": "train", "7": "validation"}),
        (by_line(a="train", b="Test", c="val"), {"a": "train", "b": "test", "c": "validation"}),
        (b"\xef\xbb\xbf" + by_line(a="train"), {"a": "train"}),
        (b'{"row": "sha256:x", "role": "test"}\n', {"sha256:x": "test"}),
    ],
    ids=["an object of roles", "lines", "a byte order mark", "a row by its digest"],
)  # fmt: skip
def test_lists_that_are_read(data, expected):
    """An object of roles or a line a row, the usual names of roles, other sets left out."""
    assert roles_in_list(data) == expected


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"train": ["a"], "test": ["a"]}', "two roles"),
        (by_line(a="train") + by_line(a="test"), "two roles"),
        (b'{"train": ["a"], "train": ["b"]}', "twice"),
        (b'{"base": ["a"]}', "no row a role"),
        (b'{"train": "a"}', "not a list"),
        (b'{"train": [["a"]]}', "neither text"),
        (b'{"train": [true]}', "neither text"),
        (by_line(a="holdout"), "unknown role"),
        (b'{"id": "a", "role": "test", "why": ""}\n', "line 1"),
        (b"", "no row a role"),
        (b"r0,train\n", "JSON"),
    ],
)
def test_lists_that_are_refused(data, said):
    """A row with two roles, an unknown role, an empty list and other forms are refused and named."""
    with pytest.raises(UsageError) as caught:
        roles_in_list(data)
    assert caught.value.code == "SPLIT_SETTINGS"
    assert said in caught.value.message


def test_a_published_split_is_taken_over():
    """The roles that it names are those of the rows; a role that it does not name is none."""
    split = split_as_published(ROWS, [], json.dumps(PUBLISHED).encode())
    assert split.roles == {"train": 2, "test": 2}
    assert split.role_of[row_digest(ROWS[3])] == "test"


@pytest.mark.parametrize(
    ("published", "by", "code"),
    [
        ({"train": ["r0", "r1"], "test": ["r2"]}, [], "SPLIT_SETTINGS"),
        ({"train": ["r0", "r1", "r2", "r3"]}, [], "SPLIT_ROLE_EMPTY"),
        ({"train": ["r0", "r1", "r2", "r3"], "test": ["x"]}, [], "SPLIT_ROLE_EMPTY"),
        ({"validation": ["r0", "r1"], "test": ["r2", "r3"]}, [], "SPLIT_ROLE_EMPTY"),
        (PUBLISHED, ["customer_id"], "SPLIT_GROUP_TORN"),
    ],
    ids=["a row is left out", "no held-out role", "a role of rows elsewhere", "no train", "a torn customer"],
)  # fmt: skip
def test_published_splits_that_are_refused(published, by, code):
    """A list that leaves a row out, names a role without rows, has nothing to train on or tears a group is refused."""
    with pytest.raises(UsageError) as caught:
        split_as_published(ROWS, by, json.dumps(published).encode())
    assert caught.value.code == code


def test_roles_in_a_field():
    """Rows say their role themselves; every row has to."""
    rows = [
        chat_row(f"r{n}", str(n), metadata={"pool": name})
        for n, name in enumerate(("train", "dev", "TEST"))
    ]
    split = split_by_list(rows, [], roles_in_field(rows, "metadata.pool"))
    assert split.roles == {"train": 1, "validation": 1, "test": 1}
    for field in ("pool", "id"):
        with pytest.raises(UsageError) as caught:
            roles_in_field(rows, field)
        assert (caught.value.code, caught.value.field) == ("SPLIT_SETTINGS", field)


def test_a_held_out_row_is_not_put_into_training():
    """A list cannot make a training row of one that declares itself held out."""
    rows = [chat_row("a", "1", split="test"), chat_row("b", "2"), chat_row("c", "3")]
    with pytest.raises(UsageError) as caught:
        split_by_list(rows, [], {"a": "train", "b": "validation", "c": "test"})
    assert (caught.value.code, caught.value.field) == ("HELD_OUT_ROW", "a")
