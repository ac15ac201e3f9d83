"""What goes wrong in a user's script, or is done on purpose, and what then stands on record."""

from __future__ import annotations

import pytest
from own_script import Dataset, LedgerCallback, chats, held_out, said, sft, torch, verified
from small_job import QUESTIONS
from transformers import EarlyStoppingCallback, TrainerCallback

from ledger.errors import UsageError

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # the libraries warn of one another
    pytest.mark.train,
]


class At(TrainerCallback):
    """Does something when a step has ended."""

    def __init__(self, step, action):
        self.step, self.action = step, action

    def on_step_end(self, args, state, control, **kwargs):
        """At the step, act."""
        if state.global_step == self.step:
            self.action(control=control, **kwargs)


@pytest.fixture
def adopt(ledger, tmp_path):
    """Adopt a trainer into the test's ledger, with its held-out file and its own shelf."""

    def make(trainer, **options):
        named = {"held_out": held_out(tmp_path), "shelf": tmp_path / "shelf"}
        return LedgerCallback.adopt(trainer, ledger=ledger, **{**named, **options})

    return make


def nudge(model=None, **_):
    """Change a trained weight behind everybody's back."""
    with torch.no_grad():
        next(item for item in model.parameters() if item.requires_grad).add_(0.5)


def thaw(model=None, **_):
    """Change a weight that is not trained."""
    with torch.no_grad():
        next(item for item in model.parameters() if not item.requires_grad).add_(0.5)


def boom(**_):
    """Break off with an error of the script's own."""
    raise RuntimeError("a cable was pulled")


def interrupt(**_):
    """Somebody types Ctrl-C."""
    raise KeyboardInterrupt


def stop(control=None, **_):
    """The script has had enough."""
    control.should_training_stop = True


ENDS = [
    pytest.param(nudge, UsageError, "failed", "refused", 2, id="weights changed in between"),
    pytest.param(boom, RuntimeError, "failed", "internal", 2, id="an exception"),
    pytest.param(interrupt, KeyboardInterrupt, "stopped", None, 2, id="ctrl-c"),
    pytest.param(stop, None, "stopped", None, 2, id="stopped by the script"),
    pytest.param(thaw, UsageError, "failed", "refused", 3, id="frozen weights changed"),
]


@pytest.mark.parametrize(("action", "raised", "outcome", "failure", "updates"), ENDS)
def test_a_run_that_does_not_come_to_its_end_says_how_it_ended(
    adopt, folder, tiny_model, tmp_path, action, raised, outcome, failure, updates
):
    """The error goes on, what was acknowledged until then counts, and the rest of the ledger verifies."""
    trainer = sft(tiny_model, tmp_path)
    callback = adopt(trainer)
    trainer.add_callback(At(2, action))
    if raised is None:
        trainer.train()
    else:
        with pytest.raises(raised):
            trainer.train()
    body = callback.ended.body
    assert (body["outcome"], body["failure"], body["counters"]["updates"]) == (
        outcome,
        failure,
        updates,
    )
    verified(folder)


def test_weights_that_change_after_the_last_step_are_noticed(adopt, tiny_model, tmp_path):
    """The last update's state is compared too: the model that is left is the one on record."""
    trainer = sft(tiny_model, tmp_path)
    callback = adopt(trainer)
    trainer.add_callback(At(3, nudge))
    with pytest.raises(UsageError) as refusal:
        trainer.train()
    assert refusal.value.code == "STATE_BROKEN"
    assert callback.ended.body["failure"] == "refused"


@pytest.mark.parametrize("step", [1, 3])
def test_a_callback_that_is_taken_off_stops_the_run(adopt, tiny_model, tmp_path, step):
    """No step goes by unrecorded: without the callback the next batch, or the end, is refused."""
    trainer = sft(tiny_model, tmp_path)
    callback = adopt(trainer)
    trainer.add_callback(At(step, lambda **_: trainer.remove_callback(LedgerCallback)))
    if step == 3:  # all is on record by then
        trainer.train()
        assert callback.ended.body["outcome"] == "completed"
        return
    with pytest.raises(UsageError) as refusal:
        trainer.train()
    assert refusal.value.code == "ADOPTION_REFUSED"
    assert callback.ended.body["counters"]["updates"] == step


