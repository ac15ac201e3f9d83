"""A reviewer with a key, a request and a bundle: shown what they state, and sure of where it comes from."""

from __future__ import annotations

import json
import shutil

import bundle_world
import pytest
from world import grown, key

from ledger.book import Ledger


@pytest.fixture
def asked(cli, tmp_path):
    """A sealed ledger, a writer's key in it, a request about its newest audit, and the bundle of that audit."""
    cli.ledger = bundle_world.sealed(tmp_path / "ledger", grown())
    for name in ("writer", "reviewer", "promoter"):
        key(name).save(tmp_path / f"{name}.pem", None)
    assert cli.json(
        "statement", "request", "leakage.accepted", "--ref", f"audit={audit(cli)[7:19]}",
        "--set", "why=two greetings, seen and harmless", "--out", tmp_path / "ask.json",
    ).code == 0  # fmt: skip
    assert cli("export", "bundle", tmp_path / "audit.tar", "--of", audit(cli)).code == 0
    return cli


def audit(cli) -> str:
    """The id of the newest audit."""
    with Ledger.read(cli.ledger) as ledger:
        return ledger.of_kind("leakage.audited")[-1].id


def test_a_reviewer_signs_without_the_ledger(asked, tmp_path):
    """With only a key, a request and a bundle: the audit is verified and shown, and the answer becomes a record."""
    away = tmp_path / "away"
    shutil.move(asked.ledger, away)
    with Ledger.read(away) as ledger:
        root, wanted = ledger.at(0).actor, ledger.of_kind("leakage.audited")[-1]
    words = ("statement", "sign", tmp_path / "ask.json", "--key", tmp_path / "reviewer.pem")
    bundle = ("--bundle", tmp_path / "audit.tar", "--root", root)
    said = asked(*words, *bundle).out
    assert f"about leakage.audited at seq {wanted.seq}" in said
    assert "two greetings" in said
    assert "under a root key that you named" in said
    (tmp_path / "ask.json.signed").unlink(missing_ok=True)  # an answer is never written over
    told = asked.json(*words, *bundle).result
    assert (told["trust"], [item["id"] for item in told["about"]]) == ("pinned", [wanted.id])
    shutil.move(away, asked.ledger)
    answer = tmp_path / "ask.json.signed"
    done = asked.json("statement", "record", answer, "--key", tmp_path / "writer.pem").result
    assert (done["kind"], done["key"]) == ("leakage.accepted", key("reviewer").id)
    again = asked.json("statement", "record", answer, "--key", tmp_path / "writer.pem")
    assert again.error["code"] == "STATEMENT_REPLAYED"


def sign(cli, folder, *words):
    """Sign the request with the reviewer's key."""
    return cli.json(
        "statement", "sign", folder / "ask.json", "--key", folder / "reviewer.pem", *words
    )


def test_nothing_is_signed_over_a_bundle_that_is_wrong(asked, tmp_path):
    """A bundle with a byte changed, of another record or under another root key is refused, and there is no answer."""
    good = tmp_path / "audit.tar"
    pin = ("--root", key("promoter").id)
    assert sign(asked, tmp_path, "--bundle", good, *pin).error["code"] == "ROOT_UNTRUSTED"
    spoilt = bytearray(good.read_bytes())
    spoilt[2000] ^= 1
    (tmp_path / "spoilt.tar").write_bytes(spoilt)
    assert sign(asked, tmp_path, "--bundle", tmp_path / "spoilt.tar").code != 0
    other = tmp_path / "other.tar"
    with Ledger.read(asked.ledger) as ledger:
        dataset = ledger.of_kind("dataset.parsed")[-1].id
    assert asked("export", "bundle", other, "--of", dataset).code == 0
    assert sign(asked, tmp_path, "--bundle", other).error["code"] == "REF_NOT_FOUND"
    assert sign(asked, tmp_path, *pin).error["code"] == "USAGE"
    assert not (tmp_path / "ask.json.signed").exists()


def test_a_head_that_the_bundle_does_not_show_is_refused(asked, tmp_path):
    """A request over another head than the bundle's is not signed; a whole bundle shows every earlier head."""
    with Ledger.open(asked.ledger, key=key("writer")) as ledger:
        ledger.seal()
    later = tmp_path / "later.tar"
    assert asked("export", "bundle", later, "--of", audit(asked)).code == 0
    assert sign(asked, tmp_path, "--bundle", later).error["code"] == "STATEMENT_FOREIGN"
    whole = tmp_path / "whole.tar"
    assert asked("export", "bundle", whole).code == 0
    assert sign(asked, tmp_path, "--bundle", whole).code == 0
    request = json.loads((tmp_path / "ask.json").read_bytes())
    request["seal"]["root"] = "0" * 64
    data = json.dumps(request, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    (tmp_path / "ask.json").write_bytes(data)
    assert sign(asked, tmp_path, "--bundle", whole).error["code"] == "STATEMENT_FOREIGN"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("note.added",), "STATEMENT_UNEXPECTED"),
        (("no.kind",), "KIND_UNKNOWN"),
        (("leakage.accepted", "--ref", "split=@0"), "REF_UNEXPECTED"),
        (("leakage.accepted", "--ref", "audit=@0"), "REF_KIND"),
        (("leakage.accepted", "--set", "because=x"), "BODY_INVALID"),
    ],
)
def test_a_request_that_could_not_become_a_record_is_not_made(words, code, asked, tmp_path):
    """A kind without a statement, another ref or another field is refused before anybody is asked."""
    out = tmp_path / "new.json"
    assert asked.json("statement", "request", *words, "--out", out).error["code"] == code
    assert not out.exists()


def test_a_request_follows_a_seal(made, tmp_path):
    """The head that is asked about is the newest sealed one, however many records came since."""
    sealed = made.json("seal").result
    made("note", "@0", "later")
    told = made.json(
        "statement", "request", "blob.withheld", "--ref", "record=@2",
        "--set", f"digest=sha256:{'0' * 64}", "--set", "why=private", "--out", tmp_path / "x.json",
    )  # fmt: skip
    assert told.result["seal"] == {"size": sealed["size"], "root": sealed["root"]}
