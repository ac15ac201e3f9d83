"""Canonical bytes: equal to RFC 8785 on the profile, and everything outside it refused by one code."""

from __future__ import annotations

import math
import random

import orjson
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from ledger import canonical
from ledger.errors import EvidenceError

DOCUMENTS = 30_000
KEYS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/-~ "\\\t\x00\x7f'
LETTERS = KEYS + "äöüßéñ中日本語\u2028\u20ac\ue000\U0001f600\U0010ffff\u0301"


def document(rng: random.Random, depth: int = 0):
    """A random value of the profile: a document of some ten values, at most five deep."""
    kinds = "snitf" if depth >= 5 else "snitfaaoo"
    match rng.choice(kinds):
        case "s":
            return "".join(rng.choices(LETTERS, k=rng.randrange(12)))
        case "n":
            return None
        case "i":
            return rng.choice((-1, 1)) * rng.randrange(2 ** rng.randrange(1, 54))
        case "t":
            return True
        case "f":
            return False
        case "a":
            return [document(rng, depth + 1) for _ in range(rng.randrange(5))]
    return {
        "".join(rng.choices(KEYS, k=rng.randrange(9))): document(rng, depth + 1)
        for _ in range(rng.randrange(6))
    }


def nested(depth: int) -> bytes:
    """Arrays in arrays."""
    return b"[" * depth + b"]" * depth


def test_bytes_are_those_of_rfc_8785_on_thirty_thousand_documents():
    """An independent RFC 8785 encoder gives the same bytes, and strict reading gives the value back."""
    rng = random.Random(8785)
    sizes = 0
    for _ in range(DOCUMENTS):
        value = document(rng)
        data = canonical.encode(value)
        assert data == rfc8785.dumps(value)
        assert canonical.decode(data) == value
        sizes += len(data)
    assert sizes > DOCUMENTS * 20


NOT_CANONICAL_BYTES = {
    "nothing": b"",
    "no JSON": b"{",
    "two values": b"1 2",
    "byte order mark": b"\xef\xbb\xbf{}",
    "bytes that are no UTF-8": b'"\xff"',
    "duplicate key": b'{"a":1,"a":2}',
    "duplicate key of equal value": b'{"a":1,"a":1}',
    "duplicate key by escape": b'{"a":1,"\\u0061":2}',
    "float": b"1.5",
    "float that is whole": b"1.0",
    "exponent": b"1e3",
    "minus zero": b"-0",
    "leading zero": b"01",
    "not a number": b"NaN",
    "infinity": b"Infinity",
    "integer 2^53": b"9007199254740992",
    "integer -2^53": b"-9007199254740992",
    "integer beyond 64 bits": b"18446744073709551616",
    "integer of a thousand digits": b"1" * 1000,
    "lone surrogate in a value": b'{"a":"\\ud800"}',
    "lone surrogate in a key": b'{"\\ud800":1}',
    "surrogates the wrong way round": b'"\\udc00\\ud800"',
    "surrogate in raw bytes": b'"\xed\xa0\x80"',
    "key that is not ASCII": '{"ä":1}'.encode(),
    "keys out of order": b'{"b":1,"a":2}',
    "space after a colon": b'{"a": 1}',
    "space around": b" 1",
    "line feed at the end": b"{}\n",
    "escape that is not needed": b'"\\u0061"',
    "escaped slash": b'"\\/"',
    "upper-case escape": b'"\\u001F"',
    "raw control character": b'"\x01"',
    "33 deep": nested(33),
    "objects 33 deep": b'{"a":' * 33 + b"1" + b"}" * 33,
    "100,000 deep": nested(100_000),
    "100,000 open": b"[" * 100_000,
    "trailing comma": b"[1,]",
    "comment": b"[1]//",
}


@pytest.mark.parametrize("data", NOT_CANONICAL_BYTES.values(), ids=NOT_CANONICAL_BYTES.keys())
def test_reading_refuses(data):
    """Bytes that are not the one form of a value in the profile raise one error with one code."""
    with pytest.raises(EvidenceError) as caught:
        canonical.decode(data)
    assert caught.value.code == "NOT_CANONICAL"


class Text(str):
    """A string that is not exactly a string."""

    __slots__ = ()


NOT_CANONICAL_VALUES = {
    "float": 1.5,
    "not a number": math.nan,
    "integer 2^53": 2**53,
    "lone surrogate": "\ud800",
    "lone surrogate in a key": {"\ud800": 1},
    "key that is not ASCII": {"ä": 1},
    "key that is a number": {1: 2},
    "key of a subclass": {Text("a"): 1},
    "text of a subclass": Text("a"),
    "bytes": b"a",
    "tuple": (1,),
    "set": {1},
}


