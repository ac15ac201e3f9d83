"""Ledgers that were sealed, and bundles of them, for tests and campaigns."""

from __future__ import annotations

import io
from pathlib import Path

from world import World, grown

from ledger.blobs import JSON, BlobStore
from ledger.book import BLOBS, DATABASE, Ledger
from ledger.bundles import container
from ledger.bundles.export import LeftOut, export_closure, export_ledger
from ledger.store.sqlite import SqliteStore

UNPACKABLE = "promotion.refused"
"""A kind whose closure in the grown world is large."""


def sealed(folder: Path, world: World | None = None) -> Path:
    """A folder with a ledger of every kind, sealed."""
    with (world or grown()).replay(folder) as ledger:
        ledger.seal()
    return folder


def written(folder: Path, world: World) -> Path:
    """A folder with a world's records as they are, whatever is wrong with them, and a good seal over them."""
    state = world.chain.state.to_bytes()
    note = world.seal()
    world.write(folder)
    BlobStore(folder / BLOBS).put(state, JSON)
    store = SqliteStore.open_writer(folder / DATABASE)
    with store.transaction():
        store.put_seal(world.chain.size, note)
    store.close()
    return folder


def whole(folder: Path, left_out: LeftOut | None = None) -> bytes:
    """The bundle of a whole ledger."""
    stream = io.BytesIO()
    export_ledger(folder, stream, left_out)
    return stream.getvalue()


def closure(folder: Path, kind: str = UNPACKABLE, left_out: LeftOut | None = None) -> bytes:
    """The bundle of what the newest record of a kind rests on."""
    stream = io.BytesIO()
    with Ledger.read(folder) as ledger:
        export_closure(ledger, ledger.of_kind(kind)[-1], stream, left_out)
    return stream.getvalue()


def members(data: bytes) -> list[tuple[str, bytes]]:
    """(name, content) of every member but the digest."""
    reader = container.Reader(io.BytesIO(data), len(data))
    found = []
    while (member := reader.next()) is not None:
        found.append((member.name, member.read()))
    return found


def packed(parts: list[tuple[str, bytes]]) -> bytes:
    """A container of these members with a good digest: what somebody makes who knows the form."""
    stream = io.BytesIO()
    writer = container.Writer(stream)
    for name, data in parts:
        writer.add(name, data)
    writer.finish()
    return stream.getvalue()


def replaced(data: bytes, name: str, content: bytes | None) -> bytes:
    """The bundle with a member's content changed, or the member taken out."""
    parts = [(member, content if member == name else old) for member, old in members(data)]
    return packed([(member, new) for member, new in parts if new is not None])
