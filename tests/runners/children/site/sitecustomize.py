"""For every Python that a test starts with this folder on its path: runs are done by the child without a model.

What `script.json` in the home folder says under `strike` is done by the supervisor itself, at that point of its work.
"""

from __future__ import annotations

import json
import os
import resource
import signal
from pathlib import Path

from runners.train import supervisor

supervisor.CHILD = "tests.runners.children.learner"


def struck_before(name):
    """Let the process be killed by signal 9 where it is about to call a function of the supervisor's."""

    def killed(*_arguments, **_named):
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(supervisor, name, killed)


def without_room_for(name):
    """Let a function of the supervisor's find no room for its file; what comes after it has room again."""
    real = getattr(supervisor, name)

    def cramped(*arguments, **named):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
        try:
            return real(*arguments, **named)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    setattr(supervisor, name, cramped)


script = Path(os.environ["HOME"]) / "script.json"
strike = json.loads(script.read_bytes()).get("strike", {}) if script.exists() else {}
if "before" in strike:
    struck_before(strike["before"])
if "no_room_for" in strike:
    without_room_for(strike["no_room_for"])
