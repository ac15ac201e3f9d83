"""Places that cannot be written."""

from __future__ import annotations

from campaigns.crashing import Site
from campaigns.report import Outcome, Settings


def run(settings: Settings, template: Site, outcome: Outcome) -> None:
    """To come."""
