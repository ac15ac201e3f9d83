"""Runs that go on from others' checkpoints, for tests of the rules: parents, heirs, forks, resumptions."""

from __future__ import annotations

from collections.abc import Callable

import samples
from world import Draft, World

from ledger.record import Record

BUDGET = 4
INHERITED = ("method", "settings", "seeds", "libraries", "code")


def plan(world: World, parent: Record | None = None, **body: object) -> Record:
    """A plan with room for some updates; exactly from a checkpoint where one is given."""
    draft = world.draft("plan.prepared")
    draft.body["budget_updates"] = BUDGET
    if parent is not None:
        go_on(world, draft, parent)
    draft.body.update(body)
    return world.admit(draft)


def go_on(world: World, draft: Draft, parent: Record) -> None:
    """Make a draft of a plan go on exactly from a checkpoint."""
    run = world.by_id[str(parent.ref("run"))]
    old = world.by_id[str(run.ref("plan"))]
    draft.body.update({name: old.body[name] for name in INHERITED})
    draft.body.update(start="exact", budget_updates=old.body["budget_updates"])
    draft.refs.update(parent=parent.id, model=old.refs["model"], split=old.refs["split"])
    draft.refs["audit"] = old.refs["audit"]


def launch(world: World, of: Record, *, loaded: bool = True) -> Record:
    """Launch a plan; where it begins at a checkpoint, that is loaded unless told otherwise."""
    seen = world.seen().model_dump()
    body = samples.body("run.launched", seen=seen)
    run = world.admit(Draft("run.launched", body, {"plan": of.id}))
    if loaded:
        load(world, run)
    return run


def load(world: World, run: Record, checkpoint: Record | None = None) -> None:
    """Say that an attempt loaded its checkpoint, or the parent of its plan where it begins again; nothing where it has none."""
    of = world.by_id[str(run.ref("plan"))]
    origin = checkpoint or world.by_id.get(str(of.ref("parent")))
    if origin is None:
        return
    weights = checkpoint is None and of.body["start"] == "weights"
    body = samples.body(
        "checkpoint.restored",
        mode="weights" if weights else "exact",
        state=origin.body["state"],
        digests={item["path"]: item["digest"] for item in origin.body["files"]},
        fork=of.body.get("fork", False),
    )
    refs = {"run": run.id, "checkpoint": origin.id}
    world.admit(Draft("checkpoint.restored", body, refs))


def begun(world: World, updates: int = 1) -> Record:
    """A run of a plan with budget, that many updates in; its launch."""
    run = launch(world, plan(world))
    step(world, run, updates)
    return run


def step(world: World, run: Record, updates: int = 1) -> Record | None:
    """More updates of a run, each redone one named as such; the newest."""
    made = None
    for _ in range(updates):
        made = world.admit(next_update(world, run))
    return made


def next_update(world: World, run: Record) -> Draft:
    """The draft of a run's next update, its batch built."""
    state = world.chain.state.runs[run.id]
    number = state.live + 1
    body = samples.body("batch.built", step=number, digest=samples.digest(f"batch {number}"))
    batch = world.admit(Draft("batch.built", body, {"run": run.id, "split": state.split}))
    refs = {"run": run.id, "batch": [batch.id]}
    if state.last_update is not None:
        refs["previous"] = state.last_update
    if str(number) in state.superseded:
        refs["replays"] = state.superseded[str(number)]
    states = {"before": samples.weights(number - 1), "after": samples.weights(number)}
    body = samples.body("update.acknowledged", step=number, **states)
    return Draft("update.acknowledged", body, refs)


def publish(world: World, run: Record, **body: object) -> Record:
    """A checkpoint of a run where it stands."""
    state = world.chain.state.runs[run.id]
    made = samples.body(
        "checkpoint.published",
        step=state.live,
        state=samples.weights(state.live),
        spent_updates=state.live,
        spent_datums=state.datums,
        **body,
    )
    refs = {"run": run.id, "update": str(state.last_update)}
    return world.admit(Draft("checkpoint.published", made, refs))


