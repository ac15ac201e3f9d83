"""A run is evaluated on validation rows while it trains, and is the same run, to the last bit."""

from __future__ import annotations

import json

import pytest
from sft_run import Run, changed
from small_job import small_rows
from test_full import FULL
from test_resume import of_run
from tiny import AutoModelForCausalLM, files_of, rows, torch, write_rows

from ledger.canonical import parse_real
from ledger.errors import EvidenceError
from runners.train.evaluation import undisturbed
from runners.train.validation import newest_figures, validation_rows
from verifiers.data.identity import row_digest

pytestmark = [pytest.mark.train, pytest.mark.slow]


def evaluated(tiny_model, folder, settings):
    """A run with these settings, evaluated on four rows that it is not trained on."""
    folder.mkdir(parents=True)
    path = write_rows(folder / "validation.jsonl", rows(16)[12:])
    return Run(tiny_model, folder, settings, validation=str(path)).here()


CASES = [
    pytest.param(changed(lora_dropout=0.3), id="an adapter with dropout"),
    pytest.param(FULL, id="every weight"),
    pytest.param(changed(loss="stock"), id="the library's loss"),
]


@pytest.mark.parametrize("settings", CASES)
def test_an_evaluation_changes_nothing(tiny_model, tmp_path, settings):
    """With dropout drawing random numbers, every file of every checkpoint is that of a run without evaluation."""
    plain = Run(tiny_model, tmp_path / "plain", settings).here()
    often = settings.model_copy(update={"eval_steps": 1})
    watched = evaluated(tiny_model, tmp_path / "watched", often)
    for event in plain.of("checkpoint"):
        name = f"checkpoint-{event['step']:06d}"
        left, right = tmp_path / "plain" / "out" / name, tmp_path / "watched" / "out" / name
        assert files_of(left) == files_of(right)
    figures = [event["figures"] for event in watched.of("update")]
    assert all(parse_real(item["validation_loss"]) > 0 for item in figures)
    losses = {item["validation_loss"] for item in figures}
    assert len(losses) == len(figures)


def test_evaluations_come_when_they_are_due(tiny_model, tmp_path):
    """After each multiple of `eval_steps` and after the last step, over the labelled tokens of all rows."""
    run = evaluated(tiny_model, tmp_path / "run", changed(eval_steps=3))
    figures = {event["step"]: event["figures"] for event in run.of("update")}
    due = [step for step, item in figures.items() if "validation_loss" in item]
    assert due == [3, 4]
    assert {item["validation_rows"] for item in figures.values() if "validation_rows" in item} == {
        4
    }
    assert figures[4]["validation_labelled"] > figures[4]["validation_right"] >= 0


def test_the_loss_is_that_of_the_model(tiny_model, tmp_path):
    """The figure is the library's own mean loss over the labelled tokens, to rounding."""
    run = evaluated(tiny_model, tmp_path / "run", FULL.model_copy(update={"eval_steps": 4}))
    model = AutoModelForCausalLM.from_pretrained(
        tmp_path / "run" / "out" / "checkpoint-000004", local_files_only=True
    )
    from runners.train.preflight import encode_rows, read_rows  # noqa: PLC0415 - heavy
    from runners.train.tokens import load_tokenizer  # noqa: PLC0415 - the same

    encoded = encode_rows(
        load_tokenizer(tiny_model), read_rows(tmp_path / "run" / "validation.jsonl"), 1024
    )
    total, labelled = 0.0, 0
    with torch.no_grad():
        for row in encoded.rows:
            found = model(input_ids=torch.tensor([row.ids]), labels=torch.tensor([row.labels]))
            total += found.loss.item() * row.trainable
            labelled += row.trainable
    figures = run.of("update")[-1]["figures"]
    assert figures["validation_labelled"] == labelled
    assert parse_real(figures["validation_loss"]) == pytest.approx(total / labelled, rel=1e-4)


