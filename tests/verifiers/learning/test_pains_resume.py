"""Public reports about resuming, retrying and telling updates apart: for each a ledger that is refused, and the corrected one.

Each row names its report. The ledgers are whole chains in memory under every rule; what a checkpoint's files hold is derived
from their bytes. Reports about asynchronous samplers and their weights belong to reinforcement learning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import descent
import pytest
import samples
from test_learner_state import STEP, learner, parts, whole
from world import Draft, World

from ledger.errors import EvidenceError
from ledger.record import Record
from verifiers.learning.learner_state import PARTS

SAVED_AT = 2


@dataclass(frozen=True)
class Pain:
    """A report: what fails and with which code, and the same mended, which must pass (no code)."""

    report: str
    what: str
    code: str
    failing: Callable[[], str | None]
    corrected: Callable[[], str | None]


def refusal(work: Callable[[], Any]) -> str | None:
    """The code with which something is refused, or None."""
    try:
        work()
    except EvidenceError as error:
        return error.code
    return None


def broken_off(updates: int = SAVED_AT, **checkpoint: Any) -> tuple[World, Record, Record]:
    """A run that saved after two updates, took more, and was stopped: world, launch, checkpoint."""
    world = World()
    run = descent.launch(world, descent.plan(world, budget_updates=2 * SAVED_AT + 5))
    descent.step(world, run, SAVED_AT)
    saved = descent.publish(world, run, **checkpoint)
    descent.step(world, run, updates - SAVED_AT)
    descent.end(world, run)
    return world, run, saved


def resumed(updates: int = SAVED_AT) -> tuple[World, Record]:
    """The same, gone on with from its checkpoint."""
    world, run, saved = broken_off(updates)
    descent.resume(world, run, saved)
    return world, run


# --- 1, 2: what was done is not done again ----------------------------------------------------------


def _next_feeds(batch: Callable[[World, Draft], list[str]]) -> str | None:
    world, run = resumed()
    draft = descent.next_update(world, run)
    draft.refs["batch"] = batch(world, draft)
    return refusal(lambda: world.admit(draft))


def _last_saved_batch(world: World, _draft: Draft) -> list[str]:
    return [item.id for item in world.records if item.kind == "batch.built"][
        SAVED_AT - 1 : SAVED_AT
    ]


def _redone_with(batch_step: int) -> str | None:
    """The step after the checkpoint, done before the break, is redone with the rows of some step."""
    world, run = resumed(updates=SAVED_AT + 1)
    draft = descent.next_update(world, run)
    digest = samples.digest(f"batch {batch_step}")
    body = samples.body("batch.built", step=SAVED_AT + 1, digest=digest)
    refs = {"run": run.id, "split": world.chain.state.runs[run.id].split}
    draft.refs["batch"] = [world.admit(Draft("batch.built", body, refs)).id]
    return refusal(lambda: world.admit(draft))


def _retried(*, recorded_again: bool) -> str | None:
    """The reply to an update is lost and the request sent again: the record of it may stand once."""
    world = World()
    run = descent.begun(world, updates=1)
    draft = descent.next_update(world, run)
    first = world.admit(draft)
    if recorded_again:
        return refusal(lambda: world.admit(Draft(draft.kind, draft.body, draft.refs)))
    after = descent.next_update(world, run)
    assert after.refs["previous"] == first.id
    return refusal(lambda: world.admit(after))


# --- 3: what was not done is not claimed -----------------------------------------------------------


def _ends(outcome: str, **more: Any) -> str | None:
    """Two epochs of two batches were planned, one was trained on, and the loader said that it was exhausted."""
    world = World()
    run = descent.launch(world, descent.plan(world, budget_updates=4))
    descent.step(world, run, 2)
    draft = world.draft("run.ended")
    draft.body.update(outcome=outcome, **more)
    return refusal(lambda: world.admit(draft))


# --- 4, 6, 8: a state with a part left out is no state ----------------------------------------------


def _resumes_from(files: dict[str, bytes]) -> str | None:
    """A checkpoint of these files: what its bytes hold is what its record says, and whether a run goes on from it."""
    world, run, saved = broken_off(completeness=parts(files))
    return refusal(lambda: descent.resume(world, run, saved))


def _without(name: str) -> dict[str, bytes]:
    return {path: data for path, data in whole().items() if path != name}


def _restores(*, optimizer: str | None) -> str | None:
    """A restored state whose record says with which optimizer file; the checkpoint has one of its own."""
    optimizer_file = {"path": "optimizer.safetensors", "size": 9, "digest": samples.digest("Adam")}
    listed = [*samples.body("checkpoint.published")["files"], optimizer_file]
    world, run, saved = broken_off(files=listed)
    descent.resume(world, run, saved)
    said = {} if optimizer is None else {"optimizer.safetensors": samples.digest(optimizer)}
    body = samples.body("checkpoint.restored", state=saved.body["state"], digests=said)
    refs = {"run": run.id, "checkpoint": saved.id}
    return refusal(lambda: world.admit(Draft("checkpoint.restored", body, refs)))


# --- 5: going on is going on exactly ----------------------------------------------------------------


def _redoes_five(*, wrong_at: int | None) -> str | None:
    """Killed five updates after its checkpoint, the run redoes all five; perhaps one comes out otherwise."""
    world, run = resumed(updates=SAVED_AT + 5)
    for number in range(SAVED_AT + 1, SAVED_AT + 6):
        draft = descent.next_update(world, run)
        if number == wrong_at:
            draft.body["after"] = samples.weights(99)
        code = refusal(lambda draft=draft: world.admit(draft))
        if code is not None:
            return code
    return None


# --- 7: the data are the run's ----------------------------------------------------------------------


def _batch_of(split: Callable[[World, str], str]) -> str | None:
    world, run = resumed()
    own = world.chain.state.runs[run.id].split
    body = samples.body("batch.built", step=SAVED_AT + 1)
    refs = {"run": run.id, "split": split(world, own)}
    return refusal(lambda: world.admit(Draft("batch.built", body, refs)))


def _other_split(world: World, _own: str) -> str:
    return world.add("split.declared", groups=5).id


def _continued_on(*, other: bool) -> str | None:
    """A plan that goes on exactly from the checkpoint, perhaps with another data set."""
    world, _, saved = broken_off()
    draft = world.draft("plan.prepared")
    descent.go_on(world, draft, saved)
    if other:
        draft.refs["split"] = _other_split(world, "")
        audit = samples.body("leakage.audited")
        refs = {"split": draft.refs["split"]}
        draft.refs["audit"] = world.admit(Draft("leakage.audited", audit, refs)).id
    return refusal(lambda: world.admit(draft))


# --- 9: going on begins where the checkpoint stands -------------------------------------------------


def _resumes_at(step: int) -> str | None:
    world, run, saved = broken_off()
    return refusal(lambda: descent.resume(world, run, saved, from_update=step))


def _goes_on_with(step: int) -> str | None:
    world, run = resumed()
    body = samples.body("batch.built", step=step)
    refs = {"run": run.id, "split": world.chain.state.runs[run.id].split}
    return refusal(lambda: world.admit(Draft("batch.built", body, refs)))


def _exact_plan(*, parent: bool) -> str | None:
    world, _, saved = broken_off()
    draft = world.draft("plan.prepared")
    descent.go_on(world, draft, saved)
    if not parent:
        del draft.refs["parent"]
    return refusal(lambda: world.admit(draft))


PAINS = [
    Pain("thinking-machines-lab/tinker-cookbook#935", "a resumed run feeds the last saved batch once more", "BATCH_ALREADY_ACKNOWLEDGED", lambda: _next_feeds(_last_saved_batch), lambda: _next_feeds(lambda _, draft: draft.refs["batch"])),
    Pain("thinking-machines-lab/tinker-cookbook#935", "it builds a new batch of the same rows for a step that was done before", "REPLAY_OTHER_BATCH", lambda: _redone_with(SAVED_AT), lambda: _redone_with(SAVED_AT + 1)),
    Pain("NovaSky-AI/SkyRL#2035", "a retried request is applied twice", "UPDATE_OUT_OF_ORDER", lambda: _retried(recorded_again=True), lambda: _retried(recorded_again=False)),
    Pain("verl-project/verl#7401", "an epoch is skipped and the run calls itself finished", "SHORT_RUN", lambda: _ends("completed"), lambda: _ends("failed", failure="short_run")),
    Pain("huggingface/transformers#17032", "the random states are not in the checkpoint", "STATE_INCOMPLETE", lambda: _resumes_from(_without("random.safetensors")), lambda: _resumes_from(whole())),
    Pain("huggingface/transformers#11323", "results differ after a restart", "REPLAY_OTHER_STATE", lambda: _redoes_five(wrong_at=SAVED_AT + 5), lambda: _redoes_five(wrong_at=None)),
    Pain("huggingface/transformers#11323", "they differ from the first step on", "REPLAY_OTHER_STATE", lambda: _redoes_five(wrong_at=SAVED_AT + 1), lambda: _redoes_five(wrong_at=None)),
    Pain("NVIDIA-NeMo/RL PR #3171", "the optimizer's file has moved and a fresh one starts", "STATE_INCOMPLETE", lambda: _resumes_from(_without("optimizer.safetensors")), lambda: _resumes_from(whole())),
    Pain("NVIDIA-NeMo/RL PR #3171", "another optimizer is restored than the checkpoint's", "STATE_DIFFERS", lambda: _restores(optimizer="a fresh one"), lambda: _restores(optimizer="Adam")),
    Pain("NVIDIA-NeMo/RL PR #3171", "nobody says whether the optimizer was restored", "STATE_DIFFERS", lambda: _restores(optimizer=None), lambda: _restores(optimizer="Adam")),
    Pain("NVIDIA-NeMo/RL PR #2519", "a resumed run reads another data set under the first one's cursor", "BATCH_OTHER_SPLIT", lambda: _batch_of(_other_split), lambda: _batch_of(lambda _, own: own)),
    Pain("NVIDIA-NeMo/RL PR #2519", "a plan goes on exactly with another data set", "PARENT_DIFFERS", lambda: _continued_on(other=True), lambda: _continued_on(other=False)),
    Pain("OpenRLHF/OpenRLHF#1103", "the place in the data is not in the checkpoint", "STATE_INCOMPLETE", lambda: _resumes_from({**whole(), "learner.json": learner(sampler="out")}), lambda: _resumes_from(whole())),
    Pain("huggingface/trl#3247", "a resumed run begins at step 0 again", "UPDATE_OUT_OF_ORDER", lambda: _goes_on_with(1), lambda: _goes_on_with(SAVED_AT + 1)),
    Pain("huggingface/trl#3179", "a resumption names the checkpoint and another step", "UPDATE_OUT_OF_ORDER", lambda: _resumes_at(0), lambda: _resumes_at(SAVED_AT)),
    Pain("huggingface/trl#3179", "a plan goes on exactly from nothing", "PLAN_START", lambda: _exact_plan(parent=False), lambda: _exact_plan(parent=True)),
]  # fmt: skip


@pytest.mark.parametrize("pain", PAINS, ids=[f"{n}-{pain.report}" for n, pain in enumerate(PAINS)])
def test_a_report_about_resuming_is_answered(pain):
    """The failing ledger is refused by its code, and the corrected one goes on."""
    assert pain.failing() == pain.code, pain.what
    assert pain.corrected() is None, pain.what


def test_the_whole_state_is_whole():
    """The corrected checkpoints above hold every part, so it is the part left out that refuses the others."""
    assert parts(whole(), STEP) == dict.fromkeys(PARTS, True)
