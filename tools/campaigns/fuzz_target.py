"""One fuzz target in a process of its own: `python -m campaigns.fuzz_target MODULE TARGET [libFuzzer's options]`.

A file as the last word runs that input once, which is how a saved input is looked at again.
"""

from __future__ import annotations

import importlib
import sys

import atheris

PACKAGES = ["ledger", "verifiers", "runners"]


def main() -> None:
    """Instrument the product, load the target, hand over to libFuzzer; it ends the process."""
    module, name, *options = sys.argv[1:]
    with atheris.instrument_imports(include=PACKAGES):
        target = importlib.import_module(module).TARGETS[name]
    atheris.Setup([sys.argv[0], *options], target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
