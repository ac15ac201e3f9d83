"""From a reviewed test to a promoted folder and back, by commands: keys that lie on other machines sign files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from study_data import Answers
from study_world import StudyWorld
from world import key

from ledger.book import Ledger
from verifiers.verify import Options, verify

ROOT = key("root").id
WITNESS = ("--paraphrase", "none found", "--contamination", "none known")


@pytest.fixture(scope="module")
def tested() -> StudyWorld:
    """A study whose test was read and run again, and nothing decided yet."""
    return StudyWorld()


def placed(cli, made: StudyWorld, folder: Path) -> None:
    """The world as a ledger that its writer can append to, everybody's key file beside it."""
    cli.ledger = folder / "ledger"
    made.world.replay(cli.ledger).close()
    for name in ("writer", "reviewer", "reviewer2", "promoter"):
        key(name).save(folder / f"{name}.pem")


def writes(cli, *words):
    """Type a command with the writer's key."""
    return cli.json("--key", "writer.pem", *words)


def signs(cli, request: str, who: str) -> str:
    """Sign a request where there is no ledger, only a key and the file."""
    ledger, cli.ledger = cli.ledger, None
    called = cli.json("--key", f"{who}.pem", "review", "sign", request)
    cli.ledger = ledger
    assert called.code == 0, called.answer
    return called.result["file"]


def decided(cli) -> str:
    """The gate of the study, decided."""
    with Ledger.read(cli.ledger) as ledger:
        (study,) = ledger.of_kind("study.registered")
    called = writes(cli, "study", "decide", study.id)
    assert called.code == 0, called.answer
    return called.result["gate"]


def granted(cli) -> str:
    """Gate, approval and grant with keys on this machine; the promoted folder is ./promoted."""
    gate = decided(cli)
    approved = writes(
        cli, "promotion", "approve", gate, "--why", "read it", "--review-key", "reviewer.pem"
    )
    assert approved.result["reviewers"] == approved.result["needed"] == 1
    words = ("--scope", "shadow traffic", "--promote-key", "promoter.pem")
    called = writes(cli, "promotion", "grant", gate, "promoted", *words)
    assert called.code == 0, called.answer
    return called.result["promotion"]


def test_detached_statements_lead_to_a_folder_that_passes(cli, tmp_path, tested):
    """Approval and grant are asked for in files, signed elsewhere and handed in; the folder passes, and verify derives the grant."""
    placed(cli, tested, tmp_path)
    gate = decided(cli)
    reviewer = key("reviewer").id
    ask = ("promotion", "approve", gate, "--why", "read it", "--reviewer", reviewer)
    unsealed = writes(cli, *ask, "--request", "approve.json")
    assert unsealed.error["code"] == "NOT_SEALED"
    assert writes(cli, "seal").code == 0
    assert writes(cli, *ask, "--request", "approve.json").result["kind"] == "promotion.approved"
    answer = signs(cli, "approve.json", "reviewer")
    assert writes(cli, "promotion", "approve", gate, "--statement", answer).code == 0
    writes(cli, "seal")
    grant = ("promotion", "grant", gate, "promoted")
    writes(cli, *grant, "--scope", "shadow traffic", "--request", "grant.json")
    assert not Path("promoted").exists()
    answer = signs(cli, "grant.json", "promoter")
    done = writes(cli, *grant, "--statement", answer)
    assert done.code == 0, done.answer
    checked = cli.json("promotion", "check", "promoted", "--root", ROOT)
    assert checked.result["promotion"] == done.result["promotion"]
    report = verify(cli.ledger, Options(level="blobs", record=done.result["promotion"], workers=1))
    assert report.wrong == []
    assert report.replayed["promotion.granted"] == 1
    assert report.missing == []


def test_one_byte_decides(cli, tmp_path, tested):
    """A byte changed, a file more, no pinned root or another root: not promoted, by code, exit 1; a consumer asks in Python too."""
    placed(cli, tested, tmp_path)
    granted(cli)
    folder = Path("promoted")
    check = ("promotion", "check", folder)
    assert cli.json(*check, "--root", ROOT).code == 0
    with Ledger.read(cli.ledger) as ledger:
        assert ledger.is_promoted(folder, ROOT)
        assert not ledger.is_promoted(folder, key("writer").id)
    for words in ((), ("--root", key("writer").id)):
        called = cli.json(*check, *words)
        assert (called.code, called.error["code"]) == (1, "ROOT_UNTRUSTED")
    weights = folder / "adapter_model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    called = cli.json(*check, "--root", ROOT)
    assert (called.code, called.error["code"]) == (1, "NOT_PROMOTED")
    with Ledger.read(cli.ledger) as ledger:
        assert not ledger.is_promoted(folder, ROOT)
    weights.write_bytes(whole)
    (folder / "notes.txt").write_text("x")
    assert cli.json(*check, "--root", ROOT).error["code"] == "NOT_PROMOTED"


def test_a_withdrawn_promotion_no_longer_stands(cli, tmp_path, tested):
    """Withdrawn by the promoter's statement, the same bytes are refused with the reason; the list says so."""
    placed(cli, tested, tmp_path)
    promotion = granted(cli)
    (row,) = cli.json("promotion", "list").result["promotions"]
    assert (row["promotion"], row["standing"]) == (promotion, "stands")
    words = ("--why", "a source was withdrawn", "--promote-key", "promoter.pem")
    assert writes(cli, "promotion", "withdraw", promotion, *words).code == 0
    called = cli.json("promotion", "check", "promoted", "--root", ROOT)
    assert (called.code, called.error["code"]) == (1, "PROMOTION_WITHDRAWN")
    assert "a source was withdrawn" in called.error["message"]
    (row,) = cli.json("promotion", "list").result["promotions"]
    assert row["standing"] == "withdrawn"