@pytest.mark.parametrize("wrapped", [False, True], ids=["bare", "in a list"])
@pytest.mark.parametrize("value", NOT_CANONICAL_VALUES.values(), ids=NOT_CANONICAL_VALUES.keys())
def test_writing_refuses(value, wrapped):
    """A value outside the profile is refused, not coerced, wherever it stands."""
    with pytest.raises(EvidenceError) as caught:
        canonical.encode([value] if wrapped else value)
    assert caught.value.code == "NOT_CANONICAL"


JSON_LIKE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=4)
        | st.tuples(inner)
    ),
    max_leaves=12,
)


@given(JSON_LIKE)
def test_the_fast_look_at_a_value_accepts_nothing_that_the_definition_refuses(value):
    """What is encoded without a look at each item is in the profile, and has the bytes that it would have had."""
    fast = canonical._encode_plain(value)
    if fast is None:
        return
    canonical._check(value, "$", 0)
    assert fast == orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def test_the_fast_look_is_taken_by_an_ordinary_record():
    """Objects, arrays, texts of any script and integers up to the bounds need no second look."""
    value = {"a": [1, -(2**53) + 1, {"b": "ä"}], "c": None, "d": True, "e": {}}
    assert canonical._encode_plain(value) == rfc8785.dumps(value)


def test_writing_refuses_a_value_that_contains_itself():
    """A cyclic value ends at the depth limit with the ordinary error."""
    value: list[object] = []
    value.append(value)
    with pytest.raises(EvidenceError) as caught:
        canonical.encode(value)
    assert caught.value.code == "NOT_CANONICAL"


def test_limits_are_inside():
    """32 levels and 2^53-1 are the last that are accepted."""
    assert canonical.decode(nested(32))
    assert canonical.decode(b"-9007199254740991") == -(2**53) + 1
    assert canonical.decode(b"9007199254740991") == 2**53 - 1


def test_refusal_names_the_path():
    """The message says where in the value the trouble is."""
    with pytest.raises(EvidenceError, match=r"\$\.a\[1\]\.b"):
        canonical.encode({"a": [0, {"b": 0.5}]})


@given(st.binary(max_size=60))
def test_reading_any_bytes_gives_a_value_or_the_one_error(data):
    """Whatever the bytes are, nothing but EvidenceError gets out, and what is read writes back the same."""
    try:
        value = canonical.decode(data)
    except EvidenceError as error:
        assert error.code == "NOT_CANONICAL"  # noqa: PT017 - most bytes raise, not all
    else:
        assert canonical.encode(value) == data


@given(st.integers(0, 2**31), st.integers(0, 10**6), st.integers(1, 255))
def test_flipping_one_byte_never_gives_the_same_value(seed, position, change):
    """Two different texts are never both read as the same value."""
    value = document(random.Random(seed))
    data = bytearray(canonical.encode(value))
    data[position % len(data)] ^= change
    try:
        other = canonical.decode(bytes(data))
    except EvidenceError:
        return
    assert canonical.encode(other) != canonical.encode(value)


def test_loads_takes_what_is_json_but_not_canonical():
    """Foreign JSON is parsed with a bound on its depth and one kind of error."""
    assert canonical.loads(b' {"b": 1.5, "a": [] } ') == {"b": 1.5, "a": []}
    assert canonical.loads(b'["[[[[", "\\"[["]', max_depth=1) == ["[[[[", '"[[']
    with pytest.raises(EvidenceError):
        canonical.loads(nested(3), max_depth=2)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_real_reads_back_to_the_same_float(number):
    """The string of a real number is short and gives the same float64, bit for bit."""
    text = canonical.real(number)
    assert math.copysign(1, canonical.parse_real(text)) == math.copysign(1, number)
    assert canonical.parse_real(text) == number
    assert len(text) <= 24


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 10**400], ids=str)
def test_real_refuses_what_is_not_finite(number):
    """NaN, infinities and integers beyond every float64 have no place in a record."""
    with pytest.raises(EvidenceError) as caught:
        canonical.real(number)
    assert caught.value.code == "NOT_A_REAL"


@pytest.mark.parametrize(
    "text",
    ["", "x", "1", "1.50", "01.5", "+1.5", " 1.5", "1.5\n", "1_0.5", "1e5", "nan", "inf", "1e999",
     "0x1p3", "\u0661.\u0665", "1.0000000000000000001"],
)  # fmt: skip
def test_parse_real_refuses_all_but_the_shortest_form(text):
    """Each number has one text, the one that `real` writes."""
    with pytest.raises(EvidenceError) as caught:
        canonical.parse_real(text)
    assert caught.value.code == "NOT_A_REAL"


def test_orjson_alone_would_not_do():
    """The strict reading is needed: the parser by itself takes the last of two equal keys in silence."""
    assert orjson.loads(b'{"a":1,"a":2}') == {"a": 2}
