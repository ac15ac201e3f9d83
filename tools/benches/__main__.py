"""`tools/bench NAME [--full] [--scratch DIR]`: run one bench and print its report.

The report goes to standard output as JSON; with `--full` also to docs/benches/NAME.json. The exit status says
whether the bench ran, not whether a limit was held: that is in the report. Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from benches.registry import BENCHES
from benches.report import REPORTS, Settings, as_json


def main() -> int:
    """Run what the command line names."""
    options = _options()
    if options.name is None:
        for item in BENCHES.values():
            print(f"{item.name:8} {item.about}")
        return 0
    if options.scratch is not None:
        options.scratch.mkdir(parents=True, exist_ok=True)
        return _run(options.name, Settings(options.full, options.scratch, _say))
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        return _run(options.name, Settings(options.full, Path(folder), _say))


def _run(name: str, settings: Settings) -> int:
    begun = time.monotonic()
    rows = BENCHES[name].load()(settings)
    report = as_json(name, settings, rows, time.monotonic() - begun)
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    print(text, end="")
    if settings.full:
        REPORTS.mkdir(parents=True, exist_ok=True)
        (REPORTS / f"{name}.json").write_text(text, encoding="utf-8")
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/bench", description=__doc__)
    parser.add_argument("name", nargs="?", choices=sorted(BENCHES), help="none: list them")
    parser.add_argument("--full", action="store_true", help="the full sizes, report kept")
    parser.add_argument(
        "--scratch", type=Path, help="where ledgers are built and kept for the next run"
    )
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped")
