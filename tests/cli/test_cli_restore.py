"""`evidence restore` and `evidence statement sign`: going on from a backup, by root's word."""

from __future__ import annotations

import json
import shutil

import pytest

WHY = "the disk failed, backup of Monday"


@pytest.fixture
def lost(made, tmp_path):
    """A ledger whose last two notes are lost: an older copy lies in its place."""
    backup = tmp_path / "backup"
    shutil.copytree(made.ledger, backup)
    for word in ("one", "two"):
        assert made("note", "@0", word).code == 0
    shutil.rmtree(made.ledger)
    shutil.copytree(backup, made.ledger)
    return made


def root_file(cli):
    """The root key that init made."""
    return next(file for file in cli.key_files() if file.name == "root.pem")


def kinds(cli):
    """The kinds of the records, newest first."""
    return [item["kind"] for item in cli.json("log", "--limit", 0).result["records"]]


def test_a_writer_is_refused_told_of_restore_and_goes_on_after_it(lost):
    """The whole way: refused, restored, appended, verified with what was lost as a warning."""
    called = lost("note", "@0", "three")
    assert called.code == 1
    assert "[LEDGER_ROLLED_BACK]" in called.err
    assert "evidence restore --why TEXT" in called.err
    called = lost("restore", "--why", WHY)
    assert called.code == 0
    assert "records 3 to 4" in called.out
    assert WHY in called.out
    assert called.err.splitlines()[-1].startswith("next: evidence seal")
    assert lost("note", "@0", "three").code == 0
    called = lost("verify")
    assert called.out.startswith("verified:")
    assert "V14 LEDGER_RESTORED at seq 3" in called.out
    assert WHY in called.out
    assert "high water reached" in called.out


def test_a_restore_is_told_to_a_program(lost):
    """The JSON result names record, loss and reason."""
    result = lost.json("restore", "--why", WHY).result
    assert (result["seq"], result["lost_from"], result["high_water"]["size"]) == (3, 3, 5)
    assert (result["why"], result["unconfirmed"], result["finished_earlier"]) == (WHY, [], False)
    assert lost.json("show", result["record"]).result["kind"] == "ledger.restored"


def test_a_restore_that_is_not_due_is_refused(made):
    """A ledger that lost nothing is not restored."""
    called = made.json("restore", "--why", WHY)
    assert (called.code, called.error["code"]) == (1, "NOT_ROLLED_BACK")


def test_a_fork_is_refused_with_what_the_owner_may_do(lost, monkeypatch, tmp_path):
    """Another history, written where the mark was not seen, is no loss; no option restores it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    for word in ("other", "history"):
        assert lost("note", "@0", word).code == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(lost.home / "state"))
    called = lost.json("restore", "--why", WHY)
    assert (called.code, called.error["code"]) == (1, "LEDGER_FORKED")
    assert "keep both copies" in called.error["hint"]
    assert "ledger.restored" not in kinds(lost)


def test_a_restore_without_the_root_key_names_the_option(lost):
    """The writer's key alone restores nothing, and the error says what would."""
    root_file(lost).unlink()
    called = lost.json("restore", "--why", WHY)
    assert (called.code, called.error["code"]) == (2, "KEY_MISSING")
    writer = next(file for file in lost.key_files() if file.name == "writer.pem")
    called = lost.json("restore", "--why", WHY, "--root-key", writer)
    assert (called.code, called.error["code"]) == (1, "STATEMENT_ROLE")
    assert lost.json("note", "@0", "x").error["code"] == "LEDGER_ROLLED_BACK"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--why", WHY, "--statement", "x"),
        ("--why", WHY, "--request", "x", "--root-key", "y"),
    ],
)
def test_options_that_do_not_fit_are_a_usage_error(lost, words):
    """A reason is given once, and authority comes one way."""
    called = lost.json("restore", *words)
    assert (called.code, called.error["code"]) == (2, "USAGE")