def test_a_callback_that_is_taken_off_within_a_step_is_missed_at_the_end(
    adopt, tiny_model, tmp_path
):
    """A last step that was taken and not acknowledged makes the run a failure."""
    trainer = sft(tiny_model, tmp_path)

    class Removes(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            if state.global_step == 2:
                trainer.remove_callback(LedgerCallback)

    callback = adopt(trainer)
    trainer.add_callback(Removes())
    with pytest.raises(UsageError) as refusal:
        trainer.train()
    assert refusal.value.code == "ADOPTION_REFUSED"
    assert callback.ended.body["outcome"] == "failed"


def test_a_step_without_a_signal_is_not_taken(adopt, ledger, tiny_model, tmp_path):
    """A gradient of zero is refused before the optimizer sees it: the batch is there and no update."""
    trainer = sft(tiny_model, tmp_path)
    callback = adopt(trainer)
    trainer.compute_loss_func = lambda outputs, labels, **_: outputs.logits.sum() * 0.0
    with pytest.raises(UsageError) as refusal:
        trainer.train()
    assert refusal.value.code == "BAD_GRADIENT"
    assert callback.ended.body["failure"] == "bad_gradient"
    assert ledger.referrers(callback.run.id, "run", "update.acknowledged") == []


def test_training_twice_takes_two_adoptions(adopt, tiny_model, tmp_path):
    """A second `train()` is refused, not left unrecorded; adopted again, the trainer has a second run."""
    trainer = sft(tiny_model, tmp_path)
    first = adopt(trainer)
    trainer.train()
    with pytest.raises(UsageError) as refusal:
        trainer.train()
    assert refusal.value.code == "PLAN_LAUNCHED"
    second = adopt(trainer)
    trainer.train()
    assert second.run.id != first.run.id
    assert second.ended.body["outcome"] == "completed"


def test_the_librarys_resumption_is_refused(adopt, ledger, tiny_model, tmp_path):
    """It would load what is not on record; nothing is launched."""
    trainer = sft(tiny_model, tmp_path, save_strategy="steps", save_steps=1)
    trainer.train()
    adopt(trainer)
    with pytest.raises(UsageError) as refusal:
        trainer.train(resume_from_checkpoint=True)
    assert refusal.value.code == "ADOPTION_REFUSED"
    assert refusal.value.field == "resume_from_checkpoint"
    assert ledger.of_kind("run.launched") == []


def changed_rate(trainer):
    """The learning rate is another."""
    trainer.args.learning_rate = 0.5


def changed_steps(trainer):
    """There is more to do."""
    trainer.args.max_steps = 7


@pytest.mark.parametrize(
    ("change", "field"),
    [(changed_rate, "settings.learning_rate"), (changed_steps, "settings.max_steps")],
)
def test_what_changes_after_the_plan_makes_it_stale(
    adopt, ledger, tiny_model, tmp_path, change, field
):
    """The trainer that begins is the trainer that was planned; the error names what is not."""
    trainer = sft(tiny_model, tmp_path)
    adopt(trainer)
    change(trainer)
    with pytest.raises(UsageError) as refusal:
        trainer.train()
    assert (refusal.value.code, refusal.value.field) == ("PLAN_STALE", field)
    assert ledger.of_kind("run.launched") == []


def test_other_data_after_the_plan_is_refused(adopt, tiny_model, tmp_path):
    """Rows that nobody read beforehand are not trained on."""
    trainer = sft(tiny_model, tmp_path)
    callback = adopt(trainer)
    trainer.train_dataset = trainer.train_dataset.select(range(4))
    trainer.args.max_steps = 3
    with pytest.raises(UsageError) as refusal:
        trainer.train()
    assert refusal.value.code == "ADOPTION_REFUSED"
    assert callback.ended is None or callback.ended.body["counters"]["updates"] == 0


def held_out_row():
    """A row says that it is for testing."""
    return [*chats(split="train"), {**chats()[0], "split": "test"}]


def known_row():
    """A row is, word for word, one that is held out."""
    messages = [said("user", f"{QUESTIONS[3]}?"), said("assistant", "Soon.")]
    return [*chats(), {"messages": messages}]


def asked_row():
    """A row asks what a held-out one asks."""
    messages = [said("user", f"{QUESTIONS[3]}?"), said("assistant", "Never.")]
    return [*chats(), {"messages": messages}]


def broken_row():
    """A row begins another turn within a turn."""
    return [*chats(), {"messages": [said("user", "<|im_start|>system"), said("assistant", "Yes.")]}]


DATA = [
    pytest.param(held_out_row, "HELD_OUT_ROW", "train_dataset[10]", id="declares itself held out"),
    pytest.param(known_row, "HELD_OUT_ROW", "train_dataset[10]", id="is held out"),
    pytest.param(asked_row, "LEAKAGE_NOT_ACCEPTED", "train_dataset", id="is like a held-out row"),
    pytest.param(broken_row, "ADOPTION_REFUSED", "train_dataset[10]", id="is no row"),
]


@pytest.mark.parametrize(("rows", "code", "field"), DATA)
def test_rows_that_must_not_be_trained_on_are_named(
    adopt, ledger, tiny_model, tmp_path, rows, code, field
):
    """The first such row stops the adoption, by its place in the trainer's data; nothing is planned."""
    with pytest.raises(UsageError) as refusal:
        adopt(sft(tiny_model, tmp_path, rows=rows()))
    assert (refusal.value.code, refusal.value.field) == (code, field)
    assert ledger.of_kind("plan.prepared") == []


def streamed(model, folder):
    """Rows that come as they are read."""
    return sft(model, folder, rows=Dataset.from_list(chats()).to_iterable_dataset())


def packed(model, folder):
    """Rows that are cut and joined."""
    return sft(model, folder, packing=True)


def distributed(model, folder):
    """Arguments that say two processes."""
    trainer = sft(model, folder)
    trainer.args.__class__ = type("Two", (type(trainer.args),), {"world_size": 2})
    return trainer


def best_at_end(model, folder):
    """Weights that change when training is over."""
    trainer = sft(model, folder)
    trainer.args.load_best_model_at_end = True
    return trainer


def half(model, folder):
    """Steps that may be left out."""
    trainer = sft(model, folder)
    trainer.args.fp16 = True
    return trainer


def unknown(model, folder):
    """A trainer of another sort."""
    trainer = sft(model, folder)
    trainer.__class__ = type("GRPOTrainer", (type(trainer).__mro__[2],), {})
    return trainer


KINDS = [
    pytest.param(streamed, "train_dataset", id="streamed"),
    pytest.param(packed, "args.packing", id="packed"),
    pytest.param(distributed, "args.world_size", id="several processes"),
    pytest.param(best_at_end, "args.load_best_model_at_end", id="best at the end"),
    pytest.param(half, "args.fp16", id="fp16"),
    pytest.param(unknown, "trainer", id="rollouts"),
]


@pytest.mark.parametrize(("make", "field"), KINDS)
def test_what_cannot_be_put_on_record_is_refused(adopt, ledger, tiny_model, tmp_path, make, field):
    """One clear error names what is in the way, before anything is recorded."""
    size = ledger.size
    with pytest.raises(UsageError) as refusal:
        adopt(make(tiny_model, tmp_path))
    assert (refusal.value.code, refusal.value.field) == ("ADOPTION_REFUSED", field)
    assert ledger.size == size


def test_a_callback_without_a_trainer_does_not_pretend(ledger, adopt, tiny_model, tmp_path):
    """Given to a trainer as a plain callback it refuses to begin, since it would record nothing."""
    plan = adopt(sft(tiny_model, tmp_path)).plan
    other = sft(tiny_model, tmp_path, callbacks=[LedgerCallback(ledger, plan=plan)])
    with pytest.raises(UsageError) as refusal:
        other.train()
    assert refusal.value.code == "ADOPTION_REFUSED"


def test_a_step_whose_record_cannot_be_written_ends_the_run(
    adopt, ledger, folder, tiny_model, tmp_path
):
    """Somebody reconciled the run as dead meanwhile: the next record is refused, and so is the step."""
    trainer = sft(tiny_model, tmp_path)
    callback = adopt(trainer)

    def declare_dead(**_):
        body = {"found": "dead", "by": "operator", "evidence": "it looked dead"}
        ledger.append("run.reconciled", body, {"run": callback.run.id})

    trainer.add_callback(At(1, declare_dead))
    with pytest.raises(UsageError) as refusal:
        trainer.train()
    assert refusal.value.code == "RUN_NOT_OPEN"
    assert "could not be recorded" in refusal.value.__notes__[0]
    assert len(ledger.referrers(callback.run.id, "run", "update.acknowledged")) == 1
    verified(folder)


def test_early_stopping_works_beside_it(adopt, tiny_model, tmp_path):
    """The library's own callbacks do what they do; a run that one of them stops is stopped, not failed."""
    rows = [{"messages": [said("user", "Is there a shop in Ghent?"), said("assistant", "No.")]}]
    trainer = sft(
        tiny_model, tmp_path, eval_dataset=Dataset.from_list(rows), eval_strategy="steps", eval_steps=1,
        learning_rate=1.0, max_steps=8, metric_for_best_model="eval_loss",
    )  # fmt: skip
    callback = adopt(trainer)
    trainer.add_callback(EarlyStoppingCallback(early_stopping_patience=1))
    trainer.train()
    assert callback.ended.body["outcome"] in ("stopped", "completed")
    assert callback.ended.body["counters"]["updates"] == trainer.state.global_step
