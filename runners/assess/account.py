"""An account of a gate, a promotion or a checkpoint: every number that a reader is told, derived again from the ledger.

One plain value, the `--json` answer of `evidence explain`. What is told in sentences and what stands on a dossier's page
are both made of it and of nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ledger.codes import CODES
from ledger.errors import EvidenceError, LedgerError, UsageError
from runners.assess import account_parts
from runners.assess.grants import chosen_of, gate_for
from runners.assess.lineage_audit import audit_lineage
from verifiers.blob_pass import MALFORMED, BlobPass, closure
from verifiers.judgement.assemble import GATE_SEED
from verifiers.judgement.gate_figures import figures_of
from verifiers.judgement.gates import decide_gates
from verifiers.judgement.resampling import generator
from verifiers.judgement.study_gate import evidence_again
from verifiers.replay.view import View
from verifiers.report import Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledger.book import Ledger
    from ledger.record import Record
    from verifiers.judgement.gate_evidence import Evidence, Limits
    from verifiers.judgement.gates import GateLine

Item = dict[str, Any]
KINDS: Final = (
    "gate.decided",
    "promotion.granted",
    "promotion.refused",
    "promotion.withdrawn",
    "checkpoint.published",
)
_SHORT: Final = 12
_MAX_MESSAGE: Final = 300
_LookedAt = Any  # what a gate looked at with its limits, or a dict with the problem that kept it from being gathered


def account_of(ledger: Ledger, record: Record) -> Item:
    """The whole account.

    Args:
        ledger: open for reading.
        record: of one of `KINDS`.

    Raises:
        EvidenceError: `REF_NOT_FOUND`, `BODY_INVALID`, what the checkpoint rests on is not there or not as it must be.
    """
    gate, checkpoint = _subject(ledger, record)
    view = View(ledger, ledger.blobs)
    audit = audit_lineage(ledger, checkpoint)
    promotion, rests_on = audit.pop("promotion"), audit
    looked_at = None if gate is None else _tried(lambda: evidence_again(gate, view))
    decided = None if gate is None else _gate(gate, looked_at)
    grant = ledger.get(promotion["granted"]) if promotion["granted"] else None
    roots = [item for item in (record, gate, checkpoint, grant) if item is not None]
    derived = _derived(ledger, roots, view)
    refusal = ledger.get(promotion["refused"][-1]) if promotion["refused"] else None
    return {
        "about": _about(ledger, record, gate, checkpoint),
        "commands": _commands(record, gate, checkpoint),
        "verdict": _verdict(ledger, promotion, decided, audit["suspect"], derived["verdict"]),
        "gate": decided,
        "figures": None if gate is None else _tried(lambda: _figures(gate, looked_at, view)),
        "test": None if gate is None else _tried(lambda: account_parts.test_of(ledger, gate, view)),
        "draws": [] if gate is None else _tried(lambda: account_parts.draws(gate, view)),
        "approvals": [] if gate is None else account_parts.approvals(ledger, gate),
        "promotion": {**promotion, **_words(ledger, promotion, refusal)},
        "rests_on": rests_on,
        "derived": derived,
    }


def _subject(ledger: Ledger, record: Record) -> tuple[Record | None, Record]:
    """The gate, where there is one, and the checkpoint that it is about."""
    if record.kind == "promotion.withdrawn":
        record = ledger.get(str(record.ref("promotion")))
    if record.kind == "checkpoint.published":
        return gate_for(ledger, record), record
    if record.kind == "gate.decided":
        return record, chosen_of(ledger, record)
    named = record.ref("gate")
    return ledger.get(named) if named else None, ledger.get(str(record.ref("checkpoint")))


def _about(ledger: Ledger, record: Record, gate: Record | None, checkpoint: Record) -> Item:
    size, head = ledger.size, ledger.head()[2]
    last = ledger.at(size - 1)
    return {
        "record": record.id,
        "kind": record.kind,
        "origin": ledger.origin,
        "records": size,
        "head": str(head),
        "newest_record_time": None if last is None else last.time,
        "checkpoint": checkpoint.id,
        "tree": checkpoint.body["tree"],
        "gate": None if gate is None else gate.id,
        "study": None if gate is None else gate.ref("study"),
        "nomination": None if gate is None else gate.ref("nomination"),
        "policy": None if gate is None else gate.ref("policy"),
    }


def _commands(record: Record, gate: Record | None, checkpoint: Record) -> dict[str, str]:
    """The commands that derive again what the parts of the account say."""
    subject, weighed = _digits(checkpoint), _digits(gate or record)
    return {
        "account": f"evidence explain {_digits(record)} --json",
        "gate": f"evidence verify {weighed} --level blobs",
        "checkpoint": f"evidence audit lineage {subject}",
        "lineage": f"evidence lineage {subject}",
        "promotion": "evidence promotion list",
        "head": "evidence log",
    }


def _digits(record: Record) -> str:
    return record.id.removeprefix("sha256:")[:_SHORT]


def _verdict(
    ledger: Ledger, promotion: Item, gate: Item | None, suspect: str | None, derived: str
) -> str:
    """How it stands now, in one word; what is suspect or was not derived is never told as granted or passed."""
    if promotion["withdrawn"]:
        return "withdrawn"
    if promotion["granted"]:
        void = suspect or _suspect_grant(ledger, promotion["granted"])
        return "void" if void else _if_sound("granted", gate, derived)
    if gate is None:
        return "refused" if promotion["refused"] else "undecided"
    if gate["problem"] is None and not gate["passed"]:
        return "failed"
    return _if_sound("passed", gate, derived)


def _if_sound(word: str, gate: Item | None, derived: str) -> str:
    if gate is not None and gate["problem"] is not None:
        return "unverified"
    if derived == "wrong" or gate is None or not gate["passed"] or gate["differs"]:
        return "unfounded"
    return word if derived == "verified" else "unverified"


def _suspect_grant(ledger: Ledger, name: str) -> str | None:
    from ledger.suspects import find_suspect, windows_in

    windows = windows_in(ledger.of_kind("key.revoked"))
    found = find_suspect([ledger.get(name)], windows, ledger.find)
    return None if found is None else found.reason


def _gate(gate: Record, looked_at: _LookedAt) -> Item:
    """A gate's lines as they are derived now; as recorded where that is not possible, and then it says why."""
    recorded: list[Item] = gate.body["gates"]
    derived = looked_at if isinstance(looked_at, dict) else _tried(lambda: _lines(*looked_at))
    if "problem" in derived:
        return {
            "passed": False,
            "recorded_as_passed": gate.body["passed"],
            "lines": [{**item, **_told(item["code"])} for item in recorded],
            "differs": [],
            "problem": derived["problem"],
        }
    lines: list[Item] = derived["lines"]
    plain = [{name: item[name] for name in _LINE} for item in lines]
    return {
        "passed": bool(lines) and all(item["passed"] for item in lines),
        "recorded_as_passed": gate.body["passed"],
        "lines": lines,
        "differs": _differs(recorded, plain),
        "problem": None,
    }


