"""Ten thousand groups with one fault each, and a thousand without: who is refused, by which code?

Groups are made as a runner makes them, from episodes that were really played, and handed to the verifier as the bytes that a
ledger keeps. A group with a fault counts as refused only under the fault's own code: another code would send whoever
reads it to another cause.
"""

from __future__ import annotations

import io
import random
from typing import Any

from campaigns.group_faults import FAULTS, Spoiled, spoiled, whole
from campaigns.group_maker import KEYS, STATE, Made, make_group
from campaigns.report import Outcome, Settings
from ledger.errors import EvidenceError
from verifiers.learning import groups
from verifiers.rewards import earned
from verifiers.rewards.episodes import REWARDS

ATTACKS = {True: 10_000, False: len(FAULTS)}
CONTROLS = {True: 1_000, False: 30}
PROGRESS_EVERY = 100


def run(settings: Settings) -> Outcome:
    """Spoil, ask, count."""
    outcome = Outcome()
    outcome.excluded = {
        "a copied member under another seed": "nothing but sampling again tells it from two like samples",
        "other ids or log-probabilities of the right form": "the same",
    }
    attacks, controls = ATTACKS[settings.full], CONTROLS[settings.full]
    for case in range(attacks + controls):
        if settings.case in (None, case):
            source = settings.random("group", case)
            _attack(outcome, case, source) if case < attacks else _control(outcome, case, source)
        if case % PROGRESS_EVERY == 0:
            settings.progress(case, attacks + controls)
    return outcome


def verdict(made: Made, given: Spoiled) -> str | None:
    """The code that a group is refused with, or None where it counts."""
    try:
        group = groups.read_group(io.BytesIO(given.samples), given.trace)
        groups.check_group(given.body, group, made.plan, STATE)
        earned.check_earned(group, made.plan, given.row)
    except EvidenceError as error:
        return error.code
    except Exception as error:  # noqa: BLE001 - what escapes raw is what this campaign looks for
        return f"raw {type(error).__name__}"
    return None


def _attack(outcome: Outcome, case: int, source: random.Random) -> None:
    name = list(FAULTS)[case % len(FAULTS)]
    made, given = spoiled(name, source)
    outcome.cases += 1
    outcome.counts[f"attack {name}"] += 1
    found, due = verdict(made, given), FAULTS[name].code
    outcome.counts[f"refused {found}" if found else "accepted"] += 1
    if found != due:
        outcome.failures.append(f"case {case}: {name} gave {found or 'no refusal'}, {due} is due")


def _control(outcome: Outcome, case: int, source: random.Random) -> None:
    changes: dict[str, Any] = source.choice(
        (
            {},
            {"members": 8},
            {"advantage_scale": "none"},
            {"advantage_centre": "leave_one_out", "advantage_scale": "none"},
            {"advantage_ddof": 0},
        )
    )
    made = make_group(source, REWARDS[KEYS[case % len(KEYS)]], **changes)
    found = verdict(made, whole(made))
    outcome.counts[f"control: refused {found}" if found else "control: accepted"] += 1
    if found is not None:
        outcome.failures.append(f"case {case}: a good group was refused with {found}")
