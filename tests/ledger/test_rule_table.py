"""What the rules table demands of each kind, tried kind by kind; the cases come from the table."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
from world import Draft, World, key

from ledger.errors import EvidenceError
from ledger.records import KINDS
from ledger.rules import ANY, RULES

ABSENT = "sha256:" + "e" * 64
KINDS_AFTER_FIRST = sorted(set(RULES) - {"ledger.created"})
REFS = [(kind, role) for kind in KINDS_AFTER_FIRST for role in RULES[kind].refs]
REQUIRED = [(kind, role) for kind, role in REFS if RULES[kind].refs[role].required]
TYPED = [(kind, role) for kind, role in REFS if RULES[kind].refs[role].kinds != ANY]
CHOICES = [(kind, choice) for kind in KINDS_AFTER_FIRST for choice in RULES[kind].one_of]
STATED = [kind for kind in KINDS_AFTER_FIRST if RULES[kind].statement]
UNSTATED = [kind for kind in KINDS_AFTER_FIRST if not RULES[kind].statement]
OFFICES = {
    "writer": {"ingest", "train", "judge", "seal"},
    "auditor": {"audit"},
    "promoter": {"promote"},
}


@functools.cache
def at_the_door(kind: str) -> tuple[World, Draft]:
    """A world where a draft of the kind would be admitted; refusals leave it as it is."""
    world = World()
    world.need("note.added")
    return world, world.draft(kind)


def refused(kind: str, **changes) -> EvidenceError:
    """The refusal of a kind's draft with changes, once it is shown that nothing moved."""
    world, draft = at_the_door(kind)
    spoiled = replace(draft, statement=None, **changes)
    before = world.chain.state.to_bytes(), world.chain.tree.root(), world.chain.last_id
    record = world.sign(spoiled)
    with pytest.raises(EvidenceError) as caught:
        world.chain.admit(record)
    assert (world.chain.state.to_bytes(), world.chain.tree.root(), world.chain.last_id) == before
    assert (caught.value.seq, caught.value.record) == (record.seq, record.id)
    return caught.value


def with_ref(kind: str, role: str, value):
    """The draft's refs with another value under a role; None takes the role away."""
    refs = {**at_the_door(kind)[1].refs, role: value}
    return {name: ref for name, ref in refs.items() if ref is not None}


def example(kind: str, role: str):
    """A value of the right shape and kind for a role."""
    world, draft = at_the_door(kind)
    spec = RULES[kind].refs[role]
    found = draft.refs.get(role)
    if found is None:
        kinds = spec.kinds
        record = next((item for item in world.records if kinds == ANY or item.kind in kinds), None)
        found = ABSENT if record is None else record.id
        found = [found] if spec.many else found
    return found


def test_table_and_models_name_the_same_kinds():
    """Every kind with a model has a row in the table, and the other way round."""
    assert set(RULES) == set(KINDS)


def test_table_is_closed():
    """Every kind that a ref may name exists, and no kind can be named before it can exist."""
    for rule in RULES.values():
        for spec in rule.refs.values():
            assert spec.kinds == ANY or set(spec.kinds) <= set(RULES)
        assert {role for choice in rule.one_of for role in choice} <= set(rule.refs)


@pytest.mark.parametrize("kind", KINDS_AFTER_FIRST)
def test_kind_with_everything_it_needs_is_admitted(kind):
    """A record with the role, statement and refs of its row becomes the last of the chain."""
    world = World()
    draft = world.draft(kind)
    assert draft.refs.keys() >= {role for role, spec in RULES[kind].refs.items() if spec.required}
    size = world.chain.size
    record = world.admit(draft)
    assert (record.kind, record.seq) == (kind, size)
    assert (world.chain.size, world.chain.last_id) == (size + 1, record.id)


@pytest.mark.parametrize(("kind", "role"), REQUIRED)
def test_missing_ref_is_refused_and_the_hint_names_the_command_that_makes_it(kind, role):
    """Without a required ref the record is refused, and the reader learns what to run first."""
    error = refused(kind, refs=with_ref(kind, role, None))
    assert (error.code, error.field) == ("REF_MISSING", f"refs.{role}")
    assert RULES[kind].refs[role].made_by in str(error.hint)


@pytest.mark.parametrize(("kind", "choice"), CHOICES)
def test_one_of_several_refs_must_stand_there(kind, choice):
    """Where one of several refs is due, none of them is refused as missing."""
    _, draft = at_the_door(kind)
    refs = {role: ref for role, ref in draft.refs.items() if role not in choice}
    assert refused(kind, refs=refs).code == "REF_MISSING"


@pytest.mark.parametrize(("kind", "choice"), CHOICES)
def test_two_of_several_refs_are_one_too_many(kind, choice):
    """Where one of several refs is due, two that are each good are refused together."""
    world, _ = at_the_door(kind)
    for role in choice:
        if not any(item.kind in RULES[kind].refs[role].kinds for item in world.records):
            world.need(RULES[kind].refs[role].kinds[0])
    refs = at_the_door(kind)[1].refs | {role: example(kind, role) for role in choice}
    assert refused(kind, refs=refs).code == "REF_SHAPE"
    at_the_door.cache_clear()


