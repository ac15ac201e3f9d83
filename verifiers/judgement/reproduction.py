"""Whether what came of a re-run is what was recorded: transcripts token by token, a judge's words, its log-probabilities.

Token ids and words must be equal. A log-probability is a sum of floating-point numbers whose last bits depend on the
machine, so it is compared for each token within `NATS_A_TOKEN`; no margin of a verdict moves by more than twice that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ledger.canonical import parse_real
from ledger.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Mapping

NATS_A_TOKEN: Final = 1e-3
TRANSCRIPT_FIELDS: Final = ("prompt_digest", "token_ids", "text", "truncated", "stop")


def transcript_differs(
    recorded: Mapping[str, Any] | None, found: Mapping[str, Any] | None
) -> list[str]:
    """The fields in which an answer is another one."""
    if recorded is None or found is None:
        return ["line"]
    return [name for name in TRANSCRIPT_FIELDS if recorded.get(name) != found.get(name)]


def judged_differs(
    recorded: Mapping[str, Any] | None, found: Mapping[str, Any] | None
) -> list[str]:
    """The fields in which a judge's raw line is another one; none where both are absent."""
    if recorded is None or found is None:
        return [] if recorded is found else ["line"]
    fields = [
        name for name in ("reply_digest", "attempts") if recorded.get(name) != found.get(name)
    ]
    parts, others = recorded.get("parts"), found.get("parts")
    if parts is None and others is None:
        return fields
    if not isinstance(parts, dict) or not isinstance(others, dict) or parts.keys() != others.keys():
        return [*fields, "parts"]
    return [*fields, *(name for name in sorted(parts) if not _near(parts[name], others[name]))]


def _near(recorded: Any, found: Mapping[str, Any]) -> bool:
    told = recorded.get("logprob_sum") if isinstance(recorded, dict) else None
    if not isinstance(told, str) or recorded.get("tokens") != found["tokens"]:
        return False
    try:
        total = parse_real(told)
    except EvidenceError:
        return False  # what is no number is not what a judge gave
    return abs(total - parse_real(found["logprob_sum"])) <= NATS_A_TOKEN * int(found["tokens"])
