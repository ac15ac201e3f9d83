"""Bundles made hostile: bits and bytes changed, members moved about under a good digest, and other programs' archives."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from bundle_world import members, packed

from campaigns.hostile_bytes import mutated
from ledger.bundles import container

Attack = Callable[[Random, bytes], bytes]
NAMES = (
    "../../outside",
    "/etc/passwd",
    "blobs/../../outside",
    "blobs/sha256/..",
    "./bundle.json",
    "BUNDLE.JSON",
    "SHA256",
    "index.sqlite",
    "ledger.sqlite",
    "blobs",
    "seals/-1.seal",
    "seals/99999999999999999999.seal",
)


@dataclass(frozen=True)
class Attacked:
    """What came of one kind of attack on a good bundle.

    Attributes:
        kind: which attack.
        data: the bytes to hand over.
        whole: whether the bundle was a whole ledger's.
        same: whether the bytes are what they were, so that they may be accepted.
    """

    kind: str
    data: bytes
    whole: bool
    same: bool


def flip(rng: Random, data: bytes) -> bytes:
    """One bit anywhere."""
    value = bytearray(data)
    value[rng.randrange(len(value))] ^= 1 << rng.randrange(8)
    return bytes(value)


def scramble(rng: Random, data: bytes) -> bytes:
    """One to eight changes anywhere, or the end cut off."""
    if rng.random() < 0.2:
        return data[: rng.randrange(len(data))]
    return mutated(rng, data)


def repack(rng: Random, data: bytes) -> bytes:
    """Members taken out, doubled, moved, renamed or changed, by somebody who computes the digest anew."""
    parts = members(data)
    for _ in range(rng.choice((1, 1, 1, 2))):
        at = rng.randrange(len(parts))
        name, content = parts[at]
        match rng.randrange(6):
            case 0:
                del parts[at]
            case 1:
                parts.insert(rng.randrange(len(parts) + 1), parts[at])
            case 2:
                parts.insert(rng.randrange(len(parts)), parts.pop(at))
            case 3:
                parts[at] = (rng.choice(NAMES), content)
            case 4:
                parts[at] = (name, mutated(rng, content))
            case _:
                parts[at] = (name, _lines_moved(rng, content))
        if not parts:
            break
    return packed(parts)


def _lines_moved(rng: Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    if not lines:
        return b"\n"
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(to, lines[at])
        case 2:
            lines[at], lines[to] = lines[to], lines[at]
        case _:
            lines[at] = lines[at].replace(b'"here"', rng.choice((b'"left_out"', b'"withheld"')))
    return b"".join(lines)


def foreign(rng: Random, data: bytes) -> bytes:
    """An archive with the same members as another program may write it, with something that ours never has."""
    stream = io.BytesIO()
    form = rng.choice((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        parts = members(data)
        odd = rng.randrange(len(parts))
        for at, (name, content) in enumerate(parts):
            item = tarfile.TarInfo(name)
            item.size, item.mode = len(content), 0o444
            if at == odd:
                rng.choice(ODDITIES)(item)
            archive.addfile(item, io.BytesIO(content))
    return stream.getvalue()


def _typed(kind: bytes, link: str = "") -> Callable[[tarfile.TarInfo], None]:
    def change(item: tarfile.TarInfo) -> None:
        item.type, item.linkname = kind, link
        item.size = item.size if kind == tarfile.CONTTYPE else 0

    return change


def _named(name: str) -> Callable[[tarfile.TarInfo], None]:
    def change(item: tarfile.TarInfo) -> None:
        item.name = name

    return change


ODDITIES: tuple[Callable[[tarfile.TarInfo], None], ...] = (
    _typed(tarfile.SYMTYPE, "/etc/passwd"),
    _typed(tarfile.SYMTYPE, "../../../outside"),
    _typed(tarfile.LNKTYPE, "bundle.json"),
    _typed(tarfile.DIRTYPE),
    _typed(tarfile.CHRTYPE),
    _typed(tarfile.FIFOTYPE),
    _typed(tarfile.CONTTYPE),
    _typed(tarfile.GNUTYPE_SPARSE),
    *(_named(name) for name in NAMES),
    _named("é" * 60),
    _named("a" * 300),
    lambda item: setattr(item, "uid", 1000),
    lambda item: setattr(item, "uname", "somebody"),
    lambda item: setattr(item, "mtime", 1),
    lambda item: setattr(item, "mode", 0o4755),
)


def bomb(rng: Random, data: bytes) -> bytes:
    """Sizes that are not there, archives that are compressed, files that are all holes or several in one."""
    size = rng.choice((1, 1 << 20, 8**11 - 1, 8**11, 1 << 40, (1 << 40) + 1, 1 << 62))
    name = rng.choice(("bundle.json", "records", "proof", "blobs.jsonl"))
    return rng.choice(
        (
            container.header(name, size) + data[container.BLOCK_BYTES :],
            packed(members(data)[: rng.randrange(len(members(data)))])[:-1700]
            + container.header(name, size),
            b"\x1f\x8b\x08" + data,
            b"PK\x03\x04" + data,
            bytes(1 << 20),
            data + data,
            data + b"\0" * rng.choice((1, 511, 512, 10_240)),
            data[: len(data) - rng.randrange(1, 1024)],
        )
    )


KINDS: dict[str, Attack] = {
    "flip": flip,
    "scramble": scramble,
    "repack": repack,
    "foreign": foreign,
    "bomb": bomb,
}
