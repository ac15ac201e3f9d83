"""How an admitted record moves the state on. The checks have passed; nothing here refuses."""

from __future__ import annotations

from collections.abc import Callable

from ledger.checks.lineage import inherited
from ledger.checks.ranks import several
from ledger.merkle import CompactRange
from ledger.record import Record
from ledger.state import KeyState, RunState, State

Resolve = Callable[[str], Record | None]


def advance(state: State, record: Record, tree: CompactRange, resolve: Resolve) -> None:
    """Apply a record that was admitted; `tree` is the tree before it."""
    if record.statement is not None:
        state.nonces[record.statement.nonce] = record.seq
    if record.kind in _BY_KIND:
        _BY_KIND[record.kind](state, record, resolve)
    elif record.kind == "snapshot.recorded":
        head = tree.copy()
        head.append(bytes.fromhex(record.id[7:]))
        state.remember_head(head.size, head.root().hex())


def _created(state: State, record: Record, _resolve: Resolve) -> None:
    state.origin = record.ledger
    state.ledger_id = record.id
    state.root_key = record.actor
    state.keys[record.actor] = KeyState(
        public=record.body["root_public"], roles=["root"], from_seq=0, owner="root"
    )


def _enrolled(state: State, record: Record, _resolve: Resolve) -> None:
    body = record.body
    state.keys[body["key"]] = KeyState(
        public=body["public_key"],
        roles=sorted(body["roles"]),
        from_seq=body["from_seq"],
        owner=body["owner"],
    )


def _revoked(state: State, record: Record, _resolve: Resolve) -> None:
    key = state.keys[record.body["key"]]
    if key.until_seq is None:
        key.until_seq = record.seq
    suspect_from = max(record.body["from_seq"], key.from_seq)
    if suspect_from < key.until_seq:
        key.suspect_from = suspect_from


def _rotated(state: State, record: Record, _resolve: Resolve) -> None:
    body = record.body
    state.keys[body["old_key"]].until_seq = record.seq + 1
    state.keys[body["new_key"]] = KeyState(
        public=body["new_public"], roles=["root"], from_seq=record.seq + 1, owner="root"
    )
    state.root_key = body["new_key"]


def _policy(state: State, record: Record, _resolve: Resolve) -> None:
    state.policy = record.id


def _restored(state: State, _record: Record, _resolve: Resolve) -> None:
    """Runs open at a restore become unconfirmed: what they did since the backup is lost."""
    for run in state.runs.values():
        if run.status == "running":
            run.status, run.unrestored = "unconfirmed", False
            run.pending.clear()


def _planned(state: State, record: Record, _resolve: Resolve) -> None:
    state.plans[record.id] = record.body["settings_digest"]


def _launched(state: State, record: Record, resolve: Resolve) -> None:
    plan = resolve(str(record.ref("plan")))
    assert plan is not None  # _check_refs fetched it
    run = state.runs[record.id] = RunState(
        plan=plan.id,
        twin=state.plans.pop(plan.id),
        method=plan.body["method"],
        split=str(plan.ref("split")),
        budget=plan.body["budget_updates"],
        ranks=several(plan.body),
    )
    _begin(run, plan, resolve)
    checkpoint = inherited(plan, resolve)
    if checkpoint is not None:
        _inherit(state, record.id, checkpoint, fork=plan.body.get("fork", False))


def _begin(run: RunState, plan: Record, resolve: Resolve) -> None:
    """Stand where a run of the plan begins: nowhere, at a checkpoint, or at the weights of one."""
    _stand(run, inherited(plan, resolve))
    if plan.body["start"] == "weights":
        parent = resolve(str(plan.ref("parent")))
        assert parent is not None  # the plan was admitted with it
        run.stand_at(parent.body["state"])
    run.unrestored = plan.body["start"] != "fresh"


