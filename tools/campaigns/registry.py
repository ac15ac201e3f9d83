"""The campaigns there are: a name, what it shows, and the function that runs it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from campaigns.report import Outcome, Settings

Run = Callable[[Settings], Outcome]


@dataclass(frozen=True)
class Campaign:
    """One campaign; its module is loaded only when it is run and has a function `run`."""

    name: str
    module: str
    shows: str

    def load(self) -> Run:
        """The function that runs it."""
        return cast("Run", importlib.import_module(self.module).run)


CAMPAIGNS = {
    item.name: item
    for item in (
        Campaign(
            "tamper-memory",
            "campaigns.tamper_memory",
            "changed entries and record sequences are refused, the first bad record named",
        ),
        Campaign(
            "sft-kill",
            "campaigns.sft_kill",
            "supervised runs killed at random moments end in the bytes of the undisturbed run",
        ),
    )
}
