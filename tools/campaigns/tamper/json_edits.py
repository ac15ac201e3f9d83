"""Edits of a record as JSON: values, keys and spellings, before anybody signs the result."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from ledger import canonical

Edit = Callable[[dict[str, Any], Random], bytes | None]
"""Changes a record's fields and gives the bytes of it; None where the record has nothing of the sort."""
Place = tuple[Any, Any]
"""(container, key or index)"""

MAX_DEPTH = 32
MARK = "\u0001mark\u0001"
_MARK_TEXT = json.dumps(MARK)


def places(value: Any) -> Iterator[Place]:
    """Every place in a value, containers before what they hold."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def _pick(value: Any, random: Random, wanted: Callable[[Any], bool]) -> Place | None:
    found = [(box, key) for box, key in places(value) if wanted(box[key])]
    return random.choice(found) if found else None


def _plain(value: Any) -> bytes:
    """The canonical order and spacing, whatever the value holds."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _spelled(value: Any, place: Place, spelling: str) -> bytes:
    """The record with the value at a place spelled in one's own way."""
    box, key = place
    box[key] = MARK
    return _plain(value).replace(_MARK_TEXT.encode(), spelling.encode("utf-8", "surrogatepass"))


def _is_int(item: Any) -> bool:
    return type(item) is int


def _is_text(item: Any) -> bool:
    return type(item) is str


def _number(value: dict[str, Any], random: Random) -> bytes | None:
    place = _pick(value, random, _is_int)
    if place is None:
        return None
    box, key = place
    old = box[key]
    box[key] = random.choice((old + 1, old - 1, -old - 1, old * 2 + 1, random.randrange(2**53)))
    return canonical.encode(value)


def _text(value: dict[str, Any], random: Random) -> bytes | None:
    place = _pick(value, random, _is_text)
    if place is None:
        return None
    box, key = place
    old = box[key]
    spot = random.randrange(len(old) + 1)
    letter = random.choice("0123456789abcdefZ \u00e9\u2028\U0001f512")
    choices = (
        old[:spot] + letter + old[spot + 1 :],
        old[:spot] + letter + old[spot:],
        old[:spot] + old[spot + 1 :],
        old.swapcase(),
        "",
        old * 40,
    )
    box[key] = random.choice(choices)
    return canonical.encode(value)


def _other_type(value: dict[str, Any], random: Random) -> bytes | None:
    box, key = random.choice(list(places(value)))
    old = box[key]
    box[key] = random.choice((None, True, False, [old], {"a": old}, str(old)[:200], 0, [], {}))
    return canonical.encode(value)


def _key_removed(value: dict[str, Any], random: Random) -> bytes | None:
    found = [(box, key) for box, key in places(value) if isinstance(box, dict)]
    box, key = random.choice(found)
    del box[key]
    return canonical.encode(value)


def _key_added(value: dict[str, Any], random: Random) -> bytes | None:
    boxes = [value, *(box[key] for box, key in places(value) if isinstance(box[key], dict))]
    box = random.choice(boxes)
    name = random.choice(("extra", "statement", "a", "id", "signature", "", "Kind", "__class__"))
    box[name] = random.choice((None, 1, "text", {}, [], value["actor"]))
    return canonical.encode(value)


def _key_renamed(value: dict[str, Any], random: Random) -> bytes | None:
    found = [(box, key) for box, key in places(value) if isinstance(box, dict)]
    box, key = random.choice(found)
    box[random.choice((key.upper(), key + "s", key[:-1], "x" + key))] = box.pop(key)
    return canonical.encode(value)


def _key_twice(value: dict[str, Any], random: Random) -> bytes | None:
    """The same key again in one object, with the same value or another one."""
    found = [(box, key) for box, key in places(value) if isinstance(box[key], dict) and box[key]]
    place = random.choice([*found, None])
    inner = value if place is None else place[0][place[1]]
    key = random.choice(list(inner))
    again = random.choice((inner[key], None, "other"))
    doubled = b"{" + _plain(key) + b":" + _plain(again) + b"," + _plain(inner)[1:]
    if place is None:
        return doubled
    return _spelled(value, place, doubled.decode())


def _list_changed(value: dict[str, Any], random: Random) -> bytes | None:
    place = _pick(value, random, lambda item: isinstance(item, list) and bool(item))
    if place is None:
        return None
    items = place[0][place[1]]
    random.choice((items.reverse, items.pop, lambda: items.append(items[0]), items.clear))()
    return canonical.encode(value)


def _order(value: dict[str, Any], random: Random) -> bytes | None:
    keys = list(value)
    random.shuffle(keys)
    text = json.dumps({key: value[key] for key in keys}, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def _spacing(value: dict[str, Any], random: Random) -> bytes | None:
    """Spaces after separators, indentation, or white space around the whole."""
    text = _plain(value)
    spaced = json.dumps(value, sort_keys=True, ensure_ascii=False)
    indented = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False)
    choices = (spaced.encode(), indented.encode(), text + b"\n", b" " + text, text + b"\x00")
    return random.choice(choices)


