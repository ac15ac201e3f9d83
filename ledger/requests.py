"""A statement's request and its answer as files, for a signer on another machine (spec: statements.md).

The request is what is signed, canonical JSON of `ledger`, `kind`, `refs`, `body`, `seal` and `nonce`, and a
line feed. The answer is the same object with `key` and `signature`. Nothing in either is secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError

from ledger import canonical, statements
from ledger.ed25519 import PrivateKey
from ledger.errors import EvidenceError, reason
from ledger.record import Refs, check_body
from ledger.records import KINDS
from ledger.records.base import KeyId, Model, Nonce, Origin, RecordId, Seen, Signature, Statement
from ledger.rules import RULES

MAX_FILE_BYTES = 100_000


class _Request(Model):
    """The fields of a request."""

    ledger: Origin
    kind: Annotated[str, Field(max_length=60)]
    refs: dict[str, RecordId | list[RecordId]]
    body: dict[str, Any]
    seal: Seen
    nonce: Nonce


class _Answer(_Request):
    """The fields of an answer."""

    key: KeyId
    signature: Signature


M = TypeVar("M", bound=_Request)


@dataclass(frozen=True)
class Request:
    """What somebody is asked to state: a record's kind, refs and body, and the head it follows."""

    ledger: str
    kind: str
    refs: Refs
    body: dict[str, Any]
    seal: Seen
    nonce: str

    def encode(self) -> bytes:
        """The file's content."""
        made = statements.payload(
            self.ledger, self.kind, self.refs, self.body, self.seal, self.nonce
        )
        return made + b"\n"

    @classmethod
    def decode(cls, data: bytes) -> Request:
        """The request in a file.

        Raises:
            EvidenceError: `STATEMENT_FILE`, it is not what `encode` writes; `KIND_UNKNOWN`,
                `STATEMENT_UNEXPECTED`, `BODY_INVALID`, no such record carries a statement.
        """
        return _checked(_read(_Request, data))


def sign(request: Request, key: PrivateKey) -> bytes:
    """The answer to a request: the file to hand back."""
    made = statements.make(
        key,
        ledger=request.ledger,
        kind=request.kind,
        refs=request.refs,
        body=request.body,
        seal=request.seal,
        nonce=request.nonce,
    )
    fields = canonical.decode(request.encode()[:-1])
    return canonical.encode({**fields, "key": made.key, "signature": made.signature}) + b"\n"


def read_answer(data: bytes) -> tuple[Request, Statement]:
    """What was asked and the statement over it; admission checks the signature.

    Raises:
        EvidenceError: as `Request.decode`.
    """
    fields = _read(_Answer, data)
    statement = Statement(
        key=fields.key, seal=fields.seal, nonce=fields.nonce, signature=fields.signature
    )
    return _checked(fields), statement


def _read(model: type[M], data: bytes) -> M:
    if len(data) > MAX_FILE_BYTES or not data.endswith(b"\n"):
        raise EvidenceError("STATEMENT_FILE", "the file does not end in one line feed, or is large")
    try:
        return model.model_validate(canonical.decode(data[:-1]))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or None
        raise EvidenceError("STATEMENT_FILE", reason(first["msg"]), field=place) from None
    except EvidenceError as error:
        raise EvidenceError("STATEMENT_FILE", error.message) from None


def _checked(fields: _Request) -> Request:
    rule = RULES.get(fields.kind)
    if rule is None:
        raise EvidenceError("KIND_UNKNOWN", f"no kind is called {fields.kind!r}")
    if rule.statement is None:
        raise EvidenceError("STATEMENT_UNEXPECTED", f"{fields.kind} carries no statement")
    check_body(fields.kind, KINDS[fields.kind].version, fields.body)
    return Request(fields.ledger, fields.kind, fields.refs, fields.body, fields.seal, fields.nonce)
