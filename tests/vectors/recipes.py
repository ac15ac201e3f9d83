"""The recipes of the vectors: one scenario each, from fixed keys and times.

A recipe gives a small ledger as (entry, signature) pairs, seals beside it, and what a verifier must say:
`verified`, or the code of its first finding. `tools/gen_vectors.py` writes them to `schemas/vectors`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import samples
from descent import (
    begun,
    continued,
    end,
    heir_launched,
    incomplete,
    launch,
    like_another,
    load,
    next_update,
    of_preferences,
    plan,
    publish,
    redone_otherwise,
    resume,
    resumed_superseded,
    resumed_without_files,
    step,
    unloaded,
)
from several import begun_by, by_two, other_hardware, ranks
from world import DRAFTS, Draft, World, clock_at, enrolment, key, sign_entry

from ledger import canonical, seals
from ledger.errors import EvidenceError
from ledger.records.base import Seen

VERIFIED = "verified"
NOTE = Draft("note.added", {"text": "a note"})


@dataclass
class Scenario:
    """A ledger's bytes and what is said of them."""

    expect: str
    comment: str
    records: list[tuple[bytes, bytes]]
    seals: list[tuple[int, bytes]] = field(default_factory=list)
    stored_ids: list[str] | None = None
    warnings: list[str] = field(default_factory=list)


Recipe = Callable[[], Scenario]
Change = Callable[[World, Draft], None]


def rows(world: World) -> list[tuple[bytes, bytes]]:
    """Entries and signatures of a world."""
    return [(record.entry, record.signature) for record in world.records]


def good(comment: str, *kinds: str, seal: bool = False, **options: Any) -> Recipe:
    """A ledger in order that holds the kinds."""

    def make() -> Scenario:
        world = World()
        for kind in kinds:
            world.need(kind)
        notes = [(world.chain.size, world.seal())] if seal else []
        if seal:
            notes = [(world.chain.size, notes[0][1])]
        return Scenario(VERIFIED, comment, rows(world), notes, **options)

    return make


def redone_updates() -> Scenario:
    """A run that went back to its checkpoint twice and then came to its end."""
    world = World()
    run = begun(world)
    checkpoint = publish(world, run)
    for _ in range(2):
        step(world, run, 2)
        end(world, run)
        resume(world, run, checkpoint)
    step(world, run, 3)
    end(world, run, "completed")
    comment = "updates after a checkpoint lost twice, kept, and named by those that redid them"
    return Scenario(VERIFIED, comment, rows(world))


def preferences() -> Scenario:
    """A run on preferences, its one update acknowledged."""
    world = World()
    run = launch(world, plan(world, method="dpo"))
    world.admit(next_update(world, run))
    end(world, run)
    return Scenario(VERIFIED, "a run on preferences", rows(world))


def heir_and_fork() -> Scenario:
    """A run that stopped, an heir of its checkpoint, and a fork within what is left of the budget."""
    world = World()
    run = begun(world)
    checkpoint = publish(world, run)
    end(world, run)
    heir = launch(world, plan(world, checkpoint))
    step(world, heir, 2)
    end(world, heir)
    fork = launch(world, plan(world, checkpoint, fork=True))
    step(world, fork)
    end(world, fork)
    return Scenario(VERIFIED, "an heir and a fork of one checkpoint", rows(world))


def two_processes() -> Scenario:
    """A run of two processes from its launch to its end."""
    world = World()
    run = begun_by(world, 2)
    for step_number in range(1, 5):
        draft = next_update(world, run)
        draft.body["ranks"] = ranks((0, step_number), (1, step_number))
        world.admit(draft)
    publish(world, run)
    end(world, run, "completed")
    return Scenario(VERIFIED, "each update names the state of both ranks", rows(world))


def spoiled(expect: str, kind: str, comment: str, change: Change) -> Recipe:
    """A ledger whose last record is a draft of the kind with something changed, well signed."""

    def make() -> Scenario:
        world = World()
        draft = world.draft(kind)
        change(world, draft)
        return Scenario(expect, comment, [*rows(world), world.sign_bytes(draft)])

    return make


def respelt(expect: str, comment: str, change: Callable[[bytes], bytes]) -> Recipe:
    """A ledger whose last entry is other bytes, signed as they are."""

    def make() -> Scenario:
        world = World()
        entry = change(world.sign_bytes(NOTE)[0])
        return Scenario(expect, comment, [*rows(world), (entry, sign_entry(entry, "writer"))])

    return make


def rearranged(expect: str, comment: str, change: Callable[[list[Any]], list[Any]]) -> Recipe:
    """A ledger whose good rows were moved, removed or exchanged."""

    def make() -> Scenario:
        world = World()
        for number in range(3):
            world.add("note.added", text=f"note {number}")
        return Scenario(expect, comment, change(rows(world)))

    return make


def sealed(
    expect: str, comment: str, change: Callable[[World, int, bytes], tuple[int, bytes]]
) -> Recipe:
    """A ledger in order with a seal that is not."""

    def make() -> Scenario:
        world = World()
        note = world.seal()
        return Scenario(expect, comment, rows(world), [change(world, world.chain.size, note)])

    return make