def test_a_grant_needs_its_approvals(cli, tmp_path, tested):
    """Without a reviewer nothing is granted, no folder is left, and asking for a promotion records why, by the gate."""
    placed(cli, tested, tmp_path)
    gate = decided(cli)
    words = ("--scope", "x", "--promote-key", "promoter.pem")
    called = writes(cli, "promotion", "grant", gate, "promoted", *words)
    assert (called.code, called.error["code"]) == (1, "APPROVAL_MISSING")
    assert not Path("promoted").exists()
    refused = writes(cli, "promote", tested.nomination.body["chosen"])
    assert [item["code"] for item in refused.result["reasons"]] == ["APPROVAL_MISSING"]
    report = verify(cli.ledger, Options(level="blobs", record=refused.result["refusal"], workers=1))
    assert report.wrong == []
    assert report.replayed["promotion.refused"] == 1


def test_a_refused_grant_takes_away_only_what_it_made(cli, tmp_path, tested):
    """A folder that was there is refused and kept, also where only a request was asked for; one that was made goes again."""
    placed(cli, tested, tmp_path)
    gate = decided(cli)
    words = ("promotion", "approve", gate, "--why", "read it", "--review-key", "reviewer.pem")
    assert writes(cli, *words).code == 0
    mine = Path("mine")
    mine.mkdir()
    (mine / "notes.txt").write_text("keep")
    grant = ("promotion", "grant", gate, mine, "--scope", "x")
    called = writes(cli, *grant, "--promote-key", "promoter.pem")
    assert called.error["code"] == "FOLDER_EXISTS"
    assert writes(cli, *grant, "--request", "grant.json").error["code"] == "NOT_SEALED"
    assert (mine / "notes.txt").read_text() == "keep"
    wrong = ("promotion", "grant", gate, "promoted", "--scope", "x")
    called = writes(cli, *wrong, "--promote-key", "reviewer.pem")
    assert called.error["code"] == "STATEMENT_ROLE"
    assert not Path("promoted").exists()


def test_two_reviewers_are_two_keys(cli, tmp_path):
    """Where the policy asks for two reviewers, one key twice is one, and a second key is enough."""
    made = StudyWorld(policy={"reviewers": 2})
    placed(cli, made, tmp_path)
    gate = decided(cli)
    approve = ("promotion", "approve", gate, "--why", "read it", "--review-key")
    counts = [
        writes(cli, *approve, f"{name}.pem").result["reviewers"]
        for name in ("reviewer", "reviewer", "reviewer2")
    ]
    assert counts == [1, 1, 2]
    words = ("--scope", "x", "--promote-key", "promoter.pem")
    assert writes(cli, "promotion", "grant", gate, "promoted", *words).code == 0


def test_a_review_is_signed_over_what_the_ledger_read(cli, tmp_path):
    """A second nomination's review says look 2, by file; what was changed in between is another statement and refused."""
    tested = StudyWorld()
    placed(cli, tested, tmp_path)
    nomination = tested.nominate(tested.checkpoints[1:])
    with Ledger.open(cli.ledger, key=key("writer")) as ledger:
        record = ledger.append(
            nomination.kind, nomination.body, dict(nomination.refs), nomination.statement
        )
    words = ("review", "test", record.id, tested.protocol.id)
    writes(cli, "seal")
    asked = writes(cli, *words, *WITNESS, "--request", "test.json")
    assert (asked.result["look"], asked.result["fresh"]) == (2, False)
    answer = Path(signs(cli, "test.json", "reviewer"))
    other = json.loads(answer.read_text())
    other["body"]["look"] = 1
    Path("other.json").write_text(
        json.dumps(other, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    )
    changed = writes(cli, *words, "--statement", "other.json")
    assert (changed.code, changed.error["code"]) == (1, "STATEMENT_FOREIGN")
    done = writes(cli, *words, "--statement", answer)
    assert done.result["look"] == 2
    looked = writes(cli, "eval", "test", done.result["review"])
    assert (looked.code, looked.error["code"]) == (1, "TEST_LOOKED_AGAIN")
    run = ("eval", "run", tested.protocol.id, tested.baseline.id)
    assert writes(cli, *run).error["code"] == "TEST_NOT_REVIEWED"
    again = writes(cli, *run, "--review", done.result["review"])
    assert again.error["code"] == "TEST_LOOKED_AGAIN"


def test_a_failed_gate_is_approved_by_nobody(cli, tmp_path):
    """A gate that says no takes no approval, and the refusal names its lines."""
    made = StudyWorld(tested_answers=Answers(frozenset(range(8))))
    placed(cli, made, tmp_path)
    gate = writes(cli, "study", "decide", made.study.id).result["gate"]
    words = ("promotion", "approve", gate, "--why", "x", "--review-key", "reviewer.pem")
    assert writes(cli, *words).error["code"] == "GATE_FAILED"
    reasons = writes(cli, "promote", made.nomination.body["chosen"]).result["reasons"]
    assert {"FAMILY_REGRESSED", "NOT_SIGNIFICANT"} <= {item["code"] for item in reasons}


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--why", "x"), "--statement"),
        (("--why", "x", "--review-key", "a", "--request", "b"), "--statement"),
        (("--review-key", "reviewer.pem"), "--why"),
        (("--why", "x", "--statement", "b"), "--why"),
        (("--why", "x", "--request", "b"), "--reviewer"),
    ],
)
def test_a_statement_comes_about_in_exactly_one_way(cli, tmp_path, tested, words, field):
    """No way, two ways, words missing or words beside an answer: one error, by the option."""
    placed(cli, tested, tmp_path)
    called = writes(cli, "promotion", "approve", "123456", *words)
    assert (called.error["code"], called.error["field"]) == ("USAGE", field)
