"""An older copy with forged records behind it, by somebody who holds the folder and no key of root's."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from random import Random
from typing import Any

from world import ORIGIN, key, row_of

from campaigns.rollback_story import Story
from campaigns.rollback_world import root_of
from ledger import record as records
from ledger import statements
from ledger.blobs import JSON
from ledger.book import DATABASE, Ledger
from ledger.dsse import pae
from ledger.merkle import CompactRange
from ledger.record import Record
from ledger.records import KINDS
from ledger.records.base import Seen, Statement
from ledger.restores import KIND
from ledger.store.sqlite import SqliteStore


def _older_copy(story: Story) -> None:
    shutil.rmtree(story.place)
    shutil.copytree(story.backup, story.place)


def _record(
    story: Story,
    place: tuple[int, str],
    kind: str,
    body: dict[str, Any],
    writer: str = "forger",
    statement: Statement | None = None,
) -> Record:
    """A record under the writer's name at a seq after an id, signed by whoever forges it."""
    entry = records.build_entry(
        ledger=ORIGIN,
        seq=place[0],
        prev=place[1],
        kind=kind,
        schema=KINDS[kind].version,
        time=story.case.clock(),
        actor=key("writer").id,
        refs={},
        body=body,
        statement=statement,
    )
    return records.parse(entry, key(writer).sign(pae(records.PAYLOAD_TYPE, entry)))


def _insert(story: Story, made: list[Record]) -> None:
    store = SqliteStore.open_writer(story.place / DATABASE)
    with store.transaction():
        store.append([row_of(record) for record in made])
    store.close()


def _restore(story: Story, writer: str) -> None:
    """A restore record at the end of the older copy that root never stated."""
    _older_copy(story)
    ids = story.before
    lost = {"size": len(story.whole), "root": root_of(story.whole).hex()}
    body = {"lost_from": len(ids), "high_water": lost, "why": "trust me"}
    stated = statements.make(
        key("forger"),
        ledger=ORIGIN,
        kind=KIND,
        refs={},
        body=body,
        seal=Seen(size=len(ids), root=root_of(ids).hex()),
        nonce=story.case.nonce(),
    )
    claimed = stated.model_copy(update={"key": key("root").id})
    _insert(story, [_record(story, (len(ids), ids[-1]), KIND, body, writer, claimed)])


def _by_a_stranger(story: Story, _random: Random) -> None:
    _restore(story, "forger")


def _by_the_writer(story: Story, _random: Random) -> None:
    _restore(story, "writer")


def _padded(story: Story, _random: Random) -> None:
    """The older copy padded up to the lost size, and a snapshot there that claims the lost tree."""
    _older_copy(story)
    made: list[Record] = []
    prev = story.before[-1]
    for seq in range(len(story.before), len(story.whole)):
        made.append(_record(story, (seq, prev), "note.added", {"text": "padding"}))
        prev = made[-1].id
    tree = CompactRange()
    for item in story.whole:
        tree.append(bytes.fromhex(item[7:]))
    with Ledger.read(story.place) as ledger:
        state = ledger.blobs.put(ledger.state().to_bytes(), JSON)
    body = {"state": state.model_dump(), "tree": [item.hex() for item in tree.to_hashes()]}
    made.append(_record(story, (len(story.whole), prev), "snapshot.recorded", body))
    _insert(story, made)


FORGERIES: dict[str, Callable[[Story, Random], None]] = {
    "restore record forged by a stranger": _by_a_stranger,
    "restore record forged by the writer": _by_the_writer,
    "older folder padded behind a forged snapshot": _padded,
}
