"""V20: a grant, and a refusal's reasons and gate lines, are derived again from the evidence that they name."""

from __future__ import annotations

from ledger.digests import FileEntry, tree_digest
from ledger.record import Record
from verifiers.judgement import assemble
from verifiers.judgement.grants import approvals_since, grant_of
from verifiers.replay.view import Replay, View, deriving, expect


def refusal(record: Record, view: View) -> None:
    """The reasons are exactly those that the evidence gives.

    Raises:
        EvidenceError: `REFUSAL_WRONG`.
    """
    checkpoint = view.ref(record, "checkpoint")
    policy_id = record.ref("policy")
    policy = view.get(policy_id) if policy_id else None
    gate_id, tree = record.ref("gate"), stored_tree(checkpoint, view)
    with deriving("REFUSAL_WRONG"):
        if gate_id is None:
            compared = view.refs(record, "comparison")
            decision = assemble.promotion_of(
                checkpoint, policy.body if policy else None, compared, tree, view
            )
        else:
            gate, head = view.get(gate_id), str(record.prev)
            chosen = view.ref(gate, "nomination").body["chosen"]
            expect("REFUSAL_WRONG", "checkpoint", checkpoint.id, chosen)
            approvals = approvals_since(gate, head, view)
            decision = grant_of(gate, approvals, policy, tree, head, view)
    # codes and numbers are evidence; the words beside them may be put better by a later version
    claimed = [reason["code"] for reason in record.body["reasons"]]
    expect("REFUSAL_WRONG", "reasons", claimed, [reason.code for reason in decision.reasons])
    expect("REFUSAL_WRONG", "gates", record.body["gates"], decision.refusal()["gates"])


def grant(record: Record, view: View) -> str:
    """Nothing stands against a grant: its gate passes again, the runs, reviewers and bytes are there.

    Raises:
        EvidenceError: `GRANT_UNFOUNDED`.
    """
    gate, checkpoint = view.ref(record, "gate"), view.ref(record, "checkpoint")
    named = gate.ref("policy")
    policy = view.get(named) if named else None  # G4: it is the one in force
    with deriving("GRANT_UNFOUNDED"):
        decision = grant_of(
            gate,
            view.refs(record, "approval"),
            policy,
            stored_tree(checkpoint, view),
            str(record.prev),
            view,
        )
    expect("GRANT_UNFOUNDED", "reasons against it", [], [item.code for item in decision.reasons])
    return "that whoever reviewed and promoted understood what they signed"


def stored_tree(checkpoint: Record, view: View) -> str:
    """Tree digest of a checkpoint's files as the blob store has them, each re-hashed.

    Raises:
        EvidenceError: `BLOB_MISSING`, `BLOB_WRONG`.
    """
    files = [
        FileEntry(item["path"], len(view.blobs.read(item["digest"])), item["digest"])
        for item in checkpoint.body["files"]
    ]
    return tree_digest(files)


REPLAYS: dict[str, Replay] = {"promotion.granted": grant, "promotion.refused": refusal}
