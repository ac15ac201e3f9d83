"""The questions that come with the ledger: each one's answer on a small ledger whose facts are known."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
import samples
from descent import end, launch, next_update, plan, publish, resume
from world import Draft, World, key

from ledger.query import engine
from ledger.query.named_queries import find, names
from ledger.query.names import READ
from ledger.query.tables import Loaded, load
from ledger.record import Record

TASKS = ("easy", "hard")


@dataclass
class Told:
    """A ledger whose story is known, and the records that it is about by name."""

    world: World
    there: dict[str, Record] = field(default_factory=dict)
    loaded: Loaded = field(default_factory=Loaded)

    def id(self, name: str) -> str:
        """The id of a record of the story."""
        return self.there[name].id


def _train(told: Told) -> None:
    """A supervised run that went back once, then a fork of it, then a plan from its weights."""
    world, there = told.world, told.there
    there["run"] = launch(world, plan(world))
    there["first"] = _step(world, there["run"], "2.5")
    there["checkpoint"] = publish(world, there["run"])
    there["lost"] = _step(world, there["run"], "1.0")
    there["late"] = publish(world, there["run"])
    there["stopped"] = end(world, there["run"])
    there["resumed"] = resume(world, there["run"], there["checkpoint"])
    there["redone"] = _step(world, there["run"], "2.0")
    there["second"] = publish(world, there["run"])
    there["ended"] = end(world, there["run"])
    there["plan"] = world.by_id[str(there["run"].ref("plan"))]
    there["fork"] = plan(world, there["second"], fork=True)
    there["fork run"] = launch(world, there["fork"])
    _step(world, there["fork run"], "3.0")
    there["fork checkpoint"] = publish(world, there["fork run"])
    there["fork ended"] = end(world, there["fork run"])


def _step(world: World, run: Record, loss: str) -> Record:
    """A run's next update, at a loss of one's choice."""
    draft = next_update(world, run)
    draft.body["loss"] = loss
    return world.admit(draft)


def _reinforce(told: Told) -> None:
    """A run on rollouts: an update with signal, then a batch whose groups had none."""
    world, there = told.world, told.there
    draft = world.draft("plan.prepared")
    draft.body.update(method="rl", settings=_RL, budget_updates=2)
    draft.refs["reward"] = world.need("reward.audited").id
    there["rl run"] = run = launch(world, world.admit(draft))
    groups = [_group(world, task, "1.0") for task in TASKS]
    batch = _batch(world, run, groups)
    refs = {"run": run.id, "batch": [batch.id]}
    update = world.admit(Draft("update.acknowledged", samples.body("update.acknowledged"), refs))
    there["silent"] = _batch(world, run, [_group(world, "easy", "0.0")])
    world.admit(world.draft("rollout.rejected"))
    there["rl update"] = update


_RL = {"lora_dropout": "0.0", "reference": "start_adapter", "kl_coefficient": "0.1"}


def _group(world: World, task: str, advantage: str) -> Record:
    draft = world.draft("rollout.group")
    rewards = ["1.0", "0.0"] if advantage != "0.0" else ["0.5", "0.5"]
    advantages = [advantage, "-1.0" if advantage != "0.0" else "0.0"]
    draft.body.update(task=samples.digest(task), rewards=rewards, advantages=advantages)
    return world.admit(draft)


def _batch(world: World, run: Record, groups: list[Record]) -> Record:
    number = world.chain.state.runs[run.id].live + 1
    body = samples.body(
        "batch.built", step=number, rows=[], digest=samples.digest(f"rl batch {number}")
    )
    return world.admit(
        Draft("batch.built", body, {"run": run.id, "group": [item.id for item in groups]})
    )


def _judge(told: Told) -> None:
    """A checkpoint that was evaluated, compared and promoted, and the promotion withdrawn."""
    world, there = told.world, told.there
    arm = Draft("arm.transcribed", samples.body("arm.transcribed"))
    arm.refs = {"protocol": world.need("protocol.registered").id, "checkpoint": there["second"].id}
    there["arm"] = world.admit(arm)
    passes = []
    for order in ("forward", "reversed"):
        draft = world.draft("judge.passed")
        draft.body.update(order=order, undecided=1)
        draft.refs["arm"] = there["arm"].id
        passes.append(world.admit(draft))
    body = samples.body("evaluation.completed", flips=[1, 2])
    refs = {
        "protocol": str(there["arm"].ref("protocol")),
        "arm": [there["arm"].id],
        "pass": [item.id for item in passes],
    }
    there["evaluation"] = world.admit(Draft("evaluation.completed", body, refs))
    there["comparison"] = world.add("comparison.made")
    there["promotion"] = world.add("promotion.granted")
    there["withdrawal"] = world.add("promotion.withdrawn")
    there["refusal"] = world.add("promotion.refused")
    world.add("judge.qualified")
    world.add("check.reproduced")


def _look(told: Told) -> None:
    """A test protocol, and a checkpoint that answered it under a review."""
    world, there = told.world, told.there
    draft = world.draft("protocol.registered")
    draft.body.update(role="test", name="the test")
    there["test"] = world.admit(draft)
    review = world.draft("test.reviewed")
    review.refs["protocol"] = there["test"].id
    review.statement = None
    there["review"] = world.admit(review)
    nomination = world.by_id[str(there["review"].ref("nomination"))]
    arm = Draft("arm.transcribed", samples.body("arm.transcribed"))
    arm.refs = {
        "protocol": there["test"].id,
        "checkpoint": nomination.body["chosen"],
        "review": there["review"].id,
    }
    there["look"] = world.admit(arm)


@pytest.fixture(scope="module")
def told() -> Told:
    """The story, and its tables."""
    made = Told(World())
    world = made.world
    made.there["source"] = world.need("source.ingested")
    _train(made)
    _reinforce(made)
    _judge(made)
    _look(made)
    world.add("blob.withheld")
    enrolled = world.enroll("temporary", ["train"])
    body = samples.body("key.revoked", key=enrolled.body["key"], from_seq=enrolled.seq)
    revocation = Draft("key.revoked", body)
    revocation.stater = world.office("root")
    world.admit(revocation)
    made.there["open plan"] = world.add("plan.prepared")
    world.add("source.ingested", name="unused", licence="CC0-1.0")
    made.there["unread"] = world.add("dataset.parsed", name="unread", accepted=9)
    found = [(item.seq, b"", item.signature, item.entry) for item in world.records]
    made.loaded = load(found, frozenset(READ))
    return made


def answer(told: Told, name: str, **parameters: str) -> list[dict[str, Any]]:
    """A question's answer, row by row."""
    return run(told, find(name).sql, parameters)


