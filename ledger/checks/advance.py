"""How an admitted record moves the state on. The checks have passed; nothing here refuses."""

from __future__ import annotations

from collections.abc import Callable

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
            run.status = "unconfirmed"
            run.pending.clear()


def _planned(state: State, record: Record, _resolve: Resolve) -> None:
    state.plans[record.id] = record.body["settings_digest"]


def _launched(state: State, record: Record, resolve: Resolve) -> None:
    plan = resolve(str(record.ref("plan")))
    assert plan is not None  # _check_refs fetched it
    state.runs[record.id] = RunState(
        plan=plan.id,
        twin=state.plans.pop(plan.id),
        method=plan.body["method"],
        split=str(plan.ref("split")),
        budget=plan.body["budget_updates"],
    )


def _resumed(state: State, record: Record, resolve: Resolve) -> None:
    run = state.runs[str(record.ref("run"))]
    checkpoint_id = record.ref("checkpoint")
    checkpoint = resolve(checkpoint_id) if checkpoint_id else None
    run.status, run.ended = "running", None
    run.pending.clear()
    run.live = checkpoint.body["spent_updates"] if checkpoint else 0
    run.datums = checkpoint.body["spent_datums"] if checkpoint else 0
    run.last_update = checkpoint.ref("update") if checkpoint else None
    run.last_state = checkpoint.body["state"]["value"] if checkpoint else None


def _ended(state: State, record: Record, _resolve: Resolve) -> None:
    run_id = str(record.ref("run"))
    if record.body["outcome"] == "completed":
        del state.runs[run_id]
        return
    run = state.runs[run_id]
    run.status, run.ended = "ended", record.id
    run.pending.clear()


def _reconciled(state: State, record: Record, _resolve: Resolve) -> None:
    if record.body["found"] == "dead":
        run = state.runs[str(record.ref("run"))]
        run.status, run.ended = "ended", record.id
        run.pending.clear()


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
    run.last_update = record.id
    run.last_state = record.body["after"]["value"]


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
    "rollout.group": _group,
    "batch.built": _batch,
    "update.acknowledged": _update,
}
