"""Make or reuse the virtual environment that tools/run and tools/test work in.

    python3 tools/environment.py [--folder .venv] [--extra train] [--dev] [--demo] [--requirement FILE]
    python3 tools/environment.py --folder .venv-bench --bench

Prints the path of its Python. What was installed from is kept in a stamp inside the environment, so a
second call with the same files does nothing. Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "requirements" / "constraints.txt"


def main() -> int:
    """Bring the environment up to date; the exit status is pip's."""
    options = _options()
    if sys.version_info < (3, 11):  # noqa: UP036 - it is started by whatever python3 is there
        print("error: Python 3.11 or newer is needed", file=sys.stderr)
        return 2
    folder = ROOT / options.folder
    python = folder / "bin" / "python"
    stamp, wanted = folder / "installed.sha256", _stamp(options)
    if not (stamp.is_file() and stamp.read_text() == wanted and python.exists()):
        print(f"setting up {folder.name} (some minutes the first time)", file=sys.stderr)
        if not _is_of_this_python(folder):
            venv.create(folder, with_pip=True, clear=True)
        for command in _commands(python, options):
            status = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode
            if status:
                print(f"error: {' '.join(command[3:6])} … ended with {status}", file=sys.stderr)
                return status
        stamp.write_text(wanted)
    print(python)
    return 0


def _is_of_this_python(folder: Path) -> bool:
    """Whether there is an environment made with the version that runs now: it is then brought up to date."""
    config = folder / "pyvenv.cfg"
    version = f"version = {sys.version.split()[0]}"
    return config.is_file() and version in config.read_text().splitlines()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default=".venv")
    parser.add_argument("--extra", action="append", default=[])
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--bench", action="store_true", help="what we are compared with, alone")
    parser.add_argument("--requirement", action="append", default=[], help="relative to the clone")
    return parser.parse_args()


def _commands(python: Path, options: argparse.Namespace) -> list[list[str]]:
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if options.bench:  # its own versions of libraries that we use too
        return [[*pip, "--requirement", "requirements/bench.txt"]]
    pinned = [*pip, "--constraint", str(CONSTRAINTS)]
    commands = []
    if "train" in options.extra:
        # torch first and by its exact version: with nothing installed a range may take a CUDA build
        commands.append([*pinned, _pin("torch")])
    package = "." + (f"[{','.join(options.extra)}]" if options.extra else "")
    commands.append([*pinned, "--editable", package])
    if options.dev:
        commands.append([*pinned, "--requirement", "requirements/dev.txt"])
    commands += [[*pinned, "--requirement", name] for name in options.requirement]
    if options.demo:
        commands.append([*pip, "--no-deps", "--requirement", "requirements/demo.txt"])
    return commands


def _pin(name: str) -> str:
    pins = CONSTRAINTS.read_text().splitlines()
    return next(line for line in pins if line.startswith(f"{name}=="))


def _stamp(options: argparse.Namespace) -> str:
    state = hashlib.sha256(repr(sorted(vars(options).items())).encode() + sys.version.encode())
    for name in (
        "pyproject.toml",
        "requirements/constraints.txt",
        "requirements/dev.txt",
        "requirements/demo.txt",
        "requirements/bench.txt",
        *options.requirement,
    ):
        state.update((ROOT / name).read_bytes())
    return state.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
