"""A ledger with a reinforcement run in it, without a model: real rows, a real split and audits, groups of real episodes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import samples
from campaigns.group_faults import Spoil, whole
from campaigns.group_maker import SCENARIO, Made, make_group, settings_of

from ledger.blobs import JSON_LINES, SAFETENSORS
from ledger.book import Ledger
from ledger.ed25519 import PrivateKey
from ledger.record import Record
from ledger.twins import fresh_digest
from runners.prepare.desk_wordings import NO_LONGER_NEEDED, ORDERED_BY_MISTAKE
from verifiers.data.identity import row_digest, rows_bytes
from verifiers.learning.advantages import is_constant
from verifiers.learning.group_plan import SAMPLER
from verifiers.replay.rollouts import datum_digest
from verifiers.rewards.episodes import REWARDS

SUPPORT = REWARDS["support", 3]
RULES = {"reference": "start_adapter", "kl_coefficient": "0.01"}


def scenarios() -> list[dict[str, Any]]:
    """Twenty customers, each with words of their own."""
    return [
        {**SCENARIO, "id": f"scenario-{number}", "customer_id": f"customer-{number}", "opening": opening}
        for number, opening in enumerate((*NO_LONGER_NEEDED, *ORDERED_BY_MISTAKE))
    ]  # fmt: skip


@dataclass
class RlLedger:
    """The ledger, and where its run stands.

    Attributes:
        folder: of the ledger.
        key: the writer's.
        settings: of the plan.
        split: the split's id.
        train: digests of its training rows.
        rows: all rows by digest.
    """

    folder: Path
    key: PrivateKey
    settings: dict[str, Any]
    split: str
    train: list[str]
    rows: dict[str, dict[str, Any]]
    run: str = ""
    updates: list[Record] = field(default_factory=list)
    made: list[tuple[Record, Made]] = field(default_factory=list)

    def append(self, kind: str, body: dict[str, Any], refs: dict[str, Any]) -> Record:
        """One record more."""
        with Ledger.open(self.folder, key=self.key) as ledger:
            return ledger.append(kind, body, refs)

    def put(self, data: bytes, media_type: str) -> dict[str, Any]:
        """A blob of these bytes."""
        with Ledger.open(self.folder, key=self.key) as ledger:
            return ledger.blobs.put(data, media_type).model_dump(exclude_none=True)

    def sample(
        self,
        seed: int,
        row: str | None = None,
        *,
        constant: bool = False,
        spoil: Spoil | None = None,
        **body: Any,
    ) -> Record:
        """A group of a training row, sampled by the run's newest policy, of equal rewards or not.

        Args:
            seed: of what its members say.
            row: digest of the row; None for one of the training rows.
            constant: whether its rewards are equal.
            spoil: what is done to it before it is recorded.
            body: fields of its record, changed.
        """
        chosen = self.rows[row or self.train[seed % len(self.train)]]
        made = _group(seed, chosen, constant=constant)
        given = (spoil or (lambda good, _: whole(good)))(made, random.Random(seed))
        state = self.updates[-1].body["after"] if self.updates else samples.weights(0)
        full = {
            **given.body,
            "state": state,
            "samples": self.put(given.samples, SAFETENSORS),
            "trace": self.put(given.trace, JSON_LINES),
            **body,
        }
        policy = self.updates[-1].id if self.updates else self.run
        record = self.append("rollout.group", full, {"run": self.run, "policy": policy})
        self.made.append((record, made))
        return record

    def made_sampler(self) -> dict[str, Any]:
        """How the plan samples, as a group says it."""
        return {name: self.settings[name] for name in SAMPLER}

    def shuffled(self, seed: int) -> list[str]:
        """The rewards of a group of this seed, one place on."""
        row = self.rows[self.train[seed % len(self.train)]]
        rewards = _group(seed, row, constant=False).body["rewards"]
        turned = (rewards[place:] + rewards[:place] for place in range(1, len(rewards)))
        return next(values for values in turned if values != rewards)

    def batch(self, *groups: Record, **body: Any) -> Record:
        """A batch of whole groups, its body changed."""
        found = {record.id: made for record, made in self.made}
        datums = [(item.id, number) for item in groups for number in range(item.body["members"])]
        full = {
            "step": len(self.updates) + 1,
            "digest": datum_digest(datums),
            "rows": [],
            "datums": len(datums),
            "trainable_tokens": sum(found[name].group.trainable(member) for name, member in datums),
            **body,
        }
        refs = {"run": self.run, "group": [item.id for item in groups]}
        return self.append("batch.built", full, refs)

    def update(self, batch: Record, **body: Any) -> Record:
        """The update that a batch gives."""
        number = len(self.updates)
        refs: dict[str, Any] = {"run": self.run, "batch": [batch.id]}
        if self.updates:
            refs["previous"] = self.updates[-1].id
        states = {"before": samples.weights(number), "after": samples.weights(number + 1)}
        full = samples.body("update.acknowledged", step=number + 1, **states, **body)
        self.updates.append(self.append("update.acknowledged", full, refs))
        return self.updates[-1]


def begin(cli: Any, folder: Path, reward: str = "support", **settings: Any) -> RlLedger:
    """A ledger in which a reinforcement run was launched.

    Args:
        cli: a command line with a new ledger.
        folder: for the file of rows.
        reward: `support`, or a Python file of one's own.
        settings: of the plan, changed.
    """
    rows = scenarios()
    file = folder / "scenarios.jsonl"
    file.write_bytes(rows_bytes(rows))
    dataset = cli.json("data", "ingest", file, "--licence", "CC0-1.0").result["dataset"]
    split = cli.json(
        "data", "split", dataset, "--by", "customer_id", "--fractions", "60,20,20"
    ).result["split"]
    audit = cli.json("data", "audit", split).result["audit"]
    audited = cli.json("reward", "audit", reward).result
    (key,) = [PrivateKey.load(path) for path in cli.key_files() if "root" not in path.name]
    with Ledger.open(cli.ledger, key=key) as ledger:
        assignment = ledger.blobs.read(ledger.get(split).body["assignment"]["digest"])
        ledger.blobs.put(samples.BLOBS[samples.digest("weights file")], "text/plain")
        model = ledger.append("model.registered", samples.body("model.registered"), {})
        code = ledger.get(audited["audit"]).body["code"]["digest"]
    named = {"reward": audited["name"], "reward_version": audited["reward_version"]}
    values = {**settings_of(SUPPORT), **RULES, **named, **settings}
    by_digest = {row_digest(row): row for row in rows}
    train = [digest for digest in by_digest if f'"{digest}"' in _training(assignment)]
    made = RlLedger(cli.ledger, key, values, split, train, by_digest)
    body = samples.body("plan.prepared", method="rl", settings=values, budget_updates=50)
    body["settings_digest"] = fresh_digest("rl", values, split, model.body["tree"], code)
    refs = {"split": split, "audit": audit, "model": model.id, "reward": audited["audit"]}
    plan = made.append("plan.prepared", body, refs)
    made.run = made.append("run.launched", samples.body("run.launched"), {"plan": plan.id}).id
    return made


def _training(assignment: bytes) -> str:
    """The lines of an assignment that say train."""
    return "\n".join(line for line in assignment.decode().splitlines() if '"train"' in line)


def _group(seed: int, row: dict[str, Any], *, constant: bool) -> Made:
    """The first group of a row whose rewards are equal, or are not."""
    for attempt in count():
        source = random.Random(f"{seed}:{attempt}")
        made = make_group(source, SUPPORT, row)
        if is_constant(made.group.rewards) == constant:
            return made
    raise AssertionError