def _escape(value: dict[str, Any], random: Random) -> bytes | None:
    """A letter of a text written as an escape that is not needed."""
    place = _pick(value, random, lambda item: _is_text(item) and bool(item))
    if place is None:
        return None
    old = place[0][place[1]]
    spot = random.randrange(len(old))
    code = ord(old[spot])
    letter = f"\\u{code:04x}" if code < 0x10000 else "\\ud83d\\udd12"
    before, after = (
        json.dumps(part, ensure_ascii=False)[1:-1] for part in (old[:spot], old[spot + 1 :])
    )
    return _spelled(value, place, f'"{before}{letter}{after}"')


def _huge(value: dict[str, Any], random: Random) -> bytes | None:
    place = _pick(value, random, _is_int)
    if place is None:
        return None
    digits = (
        2**53,
        -(2**53),
        2**63,
        2**64,
        10**40,
        10**400,
        -(10**5000) if random.random() < 0.1 else 2**70,
    )
    exponent = random.choice(("", "", "0"))
    chosen = random.choice(digits)
    return _spelled(value, place, f"{_decimal(chosen)}{exponent}")


def _decimal(number: int) -> str:
    """Decimal digits of any number: Python's own conversion stops at some thousands."""
    if abs(number) < 10**4000:
        return str(number)
    return "-1" + "0" * 5000


def _real(value: dict[str, Any], random: Random) -> bytes | None:
    place = _pick(value, random, _is_int)
    if place is None:
        return None
    old = place[0][place[1]]
    spellings = (
        f"{old}.0",
        f"{old}e0",
        "-0",
        "-0.0",
        "1e400",
        "NaN",
        "Infinity",
        f"0{old}",
        f"+{old}",
        "1.",
        "0x1",
        "0.1",
        "1E2",
    )
    return _spelled(value, place, random.choice(spellings))


def _deep(value: dict[str, Any], random: Random) -> bytes | None:
    place = random.choice(list(places(value)))
    levels = random.choice((28, 31, 32, 33, 64, 1000, 20_000))
    opening, closing = random.choice((("[", "]"), ('{"a":', "}")))
    return _spelled(value, place, opening * levels + "1" + closing * levels)


def _unicode_form(value: dict[str, Any], random: Random) -> bytes | None:
    """A text in the other normal form, or with a composed letter where it had none."""
    place = _pick(value, random, _is_text)
    accented = _pick(value, random, lambda item: _is_text(item) and not item.isascii())
    box, key = accented or place or (value, "kind")
    forms = [unicodedata.normalize(form, box[key]) for form in ("NFC", "NFD", "NFKD")]
    others = [form for form in forms if form != box[key]]
    box[key] = random.choice(others or [box[key] + "e\u0301", box[key] + "\u00e9"])
    return canonical.encode(value)


def _not_unicode(value: dict[str, Any], random: Random) -> bytes | None:
    place = _pick(value, random, _is_text)
    if place is None:
        return None
    kind = random.randrange(4)
    if kind == 0:
        return b"\xef\xbb\xbf" + _plain(value)
    if kind == 1:
        return _spelled(value, place, '"\\ud800"')
    if kind == 2:
        return _plain(value).decode().encode("utf-16")
    bad = random.choice(
        (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x00", b"\x1f")
    )
    return _spelled(value, place, '"bad?"').replace(b"bad?", bad)


EDITS: dict[str, Edit] = {
    "number changed": _number,
    "text changed": _text,
    "value of another type": _other_type,
    "key removed": _key_removed,
    "key added": _key_added,
    "key renamed": _key_renamed,
    "key twice": _key_twice,
    "list changed": _list_changed,
    "key order": _order,
    "spacing": _spacing,
    "needless escape": _escape,
    "integer beyond the profile": _huge,
    "number in another spelling": _real,
    "nested deep": _deep,
    "Unicode normal form": _unicode_form,
    "no Unicode": _not_unicode,
}


def in_profile(entry: bytes) -> Any:
    """The value of bytes that are in the ledger's JSON profile by the standard library's word, else None.

    A second opinion on canonical form, in nothing shared with the product: what is not in the profile must be
    refused at its own place, whoever signed it.
    """
    try:
        value = json.loads(
            entry, parse_int=_small_integer, parse_float=_refuse, parse_constant=_refuse
        )
    except (ValueError, RecursionError):
        return None
    if _depth(value) > MAX_DEPTH or _plain(value) != entry:
        return None
    return value


def _small_integer(digits: str) -> int:
    if len(digits) > 17 or abs(int(digits)) >= 2**53 or digits == "-0":
        raise ValueError(digits)
    return int(digits)


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _depth(value: Any) -> int:
    """How many containers lie in one another, counted without recursion."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [item for box in level for item in (box.values() if isinstance(box, dict) else box)]
    return depth
