"""A small world that grows a ledger up to any kind: fixed keys, a fixed clock, no file.

`World.need(kind)` gives the newest record of a kind and first makes everything that it rests on;
`World.draft(kind)` gives a record that would be admitted now, not yet admitted, for tests to spoil.
The same drafts can be appended to a real `Ledger` (`replay`) or written to a store as bytes (`write`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import samples

from ledger import record as records
from ledger import seals, statements
from ledger.admission import Chain
from ledger.blobs import BlobStore
from ledger.book import BLOBS, DATABASE, Ledger
from ledger.checks.identity import rotation_message
from ledger.clock import format_time
from ledger.dsse import pae
from ledger.ed25519 import PrivateKey
from ledger.merkle import CompactRange
from ledger.record import Record, Refs
from ledger.records import KINDS
from ledger.records.base import Seen, Statement
from ledger.rules import ANY, RULES
from ledger.state import RunState, State
from ledger.store.address import Address
from ledger.store.sqlite import SqliteStore
from ledger.twins import descended_digest, fresh_digest

ORIGIN = "example.com/support-bot"
START = datetime(2026, 1, 1, tzinfo=UTC)
WRITER_ROLES = ["ingest", "train", "judge", "seal"]
_OTHER_ROLES: dict[str, list[str]] = {
    "auditor": ["audit"],
    "reviewer": ["review"],
    "reviewer2": ["review"],
    "promoter": ["promote"],
}


def key(name: str) -> PrivateKey:
    """The one private key of a name."""
    return PrivateKey.from_seed(name.encode().ljust(32, b"."))


def clock_at(seq: int) -> str:
    """The time of the record at a seq: a second later each."""
    return format_time(START + timedelta(seconds=seq))


class SeqClock:
    """A clock that gives each record of a ledger the time of its seq."""

    def __init__(self) -> None:
        self.calls = -1

    def __call__(self) -> str:
        """The next time."""
        self.calls += 1
        return clock_at(self.calls)


@dataclass
class Draft:
    """A record to be: who writes it, who states it, and everything that a test may spoil."""

    kind: str
    body: dict[str, Any]
    refs: Refs = field(default_factory=dict)
    writer: str = "writer"
    stater: str | None = None
    schema: int | None = None
    time: str | None = None
    ledger: str = ORIGIN
    seq: int | None = None
    prev: str | None = ""
    statement: Statement | None = None


class World:
    """A growing ledger in memory.

    Attributes:
        chain: the end of it.
        records: every record so far.
        drafts: what each was made from, its statement included.
        blobs: bytes by digest.
        root: name of the root key now.
    """

    def __init__(self, *, staffed: bool = True) -> None:
        self.records: list[Record] = []
        self.drafts: list[Draft] = []
        self.by_id: dict[str, Record] = {}
        self.blobs = dict(samples.BLOBS)
        self.chain = Chain(State(), CompactRange(), None, self.by_id.get)
        self.root = "root"
        self._counter = 0
        self.add("ledger.created")
        self.enroll("writer", WRITER_ROLES)
        if staffed:
            for name, roles in _OTHER_ROLES.items():
                self.enroll(name, roles)

    # --- growing -----------------------------------------------------------------------------

    def add(self, kind: str, **changes: Any) -> Record:
        """Admit the kind's valid draft, with fields of the body changed."""
        draft = self.draft(kind)
        return self.admit(replace(draft, body={**draft.body, **changes}))

    def admit(self, draft: Draft) -> Record:
        """Sign a draft and admit it, its writer's signature checked."""
        record = self.sign(draft)
        self.chain.admit(record)
        self._keep(record, draft)
        return record

    def draft(self, kind: str) -> Draft:
        """A draft of the kind that would be admitted now; what it rests on is made first."""
        made = DRAFTS[kind](self)
        if made.stater is None:
            made.stater = self.office(RULES[kind].statement)
        return made

    def need(self, kind: str) -> Record:
        """The newest record of a kind, made first where there is none."""
        return self.newest(kind) or self.add(kind)

    def newest(self, kind: str) -> Record | None:
        """The newest record of a kind, or None."""
        return next((item for item in reversed(self.records) if item.kind == kind), None)

    def enroll(self, name: str, roles: list[str], **changes: Any) -> Record:
        """Enrol the key of a name."""
        return self.add("key.enrolled", **enrolment(self, name, roles), **changes)

    def office(self, role: str | None) -> str | None:
        """Whose key states for a role."""
        names = {None: None, "root": self.root, "review": "reviewer", "promote": "promoter"}
        return names[role]

    def fresh(self) -> str:
        """A text that was not used before in this world."""
        self._counter += 1
        return f"fresh-{self._counter}"

    # --- signing -----------------------------------------------------------------------------

    def seen(self) -> Seen:
        """The head now."""
        return Seen(size=self.chain.size, root=self.chain.tree.root().hex())

    def nonce(self) -> str:
        """The nonce of the statement at the next seq."""
        return f"{self.chain.size:032x}"

    def state_of(self, draft: Draft, **changes: Any) -> Statement:
        """The statement over a draft by its stater, over the head as it is."""
        assert draft.stater is not None
        plain: dict[str, Any] = {
            "ledger": draft.ledger,
            "kind": draft.kind,
            "refs": draft.refs,
            "body": draft.body,
            "seal": self.seen(),
            "nonce": self.nonce(),
        }
        return statements.make(key(draft.stater), **{**plain, **changes})

    def sign(self, draft: Draft) -> Record:
        """The record of a draft at the end of the chain, unless the draft says another place."""
        return records.parse(*self.sign_bytes(draft))

    def sign_bytes(self, draft: Draft) -> tuple[bytes, bytes]:
        """Entry and signature of a draft."""
        if draft.kind == "plan.prepared":
            self._derive_digest(draft)
        if draft.statement is None and draft.stater is not None:
            draft.statement = self.state_of(draft)
        model = KINDS.get(draft.kind)
        seq = self.chain.size if draft.seq is None else draft.seq
        entry = records.build_entry(
            ledger=draft.ledger,
            seq=seq,
            prev=self.chain.last_id if draft.prev == "" else draft.prev,
            kind=draft.kind,
            schema=(model.version if model else 0) if draft.schema is None else draft.schema,
            time=draft.time or clock_at(seq),
            actor=key(draft.writer).id,
            refs=draft.refs,
            body=draft.body,
            statement=draft.statement,
        )
        return entry, sign_entry(entry, draft.writer)

    def _derive_digest(self, draft: Draft) -> None:
        """Give a plan the settings digest that its refs and settings have, unless a test gave it another."""
        model = self.by_id.get(str(draft.refs.get("model")))
        if draft.body.get("settings_digest") != samples.DERIVED or model is None:
            return
        reward = self.by_id.get(str(draft.refs.get("reward")))
        made = fresh_digest(
            draft.body["method"],
            draft.body["settings"],
            str(draft.refs.get("split")),
            model.body.get("tree", samples.DERIVED),
            reward.body["code"]["digest"] if reward and "code" in reward.body else None,
        )
        if "parent" in draft.refs:
            made = descended_digest(made, draft.body["start"], str(draft.refs["parent"]))
        draft.body["settings_digest"] = made

    def seal(self) -> bytes:
        """A snapshot, and a signed note over the head after it."""
        self.add("snapshot.recorded")
        return self.note()

    def note(self, writer: str = "writer") -> bytes:
        """A seal over the head as it is."""
        head = seals.Seal(ORIGIN, self.chain.size, self.chain.tree.root())
        return seals.sign_seal(head, key(writer))

    # --- other forms -------------------------------------------------------------------------

    def write(self, folder: Path) -> Path:
        """The ledger as a folder: rows as bytes, blobs as files, no index, no high water."""
        folder.mkdir(parents=True)
        store = SqliteStore.create(folder / DATABASE)
        with store.transaction():
            store.append([row_of(record) for record in self.records])
        store.close()
        self.put_blobs(BlobStore(folder / BLOBS))
        return folder

    def replay(self, folder: Path, address: Address | None = None) -> Ledger:
        """The same ledger appended draft by draft through the real book, into a file or onto a server."""
        ledger = Ledger.create(
            folder,
            origin=ORIGIN,
            root_key=key("root"),
            writer_key=key("writer"),
            writer_roles=WRITER_ROLES,
            nonce=f"{1:032x}",
            clock=SeqClock(),
            address=address,
        )
        self.put_blobs(ledger.blobs)
        for draft in self.drafts[2:]:
            ledger._key = key(draft.writer)
            ledger.append(draft.kind, draft.body, draft.refs, draft.statement)
        ledger._key = key("writer")
        return ledger

    def put_blobs(self, store: BlobStore) -> None:
        """Every blob of this world into a store."""
        for data in self.blobs.values():
            store.put(data, "text/plain")

    def _keep(self, record: Record, draft: Draft) -> None:
        self.records.append(record)
        self.drafts.append(draft)
        self.by_id[record.id] = record
        if record.kind == "root.rotated":
            self.root = "root-after-rotation"

    # --- looking -----------------------------------------------------------------------------

    def live_run(self) -> tuple[Record, RunState]:
        """The newest live run, launched first where there is none."""
        for record in reversed(self.records):
            run = self.chain.state.runs.get(record.id)
            if run is not None and run.status == "running":
                return record, run
        launched = self.add("run.launched")
        return launched, self.chain.state.runs[launched.id]