def test_modes_and_generators_are_as_before():
    """What was training still trains, what was not does not, and the next random number is the one that was due."""
    model = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Dropout())
    model[1].training = False
    torch.manual_seed(3)
    due = torch.rand(1)
    torch.manual_seed(3)
    with undisturbed(model):
        assert not model[0].training
        torch.rand(5)
    assert (model.training, model[0].training, model[1].training) == (True, True, False)
    assert torch.equal(torch.rand(1), due)


def test_figures_are_recorded_and_shown(person):
    """Each due acknowledgement holds the figures; status shows the newest, the run's metrics all, the plan the rows."""
    answer = person.plans(steps=4, eval_steps=2, seed=81)
    assert answer.result["rows"]["input"] == 12
    found = person.gets("run", "launch", person.ids["plan"], "--wait")
    person.ids["run"] = found["run"]
    updates = of_run(person, "update.acknowledged")
    assert [u.body["step"] for u in updates if "validation_loss" in u.body["figures"]] == [2, 4]
    newest = newest_figures(updates)
    assert found["validation"] == newest
    assert newest["step"] == 4
    (end,) = of_run(person, "run.ended")
    with person.opens() as ledger:
        lines = ledger.blobs.read(end.body["metrics"]["digest"]).splitlines()
        plan = ledger.get(person.ids["plan"])
    assert [json.loads(line).get("validation_loss") for line in lines][3] == newest["loss"]
    assert plan.body["rows"]["validation"] > 0
    assert person.verify().result["findings"] == []
    done = person.gets("checkpoint", "reexecute", "--run", found["run"], "--all")
    assert done["disagreements"] == []


def test_a_split_without_validation_rows_is_refused(person):
    """Where there is nothing to evaluate on the plan says so, and names the setting."""
    held = [row for row in small_rows() if row.get("kind", "chat") == "chat"]
    person.ingests(held)
    lines = [
        json.dumps({"row": row_digest(row), "role": "train" if number < 18 else "test"})
        for number, row in enumerate(held)
    ]
    roles = person.folder / "roles.jsonl"
    roles.write_text("\n".join(lines) + "\n")
    words = ("data", "split", person.ids["dataset"], "--by", "customer_id", "--published", roles)
    person.ids["split"] = person.gets(*words)["split"]
    person.gets("data", "audit", person.ids["split"])
    answer = person.plans(eval_steps=2)
    assert (answer.code, answer.error["code"]) == (1, "ROW_UNTRAINABLE")
    assert answer.error["field"] == "eval_steps"
    assert person.plans().code == 0


@pytest.mark.parametrize("place", ["split", "metadata"])
def test_a_test_row_is_not_evaluated_on(person, place):
    """A row that says it is for tests stays unseen, whatever role a split gave it."""
    said = {"split": "test"} if place == "split" else {"metadata": {"split": " Test"}}
    kept = [
        {**row, **said} if number % 5 == 1 and number >= 25 else row
        for number, row in enumerate(small_rows())
    ]
    path = person.folder / "kept.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    words = ("data", "ingest", path, "--licence", "CC0-1.0", "--keep-held-out")
    person.ids["dataset"] = person.gets(*words)["dataset"]
    with person.opens() as ledger:
        dataset = ledger.get(person.ids["dataset"])
        rows_ = [
            json.loads(line)
            for line in ledger.blobs.read(dataset.body["rows"]["digest"]).splitlines()
        ]
    marked = {row["customer_id"] for row in rows_ if row.get("split") or row.get("metadata")}
    assert marked
    lines = [
        json.dumps({"row": row_digest(row), "role": "validation"})
        if number >= 25
        else json.dumps({"row": row_digest(row), "role": "train" if number >= 5 else "test"})
        for number, row in enumerate(rows_)
    ]
    roles = person.folder / "roles.jsonl"
    roles.write_text("\n".join(lines) + "\n")
    words = ("data", "split", person.ids["dataset"], "--by", "customer_id", "--published", roles)
    split = person.gets(*words)["split"]
    with person.opens() as ledger, pytest.raises(EvidenceError) as caught:
        validation_rows(ledger, ledger.get(split), changed(eval_steps=1))
    assert caught.value.code == "HELD_OUT_ROW"
