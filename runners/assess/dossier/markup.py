"""HTML and SVG elements from values. Whatever is not markup made here is text, and text is escaped."""

from __future__ import annotations

from html import escape
from typing import Any, Final

from runners.cli.render import clean

VOID: Final = frozenset({"meta", "br"})


class Markup(str):
    """Markup that this module made: the only text that is not escaped when it is put into an element."""

    __slots__ = ()


def text(value: object) -> Markup:
    """A value as text: what cannot be printed is shown as its code, what could be markup is escaped."""
    return value if isinstance(value, Markup) else Markup(escape(clean(str(value)), quote=True))


def join(*parts: object) -> Markup:
    """Several values one after the other."""
    return Markup("".join(text(part) for part in parts))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element.

    Args:
        name: its name, from code and never from data.
        children: markup, or values that become text.
        attributes: `class_` stands for class, `data_figure` for data-figure; None leaves one out.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{join(*children)}</{name}>")


def resolve(account: Any, pointer: str) -> Any:
    """The value under a JSON pointer (RFC 6901)."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        account = account[int(name)] if isinstance(account, list) else account[name]
    return account


def step(name: str) -> str:
    """A name as a step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def shown(value: object) -> str:
    """A value as the page prints it: numbers with at most six digits that say something, None as not defined."""
    if value is None:
        return "not defined"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def plain(value: object) -> str:
    """A value in full, for whoever reads the page by program."""
    return repr(value) if isinstance(value, float) else shown(value)
