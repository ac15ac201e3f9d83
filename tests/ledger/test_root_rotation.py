"""Root's office: handed over, chained, pinned, and not to be put elsewhere or given to just any key."""

from __future__ import annotations

import pytest
import samples
from world import Draft, World, key

from ledger import ed25519
from ledger.checks.identity import rotation_message
from ledger.errors import EvidenceError
from ledger.record import Record
from verifiers.verify import Options, verify

LOW_ORDER = "ec" + "ff" * 30 + "7f"
"""The point (0, -1), of order two."""


def rotation(world: World, new: str, **changes: object) -> Draft:
    """A draft that hands root's office to the key of a name, in order unless changed."""
    old, fresh = key(world.root), key(new)
    message = rotation_message(world.chain.state.ledger_id, old.id, fresh.id, world.seen())
    body = {
        "old_key": old.id,
        "new_key": fresh.id,
        "new_public": fresh.public.hex(),
        "acceptance": fresh.sign(message).hex(),
    }
    return Draft("root.rotated", {**body, **changes}, stater=world.root)


def rotate(world: World, new: str) -> Record:
    """Hand root's office over."""
    record = world.admit(rotation(world, new))
    world.root = new
    return record


def refusal(world: World, draft: Draft) -> str:
    """The code by which the world refuses a draft; its state has not moved."""
    before = world.chain.state.to_bytes()
    record = world.sign(draft)
    with pytest.raises(EvidenceError) as caught:
        world.chain.admit(record)
    assert world.chain.state.to_bytes() == before
    return caught.value.code


def chained() -> World:
    """A world in which root's office went through three hands."""
    world = World()
    for name in ("root 2", "root 3"):
        rotate(world, name)
    return world


def test_each_hand_over_ends_the_old_root_s_office():
    """After two rotations only the third root states; the first two neither state nor write."""
    world = chained()
    world.enroll("somebody", ["train"])
    for old in ("root", "root 2"):
        stated = world.draft("key.enrolled")
        stated.stater = old
        assert refusal(world, stated) == "KEY_OUT_OF_WINDOW"
        assert refusal(world, Draft("note.added", {"text": "x"}, writer=old)) == "KEY_OUT_OF_WINDOW"
        again = rotation(world, "root 4")
        again.stater = old
        assert refusal(world, again) == "KEY_OUT_OF_WINDOW"
    assert world.chain.state.root_key == key("root 3").id


def test_the_old_root_names_itself_as_the_root_no_more():
    """An old root that still names itself is not the root key, whoever states it."""
    world = chained()
    assert refusal(world, rotation(world, "root 4", old_key=key("root 2").id)) == "ROOT_WRONG"


def test_the_new_root_begins_after_the_rotation():
    """The rotation itself is stated by the old root; a statement over it by the new one is refused."""
    world = World()
    draft = rotation(world, "root 2")
    draft.stater = "root 2"
    assert refusal(world, draft) == "KEY_UNKNOWN"
    record = rotate(world, "root 2")
    state = world.chain.state
    assert state.keys[key("root").id].until_seq == record.seq + 1
    assert state.keys[key("root 2").id].from_seq == record.seq + 1


def enrolled_reviewer(world: World) -> str:
    """A reviewer's key."""
    assert "review" in world.chain.state.keys[key("reviewer").id].roles
    return "reviewer"


def revoked_trainer(world: World) -> str:
    """A key that was enrolled to train and then revoked."""
    world.enroll("trainer", ["train"])
    body = samples.body("key.revoked", key=key("trainer").id, from_seq=world.chain.size)
    world.admit(Draft("key.revoked", body, stater=world.root))
    return "trainer"


def earlier_root(world: World) -> str:
    """The key that held the office before."""
    rotate(world, "root 2")
    return "root"


NOT_NEW = {
    "an enrolled reviewer": enrolled_reviewer,
    "a revoked trainer": revoked_trainer,
    "the root before": earlier_root,
    "itself": lambda world: world.root,
    "the writer": lambda _: "writer",
}


@pytest.mark.parametrize("name", NOT_NEW)
def test_root_goes_to_a_new_key_only(name):
    """A key that holds or held any office in the ledger never becomes root, not even root itself again."""
    world = World()
    new = NOT_NEW[name](world)
    assert refusal(world, rotation(world, new)) == "KEY_TWICE"


BAD_KEYS = {
    "low order": (LOW_ORDER, "WEAK_KEY"),
    "identity": ("01" + "00" * 31, "WEAK_KEY"),
    "y beyond p": ("ee" + "ff" * 30 + "7f", "KEY_MALFORMED"),
    "off the curve": ("02" + "00" * 31, "KEY_MALFORMED"),
}


