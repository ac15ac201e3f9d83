"""A reinforcement job in miniature: scenarios that a tiny model can read, an audited reward, a plan, its run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from small_job import WORDINGS, Person

from ledger.book import Ledger

RL = {
    "reward": "support", "objective": "grpo", "steps": 4, "group_size": 4, "groups_per_batch": 2,
    "num_iterations": 2, "max_new_tokens": 12, "learning_rate": 0.01, "lora_rank": 2, "lora_alpha": 4,
    "lora_targets": ["q_proj", "down_proj"], "threads": 1, "seed": 3, "kl_coefficient": 0.05,
}  # fmt: skip
ASKED = (
    "lamp", "kettle", "chair", "carpet", "mirror", "fridge", "stove", "shelf", "clock", "couch",
)  # fmt: skip


def scenarios() -> list[dict[str, Any]]:
    """Ten customers with one question each, whose answer is a refusal."""
    return [
        {
            "id": f"scenario-{number}",
            "kind": "scenario",
            "family": "late_return",
            "customer_id": f"customer-{number}",
            "opening": f"{WORDINGS[number]} ({thing}).",
            "policy_facts": ["Refunds are granted within 30 days of delivery."],
            "context": f"The {thing} was delivered {40 + number} days ago.",
            "turns": [],
            "expected": {"decision": "refuse"},
            "must_avoid": ["full refund"],
        }
        for number, thing in enumerate(ASKED)
    ]


def begin(folder: Path, model: Path) -> Person:
    """A ledger with a model, scenarios, their split, the audits of split and reward."""
    folder.mkdir(exist_ok=True)
    person = Person(folder)
    person.gets("init", person.ledger, "--origin", "example.com/rl")
    person.ids["model"] = person.gets("model", "add", model, "--licence", "CC0-1.0")["model"]
    person.ingests(scenarios())
    person.splits()
    person.ids["audit"] = person.gets("data", "audit", person.ids["split"])["audit"]
    person.ids["reward"] = person.gets("reward", "audit", "support")["audit"]
    return person


def config(person: Person, **settings: Any) -> Path:
    """A configuration file of the small plan with some settings changed."""
    named = {"split": person.ids["split"], "model": person.ids["model"]}
    return person.writes("rl.json", {**named, **RL, **settings})


def plans(person: Person, *words: object, **settings: Any) -> str:
    """A recorded plan; its id."""
    person.ids["plan"] = person.gets("plan", "rl", config(person, **settings), *words)["plan"]
    return person.ids["plan"]


def runs(person: Person, **settings: Any) -> dict[str, Any]:
    """A plan and its run to the end; how the run stands then."""
    plans(person, **settings)
    result = person.gets("run", "launch", person.ids["plan"], "--wait")
    person.ids["run"] = result["run"]
    return result


def of_run(person: Person, kind: str) -> list[Any]:
    """The records of a kind that name the person's run, in order."""
    with Ledger.read(person.ledger) as ledger:
        return list(ledger.referrers(person.ids["run"], "run", kind))
