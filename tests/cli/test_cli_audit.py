"""`evidence audit lineage`: what a reviewer asks about a checkpoint, on one screen."""

from __future__ import annotations

import pytest
import samples
from descent import begun, end, publish, resume, step
from world import Draft, World, grown


@pytest.fixture(scope="module")
def story() -> World:
    """A checkpoint after a step back, on data with accepted findings, whose source was withheld later."""
    world = World()
    world.add("split.declared")
    world.add("leakage.audited", verdict="findings", pairs=2, levels=_levels(exact=2))
    world.add("leakage.accepted")
    draft = world.draft("plan.prepared")
    draft.refs["acceptance"] = world.need("leakage.accepted").id
    draft.body["budget_updates"] = 4
    planned = world.admit(draft)
    seen = world.seen().model_dump()
    launched = Draft("run.launched", samples.body("run.launched", seen=seen), {"plan": planned.id})
    run = world.admit(launched)
    step(world, run)
    first = publish(world, run)
    step(world, run)
    end(world, run)
    resume(world, run, first)
    step(world, run)
    publish(world, run)
    end(world, run)
    world.add("blob.withheld")
    return world


def _levels(**touched: int) -> dict[str, int]:
    names = ("exact", "normalised", "masked", "near_duplicate", "edited", "annotation")
    return {**dict.fromkeys(names, 0), **touched}


@pytest.fixture
def asked(cli, tmp_path, story):
    """A command line before that ledger."""
    cli.ledger = story.write(tmp_path / "story")
    return cli


def test_everything_a_reviewer_asks_is_answered(asked, story):
    """Sources, splits, leaks, updates that count and that do not, and what is missing, from the records alone."""
    checkpoint = story.newest("checkpoint.published")
    result = asked.json("audit", "lineage", checkpoint.id).result
    (source,) = result["sources"]
    assert (source["licence"], source["review"], source["reviewer"], source["withheld"]) == (
        "Apache-2.0",
        "reviewed",
        "a person",
        "personal data",
    )
    assert [item["roles"] for item in result["splits"]] == [
        {"train": 2, "validation": 1, "test": 1}
    ]
    (leak,) = result["leaks"]
    assert (leak["verdict"], leak["touched"], leak["why"]) == (
        "findings",
        {"exact": 2},
        "the two rows are greetings",
    )
    (run,) = result["runs"]
    assert (run["attempts"], run["live"], run["superseded"], run["outcome"]) == (2, 2, 1, "stopped")
    assert (result["suspect"], result["test_looks"]) == (None, [])
    assert result["promotion"]["granted"] is None
    codes = [item["code"] for item in result["promotion"]["missing"]]
    assert codes[0] == "COMPARISON_MISSING"
    assert {"STUDY_MISSING", "NOMINATION_MISSING", "GATE_MISSING"} <= set(codes)
    assert any("updates computed" in sentence for sentence in result["on_faith"])


def test_it_fits_one_screen(asked, story):
    """The text has every section, in fewer than sixty lines, and names the command that verifies."""
    called = asked("audit", "lineage", story.newest("checkpoint.published").id)
    lines = called.out.splitlines()
    assert len(lines) < 60
    for title in ("sources", "splits", "leaks", "updates", "looks at tests: none"):
        assert title in lines
    assert "missing for a promotion" in lines
    assert "--level blobs" in called.err


def test_what_a_superseded_update_fed_is_not_on_the_path(asked, story):
    """The run did three updates; the checkpoint's path has the two that count and the one that is redone by name."""
    checkpoint = story.newest("checkpoint.published")
    (run,) = asked.json("audit", "lineage", checkpoint.id).result["runs"]
    assert run["on_path"] == 3
    first = next(item for item in story.records if item.kind == "checkpoint.published")
    (run,) = asked.json("audit", "lineage", first.id).result["runs"]
    assert run["on_path"] == 1


def test_looks_at_tests_are_told_with_their_reviews(cli, tmp_path):
    """Whoever answered a test set of the same data is named, whether before or after the checkpoint."""
    world = grown(["promotion.granted"])
    draft = world.draft("protocol.registered")
    draft.body.update(role="test", name="the test")
    protocol = world.admit(draft)
    review = world.draft("test.reviewed")
    review.refs["protocol"] = protocol.id
    review = world.admit(review)
    chosen = world.by_id[str(review.ref("nomination"))].body["chosen"]
    refs = {"protocol": protocol.id, "checkpoint": chosen, "review": review.id}
    arm = world.admit(Draft("arm.transcribed", samples.body("arm.transcribed"), refs))
    cli.ledger = world.write(tmp_path / "looked")
    result = cli.json("audit", "lineage", chosen).result
    (look,) = result["test_looks"]
    assert (look["arm"], look["answered_by"], look["review"]) == (arm.id, chosen, review.id)
    assert look["before_checkpoint"] is False
    assert result["promotion"]["granted"] == world.newest("promotion.granted").id
    assert result["promotion"]["missing"] == []
    assert "the test" in cli("audit", "lineage", chosen).out


def test_a_checkpoint_on_suspect_records_says_so(cli, tmp_path):
    """Where root took the writer's key back, the audit names the suspect and the revocation."""
    world = World()
    run = begun(world)
    checkpoint = publish(world, run)
    world.enroll("writer2", ["train"])
    writer = next(item for item in world.records if item.body.get("owner") == "writer")
    body = samples.body("key.revoked", key=writer.body["key"], from_seq=run.seq)
    revocation = Draft("key.revoked", body, stater="root")
    world.admit(revocation)
    cli.ledger = world.write(tmp_path / "suspect")
    result = cli.json("audit", "lineage", checkpoint.id).result
    assert "suspect from seq" in result["suspect"]


def test_only_a_checkpoint_is_audited(asked, story):
    """Another kind of record is refused with what is expected."""
    called = asked.json("audit", "lineage", story.newest("run.launched").id)
    assert (called.code, called.error["code"]) == (1, "REF_KIND")
    assert called.error["expected"] == "checkpoint.published"
