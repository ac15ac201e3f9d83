"""The supervised child with everything taken out that is there for the ledger: what `benches.ledger_overhead` compares with."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runners.protocol import Channel, serve


class _Mute:
    """A channel that says yes at once; only the first event goes out, so that both sides begin at the same place."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.stop = False

    def ask(self, event: str, **fields: Any) -> dict[str, Any]:
        """Nothing is asked but the start."""
        return self._channel.ask(event, rows=fields["rows"]) if event == "start" else {}


def train(channel: Channel, job: dict[str, Any]) -> dict[str, Any]:
    """The same training, unwatched."""
    from runners.train import sft, trainer  # noqa: PLC0415 - heavy, and only in the child

    def write(folder: Path, save: Callable[[Path], None], _state: str) -> None:
        folder.mkdir(parents=True)
        save(folder)

    vars(trainer).update(
        live_state=lambda _model: "", write_checkpoint=write, batch_fields=lambda _chosen: {}
    )
    muted: Any = _Mute(channel)
    return {"outcome": sft.train(muted, job)["outcome"]}


if __name__ == "__main__":
    sys.exit(serve(train))
