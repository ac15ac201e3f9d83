"""Ledgers to attack: one with every kind, one with a long life; forks of them, and twins of another origin."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from world import ORIGIN, Draft, World
from world import key as make_key

from ledger import seals
from ledger.checks.identity import rotation_message
from ledger.ed25519 import PrivateKey
from ledger.rules import RULES

OTHER_ORIGIN = "example.com/another-bot"
CYCLES = 14
UPDATES = 4
Note = tuple[int, bytes]
Steps = list[Callable[["Grower"], None]]


@cache
def key(name: str) -> PrivateKey:
    """The one private key of a name, made once."""
    return make_key(name)


class _Elsewhere(World):
    """A world of another origin."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        super().__init__()

    def sign_bytes(self, draft: Draft) -> tuple[bytes, bytes]:
        """Entry and signature of a draft, under this world's origin."""
        draft.ledger = self.origin
        return super().sign_bytes(draft)

    def note(self, writer: str = "writer") -> bytes:
        """A seal over the head as it is, under this world's origin."""
        head = seals.Seal(self.origin, self.chain.size, self.chain.tree.root())
        return seals.sign_seal(head, key(writer))


class Grower:
    """A world and the seals that were made of it."""

    def __init__(self, origin: str = ORIGIN) -> None:
        self.world = World() if origin == ORIGIN else _Elsewhere(origin)
        self.notes: list[Note] = []

    def seal(self) -> None:
        """A snapshot and a seal over it."""
        note = self.world.seal()
        self.notes.append((self.world.chain.size, note))

    def note(self, text: str) -> None:
        """A note about record 0."""
        self.world.admit(Draft("note.added", {"text": text}, {"about": [self.world.records[0].id]}))

    def leave(self, name: str) -> None:
        """A key that comes, writes and is revoked."""
        self.world.enroll(name, ["ingest", "train"])
        self.world.admit(Draft("note.added", {"text": "seen by who left"}, writer=name))
        self.world.add("key.revoked", key=key(name).id, from_seq=self.world.chain.size)

    def rotate(self, new_name: str) -> None:
        """Root's office handed to the key of a name."""
        world = self.world
        old, new = key(world.root), key(new_name)
        message = rotation_message(world.chain.state.ledger_id, old.id, new.id, world.seen())
        body = {
            "old_key": old.id,
            "new_key": new.id,
            "new_public": new.public.hex(),
            "acceptance": new.sign(message).hex(),
        }
        world.admit(Draft("root.rotated", body, stater=world.root))
        world.root = new_name


def every_kind() -> Steps:
    """Steps to a ledger with each kind of record, sealed now and then and at its end."""
    kinds = [kind for kind in RULES if kind not in ("ledger.created", "root.rotated")]
    steps: Steps = [lambda grower: grower.leave("leaver")]
    for place, kind in enumerate(kinds):
        steps.append(_need(kind))
        if place % 9 == 8:
            steps.append(Grower.seal)
    return [*steps, _say("Zoë was here"), _rotation("root-2"), Grower.seal]


def long_life() -> Steps:
    """Steps to a ledger of runs, updates, seals, rotations and revocations whose last records no seal covers."""
    steps: Steps = []
    for cycle in range(CYCLES):
        steps += [_cycle(cycle), Grower.seal]
        if cycle % 4 == 1:
            steps.append(_leaving("leaver" if cycle == 1 else f"leaver-{cycle}"))
        if cycle % 5 == 2:
            steps.append(_rotation(f"root-{cycle}"))
    return [*steps, *(_say(f"tail {number}, naïve") for number in range(5))]


def grow(steps: Steps, *, origin: str = ORIGIN, fork_after: int | None = None) -> Grower:
    """The ledger of some steps; with `fork_after` another history begins after so many of them."""
    grower = Grower(origin)
    for place, step in enumerate(steps):
        if place == fork_after:
            grower.note("another history begins")
        step(grower)
    return grower


def _need(kind: str) -> Callable[[Grower], None]:
    def need(grower: Grower) -> None:
        grower.world.need(kind)

    return need


def _say(text: str) -> Callable[[Grower], None]:
    return lambda grower: grower.note(text)


def _leaving(name: str) -> Callable[[Grower], None]:
    return lambda grower: grower.leave(name)


def _rotation(name: str) -> Callable[[Grower], None]:
    return lambda grower: grower.rotate(name)


def _cycle(number: int) -> Callable[[Grower], None]:
    def run(grower: Grower) -> None:
        world = grower.world
        world.add("plan.prepared", budget_updates=2 * UPDATES, budget_datums=16 * UPDATES)
        world.add("run.launched")
        for _ in range(UPDATES):
            world.add("batch.built")
            world.add("update.acknowledged")
        world.add("checkpoint.published")
        if number % 2:
            world.add("operation.settled")
        world.add("run.ended")
        grower.note(f"cycle {number}: déjà vu")

    return run