def put(**changes: Any) -> Change:
    """Change fields of the body."""
    return lambda _, draft: draft.body.update(changes)


def placed(**changes: Any) -> Change:
    """Change where the draft stands, who writes it or when."""

    def change(_: World, draft: Draft) -> None:
        for name, value in changes.items():
            setattr(draft, name, value)

    return change


def refer(**refs: Any) -> Change:
    """Put refs into the draft; None takes one away."""

    def change(world: World, draft: Draft) -> None:
        for role, value in refs.items():
            if value is None:
                del draft.refs[role]
            else:
                draft.refs[role] = value(world) if callable(value) else value

    return change


def newest(kind: str) -> Callable[[World], str]:
    """Id of the newest record of a kind, made if need be."""
    return lambda world: world.need(kind).id


def stated(**changes: Any) -> Change:
    """Have the statement signed over something else."""
    return lambda world, draft: setattr(draft, "statement", world.state_of(draft, **changes))


# --- changes with a story -------------------------------------------------------------------------


def flip(data: bytes, position: int) -> bytes:
    """One bit of some bytes turned."""
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


def doubled(entry: bytes) -> bytes:
    """The same key twice in the body."""
    return entry.replace(b'"body":{', b'"body":{"text":"another note",')


def enrolled_after(start: int) -> Change:
    """Write with a key whose window begins later."""

    def change(world: World, draft: Draft) -> None:
        world.add("key.enrolled", **{**enrolment(world, "later", ["ingest"]), "from_seq": start})
        draft.writer = "later"

    return change


def by_revoked(world: World, draft: Draft) -> None:
    """Write with a key that was revoked."""
    world.add("key.revoked", key=key("auditor").id, from_seq=world.chain.size)
    draft.writer = "auditor"


def replayed(world: World, draft: Draft) -> None:
    """Carry a statement that an earlier record carried."""
    world.admit(draft)


def stale(world: World, draft: Draft) -> None:
    """State over a head that was not sealed, and let another record come between."""
    draft.statement = world.state_of(draft)
    world.add("note.added")


def leaked(world: World, draft: Draft) -> None:
    """Plan on an audit with findings that nobody accepted."""
    draft.refs["audit"] = world.add("leakage.audited", verdict="findings").id


def twin(world: World, draft: Draft) -> None:
    """Plan what a live run is doing."""
    plan = world.by_id[str(world.need("run.launched").ref("plan"))]
    draft.body["settings"] = plan.body["settings"]


def launched_again(world: World, draft: Draft) -> None:
    """Launch a plan whose run has ended."""
    draft.refs["plan"] = str(world.need("run.launched").ref("plan"))
    world.need("run.ended")


def after_end(world: World, _: Draft) -> None:
    """End the run first."""
    world.add("run.ended")


def after_restore(world: World, _: Draft) -> None:
    """The ledger was restored while the run was open."""
    world.add("ledger.restored")


def resumed_unconfirmed(world: World, draft: Draft) -> None:
    """A run that was open at a restore goes on before anybody found it dead."""
    draft.refs = {"run": world.add("run.launched").id}
    world.add("ledger.restored")


def reconciled() -> Scenario:
    """A run that was open at a restore is found dead and goes on from its checkpoint."""
    world = World()
    checkpoint = world.add("checkpoint.published")
    world.add("ledger.restored")
    refs: dict[str, Any] = {"run": str(checkpoint.ref("run"))}
    for found in ("unreachable", "dead"):
        body = samples.body("run.reconciled", found=found)
        world.admit(Draft("run.reconciled", body, refs))
    resumed = samples.body("run.resumed", from_update=1)
    world.admit(Draft("run.resumed", resumed, {**refs, "checkpoint": checkpoint.id}))
    load(world, world.by_id[refs["run"]], checkpoint)
    world.add("update.acknowledged")
    comment = "a run open at a restore is unconfirmed, found dead, and goes on from its checkpoint"
    return Scenario(VERIFIED, comment, rows(world))


def rewarded(**settings: Any) -> Change:
    """A reinforcement plan that is in order but for the settings given."""

    def change(world: World, draft: Draft) -> None:
        settled = {"lora_dropout": "0.0", "reference": "adapter_off", "kl_coefficient": "0.05"}
        draft.body.update(method="rl", settings={**settled, **settings})
        draft.refs["reward"] = world.need("reward.audited").id

    return change


def completed_short(world: World, draft: Draft) -> None:
    """Call one update of two a completed run."""
    world.add("update.acknowledged")
    made = DRAFTS["run.ended"](world)
    draft.body.update(made.body, outcome="completed")
    draft.refs.update(made.refs)


def completed_unbound(world: World, draft: Draft) -> None:
    """Call a run completed and name no checkpoint."""
    for _ in range(2):
        world.add("update.acknowledged")
    made = DRAFTS["run.ended"](world)
    draft.body.update(made.body, outcome="completed")
    draft.refs.update({role: ref for role, ref in made.refs.items() if role != "checkpoint"})


def second_update(world: World, draft: Draft) -> None:
    """Make the draft the second update, in order."""
    world.add("update.acknowledged")
    made = DRAFTS["update.acknowledged"](world)
    draft.body.update(made.body)
    draft.refs.update(made.refs)


