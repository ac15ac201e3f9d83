"""How `show`, `log`, `lineage` and `verify` tell a person that a record is suspect."""

from __future__ import annotations

import pytest
import samples
from world import Draft, World, key


@pytest.fixture(scope="module")
def robbed() -> World:
    """A promotion whose writer's key was revoked from the checkpoint on, and more updates than are drawn."""
    world = World()
    world.add("plan.prepared", budget_updates=12)
    for _ in range(12):
        world.add("update.acknowledged")
    world.add("checkpoint.published")
    start = world.newest("update.acknowledged").seq
    world.need("promotion.granted")
    body = samples.body("key.revoked", key=key("writer").id, from_seq=start)
    world.admit(Draft("key.revoked", body, stater="root"))
    return world


@pytest.fixture
def run(cli, tmp_path, robbed):
    """A command line before that ledger."""
    cli.ledger = robbed.write(tmp_path / "robbed")
    return cli


def test_show_says_why_a_record_is_suspect(run, robbed):
    """A suspect record's page names the record, the key and the revocation to blame; a sound one has no such line."""
    granted = robbed.newest("promotion.granted")
    why = run.json("show", granted.id).result["suspect"]
    assert f"signed by {key('writer').id}" in why
    assert f"record {robbed.records[-1].seq} revoked" in why
    assert f"suspect: {why}" in run("show", granted.id).out
    for sound in ("@0", "@8"):
        assert "suspect" not in run.json("show", sound).result
        assert "suspect" not in run("show", sound).out


def test_log_marks_suspects(run, robbed):
    """Each suspect record of a listing is marked, and no other."""
    listed = run.json("log", "--limit", 0).result["records"]
    start = robbed.newest("update.acknowledged").seq
    marked = {item["seq"] for item in listed if "suspect" in item}
    assert marked == set(range(start, robbed.records[-1].seq))
    assert run("log", "--limit", 0).out.count("SUSPECT") == len(marked)


def test_lineage_marks_suspects_even_folded(run, robbed):
    """A node that stands for many records is marked where one of them is suspect."""
    checkpoint = robbed.newest("checkpoint.published")
    nodes = run.json("lineage", checkpoint.id).result["nodes"]
    marked = [node["kind"] for node in nodes if "suspect" in node]
    assert sorted(marked) == ["checkpoint.published", "update.acknowledged"]
    granted = robbed.newest("promotion.granted")
    folded = run.json("lineage", granted.id).result["nodes"]
    whole = run.json("lineage", granted.id, "--full").result["nodes"]
    suspects = [node for node in whole if "suspect" in node]
    assert len(suspects) > 3
    assert any(node["kind"] == "folded" for node in folded)
    assert "SUSPECT" in run("lineage", granted.id).out


def test_verify_of_a_void_promotion_ends_with_1(run, robbed):
    """An approver who asks about the promotion gets a no by exit status; the whole ledger is still verified."""
    granted = robbed.newest("promotion.granted")
    called = run.json("verify", granted.id)
    assert (called.code, called.error["code"]) == (1, "PROMOTION_VOID")
    assert run.json("verify", robbed.newest("gate.decided").id).error["code"] == "EVIDENCE_SUSPECT"
    whole = run.json("verify")
    assert (whole.code, whole.result["verdict"]) == (0, "verified")
    assert [item["code"] for item in whole.result["warnings"]] == ["KEY_SUSPECT", "PROMOTION_VOID"]
