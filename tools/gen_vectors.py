"""Write the vectors of `schemas/vectors` from their recipes: python tools/gen_vectors.py [--check].

With --check nothing is written; the files must be byte for byte what the recipes give.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "schemas/vectors"
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/vectors")]

import recipes  # noqa: E402 - lies beside the tests

from verifiers.steps import step_of  # noqa: E402 - after the path is set


def expected_files() -> dict[Path, bytes]:
    """Every vector's path and bytes."""
    found: dict[Path, bytes] = {}
    for name, table in (("valid", recipes.VALID), ("invalid", recipes.INVALID)):
        for vector, recipe in table.items():
            scenario = recipe()
            step = "" if scenario.expect == recipes.VERIFIED else step_of(scenario.expect)
            found[FOLDER / name / f"{vector}.json"] = recipes.encode(scenario, step)
    return found


def stale_files(wanted: dict[Path, bytes]) -> list[Path]:
    """Files that are missing, different, or no recipe's."""
    there = set(FOLDER.rglob("*.json"))
    changed = {
        path for path, data in wanted.items() if path not in there or path.read_bytes() != data
    }
    return sorted(changed | (there - set(wanted)))


def write(wanted: dict[Path, bytes]) -> None:
    """Write every vector, and remove files that no recipe makes."""
    for path in stale_files(wanted):
        if path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wanted[path])
        else:
            path.unlink()


def main(arguments: list[str]) -> int:
    """The command; its exit code."""
    wanted = expected_files()
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 2
    stale = stale_files(wanted)
    if not arguments:
        write(wanted)
        print(f"{len(wanted)} vectors, {len(stale)} written or removed")
        return 0
    for path in stale:
        print(f"{path.relative_to(ROOT)} is not what its recipe gives: run tools/gen_vectors.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