def skipped(world: World, draft: Draft) -> None:
    """Leave out the update before."""
    second_update(world, draft)
    del draft.refs["previous"]


def from_elsewhere(world: World, draft: Draft) -> None:
    """Begin from other weights."""
    second_update(world, draft)
    draft.body["before"] = samples.weights(9)


def fed_twice(world: World, draft: Draft) -> None:
    """Acknowledge a batch a second time."""
    used = draft.refs["batch"]
    second_update(world, draft)
    draft.refs["batch"] = used


def leftover(world: World, draft: Draft) -> None:
    """Feed the second update a batch of the first step."""
    unused = world.add("batch.built").id
    second_update(world, draft)
    draft.refs["batch"] = [unused]


def overspent(world: World, draft: Draft) -> None:
    """One update beyond the budget."""
    for _ in range(2):
        world.add("update.acknowledged")
    made = DRAFTS["update.acknowledged"](world)
    draft.body.update(made.body)
    draft.refs = made.refs


def redone(digest: str) -> Change:
    """Redo step 1 on a batch of a digest."""

    def change(world: World, draft: Draft) -> None:
        first = world.add("update.acknowledged")
        run = world.live_run()[0].id
        world.add("run.ended")
        world.admit(Draft("run.resumed", samples.body("run.resumed"), {"run": run}))
        world.add("batch.built", digest=digest)
        made = DRAFTS["update.acknowledged"](world)
        draft.body.update(made.body)
        draft.refs = {**made.refs, "replays": first.id}

    return change


def replays_other(world: World, draft: Draft) -> None:
    """Say that step 2 redoes step 1."""
    second_update(world, draft)
    draft.refs["replays"] = draft.refs["previous"]


def other_run_group(world: World, draft: Draft) -> None:
    """Read another run's group."""
    del draft.refs["split"]
    world.add("run.launched")
    draft.refs["group"] = [world.add("rollout.group").id]


def other_run_checkpoint(world: World, draft: Draft) -> None:
    """Go on from another run's checkpoint."""
    world.add("run.launched")
    draft.refs["checkpoint"] = world.add("checkpoint.published").id
    draft.body["from_update"] = 1


def resume_live(world: World, draft: Draft) -> None:
    """Resume a run that is live."""
    draft.refs["run"] = world.add("run.launched").id


def other_protocol(world: World, draft: Draft) -> None:
    """Name another protocol."""
    draft.refs["protocol"] = world.add("protocol.registered").id


def unreviewed(world: World, draft: Draft) -> None:
    """Open the test set without a review."""
    draft.refs["protocol"] = world.add("protocol.registered", role="test").id


def itself(_: World, draft: Draft) -> None:
    """Compare the baseline with itself."""
    draft.refs["evaluation"] = [draft.refs["baseline"]]
    draft.body["candidates"][0]["evaluation"] = draft.refs["baseline"]


def failed_gate(world: World, draft: Draft) -> None:
    """Promote past a gate that said no."""
    line = {**samples.body("gate.decided")["gates"][0], "passed": False}
    draft.refs["gate"] = world.add("gate.decided", gates=[line], passed=False).id
    draft.refs["approval"] = [world.add("promotion.approved").id]


def lone_reviewer(world: World, draft: Draft) -> None:
    """One approval where the policy asks for two."""
    world.add("policy.declared", reviewers=2)


def no_policy() -> Scenario:
    """A promotion in a ledger without a policy."""
    world = World()
    approval = world.need("promotion.approved")
    gate = world.by_id[str(approval.ref("gate"))]
    refs = {
        "gate": gate.id,
        "nomination": str(gate.ref("nomination")),
        "approval": [approval.id],
        "checkpoint": str(approval.ref("checkpoint")),
    }
    tree = world.by_id[refs["checkpoint"]].body["tree"]
    body = samples.body("promotion.granted", tree=tree)
    draft = Draft("promotion.granted", body, refs, stater="promoter")
    comment = "with no policy there is no number of reviewers that is enough"
    return Scenario("POLICY_MISSING", comment, [*rows(world), world.sign_bytes(draft)])


def forged(
    expect: str, comment: str, change: Callable[[bytes, bytes], tuple[bytes, bytes]]
) -> Recipe:
    """A ledger whose last signature is not its writer's."""

    def make() -> Scenario:
        world = World()
        return Scenario(expect, comment, [*rows(world), change(*world.sign_bytes(NOTE))])

    return make


def wrong_row_id() -> Scenario:
    """The id stored beside a record is another record's."""
    world = World()
    ids = [record.id for record in world.records]
    comment = "the id stored beside the last record is that of the first"
    return Scenario("ROW_ID_WRONG", comment, rows(world), stored_ids=[*ids[:-1], ids[0]])


def seal_by(name: str) -> Recipe:
    """A seal by a key without the role."""
    return sealed(
        "SEAL_INVALID",
        f"the seal is signed by the {name}'s key, which may not seal",
        lambda world, size, _: (size, world.note(name)),
    )


def other_head(world: World, size: int, root: bytes) -> tuple[int, bytes]:
    """A seal of the seal key over a head that is not the ledger's."""
    head = seals.Seal(world.records[0].ledger, size, root)
    return size, seals.sign_seal(head, key("writer"))