_LINE: Final = ("name", "value", "threshold", "passed", "code")


def _lines(evidence: Evidence, demanded: Limits) -> Item:
    report = decide_gates(evidence, demanded, generator(GATE_SEED))
    return {"lines": [_line(item) for item in report.lines]}


def _line(line: GateLine) -> Item:
    return {**line.as_dict(), **_told(line.code)}


def _told(code: str | None) -> Item:
    """What a line's code means and what to do; None for a line that passed or a code that is no code of ours."""
    row = CODES.get(str(code))
    return {"means": row.means if row else None, "hint": row.hint if row else None}


def _differs(recorded: list[Item], derived: list[Item]) -> list[str]:
    """Names of the lines that were recorded otherwise than the evidence gives them."""
    theirs = {item["name"]: item for item in recorded}
    mine = {item["name"]: item for item in derived}
    return sorted(
        name for name in theirs.keys() | mine.keys() if theirs.get(name) != mine.get(name)
    )


def _figures(gate: Record, looked_at: _LookedAt, view: View) -> Item:
    if isinstance(looked_at, dict):
        return looked_at
    found = figures_of(*looked_at)
    checkpoints = {
        record.body["tree"]: record.id
        for record in view.refs(view.ref(gate, "nomination"), "checkpoint")
    }
    for item in found["seeds"]:
        item["checkpoint"] = checkpoints.get(item["tree"])
    return found


def _words(ledger: Ledger, promotion: Item, refusal: Record | None) -> Item:
    """What the records about the promotion say in their own words."""
    grant = ledger.get(promotion["granted"]) if promotion["granted"] else None
    withdrawal = ledger.get(promotion["withdrawn"]) if promotion["withdrawn"] else None
    return {
        "scope": None if grant is None else grant.body["scope"],
        "withdrawn_why": None if withdrawal is None else withdrawal.body["why"],
        "refused_for": [] if refusal is None else [dict(item) for item in refusal.body["reasons"]],
    }


def _derived(ledger: Ledger, roots: list[Record], view: View) -> Item:
    """What came of deriving again these records and all that they rest on, and what of it stays somebody's word."""
    report = Report("blobs", records=1)
    withheld = {str(item.body["digest"]) for item in ledger.of_kind("blob.withheld")}
    found = BlobPass(view, report, withheld)
    members = {item.id: item for root in roots for item in closure(view, root)}
    for item in sorted(members.values(), key=lambda item: item.seq):
        found.check(item)
    problems = [*report.wrong, *report.missing]
    return {
        "records": len(members),
        "replayed": sum(report.replayed.values()),
        "verdict": report.verdict,
        "problems": [
            {"code": item.code, "message": item.message, "record": item.id} for item in problems
        ],
        "on_faith": [
            {"what": sentence, "records": count}
            for sentence, count in sorted(report.on_faith.items())
        ],
    }


def _tried(derive: Callable[[], Any]) -> Any:
    """What is derived, or `problem` with the code: an account says what it could not derive and goes on."""
    try:
        return derive()
    except (EvidenceError, UsageError) as error:
        return _problem(error)
    except MALFORMED as error:  # what a stranger's blobs hold may be anything that parses
        message = f"what it rests on cannot be read: {error!r}"[:_MAX_MESSAGE]
        return _problem(EvidenceError("BLOB_MALFORMED", message))


def _problem(error: LedgerError) -> Item:
    return {"problem": {"code": error.code, "message": error.message}}
