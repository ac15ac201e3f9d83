"""`evidence log`, `show`, `note`, `seal`, `prove` and `schema`."""

from __future__ import annotations

import base64
from collections import Counter

import jsonschema
import pytest

from ledger import canonical, seals
from ledger.book import Draft, Ledger
from ledger.dsse import pae
from ledger.ed25519 import PrivateKey, verify
from ledger.records import KINDS
from runners.cli.summary import FIELDS


def test_log_is_newest_first_and_reverse_is_not(made):
    """The default order is from the end, --reverse from record 0, --limit cuts either."""
    assert [item["seq"] for item in made.json("log").result["records"]] == [2, 1, 0]
    assert [item["seq"] for item in made.json("log", "--reverse").result["records"]] == [0, 1, 2]
    assert [item["seq"] for item in made.json("log", "--limit", 1).result["records"]] == [2]
    first = made.json("log", "--reverse", "--limit", 1).result["records"]
    assert [item["kind"] for item in first] == ["ledger.created"]


def test_log_without_limit_lists_everything(full, full_world):
    """--limit 0 lists every record of the ledger."""
    result = full.json("log", "--limit", 0).result
    assert result["size"] == len(result["records"]) == len(full_world.records)


def test_log_of_a_kind(full, full_world):
    """--kind lists that kind alone, also with a limit."""
    mine = [record.seq for record in full_world.records if record.kind == "key.enrolled"]
    found = full.json("log", "--kind", "key.enrolled", "--limit", 0).result["records"]
    assert [item["seq"] for item in found] == mine[::-1]
    assert len(full.json("log", "--kind", "key.enrolled", "--limit", 2).result["records"]) == 2


def test_log_of_an_unknown_kind_names_the_nearest(made):
    """A typing error in a kind is answered with the kind that was meant."""
    called = made.json("log", "--kind", "leakage.audit")
    assert called.error["code"] == "KIND_UNKNOWN"
    assert "leakage.audited" in called.error["message"]


def test_every_kind_has_a_summary(full, full_world):
    """The table of telling fields names every kind, and only fields that its model has."""
    assert FIELDS.keys() | {"snapshot.recorded"} == KINDS.keys()
    for kind, fields in FIELDS.items():
        assert set(fields) <= KINDS[kind].model_fields.keys(), kind
    listed = full.json("log", "--limit", 0).result["records"]
    empty = {item["kind"] for item in listed if not item["summary"]}
    assert empty <= {"snapshot.recorded"}


def test_show_by_every_way_of_naming(made):
    """A whole id, its hex, six digits and @seq name the same record; the text has it in full."""
    record = made.json("show", "@1").result
    digits = record["id"].removeprefix("sha256:")
    for name in (record["id"], digits, digits[:6], digits[:6].upper()):
        assert made.json("show", name).result == record
    text = made("show", "@1").out
    assert record["id"] in text
    assert record["body"]["public_key"] in text


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ffffffff", "REF_NOT_FOUND"),
        ("@99", "REF_NOT_FOUND"),
        ("abc", "REF_MALFORMED"),
        ("nothex!", "REF_MALFORMED"),
        ("@-1", "REF_MALFORMED"),
        ("", "REF_MALFORMED"),
    ],
)
def test_show_of_no_record(made, name, code):
    """A name that is malformed or fits nothing is told apart."""
    called = made.json("show", name)
    assert called.error["code"] == code


def test_ambiguous_prefix_is_refused(cli, ledger, folder):
    """Two records under one prefix of six digits are never chosen between."""
    drafts = [Draft("note.added", {"text": str(number), "tags": []}) for number in range(12_000)]
    ids = [record.id[7:13] for record in ledger.append_many(drafts)]
    prefix, times = Counter(ids).most_common(1)[0]
    assert times > 1  # keys and times are fixed, so this pair is always there
    cli.ledger = folder
    called = cli.json("show", prefix)
    assert (called.code, called.error["code"]) == (2, "REF_AMBIGUOUS")


def test_show_dsse_is_an_envelope_of_the_signed_bytes(made):
    """The envelope's payload is the entry and its signature is the writer's over the DSSE encoding."""
    record = made.json("show", "@2").result
    envelope = made.json("show", "@2", "--dsse").result
    payload = base64.b64decode(envelope["payload"])
    assert canonical.decode(payload)["seq"] == 2
    public = bytes.fromhex(made.json("key", "list").result["keys"][1]["public_key"])
    signature = base64.b64decode(envelope["signatures"][0]["sig"])
    assert envelope["signatures"][0]["keyid"] == record["actor"]
    assert verify(public, pae(envelope["payloadType"], payload), signature)


def test_note_is_about_its_record(made):
    """A note names the record and keeps text and tags as given."""
    result = made.json("note", "@0", "two\nlines", "--tag", "a", "--tag", "b").result
    shown = made.json("show", result["note"]).result
    assert shown["body"] == {"text": "two\nlines", "tags": ["a", "b"]}
    assert shown["refs"] == {"about": [result["about"]]}