def sign_entry(entry: bytes, writer: str) -> bytes:
    """A writer's signature over an entry."""
    return key(writer).sign(pae(records.PAYLOAD_TYPE, entry))


def row_of(record: Record) -> tuple[int, bytes, bytes | None, bytes, bytes]:
    """A record as the store's row."""
    prev = None if record.prev is None else bytes.fromhex(record.prev[7:])
    return record.seq, bytes.fromhex(record.id[7:]), prev, record.signature, record.entry


def enrolment(world: World, name: str, roles: list[str]) -> dict[str, Any]:
    """The body's fields that enrol the key of a name at the next seq."""
    mine = key(name)
    return {
        "key": mine.id,
        "public_key": mine.public.hex(),
        "roles": roles,
        "from_seq": world.chain.size,
        "owner": name,
    }


# --- the valid draft of each kind ---------------------------------------------------------------


def plain(kind: str) -> Callable[[World], Draft]:
    """A draft whose required refs are the newest records of the first kind allowed."""

    def make(world: World) -> Draft:
        rule = RULES[kind]
        chosen = {choices[0] for choices in rule.one_of}
        refs: Refs = {}
        for role, spec in rule.refs.items():
            if not spec.required and role not in chosen:
                continue
            target = world.records[0] if spec.kinds == ANY else world.need(spec.kinds[0])
            refs[role] = [target.id] if spec.many else target.id
        writer = "auditor" if rule.roles == ("audit",) else "writer"
        return Draft(kind, samples.body(kind), refs, writer)

    return make