def clock_back() -> Scenario:
    """A time that goes backwards: recorded, warned, never refused."""
    world = World()
    world.admit(replace(NOTE, time=clock_at(0)))
    comment = "the last record's time is earlier than the one before: a warning, no finding"
    return Scenario(VERIFIED, comment, rows(world), warnings=["CLOCK_BACKWARDS"])


def lose_writer(world: World) -> None:
    """Revoke the writer's key from the checkpoint on."""
    world.enroll("writer2", ["judge"])
    start = world.need("checkpoint.published").seq
    body = samples.body("key.revoked", key=key("writer").id, from_seq=start)
    world.admit(Draft("key.revoked", body, stater="root"))


def on_suspect(world: World, draft: Draft) -> None:
    """Let another judge write the draft after the writer's key was taken back."""
    lose_writer(world)
    draft.writer = "writer2"


def reaching_back() -> Scenario:
    """A promotion that a later revocation makes void; the chain stays in order."""
    world = World()
    world.need("promotion.granted")
    lose_writer(world)
    return Scenario(VERIFIED, "a revocation that makes a promotion void", rows(world))


VALID: dict[str, Recipe] = {
    "beginning": good("record 0 and the enrolment of five keys"),
    "data": good("source, dataset, split, audit and a reviewer's acceptance", "leakage.accepted"),
    "run": good(
        "a plan, a launch, an update, its checkpoint, the end", "checkpoint.published", "run.ended"
    ),
    "resumed-run": good("an attempt that ended and goes on", "run.resumed"),
    "redone-updates": redone_updates,
    "heir-and-fork": heir_and_fork,
    "preferences": preferences,
    "two-processes": two_processes,
    "reinforcement": good(
        "a group, a rejected group, an audited reward",
        "rollout.group",
        "rollout.rejected",
        "reward.audited",
    ),
    "evaluation": good("two evaluations of one protocol, compared", "comparison.made"),
    "promotion": good("everything up to a grant, and its withdrawal", "promotion.withdrawn"),
    "refusal": good("a checkpoint that was not promoted, and why", "promotion.refused"),
    "operations": good("a provider's call, intended and settled", "operation.settled"),
    "rotation": good("a new root key accepts its office", "root.rotated"),
    "revocation": good("a key that no longer counts", "key.revoked"),
    "revocation-reaching-back": reaching_back,
    "restore": good("the ledger goes on from a backup", "ledger.restored"),
    "reconciled-run": reconciled,
    "sealed": good("a snapshot and a seal over the head after it", "policy.declared", seal=True),
    "clock-backwards": clock_back,
}