def test_seal_covers_everything_so_far(made, tmp_path):
    """The seal's root is the head's after its snapshot, signed by the writer, also in the file."""
    made("note", "@0", "x")
    result = made.json("seal", "--out", tmp_path / "s").result
    with Ledger.read(made.ledger) as ledger:
        size, root, _ = ledger.head()
        keys = [bytes.fromhex(key.public) for key in ledger.state().keys.values()]
    assert (result["size"], result["root"]) == (size, root.hex()) == (5, root.hex())
    note = (tmp_path / "s").read_bytes()
    assert note.decode() == result["seal"]
    assert seals.open_seal(note, result["origin"], keys).root == root


def test_proof_is_checked_without_the_ledger(made, tmp_path):
    """A proof file and the seal key alone prove a record; the answer names what it is."""
    made("note", "@0", "x")
    made("seal")
    proof = made.json("prove", "@3", "--out", tmp_path / "p").result
    made.ledger = tmp_path / "nowhere"
    checked = made.json("prove", "--check", tmp_path / "p", "--vkey", proof["vkeys"][0]).result
    assert checked["trust"] == "pinned"
    assert (checked["record"], checked["kind"]) == (proof["record"], "note.added")
    public = base64.b64decode(proof["vkeys"][0].split("+", 2)[2])[1:].hex()
    words = ("prove", "--check", tmp_path / "p", "--public", public, "--origin")
    assert made.json(*words, proof["seal"]["origin"]).result["seq"] == 3
    assert made.json(*words, "example.com/other").error["code"] == "SEAL_INVALID"


def test_proof_by_the_ledgers_own_keys_is_on_faith(made, tmp_path):
    """Without a key given, the answer says that nothing was pinned."""
    made("prove", "@0", "--out", tmp_path / "p")
    assert made.json("prove", "--check", tmp_path / "p").result["trust"] == "on_faith"
    assert made.json("prove", "@0", "--check", tmp_path / "p").result["seq"] == 0


@pytest.mark.parametrize("position", [0, 40, 120, 400, -60, -5])
def test_a_changed_proof_is_refused(made, tmp_path, position):
    """Flipping one bit of a proof file anywhere makes it invalid."""
    proof = made.json("prove", "@1", "--out", tmp_path / "p").result
    data = bytearray((tmp_path / "p").read_bytes())
    data[position] ^= 1
    (tmp_path / "p").write_bytes(data)
    called = made.json("prove", "--check", tmp_path / "p", "--vkey", proof["vkeys"][0])
    assert called.code == 1
    assert called.error["code"] in {"PROOF_INVALID", "SEAL_INVALID", "NOTE_INVALID"}


def test_proof_of_one_record_does_not_prove_another(made, tmp_path):
    """Naming another record than the proof's is refused."""
    made("prove", "@1", "--out", tmp_path / "p")
    assert made.json("prove", "@2", "--check", tmp_path / "p").error["code"] == "PROOF_INVALID"


def test_proof_under_a_strangers_key_is_refused(made, tmp_path):
    """A key that never sealed this ledger proves nothing."""
    made("prove", "@1", "--out", tmp_path / "p")
    stranger = PrivateKey.from_seed(b"s" * 32).public.hex()
    called = made.json(
        "prove", "--check", tmp_path / "p", "--origin", "example.com/tests", "--public", stranger
    )
    assert (called.code, called.error["code"]) == (1, "SEAL_INVALID")


def test_unsealed_record_is_not_proven(made):
    """A record after the newest seal has no proof yet, and the hint says to seal."""
    made("note", "@0", "x")
    called = made.json("prove", "@3")
    assert (called.code, called.error["code"]) == (2, "NOT_SEALED")
    assert called.error["hint"] == "seal the ledger: evidence seal"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--check", "p", "--vkey", "v", "--origin", "o"),
        ("--check", "p", "--origin", "o"),
        ("--check", "p", "--public", "00"),
    ],
)
def test_prove_needs_one_clear_question(made, words):
    """Options that do not go together are a usage error before any file is read."""
    called = made.json("prove", *words)
    assert (called.code, called.error["code"]) == (2, "USAGE")


def test_schema_lists_every_kind(cli):
    """Without a kind, all are listed; no ledger is needed."""
    kinds = [row["kind"] for row in cli.json("schema").result["kinds"]]
    assert kinds == list(KINDS)


def test_schema_accepts_every_record_of_its_kind(cli, full_world):
    """The JSON Schema of each kind accepts that kind's entries and refuses a further field."""
    for record in full_world.records:
        schema = cli.json("schema", record.kind).result
        validator = jsonschema.Draft202012Validator(schema)
        entry = canonical.decode(record.entry)
        validator.validate(entry)
        assert not validator.is_valid({**entry, "body": {**entry["body"], "further": 1}})
        assert not validator.is_valid({**entry, "refs": {**entry["refs"], "further": record.id}})


def test_schema_for_a_person_names_refs_and_commands(cli):
    """The text says who signs, what is needed and which command makes it."""
    text = cli("schema", "plan.prepared").out
    assert "a key with role train" in text
    assert "evidence data audit SPLIT" in text
