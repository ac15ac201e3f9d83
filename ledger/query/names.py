"""What the tables are called; apart from `tables`, so that listing them loads no Arrow.

Three sorts: `records`, `edges` and one table a kind, read from the ledger; `as_of`, the head at which they were
read; and what `views/*.sql` derive from those, some of them under the name of the table that they extend.
"""

from __future__ import annotations

AS_OF = "as_of"
RECORDS = "records"
EDGES = "edges"

TABLES: dict[str, str] = {
    "ledger.created": "ledgers",
    "key.enrolled": "keys",
    "key.revoked": "revocations",
    "root.rotated": "rotations",
    "policy.declared": "policies",
    "ledger.restored": "restores",
    "snapshot.recorded": "snapshots",
    "note.added": "notes",
    "source.ingested": "sources",
    "dataset.parsed": "datasets",
    "split.declared": "splits",
    "leakage.audited": "audits",
    "leakage.accepted": "acceptances",
    "reward.audited": "rewards",
    "model.registered": "models",
    "plan.prepared": "plans",
    "run.launched": "runs",
    "run.resumed": "resumptions",
    "run.stop_requested": "stop_requests",
    "run.ended": "run_ends",
    "run.reconciled": "reconciliations",
    "rollout.group": "groups",
    "rollout.rejected": "rejected_groups",
    "batch.built": "batches",
    "update.acknowledged": "updates",
    "checkpoint.published": "checkpoints",
    "checkpoint.restored": "checkpoint_restores",
    "operation.intended": "operations",
    "operation.settled": "settlements",
    "study.registered": "studies",
    "protocol.registered": "protocols",
    "judge.qualified": "judges",
    "arm.transcribed": "arms",
    "judge.passed": "passes",
    "evaluation.completed": "evaluations",
    "comparison.made": "comparisons",
    "candidate.nominated": "nominations",
    "test.reviewed": "test_reviews",
    "draw.made": "draws",
    "check.reproduced": "checks",
    "gate.decided": "gates",
    "promotion.approved": "approvals",
    "promotion.granted": "promotions",
    "promotion.refused": "refusals",
    "promotion.withdrawn": "withdrawals",
    "blob.withheld": "withheld",
}
"""Kind -> table."""

READ = (AS_OF, RECORDS, EDGES, *TABLES.values())
"""Tables that are read from the ledger."""

DERIVED = ("batches", "checkpoints", "judgements", "looks", "updates")
"""Tables that `views/*.sql` make of others."""

ALL_TABLES = (*READ, *(name for name in DERIVED if name not in READ))


def recorded(table: str) -> str:
    """What a table that is read is called in the database: another name, where a derived one has its own."""
    return f"recorded_{table}" if table in DERIVED else table
