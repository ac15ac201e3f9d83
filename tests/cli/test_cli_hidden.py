"""Runs that a note hides: out of the list, in the ledger, and back by a later note."""

from __future__ import annotations

import pytest
from descent import begun, plan
from world import World


@pytest.fixture
def run(cli, tmp_path):
    """A command line before a ledger with one run, and with the notes that a test gives about it."""

    def make(*tags: str, of: str = "run"):
        world = World()
        launch = begun(world)
        about = launch if of == "run" else plan(world)
        for tag in tags:
            draft = world.draft("note.added")
            draft.body["tags"] = [tag]
            draft.refs = {"about": [about.id]}
            world.admit(draft)
        cli.ledger = world.write(tmp_path / "ledger")
        return cli, launch

    return make


@pytest.mark.parametrize(
    ("tags", "listed"),
    [
        ((), True),
        (("incident",), True),
        (("hidden",), False),
        (("hidden", "incident"), False),
        (("hidden", "shown"), True),
        (("hidden", "shown", "hidden"), False),
    ],
)
def test_the_newest_of_two_tags_decides(run, tags, listed):
    """Hidden takes a run from the list, shown brings it back, other tags do neither; `--all` has it always."""
    cli, launch = run(*tags)
    short = cli.json("run", "list").result
    assert [item["run"] for item in short["runs"]] == ([launch.id] if listed else [])
    assert short["left_out"] == (0 if listed else 1)
    whole = cli.json("run", "list", "--all").result
    assert [(item["run"], item["hidden"]) for item in whole["runs"]] == [(launch.id, not listed)]


def test_a_plan_that_nobody_launched_can_be_hidden(run):
    """A plan that waits is left out too, and the list says that something is."""
    cli, _ = run("hidden", of="plan")
    assert cli.json("run", "list").result["prepared"] == []
    assert "1 hidden" in cli("run", "list").out


def test_a_hidden_run_is_in_every_other_answer(run):
    """Status, questions and the log know nothing of it."""
    cli, launch = run("hidden")
    assert cli.json("run", "status", launch.id).result["run"] == launch.id
    assert cli.json("query", "SELECT count(*) FROM runs").result["rows"] == [[1]]
    assert launch.id in cli("log", "--json").out
