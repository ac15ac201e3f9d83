"""What commands write with --out: never over a ledger or a key, never where a stranger's link leads."""

from __future__ import annotations

import os

import pytest

from ledger.book import DATABASE

OUTPUTS = {"seal": ("seal", "--out"), "prove": ("prove", "@0", "--out")}


def refused(called) -> bool:
    """Whether a call was refused for where it would write."""
    return called.code != 0 and "OUT_REFUSED" in called.err + called.out


@pytest.mark.parametrize("words", OUTPUTS.values(), ids=OUTPUTS.keys())
@pytest.mark.parametrize("name", [DATABASE, "index.sqlite", "new", "blobs/new"])
def test_nothing_is_written_into_a_ledger(made, words, name):
    """A file in a ledger's folder is refused, and every file there stays as it was."""
    made("seal")
    before = {path: path.read_bytes() for path in made.ledger.rglob("*") if path.is_file()}
    assert refused(made(*words, made.ledger / name))
    after = {path: path.read_bytes() for path in made.ledger.rglob("*") if path.is_file()}
    assert after.keys() == before.keys()
    assert after[made.ledger / DATABASE] == before[made.ledger / DATABASE]


@pytest.mark.parametrize("words", OUTPUTS.values(), ids=OUTPUTS.keys())
def test_no_key_is_written_over(made, words):
    """A private key's file is refused, wherever it lies."""
    made("seal")
    for file in made.key_files():
        before = file.read_bytes()
        assert refused(made(*words, file))
        assert file.read_bytes() == before


@pytest.mark.parametrize("words", OUTPUTS.values(), ids=OUTPUTS.keys())
def test_no_link_is_followed(made, tmp_path, words):
    """A link in the place of the output is refused, and what it leads to stays."""
    made("seal")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    link = tmp_path / "link"
    link.symlink_to(victim)
    assert refused(made(*words, link))
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("words", OUTPUTS.values(), ids=OUTPUTS.keys())
def test_pipe_that_nobody_reads_is_refused_at_once(made, tmp_path, words):
    """A pipe without a reader ends the command with an error instead of holding it."""
    made("seal")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    called = made(*words, pipe)
    assert called.code != 0
    assert "OS_REFUSED" in called.err


def test_answer_to_a_request_goes_into_a_new_file_only(made, tmp_path):
    """Where nobody named the answer's place, a file or link that waits there is not written to; --out names another."""
    made("seal")
    asked = tmp_path / "ask.json"
    assert (
        made("restore", "--why", "x", "--request", asked).code != 0
    )  # nothing was lost: no request
    made("statement", "request", "policy.declared", "--set", "seeds=6", "--out", asked)
    if not asked.exists():
        made("statement", "request", "note.added", "--set", "text=x", "--out", asked)
    root = next(file for file in made.key_files() if file.name.startswith("root"))
    trap = tmp_path / "ask.json.signed"
    trap.symlink_to(root)
    before = root.read_bytes()
    called = made("statement", "sign", asked, "--key", root)
    assert called.code != 0
    assert root.read_bytes() == before