@pytest.mark.parametrize(("kind", "role"), TYPED)
def test_ref_to_another_kind_is_refused(kind, role):
    """A ref that names a record of a kind not in the row is refused, and both kinds are named."""
    world, _ = at_the_door(kind)
    note = next(item for item in world.records if item.kind == "note.added")
    value = [note.id] if RULES[kind].refs[role].many else note.id
    error = refused(kind, refs=with_ref(kind, role, value))
    assert (error.code, error.actual) == ("REF_KIND", "note.added")
    assert str(error.expected).split(" or ") == list(RULES[kind].refs[role].kinds)


@pytest.mark.parametrize(("kind", "role"), REFS)
def test_ref_to_nothing_is_refused(kind, role):
    """A ref to an id that no earlier record has is refused."""
    value = [ABSENT] if RULES[kind].refs[role].many else ABSENT
    error = refused(kind, refs=with_ref(kind, role, value))
    assert (error.code, error.actual) == ("REF_NOT_FOUND", ABSENT)


@pytest.mark.parametrize(("kind", "role"), REFS)
def test_ref_of_the_other_shape_is_refused(kind, role):
    """One id where a list is due, or a list where one id is due, is refused."""
    value = example(kind, role)
    turned = value[0] if isinstance(value, list) else [value]
    assert refused(kind, refs=with_ref(kind, role, turned)).code == "REF_SHAPE"


@pytest.mark.parametrize(
    ("kind", "role"), [item for item in REFS if RULES[item[0]].refs[item[1]].many]
)
def test_ref_list_that_names_a_record_twice_is_refused(kind, role):
    """A record counts once in a list of refs."""
    value = example(kind, role)[0]
    assert refused(kind, refs=with_ref(kind, role, [value, value])).code == "REF_SHAPE"


@pytest.mark.parametrize("kind", KINDS_AFTER_FIRST)
def test_ref_that_the_row_does_not_have_is_refused(kind):
    """A ref under a name that the kind's row lacks is refused, even if it names a record."""
    first = at_the_door(kind)[0].records[0].id
    error = refused(kind, refs=with_ref(kind, "elsewhere", first))
    assert (error.code, error.field) == ("REF_UNEXPECTED", "refs.elsewhere")


@pytest.mark.parametrize("kind", [item for item in KINDS_AFTER_FIRST if RULES[item].roles != ANY])
def test_writer_without_the_role_is_refused(kind):
    """A key that holds none of the row's roles cannot write the kind, whatever else it may do."""
    allowed = set(RULES[kind].roles)
    writer = next(name for name, roles in OFFICES.items() if not roles & allowed)
    error = refused(kind, writer=writer)
    assert (error.code, error.expected) == ("ROLE_MISSING", " or ".join(RULES[kind].roles))


@pytest.mark.parametrize("kind", KINDS_AFTER_FIRST)
def test_key_that_is_not_enrolled_writes_nothing(kind):
    """A well-signed record of a key that the ledger does not know is refused."""
    assert refused(kind, writer="a stranger").code == "KEY_UNKNOWN"


@pytest.mark.parametrize("kind", STATED)
def test_missing_statement_is_refused(kind):
    """A kind that carries somebody's authority is refused without their statement."""
    error = refused(kind, stater=None)
    assert error.code == "STATEMENT_MISSING"
    assert str(RULES[kind].statement) in error.message


@pytest.mark.parametrize("kind", STATED)
def test_statement_by_another_office_is_refused(kind):
    """The writer's own key cannot stand in for root, reviewer or promoter."""
    error = refused(kind, stater="writer")
    assert (error.code, error.expected) == ("STATEMENT_ROLE", RULES[kind].statement)


@pytest.mark.parametrize("kind", STATED)
def test_statement_over_another_body_is_refused(kind):
    """A statement made over one body does not cover another body."""
    world, draft = at_the_door(kind)
    statement = world.state_of(draft, body={**draft.body, "more": "words"})
    record = world.sign(replace(draft, statement=statement))
    with pytest.raises(EvidenceError) as caught:
        world.chain.admit(record)
    assert caught.value.code == "STATEMENT_INVALID"


@pytest.mark.parametrize("kind", UNSTATED)
def test_statement_where_none_is_due_is_refused(kind):
    """A statement on a kind that carries nobody's authority is refused, not ignored."""
    assert refused(kind, stater="root").code == "STATEMENT_UNEXPECTED"


@pytest.mark.parametrize("kind", KINDS_AFTER_FIRST)
def test_unknown_field_of_the_body_is_refused(kind):
    """A body with a field that the model lacks is refused and the field is named."""
    _, draft = at_the_door(kind)
    error = refused(kind, body={**draft.body, "extra_field": 1})
    assert (error.code, error.field) == ("BODY_INVALID", "extra_field")


@pytest.mark.parametrize("kind", KINDS_AFTER_FIRST)
def test_schema_version_of_the_future_is_refused(kind):
    """A version that this program does not know is refused by its own code."""
    assert refused(kind, schema=KINDS[kind].version + 1).code == "SCHEMA_FUTURE"


@pytest.mark.parametrize("kind", [item for item in KINDS_AFTER_FIRST if KINDS[item].version])
def test_schema_version_that_was_never_released_is_refused(kind):
    """Version 0 of a kind whose first released version is 1 does not exist."""
    assert refused(kind, schema=0).code == "SCHEMA_UNKNOWN"


def test_refusals_name_a_key_by_its_id():
    """The unknown key's refusal says which key it was."""
    assert refused("note.added", writer="a stranger").actual == key("a stranger").id
