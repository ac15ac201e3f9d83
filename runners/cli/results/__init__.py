"""The shape of each command's `result` under `--json`, as models: `schemas/cli/` is made from them.

Only tools and tests import this; a command builds plain dicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runners.cli.results import core, work

if TYPE_CHECKING:
    from runners.cli.results.base import Result

RESULTS: dict[str, type[Result]] = {**core.RESULTS, **work.RESULTS}
"""Command, e.g. `key list` -> model."""

__all__ = ["RESULTS"]
