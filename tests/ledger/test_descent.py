"""How runs descend from one another: one heir, forks that share a budget, superseded updates that are kept."""

from __future__ import annotations

import pytest
import samples
from descent import (
    BUDGET,
    begun,
    end,
    launch,
    load,
    next_update,
    plan,
    publish,
    resume,
    resumption,
    step,
)
from world import World

from ledger.errors import EvidenceError
from ledger.state import State


def code_of(call) -> str:
    """The code with which something is refused."""
    with pytest.raises(EvidenceError) as caught:
        call()
    return caught.value.code


def stopped_at(world, checkpoint_step, last):
    """A run with a checkpoint after one step that went on to another and was stopped; run and checkpoint."""
    run = begun(world, checkpoint_step)
    checkpoint = publish(world, run)
    step(world, run, last - checkpoint_step)
    end(world, run)
    return run, checkpoint


def test_an_heir_goes_on_where_its_parent_stood():
    """Its first update follows the checkpoint's, and the parent's spent updates count in its budget."""
    world = World()
    run, checkpoint = stopped_at(world, 1, 2)
    heir = launch(world, plan(world, checkpoint))
    state = world.chain.state.runs[heir.id]
    assert (state.live, state.lineage) == (1, run.id)
    step(world, heir, BUDGET - 1)
    assert code_of(lambda: step(world, heir)) == "BUDGET_EXCEEDED"
    end(world, heir, "completed")
    assert heir.id not in world.chain.state.runs


def test_forks_spend_what_the_lineage_has_left():
    """Stopped at 2 of 4 with a checkpoint at 1: a fork has two updates, and then nobody has any."""
    world = World()
    run, checkpoint = stopped_at(world, 1, 2)
    fork = launch(world, plan(world, checkpoint, fork=True))
    step(world, fork, 2)
    assert code_of(lambda: step(world, fork)) == "BUDGET_EXCEEDED"
    resume(world, run, checkpoint)
    step(world, run)
    assert code_of(lambda: step(world, run)) == "BUDGET_EXCEEDED"


def test_an_heir_may_have_forks_and_heirs_of_its_own():
    """Each generation has one heir; what is left is left to all of them together."""
    world = World()
    _, checkpoint = stopped_at(world, 1, 1)
    heir = launch(world, plan(world, checkpoint))
    step(world, heir)
    second = publish(world, heir)
    end(world, heir)
    assert code_of(lambda: plan(world, checkpoint)) == "HEIR_EXISTS"
    fork = launch(world, plan(world, checkpoint, fork=True))
    step(world, fork)
    end(world, fork)
    grandchild = launch(world, plan(world, second))
    step(world, grandchild)
    assert code_of(lambda: step(world, grandchild)) == "BUDGET_EXCEEDED"


def test_an_heir_that_lost_its_state_resumes_where_it_began():
    """Without a checkpoint of its own an heir is resumed at its parent's, not at step 0."""
    world = World()
    _, checkpoint = stopped_at(world, 2, 2)
    heir = launch(world, plan(world, checkpoint))
    step(world, heir)
    end(world, heir)
    assert code_of(lambda: resume(world, heir)) == "UPDATE_OUT_OF_ORDER"
    resume(world, heir, from_update=2)
    state = world.chain.state.runs[heir.id]
    assert (state.live, sorted(state.superseded)) == (2, ["3"])
    step(world, heir, 2)
    end(world, heir, "completed")


def test_superseded_updates_are_redone_once_each_and_named():
    """Twice in a row back to the checkpoint: each step names the newest update that it redoes."""
    world = World()
    run, checkpoint = stopped_at(world, 1, 3)
    resume(world, run, checkpoint)
    state = world.chain.state.runs[run.id]
    assert sorted(state.superseded) == ["2", "3"]
    second = step(world, run)
    assert second.ref("replays") is not None
    end(world, run)
    resume(world, run, checkpoint)
    assert state.superseded["2"] == second.id
    step(world, run, 3)
    assert state.superseded == {}
    end(world, run, "completed")


