"""Models: what a base model or a judge is, file by file."""

from __future__ import annotations

from typing import ClassVar

from ledger.records.base import Blob, Body, Count, Digest, Files, Name, Slug, Text


class ModelRegistered(Body):
    """A model by the digests of its files, or a provider's name for one that has no bytes here."""

    kind: ClassVar[str] = "model.registered"
    version: ClassVar[int] = 1

    name: Name
    family: Slug
    architecture: Slug
    parameters: Count
    files: Files
    tree: Digest
    tokenizer: Digest
    chat_template: Digest | None
    licence: Name
    licence_text: Blob | None = None
    source: Text
    revision: Slug | None
    hosted: bool
    provider_name: Name | None = None
