"""Rewards put to the pairs whose order is known, and the audit recorded: no plan rests on a reward without one."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger import canonical
from ledger.blobs import JSON, TEXT
from ledger.errors import EvidenceError, UsageError
from runners.prepare.data import put_lines
from runners.prepare.inputs import read_input
from verifiers.replay.rewards import SHIPPED, findings_rows, shipped_code
from verifiers.replay.view import MAX_LINE_DEPTH
from verifiers.rewards import suite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledger.book import Ledger
    from ledger.record import Record

_SUITES = Path(suite.__file__).parent
PAIRS = _SUITES / "support_pairs.jsonl"
PAIRS_OF = {
    "support": PAIRS,
    "desk": _SUITES / "desk_pairs.jsonl",
    "desk_episode": _SUITES / "desk_episode_pairs.jsonl",
}
"""The pairs that come with each reward of ours."""
MAX_FILE_BYTES = 1 << 24
OWN_VERSION = 0
"""The version of a reward that is not ours: its code's digest tells it from another."""


@dataclass(frozen=True)
class Audited:
    """An audit's record and the pairs that the reward inverts."""

    record: Record
    inversions: list[suite.Inversion]


@dataclass(frozen=True)
class _Asked:
    name: str
    version: int
    reward: suite.Reward
    code: bytes
    media_type: str


def audit_reward(ledger: Ledger, name: str, pairs: Path | None = None) -> Audited:
    """Put a reward to pairs and record what it made of them, inversions too.

    Args:
        ledger: open for writing with an ingest key.
        name: `support`, `desk`, `desk_episode`, or a Python file that defines `reward(scenario, reply)`. The file is run.
        pairs: JSON Lines of pairs (`verifiers.rewards.suite`); None for those that come with the reward, of one's own the
            support reward's.

    Raises:
        UsageError: `INPUT_MISSING`, no such reward or file; `REWARD_FAILED`, the file cannot be run or its reward raises.
        EvidenceError: `CASE_BROKEN`, a pair is not one; `NOT_A_REAL`, the reward gives no number.
    """
    asked = _shipped(name) if name in PAIRS_OF else _own(Path(name))
    source = pairs or PAIRS_OF.get(name, PAIRS)
    rows = _rows(source)
    read = suite.read_pairs(rows)
    if not read:
        raise EvidenceError("CASE_BROKEN", f"{source.name} holds no pair")
    found = suite.inversions(asked.reward, read)
    findings = put_lines(ledger, findings_rows(found)) if found else None
    body = {
        "name": asked.name,
        "reward_version": asked.version,
        "code": ledger.blobs.put(asked.code, asked.media_type).model_dump(),
        "suite": put_lines(ledger, rows).model_dump(),
        "pairs": len(read),
        "inversions": len(found),
        "findings": findings.model_dump() if findings else None,
    }
    return Audited(ledger.append("reward.audited", body, {}), found)


def _shipped(name: str) -> _Asked:
    key = max(key for key in SHIPPED if key[0] == name)
    return _Asked(*key, SHIPPED[key], shipped_code(name), JSON)


def _own(path: Path) -> _Asked:
    code = read_input(path, "reward", MAX_FILE_BYTES)
    spec = importlib.util.spec_from_file_location("reward_under_audit", path)
    if spec is None or spec.loader is None:
        raise UsageError("REWARD_FAILED", f"{path.name} is no Python file", field="reward")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's own code may raise anything; it is told, not hidden
        raise UsageError("REWARD_FAILED", f"{path.name} raised {error!r}"[:300]) from error
    reward = getattr(module, "reward", None)
    if not callable(reward):
        raise UsageError("REWARD_FAILED", f"{path.name} defines no reward(scenario, reply)")

    def asked(scenario: Mapping[str, Any], reply: str) -> float:
        try:
            value: float = reward(scenario, reply)
        except Exception as error:  # the same
            message = f"{path.name} raised {error!r} in scenario {str(scenario.get('id'))[:40]!r}"
            raise UsageError("REWARD_FAILED", message[:300]) from error
        return value

    return _Asked(path.stem, OWN_VERSION, asked, code, TEXT)


def _rows(path: Path) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(read_input(path, "reward", MAX_FILE_BYTES).splitlines(), 1):
        value = canonical.loads(line, MAX_LINE_DEPTH)
        if not isinstance(value, dict):
            raise EvidenceError("CASE_BROKEN", f"line {number} of {path.name} is no object")
        rows.append(value)
    return rows
