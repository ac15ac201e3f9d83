"""Campaign `offices`: random acts of keys before admission, and what a small model of the rules expects of each.

A case is a ledger to which keys of a small cast are enrolled, revoked and made root, and as which they write and
state, most of it out of order. The model below knows nothing of the product's state: a table of who was enrolled
when for what. Each act must be admitted, or refused with the code that the model names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import samples
from world import DRAFTS, Draft, World, enrolment, key

from campaigns.report import Outcome, Settings
from ledger.checks.identity import rotation_message
from ledger.errors import EvidenceError

SLICE = 120
FULL = 5_000
ACTS = 40
CAST = ("root", "writer", "auditor", "reviewer", "ann", "ben", "cas", "dee")
ROLES = ("ingest", "train", "judge", "review", "audit", "promote", "seal")
ADMITTED = "admitted"


@dataclass
class Holder:
    """A key in the model: its roles, and the seqs from which and until which it counts."""

    roles: frozenset[str]
    start: int
    stop: int | None = None
    suspect_from: int | None = None


@dataclass
class Offices:
    """Who holds what, as the format's page has it."""

    root: str = "root"
    holders: dict[str, Holder] = field(default_factory=dict)

    def signing(self, name: str, seq: int, wanted: set[str] | None, refusal: str) -> str | None:
        """Why a key may not sign at a seq in one of the roles wanted, None where it may."""
        holder = self.holders.get(name)
        if holder is None:
            return "KEY_UNKNOWN"
        if seq < holder.start or (holder.stop is not None and seq >= holder.stop):
            return "KEY_OUT_OF_WINDOW"
        return None if wanted is None or wanted & holder.roles else refusal


@dataclass(frozen=True)
class Act:
    """One thing somebody tries.

    Args:
        draft: the record to be.
        role: role of the statement that the kind demands, None for none.
        writes: the roles of which the writer must have one, None for any key.
        verdict: code by which the model refuses it where keys and statement are in order, None to admit it.
        take: moves the model on where it is admitted, given the record's seq.
    """

    draft: Draft
    role: str | None
    writes: set[str] | None
    verdict: str | None
    take: Callable[[int], None]


def run(settings: Settings) -> Outcome:
    """Let the casts act."""
    outcome = Outcome(
        excluded={"several ledgers": "acts move between ledgers in the tests of rotation"}
    )
    total = FULL if settings.full else SLICE
    for number in range(total) if settings.case is None else [settings.case]:
        for problem in _play(settings.random(number), outcome):
            outcome.failures.append(f"case {number}: {problem}")
        settings.progress(number, total)
    return outcome


def _play(random: Random, outcome: Outcome) -> list[str]:
    world, offices = World(), Offices()
    for name, state in _begun(world).items():
        offices.holders[name] = state
    problems = []
    for _ in range(ACTS):
        act = random.choice(_ACTS)(random, world, offices)
        seq = world.chain.size
        wanted = expected(act, offices, seq)
        code = _tried(world, act.draft)
        outcome.cases += 1
        outcome.counts[f"{act.draft.kind}: {code}"] += 1
        if code != wanted:
            problems.append(f"seq {seq}, {act.draft.kind} is {code}, the model says {wanted}")
            break  # the model and the ledger have parted
        if code == ADMITTED:
            act.take(seq)
    return problems or _same(world, offices)


def _begun(world: World) -> dict[str, Holder]:
    """The cast's part of what every world begins with."""
    names = {key(name).id: name for name in CAST}
    begun = {"root": Holder(frozenset({"root"}), 0)}
    for record in world.records[1:]:
        name = names.get(record.body["key"])
        if name is not None:
            begun[name] = Holder(frozenset(record.body["roles"]), record.body["from_seq"])
    world.need("leakage.audited")  # something to accept
    return begun


def expected(act: Act, offices: Offices, seq: int) -> str:
    """What the model says of an act: the first refusal in the order of the verification page."""
    return (
        offices.signing(act.draft.writer, seq, act.writes, "ROLE_MISSING")
        or (act.role and offices.signing(str(act.draft.stater), seq, {act.role}, "STATEMENT_ROLE"))
        or act.verdict
        or ADMITTED
    )


def _tried(world: World, draft: Draft) -> str:
    try:
        world.admit(draft)
    except EvidenceError as error:
        return error.code
    except Exception as error:  # noqa: BLE001 - the one place: what escapes raw is a failure to report
        return f"raw {type(error).__name__}"
    return ADMITTED


def _same(world: World, offices: Offices) -> list[str]:
    """At the end the product's state and the model's table say the same of the whole cast."""
    state = world.chain.state
    problems = [] if state.root_key == key(offices.root).id else [f"root is {state.root_key}"]
    for name in CAST:
        mine, its = offices.holders.get(name), state.keys.get(key(name).id)
        if mine is None or its is None:
            if mine is not None or its is not None:
                problems.append(f"{name} is {its}, the model has {mine}")
            continue
        window = (its.from_seq, its.until_seq, its.suspect_from)
        same = window == (mine.start, mine.stop, mine.suspect_from)
        if not same or set(its.roles) != mine.roles:
            problems.append(f"{name} is {its}, the model has {mine}")
    return problems


# --- acts -------------------------------------------------------------------------------------


def _hands(random: Random, offices: Offices) -> tuple[str, str]:
    """A writer and a stater: mostly those that may, sometimes anybody."""
    writer = "writer" if random.random() < 0.7 else random.choice(CAST)
    return writer, offices.root if random.random() < 0.8 else random.choice(CAST)