def test_without_the_promise_a_redone_update_may_differ():
    """On another kind of machine the state may differ, and the resumption has said so."""
    world = World()
    run = begun(world)
    end(world, run)
    resume(world, run, exact=False)
    draft = next_update(world, run)
    draft.body["after"] = samples.weights(9)
    assert world.admit(draft).ref("replays") is not None


def test_weights_of_a_parent_are_where_the_first_update_begins():
    """A run that starts from a checkpoint's weights cannot begin from others."""
    world = World()
    run = begun(world)
    checkpoint = publish(world, run)
    made = plan(world)
    draft = world.draft("plan.prepared")
    draft.body.update(start="weights")
    draft.refs.update({**made.refs, "parent": checkpoint.id})
    child = launch(world, world.admit(draft))
    assert world.chain.state.runs[child.id].live == 0
    assert code_of(lambda: step(world, child)) == "STATE_BROKEN"
    first = next_update(world, child)
    first.body["before"] = samples.weights(1)
    assert world.admit(first).body["step"] == 1


def test_states_without_lineage_keep_their_bytes():
    """What came later stands in a snapshot only where it says something, and is read back."""
    world = World()
    begun(world)
    plain = world.chain.state.to_bytes()
    assert b"lineage" not in plain
    assert b"superseded" not in plain
    run, checkpoint = stopped_at(world, 1, 2)
    resume(world, run, checkpoint)
    state = world.chain.state
    assert State.from_bytes(state.to_bytes()).to_bytes() == state.to_bytes()
    assert State.from_bytes(state.to_bytes()).runs[run.id].superseded.keys() == {"2"}


def test_an_attempt_that_begins_at_a_checkpoint_loads_it_once():
    """Until it has said so a snapshot holds that it has not; afterwards, and once it is over, nothing is left of that."""
    world = World()
    run, checkpoint = stopped_at(world, 1, 2)
    for over in (False, True):
        world.admit(resumption(run, checkpoint))
        state = world.chain.state
        assert b'"unrestored":true' in state.to_bytes()
        assert State.from_bytes(state.to_bytes()).runs[run.id].unrestored
        assert code_of(lambda: step(world, run)) == "STATE_NOT_RESTORED"
        if not over:
            load(world, run, checkpoint)
            step(world, run)
        end(world, run)
        assert b"unrestored" not in world.chain.state.to_bytes()


def test_a_run_begun_again_from_nothing_loads_nothing():
    """A fresh plan's run that is resumed without a checkpoint has nothing to load."""
    world = World()
    run = begun(world)
    end(world, run)
    world.admit(resumption(run))
    assert step(world, run).ref("replays") is not None


def test_a_run_may_keep_a_providers_states():
    """A scheme is kept from the first update on, and stands in a snapshot where it is not the usual one."""
    world = World()
    world.add("run.launched")
    before, after, next_one = (
        {"scheme": "provider_policy", "value": f"policy-{number}"} for number in range(3)
    )
    world.add("update.acknowledged", before=before, after=after)
    run = world.live_run()[1]
    assert (run.state(), run.scheme) == (after, "provider_policy")
    assert State.from_bytes(world.chain.state.to_bytes()) == world.chain.state
    tensors = {"scheme": "tensors", "value": after["value"]}
    changed = {"before": tensors, "after": samples.weights(2)}
    assert code_of(lambda: world.add("update.acknowledged", **changed)) == "STATE_BROKEN"
    world.add("checkpoint.published", state=after, hosted="a provider", files=[])
    world.add("update.acknowledged", before=after, after=next_one)


def test_a_fork_may_begin_on_a_path_that_was_left():
    """A checkpoint that the live path no longer goes through has no heir, but a fork may try it."""
    world = World()
    run = begun(world, 2)
    checkpoint = publish(world, run)
    end(world, run)
    resume(world, run)
    end(world, run)
    assert code_of(lambda: plan(world, checkpoint)) == "CHECKPOINT_SUPERSEDED"
    assert code_of(lambda: world.admit(resumption(run, checkpoint))) == "CHECKPOINT_SUPERSEDED"
    assert launch(world, plan(world, checkpoint, fork=True)).kind == "run.launched"