def test_the_root_key_may_stay_on_another_machine(lost, tmp_path):
    """Asked here, read and signed there without the ledger, handed in here; the key never comes near."""
    safe = tmp_path / "safe"
    safe.mkdir()
    key = shutil.move(root_file(lost), safe / "root.pem")
    request, answer = tmp_path / "restore.json", tmp_path / "restore.json.signed"
    asked = lost.json("restore", "--why", WHY, "--request", request).result
    assert (asked["request"], asked["lost_from"]) == (str(request), 3)
    assert "ledger.restored" not in kinds(lost)
    here, lost.ledger = lost.ledger, None
    called = lost("statement", "sign", request, "--key", key)
    assert called.code == 0
    for word in ("ledger.restored", WHY, '"size": 5', "3 records"):
        assert word in called.out
    lost.json("statement", "sign", request, "--key", key)
    lost.ledger = here
    assert lost.json("restore", "--statement", answer).result["why"] == WHY
    assert lost("note", "@0", "three").code == 0


def test_a_statement_is_about_this_loss_only(lost, tmp_path):
    """After the loss has changed, and after its one use, a statement handed in again is refused."""
    request, answer = tmp_path / "r.json", tmp_path / "r.json.signed"
    lost("restore", "--why", WHY, "--request", request)
    lost("statement", "sign", request, "--key", root_file(lost))
    again = tmp_path / "again"
    shutil.copytree(lost.ledger, again)
    assert lost("restore", "--statement", answer).code == 0
    lost("note", "@0", "three")
    called = lost.json("restore", "--statement", answer)
    assert called.error["code"] == "NOT_ROLLED_BACK"
    shutil.rmtree(lost.ledger)
    shutil.copytree(again, lost.ledger)
    called = lost.json("restore", "--statement", answer)
    assert (called.code, called.error["code"]) == (1, "RESTORE_WRONG")
    assert lost.json("note", "@0", "x").error["code"] == "LEDGER_ROLLED_BACK"


def test_a_statement_with_other_words_is_refused(lost, tmp_path):
    """What root signed cannot be changed on the way, and a file that is none is said to be none."""
    request, answer = tmp_path / "r.json", tmp_path / "r.json.signed"
    lost("restore", "--why", WHY, "--request", request)
    assert lost.json("restore", "--statement", request).error["code"] == "STATEMENT_FILE"
    lost("statement", "sign", request, "--key", root_file(lost))
    text = answer.read_text()
    answer.write_text(text.replace("disk failed", "disk fooled"))
    assert lost.json("restore", "--statement", answer).error["code"] == "STATEMENT_INVALID"
    answer.write_text(text.replace("example.com/tests", "example.com/other"))
    assert lost.json("restore", "--statement", answer).error["code"] == "STATEMENT_FOREIGN"
    assert "ledger.restored" not in kinds(lost)


def test_signing_needs_a_key_that_was_named(lost, tmp_path, monkeypatch):
    """The writer key that init made does not sign by itself; one in EVIDENCE_KEY does."""
    request = tmp_path / "r.json"
    lost("restore", "--why", WHY, "--request", request)
    assert lost.json("statement", "sign", request).error["code"] == "KEY_MISSING"
    monkeypatch.setenv("EVIDENCE_KEY", str(root_file(lost)))
    out = tmp_path / "out.json"
    assert lost.json("statement", "sign", request, "--out", out).result["file"] == str(out)
    assert json.loads(out.read_text())["body"]["why"] == WHY


def test_a_restore_cut_short_is_finished_by_running_it_again(lost, tmp_path):
    """With the record there and the file not yet lowered, root is not asked a second time."""
    (mark,) = (lost.home / "state").rglob("*.json")
    before = mark.read_bytes()
    record = lost.json("restore", "--why", WHY).result["record"]
    mark.write_bytes(before)
    root_file(lost).unlink()
    asked = lost.json("restore", "--why", WHY, "--request", tmp_path / "r.json")
    assert asked.error["code"] == "NOT_ROLLED_BACK"
    assert "evidence restore" in asked.error["hint"]
    result = lost.json("restore", "--why", WHY).result
    assert (result["record"], result["finished_earlier"]) == (record, True)
    assert kinds(lost).count("ledger.restored") == 1
