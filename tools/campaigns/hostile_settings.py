"""Hostile configuration files: TOML and JSON for plans, protocols and policies."""

from __future__ import annotations

from random import Random

from campaigns.hostile_bytes import BOM, ESCAPES, Maker, mutated, odd_name, special
from campaigns.hostile_child import Attack
from campaigns.hostile_place import Place
from runners.cli.policy import TEMPLATE

GOOD = {
    "plan": b'split = "@5"\nmodel = "@6"\nsteps = 3\nbatch_size = 2\nlora_rank = 4\n',
    "eval": b'split = "@5"\nrole = "validation"\ndesk_cases = 4\nmax_new_tokens = 8\n',
    "policy": TEMPLATE.encode(),
}
COMMANDS = {
    "plan": ("plan", "sft", "--check"),
    "eval": ("eval", "register"),
    "policy": ("policy", "declare"),
}
DEEP = 20_000
DIGITS = 1_000_000


def _attack(rng: Random, place: Place, data: bytes, suffix: str = ".toml") -> Attack:
    what = rng.choice(sorted(COMMANDS))
    path = place.put(f"config{suffix}", data.replace(b"@GOOD@", GOOD[what]))
    return Attack(place.own(*COMMANDS[what], path))


def deep(rng: Random, place: Place) -> Attack:
    """Arrays, tables or dotted keys that nest without end."""
    text = rng.choice(
        (
            "a = " + "[" * DEEP,
            "a = " + "[" * DEEP + "]" * DEEP,
            "a = " + "{b = " * (DEEP // 4),
            "a." * DEEP + "b = 1",
            "[" + "a." * DEEP + "b]",
        )
    )
    return _attack(rng, place, b"@GOOD@\n" + text.encode())


def deep_json(rng: Random, place: Place) -> Attack:
    """JSON that nests a hundred thousand levels."""
    opening = rng.choice(("[", '{"a":'))
    return _attack(rng, place, b'{"split": ' + opening.encode() * 100_000, ".json")


def numbers(rng: Random, place: Place) -> Attack:
    """Numbers with a million digits, infinities, NaN, minus zero."""
    number = rng.choice(
        ("9" * DIGITS, "9" * 400, "1e400", "nan", "-inf", "0x" + "f" * 5000, "-0.0")
    )
    name = rng.choice(
        ("steps", "learning_rate", "lora_dropout", "max_gradient_norm", "alpha", "seeds")
    )
    return _attack(rng, place, f'split = "@5"\nmodel = "@6"\n{name} = {number}\n'.encode())


def numbers_json(rng: Random, place: Place) -> Attack:
    """The same in JSON, where a number of 400 digits is an integer."""
    number = rng.choice(("9" * DIGITS, "9" * 400, "1e400", "NaN", "Infinity", "-0", "1E+999"))
    name = rng.choice(("steps", "learning_rate", "lora_dropout", "max_gradient_norm", "alpha"))
    return _attack(rng, place, f'{{"split":"@5","model":"@6","{name}":{number}}}'.encode(), ".json")


def names(rng: Random, place: Place) -> Attack:
    """A name that is not known: long, or with characters that a terminal obeys."""
    name = rng.choice((*ESCAPES, "x" * 60_000)).replace("\0", "")
    quoted = "".join(f"\\U{ord(char):08x}" for char in name)
    return _attack(rng, place, b"@GOOD@\n" + f'"{quoted}" = 1\n'.encode())


def twice(rng: Random, place: Place) -> Attack:
    """Tables or names that stand twice, or thousands of names."""
    text = rng.choice(
        (
            "[a]\n[a]\n",
            "a = 1\na = 2\n",
            "a.b = 1\n[a]\nb = 2\n",
            "".join(f"k{number} = 1\n" for number in range(5000)),
        )
    )
    return _attack(rng, place, b"@GOOD@\n" + text.encode())


def many_json(rng: Random, place: Place) -> Attack:
    """An object of very many names, so that looking for doubles is dear."""
    count = rng.choice((6_000, 90_000))
    pairs = ",".join(f'"{number}":1' for number in range(count))
    return _attack(rng, place, b"{" + pairs.encode() + b"}", ".json")


def encoding(rng: Random, place: Place) -> Attack:
    """A byte order mark, UTF-16, bytes that are no text, nulls."""
    data = rng.choice(
        (
            BOM + b"@GOOD@x = 1",
            "split = 1".encode("utf-16"),
            b"split = '\xff\xfe'\n",
            b"\0" * 1000,
            b"@GOOD@\n# \x1b[2J\n",
            b"\r" * 1000,
        )
    )
    return _attack(rng, place, data, rng.choice((".toml", ".json")))


def large(rng: Random, place: Place) -> Attack:
    """A hundred megabytes, of comment or of nothing."""
    what = rng.choice(sorted(COMMANDS))
    path = place.put(
        "config" + rng.choice((".toml", ".json")), rng.choice((b"#", b" ", b"\n")) * (100 << 20)
    )
    return Attack(place.own(*COMMANDS[what], path))


def no_file(rng: Random, place: Place) -> Attack:
    """No plain file where the configuration should be."""
    what = rng.choice(sorted(COMMANDS))
    path = special(rng, place, "config" + rng.choice((".toml", ".json")))
    return Attack(place.own(*COMMANDS[what], path))


def device(rng: Random, place: Place) -> Attack:
    """A device or the standard input instead of a file."""
    what = rng.choice(sorted(COMMANDS))
    path = rng.choice(("/dev/zero", "/dev/stdin", "/dev/full", "/proc/self/mem", "/proc/self/fd/0"))
    return Attack(place.own(*COMMANDS[what], path), stdin=GOOD[what][:5])


def changed(rng: Random, place: Place) -> Attack:
    """A good file with a few random changes and an odd name."""
    what = rng.choice(sorted(COMMANDS))
    path = place.put(odd_name(rng, ".toml"), mutated(rng, GOOD[what]))
    return Attack(place.own(*COMMANDS[what], b"--", bytes(path)), accepts=what == "policy")


KINDS: dict[str, Maker] = {
    "deep": deep,
    "deep-json": deep_json,
    "numbers": numbers,
    "numbers-json": numbers_json,
    "names": names,
    "twice": twice,
    "many-json": many_json,
    "encoding": encoding,
    "large": large,
    "no-file": no_file,
    "device": device,
    "changed": changed,
}