def run(told: Told, sql: str, parameters: dict[str, str]) -> list[dict[str, Any]]:
    """A statement's answer, as the query's own process makes it."""
    database = engine.connect()
    wanted = engine.check(database, sql)
    tables = {table: told.loaded.tables[table] for table in wanted.tables}
    engine.put(database, Loaded(tables), wanted.views)
    engine.lock(database, 512 << 20)
    found = engine.run(database, sql, parameters, 10_000)
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


TIME = "2026-01-01T00:{:02d}:{:02d}"


def at(told: Told, name: str) -> str:
    """The time of a record of the story: a second a seq."""
    return TIME.format(*divmod(told.there[name].seq, 60))


def seconds(told: Told, start: str, stop: str) -> float:
    """Seconds from one record to another."""
    return float(told.there[stop].seq - told.there[start].seq)


def of_kind(told: Told, kind: str) -> list[Record]:
    """Every record of a kind."""
    return [item for item in told.world.records if item.kind == kind]


def expected(told: Told) -> dict[str, list[dict[str, Any]]]:
    """Of each question the rows due, with the columns that the story decides."""
    who, run, forked, rl = told.id, told.id("run"), told.id("fork run"), told.id("rl run")
    small, at_2 = "a small model", "checkpoint at step 2"
    return {
        "comparisons": [
            {
                "comparison": who("comparison"),
                "gain": 0.5,
                "mcnemar_p": 1.0,
                "candidate_only": 1,
                "baseline_only": 0,
                "eligible": True,
                "recommendation": "none",
            }
        ],
        "curve": [
            {"step": 1, "loss": 2.5, "trainable_tokens": 10, "update": who("first")},
            {"step": 2, "loss": 2.0, "trainable_tokens": 10, "update": who("redone")},
        ],
        "data": [
            {"name": "dialogues", "accepted": 4, "licences": "Apache-2.0"},
            {"name": "unread", "accepted": 9, "licences": "CC0-1.0"},
        ],
        "evaluations": [
            {"answered_by": at_2, "success": 1, "success_rate": 0.5, "undecided_share": 0.0},
            {"answered_by": small, "success_rate": 0.5},
            {"answered_by": small, "success_rate": 0.5},
        ],
        "family_rewards": [
            {"family": "refund", "step": 0, "answered_by": small, "success": 1, "cases": 2},
            {"family": "refund", "step": 0, "answered_by": small, "success_rate": 0.5},
            {"family": "refund", "step": 2, "evaluation": who("evaluation"), "success_rate": 0.5},
        ],
        "forks": [
            {
                "checkpoint": who("second"),
                "run": run,
                "step": 2,
                "start": "exact",
                "fork": True,
                "plan": who("fork"),
                "next_run": forked,
            }
        ],
        "gate_lines": [{"name": "seeds", "value": "6", "threshold": "6", "passed": True}],
        "judge_flips": [
            {"evaluation": who("evaluation"), "flips": 1, "compared": 2, "flip_rate": 0.5}
        ],
        "judges": [
            {"judge": small, "right": 63, "total": 64, "accuracy": 0.984375, "qualified": True}
        ],
        "judging": [
            {"pass_kind": "criteria_reversal", "order": order, "undecided_share": share}
            for share in (0.5, 0.0, 0.0)
            for order in ("forward", "reversed")
        ],
        "leaks": [{"verdict": "clean", "exact": 0, "accepted": False}],
        "licences": [
            {
                "name": "dialogues",
                "licence": "Apache-2.0",
                "plans": 4,
                "withheld": True,
                "bytes": 12,
            },
            {"name": "unused", "licence": "CC0-1.0", "plans": 0, "withheld": False},
        ],
        "losses": [
            {"run": run, "updates": 2, "first_loss": 2.5, "least_loss": 2.0, "last_loss": 2.0},
            {"run": forked, "updates": 1, "step_of_least": 3, "first_loss": 3.0},
            {"run": rl, "updates": 1, "first_loss": 2.5},
        ],
        "no_signal": [{"run": rl, "step": 2, "batch": who("silent"), "groups": 1, "update": None}],
        "promoted": [
            {
                "promotion": who("promotion"),
                "checkpoint": who("fork checkpoint"),
                "reviewers": "reviewer",
                "withdrawn": at(told, "withdrawal"),
                "why_withdrawn": "a source was withdrawn",
            }
        ],
        "refusals": [{"refusal": who("refusal"), "code": "STUDY_MISSING", "message": "no study"}],
        "rejected": [{"run": rl, "code": "reward_failed", "rejected": 1, "kept": 3}],
        "reruns": [{"what": "update", "record": who("rl update"), "agreed": True, "position": 0}],
        "run_times": [
            {
                "run": run,
                "attempts": 2,
                "launched": at(told, "run"),
                "working_s": seconds(told, "run", "stopped") + seconds(told, "resumed", "ended"),
                "updates": 3,
            },
            {
                "run": forked,
                "attempts": 1,
                "seconds_per_update": seconds(told, "fork run", "fork ended"),
            },
            {"run": rl, "attempts": 1, "working_s": seconds(told, "rl run", "rl update")},
        ],
        "runs": [
            {"run": run, "updates": 2, "superseded": 1, "outcome": "stopped", "budget": 4},
            {"run": forked, "updates": 1, "superseded": 0, "start": "exact"},
            {"run": rl, "method": "rl", "updates": 1, "outcome": "not ended", "ended": None},
        ],
        "seen": [
            {"row_digest": digest, "times": 3, "first_step": 1, "last_step": 3, "runs": 2}
            for digest in sorted(samples.digest(name) for name in ("row a", "row b"))
        ],
        "settings": [
            {"name": "learning_rate", "value": "0.0001"},
            {"name": "lora_dropout", "value": "0.0"},
            {"name": "name", "value": told.there["plan"].body["settings"]["name"]},
        ],
        "superseded": [
            {
                "run": run,
                "step": 2,
                "update": who("lost"),
                "redone_by": who("redone"),
                "same_state": True,
            }
        ],
        "task_rewards": [
            {
                "policy_step": step,
                "task": samples.digest(task),
                "samples": 2,
                "mean_reward": 0.5,
                "most": most,
            }
            for step, task, most in sorted(
                ((0, "easy", 1.0), (0, "hard", 1.0), (1, "easy", 0.5)),
                key=lambda row: (row[0], samples.digest(row[1])),
            )
        ],
        "test_looks": [
            {
                "protocol_name": "the test",
                "answered_by": "checkpoint at step 3",
                "who": who("fork checkpoint"),
                "review": who("review"),
                "arm": who("look"),
                "time": at(told, "look"),
            }
        ],
        "unfinished": [{"what": "run", "id": rl}, {"what": "plan", "id": who("open plan")}],
        "unread": [{"dataset": who("unread"), "accepted": 9}],
        "withheld": [{"record": who("source"), "kind": "source.ingested", "why": "personal data"}],
    }


