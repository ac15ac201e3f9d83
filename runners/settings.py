"""Settings files: strict, complete, and with the nearest name where one is misspelt (torch-free).

A file names only what differs from the defaults. What is planned, recorded and handed to a child is every effective
setting, real numbers as text.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ledger.canonical import MAX_INTEGER, parse_real, real
from ledger.digests import open_regular
from ledger.errors import EvidenceError, UsageError
from runners.setting_names import shown, unknown_setting

if TYPE_CHECKING:
    from pathlib import Path


MAX_FILE_BYTES = 65_536
MAX_DOTS = 200
_FLOAT_BITS = 1000


def _check_day(text: str) -> str:
    """Refuse a day that does not exist."""
    date.fromisoformat(text)
    return text


Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), AfterValidator(_check_day)]


class Settings(BaseModel):
    """The base of a group of settings: frozen, nothing coerced, unknown names refused.

    `foreign` says of names that other tools use what they are called here, or why there is no such setting.
    """

    foreign: ClassVar[Mapping[str, str]] = {}

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    @classmethod
    def from_values(cls, values: Mapping[str, Any], *, from_toml: bool = False) -> Self:
        """Settings from a plain object; what it leaves out has its default.

        Real numbers may be text as records hold them, and as JSON made of one does; TOML has numbers of its own, so a
        text in it is a mistake. Integers stand for real numbers.

        Raises:
            UsageError: `SETTING_UNKNOWN`, with the nearest name; `SETTING_INVALID`, with the field and its bound.
        """
        cls.check_names(values)
        for name, value in values.items():
            if type(value) is int and abs(value) > MAX_INTEGER:
                raise UsageError(
                    "SETTING_INVALID",
                    f"{name}: input should be at most {MAX_INTEGER} either way",
                    field=name,
                )
        try:
            plain = {
                name: value if from_toml and isinstance(value, str) else cls._plain(name, value)
                for name, value in values.items()
            }
            return cls(**plain)
        except ValidationError as error:
            first = error.errors()[0]
            field = str(first["loc"][0]) if first["loc"] else "settings"
            given = f", not {shown(values[field])}" if field in values else ""
            raise UsageError(
                "SETTING_INVALID", f"{field}: {_why(first)}{given}", field=field
            ) from None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Settings from a TOML file, or a JSON file by its suffix `.json`.

        Raises:
            UsageError: `SETTING_UNKNOWN` or `SETTING_INVALID`, also where the file is no TOML or JSON object or sets a
                name twice.
        """
        return cls.from_values(load_object(path), from_toml=path.suffix != ".json")

    def effective(self) -> dict[str, Any]:
        """Every setting as a record holds it: real numbers as text, lists as lists."""
        return {name: _recorded(value) for name, value in self.model_dump().items()}

    @classmethod
    def check_names(cls, values: Mapping[str, Any], *beside: str) -> None:
        """Refuse a name that is no setting.

        Args:
            values: what a file or a record says.
            beside: names that the file may hold beside the settings.

        Raises:
            UsageError: `SETTING_UNKNOWN`, with the nearest name, or with ours for a name of another tool's.
        """
        known = [*cls.model_fields, *beside]
        for name, value in values.items():
            if name not in known:
                raise unknown_setting(name, value, known, cls.foreign)

    @classmethod
    def _plain(cls, name: str, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(value)
        if cls.model_fields[name].annotation is not float:
            return value
        if isinstance(value, str):
            return _real(name, value)
        if type(value) is int and value.bit_length() <= _FLOAT_BITS:
            return float(value)
        return value


def load_object(path: Path) -> dict[str, Any]:
    """The object of names and values in a TOML file, or a JSON file by its suffix `.json`.

    Raises:
        UsageError: `INPUT_MISSING`, there is no such file; `SETTING_INVALID`, it is no TOML or JSON object, is too
            large, or sets a name twice.
        EvidenceError: `UNSAFE_PATH`, it is a link or no regular file.
    """
    try:
        values = parse_object(read_bounded(path), as_json=path.suffix == ".json")
    except ValueError as error:
        raise UsageError(
            "SETTING_INVALID",
            f"{path.name} cannot be read: {_lower(str(error)[:200])}",
            field="config",
        ) from None
    if not isinstance(values, dict):
        raise UsageError("SETTING_INVALID", f"{path.name} is no object of settings", field="config")
    return values


def read_bounded(path: Path) -> bytes:
    """The bytes of a settings file, which is small.

    Raises:
        UsageError: `INPUT_MISSING`, there is no such file; `SETTING_INVALID`, it is too large.
        EvidenceError: `UNSAFE_PATH`, it is a link or no regular file.
    """
    try:
        with open_regular(path) as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise UsageError("INPUT_MISSING", f"there is no file {path}", field="config") from None
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(
            "SETTING_INVALID", f"{path.name} has more than {MAX_FILE_BYTES} bytes", field="config"
        )
    return data


def parse_object(data: bytes, *, as_json: bool) -> Any:
    """The value of a TOML or JSON file; a mark of UTF-8 before it is no part of it.

    Raises:
        ValueError: it is neither, nests too deep, or names a key twice.
    """
    text = data.decode("utf-8-sig")
    try:
        if as_json:
            return json.loads(text, object_pairs_hook=_unique)
        _check_dots(text)
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None


def _check_dots(text: str) -> None:
    """The TOML parser takes time by the square of the parts of a dotted name: half a minute for this size of file."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > MAX_DOTS and not line.lstrip().startswith("#"):
            raise ValueError(f"line {number} has more than {MAX_DOTS} dots")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, item in pairs:
        if name in value:
            raise ValueError(f"{name[:80]} is set twice")
        value[name] = item
    return value


def _real(name: str, text: str) -> float:
    try:
        return parse_real(text)
    except EvidenceError as error:
        raise UsageError("SETTING_INVALID", f"{name}: {error.message}", field=name) from None


def _recorded(value: Any) -> Any:
    if isinstance(value, float):
        return real(value)
    return list(value) if isinstance(value, tuple) else value


def _why(error: Any) -> str:
    """Why a value will not do, in words about the setting and not about the library that checked it."""
    match error:
        case {"type": "too_short", "ctx": {"min_length": 1}}:
            return "at least one has to be named"
        case {"type": "too_short", "ctx": {"min_length": int(least)}}:
            return f"at least {least} have to be named"
    text = str(error["msg"]).removeprefix("Value error, ")
    return _lower(text[:200])


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")
