"""A record: its entry, its signature, its id (spec: ledger.md, sections 1 to 4).

Pure: bytes in, values out. Whether a record may stand where it stands is decided in `ledger.admission`.
"""

from __future__ import annotations

import base64
import hashlib
import reprlib
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from ledger import canonical
from ledger.errors import EvidenceError, reason
from ledger.records import KINDS
from ledger.records.base import MAX_RECORD_BYTES, Body, Envelope, Statement

PAYLOAD_TYPE = "application/vnd.evidence-ledger.record+json"
SIGNATURE_BYTES = 64
_ENVELOPE = Envelope.__pydantic_validator__

Refs = dict[str, str | list[str]]


class _Shown(reprlib.Repr):
    """A value from anybody as a few words, however deep, long or large it is."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlist, self.maxdict = 3, 8, 8
        self.maxstring = self.maxother = self.maxlong = 120

    def repr_int(self, value: int, level: int) -> str:
        """An integer in full, unless it is too long for Python to write."""
        if value.bit_length() > 256:
            return f"an integer of {value.bit_length()} bits"
        return super().repr_int(value, level)


_SHOWN = _Shown()


class Record(NamedTuple):
    """One record, parsed; `entry` and `signature` are the bytes everything else is read from."""

    id: str
    entry: bytes
    signature: bytes
    ledger: str
    seq: int
    prev: str | None
    kind: str
    schema: int
    time: str
    actor: str
    refs: Refs
    body: dict[str, Any]
    statement: Statement | None

    def ref(self, role: str) -> str | None:
        """The one id under a role, or None; the first where there are several."""
        value = self.refs.get(role)
        if isinstance(value, list):
            return value[0]
        return value

    def ref_list(self, role: str) -> list[str]:
        """Every id under a role, in order."""
        value = self.refs.get(role, [])
        return value if isinstance(value, list) else [value]

    def as_row(self) -> tuple[int, bytes, bytes | None, bytes, bytes]:
        """(seq, id, prev, signature, entry), as a store keeps it."""
        prev = None if self.prev is None else bytes.fromhex(self.prev[7:])
        return self.seq, bytes.fromhex(self.id[7:]), prev, self.signature, self.entry

    def all_refs(self) -> list[tuple[str, str]]:
        """Every (role, id) pair, roles in name order."""
        return [(role, ref) for role in sorted(self.refs) for ref in self.ref_list(role)]

    def as_dict(self) -> dict[str, Any]:
        """The entry's fields with the id beside them, for people and programs to read."""
        return {"id": self.id, **canonical.loads(self.entry), "signature": self.signature.hex()}


def record_id(signature: bytes, entry: bytes) -> str:
    """Id of a record: the RFC 6962 leaf hash of signature and entry."""
    return "sha256:" + hashlib.sha256(b"\x00" + signature + entry).hexdigest()


def build_entry(
    *,
    ledger: str,
    seq: int,
    prev: str | None,
    kind: str,
    schema: int,
    time: str,
    actor: str,
    refs: Refs,
    body: dict[str, Any],
    statement: Statement | None,
) -> bytes:
    """The canonical bytes of a record that is about to be signed.

    Raises:
        EvidenceError: `NOT_CANONICAL`, a value outside the profile.
    """
    fields: dict[str, Any] = {
        "ledger": ledger,
        "seq": seq,
        "prev": prev,
        "kind": kind,
        "schema": schema,
        "time": time,
        "actor": actor,
        "refs": refs,
        "body": body,
    }
    if statement is not None:
        fields["statement"] = statement.model_dump()
    return canonical.encode(fields)


def parse(entry: bytes, signature: bytes) -> Record:
    """A record from its stored bytes: size, canonical form and envelope are checked, no more.

    Raises:
        EvidenceError: `ENTRY_TOO_LARGE`, `NOT_CANONICAL`, `SIGNATURE_INVALID` (wrong length),
            `ENVELOPE_INVALID`.
    """
    if len(signature) != SIGNATURE_BYTES:
        raise EvidenceError(
            "SIGNATURE_INVALID", f"a signature has 64 bytes, this one {len(signature)}"
        )
    check_size(len(entry))
    return _from_value(canonical.decode(entry), entry, signature)


