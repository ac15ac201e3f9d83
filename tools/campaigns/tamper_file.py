"""Campaign tamper-file: ledgers on disk changed as bytes, by SQL and by what is put beside them.

Each case copies a ledger, changes it in one way and lets `verifiers.verify.verify` look at it. What must come out: a
verdict other than verified with the first bad record named; or rows and seals as they were and the control's
verdict, guards and derived files spoken of apart. One case in three also opens the folder to append. Nothing
may hang, end the process or raise anything but the ledger's own errors.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from campaigns.report import Outcome, Settings
from campaigns.tamper.disk import DiskBase, make_bases
from campaigns.tamper.file_bytes import (
    BLOB_FILES,
    DATABASE_BYTES,
    INDEX_BYTES,
    Change,
    changed_blobs,
)
from campaigns.tamper.file_judge import append_after, judge, judge_blob
from campaigns.tamper.file_sql import DATABASE_SQL, INDEX_SQL
from campaigns.tamper.judge import Escaped
from campaigns.watched import run_watched
from verifiers.report import Level
from verifiers.verify import Options, verify

FULL_CASES = 10_000
SLICE_CASES = 66
LIMIT_S = 30.0
APPEND_EVERY = 3
CONTROL_EVERY = 20
_DATABASE = {**DATABASE_BYTES, **DATABASE_SQL}
_INDEX = {**INDEX_BYTES, **INDEX_SQL}
CHANGES: dict[str, Change] = {**_DATABASE, **_INDEX, **BLOB_FILES}
EXCLUDED = {
    "bytes without meaning": (
        "a changed byte of free space, of a spare page or of a column that no verifier reads (`prev`) leaves rows "
        "and seals as they were; such cases must give the control's verdict and are counted as that"
    ),
    "a shorter ledger that is whole": (
        "the tail gone together with its seals: a high-water mark must tell, and is asked in each such case"
    ),
    "a seal taken away": "nothing says that a size must be sealed",
    "an index at level records": (
        "only its end is looked at there; level blobs compares every row, look-ups are certified either way"
    ),
    "an absent blob that is withheld": "no base holds one; the verifier's own tests do",
    "a damage that the writer's opening does not look for": (
        "opening to append checks no signatures of the past; a writer may go on above it where the verifier still names "
        "it, at the same record as before"
    ),
}


def run(settings: Settings) -> Outcome:
    """Run the campaign."""
    bases = make_bases(settings.folder / "bases")
    work = partial(_case, settings, bases)
    total = FULL_CASES if settings.full else SLICE_CASES
    outcome = run_watched(settings, total, work, LIMIT_S)
    outcome.excluded = EXCLUDED
    outcome.figures["classes of attack"] = len(CHANGES)
    outcome.figures["seconds allowed a case"] = LIMIT_S
    outcome.figures["records of the bases"] = {base.name: base.size for base in bases}
    return outcome


def _case(settings: Settings, bases: list[DiskBase], case: int) -> Outcome:
    outcome = Outcome(cases=1)
    name = list(CHANGES)[case % len(CHANGES)]
    outcome.counts[f"attack {name}"] += 1
    scratch = settings.folder / f"case-{case}"
    try:
        _attack(settings, bases, case, name, scratch, outcome)
        if case % CONTROL_EVERY == 0:
            _control(bases, scratch.with_name(f"control-{case}"), outcome)
    except Escaped as error:
        outcome.failures.append(f"case {case}: {name}: {error}")
    except Exception as error:  # noqa: BLE001 - the one place: what escapes the product is the finding
        outcome.failures.append(f"case {case}: {name}: escaped raw: {error!r}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return outcome


def _attack(
    settings: Settings,
    bases: list[DiskBase],
    case: int,
    name: str,
    scratch: Path,
    outcome: Outcome,
) -> None:
    random = settings.random("tamper-file", case)
    base = bases[0] if name in BLOB_FILES else random.choice(bases)
    level: Level = random.choice(list(base.controls))
    if name in BLOB_FILES or (name in _INDEX and base is bases[0]):
        level = "blobs"
    folder = base.copy(scratch)
    CHANGES[name](base, folder, random)
    if name in BLOB_FILES:
        changed = changed_blobs(base, folder)
        became = judge_blob(base, verify(folder, Options(level=level, workers=1)), changed)
    else:
        became = judge(base, folder, level, random)
    outcome.counts[became] += 1
    if case % APPEND_EVERY == 0:
        outcome.counts[append_after(base, folder)] += 1


def _control(bases: list[DiskBase], scratch: Path, outcome: Outcome) -> None:
    """An untampered copy verifies as it must, and goes on to after a record more."""
    for base in bases:
        folder = base.copy(scratch / base.name)
        for level, control in base.controls.items():
            report = verify(folder, Options(level=level, workers=1))
            if report != control:
                raise Escaped(f"the untampered {base.name} does not verify: {report.findings}")
            outcome.counts["control verified"] += 1
        if append_after(base, folder) != "writer went on, verified":
            raise Escaped(f"the untampered {base.name} cannot be appended to")
    shutil.rmtree(scratch)
