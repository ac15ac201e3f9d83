"""Is this folder promoted? What whoever loads a model asks, offline, of the ledger alone.

The folder's bytes decide, not its name. Nothing derived is asked: grants and withdrawals are taken from the records in their
order, each admitted by every rule with its signature checked, under a root key that the asker pinned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ledger.admission import Chain
from ledger.digests import inventory, tree_digest
from ledger.errors import EvidenceError, LedgerError, UsageError
from ledger.merkle import CompactRange
from ledger.record import Record
from ledger.state import KeyState, State
from ledger.suspects import find_suspect, windows_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ledger.reading import Reading

Resolve = Callable[[str], Record | None]


@dataclass
class Promotions:
    """Every grant and withdrawal of a ledger, in order."""

    grants: list[Record] = field(default_factory=list)
    withdrawals: dict[str, Record] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Take in the next record."""
        if record.kind == "promotion.granted":
            self.grants.append(record)
        elif record.kind == "promotion.withdrawn":
            self.withdrawals.setdefault(str(record.ref("promotion")), record)

    @classmethod
    def among(cls, records: Iterable[Record]) -> Promotions:
        """Those among some records."""
        found = cls()
        for record in records:
            found.add(record)
        return found

    def standing(self, tree: str, keys: Mapping[str, KeyState], resolve: Resolve) -> Record:
        """The newest grant of these bytes that stands.

        Args:
            tree: the folder's tree digest.
            keys: the ledger's keys, with what root took back of them.
            resolve: finds a record by id.

        Raises:
            EvidenceError: `NOT_PROMOTED`, no grant is of these bytes; `PROMOTION_WITHDRAWN`, the newest was withdrawn;
                `PROMOTION_VOID`, it rests on what root took back.
        """
        of_bytes = [grant for grant in self.grants if grant.body["tree"] == tree]
        if not of_bytes:
            raise EvidenceError(
                "NOT_PROMOTED", "no promotion of this ledger is of these bytes", actual=tree
            )
        newest = of_bytes[-1]
        withdrawn = self.withdrawals.get(newest.id)
        if withdrawn is not None:
            why = str(withdrawn.body["why"])[:200]
            raise EvidenceError(
                "PROMOTION_WITHDRAWN", f"withdrawn: {why}", record=newest.id, seq=withdrawn.seq
            )
        suspect = find_suspect([newest], windows_of(keys), resolve)
        if suspect is not None:
            raise EvidenceError("PROMOTION_VOID", suspect.reason, record=newest.id)
        return newest


def tree_of(folder: Path) -> str:
    """The digest of a folder's files, their names and sizes.

    Raises:
        UsageError: `INPUT_MISSING`, there is no such folder.
        EvidenceError: `UNSAFE_PATH`.
    """
    if not folder.is_dir():
        raise UsageError("INPUT_MISSING", f"there is no folder {folder}", field="DIR")
    return tree_digest(inventory(folder))


def check_folder(ledger: Reading, folder: Path, roots: Collection[str]) -> Record:
    """The grant under which a folder's bytes are promoted.

    Args:
        ledger: the ledger, maybe a stranger's; every record is admitted and every signature checked.
        folder: every file in it is read.
        roots: ids of root keys that the asker trusts; at least one.

    Raises:
        UsageError: `INPUT_MISSING`.
        EvidenceError: `ROOT_UNTRUSTED`, none is pinned or the ledger's is none of them; what does not hold in the ledger;
            see `Promotions.standing`; `UNSAFE_PATH`.
    """
    tree = tree_of(folder)
    chain = Chain(State(), CompactRange(), None, ledger.find)
    found = Promotions()
    for record in ledger.records(0, ledger.size):
        chain.admit(record)
        found.add(record)
    check_root(chain.state.keys, roots)
    return found.standing(tree, chain.state.keys, ledger.find)


def check_root(keys: Mapping[str, KeyState], roots: Collection[str]) -> None:
    """One of the ledger's root keys is pinned.

    Raises:
        EvidenceError: `ROOT_UNTRUSTED`.
    """
    mine = {name for name, key in keys.items() if "root" in key.roles}
    if not mine & set(roots):
        pinned = ", ".join(sorted(roots)) or "none"
        raise EvidenceError(
            "ROOT_UNTRUSTED",
            "a promotion counts only under a root key that you pinned, and this ledger has none of them",
            expected=pinned,
            actual=", ".join(sorted(mine)),
        )


def is_promoted(ledger: Reading, folder: Path, root: str) -> bool:
    """Whether a folder's bytes are promoted under this root; False whatever the reason is."""
    try:
        check_folder(ledger, folder, [root])
    except LedgerError:
        return False
    return True
