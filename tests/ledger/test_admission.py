"""The place of a record in its chain, its key and its statement."""

from __future__ import annotations

from dataclasses import replace

import pytest
import samples
from world import Draft, World, clock_at, grown, key

from ledger import canonical
from ledger import record as records
from ledger.admission import Chain
from ledger.errors import EvidenceError
from ledger.merkle import CompactRange
from ledger.records.base import Seen
from ledger.rules import RULES
from ledger.state import HEADS_KEPT, State


@pytest.fixture
def world() -> World:
    """A staffed world."""
    return World()


def code_of(world: World, draft: Draft) -> str:
    """Why the draft is refused."""
    with pytest.raises(EvidenceError) as caught:
        world.chain.admit(world.sign(draft))
    return caught.value.code


NOTE = Draft("note.added", {"text": "x"})


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"seq": 99}, "SEQ_GAP"),
        ({"seq": 0}, "SEQ_GAP"),
        ({"prev": samples.digest("another record")}, "CHAIN_BROKEN"),
        ({"prev": None}, "CHAIN_BROKEN"),
        ({"ledger": "example.com/other"}, "ORIGIN_FOREIGN"),
        ({"kind": "note.removed"}, "KIND_UNKNOWN"),
        ({"writer": "a stranger"}, "KEY_UNKNOWN"),
    ],
)
def test_record_elsewhere_is_refused(world, changes, code):
    """A well-signed record that belongs to another place, ledger or hand is refused."""
    assert code_of(world, replace(NOTE, **changes)) == code


def test_second_beginning_is_refused(world):
    """`ledger.created` stands at seq 0 only."""
    draft = world.draft("ledger.created")
    assert code_of(world, replace(draft, writer="writer")) == "GENESIS_MISPLACED"


def first(draft: Draft) -> str:
    """Why a draft cannot be record 0."""
    world = World()
    world.chain = Chain(State(), CompactRange(), None, lambda _: None)
    return code_of(world, replace(draft, prev=None, seq=0))


def test_ledger_begins_with_its_creation():
    """Anything but `ledger.created` at seq 0 is refused."""
    assert first(NOTE) == "GENESIS_MISPLACED"


def test_ledger_is_created_by_the_root_key_it_names():
    """Record 0 must be signed by the root key in its body, whose id must be the key's."""
    created = World().drafts[0]
    assert first(replace(created, writer="writer")) == "KEY_UNKNOWN"
    body = {**created.body, "root_public": key("else").public.hex()}
    assert first(replace(created, body=body)) == "KEY_UNKNOWN"
    weak = {**created.body, "root_public": "01" + "00" * 31}
    assert first(replace(created, body=weak)) == "WEAK_KEY"


def test_signature_by_another_key_is_refused(world):
    """The entry names the writer; a signature by any other key does not count."""
    entry, _ = world.sign_bytes(NOTE)
    forged = records.parse(entry, key("auditor").sign(b"anything"))
    with pytest.raises(EvidenceError) as caught:
        world.chain.admit(forged)
    assert caught.value.code == "SIGNATURE_INVALID"


def test_signature_of_the_entry_without_its_type_is_refused(world):
    """A signature over the bare entry is no signature of a record."""
    entry, _ = world.sign_bytes(NOTE)
    with pytest.raises(EvidenceError) as caught:
        world.chain.admit(records.parse(entry, key("writer").sign(entry)))
    assert caught.value.code == "SIGNATURE_INVALID"


