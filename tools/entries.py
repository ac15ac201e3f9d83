"""One entry of a registry: a name, the module that does it, one line about it. The module is loaded only when it is run."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

Run = TypeVar("Run")


@dataclass(frozen=True)
class Entry(Generic[Run]):
    """Something that can be run by its name; its module has a function `run`.

    Attributes:
        name: what a person types.
        module: where it is.
        about: what it measures or shows.
    """

    name: str
    module: str
    about: str

    def load(self) -> Run:
        """The function that runs it."""
        return cast("Run", importlib.import_module(self.module).run)
