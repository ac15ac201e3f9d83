"""What a closure's bundle shows, and that everything which makes it show something else is refused."""

from __future__ import annotations

from dataclasses import replace

import bundle_world
import pytest
from bundle_world import members, replaced
from world import ORIGIN, grown, key, sign_entry

from ledger import highwater, seals
from ledger import record as records
from ledger.book import Ledger
from ledger.bundles import choice, layout
from ledger.highwater import HighWater
from verifiers import closure as closures
from verifiers.bundles import verify_bundle
from verifiers.verify import Options


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    """A sealed ledger of every kind."""
    return bundle_world.sealed(tmp_path_factory.mktemp("closures") / "ledger")


@pytest.fixture(scope="module")
def data(ledger):
    """The bundle of a refusal's closure."""
    return bundle_world.closure(ledger)


def verified(data, folder, **options):
    """The report on a bundle's bytes."""
    file = folder / "x.tar"
    file.write_bytes(data)
    place = folder / "place"
    place.mkdir()
    return verify_bundle(file, place, Options(workers=1, **options))


def wrong(data, folder, **options) -> list[str]:
    """Codes of what is wrong with a bundle."""
    report = verified(data, folder, **options)
    assert report.verdict == "wrong"
    return [item.code for item in report.wrong]


def test_every_kind_of_record_has_a_closure_that_verifies(ledger, tmp_path):
    """Of each record under the seal a bundle is made, and it verifies under the root key."""
    with Ledger.read(ledger) as book:
        root, kinds = book.at(0).actor, {record.kind for record in book.records()}
    for kind in sorted(kinds):
        (tmp_path / kind).mkdir()
        data = bundle_world.closure(ledger, kind)
        report = verified(data, tmp_path / kind, pinned_roots=frozenset({root}))
        assert (report.verdict, report.trust) == ("verified", "pinned"), (kind, report.wrong)
        assert closures.FAITH_HISTORY in report.on_faith


def test_a_closure_says_whose_it_is_and_under_which_root(ledger, data, tmp_path):
    """Scope, root and origin of the report are the record's and the seal's."""
    with Ledger.read(ledger) as book:
        target, head = (
            book.of_kind("promotion.refused")[-1],
            seals.read_unverified(book.seals()[-1][1]),
        )
    report = verified(data, tmp_path)
    assert (report.scope, report.root, report.origin) == (target.id, head.root.hex(), ORIGIN)


def test_the_seal_and_root_that_the_caller_trusts_are_compared(ledger, data, tmp_path):
    """A kept seal is found or missed, and a root key that is not this ledger's is not trusted."""
    with Ledger.read(ledger) as book:
        note = book.seals()[-1][1]
    (tmp_path / "a").mkdir()
    assert verified(data, tmp_path / "a", expect_seal=note).rollback == "expected seal found"
    other = seals.sign_seal(seals.Seal(ORIGIN, 3, bytes(32)), key("writer"))
    (tmp_path / "b").mkdir()
    assert wrong(data, tmp_path / "b", expect_seal=other) == ["EXPECTED_SEAL"]
    (tmp_path / "c").mkdir()
    pins = frozenset({key("writer").id})
    assert wrong(data, tmp_path / "c", pinned_roots=pins) == ["ROOT_UNTRUSTED"]


@pytest.mark.parametrize("same", [True, False])
def test_a_high_water_of_the_same_size_is_compared(same, data, tmp_path):
    """Where this user's own mark is at the seal's size, another root there is a fork."""
    told = layout.read_manifest(dict(members(data))["bundle.json"])
    root = bytes.fromhex(told.root) if same else bytes(32)
    highwater.write(tmp_path, HighWater(told.ledger_id, told.size, root, told.ledger_id))
    report = verified(data, tmp_path, state_dir=tmp_path)
    assert [item.code for item in report.wrong] == ([] if same else ["LEDGER_FORKED"])
    assert report.rollback == ("high water reached" if same else "unchecked")


def lines_of(data):
    """The lines of the records, parsed beside them."""
    lines = dict(members(data))["records"].splitlines(keepends=True)
    pairs = [layout.read_record_line(line[:-1]) for line in lines]
    return lines, [records.parse(entry, signature) for signature, entry in pairs]


def without(data, kind):
    """The bundle without the last record of a kind, its own counts put right."""
    lines, found = lines_of(data)
    place = max(at for at, record in enumerate(found) if record.kind == kind)
    told = layout.read_manifest(dict(members(data))["bundle.json"])
    told = told.model_copy(update={"records": told.records - 1})
    data = replaced(data, "records", b"".join(lines[:place] + lines[place + 1 :]))
    return replaced(data, "bundle.json", told.encode())