def test_every_bit_of_a_record_counts(world):
    """Flipping any one bit of signature or entry refuses the record."""
    entry, signature = world.sign_bytes(NOTE)
    whole = signature + entry
    for position in range(0, len(whole) * 8, 7):
        data = bytearray(whole)
        data[position // 8] ^= 1 << position % 8
        with pytest.raises(EvidenceError):
            world.chain.admit(records.parse(bytes(data[64:]), bytes(data[:64])))
    assert world.chain.admit(records.parse(entry, signature)) == []


def test_key_before_its_window_is_refused(world):
    """A key enrolled from a later seq cannot sign before it, and can from it on."""
    start = world.chain.size + 3
    world.enroll("late", ["ingest"])
    world.add(
        "key.enrolled", key=key("later").id, public_key=key("later").public.hex(), from_seq=start
    )
    assert code_of(world, replace(NOTE, writer="later")) == "KEY_OUT_OF_WINDOW"
    while world.chain.size < start:
        world.admit(replace(NOTE, writer="late"))
    assert world.admit(replace(NOTE, writer="later")).seq == start


def test_revoked_key_is_refused_and_its_older_records_stand(world):
    """A revocation stops a key from the next record on; the chain before stays valid."""
    world.enroll("leaver", ["train"])
    world.admit(replace(NOTE, writer="leaver"))
    world.add("key.revoked", key=key("leaver").id, from_seq=world.chain.size - 1)
    assert code_of(world, replace(NOTE, writer="leaver")) == "KEY_OUT_OF_WINDOW"
    world.add("note.added")


def test_revoked_reviewer_states_nothing(world):
    """A statement by a revoked key is refused as the key is."""
    draft = world.draft("leakage.accepted")
    world.add("key.revoked", key=key("reviewer").id, from_seq=world.chain.size)
    assert code_of(world, draft) == "KEY_OUT_OF_WINDOW"


def test_rotation_moves_root_s_authority(world):
    """After a rotation the old root enrols nobody and the new one does."""
    world.add("root.rotated")
    draft = replace(world.draft("key.enrolled"), stater="root")
    assert code_of(world, draft) == "KEY_OUT_OF_WINDOW"
    world.add("key.enrolled")
    assert world.root == "root-after-rotation"


def test_statement_is_used_once(world):
    """The same statement, carried by a second record, is refused as replayed."""
    draft = world.draft("policy.declared")
    world.admit(draft)
    assert draft.statement is not None
    assert code_of(world, draft) == "STATEMENT_REPLAYED"


def test_nonce_of_another_statement_is_used_up(world):
    """A fresh statement with a nonce that was used is refused."""
    used = world.nonce()
    world.add("policy.declared")
    draft = world.draft("policy.declared")
    draft.statement = world.state_of(draft, nonce=used)
    assert code_of(world, draft) == "STATEMENT_REPLAYED"


def test_statement_over_a_sealed_head_is_good_later(world):
    """A signer who saw the newest seal may take their time: other records may come between."""
    world.seal()
    draft = world.draft("policy.declared")
    draft.statement = world.state_of(draft)
    for _ in range(3):
        world.add("note.added")
    assert world.admit(draft).kind == "policy.declared"


def test_statement_over_a_head_that_was_never_sealed_is_stale(world):
    """A head that is neither the last nor among the seals cannot be checked, so it is refused."""
    draft = world.draft("policy.declared")
    draft.statement = world.state_of(draft)
    world.add("note.added")
    assert code_of(world, draft) == "STATEMENT_STALE"


def test_statement_over_a_head_ahead_is_stale(world):
    """A head beyond the ledger's end is no prefix of it."""
    draft = world.draft("policy.declared")
    seal = Seen(size=world.chain.size + 1, root=samples.ZERO)
    draft.statement = world.state_of(draft, seal=seal)
    assert code_of(world, draft) == "STATEMENT_STALE"


def test_statement_over_another_ledger_s_head_is_foreign(world):
    """The right size with another root shows a signer who was given another ledger."""
    draft = world.draft("policy.declared")
    draft.statement = world.state_of(draft, seal=Seen(size=world.chain.size, root=samples.ZERO))
    assert code_of(world, draft) == "STATEMENT_FOREIGN"


@pytest.mark.parametrize(
    "changes",
    [
        {"ledger": "example.com/other"},
        {"kind": "note.added"},
        {"refs": {"about": samples.digest("x")}},
        {"body": {}},
        {"nonce": "f" * 32},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_statement_binds_each_of_its_fields(world, changes):
    """A statement signed with another ledger, kind, refs, body or nonce does not cover the record."""
    draft = world.draft("policy.declared")
    other = world.state_of(draft, **changes)
    draft.statement = other.model_copy(update={"nonce": world.nonce()})
    assert code_of(world, draft) == "STATEMENT_INVALID"


def test_statement_cannot_be_moved_to_another_seal(world):
    """The head that the signer saw is under the signature too."""
    world.seal()
    draft = world.draft("policy.declared")
    made = world.state_of(draft)
    world.add("note.added")
    draft.statement = made.model_copy(update={"seal": world.seen()})
    assert code_of(world, draft) == "STATEMENT_INVALID"


def test_clock_that_goes_backwards_is_reported_and_recorded(world):
    """A time earlier than the record before is a warning, never a refusal."""
    early = world.sign(replace(NOTE, time=clock_at(0)))
    assert world.chain.admit(early) == ["CLOCK_BACKWARDS"]
    assert world.chain.last_id == early.id
    assert world.chain.admit(world.sign(replace(NOTE, time=clock_at(0)))) == []


def test_state_keeps_a_bounded_number_of_heads():
    """Only the newest 256 sealed heads are remembered, the oldest falls out first."""
    state = State()
    for size in range(1, HEADS_KEPT + 10):
        state.remember_head(size, samples.ZERO)
    assert len(state.heads) == HEADS_KEPT
    assert (min(map(int, state.heads)), max(map(int, state.heads))) == (10, HEADS_KEPT + 9)


def test_state_reads_back_from_its_bytes():
    """The bytes of a snapshot give the same state, whose bytes are the same."""
    state = grown().chain.state
    assert State.from_bytes(state.to_bytes()) == state
    assert State.from_bytes(state.to_bytes()).to_bytes() == state.to_bytes()


@pytest.mark.parametrize(
    "change",
    [
        {"keys": {"ed25519:0": {"public": "zz", "roles": [], "from_seq": 0}}},
        {"heads": {"one": samples.ZERO}},
        {"heads": {"1": "00"}},
        {"nonces": {"a": "1"}},
        {"policy": 1},
        {"runs": {"a": {}}},
        {"keys": []},
    ],
    ids=str,
)
def test_state_of_a_stranger_is_checked(change):
    """Bytes that are canonical but no state are refused by their own code."""
    plain = {**canonical.decode(State().to_bytes()), **change}
    with pytest.raises(EvidenceError) as caught:
        State.from_bytes(canonical.encode(plain))
    assert caught.value.code == "SNAPSHOT_WRONG"


def test_state_forgets_what_is_over():
    """Launched plans and completed runs leave the state, so it stays small however long the ledger is."""
    world = World()
    for _ in range(5):
        world.add("run.launched")
        for _ in range(2):
            world.add("update.acknowledged")
        world.add("run.ended", outcome="completed")
    assert (world.chain.state.plans, world.chain.state.runs) == ({}, {})


def test_grown_world_holds_every_kind():
    """The world that other tests stand on has at least one record of each kind."""
    assert {record.kind for record in grown().records} == set(RULES)
