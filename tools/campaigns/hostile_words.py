"""Hostile words: arguments, options and environment variables of every sort of command."""

from __future__ import annotations

from random import Random

from campaigns.hostile_bytes import ESCAPES, Maker, odd_name
from campaigns.hostile_child import Attack, Word
from campaigns.hostile_place import Place

_RAW = (b"\xff\xfe", b"\xed\xa0\x80", b"a\nb", b"\x1b[2J", b"../../etc/passwd", b"x" * 100_000, b"")
_VARIABLES = (
    "EVIDENCE_LEDGER",
    "EVIDENCE_KEY",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "HOME",
    "EVIDENCE_MODELS",
)


def _word(rng: Random) -> bytes:
    return rng.choice((*_RAW, *(text.encode() for text in ESCAPES))).replace(b"\0", b"")


def arguments(rng: Random, place: Place) -> Attack:
    """A word that is no id, kind, number, file or command."""
    word = _word(rng)
    words: tuple[Word, ...] = rng.choice(
        (
            ("show", word),
            ("lineage", word),
            ("log", "--kind", word),
            ("log", "--limit", word),
            ("verify", "--root", word),
            ("verify", word),
            ("verify", "--level", word),
            ("query", word),
            ("query", "curve", "--param", b"run=" + word),
            ("query", "SELECT 1", "--param", word),
            ("schema", word),
            ("key", "revoke", word, "--reason", word),
            ("key", "enroll", word, "--role", "train", "--owner", word),
            ("data", "split", word, "--by", word),
            ("data", "split", "@1", "--fractions", word),
            ("model", "add", "--package", word),
            ("run", "status", word),
            ("run", "logs", "@0", "--lines", word),
            ("eval", "compare", word, word),
            ("promote", word),
            (word,),
            (b"--" + word,),
            ("key", word),
        )
    )
    # an empty list of tables, and a package's name that is an ordinary word, are no hostile input
    return Attack(place.own(*words), accepts=True)


def recorded(rng: Random, place: Place) -> Attack:
    """Text that goes into a record and comes back out of it."""
    word = _word(rng)
    return Attack(place.own("note", "@0", "--tag", word, "--", word), accepts=True)


def variables(rng: Random, place: Place) -> Attack:
    """An environment variable that leads to no folder, to a device, or to an odd name."""
    value = rng.choice(
        ("/dev/null", "/dev/zero", "relative", "/proc/self", "\x1b[2J", "/", "\udcff", "")
    )
    name = rng.choice(_VARIABLES)
    words = rng.choice((("log",), ("note", "@0", "x"), ("key", "list"), ("verify",)))
    plain = words if name == "EVIDENCE_LEDGER" else place.own(*words)
    return Attack(tuple(plain), environment={name: value}, accepts=True)


def new_files(rng: Random, place: Place) -> Attack:
    """Files that a command is asked to make where there is something, or nothing may be."""
    target = rng.choice(
        (
            b"/dev/full",
            b"/proc/x",
            bytes(place.ledger),
            b"absent/deep/x",
            bytes(place.input) + b"/" + odd_name(rng, ""),
        )
    )
    words = rng.choice(
        (
            ("seal", "--out", target),
            ("key", "new", "--", target),
            ("init", "--origin", "a/b", "--", target),
        )
    )
    bare = words[0] in {"key", "init"}
    # a full device is found out by writing: the seal is then in the ledger, its copy is not
    full = target == b"/dev/full"
    return Attack(words if bare else place.own(*words), accepts=True, may_record=full)


KINDS: dict[str, Maker] = {
    "arguments": arguments,
    "recorded": recorded,
    "variables": variables,
    "new-files": new_files,
}
