"""Ledgers whose bodies are not what their kinds promise: shown as one error each, never as a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
import samples
from world import Draft, World, row_of

from ledger import record as records
from ledger.book import DATABASE
from ledger.record import Record
from ledger.store.sqlite import SqliteStore

BAD = ({}, {"step": "one"}, {"levels": 7, "review": [], "content": None, "roles": "train"})


@pytest.fixture(scope="module")
def story() -> World:
    """A checkpoint of a run that ended and went on, evaluated, compared and refused."""
    world = World()
    world.need("leakage.accepted")
    world.need("checkpoint.published")
    world.add("run.resumed")
    world.add("run.ended")
    checkpoint = world.need("checkpoint.published")
    refs = {"protocol": world.need("protocol.registered").id, "checkpoint": checkpoint.id}
    world.admit(Draft("arm.transcribed", samples.body("arm.transcribed"), refs))
    world.need("comparison.made")
    world.need("policy.declared")
    world.add("promotion.refused")
    world.add("blob.withheld")
    return world


def spoiled(world: World, kind: str, body: dict[str, object]) -> list[Record]:
    """The same ledger with every body of a kind replaced; refs lead to the records as they are now."""
    new: dict[str, str] = {}
    made: list[Record] = []
    for old in world.records:
        refs = {
            role: [new[item] for item in value] if isinstance(value, list) else new[value]
            for role, value in old.refs.items()
        }
        entry = records.build_entry(
            ledger=old.ledger,
            seq=old.seq,
            prev=made[-1].id if made else None,
            kind=old.kind,
            schema=old.schema,
            time=old.time,
            actor=old.actor,
            refs=refs,
            body=dict(body) if old.kind == kind else old.body,
            statement=old.statement,
        )
        made.append(records.parse(entry, old.signature))
        new[old.id] = made[-1].id
    return made


def written(folder: Path, made: list[Record]) -> Path:
    """A ledger folder of these records."""
    folder.mkdir()
    store = SqliteStore.create(folder / DATABASE)
    with store.transaction():
        store.append([row_of(record) for record in made])
    store.close()
    return folder


KINDS = (
    "source.ingested",
    "split.declared",
    "leakage.audited",
    "leakage.accepted",
    "model.registered",
    "plan.prepared",
    "run.launched",
    "run.resumed",
    "run.ended",
    "batch.built",
    "update.acknowledged",
    "checkpoint.published",
    "protocol.registered",
    "arm.transcribed",
    "evaluation.completed",
    "comparison.made",
    "policy.declared",
    "blob.withheld",
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_of_another_shape_is_one_error(cli, tmp_path, story, kind):
    """Whatever a kind's body holds, each reading command answers or refuses with a code."""
    for place, body in enumerate(BAD):
        made = spoiled(story, kind, body)
        cli.ledger = written(tmp_path / str(place), made)
        named = {item.kind: item.id for item in made}
        checkpoint, run = named["checkpoint.published"], named["run.launched"]
        for words in (
            ("audit", "lineage", checkpoint),
            ("diff", run, run),
            ("diff", checkpoint, checkpoint),
            ("lineage", checkpoint),
            ("lineage", named["source.ingested"], "--impact", "--format", "svg"),
        ):
            called = cli(*words)
            assert called.code in {0, 1, 2}
            assert ("[" in called.err) == (called.code != 0)


def test_the_ledger_is_read_where_nothing_is_spoiled(cli, tmp_path, story):
    """The same records unspoiled are answered by every command: the errors above come from the bodies."""
    made = spoiled(story, "nothing", {})
    cli.ledger = written(tmp_path / "whole", made)
    named = {item.kind: item.id for item in made}
    assert cli("audit", "lineage", named["checkpoint.published"]).code == 0
    assert cli("diff", named["run.launched"], named["run.launched"]).code == 0
