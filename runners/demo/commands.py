"""Running one public command as a user would: printed first, in a process of its own, its JSON read back."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger.digests import is_digest
from ledger.errors import UsageError


def short(argument: str) -> str:
    """A whole record id as a person would type it: its first twelve digits."""
    return argument[7:19] if is_digest(argument) else argument


@dataclass
class Shell:
    """Where the demo's commands run and what they print.

    Args:
        folder: the demo's folder; keys and state lie in it too, so nothing of the user's is touched.
        say: prints a line for the person who watches.
        took_s: seconds by command, in order.
        begun_s: when it all began, by the monotonic clock.
    """

    folder: Path
    say: Callable[[str], None]
    took_s: list[tuple[str, float]] = field(default_factory=list)
    begun_s: float = field(default_factory=time.monotonic)

    @property
    def environment(self) -> dict[str, str]:
        """The user's environment, with configuration and state inside the demo's folder."""
        own = {
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "EVIDENCE_LEDGER": str(self.folder / "ledger"),
            "EVIDENCE_PROGRESS": "1",
        }
        kept = {name: value for name, value in os.environ.items() if name != "EVIDENCE_KEY"}
        return {**kept, **own}

    def run(self, *arguments: str, expect: tuple[int, ...] = (0,)) -> dict[str, Any]:
        """Print a command, run it with `--json`, and return its object.

        Raises:
            UsageError: `DEMO_FAILED`, it ended in another way than the story tells.
        """
        arguments = tuple(short(item) for item in arguments)
        self.say("")
        self.say(f"$ evidence {shlex.join(arguments)}")
        begun = time.monotonic()
        command = [sys.executable, "-P", "-m", "runners.cli.main", *arguments, "--json"]
        done = subprocess.run(
            command, env=self.environment, stdout=subprocess.PIPE, check=False, text=True
        )
        took = time.monotonic() - begun
        self.took_s.append((" ".join(arguments[:2]), took))
        try:
            answer: dict[str, Any] = json.loads(done.stdout)
        except json.JSONDecodeError:
            raise UsageError(
                "DEMO_FAILED", f"evidence {arguments[0]} printed no JSON object"
            ) from None
        if done.returncode not in expect:
            error = answer.get("error", {})
            raise UsageError(
                "DEMO_FAILED",
                f"evidence {' '.join(arguments[:2])} ended with {done.returncode}: "
                f"{error.get('code')}: {error.get('message')}",
                hint=str(error.get("hint", "")),
            )
        return answer
