"""Settings files: strict, complete, and with the nearest name where one is misspelt (torch-free).

A file names only what differs from the defaults. What is planned, recorded and handed to a child is every effective
setting, real numbers as text.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from ledger.canonical import parse_real, real
from ledger.errors import EvidenceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Settings(BaseModel):
    """The base of a group of settings: frozen, nothing coerced, unknown names refused."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Settings from a plain object; what it leaves out has its default.

        Real numbers may be text as records hold them, integers stand for real numbers.

        Raises:
            UsageError: `SETTING_UNKNOWN`, with the nearest name; `SETTING_INVALID`, with the field and its bound.
        """
        for name in values:
            if name not in cls.model_fields:
                raise cls._unknown(name)
        try:
            return cls(**{name: cls._plain(name, value) for name, value in values.items()})
        except ValidationError as error:
            first = error.errors()[0]
            field = str(first["loc"][0]) if first["loc"] else "settings"
            raise UsageError(
                "SETTING_INVALID", f"{field}: {_lower(first['msg'])}", field=field
            ) from None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Settings from a TOML file, or a JSON file by its suffix `.json`.

        Raises:
            UsageError: `SETTING_UNKNOWN` or `SETTING_INVALID`, also where the file is no TOML or JSON object or sets a
                name twice.
        """
        return cls.from_values(load_object(path))

    def effective(self) -> dict[str, Any]:
        """Every setting as a record holds it: real numbers as text, lists as lists."""
        return {name: _recorded(value) for name, value in self.model_dump().items()}

    @classmethod
    def _unknown(cls, name: str) -> UsageError:
        near = difflib.get_close_matches(name, cls.model_fields, n=1)
        nearest = f"; the nearest is {near[0]}" if near else ""
        return UsageError("SETTING_UNKNOWN", f"no setting is named {name}{nearest}", field=name)

    @classmethod
    def _plain(cls, name: str, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(value)
        if cls.model_fields[name].annotation is not float:
            return value
        if isinstance(value, str):
            return _real(name, value)
        return float(value) if type(value) is int else value


def load_object(path: Path) -> dict[str, Any]:
    """The object of names and values in a TOML file, or a JSON file by its suffix `.json`.

    Raises:
        UsageError: `INPUT_MISSING`, there is no such file; `SETTING_INVALID`, it is no TOML or JSON object, or sets a
            name twice.
    """
    if not path.is_file():
        raise UsageError("INPUT_MISSING", f"there is no file {path}", field="config")
    try:
        text = path.read_text(encoding="utf-8")
        values = _json_object(text) if path.suffix == ".json" else tomllib.loads(text)
    except (
        ValueError,
        RecursionError,
    ) as error:  # bad UTF-8, JSON or TOML, also nested without end
        raise UsageError(
            "SETTING_INVALID", f"{path.name} cannot be read: {_lower(str(error))}", field="config"
        ) from None
    if not isinstance(values, dict):
        raise UsageError("SETTING_INVALID", f"{path.name} is no object of settings", field="config")
    return values


def _json_object(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError("SETTING_INVALID", f"{name} is set twice", field=name)
    return dict(pairs)


def _real(name: str, text: str) -> float:
    try:
        return parse_real(text)
    except EvidenceError as error:
        raise UsageError("SETTING_INVALID", f"{name}: {error.message}", field=name) from None


def _recorded(value: Any) -> Any:
    if isinstance(value, float):
        return real(value)
    return list(value) if isinstance(value, tuple) else value


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")
