"""V20: a refusal's reasons and gate lines are derived again from the evidence it names."""

from __future__ import annotations

from ledger.digests import FileEntry, tree_digest
from ledger.record import Record
from verifiers.judgement import assemble
from verifiers.replay.view import Replay, View, deriving, expect


def refusal(record: Record, view: View) -> None:
    """The reasons are exactly those that the evidence gives.

    Raises:
        EvidenceError: `REFUSAL_WRONG`.
    """
    checkpoint = view.ref(record, "checkpoint")
    policy_id = record.ref("policy")
    policy = view.get(policy_id).body if policy_id else None
    with deriving("REFUSAL_WRONG"):
        decision = assemble.promotion_of(
            checkpoint, policy, view.refs(record, "comparison"), stored_tree(checkpoint, view), view
        )
    # codes and numbers are evidence; the words beside them may be put better by a later version
    claimed = [reason["code"] for reason in record.body["reasons"]]
    expect("REFUSAL_WRONG", "reasons", claimed, [reason.code for reason in decision.reasons])
    expect("REFUSAL_WRONG", "gates", record.body["gates"], decision.refusal()["gates"])


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


REPLAYS: dict[str, Replay] = {"promotion.refused": refusal}
