"""Campaign tamper-memory: changed entries, sequences, statements and seals, straight into the verifier's pass.

Each case takes one of two base ledgers, changes it in one way and hands it to `verifiers.chain.verify_chain`. What
must come out: a finding at the first position that differs, with a code of the table; or, where the change is
the work of somebody who holds the writer's own key, at the next thing that is not theirs. Nothing else may come
out: an exception of any other kind is a failure. A case starts from the chain saved just before its change; one
in a hundred runs from record 0 too and must give the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random

from campaigns.case_pool import run_cases
from campaigns.report import Outcome, Settings
from campaigns.tamper.attack import Attack, Make
from campaigns.tamper.authority import AUTHORITY
from campaigns.tamper.base import Base, memoised
from campaigns.tamper.entry_bytes import ENTRY_BYTES
from campaigns.tamper.growing import every_kind, long_life
from campaigns.tamper.judge import Escaped, check, identical, judged, same, starts_at
from campaigns.tamper.resigned import RESIGNED
from campaigns.tamper.sequences import SEQUENCES

FULL_CASES = 1_000_000
SLICE_CASES = 2_000
FROM_START_EVERY = 100
CONTROL_EVERY = 50
TRIES = 200
ATTACKS: dict[str, Make] = {**ENTRY_BYTES, **RESIGNED, **SEQUENCES, **AUTHORITY}
EXCLUDED = {
    "identical": (
        "a change that gives the untampered ledger again is no attack; it is counted and another is made"
    ),
    "a tail cut after the last seal, or with its seals": (
        "a chain cannot tell; a verifier that holds a high-water mark or a later seal can, and must "
        "(counted as told by a kept head only)"
    ),
    "a last record changed under its writer's own key, with no seal over it": (
        "the same: counted as told by a kept head only"
    ),
    "another history sealed anew by the seal key": "the same: counted as told by a kept head only",
    "a seal taken away": (
        "nothing says that a size must be sealed; whoever kept the seal can still hold it against the ledger"
    ),
    "a seal with one more line by a key that the ledger does not know": (
        "the note format has verifiers pass over such lines; witnesses' cosignatures are some of them"
    ),
}


def run(settings: Settings) -> Outcome:
    """Run the campaign."""
    bases()  # made before the workers start, so that they share them
    outcome = run_cases(settings, FULL_CASES if settings.full else SLICE_CASES, _cases)
    outcome.excluded = EXCLUDED
    outcome.figures["classes of attack"] = len(ATTACKS)
    outcome.figures["records of the bases"] = {base.name: base.size for base in bases()}
    return outcome


@cache
def bases() -> tuple[Base, ...]:
    """The ledgers that are attacked."""
    return Base("every kind", every_kind()), Base("long life", long_life())


def _cases(settings: Settings, cases: range, tell: Callable[[int], None]) -> Outcome:
    outcome = Outcome()
    with memoised():
        for done, case in enumerate(cases):
            _case(settings, case, outcome)
            tell(done + 1)
    return outcome


def _case(settings: Settings, case: int, outcome: Outcome) -> None:
    random = settings.random("tamper-memory", case)
    name = list(ATTACKS)[case % len(ATTACKS)]
    base = random.choice(bases())
    attack = _made(ATTACKS[name], base, random, outcome)
    outcome.cases += 1
    outcome.counts[f"attack {name}"] += 1
    try:
        outcome.counts[_became(base, attack, outcome, whole=case % FROM_START_EVERY == 0)] += 1
        if case % CONTROL_EVERY == 0:
            _control(base, random, outcome)
    except Escaped as error:
        outcome.failures.append(f"case {case}: {name} on {base.name}: {error}")
    except Exception as error:  # noqa: BLE001 - the one place: what escapes the verifier is the finding
        outcome.failures.append(f"case {case}: {name} on {base.name}: escaped raw: {error!r}")


def _made(make: Make, base: Base, random: Random, outcome: Outcome) -> Attack:
    for _ in range(TRIES):
        attack = make(base, random)
        if attack is None:
            continue
        if not identical(base, attack):
            return attack
        outcome.counts["identical, made again"] += 1
    raise RuntimeError("no attack of this class could be made")


def _became(base: Base, attack: Attack, outcome: Outcome, *, whole: bool) -> str:
    result = judged(base, attack, starts_at(base, attack))
    if whole:
        if not same(result, judged(base, attack, 0)):
            raise Escaped("a pass from record 0 says something else than one from the change on")
        outcome.counts["also judged from record 0, the same said"] += 1
    return check(base, attack, result)


def _control(base: Base, random: Random, outcome: Outcome) -> None:
    """The untampered ledger from some record on, and now and then from record 0."""
    start = random.choice((0, random.randrange(base.size + 1)))
    result = judged(base, Attack(base.rows, base.notes), start)
    if result.wrong or result.chain.size != base.size or result.seals_checked != len(base.notes):
        raise Escaped(f"the untampered ledger does not verify: {result.wrong}")
    outcome.counts["control verified"] += 1
