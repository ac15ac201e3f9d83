"""Strict JSON from anybody."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import EvidenceError
from verifiers.data.json_text import loads_unique

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(VALUES)
def test_good_json_is_read_as_it_is(value):
    """A value written by the standard library is read back unchanged."""
    assert loads_unique(json.dumps(value).encode(), 32) == value


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":2}', '{"a":1,"a":1}', '[{"b":{"c":1,"d":2,"c":3}}]', '{"a":1,"\\u0061":2}'],
    ids=["other value", "same value", "inside", "escaped"],
)
def test_a_key_that_stands_twice(text):
    """An object with one key twice is DUPLICATE_KEY, at any depth and however the key is written."""
    with pytest.raises(EvidenceError) as caught:
        loads_unique(text.encode(), 8)
    assert caught.value.code == "DUPLICATE_KEY"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"NaN",
        b"[1,Infinity]",
        b"\xff",
        b"[" * 100,
        b"{}{}",
        b"'a'",
        b"18446744073709551616",
    ],
    ids=[
        "nothing",
        "cut",
        "nan",
        "infinity",
        "not utf-8",
        "deep",
        "two values",
        "single quotes",
        "65 bits",
    ],
)
def test_what_is_not_json(data):
    """Bytes that are not one JSON value are NOT_CANONICAL."""
    with pytest.raises(EvidenceError) as caught:
        loads_unique(data, 8)
    assert caught.value.code == "NOT_CANONICAL"