@pytest.mark.parametrize("kind", ["key.revoked", "key.enrolled", "root.rotated", "run.launched"])
def test_a_record_that_is_left_out_breaks_the_proof(kind, data, tmp_path):
    """No record can be taken out of a bundle under its old proof."""
    assert wrong(without(data, kind), tmp_path) == ["PROOF_INVALID"]


def forged(folder, monkeypatch, change):
    """A bundle whose maker chose other records than the rule says, with a good proof over them."""
    real = choice.choose

    def choose(ledger, target):
        chosen = real(ledger, target)
        found = {seq: ledger.at(seq) for seq in chosen.seqs}
        return replace(chosen, seqs=sorted(change(found, ledger)))

    monkeypatch.setattr("ledger.bundles.export.choose", choose)
    return bundle_world.closure(folder)


def drop(kind):
    """Leave a kind out."""
    return lambda found, _: [seq for seq, record in found.items() if record.kind != kind]


CHOICES = {
    "a revocation is left out": (drop("key.revoked"), "BUNDLE_WRONG"),
    "the rotation is left out": (drop("root.rotated"), "BUNDLE_WRONG"),
    "the enrolments are left out": (drop("key.enrolled"), "KEY_UNKNOWN"),
    "record 0 is left out": (lambda found, _: list(found)[1:], "BUNDLE_WRONG"),
    "what it rests on is left out": (drop("run.launched"), "REF_NOT_FOUND"),
    "more than it rests on": (lambda found, _: [*found, 11], "BUNDLE_WRONG"),
    "the snapshot is another": (
        lambda found, _: [*list(found)[:-1], 10],
        "BUNDLE_WRONG",
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_bundle_of_other_records_is_refused(name, ledger, tmp_path, monkeypatch):
    """A maker who chooses other records proves them well and is refused all the same."""
    change, code = CHOICES[name]
    assert code in wrong(forged(ledger, monkeypatch, change), tmp_path)


def test_another_target_in_the_manifest_is_refused(data, tmp_path):
    """A bundle that names a record which rests on less carries too much."""
    told = layout.read_manifest(dict(members(data))["bundle.json"])
    _, found = lines_of(data)
    other = next(record for record in found if record.kind == "run.launched")
    spoilt = replaced(data, "bundle.json", told.model_copy(update={"record": other.id}).encode())
    assert wrong(spoilt, tmp_path) == ["BUNDLE_WRONG"]


def test_a_seal_by_another_key_is_refused(ledger, data, tmp_path):
    """The same head signed by a key without the seal role is no seal."""
    name, note = next(item for item in members(data) if item[0].startswith("seals/"))
    other = seals.sign_seal(seals.read_unverified(note), key("promoter"))
    assert wrong(replaced(data, name, other), tmp_path) == ["SEAL_INVALID"]


def test_a_forged_signature_under_a_good_proof_is_refused(tmp_path):
    """A record that another key signed, taken in and sealed all the same, is refused in its closure."""
    world = grown()
    draft = world.draft("note.added")
    entry, _ = world.sign_bytes(draft)
    record = records.parse(entry, sign_entry(entry, "promoter"))
    world.chain.admit(record, signature_known_good=True)
    world._keep(record, draft)
    data = bundle_world.closure(bundle_world.written(tmp_path / "ledger", world), "note.added")
    assert wrong(data, tmp_path) == ["SIGNATURE_INVALID"]


def test_suspect_evidence_is_told_to_whoever_has_only_the_bundle(tmp_path):
    """Where root took a key back from an earlier seq, the closure of what it signed is wrong."""
    world = grown()
    body = {"key": key("writer").id, "from_seq": 12, "reason": "the key was stolen"}
    world.enroll("sealer", ["seal"])
    draft = world.draft("key.revoked")
    world.admit(replace(draft, body={**draft.body, **body}, writer="auditor", statement=None))
    folder = tmp_path / "ledger"
    with world.replay(folder) as ledger:
        ledger._key = key("sealer")
        ledger.seal()
    data = bundle_world.closure(folder)
    assert wrong(data, tmp_path) == ["EVIDENCE_SUSPECT"]


def test_what_a_replay_needs_beyond_the_bundle_makes_it_incomplete(tmp_path):
    """A record that does not travel is missing, not wrong."""
    from verifiers.bundles import _Partial  # noqa: PLC0415 - the fact is about this piece alone

    folder = bundle_world.sealed(tmp_path / "ledger")
    data = bundle_world.closure(folder, "run.launched")
    report = verified(data, tmp_path)
    assert report.verdict == "verified"
    store = closures.CarriedStore.open(tmp_path / "place/ledger.sqlite")
    with store, pytest.raises(Exception, match="is not in the bundle") as needed:
        _Partial(store).find("sha256:" + "0" * 64)
    assert needed.value.code == "BUNDLE_PARTIAL"