def _created(world: World) -> Draft:
    root = key("root")
    body = {"format": 1, "root_key": root.id, "root_public": root.public.hex()}
    return Draft("ledger.created", body, writer="root")


def _enrolled(world: World) -> Draft:
    body = samples.body("key.enrolled", **enrolment(world, world.fresh(), ["ingest"]))
    return Draft("key.enrolled", body, writer="root" if world.chain.size == 1 else "writer")


def _revoked(world: World) -> Draft:
    enrolled = world.enroll(world.fresh(), ["train"])
    body = samples.body("key.revoked", key=enrolled.body["key"], from_seq=world.chain.size)
    return Draft("key.revoked", body)


def _rotated(world: World) -> Draft:
    old, new = key(world.root), key("root-after-rotation")
    message = rotation_message(world.chain.state.ledger_id, old.id, new.id, world.seen())
    body = {
        "old_key": old.id,
        "new_key": new.id,
        "new_public": new.public.hex(),
        "acceptance": new.sign(message).hex(),
    }
    return Draft("root.rotated", body)


def _restored(world: World) -> Draft:
    size = world.chain.size
    lost = {"lost_from": size, "high_water": {"size": size + 1, "root": samples.ZERO}}
    return Draft("ledger.restored", samples.body("ledger.restored", **lost))


def _snapshot(world: World) -> Draft:
    data = world.chain.state.to_bytes()
    state = samples.blob("state", data)
    world.blobs[state["digest"]] = data
    tree = [item.hex() for item in world.chain.tree.to_hashes()]
    return Draft("snapshot.recorded", {"state": state, "tree": tree})


def _noted(world: World) -> Draft:
    return Draft("note.added", samples.body("note.added"), {"about": [world.records[0].id]})