@pytest.mark.parametrize("name", BAD_KEYS)
def test_root_never_goes_to_a_key_that_anybody_holds(name):
    """A point of low order or another encoding is refused before its acceptance is looked at."""
    public, code = BAD_KEYS[name]
    world = World()
    draft = rotation(world, "x", new_public=public, new_key=ed25519.key_id(bytes.fromhex(public)))
    assert refusal(world, draft) == code


def grown_alike(*texts: str) -> World:
    """A world whose history after the enrolments is a few notes."""
    world = World()
    for text in texts:
        world.add("note.added", text=text)
    return world


def test_a_rotation_stands_in_one_history_only():
    """Acceptance and statement of a rotation are refused in a sister history of the same record 0 and length."""
    here, there = grown_alike("a"), grown_alike("b")
    assert here.records[0].id == there.records[0].id
    made = rotation(here, "root 2")
    made.statement = here.state_of(made)
    assert here.admit(made)
    lifted = Draft("root.rotated", dict(made.body), statement=made.statement)
    assert refusal(there, lifted) == "STATEMENT_FOREIGN"
    restated = Draft("root.rotated", dict(made.body), stater="root")
    assert (
        refusal(there, restated) == "ROOT_WRONG"
    )  # a stolen old key states anew; the acceptance does not fit


def test_an_acceptance_is_not_kept_for_later():
    """One note after the head that was seen, the same acceptance counts no more, however it is stated."""
    world = World()
    made = rotation(world, "root 2")
    made.statement = world.state_of(made)
    world.add("note.added")
    stale = Draft("root.rotated", dict(made.body), statement=made.statement)
    assert refusal(world, stale) == "STATEMENT_STALE"
    assert refusal(world, Draft("root.rotated", dict(made.body), stater="root")) == "ROOT_WRONG"


def test_a_sealed_head_may_be_seen_by_both():
    """Old and new root may sign over a sealed head in advance; the rotation then stands after later records."""
    world = World()
    world.seal()
    made = rotation(world, "root 2")
    made.statement = world.state_of(made)
    world.add("note.added")
    assert world.admit(made).seq == world.chain.size - 1


def test_an_acceptance_names_both_keys():
    """An acceptance for another old key, another new key, or by the old root itself does not count."""
    world = World()
    seen, ledger_id = world.seen(), world.chain.state.ledger_id
    old, new, other = key("root"), key("root 2"), key("other")
    for message, signer in (
        (rotation_message(ledger_id, other.id, new.id, seen), new),
        (rotation_message(ledger_id, old.id, other.id, seen), new),
        (rotation_message(ledger_id, old.id, new.id, seen), old),
        (rotation_message(ledger_id, old.id, new.id, seen), other),
    ):
        draft = rotation(world, "root 2", acceptance=signer.sign(message).hex())
        assert refusal(world, draft) == "ROOT_WRONG"


def test_a_statement_by_the_old_root_is_not_used_after_it():
    """What the old root stated over a sealed head before the rotation is refused after it."""
    world = World()
    world.seal()
    enrolment = world.draft("key.enrolled")
    enrolment.statement = world.state_of(enrolment)
    rotate(world, "root 2")
    enrolment.body["from_seq"] = world.chain.size
    assert refusal(world, enrolment) == "KEY_OUT_OF_WINDOW"


PINS = {
    "the first root": ("root", "pinned", ["ROOT_ROTATED"]),
    "the root between": ("root 2", "pinned", ["ROOT_ROTATED"]),
    "the root now": ("root 3", "pinned", []),
}


@pytest.mark.parametrize("name", PINS)
def test_a_pin_of_any_root_of_the_chain_is_trusted(folder, name):
    """Whoever pinned an older root trusts its successors, and is told that the office moved."""
    pinned, trust, warnings = PINS[name]
    report = verify(
        chained().write(folder), Options(workers=1, pinned_roots=frozenset([key(pinned).id]))
    )
    assert (report.verdict, report.trust) == ("verified", trust)
    assert [item.code for item in report.warnings] == warnings


@pytest.mark.parametrize("name", ["writer", "reviewer", "root 4"])
def test_a_pin_of_no_root_is_not_trusted(folder, name):
    """A key that is enrolled for something else, or unknown, is not what trust may rest on."""
    report = verify(
        chained().write(folder), Options(workers=1, pinned_roots=frozenset([key(name).id]))
    )
    assert [item.code for item in report.wrong] == ["ROOT_UNTRUSTED"]
