from __future__ import annotations

from verifiers.replay.view import Replay

REPLAYS: dict[str, Replay] = {}
