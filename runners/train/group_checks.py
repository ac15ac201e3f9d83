"""Whether a group may be recorded: the verifier's own rules, and that it answers a task which the run was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError
from verifiers.learning.group_plan import GroupPlan
from verifiers.learning.groups import check_group, read_group

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path


def check_given(refused: object) -> None:
    """Refuse a group of which a server did not give every completion.

    Args:
        refused: why it gave none, as the child heard it; None where it did.

    Raises:
        EvidenceError: `SAMPLER_REPLY`.
    """
    if refused is not None:
        raise EvidenceError("SAMPLER_REPLY", str(refused).removeprefix("SAMPLER_REPLY: ")[:300])


def check_sampled(
    body: Mapping[str, Any],
    samples: Path,
    trace: Path,
    given: Collection[str],
    settings: Mapping[str, Any],
) -> None:
    """Refuse a group that does not count.

    Args:
        body: of its record to be.
        samples: the samples' file.
        trace: the trace's file.
        given: digests of the tasks that the child was given.
        settings: of the plan, as its record has them.

    Raises:
        EvidenceError: `GROUP_OTHER_TASK`, the run was not given its task; what `read_group` and `check_group` raise.
    """
    with samples.open("rb") as stream:
        group = read_group(stream, trace.read_bytes())
    check_group(body, group, GroupPlan.of(settings), body["state"])
    if body["task"] not in given:
        raise EvidenceError("GROUP_OTHER_TASK", "the run was not given this task", field="task")
