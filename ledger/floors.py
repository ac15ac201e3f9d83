"""The floors of a promotion where no policy was declared; `evidence policy declare` can set others."""

from __future__ import annotations

from typing import Any, Final

DEFAULT_POLICY: Final[dict[str, Any]] = {
    "seeds": 6,
    "alpha": "0.05",
    "power": "0.8",
    "cases": 32,
    "undecided_share": "0.05",
    "reviewers": 1,
    "reruns_updates_per_seed": 3,
    "reruns_case_share": "0.05",
    "minimum_gain": "0.03",
    "judge_accuracy": "0.8",
    "judge_family": "other",
}

MINIMUM_LABELLED: Final = 60
"""Labelled cases that a judge's qualification needs at least, whatever the policy says."""
