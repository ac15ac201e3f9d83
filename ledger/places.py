"""Where a user's own files lie: private keys and high-water marks, never inside a ledger folder.

The XDG base directories, from the environment that is passed in:

    $XDG_CONFIG_HOME/evidence-ledger/keys/<first root key>/root.pem, writer.pem
    $XDG_STATE_HOME/evidence-ledger/high-water/<ledger id>.json
    $XDG_CACHE_HOME/evidence-ledger/segments/<ledger id>/

Keys are filed by the root key that record 0 names, so a ledger that is moved or copied finds its keys,
and two ledgers of the same origin never share any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.ed25519 import KEY_ID_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

APPLICATION = "evidence-ledger"
ROOT_KEY = "root.pem"
WRITER_KEY = "writer.pem"


def config_dir(environment: Mapping[str, str], home: Path) -> Path:
    """The folder of what a user sets up and backs up."""
    return _base(environment, "XDG_CONFIG_HOME", home / ".config")


def state_dir(environment: Mapping[str, str], home: Path) -> Path:
    """The folder of high-water files, which `ledger.highwater` keeps one a ledger."""
    return _base(environment, "XDG_STATE_HOME", home / ".local" / "state") / "high-water"


def segments_dir(environment: Mapping[str, str], home: Path) -> Path:
    """The folder of sealed history, which may be deleted at any time; see `ledger.query.segments`."""
    return _base(environment, "XDG_CACHE_HOME", home / ".cache") / "segments"


def key_dir(config: Path, first_root_key: str) -> Path:
    """The folder of a ledger's keys, by the id of the root key that its record 0 names."""
    return config / "keys" / first_root_key.removeprefix(KEY_ID_PREFIX)


def rotated_root(folder: Path, root_key: str) -> Path:
    """The file of a root key that took over from another one."""
    return folder / f"root-{root_key.removeprefix(KEY_ID_PREFIX)[:12]}.pem"


def _base(environment: Mapping[str, str], variable: str, default: Path) -> Path:
    """A base directory; the XDG rules say that a relative one is ignored."""
    named = environment.get(variable, "")
    base = type(default)(named) if named.startswith("/") else default
    return base / APPLICATION
