"""The chat template in effect: the model's own or a given one, refused where it renders otherwise another time.

A template is a program from somebody else. Here its text is chosen and looked through; it runs in the library's
sandbox (`runners.train.rendering`), and before a run in a process with bounds (`runners.train.preflight_child`).
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from ledger.digests import is_digest, open_regular, sha256
from ledger.errors import EvidenceError, UsageError
from runners.prepare.models import own_template
from runners.train.template_clock import CLOCK, with_clock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_TEMPLATE_BYTES = 1 << 18
RANDOM_NAMES = ("lipsum",)
RANDOM_FILTER = "random"


def model_template(folder: Path, name: str) -> str:
    """The text of a model's own chat template.

    Args:
        folder: the model's.
        name: what a person calls it.

    Raises:
        UsageError: `TEMPLATE_MISSING`, it has none, or several.
        EvidenceError: `MODEL_UNSAFE`, its file cannot be read as text.
    """
    text = own_template(folder)
    if text is None:
        raise UsageError(
            "TEMPLATE_MISSING",
            f"model {name} has no chat template of its own, or several",
            field="chat_template",
        )
    return text


def in_effect(text: str, day: str | None = None) -> str:
    """What renders every row: the template's text, and before it the day that it is told where it asks for it.

    Args:
        text: the model's own template or a given one.
        day: as YYYY-MM-DD.

    Raises:
        UsageError: `TEMPLATE_UNSTABLE`, it asks for the date and no day is given.
        EvidenceError: `TEMPLATE_INVALID`, it is no template; `TEMPLATE_UNSTABLE`, it draws at random.
    """
    used = set(_names(text))
    if used & {*RANDOM_NAMES, f"|{RANDOM_FILTER}"}:
        raise EvidenceError("TEMPLATE_UNSTABLE", "the chat template draws at random")
    if CLOCK not in used:
        return text
    if day is None:
        raise UsageError(
            "TEMPLATE_UNSTABLE",
            "the chat template asks for today's date, so tomorrow the same rows would be others",
            field="template_date",
            hint='name the day that it is told: template_date = "YYYY-MM-DD"',
        )
    return with_clock(text, date.fromisoformat(day))


def read_template(path: Path) -> str:
    """A template's text from a file.

    Raises:
        UsageError: `INPUT_MISSING`, there is no such file.
        EvidenceError: `UNSAFE_PATH`, it is a link or no regular file; `TEMPLATE_INVALID`, it is too large or not UTF-8.
    """
    try:
        with open_regular(path) as stream:
            return template_text(stream.read(MAX_TEMPLATE_BYTES + 1))
    except FileNotFoundError:
        raise UsageError(
            "INPUT_MISSING", f"there is no file {path}", field="chat_template"
        ) from None


def template_text(data: bytes) -> str:
    """A template's text from its bytes.

    Raises:
        EvidenceError: `TEMPLATE_INVALID`, it is too large or not UTF-8.
    """
    if len(data) > MAX_TEMPLATE_BYTES:
        raise EvidenceError(
            "TEMPLATE_INVALID", f"the chat template has more than {MAX_TEMPLATE_BYTES} bytes"
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise EvidenceError("TEMPLATE_INVALID", "the chat template is not UTF-8") from None


def template_named(folder: Path, values: dict[str, Any]) -> str | None:
    """The text of the template whose path a configuration gives under `chat_template`; its digest takes the path's place.

    Args:
        folder: the configuration's, where a relative path begins.
        values: the configuration; a digest, or another type than text, stays as it is.

    Raises:
        LedgerError: see `read_template`.
    """
    named = values.get("chat_template")
    if not isinstance(named, str) or is_digest(named):
        return None
    text = read_template(folder / named)
    values["chat_template"] = sha256(text.encode())
    return text


def _names(text: str) -> Iterator[str]:
    """Every name that the template uses, filters with a bar before them, filters named by a text too.

    Raises:
        EvidenceError: `TEMPLATE_INVALID`, it cannot be read as a template.
    """
    from jinja2 import Environment, TemplateSyntaxError

    before = ""
    try:
        for _, kind, value in Environment().lex(text):  # noqa: S701 - nothing is rendered here
            if kind == "name":
                yield f"|{value}" if before == "|" else value
            elif kind == "string":
                yield f"|{value[1:-1]}"
            if kind != "whitespace":
                before = value
    except TemplateSyntaxError as error:
        message = f"line {error.lineno} of the chat template: {error.message}"
        raise EvidenceError("TEMPLATE_INVALID", message[:300]) from None