INVALID: dict[str, Recipe] = {
    # rows and bytes
    "record-removed": rearranged(
        "SEQ_GAP", "a record from the middle is gone", lambda all_: all_[:3] + all_[4:]
    ),
    "records-swapped": rearranged(
        "SEQ_GAP", "two records changed places", lambda all_: [*all_[:6], all_[7], all_[6], all_[8]]
    ),
    "record-twice": rearranged(
        "SEQ_GAP", "the last record stands there twice", lambda all_: [*all_, all_[-1]]
    ),
    "head-removed": rearranged("SEQ_GAP", "record 0 is gone", lambda all_: all_[1:]),
    "duplicate-key": respelt("NOT_CANONICAL", "the body names text twice", doubled),
    "space": respelt(
        "NOT_CANONICAL", "a space after a colon", lambda entry: entry.replace(b":", b": ", 1)
    ),
    "float": respelt(
        "NOT_CANONICAL", "a floating-point number", lambda entry: entry.replace(b'"a note"', b"0.5")
    ),
    "integer-2-53": respelt(
        "NOT_CANONICAL",
        "an integer beyond 2^53-1",
        lambda entry: entry.replace(b'"a note"', b"9007199254740992"),
    ),
    "lone-surrogate": respelt(
        "NOT_CANONICAL", "a lone surrogate", lambda entry: entry.replace(b"a note", b"\\ud800")
    ),
    "key-not-ascii": respelt(
        "NOT_CANONICAL",
        "a key that is not ASCII",
        lambda entry: entry.replace(b'"text"', '"täxt"'.encode()),
    ),
    "deep": respelt(
        "NOT_CANONICAL",
        "arrays nested 40 deep",
        lambda entry: entry.replace(b'"a note"', b"[" * 40 + b"]" * 40),
    ),
    "escape-not-needed": respelt(
        "NOT_CANONICAL",
        "a letter written as an escape",
        lambda entry: entry.replace(b"a note", b"\\u0061 note"),
    ),
    "entry-too-large": respelt(
        "ENTRY_TOO_LARGE",
        "signature and entry are 65,536 bytes",
        lambda entry: entry.replace(b"a note", b"x" * (65_472 - len(entry) + 6)),
    ),
    # envelope and place
    "envelope-field-unknown": respelt(
        "ENVELOPE_INVALID",
        "a field beside the body",
        lambda entry: entry.replace(b'"kind"', b'"extra":1,"kind"'),
    ),
    "envelope-time": spoiled(
        "ENVELOPE_INVALID",
        "note.added",
        "the 30th of February",
        placed(time="2026-02-30T00:00:00.000Z"),
    ),
    "prev-of-another": spoiled(
        "CHAIN_BROKEN", "note.added", "prev names no record", placed(prev=samples.digest("another"))
    ),
    "second-beginning": spoiled(
        "GENESIS_MISPLACED",
        "ledger.created",
        "a second record 0 in the middle",
        placed(writer="writer"),
    ),
    "other-ledger": spoiled(
        "ORIGIN_FOREIGN",
        "note.added",
        "a record of another ledger",
        placed(ledger="example.com/other"),
    ),
    # V6
    "kind-unknown": spoiled(
        "KIND_UNKNOWN", "note.added", "no such kind", placed(kind="note.removed")
    ),
    "schema-future": spoiled(
        "SCHEMA_FUTURE", "note.added", "a later schema version", placed(schema=2)
    ),
    "schema-unknown": spoiled(
        "SCHEMA_UNKNOWN", "note.added", "a version never released", placed(schema=0)
    ),
    "body-field-unknown": spoiled(
        "BODY_INVALID", "note.added", "a field that no note has", put(extra=1)
    ),
    "body-field-missing": spoiled(
        "BODY_INVALID", "note.added", "a note without text", lambda _, draft: draft.body.pop("text")
    ),
    "batch-without-rows": spoiled(
        "BODY_INVALID", "batch.built", "no rows and no blob of rows", put(rows=[])
    ),
    "batch-with-rows-twice": spoiled(
        "BODY_INVALID",
        "batch.built",
        "rows beside a blob of rows",
        put(rows_blob=samples.blob("rows of a batch")),
    ),
    "checkpoint-path-twice": spoiled(
        "BODY_INVALID",
        "checkpoint.published",
        "a path that stands twice among the files",
        lambda _, draft: draft.body["files"].append({**draft.body["files"][0], "size": 9}),
    ),
    "real-not-shortest": spoiled(
        "BODY_INVALID", "policy.declared", "0.050 instead of 0.05", put(alpha="0.050")
    ),
    "kl-no-number": spoiled(
        "NOT_A_REAL",
        "plan.prepared",
        "a KL coefficient that is no number",
        rewarded(kl_coefficient="x"),
    ),
    # keys and signatures
    "key-unknown": spoiled(
        "KEY_UNKNOWN", "note.added", "nobody enrolled the key", placed(writer="stranger")
    ),
    "key-early": spoiled(
        "KEY_OUT_OF_WINDOW", "note.added", "before the key's window", enrolled_after(1000)
    ),
    "key-revoked": spoiled(
        "KEY_OUT_OF_WINDOW", "note.added", "after the key's revocation", by_revoked
    ),
    "role-missing": spoiled(
        "ROLE_MISSING", "source.ingested", "an auditor ingests", placed(writer="auditor")
    ),
    "signature-bit": forged(
        "SIGNATURE_INVALID",
        "one bit of the signature is turned",
        lambda entry, signature: (entry, flip(signature, 9)),
    ),
    "entry-bit": forged(
        "SIGNATURE_INVALID",
        "one letter of the entry is another",
        lambda entry, signature: (entry.replace(b"a note", b"b note"), signature),
    ),
    "signature-of-other": forged(
        "SIGNATURE_INVALID",
        "signed by another enrolled key",
        lambda entry, _: (entry, sign_entry(entry, "auditor")),
    ),
    "signature-without-type": forged(
        "SIGNATURE_INVALID",
        "signed without the payload type",
        lambda entry, _: (entry, key("writer").sign(entry)),
    ),
    "signature-short": forged(
        "SIGNATURE_INVALID",
        "a signature of 63 bytes",
        lambda entry, signature: (entry, signature[:63]),
    ),
    # V9
    "statement-missing": spoiled(
        "STATEMENT_MISSING", "policy.declared", "nobody stated it", placed(stater=None)
    ),
    "statement-unexpected": spoiled(
        "STATEMENT_UNEXPECTED", "note.added", "a note carries no authority", placed(stater="root")
    ),
    "statement-role": spoiled(
        "STATEMENT_ROLE", "leakage.accepted", "the writer accepts findings", placed(stater="writer")
    ),
    "statement-other-body": spoiled(
        "STATEMENT_INVALID", "policy.declared", "signed over an empty body", stated(body={})
    ),
    "statement-other-ledger": spoiled(
        "STATEMENT_INVALID",
        "policy.declared",
        "signed for another ledger",
        stated(ledger="example.com/other"),
    ),
    "statement-replayed": spoiled("STATEMENT_REPLAYED", "policy.declared", "used before", replayed),
    "statement-stale": spoiled(
        "STATEMENT_STALE", "policy.declared", "over a head never sealed", stale
    ),
    "statement-foreign": spoiled(
        "STATEMENT_FOREIGN",
        "policy.declared",
        "over a head of the right size with another root",
        lambda world, draft: stated(seal=Seen(size=world.chain.size, root=samples.ZERO))(
            world, draft
        ),
    ),
    # V10
    "ref-missing": spoiled(
        "REF_MISSING", "dataset.parsed", "a dataset of no source", refer(source=None)
    ),
    "ref-none-of-several": spoiled(
        "REF_MISSING", "batch.built", "a batch of neither groups nor split", refer(split=None)
    ),
    "ref-unexpected": spoiled(
        "REF_UNEXPECTED",
        "note.added",
        "a ref that no note has",
        refer(source=newest("source.ingested")),
    ),
    "ref-shape": spoiled(
        "REF_SHAPE",
        "dataset.parsed",
        "one id where a list is due",
        refer(source=newest("source.ingested")),
    ),
    "ref-kind": spoiled(
        "REF_KIND", "run.launched", "a run of a note", refer(plan=newest("note.added"))
    ),
    "ref-not-found": spoiled(
        "REF_NOT_FOUND",
        "run.launched",
        "a plan that is not here",
        refer(plan=samples.digest("a plan")),
    ),
    # keys and root, V11
    "key-id": spoiled(
        "KEY_ID_WRONG", "key.enrolled", "the id of another key", put(key=key("else").id)
    ),
    "key-twice": spoiled(
        "KEY_TWICE",
        "key.enrolled",
        "enrolled before",
        lambda world, draft: draft.body.update(enrolment(world, "writer", ["ingest"])),
    ),
    "key-backdated": spoiled(
        "KEY_BACKDATED", "key.enrolled", "for records already written", put(from_seq=0)
    ),
    "key-root-role": spoiled(
        "KEY_ROLES", "key.enrolled", "root is never enrolled", put(roles=["root"])
    ),
    "key-weak": spoiled(
        "WEAK_KEY", "key.enrolled", "the neutral point", put(public_key="01" + "00" * 31)
    ),
    "key-no-point": spoiled(
        "KEY_MALFORMED", "key.enrolled", "no point of the curve", put(public_key="02" + "00" * 31)
    ),
    "review-key-shared": spoiled(
        "REVIEW_KEY_SHARED", "key.enrolled", "a reviewer who trains", put(roles=["review", "train"])
    ),
    "audit-key-shared": spoiled(
        "AUDIT_KEY_SHARED", "key.enrolled", "an auditor who judges", put(roles=["audit", "judge"])
    ),
    "root-not-accepted": spoiled(
        "ROOT_WRONG", "root.rotated", "the new root did not sign", put(acceptance="0" * 128)
    ),
    "snapshot": spoiled("SNAPSHOT_WRONG", "snapshot.recorded", "an empty tree", put(tree=[])),
    "restore": spoiled(
        "RESTORE_WRONG", "ledger.restored", "lost from the beginning", put(lost_from=0)
    ),
    # plans and runs, V11
    "audit-other-split": spoiled(
        "AUDIT_OTHER_SPLIT",
        "plan.prepared",
        "the audit is of another split",
        refer(split=lambda world: world.add("split.declared", groups=9).id),
    ),
    "leakage": spoiled(
        "LEAKAGE_NOT_ACCEPTED", "plan.prepared", "findings that nobody accepted", leaked
    ),
    "reward-unaudited": spoiled(
        "REWARD_NOT_AUDITED",
        "plan.prepared",
        "a reinforcement plan without a reward",
        lambda world, draft: (rewarded()(world, draft), draft.refs.pop("reward")),
    ),
    "rl-dropout": spoiled(
        "RL_DROPOUT", "plan.prepared", "dropout of a tenth", rewarded(lora_dropout="0.1")
    ),
    "rl-reference": spoiled(
        "RL_REFERENCE", "plan.prepared", "no frozen reference", rewarded(reference="none")
    ),
    "rl-kl": spoiled("RL_KL", "plan.prepared", "no KL term", rewarded(kl_coefficient="0.0")),
    "plan-start": spoiled(
        "PLAN_START", "plan.prepared", "exact start without a parent", put(start="exact")
    ),
    "settings-digest": spoiled(
        "SETTINGS_DIGEST_WRONG",
        "plan.prepared",
        "a settings digest of something else",
        put(settings_digest=samples.digest("something else")),
    ),
    "twin": spoiled("TWIN_UNCONFIRMED", "plan.prepared", "an equal plan is live", twin),
    "launched-again": spoiled(
        "PLAN_LAUNCHED", "run.launched", "one launch a plan, ever", launched_again
    ),
    "seal-ahead": spoiled(
        "SEAL_AHEAD",
        "run.launched",
        "a head from the future",
        put(seen={"size": 9999, "root": samples.ZERO}),
    ),
    "run-ended": spoiled("RUN_NOT_OPEN", "batch.built", "a batch after the end", after_end),
    "run-unconfirmed": spoiled(
        "RUN_NOT_OPEN", "batch.built", "a batch after the ledger was restored", after_restore
    ),
    "run-unconfirmed-resumed": spoiled(
        "RUN_STILL_OPEN", "run.resumed", "an unconfirmed run is not resumed", resumed_unconfirmed
    ),
    "restore-fork": spoiled(
        "RESTORE_WRONG",
        "ledger.restored",
        "the head named is not beyond what is left: another history, not a loss",
        put(high_water={"size": 6, "root": samples.ZERO}),
    ),
    "run-still-open": spoiled(
        "RUN_STILL_OPEN", "run.resumed", "a live run is not resumed", resume_live
    ),
    "parent-differs": spoiled(
        "PARENT_DIFFERS", "plan.prepared", "goes on with other settings", continued(settings={})
    ),
    "like-differs": spoiled(
        "PARENT_DIFFERS", "plan.prepared", "like another, but otherwise", like_another(settings={})
    ),
    "state-incomplete": spoiled(
        "STATE_INCOMPLETE", "plan.prepared", "goes on exactly without the optimizer", incomplete
    ),
    "state-without-files": spoiled(
        "STATE_INCOMPLETE",
        "run.resumed",
        "goes on from a checkpoint that has no file",
        resumed_without_files,
    ),
    "state-not-restored": spoiled(
        "STATE_NOT_RESTORED",
        "batch.built",
        "resumed from a checkpoint that was not loaded",
        unloaded(),
    ),
    "heir-not-restored": spoiled(
        "STATE_NOT_RESTORED",
        "batch.built",
        "an heir that did not load its checkpoint",
        unloaded(launched=True),
    ),
    "heir-twice": spoiled("HEIR_EXISTS", "run.launched", "a second heir", heir_launched),
    "checkpoint-superseded": spoiled(
        "CHECKPOINT_SUPERSEDED", "run.resumed", "from a path that was left", resumed_superseded
    ),
    "restored-other-part": spoiled(
        "STATE_DIFFERS",
        "checkpoint.restored",
        "a part with another digest",
        put(digests={"model.safetensors": samples.digest("x")}),
    ),
    "checkpoint-other-run": spoiled(
        "CHECKPOINT_OTHER_RUN", "run.resumed", "another run's checkpoint", other_run_checkpoint
    ),
    "counters": spoiled(
        "COUNTERS_WRONG",
        "run.ended",
        "one group too many",
        lambda _, draft: draft.body["counters"].update(groups=1),
    ),
    "short-run": spoiled(
        "SHORT_RUN", "run.ended", "one update of two is not completed", completed_short
    ),
    "completion-unbound": spoiled(
        "COMPLETION_UNBOUND", "run.ended", "a completed run without a checkpoint", completed_unbound
    ),
    "seed-differs": spoiled(
        "SEED_DIFFERS",
        "plan.prepared",
        "another training seed than the settings'",
        lambda _, draft: draft.body.update(
            settings={**draft.body["settings"], "seed": 1}, seeds={"training": 2}
        ),
    ),
    # learning, V11
    "group-size": spoiled(
        "GROUP_SIZE", "rollout.group", "one reward for two members", put(rewards=["1.0"])
    ),
    "batch-other-split": spoiled(
        "BATCH_OTHER_SPLIT",
        "batch.built",
        "rows of another split",
        refer(split=lambda world: world.add("split.declared", groups=9).id),
    ),
    "batch-other-run": spoiled(
        "BATCH_OTHER_RUN", "batch.built", "another run's group", other_run_group
    ),
    "batch-other-step": spoiled(
        "BATCH_OTHER_STEP", "update.acknowledged", "a batch of the step before", leftover
    ),
    "batch-twice": spoiled(
        "BATCH_ALREADY_ACKNOWLEDGED", "update.acknowledged", "a batch fed twice", fed_twice
    ),
    "update-order": spoiled(
        "UPDATE_OUT_OF_ORDER", "update.acknowledged", "step 2 comes first", put(step=2)
    ),
    "update-skipped": spoiled(
        "UPDATE_NOT_CONTINUED", "update.acknowledged", "without the one before", skipped
    ),
    "state-broken": spoiled(
        "STATE_BROKEN", "update.acknowledged", "from other weights", from_elsewhere
    ),
    "state-other-scheme": spoiled(
        "STATE_BROKEN",
        "checkpoint.published",
        "the update's value as a provider's",
        put(state={**samples.weights(1), "scheme": "provider_policy"}),
    ),
    "hosted-tensors": spoiled(
        "BODY_INVALID",
        "checkpoint.published",
        "tensors that a provider is said to hold",
        put(hosted="a provider"),
    ),
    "budget": spoiled("BUDGET_EXCEEDED", "update.acknowledged", "three updates of two", overspent),
    "no-gradient": spoiled(
        "BAD_GRADIENT", "update.acknowledged", "nothing was learnt", put(gradient_norm="0.0")
    ),
    "no-gradient-of-preferences": spoiled(
        "BAD_GRADIENT", "update.acknowledged", "a run on preferences learnt nothing", of_preferences
    ),
    "replay-other-update": spoiled(
        "REPLAY_OTHER_UPDATE", "update.acknowledged", "another step redone", replays_other
    ),
    "replay-other-state": spoiled(
        "REPLAY_OTHER_STATE",
        "update.acknowledged",
        "redone, and other weights where the same were promised",
        redone_otherwise,
    ),
    "replay-other-batch": spoiled(
        "REPLAY_OTHER_BATCH",
        "update.acknowledged",
        "redone on other rows",
        redone(samples.digest("other rows")),
    ),
    "checkpoint-other-update": spoiled(
        "CHECKPOINT_OTHER_UPDATE",
        "checkpoint.published",
        "another update followed",
        lambda world, _: world.add("update.acknowledged"),
    ),
    "world-size": spoiled(
        "WORLD_SIZE", "update.acknowledged", "one process where the plan has two", by_two((0, 1))
    ),
    "world-size-planned": spoiled(
        "WORLD_SIZE", "plan.prepared", "settings for two, hardware for one", other_hardware
    ),
    "rank-twice": spoiled(
        "RANKS_WRONG", "update.acknowledged", "rank 0 twice", by_two((0, 1), (0, 1))
    ),
    "ranks-disagree": spoiled(
        "RANKS_DISAGREE", "update.acknowledged", "rank 1 came elsewhere", by_two((0, 1), (1, 7))
    ),
    # evaluation and promotion, V11
    "judge-missing": spoiled(
        "JUDGE_MISSING", "protocol.registered", "dialogues and no judge", refer(judge=None)
    ),
    "pass-kind": spoiled(
        "PASS_KIND", "judge.passed", "a pass that was not planned", put(pass_kind="position_swap")
    ),
    "judge-unqualified": spoiled(
        "JUDGE_UNQUALIFIED", "judge.passed", "no record says so", put(qualified=True)
    ),
    "cases-missing": spoiled("CASES_MISSING", "arm.transcribed", "one case of two", put(cases=1)),
    "test-unreviewed": spoiled(
        "TEST_NOT_REVIEWED", "arm.transcribed", "a test set without review", unreviewed
    ),
    "passes-missing": spoiled(
        "PASSES_MISSING",
        "evaluation.completed",
        "judged in one order only",
        lambda _, draft: draft.refs.update({"pass": draft.refs["pass"][:1]}),
    ),
    "protocol-mismatch": spoiled(
        "PROTOCOL_MISMATCH", "judge.passed", "another protocol", other_protocol
    ),
    "pairing": spoiled("PAIRING_BROKEN", "comparison.made", "the baseline beside itself", itself),
    "nomination-other": spoiled(
        "NOMINATION_OTHER",
        "candidate.nominated",
        "chosen and not nominated",
        put(chosen=samples.digest("x")),
    ),
    "gate-wrong": spoiled(
        "GATE_WRONG", "gate.decided", "no line fails and the gate does", put(passed=False)
    ),
    "gate-on-suspect": spoiled(
        "EVIDENCE_SUSPECT",
        "gate.decided",
        "a gate passes on a checkpoint whose writer's key was revoked from before it",
        on_suspect,
    ),
    "approval-on-suspect": spoiled(
        "EVIDENCE_SUSPECT",
        "promotion.approved",
        "a reviewer approves what rests on a suspect checkpoint",
        on_suspect,
    ),
    "promotion-on-suspect": spoiled(
        "EVIDENCE_SUSPECT",
        "promotion.granted",
        "a promotion rests on a suspect checkpoint",
        on_suspect,
    ),
    "gate-failed": spoiled("GATE_FAILED", "promotion.granted", "the gate said no", failed_gate),
    "reviewer-other": spoiled(
        "REVIEWER_OTHER",
        "promotion.approved",
        "another reviewer's name",
        put(reviewer=key("reviewer2").id),
    ),
    "promoted-bytes": spoiled(
        "PROMOTED_BYTES", "promotion.granted", "other bytes", put(tree=samples.digest("x"))
    ),
    "review-missing": spoiled(
        "REVIEW_MISSING", "promotion.granted", "one reviewer of two", lone_reviewer
    ),
    "policy-missing": no_policy,
    # stored ids and seals
    "row-id": wrong_row_id,
    "seal-other-root": sealed(
        "SEAL_WRONG",
        "a root that the records do not give",
        lambda world, size, _: other_head(world, size, b"\x07" * 32),
    ),
    "seal-moved": sealed(
        "SEAL_WRONG", "kept under another size", lambda _world, size, note: (size - 1, note)
    ),
    "seal-of-auditor": seal_by("auditor"),
    "seal-bit": sealed(
        "SEAL_INVALID",
        "a letter of the note is another",
        lambda _world, size, note: (size, flip(note, 40)),
    ),
    "seal-no-note": sealed(
        "SEAL_INVALID", "no signed note at all", lambda _world, size, _note: (size, b"seal\n")
    ),
    "tail-cut": sealed(
        "TAIL_CUT",
        "a seal says there were more records",
        lambda world, size, _: other_head(world, size + 3, b"\x07" * 32),
    ),
}


def encode(scenario: Scenario, step: str) -> bytes:
    """The vector's file: a header and the artefact, canonical and one field a line at the top."""
    header = {"expect": scenario.expect, "step": step, "comment": scenario.comment}
    fields: dict[str, Any] = {**header, "warnings": scenario.warnings}
    fields["records"] = [
        {"entry": entry.decode(), "signature": signature.hex()}
        for entry, signature in scenario.records
    ]
    fields["seals"] = [{"size": size, "note": note.decode()} for size, note in scenario.seals]
    if scenario.stored_ids is not None:
        fields["stored_ids"] = scenario.stored_ids
    lines = [f'"{name}": {_text(value)}' for name, value in fields.items()]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _text(value: Any) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(canonical.encode(item).decode() for item in value) + "\n]"
    return canonical.encode(value).decode()


__all__ = ["INVALID", "VALID", "VERIFIED", "EvidenceError", "Scenario", "encode"]
