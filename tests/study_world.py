"""A world that holds a whole study: six seeds trained, compared, nominated, reviewed, tested, run again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

import samples
from world import Draft, World

from ledger.blobs import BlobStore
from ledger.digests import FileEntry, sha256, tree_digest
from ledger.record import Record, Refs
from verifiers.judgement.draws import Target
from verifiers.judgement.reruns import targets_of
from verifiers.judgement.study_gate import gate_of
from verifiers.replay.view import View

SEEDS = (11, 12, 13, 14, 15, 16)
CASES = 32
FLOORS = {"reruns_updates_per_seed": 1, "reruns_case_share": "0.03"}


def outcome_lines(failing: int) -> bytes:
    """Outcomes of 32 desk cases in 4 families, of which every so many fail, the first of each family first."""
    wrong = {(index * 8 + index // 4) % CASES for index in range(failing)}
    rows = [
        {
            "case": f"case{number:02d}",
            "family": f"family{number // 8}",
            "kind": "desk",
            "success": number not in wrong,
            "violations": [],
            "truncated": False,
            "detail": {"prompt_digest": sha256(str(number).encode()), "reason": None},
        }
        for number in range(CASES)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@dataclass
class StudyWorld:
    """The world, and the records of the study by what they are for."""

    role: str = "test"
    seeds: tuple[int, ...] = SEEDS
    second_run: bool = False
    one_setting: bool = False
    one_state: bool = False
    elsewhere: bool = False
    again: bool = True
    eligible: tuple[bool, ...] = (True,)
    world: World = field(default_factory=World)
    checkpoints: list[Record] = field(default_factory=list)
    checks: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Grow the whole study."""
        world = self.world
        world.add("policy.declared", **FLOORS)
        self.baseline = world.need("model.registered")
        self.study = world.add("study.registered", seeds=list(SEEDS), cases=CASES)
        for seed in self.seeds:
            self.train(seed)
        if self.second_run:
            self.launch(self.seeds[0])
            world.add("run.ended")
        self.comparison = self.compare()
        self.nomination = self.nominate(self.checkpoints)
        self.protocol = self.register(self.role)
        self.review = self.admit(
            "test.reviewed",
            {},
            {"nomination": self.nomination.id, "protocol": self.protocol.id},
            stater="reviewer",
        )
        self.evaluations = [self.evaluate(self.protocol, self.baseline, 8, self.review)]
        self.evaluations += [
            self.evaluate(self.protocol, item, 0, self.review) for item in self.checkpoints
        ]
        if self.again:
            self.run_again()

    def admit(self, kind: str, changes: dict[str, Any], refs: Refs, **draft: Any) -> Record:
        """Admit a sample body with changes under these refs."""
        return self.world.admit(Draft(kind, samples.body(kind, **changes), refs, **draft))

    def launch(self, seed: int) -> None:
        """Plan and launch a run of the study."""
        plan = self.world.draft("plan.prepared")
        plan.refs["study"] = self.study.id
        plan.body["seeds"] = {"training": seed}
        plan.body["settings"] |= self.study.body["settings"]
        plan.body["settings"]["seed"] = seed
        if self.one_setting:
            plan.body["settings"] |= {"name": "one", "seed": None}
        plan.body["code"] = {"evidence-ledger": samples.digest("the package")}
        self.world.admit(plan)
        self.world.add("run.launched")

    def train(self, seed: int) -> None:
        """One run of the study to its checkpoint, whose bytes are there."""
        self.launch(seed)
        state = samples.weights(1 if self.one_state else 100 + seed)
        before = samples.weights(0)
        if self.elsewhere:
            state, before = ({**item, "scheme": "provider_policy"} for item in (state, before))
        self.world.add("update.acknowledged", before=before, after=state)
        data = f"weights of seed {seed}".encode()
        self.world.blobs[sha256(data)] = data
        file = {"path": "adapter.safetensors", "size": len(data), "digest": sha256(data)}
        tree = tree_digest([FileEntry(*file.values())])
        self.checkpoints.append(
            self.world.add("checkpoint.published", files=[file], tree=tree, state=state)
        )
        self.world.add("run.ended")

    def register(self, role: str) -> Record:
        """A protocol of desk cases of a role."""
        body = {
            "role": role,
            "judging": None,
            "passes": [],
            "rubric": None,
            "case_kinds": {"desk": CASES},
        }
        return self.admit(
            "protocol.registered", body, {"split": self.world.need("split.declared").id}
        )

    def evaluate(
        self, protocol: Record, subject: Record, failing: int, review: Record | None = None
    ) -> Record:
        """An arm and its evaluation."""
        role = "model" if subject.kind == "model.registered" else "checkpoint"
        refs: Refs = {"protocol": protocol.id, role: subject.id}
        if review is not None:
            refs["review"] = review.id
        said = "".join(json.dumps({"case": f"case{number:02d}"}) + "\n" for number in range(CASES))
        transcripts = samples.blob("transcripts", said.encode())
        self.world.blobs[transcripts["digest"]] = said.encode()
        arm = self.admit("arm.transcribed", {"cases": CASES, "transcripts": transcripts}, refs)
        data = outcome_lines(failing)
        body = {
            "outcomes": samples.blob("outcomes", data),
            "cases": CASES,
            "success": CASES - failing,
            "failure": failing,
            "undecided": 0,
        }
        self.world.blobs[sha256(data)] = data
        return self.admit("evaluation.completed", body, {"protocol": protocol.id, "arm": [arm.id]})

    def compare(self) -> Record:
        """Every checkpoint against the baseline on validation."""
        protocol = self.register("validation")
        baseline = self.evaluate(protocol, self.baseline, 8)
        found = [self.evaluate(protocol, item, 0) for item in self.checkpoints]
        entry = samples.body("comparison.made")["candidates"][0]
        return self.admit(
            "comparison.made",
            {
                "candidates": [
                    {**entry, "evaluation": item.id, "eligible": fine}
                    for item, fine in zip_longest(
                        found, self.eligible[: len(found)], fillvalue=self.eligible[0]
                    )
                ]
            },
            {"baseline": baseline.id, "evaluation": [item.id for item in found]},
        )

    def nominate(self, checkpoints: list[Record]) -> Record:
        """Nominate these, the first to be promoted."""
        refs: Refs = {
            "study": self.study.id,
            "comparison": [self.comparison.id],
            "checkpoint": [item.id for item in checkpoints],
        }
        return self.admit(
            "candidate.nominated", {"chosen": checkpoints[0].id}, refs, stater="promoter"
        )

    def run_again(self, *, agreed: bool = True) -> None:
        """A draw, and everything that it hits run again by the auditor."""
        self.drawn = self.admit(
            "draw.made",
            {"updates_per_seed": 1, "case_share": "0.03"},
            {"nomination": self.nomination.id},
            writer="auditor",
        )
        view = View(_Source(self.world), cast("BlobStore", _Blobs(self.world)))
        for target in targets_of(self.drawn.id, view):
            self.check(target, agreed=agreed)

    def check(self, target: Target, **changes: Any) -> None:
        """One target of the newest draw run again."""
        told = {"drawn_from": self.drawn.seq + 1, "index": target.index, "case": target.case}
        refs: Refs = {"draw": self.drawn.id, target.role: target.record}
        self.checks.append(
            self.admit("check.reproduced", {**told, **changes}, refs, writer="auditor")
        )

    def view(self, folder: Path) -> View:
        """Records of this world, its blobs in a folder."""
        blobs = BlobStore(folder)
        self.world.put_blobs(blobs)
        return View(_Source(self.world), blobs)

    def gate(self, view: View, **changes: Any) -> Record:
        """The gate as the evidence gives it, admitted; `changes` spoils its body."""
        head = self.world.records[-1].id
        policy = self.world.need("policy.declared")
        report = gate_of(self.study, self.nomination, self.evaluations, policy.body, head, view)
        refs: Refs = {
            "study": self.study.id,
            "nomination": self.nomination.id,
            "evaluation": [item.id for item in self.evaluations],
            "policy": policy.id,
        }
        if self.checks:
            refs["check"] = [item.id for item in self.checks]
        return self.admit("gate.decided", {**report.body(), **changes}, refs)


@dataclass
class _Source:
    world: World

    def find(self, record_id: str) -> Record | None:
        """A record by id."""
        return self.world.by_id.get(record_id)


@dataclass
class _Blobs:
    world: World

    def read(self, digest: str) -> bytes:
        """A blob's bytes from memory."""
        return self.world.blobs[digest]
