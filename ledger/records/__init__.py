"""The record models, one module a family, and the table of kinds."""

from __future__ import annotations

from ledger.records import data, evaluation, identity, learning, model, promotion, remote, run
from ledger.records.base import Body

_FAMILIES = (identity, data, model, run, learning, remote, evaluation, promotion)


def _bodies() -> dict[str, type[Body]]:
    found: dict[str, type[Body]] = {}
    for family in _FAMILIES:
        for item in vars(family).values():
            if isinstance(item, type) and issubclass(item, Body) and item is not Body:
                found[item.kind] = item
    return found


KINDS: dict[str, type[Body]] = _bodies()

__all__ = ["KINDS"]
