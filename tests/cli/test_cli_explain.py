"""`evidence explain` and `evidence dossier` by command, for whatever became of a checkpoint."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from dossier_reader import read_page
from study_data import Answers, failing
from study_world import StudyWorld

from ledger.book import Ledger

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "small-ledger"


@pytest.fixture(scope="module")
def promoted() -> StudyWorld:
    """A study to its grant."""
    made = StudyWorld()
    made.granted()
    return made


def placed(cli, made: StudyWorld, folder: Path) -> None:
    """The world as a ledger that the command line reads."""
    cli.ledger = folder / "ledger"
    made.world.replay(cli.ledger).close()


def sentences(called, section: str) -> list[str]:
    """The words of a section."""
    return [item["text"] for item in called.result["sentences"] if item["section"] == section]


def test_a_grant_is_explained(cli, tmp_path, promoted) -> None:
    """Of a grant, its gate and its checkpoint the same is told: it stands, what was on faith, what is not the gate."""
    placed(cli, promoted, tmp_path)
    world = promoted.world
    grant, gate = world.newest("promotion.granted"), world.newest("gate.decided")
    for record in (grant.id, gate.id, promoted.nomination.body["chosen"]):
        called = cli.json("explain", record)
        assert called.result["verdict"] == "granted"
        assert called.result["derived"]["verdict"] == "verified"
        assert sentences(called, "verdict")[0].startswith("It is promoted")
        assert all(text.startswith("Passed. ") for text in sentences(called, "gate"))
        assert sentences(called, "missing") == []
        assert any(
            "which weights wrote the transcripts" in text for text in sentences(called, "faith")
        )
        weak = sentences(called, "not_the_gate")
        assert all(text.startswith("Not the gate: ") for text in weak)
        assert any("McNemar" in text for text in weak)
        assert any("seeds-only" in text for text in weak)
        assert all(item["command"].startswith("evidence ") for item in called.result["sentences"])


def test_a_failed_gate_names_what_failed(cli, tmp_path) -> None:
    """Failed lines come first with code, number, limit and cases; what is missing beside them is told."""
    lost = Answers(frozenset({25}), forbidden=frozenset({13}), cut=frozenset({14}))
    made = StudyWorld(baseline_answers=failing(3), tested_answers=lost)
    gate = made.gate(made.here())
    placed(cli, made, tmp_path)
    called = cli.json("explain", gate.id)
    assert called.code == 0
    assert called.result["verdict"] == "failed"
    told = sentences(called, "gate")
    failed = [text for text in told if text.startswith("Failed")]
    assert told[: len(failed)] == failed
    assert len(failed) == sum(not line["passed"] for line in gate.body["gates"])
    for words in (
        "[NEW_VIOLATION]",
        "case13",
        "[NEW_TRUNCATION]",
        "case14",
        "[FAMILY_REGRESSED]",
        "family3",
    ):
        assert any(words in text for text in failed), words
    assert any("[APPROVAL_MISSING]" in text for text in sentences(called, "missing"))
    plain = cli("explain", gate.id).out
    assert all(text in plain for text in failed)
    assert f"evidence verify {gate.id[7:19]} --level blobs" in plain


def test_a_checkpoint_without_a_gate_says_what_is_missing(cli, tmp_path) -> None:
    """Where nothing was decided there are no figures, and each thing that is missing is told by its code."""
    made = StudyWorld(again=False)
    placed(cli, made, tmp_path)
    called = cli.json("explain", made.checkpoints[0].id)
    assert called.result["verdict"] == "undecided"
    assert called.result["gate"] is called.result["figures"] is None
    assert any(
        "[GATE_MISSING]" in text or "[NOMINATION_MISSING]" in text
        for text in sentences(called, "missing")
    )
    assert cli.json("dossier", made.checkpoints[0].id, "out.html").result["verdict"] == "undecided"
    assert "No gate was decided" in read_page(Path("out.html").read_text()).text


def test_a_withdrawal_is_told(cli, tmp_path) -> None:
    """A withdrawn promotion is told as withdrawn, with the promoter's reason, whichever record is asked about."""
    made = StudyWorld()
    grant = made.granted()
    refs = {"promotion": grant.id}
    gone = made.admit("promotion.withdrawn", {"why": "a source was bad"}, refs, stater="promoter")
    placed(cli, made, tmp_path)
    for record in (grant.id, gone.id):
        called = cli.json("explain", record)
        assert called.result["verdict"] == "withdrawn"
        assert any("a source was bad" in text for text in sentences(called, "verdict"))


