"""What a user's own run left on record is of use to the commands: its split, its checkpoint, its status."""

from __future__ import annotations

import pytest
from own_script import Dataset, LedgerCallback, sft
from small_job import EVAL, Person, made_models, small_rows

from runners.train.plans import training_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # the libraries warn of one another
    pytest.mark.slow,
    pytest.mark.train,
]


@pytest.fixture
def planned(tmp_path, monkeypatch) -> Person:
    """Somebody with rows that are ingested, split and audited, and a model that is registered."""
    person = Person(tmp_path)
    for name in ("EVIDENCE_KEY", "EVIDENCE_KEY_PASSPHRASE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in person.environment().items():
        monkeypatch.setenv(name, value)
    person.begins(*made_models(tmp_path / "models"))
    person.ingests(small_rows())
    person.splits()
    person.gets("data", "audit", person.ids["split"])
    return person


def test_a_checkpoint_of_a_script_is_evaluated_and_recovered(planned, tmp_path):
    """Trained on the split's own rows, the adapter goes through a protocol of that split like any other."""
    with planned.opens() as ledger:
        split = ledger.get(planned.ids["split"])
        rows = [dict(item.row) for item in training_rows(ledger, split)]
        trainer = sft(
            tmp_path / "models/tiny", tmp_path, rows=Dataset.from_list(rows), save_strategy="steps",
            save_steps=3,
        )  # fmt: skip
        callback = LedgerCallback.adopt(trainer, ledger=ledger, held_out=split.id)
        trainer.train()
        assert callback.plan.ref("split") == split.id
        assert callback.plan.ref("model") == planned.ids["model"]
    named = {"name": "held-out", "split": split.id, **EVAL, "dialogue_cases": 0}
    protocol = planned.gets("eval", "register", planned.writes("eval.json", named))["protocol"]
    planned.gets("eval", "run", protocol, callback.checkpoint.id)
    planned.gets("checkpoint", "recover", callback.checkpoint.id, tmp_path / "back")
    status = planned.gets("run", "status", callback.run.id)
    assert (status["state"], status["counters"]["updates"]) == ("completed", 3)
    refused = planned.types("run", "resume", callback.run.id)
    assert refused.error["code"] == "ADOPTION_REFUSED"
    assert planned.verify().result["verdict"] == "verified"
