"""Records: their form, their id, the models of their bodies."""

from __future__ import annotations

import hashlib
import random

import pytest
import samples
from world import Draft, World, grown, key

from ledger import canonical, record
from ledger.dsse import pae
from ledger.errors import EvidenceError
from ledger.record import check_body, parse
from ledger.records import KINDS
from ledger.records.base import MAX_RECORD_BYTES, is_record_id

WORLD = World(staffed=False)
LAST = WORLD.records[-1]


def respelt(**changes) -> tuple[bytes, bytes]:
    """The last record with fields of its entry changed, or taken away by Ellipsis."""
    fields = {**canonical.decode(LAST.entry), **changes}
    entry = canonical.encode({name: value for name, value in fields.items() if value is not ...})
    return entry, LAST.signature


def refusal(entry: bytes, signature: bytes = LAST.signature) -> EvidenceError:
    """Why the bytes are no record."""
    with pytest.raises(EvidenceError) as caught:
        parse(entry, signature)
    return caught.value


def test_id_is_the_leaf_hash_of_signature_and_entry():
    """The id can be derived from the bytes by hand, so it commits to the signature too."""
    leaf = hashlib.sha256(b"\x00" + LAST.signature + LAST.entry).hexdigest()
    assert LAST.id == f"sha256:{leaf}"


def test_signature_is_over_the_pre_authentication_encoding():
    """What is signed is DSSE's encoding of payload type and entry."""
    kind = b"application/vnd.evidence-ledger.record+json"
    message = b"DSSEv1 43 " + kind + b" " + str(len(LAST.entry)).encode() + b" " + LAST.entry
    assert pae(record.PAYLOAD_TYPE, LAST.entry) == message
    assert key("root").sign(message) == LAST.signature


def test_every_record_of_a_grown_world_reads_back():
    """Parsing the stored bytes gives the record that was admitted, for every kind."""
    for item in grown().records:
        assert parse(item.entry, item.signature) == item
        assert item.as_dict()["id"] == item.id
        assert canonical.decode(item.entry)["kind"] == item.kind


BAD_ENVELOPES = {
    "ledger missing": ({"ledger": ...}, "ledger"),
    "origin with a space": ({"ledger": "a b"}, "ledger"),
    "origin too long": ({"ledger": "a" * 129}, "ledger"),
    "seq below zero": ({"seq": -1}, "seq"),
    "seq a text": ({"seq": "1"}, "seq"),
    "seq a truth": ({"seq": True}, "seq"),
    "prev no id": ({"prev": "sha256:00"}, "prev"),
    "prev missing": ({"prev": ...}, "prev"),
    "kind without a dot": ({"kind": "note"}, "kind"),
    "schema below zero": ({"schema": -1}, "schema"),
    "schema under its inner name": ({"schema": ..., "schema_version": 1}, "schema"),
    "time without zone": ({"time": "2026-01-01T00:00:00.000"}, "time"),
    "time in another zone": ({"time": "2026-01-01T00:00:00.000+00:00"}, "time"),
    "time in microseconds": ({"time": "2026-01-01T00:00:00.000000Z"}, "time"),
    "time of the 30th of February": ({"time": "2026-02-30T00:00:00.000Z"}, "time"),
    "time of hour 24": ({"time": "2026-01-01T24:00:00.000Z"}, "time"),
    "time in other digits": ({"time": "٢٠٢٦-01-01T00:00:00.000Z"}, "time"),
    "actor no key": ({"actor": "me"}, "actor"),
    "refs a list": ({"refs": []}, "refs"),
    "ref no id": ({"refs": {"about": "x"}}, "refs.about"),
    "ref list empty": ({"refs": {"about": []}}, "refs.about"),
    "ref name of another script": ({"refs": {"About": samples.digest("x")}}, "refs.About"),
    "body a list": ({"body": []}, "body"),
    "statement empty": ({"statement": {}}, "statement"),
    "unknown field": ({"extra": 1}, "extra"),
}


@pytest.mark.parametrize(("changes", "field"), BAD_ENVELOPES.values(), ids=BAD_ENVELOPES.keys())
def test_envelope_refuses(changes, field):
    """A field that is missing, unknown or malformed is refused, and the refusal names it."""
    error = refusal(*respelt(**changes))
    assert error.code == "ENVELOPE_INVALID"
    assert str(error.field).startswith(field)


def test_257_refs_under_one_role_are_refused():
    """A longer list goes into a blob."""
    ids = [samples.digest(str(number)) for number in range(257)]
    assert parse(*respelt(refs={"about": ids[:256]})).ref_list("about") == ids[:256]
    assert refusal(*respelt(refs={"about": ids})).code == "ENVELOPE_INVALID"


@pytest.mark.parametrize("value", [b"[]", b"1", b'"x"', b"null"])
def test_entry_that_is_no_object_is_refused(value):
    """Canonical JSON of another type is no entry."""
    assert refusal(value).code == "ENVELOPE_INVALID"


@pytest.mark.parametrize("size", [0, 63, 65])
def test_signature_of_another_length_is_refused(size):
    """A signature has 64 bytes."""
    assert refusal(LAST.entry, b"\x00" * size).code == "SIGNATURE_INVALID"


