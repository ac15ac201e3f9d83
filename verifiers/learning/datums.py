"""What names a batch of groups: each completion that it reads, by group and place in it, in the order read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.digests import sha256

if TYPE_CHECKING:
    from collections.abc import Iterable


def datums_digest(groups: Iterable[tuple[str, int]]) -> str:
    """The digest of a batch that reads whole groups.

    Args:
        groups: id and number of members of each group, in order.
    """
    datums = [f"{name} {member}" for name, members in groups for member in range(members)]
    return sha256("\n".join(datums).encode())
