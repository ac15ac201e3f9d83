"""What all results share, and the two objects that wrap them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ledger.records.base import DIGEST_PATTERN, KEY_ID_PATTERN

Id = Annotated[str, Field(pattern=DIGEST_PATTERN)]
Key = Annotated[str, Field(pattern=KEY_ID_PATTERN)]
Root = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Number = Annotated[int, Field(ge=0)]


class Result(BaseModel):
    """A result whose fields are all named: they stay, and further ones may come in a later version."""

    model_config = ConfigDict(strict=True, extra="forbid")


class OpenResult(Result):
    """A result of which only the fields named here are promised."""

    model_config = ConfigDict(strict=True, extra="allow")


class Failure(Result):
    """The `error` object: why the command did not succeed, and what to do."""

    code: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
    message: str
    field: str | None = None
    record: str | None = None
    seq: Number | None = None
    expected: str | None = None
    actual: str | None = None
    hint: str | None = None


class Warned(Result):
    """One of the `warnings`: what was done is done, and something beside it was not."""

    code: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
    message: str
    hint: str