def test_entry_of_70_kilobytes_is_refused_before_it_is_parsed():
    """Beyond 65,535 bytes of signature and entry the bytes are not looked at."""
    assert refusal(b" " * 70_000).code == "ENTRY_TOO_LARGE"
    record.check_size(MAX_RECORD_BYTES - 64)
    with pytest.raises(EvidenceError, match="65536 bytes"):
        record.check_size(MAX_RECORD_BYTES - 63)


def test_random_damage_never_raises_anything_else():
    """Two thousand damaged entries give a record or an EvidenceError, and never the same id."""
    rng = random.Random(4)
    for _ in range(2000):
        data = bytearray(LAST.entry)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if bytes(data) == LAST.entry:
            continue
        try:
            found = parse(bytes(data), LAST.signature)
            check_body(found.kind, found.schema, found.body)
        except EvidenceError:
            continue
        assert found.id != LAST.id


@pytest.mark.parametrize(
    "text", ["", "sha256:", samples.digest("x") + "\n", samples.digest("x")[:-1]]
)
def test_what_is_no_record_id(text):
    """Only a whole digest is a record id."""
    assert not is_record_id(text)
    assert is_record_id(samples.digest("x"))


def test_samples_cover_every_kind():
    """The table of minimal bodies has a row for each kind and no other."""
    assert set(samples.BODIES) == set(KINDS)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_minimal_body_is_valid_and_every_field_in_it_is_needed(kind):
    """The sample fits its model; without any one field that has no default it does not."""
    version = KINDS[kind].version
    check_body(kind, version, samples.body(kind))
    for field, spec in KINDS[kind].model_fields.items():
        if spec.is_required():
            body = samples.body(kind)
            del body[field]
            with pytest.raises(EvidenceError) as caught:
                check_body(kind, version, body)
            assert (caught.value.code, caught.value.field) == ("BODY_INVALID", field)


WRONG_TYPES = {
    "integer": 7,
    "negative": -1,
    "text": "\u202e",
    "float": 0.5,
    "truth": True,
    "list": [[]],
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_field_takes_every_type(kind):
    """Nothing is coerced: each field of each body refuses most of six values of different types."""
    for field in KINDS[kind].model_fields:
        refused = 0
        for value in WRONG_TYPES.values():
            try:
                check_body(kind, KINDS[kind].version, {**samples.body(kind), field: value})
            except EvidenceError as error:
                assert error.code == "BODY_INVALID"  # noqa: PT017 - most values raise, not all
                refused += 1
        assert refused >= 4, field


BAD_VALUES = [
    ("format written as true", "ledger.created", {"format": True}),
    ("real as a float", "policy.declared", {"alpha": 0.05}),
    ("real not in its shortest form", "policy.declared", {"alpha": "0.050"}),
    ("real that is not finite", "policy.declared", {"alpha": "inf"}),
    ("count as text", "policy.declared", {"cases": "32"}),
    ("count beyond 2^53-1", "policy.declared", {"cases": 2**53}),
    ("name that hides text", "source.ingested", {"name": "a\u202eb"}),
    ("empty why", "leakage.accepted", {"why": ""}),
    ("blob without its size", "source.ingested", {"content": {"digest": samples.digest("x")}}),
    ("path out of the folder", "model.registered", "../secret"),
    ("absolute path", "model.registered", "/etc/passwd"),
    ("path with a drive", "model.registered", "c:/x"),
    ("path with a backslash", "model.registered", "a\\b"),
    ("path with a dot", "model.registered", "a/./b"),
    ("path twice", "model.registered", ["a", "b", "a"]),
    ("file as another's folder", "model.registered", ["a", "a/b"]),
    ("file as a folder further up", "checkpoint.published", ["a/b/c/d", "x", "a/b"]),
    ("path of a checkpoint twice", "checkpoint.published", ["a", "a"]),
]


def files_at(*paths):
    """A body's files at these paths."""
    return {"files": [{"path": path, "size": 1, "digest": samples.digest("x")} for path in paths]}


@pytest.mark.parametrize("kind", ["model.registered", "checkpoint.published"])
def test_files_of_one_folder_may_begin_alike(kind):
    """Paths that only begin with another's name, and folders that hold several files, are one folder's."""
    body = samples.body(kind, **files_at("a", "ab/c", "ab/d", "a.b", "b/a"))
    assert check_body(kind, KINDS[kind].version, body).files[1].path == "ab/c"


@pytest.mark.parametrize(
    ("name", "kind", "change"), BAD_VALUES, ids=[item[0] for item in BAD_VALUES]
)
def test_body_refuses(name, kind, change):
    """A value outside its field's range is refused."""
    if not isinstance(change, dict):
        change = files_at(*([change] if isinstance(change, str) else change))
    with pytest.raises(EvidenceError) as caught:
        check_body(kind, KINDS[kind].version, samples.body(kind, **change))
    assert caught.value.code == "BODY_INVALID"


def test_unknown_kind_is_refused():
    """A kind that no model has is refused by its own code."""
    with pytest.raises(EvidenceError) as caught:
        check_body("note.removed", 1, {})
    assert caught.value.code == "KIND_UNKNOWN"


def test_body_refuses_floats_before_they_are_written():
    """A float in a body is refused when the entry is built, with the path to it."""
    with pytest.raises(EvidenceError, match=r"float at \$\.body\.text") as caught:
        WORLD.sign(Draft("note.added", {"text": 0.5}))
    assert caught.value.code == "NOT_CANONICAL"
