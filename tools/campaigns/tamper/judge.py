"""The judge of the campaign in memory: hands an attack to the verifier and says what became of it."""

from __future__ import annotations

from campaigns.tamper.attack import Attack
from campaigns.tamper.base import Base
from campaigns.tamper.sequences import first_difference
from ledger.codes import CODES
from ledger.highwater import HighWater
from verifiers.chain import ChainResult, Row, RowAt, verify_chain
from verifiers.ending import Expectations, check_end
from verifiers.report import Finding, Report


class Escaped(Exception):
    """The product did other than it must; the message says what."""


def identical(base: Base, attack: Attack) -> bool:
    """Whether nothing was changed after all."""
    return attack.rows == base.rows and attack.notes == base.notes


def differs_at(base: Base, attack: Attack) -> int:
    """The first position that is not as it was: of a row, or of the last record under a seal."""
    row = first_difference(base.rows, attack.rows)
    if row == len(base.rows) == len(attack.rows):
        row = len(base.rows) + 1
    changed = set(base.notes) ^ set(attack.notes)
    ends = [max(size - 1, 0) for size, _ in changed]
    return min([row, *ends])


def starts_at(base: Base, attack: Attack) -> int:
    """The record from which a pass may start: the one before it and all seals up to there are untouched."""
    return min(differs_at(base, attack), base.size, len(attack.rows))


def judged(base: Base, attack: Attack, start: int) -> ChainResult:
    """What the verifier's pass gives, from record 0 or from a later one up to which nothing differs."""
    if start == 0:
        result = verify_chain(attack.rows, _row_at(attack.rows), attack.notes)
        result.passed.scratch.close()
        return result
    notes = [note for note in attack.notes if note[0] > start or note not in base.notes]
    return verify_chain(attack.rows[start:], _row_at(attack.rows), notes, begun=base.begun(start))


def check(base: Base, attack: Attack, result: ChainResult) -> str:
    """What became of an attack, as a key of the report's counts.

    Raises:
        Escaped: it was not found, at another place than allowed, or named by an unknown code.
    """
    if not result.wrong:
        return _check_outside(base, attack, result)
    first = result.wrong[0]
    if first.code not in CODES:
        raise Escaped(f"{first.code} is no code")
    if attack.cut_to is not None:
        return _check_cut(attack, first)
    differs, place = differs_at(base, attack), place_of(first)
    if first.code == "TAIL_CUT":
        differs = min(differs, len(attack.rows) - 1)  # a seal beyond the end tells at the end
    latest = differs if attack.latest is None else attack.latest
    if not differs <= place <= max(latest, differs):
        raise Escaped(f"{first.code} at {place}, not in {differs} to {latest}: {first.message}")
    if place > differs and attack.later is not None and first.code not in attack.later:
        raise Escaped(f"{first.code} at {place}, after the first difference at {differs}")
    return f"refused {first.code}"


def _check_cut(attack: Attack, first: Finding) -> str:
    sizes = [size for size, _ in attack.notes if size > len(attack.rows)]
    named = (first.code, first.expected, first.actual)
    due = ("TAIL_CUT", str(sizes[0] if sizes else None), str(attack.cut_to))
    if named != due:
        raise Escaped(f"a cut tail gave {named}, {due} is due")
    return "refused TAIL_CUT"


def _check_outside(base: Base, attack: Attack, result: ChainResult) -> str:
    """Nothing was found inside: allowed where only a kept head can tell, and there it must tell."""
    if not attack.outside:
        raise Escaped(f"verified, though it differs from {differs_at(base, attack)} on")
    if result.chain.size != len(attack.rows):
        raise Escaped(f"{result.chain.size} records reported, {len(attack.rows)} were there")
    report = Report(level="records", origin=result.chain.state.origin)
    if base.size == result.chain.size:
        result.roots[base.size] = result.chain.tree.root()
    elif base.size < result.chain.size:
        wanted = frozenset({base.size})
        again = verify_chain(attack.rows, _row_at(attack.rows), attack.notes, roots_wanted=wanted)
        again.passed.scratch.close()
        result.roots.update(again.roots)
    mark = HighWater(base.records[0].id, base.size, base.head_root, base.records[-1].id)
    check_end(result, Expectations(frozenset(), None, None, mark), report)
    codes = [item.code for item in report.wrong]
    due = "LEDGER_ROLLED_BACK" if len(attack.rows) < base.size else "LEDGER_FORKED"
    if codes != [due]:
        raise Escaped(f"a head kept elsewhere gave {codes}, {due} is due")
    return f"told by a kept head only {due}"


def same(one: ChainResult, other: ChainResult) -> bool:
    """Whether two passes over one ledger say the same."""
    return _said(one) == _said(other)


def _said(result: ChainResult) -> tuple[object, ...]:
    chain = result.chain
    return (
        result.wrong,
        chain.size,
        chain.tree.to_hashes(),
        chain.last_id,
        chain.state,
        result.seals_checked,
    )


def place_of(finding: Finding) -> int:
    """Where a finding stands; a gap is named by the row found (seq) and the place that is due (expected)."""
    if finding.code == "SEQ_GAP":
        return int(str(finding.expected))
    return -1 if finding.seq is None else finding.seq


def _row_at(rows: list[Row]) -> RowAt:
    return lambda seq: next((row for row in rows if row[0] == seq), None)
