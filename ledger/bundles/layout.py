"""What lies in a bundle: its manifest, its lines, the names of its members and their order (spec: bundles.md, section 2).

bundle.json     what the bundle says of itself; nothing rests on it that is not found again in the rest
records         a line a record, in order of seq: signature in hex, a space, the entry
proof           of a closure: hashes that prove its records under the seal, 32 bytes each
seals/N.seal    signed notes, by size; of a closure exactly one
blobs.jsonl     a line a blob that the records name, by digest: here, withheld or left_out
blobs/…         those that are here, in the same order
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import Field, ValidationError

from ledger import canonical
from ledger.digests import PREFIX
from ledger.errors import EvidenceError
from ledger.record import SIGNATURE_BYTES
from ledger.records.base import MAX_RECORD_BYTES, Count, Digest, Model, Origin, RecordId

FORMAT = 1
MANIFEST, RECORDS, PROOF, BLOB_LIST = "bundle.json", "records", "proof", "blobs.jsonl"
MAX_MANIFEST_BYTES = 4096
MAX_LINE_BYTES = MAX_RECORD_BYTES + SIGNATURE_BYTES + 1
MAX_BLOB_LINE_BYTES = 256
MAX_BLOBS = 2_000_000
MAX_CLOSURE_RECORDS = 1_000_000
MAX_PROOF_BYTES = 64 << 20
MAX_SEAL_BYTES = 1_000_000
_HEX_DIGITS = 2 * SIGNATURE_BYTES

Scope = Literal["ledger", "closure"]
BlobState = Literal["here", "withheld", "left_out"]

M = TypeVar("M", bound=Model)


class Manifest(Model):
    """What a bundle says of itself.

    Attributes:
        bundle: the version of this layout.
        scope: `ledger` for a whole one, `closure` for what one record rests on.
        ledger: the origin.
        ledger_id: id of record 0.
        record: whose closure it is, null for a whole ledger.
        records: how many there are.
        size: of the tree: as many, or those under the seal of a closure.
        root: of that tree, as hex.
        seals: how many there are.
        blobs: lines of the list of blobs.
    """

    bundle: Literal[1]
    scope: Scope
    ledger: Origin
    ledger_id: RecordId
    record: RecordId | None
    records: Count
    size: Count
    root: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    seals: Count
    blobs: Count

    def encode(self) -> bytes:
        """The member's content."""
        return canonical.encode(self.model_dump()) + b"\n"


class ListedBlob(Model):
    """A line of the list of blobs.

    Attributes:
        digest: its name.
        size: its bytes, as the records say.
        state: `here`; `withheld` by a record of the bundle; `left_out` by whoever made the bundle.
    """

    digest: Digest
    size: Count
    state: BlobState

    def encode(self) -> bytes:
        """The line."""
        return canonical.encode(self.model_dump()) + b"\n"


@dataclass(frozen=True)
class Tally:
    """How many blobs travel, are withheld, and were left out."""

    here: int
    withheld: int
    left_out: int

    @classmethod
    def of(cls, states: Iterator[BlobState]) -> Tally:
        """Count them."""
        found = dict.fromkeys(get_args(BlobState), 0)
        for state in states:
            found[state] += 1
        return cls(**found)


def read_manifest(data: bytes) -> Manifest:
    """The manifest in a member.

    Raises:
        EvidenceError: `BUNDLE_MALFORMED`; `FORMAT_UNKNOWN`, it is of a later version.
    """
    value = _canonical(data, MANIFEST)
    version = value.get("bundle") if isinstance(value, dict) else None
    if type(version) is int and version > FORMAT:
        raise EvidenceError(
            "FORMAT_UNKNOWN",
            f"the bundle has format version {version}",
            expected=str(FORMAT),
            actual=str(version),
        )
    return _model(Manifest, value, MANIFEST)


def read_blob_line(line: bytes) -> ListedBlob:
    """A line of the list of blobs.

    Raises:
        EvidenceError: `BUNDLE_MALFORMED`.
    """
    return _model(ListedBlob, _canonical(line + b"\n", BLOB_LIST), BLOB_LIST)


def record_line(signature: bytes, entry: bytes) -> bytes:
    """A record's line. An entry is canonical JSON and so holds no line feed."""
    return b"%s %s\n" % (signature.hex().encode(), entry)


def line_bytes(entry: bytes) -> int:
    """How long a record's line is."""
    return _HEX_DIGITS + 2 + len(entry)


def read_record_line(line: bytes) -> tuple[bytes, bytes]:
    """(signature, entry) of a line.

    Raises:
        EvidenceError: `BUNDLE_MALFORMED`.
    """
    text = line[:_HEX_DIGITS]
    if line[_HEX_DIGITS : _HEX_DIGITS + 1] != b" " or text.strip(b"0123456789abcdef"):
        raise EvidenceError("BUNDLE_MALFORMED", "a line of records is not signature and entry")
    return bytes.fromhex(text.decode()), line[_HEX_DIGITS + 1 :]


def blob_name(digest: str) -> str:
    """The member of a blob: where it lies below a ledger's folder."""
    hexdigits = digest.removeprefix(PREFIX)
    return f"blobs/sha256/{hexdigits[:2]}/{hexdigits[2:]}"


def seal_name(size: int) -> str:
    """The member of the seal over so many records."""
    return f"seals/{size:020d}.seal"


def _canonical(data: bytes, name: str) -> Any:
    if not data.endswith(b"\n"):
        raise EvidenceError("BUNDLE_MALFORMED", f"{name} does not end in a line feed")
    try:
        return canonical.decode(data[:-1])
    except EvidenceError as error:
        raise EvidenceError("BUNDLE_MALFORMED", f"{name}: {error.message}") from error


def _model(model: type[M], value: Any, name: str) -> M:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:80] or None
        raise EvidenceError(
            "BUNDLE_MALFORMED", f"{name}: {first['msg'][:200].lower()}", field=place
        ) from None
