"""Write generated files, or with `--check` say which of them differ and how to make them again."""

from __future__ import annotations

import sys
from pathlib import Path


def settle(files: dict[Path, str], *, folders: list[tuple[Path, str]], command: str) -> int:
    """Write or check generated files; files of the same suffix that nothing generates are removed or named.

    Args:
        files: path -> text.
        folders: (folder, suffix) in which only generated files with this suffix may lie.
        command: the command that writes them.

    Returns:
        An exit code: 1 where `--check` found a difference.
    """
    stray = [path for folder, suffix in folders for path in _stray(folder, suffix, files)]
    differing = [path for path, text in files.items() if not _is(path, text)]
    if "--check" in sys.argv[1:]:
        for path in sorted(differing + stray):
            print(f"{path} is not as generated", file=sys.stderr)
        if differing or stray:
            print(f"run: {command}", file=sys.stderr)
        return 1 if differing or stray else 0
    for path in stray:
        path.unlink()
    for path in differing:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], encoding="utf-8")
    print(f"{len(files)} files, {len(differing)} written, {len(stray)} removed")
    return 0


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def _stray(folder: Path, suffix: str, files: dict[Path, str]) -> list[Path]:
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if path.name.endswith(suffix) and path not in files]
