"""Plain words for what an account names: verdicts, lines of a gate, analyses that are not the gate."""

from __future__ import annotations

from typing import Final

VERDICTS: Final = {
    "granted": "It is promoted, and everything that the promotion rests on is derived again as it was recorded.",
    "withdrawn": "It was promoted, and the promotion was withdrawn: it no longer stands.",
    "void": "It was promoted, and the promotion is void: it rests on what root took back.",
    "unfounded": "The record says more than the evidence gives: it must not be relied on.",
    "unverified": "Not everything that it rests on could be derived again, so nothing is shown by it here.",
    "refused": "A promotion was refused, and no gate was decided.",
    "undecided": "No gate was decided, so nothing is promoted.",
    "failed": "The gate failed: nothing is promoted on it.",
    "passed": "The gate passed. Nothing is promoted until reviewers approve and a promoter grants it.",
}

LINES: Final = {
    "seeds": "Training seeds that count",
    "planned_seeds": "The seeds are those that were registered",
    "pairing": "Both arms were asked the same",
    "identities": "Checkpoints are different ones and lead to their plans",
    "cases": "Cases that count in the poorest seed",
    "undecided": "Largest share of cases without a verdict",
    "significance": "Two-sided p of the exact sign flip over seeds",
    "interval": "Lower end of the interval, seeds and cases resampled",
    "gain": "Mean gain over the baseline",
    "violations": "Rise of policy violations",
    "truncations": "Rise of answers that were cut off",
    "families": "Families of cases in which the candidate does worse",
    "metadata": "Everything that must be pinned is",
    "reruns": "Run again from bytes by somebody who neither trains nor judges",
    "reproduced": "Re-runs that did not give what was recorded",
    "fresh": "Cases of the test that had been trained or validated on",
    "looks": "Looks at the test",
}

_POOLED: Final = "it counts answers of one trained model as if each stood alone"
_SEEDS: Final = "it resamples seeds and takes the cases as given"
_CASES: Final = "it resamples cases and takes the seeds as given"
_ARM: Final = "it is about one arm, not about the difference"
RIVALS: Final = {
    "mcnemar_p": ("the p of McNemar's test on pooled pairs", _POOLED),
    "fisher_p": ("the p of Fisher's test on pooled answers", f"{_POOLED}, and forgets the pairs"),
    "paired_t_p": ("the p of a paired t test over seeds", "it assumes that gains are normal"),
    "one_sided_sign_test_p": (
        "the p of a one-sided sign test over seeds",
        "it drops ties and looks to one side",
    ),
    "seeds_only_lower": ("the lower end of a seeds-only interval", _SEEDS),
    "seeds_only_upper": ("the upper end of a seeds-only interval", _SEEDS),
    "cases_only_lower": ("the lower end of a cases-only interval", _CASES),
    "cases_only_upper": ("the upper end of a cases-only interval", _CASES),
    "baseline_rate": ("the baseline's pooled success rate", _ARM),
    "baseline_wilson_lower": ("the lower Wilson end of the baseline's rate", _POOLED),
    "baseline_wilson_upper": ("the upper Wilson end of the baseline's rate", _POOLED),
    "candidate_rate": ("the candidate's pooled success rate", _ARM),
    "candidate_wilson_lower": ("the lower Wilson end of the candidate's rate", _POOLED),
    "candidate_wilson_upper": ("the upper Wilson end of the candidate's rate", _POOLED),
    "baseline_naive_se": ("the naive standard error of the baseline's rate", _POOLED),
    "baseline_clustered_se": ("the clustered standard error of the baseline's rate", _ARM),
    "candidate_naive_se": ("the naive standard error of the candidate's rate", _POOLED),
    "candidate_clustered_se": ("the clustered standard error of the candidate's rate", _ARM),
}
"""Name -> what it is, and why it decides nothing."""
