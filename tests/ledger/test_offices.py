"""Separation of offices: who may be enrolled for what, once and for ever, through real admission."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest
import samples
from world import Draft, World, enrolment, key

from ledger import ed25519
from ledger.errors import EvidenceError

P = 2**255 - 19
ROLES = ("ingest", "train", "judge", "review", "audit", "promote", "seal")


def attempt(world: World, **body: object) -> str:
    """Enrol with root's statement over these fields; the code of the refusal, or `admitted`."""
    draft = Draft("key.enrolled", samples.body("key.enrolled", **body), stater=world.root)
    try:
        world.admit(draft)
    except EvidenceError as error:
        return error.code
    return "admitted"


def wanted(roles: tuple[str, ...]) -> str:
    """What the format's page says of a set of roles."""
    if "review" in roles and len(roles) > 1:
        return "REVIEW_KEY_SHARED"
    if "audit" in roles and {"train", "judge"} & set(roles):
        return "AUDIT_KEY_SHARED"
    return "admitted"


@pytest.mark.parametrize("number", range(1, len(ROLES) + 1))
def test_every_set_of_roles(number):
    """Of all sets of roles exactly those are enrolled in which nobody reviews or audits themselves."""
    world = World()
    for roles in combinations(ROLES, number):
        body = enrolment(world, f"key for {'+'.join(roles)}"[:32], list(roles))
        assert attempt(world, **body) == wanted(roles), roles


def revoke(world: World, name: str) -> None:
    """End a key's window now."""
    body = samples.body("key.revoked", key=key(name).id, from_seq=world.chain.size)
    world.admit(Draft("key.revoked", body, stater=world.root))


def trained_before(world: World) -> dict[str, object]:
    """A reviewer whose key trained until it was revoked."""
    world.enroll("turncoat", ["train"])
    revoke(world, "turncoat")
    return enrolment(world, "turncoat", ["review"])


def reviewed_before(world: World) -> dict[str, object]:
    """A trainer whose key reviewed until it was revoked."""
    revoke(world, "reviewer")
    return enrolment(world, "reviewer", ["train"])


def enrolled_again(world: World) -> dict[str, object]:
    """A key revoked and enrolled again for the same role."""
    revoke(world, "auditor")
    return enrolment(world, "auditor", ["audit"])


def second_role(world: World) -> dict[str, object]:
    """A reviewer's key enrolled a second time, to train."""
    return enrolment(world, "reviewer", ["train"])


def root_as_reviewer(world: World) -> dict[str, object]:
    """The root key as a reviewer's."""
    return enrolment(world, world.root, ["review"])


def old_root_as_reviewer(world: World) -> dict[str, object]:
    """The key of the root before as a reviewer's."""
    world.add("root.rotated")
    return enrolment(world, "root", ["review"])


def under_another_id(world: World) -> dict[str, object]:
    """The writer's public key under the id of another key."""
    return {
        **enrolment(world, "other", ["review"]),
        "public_key": key("writer").public.hex(),
    }


def in_capitals(world: World) -> dict[str, object]:
    """The writer's public key and its id in capital letters."""
    body = enrolment(world, "writer", ["review"])
    return {**body, "public_key": str(body["public_key"]).upper()}


def y_beyond_p(world: World) -> dict[str, object]:
    """A small point in its other encoding, under the id of these bytes."""
    raw = (P + 3).to_bytes(32, "little")
    body = enrolment(world, "x", ["review"])
    return {**body, "public_key": raw.hex(), "key": ed25519.key_id(raw)}


def spaced(world: World) -> dict[str, object]:
    """The writer's public key with a space after it."""
    body = enrolment(world, "writer", ["review"])
    return {**body, "public_key": str(body["public_key"]) + " "}


def root_role(world: World) -> dict[str, object]:
    """A key enrolled for root's office."""
    return enrolment(world, "x", ["root"])


def before_now(world: World) -> dict[str, object]:
    """A key whose window begins one record ago."""
    return {**enrolment(world, "x", ["review"]), "from_seq": world.chain.size - 1}


TABLE: list[tuple[Callable[[World], dict[str, object]], str]] = [
    (trained_before, "KEY_TWICE"),
    (reviewed_before, "KEY_TWICE"),
    (enrolled_again, "KEY_TWICE"),
    (second_role, "KEY_TWICE"),
    (root_as_reviewer, "KEY_TWICE"),
    (old_root_as_reviewer, "KEY_TWICE"),
    (under_another_id, "KEY_ID_WRONG"),
    (in_capitals, "BODY_INVALID"),
    (spaced, "BODY_INVALID"),
    (y_beyond_p, "KEY_MALFORMED"),
    (root_role, "KEY_ROLES"),
    (before_now, "KEY_BACKDATED"),
]


@pytest.mark.parametrize(("make", "code"), TABLE, ids=lambda item: getattr(item, "__name__", item))
def test_a_key_has_one_office_for_ever(make, code):
    """Each way to give a key a second office, or to hide that it has one, is refused and changes nothing."""
    world = World()
    body = make(world)
    before = world.chain.state.to_bytes()
    assert attempt(world, **body) == code
    assert world.chain.state.to_bytes() == before


def test_the_control_of_the_table_is_admitted():
    """A new key for one office is enrolled: the table's refusals are not for another reason."""
    world = World()
    assert attempt(world, **enrolment(world, "newcomer", ["review"])) == "admitted"


@pytest.mark.parametrize("stater", ["writer", "reviewer", "promoter", "auditor"])
def test_only_root_enrols(stater):
    """A statement by any other office enrols nobody."""
    world = World()
    draft = world.draft("key.enrolled")
    draft.stater = stater
    with pytest.raises(EvidenceError) as caught:
        world.admit(draft)
    assert caught.value.code == "STATEMENT_ROLE"


OFFICES = [
    ("leakage.accepted", "promoter"),
    ("leakage.accepted", "writer"),
    ("leakage.accepted", "root"),
    ("promotion.granted", "reviewer"),
    ("promotion.granted", "root"),
    ("promotion.approved", "promoter"),
    ("promotion.approved", "auditor"),
    ("key.revoked", "reviewer"),
    ("policy.declared", "promoter"),
]


@pytest.mark.parametrize(("kind", "stater"), OFFICES)
def test_no_office_speaks_for_another(kind, stater):
    """Not even root reviews or promotes: each statement is by the office that the kind demands."""
    world = World()
    draft = world.draft(kind)
    draft.stater = stater
    with pytest.raises(EvidenceError) as caught:
        world.admit(draft)
    assert caught.value.code == "STATEMENT_ROLE"


WRITERS = [
    ("update.acknowledged", "auditor"),
    ("check.reproduced", "writer"),
    ("gate.decided", "auditor"),
    ("source.ingested", "reviewer"),
    ("snapshot.recorded", "promoter"),
]


@pytest.mark.parametrize(("kind", "writer"), WRITERS)
def test_no_writer_does_another_s_work(kind, writer):
    """A record by a key without the role is refused, the auditor's work by the trainer above all."""
    world = World()
    draft = world.draft(kind)
    draft.writer = writer
    with pytest.raises(EvidenceError) as caught:
        world.admit(draft)
    assert caught.value.code == "ROLE_MISSING"