def of_built(entry: bytes, signature: bytes) -> Record:
    """A record from bytes that `build_entry` has just given: canonical by construction, and so only read.

    Raises:
        EvidenceError: `ENVELOPE_INVALID`.
    """
    return _from_value(orjson.loads(entry), entry, signature)


def _from_value(value: Any, entry: bytes, signature: bytes) -> Record:
    try:
        envelope = _ENVELOPE.validate_python(value)
    except ValidationError as error:
        raise _translated("ENVELOPE_INVALID", "the entry", error) from None
    return Record(
        id=record_id(signature, entry),
        entry=entry,
        signature=signature,
        ledger=envelope.ledger,
        seq=envelope.seq,
        prev=envelope.prev,
        kind=envelope.kind,
        schema=envelope.schema_version,
        time=envelope.time,
        actor=envelope.actor,
        refs=envelope.refs,
        body=envelope.body,
        statement=envelope.statement,
    )


def check_size(entry_bytes: int) -> None:
    """Refuse an entry that with its signature is beyond the format's limit.

    Raises:
        EvidenceError: `ENTRY_TOO_LARGE`.
    """
    total = entry_bytes + SIGNATURE_BYTES
    if total > MAX_RECORD_BYTES:
        raise EvidenceError(
            "ENTRY_TOO_LARGE",
            f"signature and entry have {total} bytes",
            expected=f"at most {MAX_RECORD_BYTES}",
            actual=str(total),
        )


def check_kind(kind: str, schema: int) -> type[Body]:
    """The body model of a kind at a schema version.

    Raises:
        EvidenceError: `KIND_UNKNOWN`, `SCHEMA_FUTURE` or `SCHEMA_UNKNOWN`.
    """
    model = KINDS.get(kind)
    if model is None:
        raise EvidenceError("KIND_UNKNOWN", f"no kind is called {kind[:60]!r}", field="kind")
    if schema > model.version:
        raise EvidenceError(
            "SCHEMA_FUTURE",
            f"{kind} is written at schema {schema}, this program reads up to {model.version}",
            field="schema",
            expected=str(model.version),
            actual=str(schema),
        )
    if schema < model.version:
        raise EvidenceError(
            "SCHEMA_UNKNOWN",
            f"{kind} at schema {schema} was never released",
            field="schema",
            expected=str(model.version),
            actual=str(schema),
        )
    return model


def check_body(kind: str, schema: int, body: dict[str, Any]) -> Body:
    """The body as its model.

    Raises:
        EvidenceError: as `check_kind`; `BODY_INVALID`, naming the first field that is wrong.
    """
    model = check_kind(kind, schema)
    try:
        checked: Body = model.__pydantic_validator__.validate_python(body)
    except ValidationError as error:
        raise _translated(
            "BODY_INVALID", kind, error, f"see its fields: evidence schema {kind}"
        ) from None
    return checked


def sound(record: Record) -> Record:
    """The record itself, its body as its kind must be: for whoever is about to read fields of it.

    Raises:
        EvidenceError: as `check_body`, naming the record.
    """
    try:
        check_body(record.kind, record.schema, record.body)
    except EvidenceError as error:
        error.record, error.seq = record.id, record.seq
        raise
    return record


def envelope_dsse(record: Record) -> dict[str, Any]:
    """The record as a DSSE envelope, without signing anything again."""
    return {
        "payload": base64.b64encode(record.entry).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [
            {"keyid": record.actor, "sig": base64.b64encode(record.signature).decode()},
        ],
    }


def _translated(
    code: str, what: str, error: ValidationError, hint: str | None = None
) -> EvidenceError:
    first = error.errors(include_url=False, include_input=True)[0]
    field = ".".join(str(part) for part in first["loc"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return EvidenceError(
        code,
        f"{what}: {field or 'value'}: {reason(first['msg'])}{more}",
        field=field or None,
        actual=_SHOWN.repr(first.get("input"))[:120],
        hint=hint,
    )
