"""What to say of a setting that does not exist: the nearest name, ours for another tool's, or that it is a section."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MAX_SHOWN = 80


def unknown_setting(
    name: str, value: Any, known: Collection[str], foreign: Mapping[str, str]
) -> UsageError:
    """The error for a name that is no setting.

    Args:
        name: as it was written.
        value: what was given for it; an object where the name is that of a section.
        known: every name that there is.
        foreign: names of other tools and what they are here: a name of ours, or a sentence.
    """
    said = name[:MAX_SHOWN]
    if name in foreign:
        here = foreign[name]
        why = f"{said} is called {here} here" if here in known else f"there is no {said}: {here}"
        return UsageError("SETTING_UNKNOWN", why, field=said)
    if isinstance(value, dict):
        return _section(said, value, known, foreign)
    near = _nearest(name, known)
    nearest = f"; the nearest is {near}" if near else ""
    return UsageError("SETTING_UNKNOWN", f"no setting is named {said}{nearest}", field=said)


def shown(value: Any) -> str:
    """A value as it may be repeated in a message."""
    if isinstance(value, str):
        return f"the text {value[:MAX_SHOWN]!r}"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, dict):
        return "a section"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    # integers of any length are parsed, but not written out
    return str(value) if isinstance(value, float) or value.bit_length() < MAX_SHOWN else "so large"


def _section(
    said: str, values: Mapping[str, Any], known: Collection[str], foreign: Mapping[str, str]
) -> UsageError:
    """Settings have no sections: name the first one inside that would do at the top."""
    inside = next((name for name in values if name in known), None)
    if inside is None:
        inside = next((foreign[name] for name in values if foreign.get(name) in known), None)
    hint = f": write {inside} at the top, without a section" if inside else ""
    return UsageError(
        "SETTING_UNKNOWN", f"{said} is a section, and there are none{hint}", field=said
    )


def _nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that is most like it; one that differs only in case, dashes or its words' order comes first."""
    plain = name.replace("-", "_").casefold()
    if plain in known:
        return plain
    words = sorted(plain.split("_"))
    for candidate in known:
        if sorted(candidate.split("_")) == words:
            return candidate
    near = difflib.get_close_matches(plain[:MAX_SHOWN], known, n=1)
    return near[0] if near else None