def end(world: World, run: Record, outcome: str = "stopped") -> Record:
    """End a run with its own counters."""
    state = world.chain.state.runs[run.id]
    counters = {"groups": 0, "datums": state.datums, "updates": state.live, "outcomes": 0}
    body = samples.body("run.ended", counters=counters, outcome=outcome)
    refs = {"run": run.id}
    if state.last_update is not None:
        refs["last_update"] = state.last_update
    if outcome == "completed":
        refs["checkpoint"] = publish(world, run).id
        body["weights"] = samples.weights_left(state.live)
    return world.admit(Draft("run.ended", body, refs))


def resumption(run: Record, checkpoint: Record | None = None, **body: object) -> Draft:
    """The draft of a run's resumption."""
    at = checkpoint.body["step"] if checkpoint else 0
    refs = {"run": run.id} | ({"checkpoint": checkpoint.id} if checkpoint else {})
    return Draft("run.resumed", samples.body("run.resumed", **{"from_update": at, **body}), refs)


def resume(world: World, run: Record, checkpoint: Record | None = None, **body: object) -> Record:
    """Resume a run, and load what it goes on from."""
    made = world.admit(resumption(run, checkpoint, **body))
    load(world, run, checkpoint)
    return made


# --- what spoils a good draft ---------------------------------------------------------------------

Spoil = Callable[[World, Draft], None]


def continued(
    *,
    ended: bool = True,
    heirs: int = 0,
    spend: bool = False,
    model: bool = False,
    split: bool = False,
    **changes: object,
) -> Spoil:
    """Make the plan go on exactly from a run's checkpoint, then change what is said."""

    def spoil(world: World, draft: Draft) -> None:
        run = begun(world)
        checkpoint = publish(world, run)
        if spend:
            step(world, run, BUDGET - 1)
        if ended:
            end(world, run, "completed" if spend else "stopped")
        for _ in range(heirs):
            end(world, launch(world, plan(world, checkpoint)))
        go_on(world, draft, checkpoint)
        if model:
            draft.refs["model"] = world.add("model.registered").id
        if split:
            draft.refs["split"] = world.add("split.declared", groups=7).id
            draft.refs["audit"] = world.add("leakage.audited").id
        draft.body.update(changes)

    return spoil


def incomplete(world: World, draft: Draft) -> None:
    """Go on exactly from a checkpoint without its optimizer."""
    run = begun(world)
    there = {**samples.body("checkpoint.published")["completeness"], "optimizer": False}
    checkpoint = publish(world, run, completeness=there)
    end(world, run)
    go_on(world, draft, checkpoint)


def like_another(*, parent: bool = False, **changes: object) -> Spoil:
    """Say that the plan is made like another, then change it."""

    def spoil(world: World, draft: Draft) -> None:
        run = begun(world)
        other = world.by_id[str(run.ref("plan"))]
        draft.refs.update(like=other.id, model=other.refs["model"], split=other.refs["split"])
        draft.refs["audit"] = other.refs["audit"]
        draft.body.update({name: other.body[name] for name in INHERITED})
        draft.body.update(changes)
        if parent:
            draft.refs["parent"] = publish(world, run).id
            draft.body["start"] = "weights"

    return spoil


def replace(draft: Draft, made: Draft) -> None:
    """Let a draft be another."""
    draft.body.clear()
    draft.body.update(made.body)
    draft.refs.clear()
    draft.refs.update(made.refs)


def resumed_superseded(world: World, draft: Draft) -> None:
    """Go back to the start, then resume from a checkpoint of the path that was left."""
    run = begun(world, 2)
    checkpoint = publish(world, run)
    end(world, run)
    resume(world, run)
    end(world, run)
    replace(draft, resumption(run, checkpoint))


