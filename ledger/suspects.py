"""Which records are suspect: signed in a window that root took back, or resting on such a record.

The one definition of docs/spec/ledger.md, section 7. A revocation that names an earlier seq leaves a window:
from that seq, before the revocation itself. A record is suspect by itself if its seq lies in the window of
its writer's key or of its statement's key. When a statement was made does not count: nobody can tell, so the
seq of the record that carries it decides. A record is suspect by descent if it rests, through any number of
refs, on a suspect one. Refs point back only, so nothing before the first window is ever suspect.

Pure. Append, replay, verify and the commands that show records all ask here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from ledger.record import Record, check_body
from ledger.records.identity import KeyRevoked
from ledger.state import KeyState

SPEAKING_OF = frozenset({"blob.withheld", "note.added", "promotion.withdrawn"})
"""Kinds whose refs say what they are about and not what they rest on: a withdrawal of a void promotion stands."""


@dataclass(frozen=True)
class Window:
    """Seqs in which a key's signature is suspect: `start` and later, before `stop`, where its first revocation stands."""

    start: int
    stop: int


Windows = Mapping[str, Window]
Resolve = Callable[[str], Record | None]


@dataclass(frozen=True)
class Suspect:
    """A record that is suspect by itself, the key to blame and that key's window."""

    record: Record
    key: str
    window: Window

    @property
    def reason(self) -> str:
        """In words: which record, whose key, which revocation."""
        return (
            f"record {self.record.seq} ({self.record.id[7:19]}) is signed by {self.key}, "
            f"which record {self.window.stop} revoked and which is suspect from seq {self.window.start}"
        )


def windows_of(keys: Mapping[str, KeyState]) -> dict[str, Window]:
    """The window of every key that was revoked from an earlier seq, by key id."""
    return {
        name: Window(key.suspect_from, key.until_seq)
        for name, key in keys.items()
        if key.suspect_from is not None and key.until_seq is not None
    }


def windows_in(revocations: Iterable[Record]) -> dict[str, Window]:
    """The same from the revocations themselves, for a reader who replays nothing.

    Raises:
        EvidenceError: `BODY_INVALID`, one is no revocation.
    """
    found: dict[str, Window] = {}
    for record in revocations:
        body = cast("KeyRevoked", check_body(record.kind, record.schema, record.body))
        before = found.get(
            body.key, Window(record.seq, record.seq)
        )  # a later one reaches further back
        found[body.key] = Window(min(body.from_seq, before.start), before.stop)
    return {key: window for key, window in found.items() if window.start < window.stop}


def first_seq(windows: Windows) -> int:
    """The seq before which nothing can be suspect; there must be a window."""
    return min(window.start for window in windows.values())


def suspect_key(record: Record, windows: Windows) -> str | None:
    """The key that makes a record suspect by itself, the one revoked first where both do; else None."""
    keys = [record.actor] if record.statement is None else [record.actor, record.statement.key]
    found = [
        (windows[key].stop, key)
        for key in keys
        if key in windows and windows[key].start <= record.seq < windows[key].stop
    ]
    return min(found)[1] if found else None


def rests_on(record: Record) -> list[str]:
    """Ids of the records that a record rests on directly."""
    if record.kind in SPEAKING_OF:
        return []
    return [ref for _, ref in record.all_refs()]


def find_suspect(
    starts: Iterable[Record], windows: Windows, resolve: Resolve, clean: set[str] | None = None
) -> Suspect | None:
    """The nearest record that is suspect by itself among some records and all that they rest on, or None.

    Args:
        starts: where to begin.
        windows: as `windows_of` gives them.
        resolve: fetches an earlier record by id; one that it does not find is passed over.
        clean: ids known to rest on nothing suspect, which are not walked again; what is found clean is added.
    """
    if not windows:
        return None
    first = first_seq(windows)
    known = set() if clean is None else clean
    begun = {record.id: record for record in starts if record.id not in known}
    seen, queue = set(begun), deque(begun)  # ids only: a closure may hold many records
    while queue:
        name = queue.popleft()
        record = begun.get(name) or resolve(name)
        if record is None or record.seq < first:
            continue
        key = suspect_key(record, windows)
        if key is not None:
            return Suspect(record, key, windows[key])
        for ref in rests_on(record):
            if ref not in seen and ref not in known:
                seen.add(ref)
                queue.append(ref)
    known |= seen
    return None
