"""A world that holds a whole study: six seeds trained, compared, nominated, reviewed, tested, run again, approved, granted."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import samples
from study_data import CASES, Answers, StudyData, adapter_files, failing, files_body, lines_blob
from world import Draft, World, key

from ledger.blobs import BlobStore
from ledger.digests import sha256
from ledger.errors import EvidenceError
from ledger.record import Record, Refs
from verifiers.judgement import assemble
from verifiers.judgement.draws import Target
from verifiers.judgement.reruns import targets_of
from verifiers.judgement.studies import figures
from verifiers.judgement.study_gate import gate_of
from verifiers.replay.exposure import exposure_of
from verifiers.replay.learning import batch_digest
from verifiers.replay.view import View

SEEDS = (11, 12, 13, 14, 15, 16)
FLOORS = {"reruns_updates_per_seed": 1, "reruns_case_share": "0.03"}


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
    baseline_answers: Answers = field(default_factory=lambda: failing(8))
    tested_answers: Answers = field(default_factory=Answers)
    data: StudyData = field(default_factory=StudyData.made)
    policy: dict[str, Any] = field(default_factory=dict)
    world: World = field(default_factory=World)
    checkpoints: list[Record] = field(default_factory=list)
    checks: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Grow the whole study."""
        world = self.world
        world.add("policy.declared", **{**FLOORS, **self.policy})
        self.ingest()
        self.baseline = world.need("model.registered")
        self.study = self.register_study()
        for seed in self.seeds:
            self.train(seed)
        if self.second_run:
            self.launch(self.seeds[0])
            world.add("run.ended")
        self.comparison = self.compare()
        self.nomination = self.nominate(self.checkpoints)
        self.protocol = self.register(self.role)
        self.test_all()

    def test_all(self) -> None:
        """Review the test, let all arms read it, run some of it again."""
        self.review = self.sign_test(self.nomination, self.protocol)
        self.evaluations = [
            self.evaluate(self.protocol, self.baseline, self.baseline_answers, self.review)
        ]
        self.evaluations += [
            self.evaluate(self.protocol, item, self.tested_answers, self.review)
            for item in self.checkpoints
        ]
        self.checks = []
        if self.again:
            self.run_again()

    def admit(self, kind: str, changes: dict[str, Any], refs: Refs, **draft: Any) -> Record:
        """Admit a sample body with changes under these refs."""
        self.world.blobs |= samples.BLOBS
        return self.world.admit(Draft(kind, samples.body(kind, **changes), refs, **draft))

    def register_study(self, **changes: Any) -> Record:
        """A study of this design with its own figures, unless some of it is changed."""
        design = {"seeds": list(SEEDS), "cases": CASES, "effect": "0.3", **changes}
        body = samples.body("study.registered", **design)
        return self.world.add("study.registered", **{**design, **figures(body), **changes})

    # --- data and runs ---------------------------------------------------------------------------

    def ingest(self) -> None:
        """A source, its data set, a split and its audit, each as it is derived."""
        content = samples.blob("", self.data.source())
        source = self.admit("source.ingested", {"name": "rows.jsonl", "content": content}, {})
        dataset = self.admit("dataset.parsed", self.data.dataset(), {"source": [source.id]})
        self.split = self.admit("split.declared", self.data.split(), {"dataset": [dataset.id]})
        audit = self.admit("leakage.audited", self.data.audit(), {"split": self.split.id})
        self.accepted = None
        if audit.body["verdict"] != "clean":  # a reviewer who accepts what they should not
            refs: Refs = {"audit": audit.id}
            self.accepted = self.admit("leakage.accepted", {}, refs, stater="reviewer")

    def launch(self, seed: int) -> None:
        """Plan and launch a run of the study."""
        plan = self.world.draft("plan.prepared")
        plan.refs["study"] = self.study.id
        if self.accepted is not None:
            plan.refs["acceptance"] = self.accepted.id
        plan.body["seeds"] = {"training": seed}
        plan.body["settings"] |= self.study.body["settings"]
        plan.body["settings"]["seed"] = seed
        if self.one_setting:
            plan.body["settings"] |= {"name": "one", "seed": None}
        plan.body["code"] = {"evidence-ledger": samples.digest("the package")}
        self.world.admit(plan)
        self.world.add("run.launched")

    def train(self, seed: int, files: dict[str, bytes] | None = None) -> None:
        """One run of the study to its checkpoint, whose bytes are there; other files than its adapter's where given."""
        self.launch(seed)
        made, state = adapter_files(1 if self.one_state else seed, self.baseline.body)
        after, before = {"scheme": "tensors", "value": state}, samples.weights(0)
        if self.elsewhere:
            after, before = ({**item, "scheme": "provider_policy"} for item in (after, before))
        rows = self.data.training()[:2]
        self.world.add("batch.built", rows=rows, datums=len(rows), digest=batch_digest(rows))
        self.world.add("update.acknowledged", before=before, after=after)
        named, tree = files_body(files or made)
        self.world.blobs |= samples.BLOBS
        parts = dict.fromkeys(("optimizer", "scheduler", "random", "sampler"), False)
        self.checkpoints.append(
            self.world.add(
                "checkpoint.published",
                files=named,
                tree=tree,
                state=after,
                completeness={"weights": True, **parts},
            )
        )
        self.world.add("run.ended")

    # --- evaluation ------------------------------------------------------------------------------

    def register(self, role: str) -> Record:
        """A protocol of desk cases of a role."""
        body = self.data.protocol(role)
        return self.admit("protocol.registered", body, {"split": self.split.id})

    def sign_test(self, nomination: Record, protocol: Record, **changes: Any) -> Record:
        """A reviewer's statement over a test, as the ledger gives it unless it is changed."""
        view, head = self.here(), self.world.records[-1].id
        found = exposure_of(protocol, nomination, head, view)
        lines = [item.as_json() for item in found.findings]
        body = {
            "fresh": not lines,
            "findings": lines_blob(lines) if lines else None,
            "look": found.look,
        }
        refs: Refs = {"nomination": nomination.id, "protocol": protocol.id}
        return self.admit("test.reviewed", {**body, **changes}, refs, stater="reviewer")

    def transcribe(
        self,
        protocol: Record,
        subject: Record,
        answers: Answers,
        review: Record | None = None,
        **changes: Any,
    ) -> Record:
        """An arm's answers, by its own weights."""
        role = "model" if subject.kind == "model.registered" else "checkpoint"
        refs: Refs = {"protocol": protocol.id, role: subject.id}
        if review is not None:
            refs["review"] = review.id
        cases = list(self.here().lines(protocol.body["cases"]))
        body = {
            "weights": samples.digest(f"weights of {subject.id}"),
            **answers.arm(cases),
            **changes,
        }
        return self.admit("arm.transcribed", body, refs)

    def evaluate(
        self,
        protocol: Record,
        subject: Record,
        answers: Answers,
        review: Record | None = None,
        **changes: Any,
    ) -> Record:
        """An arm and its evaluation."""
        arm = self.transcribe(protocol, subject, answers, review, **changes)
        lines, counts = assemble.evaluation_of(protocol, arm, [], self.here())
        body = {"outcomes": lines_blob(lines), **counts}
        return self.admit("evaluation.completed", body, {"protocol": protocol.id, "arm": [arm.id]})

    def compare(self) -> Record:
        """Every checkpoint against the baseline on validation; one that is not eligible lost a success."""
        protocol = self.register("validation")
        baseline = self.evaluate(protocol, self.baseline, self.baseline_answers)
        fine = [*self.eligible, *[self.eligible[0]] * len(self.checkpoints)]
        found = [
            self.evaluate(protocol, item, Answers() if good else Answers(frozenset({7})))
            for item, good in zip(self.checkpoints, fine, strict=False)
        ]
        return self.record_comparison(baseline, found)

    def record_comparison(self, baseline: Record, evaluations: list[Record]) -> Record:
        """The comparison of these, candidates in the order of their rank."""
        body = assemble.comparison_of(baseline, evaluations, self.here())
        ranked = [item["evaluation"] for item in body["candidates"]]
        return self.admit("comparison.made", body, {"baseline": baseline.id, "evaluation": ranked})

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
        for target in targets_of(self.drawn.id, self.here()):
            self.check(target, agreed=agreed)

    def check(self, target: Target, **changes: Any) -> None:
        """One target of the newest draw run again."""
        told = {"drawn_from": self.drawn.seq + 1, "index": target.index, "case": target.case}
        refs: Refs = {"draw": self.drawn.id, target.role: target.record}
        self.checks.append(
            self.admit("check.reproduced", {**told, **changes}, refs, writer="auditor")
        )

    # --- the gate and what follows it ------------------------------------------------------------

    def here(self) -> View:
        """Records and blobs of this world, in memory."""
        return View(_Source(self.world), _Blobs(self.world))

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

    def approve(self, gate: Record, *reviewers: str) -> list[Record]:
        """A gate's approval by these reviewers."""
        refs: Refs = {"gate": gate.id, "checkpoint": self.nomination.body["chosen"]}
        return [
            self.admit("promotion.approved", {"reviewer": key(name).id}, refs, stater=name)
            for name in reviewers or ("reviewer",)
        ]

    def grant(self, gate: Record, approvals: list[Record], **changes: Any) -> Record:
        """The chosen checkpoint, promoted."""
        checkpoint = self.world.by_id[self.nomination.body["chosen"]]
        refs: Refs = {
            "gate": gate.id,
            "nomination": str(gate.ref("nomination")),
            "approval": [item.id for item in approvals],
            "checkpoint": checkpoint.id,
        }
        body = {"tree": checkpoint.body["tree"], **changes}
        return self.admit("promotion.granted", body, refs, stater="promoter")

    def granted(self) -> Record:
        """Everything to the end: gate, approval, grant."""
        gate = self.gate(self.here())
        return self.grant(gate, self.approve(gate))


@dataclass
class _Source:
    world: World

    def find(self, record_id: str) -> Record | None:
        """A record by id."""
        return self.world.by_id.get(record_id)


class _Blobs(BlobStore):
    """A world's blobs before they lie in any folder."""

    def __init__(self, world: World) -> None:
        super().__init__(Path("nowhere"))
        self._world = world

    def read(self, digest: str, *_: Any, **__: Any) -> bytes:
        """The bytes of a digest, re-hashed."""
        data = (self._world.blobs | samples.BLOBS).get(digest)
        if data is None or sha256(data) != digest:
            raise EvidenceError("BLOB_MISSING", f"blob {digest} is not there")
        return data

    def open(self, digest: str, *_: Any, **__: Any) -> BinaryIO:
        """The bytes as a stream."""
        return io.BytesIO(self.read(digest))
