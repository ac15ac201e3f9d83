"""Rules that look beyond one record: one module a family, each check a numbered rule of the spec."""

from ledger.checks import evaluation, identity, learning, promotion, run, study
from ledger.checks.advance import advance
from ledger.checks.context import Check, Context

CHECKS: dict[str, tuple[Check, ...]] = {
    **identity.CHECKS,
    **run.CHECKS,
    **learning.CHECKS,
    **evaluation.CHECKS,
    **promotion.CHECKS,
    **study.CHECKS,
    "plan.prepared": (*run.CHECKS["plan.prepared"], *study.CHECKS["plan.prepared"]),
}

__all__ = ["CHECKS", "Check", "Context", "advance"]
