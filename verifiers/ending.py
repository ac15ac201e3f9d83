"""Step V14: is this the end that was expected? Pinned root, expected seal, high water."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ledger import highwater, restores, seals
from ledger.errors import EvidenceError
from ledger.record import Record
from ledger.state import State
from verifiers.chain import ChainResult
from verifiers.report import Finding, Report

WHY_SHOWN = 200


@dataclass(frozen=True)
class Expectations:
    """What the caller holds the ledger against; the sizes tell at which heads a root is needed."""

    pinned_roots: frozenset[str]
    seal: seals.Seal | None
    note: bytes | None
    mark: highwater.HighWater | None

    @property
    def sizes(self) -> frozenset[int]:
        """Sizes whose roots the pass must keep."""
        found = (self.seal.size if self.seal else 0, self.mark.size if self.mark else 0)
        return frozenset(size for size in found if size)


def expectations(
    pinned_roots: frozenset[str], note: bytes | None, state_dir: Path | None, first: Record | None
) -> Expectations:
    """Read what was given.

    Raises:
        EvidenceError: `SEAL_INVALID`, `NOTE_INVALID`; `HIGHWATER_INVALID`, `UNSAFE_PATH`.
    """
    seal = seals.read_unverified(note) if note is not None else None
    known = state_dir is not None and first is not None
    mark = highwater.read(state_dir, first.id) if known and state_dir and first else None
    return Expectations(pinned_roots, seal, note, mark)


def check_end(result: ChainResult, expected: Expectations, report: Report) -> None:
    """Hold the end of a good chain against what was expected; findings go to the report."""
    _check_root_key(result.chain.state, expected.pinned_roots, report)
    if expected.seal is not None and expected.note is not None and _reached(result, expected.seal):
        _check_seal(result, report, expected.seal, expected.note)
    if expected.mark is not None and _reached(result, expected.mark):
        _check_mark(result, report, expected.mark)
    _say_restores(result.restores, report)
    if result.start and report.rollback == "unchecked":
        message = f"nothing from outside vouches for the first {result.start} records"
        report.missing.append(Finding.of(EvidenceError("SINCE_UNANCHORED", message), result.start))


def _reached(result: ChainResult, mark: seals.Seal | highwater.HighWater) -> bool:
    """Whether a mark lies beyond the beginning of the pass; one before it says nothing about the snapshot."""
    return not result.start or mark.size > result.start


def _check_root_key(state: State, pinned: frozenset[str], report: Report) -> None:
    if not pinned:
        return
    if pinned & {name for name, key in state.keys.items() if "root" in key.roles}:
        report.trust = "pinned"
        if state.root_key not in pinned:
            message = (
                f"the pinned root key handed its office over; the root key now is {state.root_key}"
            )
            report.warnings.append(Finding.of(EvidenceError("ROOT_ROTATED", message)))
    else:
        wanted = ", ".join(sorted(pinned))
        _wrong(
            report, "ROOT_UNTRUSTED", "the root key is none of those pinned", wanted, state.root_key
        )


def _check_seal(result: ChainResult, report: Report, expected: seals.Seal, note: bytes) -> None:
    size = result.chain.size
    root = result.roots.get(expected.size)
    if expected.origin != report.origin or root is None or root != expected.root:
        _wrong(
            report,
            "EXPECTED_SEAL",
            f"the ledger of {size} records does not contain the seal of {expected.size}",
            f"{expected.origin} {expected.size} {expected.root.hex()}",
            f"{report.origin} {size} {root.hex() if root else 'shorter'}",
        )
        return
    keys = result.chain.state.keys.values()
    publics = [bytes.fromhex(key.public) for key in keys if "seal" in key.roles]
    try:
        seals.open_seal(note, report.origin, publics)
    except EvidenceError as error:
        report.wrong.append(Finding.of(error))
    else:
        report.rollback = "expected seal found"


def _check_mark(result: ChainResult, report: Report, mark: highwater.HighWater) -> None:
    """The ledger reaches the mark, or root named exactly this mark as what was lost.

    A mark that was given up lies on another history, so it vouches for no snapshot that a pass began at.
    """
    size = result.chain.size
    root = result.roots.get(mark.size)
    if root != mark.root and any(restores.names(record, mark) for record in result.restores):
        if report.rollback == "unchecked" and not result.start:
            report.rollback = "high water given up by a restore"
    elif root is None:
        _wrong(
            report,
            "LEDGER_ROLLED_BACK",
            f"the ledger has {size} records, it had {mark.size} when last written here",
            str(mark.size),
            str(size),
        )
    elif root != mark.root:
        _wrong(
            report,
            "LEDGER_FORKED",
            f"the first {mark.size} records are not those last written here",
            mark.root.hex(),
            root.hex(),
        )
    elif report.rollback == "unchecked":
        report.rollback = "high water reached"


def _say_restores(found: list[Record], report: Report) -> None:
    """Each restore is said, whatever was expected: what it names was in this ledger and is lost."""
    for record in found:
        lost = record.body["high_water"]
        message = (
            f"records {record.body['lost_from']} to {lost['size'] - 1} of the history with root "
            f"{lost['root']} are lost, by root's statement: {record.body['why'][:WHY_SHOWN]}"
        )
        error = EvidenceError("LEDGER_RESTORED", message)
        report.warnings.append(Finding.of(error, record.seq, record.id))


def _wrong(report: Report, code: str, message: str, expected: str, actual: str) -> None:
    error = EvidenceError(code, message, expected=expected, actual=actual)
    report.wrong.append(Finding.of(error))
