"""A record edited as JSON and signed again by whoever the attacker is, with or without their own name on it."""

from __future__ import annotations

from random import Random
from typing import Any

from campaigns.tamper.attack import Attack, Make, at, held_by_writer
from campaigns.tamper.base import Base, row, sign
from campaigns.tamper.growing import key
from campaigns.tamper.json_edits import EDITS, Edit, in_profile
from ledger.errors import EvidenceError

KEPT = "signature kept"
SIGNERS: dict[str, str | None] = {
    KEPT: None,
    "signed by its writer": None,
    "signed by an enrolled key": "promoter",
    "signed by an audit key": "auditor",
    "signed by a review key": "reviewer",
    "signed by a revoked key": "leaver",
    "signed by an unknown key": "nobody ever enrolled this key",
}


def _make(edit: Edit, attacker: str) -> Make:
    def make(base: Base, random: Random) -> Attack | None:
        seq = random.randrange(base.size)
        value = base.value(seq)
        name = SIGNERS[attacker] or base.writers[seq]
        if attacker != KEPT and random.randrange(2):
            value["actor"] = key(name).id  # they sign under their own name
        entry = _edited(edit, value, random)
        if entry is None or entry == base.rows[seq][3]:
            return None
        if attacker == KEPT:
            return at(base, seq, row(seq, entry, base.rows[seq][2]))
        changed = row(seq, entry, sign(entry, name))
        if _could_be_good(base, seq, entry, name):
            return held_by_writer(base, seq, changed)
        return at(base, seq, changed)

    return make


def _edited(edit: Edit, value: dict[str, Any], random: Random) -> bytes | None:
    try:
        return edit(value, random)
    except (
        EvidenceError
    ):  # the edit left the profile where it meant to stay inside: no such attack here
        return None


def _could_be_good(base: Base, seq: int, entry: bytes, name: str) -> bool:
    """Whether the bytes are in the profile and the signer signs as the actor named, in office.

    Only then may the record itself be good, and the next thing that is not its writer's tells.
    """
    value = in_profile(entry)
    mine = key(name).id
    if not isinstance(value, dict) or value.get("actor") != mine:
        return False
    return seq == 0 or base.may_sign(mine, seq)


RESIGNED: dict[str, Make] = {
    f"json: {name}, {attacker}": _make(edit, attacker)
    for name, edit in EDITS.items()
    for attacker in SIGNERS
}
