"""A judge put to labelled cases: what it said, how often it was right, and whether that is enough."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ledger import canonical
from ledger.blobs import JSON
from ledger.errors import EvidenceError, UsageError
from ledger.floors import DEFAULT_POLICY, MINIMUM_LABELLED
from runners.assess.asking import Place, Tell, hear
from runners.prepare.data import put_lines
from verifiers.data.identity import rows_bytes
from verifiers.judgement.judging import ORDERS
from verifiers.judgement.qualification import items, labelled, qualification
from verifiers.judgement.rubric import Rubric, default_rubric

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record

SHIPPED: Final = Path(__file__).parent / "qualification_cases.jsonl"
MAX_BYTES: Final = 16 << 20


def read_cases(path: Path) -> list[dict[str, Any]]:
    """Labelled cases of a JSON Lines file.

    Raises:
        UsageError: `INPUT_MISSING`; `CASES_TOO_FEW`, fewer than a qualification needs.
        EvidenceError: `CASE_BROKEN`, `NOT_CANONICAL`, `TOO_LARGE`.
    """
    if not path.is_file():
        raise UsageError("INPUT_MISSING", f"there is no file {path}")
    if path.stat().st_size > MAX_BYTES:
        raise EvidenceError("TOO_LARGE", f"{path} is larger than {MAX_BYTES} bytes")
    rows = [canonical.loads(line, 64) for line in path.read_bytes().splitlines() if line.strip()]
    found = labelled(rows)
    if len(found) < MINIMUM_LABELLED:
        raise UsageError(
            "CASES_TOO_FEW",
            f"{len(found)} labelled cases, a qualification needs {MINIMUM_LABELLED}",
            field="--cases",
            hint="leave --cases out to take the set that ships with the program",
        )
    return rows


def qualify(
    ledger: Ledger, model: Record, asked: str, rows: list[dict[str, Any]], place: Place, tell: Tell
) -> Record:
    """Ask a judge about labelled cases and record how well it did, qualified or not.

    Args:
        ledger: open for writing with an audit key.
        model: record of the judge.
        asked: `json` or `likelihood`.
        rows: the labelled cases.
        place: where to work.
        tell: called for progress.

    Raises:
        UsageError: `MODEL_NOT_HERE`, `EVALUATION_FAILED`, or what the rules refuse.
        EvidenceError: `MODEL_FILES_CHANGED`, `CASE_BROKEN`.
    """
    named = ledger.state().policy
    floor = (ledger.get(named).body if named else DEFAULT_POLICY)["judge_accuracy"]
    rubric = Rubric.read(default_rubric(asked))
    with tempfile.TemporaryDirectory(prefix="evidence-judge-") as scratch:
        heard = hear(model, rubric, items(labelled(rows)), place, Path(scratch), tell)
    passes = heard.passes(rubric)
    figures = qualification(rows, passes, rubric, floor)
    raw = {f"raw_{order}": put_lines(ledger, passes[order]["lines"]) for order in ORDERS}
    record = ledger.append(
        "judge.qualified",
        {
            "cases": put_lines(ledger, rows).model_dump(),
            "shipped": rows_bytes(rows) == rows_bytes(read_cases(SHIPPED)),
            "asked": asked,
            "rubric": ledger.blobs.put(canonical.encode(dict(rubric.data)), JSON).model_dump(),
            "judge_weights": heard.weights,
            "engine": heard.engine,
            **{name: blob.model_dump() for name, blob in raw.items()},
            **figures,
        },
        {"model": model.id},
    )
    heard.output.unlink(missing_ok=True)
    return record
