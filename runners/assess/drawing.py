"""A draw of what an auditor runs again, recorded before anybody can know what it hits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.errors import UsageError
from ledger.floors import DEFAULT_POLICY

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record


def make_draw(ledger: Ledger, about: Record, nonce: str) -> Record:
    """Record a draw for a nomination, as large as the policy in force demands.

    Args:
        ledger: open for writing with an audit key.
        about: the nomination, or a study, of which the newest nomination is taken.
        nonce: 32 random bytes in hexadecimal.

    Raises:
        UsageError: `NOMINATION_MISSING`, or what the rules refuse.
    """
    nomination = nomination_of(ledger, about)
    named = ledger.state().policy
    policy = ledger.get(named).body if named else DEFAULT_POLICY
    return ledger.append(
        "draw.made",
        {
            "nonce": nonce,
            "updates_per_seed": policy["reruns_updates_per_seed"],
            "case_share": policy["reruns_case_share"],
        },
        {"nomination": nomination.id},
    )


def nomination_of(ledger: Ledger, about: Record) -> Record:
    """A nomination as it is, the newest one of a study.

    Raises:
        UsageError: `NOMINATION_MISSING`.
    """
    if about.kind == "candidate.nominated":
        return about
    found = ledger.referrers(about.id, "study", "candidate.nominated")
    if not found:
        raise UsageError("NOMINATION_MISSING", "no nomination names this study", record=about.id)
    return found[-1]


def draw_of(ledger: Ledger, about: Record) -> Record:
    """A draw as it is, the newest one for a nomination or a study.

    Raises:
        UsageError: `DRAW_MISSING`, `NOMINATION_MISSING`.
    """
    if about.kind == "draw.made":
        return about
    nomination = nomination_of(ledger, about)
    found = ledger.referrers(nomination.id, "nomination", "draw.made")
    if not found:
        raise UsageError("DRAW_MISSING", "nothing was drawn for it yet", record=nomination.id)
    return found[-1]