PARAMETERS = {
    "curve": {"run": "run"},
    "impact": {"source": "source"},
    "seen": {"checkpoint": "fork checkpoint"},
    "settings": {"plan": "plan"},
}
COUNTED = ("impact", "key_windows", "kinds", "storage", "writers")
"""Questions whose answers are counts over every record: they are counted again below."""


def test_every_question_has_an_answer_here(told):
    """No question is without its facts, and each asks for the parameters that its header names."""
    assert sorted([*expected(told), *COUNTED]) == names()
    assert len(names()) >= 20
    for name in names():
        query = find(name)
        assert [item.name for item in query.parameters] == list(PARAMETERS.get(name, {}))
        assert query.meaning.endswith(".")
        assert query.units
        assert "--" not in query.sql


@pytest.mark.parametrize("name", [name for name in names() if name not in COUNTED])
def test_a_question_has_its_known_answer(told, name):
    """The rows are those that the story decides, in order."""
    parameters = {key: told.id(record) for key, record in PARAMETERS.get(name, {}).items()}
    wanted = expected(told)[name]
    found = answer(told, name, **parameters)
    shown = [{key: row[key] for key in due} for row, due in zip(found, wanted, strict=False)]
    assert shown == wanted
    assert len(found) == len(wanted)


@pytest.mark.parametrize(
    ("checkpoint", "times", "last_step"),
    [("checkpoint", 1, 1), ("late", 2, 2), ("second", 2, 2), ("fork checkpoint", 3, 3)],
)
def test_what_an_adapter_saw_is_its_own_path(told, checkpoint, times, last_step):
    """A lost update counts for a checkpoint that was published on it and for no later one; an ancestor's always does."""
    rows = answer(told, "seen", checkpoint=told.id(checkpoint))
    assert [(row["times"], row["last_step"]) for row in rows] == [(times, last_step)] * 2