def test_an_invented_gate_is_unfounded(cli, tmp_path) -> None:
    """A failed gate that is recorded as passed is told as it is derived, and the lines that differ are named."""
    made = StudyWorld(again=False)
    honest = made.gate(made.here())
    claimed = [{**line, "passed": True, "code": None} for line in honest.body["gates"]]
    gate = made.gate(made.here(), gates=claimed, passed=True)
    placed(cli, made, tmp_path)
    called = cli.json("explain", gate.id)
    assert called.result["verdict"] == "failed"
    assert called.result["gate"]["differs"] == ["reruns"]
    assert any("another reruns" in text for text in sentences(called, "gate"))
    assert any("[GATE_UNFOUNDED]" in text for text in sentences(called, "derived"))
    assert any("Nothing was run again" in text for text in sentences(called, "reruns"))


def test_a_grant_on_an_invented_gate_is_unfounded(cli, tmp_path) -> None:
    """A grant that names a gate whose lines do not follow is never told as granted, and the code says so."""
    made = StudyWorld(again=False)
    honest = made.gate(made.here())
    claimed = [{**line, "passed": True, "code": None} for line in honest.body["gates"]]
    gate = made.gate(made.here(), gates=claimed, passed=True)
    grant = made.grant(gate, made.approve(gate))
    placed(cli, made, tmp_path)
    called = cli.json("explain", grant.id)
    assert called.result["verdict"] == "unfounded"
    told = " ".join(sentences(called, "derived"))
    assert "[GRANT_UNFOUNDED]" in told
    assert "[GATE_UNFOUNDED]" in told


def test_a_refusal_says_what_it_said(cli, tmp_path) -> None:
    """Of the example's refusal the reasons on record are told, and what is missing now; no gate was decided."""
    cli.ledger = Path(shutil.copytree(EXAMPLE, tmp_path / "example"))
    with Ledger.read(cli.ledger) as ledger:
        (refusal,) = ledger.of_kind("promotion.refused")
    called = cli.json("explain", refusal.id)
    assert called.result["verdict"] == "refused"
    told = sentences(called, "verdict")
    for reason in refusal.body["reasons"]:
        assert any(f"[{reason['code']}]" in text for text in told)
    assert any("one seed is descriptive" in text for text in sentences(called, "missing"))


def test_missing_bytes_are_no_verdict(cli, tmp_path, promoted) -> None:
    """Where bytes are gone nothing is told as granted: the lines are those on record, and the code says why."""
    placed(cli, promoted, tmp_path)
    with Ledger.read(cli.ledger) as ledger:
        ledger.blobs.path(promoted.checkpoints[0].body["files"][0]["digest"]).unlink()
    gate = promoted.world.newest("gate.decided")
    called = cli.json("explain", gate.id)
    assert called.result["verdict"] == "unverified"
    assert any("[BLOB_MISSING]" in text for text in sentences(called, "derived"))
    assert cli.json("dossier", gate.id, "out.html").result["verdict"] == "unverified"
    assert "could not be derived again" in read_page(Path("out.html").read_text()).text


def test_a_damaged_blob_is_told_and_not_trusted(cli, tmp_path, promoted) -> None:
    """An evaluation's outcomes with other bytes make no granted verdict, and no traceback."""
    placed(cli, promoted, tmp_path)
    with Ledger.read(cli.ledger) as ledger:
        path = ledger.blobs.path(promoted.evaluations[1].body["outcomes"]["digest"])
    path.chmod(0o600)
    path.write_bytes(b"[" * 4096)
    called = cli.json("explain", promoted.world.newest("gate.decided").id)
    assert called.result["verdict"] in {"unverified", "unfounded"}
    assert any("[BLOB_WRONG]" in text for text in sentences(called, "derived"))


def test_a_page_is_written_once(cli, tmp_path, promoted) -> None:
    """The page's digest is told; what lies there already is never written over; an error leaves no file."""
    placed(cli, promoted, tmp_path)
    gate = promoted.world.newest("gate.decided").id
    first = cli.json("dossier", gate, "out.html")
    assert (first.code, first.result["bytes"]) == (0, len(Path("out.html").read_bytes()))
    assert cli.json("dossier", gate, "out.html").error["code"] == "FOLDER_EXISTS"
    again = cli.json("dossier", gate, "again.html").result
    assert again["digest"] == first.result["digest"]
    assert cli.json("dossier", promoted.study.id, "other.html").code != 0
    assert not Path("other.html").exists()
