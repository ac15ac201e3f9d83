"""What an installation without extras must be able to do: import no training library and verify a ledger.

Started by tools/test with the Python of an environment that holds only the base package.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "small-ledger"
EXTRAS = ("torch", "transformers", "trl", "peft", "datasets", "accelerate")


def main() -> int:
    """Check the environment; 0 where all holds."""
    evidence = Path(sys.executable).parent / "evidence"
    there = [name for name in EXTRAS if importlib.util.find_spec(name) is not None]
    if there:
        print(f"not a base installation: {', '.join(there)} can be imported", file=sys.stderr)
        return 1
    command = [str(evidence), "verify", "--ledger", str(EXAMPLE), "--level", "blobs", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout)
    if done.returncode != 0 or answer["result"]["verdict"] != "verified":
        print(done.stdout, done.stderr, file=sys.stderr)
        return 1
    replayed = answer["result"]["replayed"]
    print(
        f"base installation verifies {EXAMPLE.name}: {answer['result']['records']} records, derived again: {replayed}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