def _enrol(random: Random, world: World, offices: Offices) -> Act:
    name, seq = random.choice(CAST), world.chain.size
    roles = random.choices(
        (*ROLES, "root"), (3, 3, 3, 3, 3, 3, 3, 1), k=random.choice((1, 1, 1, 2, 3))
    )
    start = seq + random.choice((0, 0, 0, 0, 3, -1))
    body = {**enrolment(world, name, roles), "from_seq": start}
    other = random.random() < 0.1
    if other:
        body["public_key"] = key(f"not {name}").public.hex()
    writer, stater = _hands(random, offices)

    def take(_seq: int) -> None:
        offices.holders[name] = Holder(frozenset(roles), start)

    verdict = _enrolment_refused(offices, name, roles, start < seq, other)
    draft = Draft("key.enrolled", samples.body("key.enrolled", **body), {}, writer, stater)
    return Act(draft, "root", None, verdict, take)


def _enrolment_refused(
    offices: Offices, name: str, roles: list[str], early: bool, other: bool
) -> str | None:
    shared = set(roles) & {"train", "judge"}
    refusals = (
        ("KEY_ID_WRONG", other),
        ("KEY_TWICE", name in offices.holders),
        ("KEY_BACKDATED", early),
        ("KEY_ROLES", len(set(roles)) < len(roles) or "root" in roles),
        ("REVIEW_KEY_SHARED", "review" in roles and len(set(roles)) > 1),
        ("AUDIT_KEY_SHARED", "audit" in roles and bool(shared)),
    )
    return next((code for code, holds in refusals if holds), None)


def _revoke(random: Random, world: World, offices: Offices) -> Act:
    name, seq = random.choice(CAST), world.chain.size
    start = max(seq + random.choice((0, 0, -1, -3, -30, 1)), 0)
    writer, stater = _hands(random, offices)
    holder = offices.holders.get(name)

    def take(at: int) -> None:
        assert holder is not None
        holder.stop = at if holder.stop is None else holder.stop
        since = max(start, holder.start)
        holder.suspect_from = since if since < holder.stop else None

    verdict = None
    if holder is None:
        verdict = "KEY_UNKNOWN"
    elif "root" in holder.roles:
        verdict = "KEY_ROLES"
    elif start > seq:
        verdict = "KEY_BACKDATED"
    elif holder.stop is not None and not _reaches_further(holder, start):
        verdict = "KEY_UNKNOWN"
    body = samples.body("key.revoked", key=key(name).id, from_seq=start)
    return Act(Draft("key.revoked", body, {}, writer, stater), "root", None, verdict, take)


def _reaches_further(holder: Holder, start: int) -> bool:
    """Whether a second revocation makes a seq suspect that was not, and in which the key could sign."""
    taken = range(holder.start, holder.stop or 0)
    before = set() if holder.suspect_from is None else set(range(holder.suspect_from, taken.stop))
    return bool(set(taken) & set(range(start, taken.stop)) - before)


def _rotate(random: Random, world: World, offices: Offices) -> Act:
    new = random.choice(CAST)
    old = offices.root if random.random() < 0.9 else random.choice(CAST)
    signer = new if random.random() < 0.8 else random.choice(CAST)
    writer, stater = _hands(random, offices)
    message = rotation_message(world.chain.state.ledger_id, key(old).id, key(new).id, world.seen())
    body = {
        "old_key": key(old).id,
        "new_key": key(new).id,
        "new_public": key(new).public.hex(),
        "acceptance": key(signer).sign(message).hex(),
    }

    def take(at: int) -> None:
        offices.holders[offices.root].stop = at + 1
        offices.holders[new] = Holder(frozenset({"root"}), at + 1)
        offices.root = new

    verdict = None
    if old != offices.root:
        verdict = "ROOT_WRONG"
    elif new in offices.holders:
        verdict = "KEY_TWICE"
    elif signer != new:
        verdict = "ROOT_WRONG"
    return Act(Draft("root.rotated", body, {}, writer, stater), "root", None, verdict, take)


def _nothing(_seq: int) -> None:
    """An act that changes nobody's office."""


def _work(random: Random, world: World, _offices: Offices) -> Act:
    """Somebody does a kind's work."""
    kind, roles = random.choice(
        (
            ("note.added", None),
            ("source.ingested", {"ingest"}),
            ("reward.audited", {"ingest"}),
            ("snapshot.recorded", {"seal"}),
        )
    )
    draft = DRAFTS[kind](world)
    draft.writer = random.choice(CAST)
    return Act(draft, None, roles, None, _nothing)


def _accept(random: Random, world: World, offices: Offices) -> Act:
    """Somebody accepts an audit's findings in a reviewer's place."""
    audit = world.need("leakage.audited")
    writer, _ = _hands(random, offices)
    draft = Draft("leakage.accepted", samples.body("leakage.accepted"), {"audit": audit.id}, writer)
    draft.stater = random.choice(CAST)
    return Act(draft, "review", None, None, _nothing)


def _declare(random: Random, world: World, offices: Offices) -> Act:
    """Somebody declares a policy in root's place."""
    draft = DRAFTS["policy.declared"](world)
    draft.writer, draft.stater = _hands(random, offices)
    return Act(draft, "root", None, None, _nothing)


_ACTS = (_enrol, _enrol, _revoke, _rotate, _work, _work, _accept, _declare)