def _planned(world: World) -> Draft:
    made = plain("plan.prepared")(world)
    made.body["settings"]["name"] = world.fresh()  # or it would be the twin of the one before
    return made


def _launched(world: World) -> Draft:
    plan = world.newest("plan.prepared")
    if plan is None or plan.id not in world.chain.state.plans:
        plan = world.add("plan.prepared")
    seen = world.seen().model_dump()
    return Draft("run.launched", samples.body("run.launched", seen=seen), {"plan": plan.id})


def _of_run(kind: str) -> Callable[[World], Draft]:
    def make(world: World) -> Draft:
        return Draft(kind, samples.body(kind), {"run": world.live_run()[0].id})

    return make


def _ended(world: World) -> Draft:
    launched, run = world.live_run()
    counters = {"groups": run.groups, "datums": run.datums, "updates": run.live, "outcomes": 0}
    refs: Refs = {"run": launched.id}
    if run.last_update is not None:
        refs["last_update"] = run.last_update
    body = samples.body("run.ended", counters=counters)
    if run.live == run.budget and run.method == "sft":
        # such a run may be called completed, and then binds what it leaves
        refs["checkpoint"] = world.add("checkpoint.published").id
        body["weights"] = samples.weights_left(run.live)
    return Draft("run.ended", body, refs)


def _resumed(world: World) -> Draft:
    launched = world.live_run()[0]
    world.add("run.ended")
    return Draft("run.resumed", samples.body("run.resumed"), {"run": launched.id})


def _group(world: World) -> Draft:
    launched, run = world.live_run()
    refs: Refs = {"run": launched.id, "policy": run.last_update or launched.id}
    return Draft(
        "rollout.group", samples.body("rollout.group", state=samples.weights(run.live)), refs
    )


def _rejected(world: World) -> Draft:
    launched = world.live_run()[0]
    refs: Refs = {"run": launched.id, "policy": launched.id}
    return Draft("rollout.rejected", samples.body("rollout.rejected"), refs)


def _batch(world: World) -> Draft:
    launched, run = world.live_run()
    step = run.live + 1
    body = samples.body("batch.built", step=step, digest=samples.digest(f"batch {step}"))
    return Draft("batch.built", body, {"run": launched.id, "split": run.split})


def _update(world: World) -> Draft:
    launched, run = world.live_run()
    if not run.pending:
        world.add("batch.built")
    refs: Refs = {"run": launched.id, "batch": [next(iter(run.pending))]}
    if run.last_update is not None:
        refs["previous"] = run.last_update
    body = samples.body(
        "update.acknowledged",
        step=run.live + 1,
        before=samples.weights(run.live),
        after=samples.weights(run.live + 1),
    )
    return Draft("update.acknowledged", body, refs)


def _checkpoint(world: World) -> Draft:
    launched, run = world.live_run()
    if run.last_update is None:
        world.add("update.acknowledged")
    body = samples.body(
        "checkpoint.published",
        step=run.live,
        state=samples.weights(run.live),
        spent_updates=run.live,
        spent_datums=run.datums,
    )
    return Draft("checkpoint.published", body, {"run": launched.id, "update": str(run.last_update)})


def _restored_checkpoint(world: World) -> Draft:
    checkpoint = world.need("checkpoint.published")
    refs: Refs = {"run": str(checkpoint.ref("run")), "checkpoint": checkpoint.id}
    body = samples.body("checkpoint.restored", state=checkpoint.body["state"])
    return Draft("checkpoint.restored", body, refs)


def _settled(world: World) -> Draft:
    intended = world.add("operation.intended")
    return Draft("operation.settled", samples.body("operation.settled"), {"operation": intended.id})


def _protocol(world: World) -> Draft:
    made = plain("protocol.registered")(world)
    made.refs["judge"] = world.need("model.registered").id
    return made


def _arm(world: World) -> Draft:
    made = plain("arm.transcribed")(world)
    cases = sum(world.need("protocol.registered").body["case_kinds"].values())
    made.body["cases"] = cases
    return made


def _pass(world: World) -> Draft:
    arm = world.need("arm.transcribed")
    refs: Refs = {"protocol": str(arm.ref("protocol")), "arm": arm.id}
    return Draft("judge.passed", samples.body("judge.passed"), refs)


