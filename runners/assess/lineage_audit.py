"""What a reviewer asks about a checkpoint before its promotion, answered from the records it rests on.

Shown, not verified: the records are parsed and their bodies are of their kinds; whether numbers follow from bytes is
for `evidence verify CHECKPOINT --level blobs`. Only the checkpoint's own bytes and the outcomes that gates count are
read, to say what is missing for a promotion.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError
from ledger.query.lineage import walk
from ledger.query.live import updates_of
from ledger.record import sound
from ledger.suspects import find_suspect, windows_in
from runners.assess.grants import gate_for, weigh
from runners.assess.promote import comparisons_of
from verifiers.blob_pass import FAITH, MALFORMED, UNDERIVED
from verifiers.judgement.assemble import promotion_of
from verifiers.judgement.promotion import Reason
from verifiers.replay.promotion import stored_tree
from verifiers.replay.view import View

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record

Item = dict[str, Any]


@dataclass(frozen=True)
class Closure:
    """A checkpoint and the records that it rests on, by kind, each of a sound body and in the order of the ledger."""

    checkpoint: Record
    of_kind: dict[str, list[Record]]

    def ids(self, *kinds: str) -> set[str]:
        """Ids of the records of these kinds."""
        return {record.id for kind in kinds for record in self.of_kind.get(kind, [])}


def audit_lineage(ledger: Ledger, checkpoint: Record) -> Item:
    """The whole answer, as `--json` gives it.

    Raises:
        EvidenceError: `REF_NOT_FOUND`, `BODY_INVALID`, what the checkpoint rests on is not there or not as it must be.
    """
    closure = _closure(ledger, checkpoint)
    return {
        "checkpoint": checkpoint.id,
        "step": checkpoint.body["step"],
        "tree": checkpoint.body["tree"],
        "suspect": _suspect(ledger, checkpoint),
        "models": [_model(record) for record in closure.of_kind.get("model.registered", [])],
        "sources": [
            _source(ledger, record) for record in closure.of_kind.get("source.ingested", [])
        ],
        "splits": [_split(record) for record in closure.of_kind.get("split.declared", [])],
        "leaks": [_leak(ledger, record) for record in closure.of_kind.get("leakage.audited", [])],
        "runs": [_run(ledger, record, closure) for record in closure.of_kind["run.launched"]],
        "test_looks": _test_looks(ledger, closure),
        "promotion": _promotion(ledger, checkpoint),
        **_on_faith(closure),
    }


def _closure(ledger: Ledger, checkpoint: Record) -> Closure:
    found: dict[str, list[Record]] = defaultdict(list)
    nodes = walk(ledger, checkpoint, "up").nodes.values()
    for node in sorted(nodes, key=lambda node: node.seq):
        record = ledger.find(node.id)
        assert record is not None  # the walk has just found it
        found[record.kind].append(sound(record))
    return Closure(checkpoint, dict(found))


def _suspect(ledger: Ledger, checkpoint: Record) -> str | None:
    windows = windows_in(ledger.of_kind("key.revoked"))
    found = find_suspect([checkpoint], windows, ledger.find)
    return None if found is None else found.reason


def _model(record: Record) -> Item:
    names = ("name", "family", "licence", "source", "tree")
    return {"model": record.id, **{name: record.body[name] for name in names}}


def _source(ledger: Ledger, record: Record) -> Item:
    body = record.body
    withheld = ledger.referrers(record.id, "record", "blob.withheld")
    return {
        "source": record.id,
        "name": body["name"],
        "licence": body["licence"],
        "origin": body["origin"],
        "review": body["review"]["status"],
        "reviewer": body["review"].get("reviewer"),
        "bytes": body["content"]["digest"],
        "withheld": withheld[-1].body["why"] if withheld else None,
    }


def _split(record: Record) -> Item:
    names = ("method", "by", "roles", "groups")
    return {"split": record.id, **{name: record.body[name] for name in names}}


def _leak(ledger: Ledger, record: Record) -> Item:
    accepted = ledger.referrers(record.id, "audit", "leakage.accepted")
    return {
        "audit": record.id,
        "split": record.ref("split"),
        "verdict": record.body["verdict"],
        "touched": _some(record.body["levels"]),
        "entities": _some(record.body["entities"]),
        "accepted": accepted[-1].id if accepted else None,
        "why": accepted[-1].body["why"] if accepted else None,
    }


def _some(counts: dict[str, int]) -> dict[str, int]:
    return {name: number for name, number in counts.items() if number}


def _run(ledger: Ledger, run: Record, closure: Closure) -> Item:
    plan = ledger.get(str(run.ref("plan")), "plan.prepared")
    updates = updates_of(ledger, run)
    ends = ledger.referrers(run.id, "run", "run.ended")
    on_path = closure.ids("update.acknowledged")
    return {
        "run": run.id,
        "plan": plan.id,
        "method": plan.body["method"],
        "start": plan.body["start"],
        "fork": plan.body.get("fork", False),
        "outcome": ends[-1].body["outcome"] if ends else None,
        "attempts": 1 + len(ledger.referrers(run.id, "run", "run.resumed")),
        "on_path": sum(item.id in on_path for item in (*updates.live, *updates.superseded)),
        "live": len(updates.live),
        "superseded": len(updates.superseded),
    }


def _test_looks(ledger: Ledger, closure: Closure) -> list[Item]:
    """Every answer to a test set that is drawn from data of the closure, or that this checkpoint gave."""
    drawn_from = closure.ids("split.declared", "dataset.parsed")
    found = []
    for protocol in ledger.of_kind("protocol.registered"):
        if protocol.body["role"] != "test":
            continue
        related = bool(drawn_from & {protocol.ref("split"), protocol.ref("dataset")})
        found += [
            _look(protocol, arm, closure.checkpoint)
            for arm in ledger.referrers(protocol.id, "protocol", "arm.transcribed")
            if related or arm.ref("checkpoint") == closure.checkpoint.id
        ]
    return found


def _look(protocol: Record, arm: Record, checkpoint: Record) -> Item:
    return {
        "arm": arm.id,
        "protocol": protocol.id,
        "name": protocol.body["name"],
        "cases": arm.body["cases"],
        "answered_by": arm.ref("checkpoint") or arm.ref("model"),
        "review": arm.ref("review"),
        "before_checkpoint": arm.seq < checkpoint.seq,
        "time": arm.time,
    }


def _promotion(ledger: Ledger, checkpoint: Record) -> Item:
    granted = ledger.referrers(checkpoint.id, "checkpoint", "promotion.granted")
    withdrawn = [
        item
        for grant in granted
        for item in ledger.referrers(grant.id, "promotion", "promotion.withdrawn")
    ]
    refused = ledger.referrers(checkpoint.id, "checkpoint", "promotion.refused")
    return {
        "granted": granted[-1].id if granted else None,
        "withdrawn": withdrawn[-1].id if withdrawn else None,
        "refused": [item.id for item in refused],
        "missing": [] if granted else [reason.as_dict() for reason in _missing(ledger, checkpoint)],
    }


def _missing(ledger: Ledger, checkpoint: Record) -> list[Reason]:
    """What stands against a promotion now, by the rule that `evidence promote` asks."""
    gate = gate_for(ledger, checkpoint)
    comparisons = comparisons_of(ledger, checkpoint)
    reasons = [] if comparisons or gate else [_reason("COMPARISON_MISSING")]
    policies = ledger.of_kind("policy.declared")
    view = View(ledger, ledger.blobs)
    try:
        tree = stored_tree(checkpoint, view)
    except EvidenceError as error:
        tree = None
        reasons.append(_reason(error.code, error.message))
    try:
        decision = (
            weigh(ledger, gate)[1]
            if gate is not None
            else promotion_of(
                checkpoint, policies[-1].body if policies else None, comparisons, tree, view
            )
        )
    except EvidenceError as error:
        return [*reasons, _reason(error.code, error.message)]
    except MALFORMED as error:  # what a stranger's blobs hold may be anything that parses
        return [*reasons, _reason("BLOB_MALFORMED", f"an outcome cannot be read: {error!r}"[:300])]
    return [*reasons, *decision.reasons]


def _reason(code: str, message: str | None = None) -> Reason:
    from ledger.codes import CODES

    return Reason(code, message or CODES[code].means, CODES[code].hint)


def _on_faith(closure: Closure) -> Item:
    """What of it is somebody's word whatever is verified, and what this version cannot derive again."""
    counts = Counter({kind: len(found) for kind, found in closure.of_kind.items()})
    return {
        "on_faith": {FAITH[kind]: counts[kind] for kind in FAITH if counts[kind]},
        "underived": {kind: counts[kind] for kind in sorted(UNDERIVED) if counts[kind]},
    }