def resumed_incomplete(world: World, draft: Draft) -> None:
    """Resume from a checkpoint that is weights only."""
    run = begun(world)
    nothing = dict.fromkeys(samples.body("checkpoint.published")["completeness"], False)
    checkpoint = publish(world, run, completeness={**nothing, "weights": True})
    end(world, run)
    replace(draft, resumption(run, checkpoint))


def resumed_without_files(world: World, draft: Draft) -> None:
    """Resume from a checkpoint that calls itself whole and has no file."""
    run = begun(world)
    checkpoint = publish(world, run, files=[])
    end(world, run)
    replace(draft, resumption(run, checkpoint))


def unloaded(*, launched: bool = False, start: str = "exact") -> Spoil:
    """Make the draft the first batch of an attempt that begins at a checkpoint and loaded nothing."""

    def spoil(world: World, draft: Draft) -> None:
        run = begun(world)
        checkpoint = publish(world, run)
        end(world, run)
        if launched and start == "exact":
            run = launch(world, plan(world, checkpoint), loaded=False)
        elif launched:
            run = launch(world, from_weights(world, checkpoint), loaded=False)
        else:
            world.admit(resumption(run, checkpoint))
        number = world.chain.state.runs[run.id].live + 1
        draft.body["step"] = number
        draft.refs.update(run=run.id, split=world.chain.state.runs[run.id].split)

    return spoil


def from_weights(world: World, parent: Record) -> Record:
    """A plan that begins at a checkpoint's weights."""
    draft = world.draft("plan.prepared")
    draft.body["start"] = "weights"
    draft.refs["parent"] = parent.id
    return world.admit(draft)


def without_files(world: World, draft: Draft) -> None:
    """Go on exactly from a checkpoint that has no file."""
    run = begun(world)
    checkpoint = publish(world, run, files=[])
    end(world, run)
    go_on(world, draft, checkpoint)


def resumed_after_heir(world: World, draft: Draft) -> None:
    """Resume a run from which another went on."""
    run = begun(world)
    checkpoint = publish(world, run)
    end(world, run)
    launch(world, plan(world, checkpoint))
    replace(draft, resumption(run, checkpoint))


def heir_launched(world: World, draft: Draft) -> None:
    """Prepare two exact plans from one checkpoint, let the run of one end and then try the other."""
    run = begun(world)
    checkpoint = publish(world, run)
    end(world, run)
    first, second = (plan(world, checkpoint) for _ in range(2))
    end(world, launch(world, first))
    draft.refs["plan"] = second.id


def redo(world: World, draft: Draft) -> None:
    """Make the draft the honest redoing of a superseded update."""
    run = begun(world)
    end(world, run)
    resume(world, run)
    replace(draft, next_update(world, run))


def unnamed_redo(world: World, draft: Draft) -> None:
    """Redo an update and do not say so."""
    redo(world, draft)
    del draft.refs["replays"]


def redone_otherwise(world: World, draft: Draft) -> None:
    """Redo an update and come to other weights, where the same were promised."""
    redo(world, draft)
    draft.body["after"] = samples.weights(7)


def of_preferences(world: World, draft: Draft) -> None:
    """Make the draft the first update of a run on preferences, and take its gradient away."""
    of = plan(world, method="dpo")
    made = next_update(world, launch(world, of))
    draft.body = {**made.body, "gradient_norm": "0.0"}
    draft.refs = made.refs


__all__ = [
    "BUDGET",
    "begun",
    "continued",
    "end",
    "from_weights",
    "heir_launched",
    "incomplete",
    "launch",
    "like_another",
    "load",
    "next_update",
    "of_preferences",
    "plan",
    "publish",
    "redone_otherwise",
    "resume",
    "resumed_after_heir",
    "resumed_incomplete",
    "resumed_superseded",
    "resumed_without_files",
    "resumption",
    "step",
    "unloaded",
    "unnamed_redo",
    "without_files",
]