def _stand(run: RunState, checkpoint: Record | None) -> None:
    run.live = checkpoint.body["spent_updates"] if checkpoint else 0
    run.datums = checkpoint.body["spent_datums"] if checkpoint else 0
    run.last_update = checkpoint.ref("update") if checkpoint else None
    run.stand_at(checkpoint.body["state"] if checkpoint else None)


def _inherit(state: State, run_id: str, checkpoint: Record, *, fork: bool) -> None:
    """Take a run into the lineage of a checkpoint's run; unless it is a fork, what that run did afterwards is left."""
    parent_id = str(checkpoint.ref("run"))
    parent = state.runs[parent_id]
    state.runs[run_id].lineage = parent.lineage or parent_id
    if not fork:
        before = parent.live
        _stand(parent, checkpoint)
        _spend_elsewhere(state, parent, parent.live - before)
        parent.heir = run_id


def _spend_elsewhere(state: State, run: RunState, updates: int) -> None:
    """Count updates of a run that shares another's budget there."""
    root = state.root_of(run)
    if root is not None and root is not run:
        root.elsewhere += updates


def _resumed(state: State, record: Record, resolve: Resolve) -> None:
    run = state.runs[str(record.ref("run"))]
    run.status, run.ended, run.exact = "running", None, record.body["exact"]
    run.pending.clear()
    before, last = run.live, run.last_update
    checkpoint_id = record.ref("checkpoint")
    plan = resolve(run.plan)
    assert plan is not None  # the run was launched with it
    if checkpoint_id is not None:
        _stand(run, resolve(checkpoint_id))
        run.unrestored = True
    else:
        _begin(run, plan, resolve)
    for _ in range(before - run.live):
        update = resolve(str(last))
        assert update is not None  # the live path is a chain of admitted updates
        run.superseded[str(update.body["step"])] = update.id
        last = update.ref("previous")
    _spend_elsewhere(state, run, run.live - before)


def _ended(state: State, record: Record, _resolve: Resolve) -> None:
    run_id = str(record.ref("run"))
    if record.body["outcome"] == "completed":
        del state.runs[run_id]
        return
    run = state.runs[run_id]
    _close(run, record.id)


def _close(run: RunState, by: str) -> None:
    """End an attempt; what it had begun and not finished is left."""
    run.status, run.ended, run.unrestored = "ended", by, False
    run.pending.clear()


def _reconciled(state: State, record: Record, _resolve: Resolve) -> None:
    if record.body["found"] == "dead":
        run = state.runs[str(record.ref("run"))]
        _close(run, record.id)


def _loaded(state: State, record: Record, _resolve: Resolve) -> None:
    state.runs[str(record.ref("run"))].unrestored = False


def _group(state: State, record: Record, _resolve: Resolve) -> None:
    state.runs[str(record.ref("run"))].groups += 1


def _batch(state: State, record: Record, _resolve: Resolve) -> None:
    run = state.runs[str(record.ref("run"))]
    run.batches += 1
    run.datums += record.body["datums"]
    run.pending[record.id] = record.body["digest"]


def _update(state: State, record: Record, _resolve: Resolve) -> None:
    run = state.runs[str(record.ref("run"))]
    for batch in record.ref_list("batch"):
        del run.pending[batch]
    run.live += 1
    _spend_elsewhere(state, run, 1)
    run.superseded.pop(str(record.body["step"]), None)
    run.last_update = record.id
    run.stand_at(record.body["after"])


_BY_KIND: dict[str, Callable[[State, Record, Resolve], None]] = {
    "ledger.created": _created,
    "key.enrolled": _enrolled,
    "key.revoked": _revoked,
    "root.rotated": _rotated,
    "policy.declared": _policy,
    "ledger.restored": _restored,
    "plan.prepared": _planned,
    "run.launched": _launched,
    "run.resumed": _resumed,
    "run.ended": _ended,
    "run.reconciled": _reconciled,
    "checkpoint.restored": _loaded,
    "rollout.group": _group,
    "batch.built": _batch,
    "update.acknowledged": _update,
}
