"""Where records stand, by their ids, while a stretch of a ledger is read.

Tables have the place of each record that is named beside its id. A record may lie before the stretch; then its id
is kept, and all of those are looked up at once when the stretch has been read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledger.merkle import CompactRange

_ID_START = len("sha256:")


@dataclass(frozen=True)
class Before:
    """What is known of the records before those that are read.

    Args:
        tree: over them.
        find: where records of these raw ids stand, and their kinds.
    """

    tree: CompactRange
    find: Callable[[set[bytes]], dict[bytes, tuple[int, str]]]


class Places:
    """Ids to places; a hundred bytes a record of the stretch.

    Args:
        before: what lies before the stretch, None where it begins at record 0.
        kept: whether anybody will ask.
    """

    def __init__(self, before: Before | None, *, kept: bool) -> None:
        self._before = before
        self._kept = kept
        self._places: dict[bytes, int] = {}
        self._missing: dict[str, int | None] = {}
        self.kinds: dict[int, str] = {}
        self.waits = before is not None
        """Whether ids are kept until `complete`."""

    def add(self, raw: bytes, seq: int) -> None:
        """A record was read."""
        if self._kept:
            self._places[raw] = seq

    def of(self, ids: Any) -> Any:
        """Where a record or several stand; an id stays where it may be found later, and is None where it can't."""
        if isinstance(ids, list):
            return [self.of(item) for item in ids]
        if ids is None:
            return None
        place = self._places.get(bytes.fromhex(ids[_ID_START:]))
        if place is not None or not self.waits:
            return place
        self._missing[ids] = None
        return ids

    def complete(self) -> None:
        """Look up what lies before the stretch."""
        if self._before is None or not self._missing:
            return
        found = self._before.find({bytes.fromhex(item[_ID_START:]) for item in self._missing})
        for item in self._missing:
            place = found.get(bytes.fromhex(item[_ID_START:]))
            if place is not None:
                self._missing[item] = place[0]
                self.kinds[place[0]] = place[1]

    def placed(self, value: Any) -> Any:
        """What `of` gave, with places for ids."""
        if isinstance(value, list):
            return [self.placed(item) for item in value]
        return self._missing.get(value) if isinstance(value, str) else value
