"""What every record shares: field types, blobs, the envelope (spec: ledger.md, sections 1 and 4)."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ledger.canonical import MAX_INTEGER, parse_real
from ledger.errors import EvidenceError

MAX_RECORD_BYTES = 65_535
MAX_REFS_PER_ROLE = 256

DIGEST_PATTERN = r"^sha256:[0-9a-f]{64}$"
KEY_ID_PATTERN = r"^ed25519:[0-9a-f]{32}$"
# digits are spelt out: \d of the pattern engine would also take those of other scripts
TIME_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"
ORIGIN_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._~/-]{0,127}$"
ROLE_NAME_PATTERN = r"^[a-z][a-z_]{0,39}$"


def _check_real(text: str) -> str:
    try:
        parse_real(text)
    except EvidenceError as error:
        raise ValueError(error.message) from None
    return text


def _check_time(text: str) -> str:
    """Refuse a day or an hour that does not exist."""
    datetime.fromisoformat(text)
    return text


def _check_plain(text: str) -> str:
    """Refuse characters that make two different names look alike or hide text."""
    if any(not char.isprintable() for char in text):
        raise ValueError("holds a character that cannot be printed")
    return text


def _check_path(path: str) -> str:
    """Refuse a path that could lead out of its folder on any system."""
    if any(part in ("", ".", "..") for part in path.split("/")) or "\\" in path or ":" in path:
        raise ValueError("is not a relative path below its folder")
    return _check_plain(path)


Digest = Annotated[str, Field(pattern=DIGEST_PATTERN)]
RecordId = Digest
KeyId = Annotated[str, Field(pattern=KEY_ID_PATTERN)]
Time = Annotated[str, Field(pattern=TIME_PATTERN), AfterValidator(_check_time)]
Origin = Annotated[str, Field(pattern=ORIGIN_PATTERN)]
Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Positive = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
Real = Annotated[
    str, Field(max_length=40, json_schema_extra={"format": "real"}), AfterValidator(_check_real)
]
Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Signature = Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]
Nonce = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_plain)]
Slug = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/+-]{0,199}$")]
RelativePath = Annotated[str, Field(min_length=1, max_length=400), AfterValidator(_check_path)]
Text = Annotated[str, Field(max_length=4000)]
Setting = str | int | bool | None | list[str] | list[int]
Counts = dict[str, Count]


def empty(kind: type[list[Any] | dict[str, Any]]) -> Any:
    """A field that may be left out and then is an empty list or object, made without a deep copy."""
    return Field(default_factory=kind, json_schema_extra={"default": kind()})


class Model(BaseModel):
    """A strict, frozen value: unknown fields are refused, nothing is coerced."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)


class Blob(Model):
    """A file in the blob store, named by its content."""

    digest: Digest
    size: Count
    media_type: Annotated[str, Field(pattern=r"^[a-z]+/[a-z0-9.+-]+$", max_length=100)]
    count: Count | None = None


class File(Model):
    """One file of a folder, its path relative with forward slashes."""

    path: RelativePath
    size: Count
    digest: Digest


def _check_tree(files: list[File]) -> list[File]:
    """Refuse paths that cannot stand in one folder: a path twice, or a file where another's folder is."""
    paths = {item.path for item in files}
    if len(paths) < len(files):
        raise ValueError("a path stands twice")
    for path in paths:
        parts = path.split("/")
        if any("/".join(parts[:depth]) in paths for depth in range(1, len(parts))):
            raise ValueError("a file lies where another file's folder is")
    return files


Files = Annotated[list[File], Field(max_length=256), AfterValidator(_check_tree)]
"""The files of one folder."""


class Body(Model):
    """The base of every kind's body.

    `kind` is the record kind, `version` the schema version: 0 while a kind may still change.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 0


class Seen(Model):
    """A tree head that a signer had before them: its size and root."""

    size: Count
    root: Hex32


class Statement(Model):
    """Somebody's authority for a record: a signature over its kind, refs and body, made in advance.

    The signed payload is rebuilt from the record (`ledger.statements.payload`), so it cannot differ from it.
    """

    key: KeyId
    seal: Seen
    nonce: Nonce
    signature: Signature


class Envelope(Model):
    """The fields of an entry."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", defer_build=True, protected_namespaces=()
    )

    ledger: Origin
    seq: Count
    prev: RecordId | None
    kind: Annotated[str, Field(pattern=r"^[a-z]+\.[a-z_]+$", max_length=60)]
    schema_version: Annotated[int, Field(ge=0, le=1000, alias="schema")]
    time: Time
    actor: KeyId
    refs: dict[
        Annotated[str, Field(pattern=ROLE_NAME_PATTERN)],
        RecordId | Annotated[list[RecordId], Field(min_length=1, max_length=MAX_REFS_PER_ROLE)],
    ]
    body: dict[str, Any]
    statement: Statement | None = None


_RECORD_ID = re.compile(r"sha256:[0-9a-f]{64}")


def is_record_id(text: str) -> bool:
    """Whether a text has the form of a whole record id."""
    return _RECORD_ID.fullmatch(text) is not None
