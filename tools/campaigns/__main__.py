"""`tools/campaign NAME [--seed N] [--full]`: run one campaign and print its report.

The report goes to standard output as JSON; with `--full` also to docs/campaigns/NAME.json. The exit status is
1 where an attack got through, 0 where none did.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from campaigns.registry import CAMPAIGNS
from campaigns.report import REPORTS, Settings
from runners.prepare.catalogue import CATALOGUE

PROGRESS_EVERY_S = 5.0


class _Progress:
    """Lines on standard error, not more often than every few seconds."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._begun = self._last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last < PROGRESS_EVERY_S:
            return
        self._last = now
        print(f"{self._name}: {done:,} of {total:,}, {now - self._begun:.0f} s", file=sys.stderr)


def main() -> int:
    """Run what the command line names; the exit status."""
    options = _options()
    if options.name is None:
        for item in CAMPAIGNS.values():
            print(f"{item.name:16} {item.about}")
        return 0
    campaign = CAMPAIGNS[options.name]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="campaign-", dir=options.scratch) as folder:
        settings = Settings(
            seed=options.seed,
            full=options.full,
            folder=Path(folder),
            workers=options.workers,
            progress=_Progress(campaign.name),
            case=options.case,
            model=options.model,
        )
        outcome = campaign.load()(settings)
    report = outcome.as_json(campaign.name, settings, time.monotonic() - begun)
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    print(text, end="")
    if options.full and options.case is None:
        REPORTS.mkdir(parents=True, exist_ok=True)
        (REPORTS / f"{campaign.name}.json").write_text(text, encoding="utf-8")
    return 0 if report["verdict"] == "held" else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/campaign", description=__doc__)
    parser.add_argument("name", nargs="?", choices=sorted(CAMPAIGNS), help="none: list them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--full", action="store_true", help="the full numbers, report kept")
    parser.add_argument("--case", type=int, help="this one case again")
    parser.add_argument("--model", choices=("tiny", *sorted(CATALOGUE)), default="tiny")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--scratch", type=Path, help="where the campaign's files go for a while")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped")
