"""One channel to the supervisor for all processes of a run: rank 0 speaks, and every rank hears the answer.

What a rank says is merged with what the others say (`runners.train.rank_events`) before it is sent. The answer comes to
each by an exchange, so no rank steps before the record stands, and all stop at the same step.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ledger import canonical
from ledger.errors import LedgerError, UsageError
from runners.protocol import Asked, Channel, claim_stdio
from runners.torchrun import end_with_the_launcher, hush, place_of
from runners.train.rank_events import merged

if TYPE_CHECKING:
    from collections.abc import Callable

    from runners.train.ranks import Ranks


class SharedChannel(Channel):
    """The child's end of the protocol at one of several ranks.

    Args:
        own: the channel to the supervisor; None at every rank but the first.
        ranks: the processes of the run.
    """

    def __init__(self, own: Channel | None, ranks: Ranks) -> None:
        self._own = own
        self.ranks = ranks
        self.stop = False

    def job(self) -> dict[str, Any]:
        """The job, at every rank.

        Raises:
            LedgerError: what rank 0 met when it read it; `CHILD_DIED`, a rank is gone.
        """
        return self._shared(None if self._own is None else self._own.job)

    def ask(self, event: str, **fields: Any) -> dict[str, Any]:
        """Say what happened at this rank, and wait until the parent has written down what happened at all.

        Raises:
            UsageError: `CHILD_REFUSED`, the parent said no, or is gone; `CHILD_DIED`, a rank is gone.
            EvidenceError: `RANKS_DISAGREE`; what `Channel.ask` raises.
        """
        if event == "end":
            return self._end(fields)
        said = [canonical.decode(data) for data in self.ranks.gather(canonical.encode(fields))]
        whole = merged(event, said)
        own = self._own
        reply = self._shared(None if own is None else lambda: own.ask(event, **whole))
        self.stop = self.stop or bool(reply.get("stop"))
        return reply

    def _end(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Rank 0's word counts; a rank that failed alone has left it for rank 0 to say."""
        if self._own is None:
            self.ranks.await_end(fields if fields["outcome"] == "failed" else None)
            return {}
        reply = self._own.ask("end", **fields)
        self.ranks.tell_end()
        return reply

    def _shared(self, work: Callable[[], dict[str, Any]] | None) -> dict[str, Any]:
        """What rank 0's work gives or raises, at every rank."""
        given = None
        if work is not None:
            try:
                given = {"value": work()}
            except LedgerError as error:
                self.ranks.from_first(canonical.encode({"error": error.as_dict()}))
                raise
        answer = canonical.decode(
            self.ranks.from_first(None if given is None else canonical.encode(given))
        )
        if "error" in answer:
            met = answer["error"]
            raise UsageError(str(met["code"]), str(met["message"]))
        return dict(answer["value"])


def claim() -> Channel:
    """The channel of this process, alone or among several: what `runners.protocol.serve` is given."""
    place = place_of(os.environ)
    if place is None:
        return claim_stdio()
    end_with_the_launcher()
    own = claim_stdio() if place.rank == 0 else None
    if own is None:
        hush()
    from runners.train.ranks import join

    return SharedChannel(own, join(place))


def ranks_of(channel: Asked) -> Ranks:
    """The processes that share a channel."""
    from runners.train.ranks import ALONE

    return channel.ranks if isinstance(channel, SharedChannel) else ALONE