def test_the_impact_of_a_source_is_its_descent(told):
    """Every record that rests on the source by refs is counted, those that only speak of it are not."""
    reached = {told.id("source")}
    kinds: Counter[str] = Counter()
    for record in told.world.records:
        speaks = record.kind in {"note.added", "blob.withheld", "promotion.withdrawn"}
        if not speaks and reached & {ref for _, ref in record.all_refs()}:
            reached.add(record.id)
            kinds[record.kind] += 1
    found = answer(told, "impact", source=told.id("source"))
    assert {row["kind"]: row["records"] for row in found} == kinds
    assert kinds["promotion.granted"] == 1


def test_counts_over_all_records_are_right(told):
    """Kinds, bytes and writers are counted once more from the records themselves."""
    records = told.world.records
    kinds = Counter(item.kind for item in records)
    assert {row["kind"]: row["records"] for row in answer(told, "kinds")} == kinds
    sizes: Counter[str] = Counter()
    for item in records:
        sizes[item.kind] += len(item.entry)
    stored = answer(told, "storage")
    assert {row["kind"]: row["entry_bytes"] for row in stored} == sizes
    assert sum(row["share"] for row in stored) == pytest.approx(1.0)
    writers = Counter((item.actor, item.kind) for item in records)
    found = answer(told, "writers")
    assert {(row["actor"], row["kind"]): row["records"] for row in found} == writers
    assert {row["owner"] for row in found} == {"root", "writer", "auditor"}


def test_keys_have_their_windows(told):
    """A key that was revoked from its enrolment on is suspect from there; the others are open."""
    rows = {row["owner"]: row for row in answer(told, "key_windows")}
    enrolled, revoked = of_kind(told, "key.enrolled")[-1], of_kind(told, "key.revoked")[0]
    assert (rows["temporary"]["suspect_from"], rows["temporary"]["revoked_at"]) == (
        enrolled.seq,
        revoked.seq,
    )
    assert rows["temporary"]["reason"] == "its owner left"
    assert (rows["writer"]["revoked_at"], rows["writer"]["roles"][0]) == (None, "ingest")
    assert rows["writer"]["key"] == key("writer").id


def test_a_question_without_its_condition_gives_another_answer(told):
    """The story can tell a wrong question from a right one: with superseded updates let in, the curve has a step more."""
    query = find("curve")
    assert "AND NOT u.superseded" in query.sql
    wrong = query.sql.replace("AND NOT u.superseded", "")
    assert len(run(told, wrong, {"run": told.id("run")})) == 3
    assert len(answer(told, "curve", run=told.id("run"))) == 2