def _evaluation(world: World) -> Draft:
    arm = world.add("arm.transcribed")
    made = [world.add("judge.passed", order=order) for order in ("forward", "reversed")]
    refs: Refs = {
        "protocol": str(arm.ref("protocol")),
        "arm": [arm.id],
        "pass": [item.id for item in made],
    }
    return Draft("evaluation.completed", samples.body("evaluation.completed"), refs)


def _comparison(world: World) -> Draft:
    baseline, candidate = world.add("evaluation.completed"), world.add("evaluation.completed")
    body = samples.body("comparison.made")
    body["candidates"][0]["evaluation"] = candidate.id
    return Draft("comparison.made", body, {"baseline": baseline.id, "evaluation": [candidate.id]})


def _nominated(world: World) -> Draft:
    made = plain("candidate.nominated")(world)
    made.body["chosen"] = made.refs["checkpoint"][0]
    return made


def _approved(world: World) -> Draft:
    gate = world.need("gate.decided")
    checkpoint = world.by_id[str(gate.ref("nomination"))].body["chosen"]
    body = samples.body("promotion.approved", reviewer=key("reviewer").id)
    return Draft("promotion.approved", body, {"gate": gate.id, "checkpoint": checkpoint})


def _granted(world: World) -> Draft:
    world.need("policy.declared")
    approval = world.need("promotion.approved")
    gate = world.by_id[str(approval.ref("gate"))]
    checkpoint = world.by_id[str(approval.ref("checkpoint"))]
    refs: Refs = {
        "gate": gate.id,
        "nomination": str(gate.ref("nomination")),
        "approval": [approval.id],
        "checkpoint": checkpoint.id,
    }
    body = samples.body("promotion.granted", tree=checkpoint.body["tree"])
    return Draft("promotion.granted", body, refs)


def _withheld(world: World) -> Draft:
    """A source's content withheld."""
    source = world.need("source.ingested")
    body = samples.body("blob.withheld", digest=source.body["content"]["digest"])
    return Draft("blob.withheld", body, {"record": source.id})


def _by_policy(kind: str) -> Callable[[World], Draft]:
    """A refusal or a gate, by the policy in force where there is one."""

    def make(world: World) -> Draft:
        draft = plain(kind)(world)
        if world.chain.state.policy is not None:
            draft.refs["policy"] = world.chain.state.policy
        return draft

    return make


DRAFTS: dict[str, Callable[[World], Draft]] = {
    **{kind: plain(kind) for kind in RULES},
    "ledger.created": _created,
    "key.enrolled": _enrolled,
    "key.revoked": _revoked,
    "root.rotated": _rotated,
    "ledger.restored": _restored,
    "snapshot.recorded": _snapshot,
    "note.added": _noted,
    "plan.prepared": _planned,
    "run.launched": _launched,
    "run.resumed": _resumed,
    "run.ended": _ended,
    "promotion.refused": _by_policy("promotion.refused"),
    "gate.decided": _by_policy("gate.decided"),
    "blob.withheld": _withheld,
    **{
        kind: _of_run(kind)
        for kind in ("run.stop_requested", "run.reconciled", "operation.intended")
    },
    "rollout.group": _group,
    "rollout.rejected": _rejected,
    "batch.built": _batch,
    "update.acknowledged": _update,
    "checkpoint.published": _checkpoint,
    "checkpoint.restored": _restored_checkpoint,
    "operation.settled": _settled,
    "protocol.registered": _protocol,
    "arm.transcribed": _arm,
    "judge.passed": _pass,
    "evaluation.completed": _evaluation,
    "comparison.made": _comparison,
    "candidate.nominated": _nominated,
    "promotion.approved": _approved,
    "promotion.granted": _granted,
}


def grown(kinds: list[str] | None = None) -> World:
    """A world that holds at least one record of each kind (a rotation last)."""
    world = World()
    for kind in kinds or [item for item in RULES if item not in ("ledger.created", "root.rotated")]:
        world.need(kind)
    if kinds is None:
        world.need("root.rotated")
    return world


__all__ = [
    "DRAFTS",
    "ORIGIN",
    "Draft",
    "SeqClock",
    "World",
    "clock_at",
    "enrolment",
    "grown",
    "key",
    "row_of",
    "sign_entry",
]
