"""What several processes say of one step, made into the one event that the supervisor hears (pure, torch-free).

Rank 0 speaks. Rows are named rank by rank and within a rank micro-batch by micro-batch, which is the order of
`runners.train.order`; tokens, losses and figures are sums over the ranks, and the state after an update is named for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger.canonical import parse_real, real
from ledger.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Fields = dict[str, Any]


EVALUATED = "validation_"
"""How the figures of an evaluation begin (`runners.train.evaluation`)."""


def merged(event: str, said: Sequence[Fields]) -> Fields:
    """The fields of an event from what each rank says of it, in the order of ranks.

    Raises:
        EvidenceError: `RANKS_DISAGREE`, where they must say the same and do not.
    """
    return _MERGES.get(event, _first)(said)


def _first(said: Sequence[Fields]) -> Fields:
    return dict(said[0])


def _start(said: Sequence[Fields]) -> Fields:
    _check_same(said, "state", "rows")
    return {**said[0], "processes": len(said)}


def _restored(said: Sequence[Fields]) -> Fields:
    _check_same(said, "step", "state", "mode", "digests")
    return dict(said[0])


def _batch(said: Sequence[Fields]) -> Fields:
    _check_same(said, "step")
    return {
        **said[0],
        "micro_batches": [batch for fields in said for batch in fields["micro_batches"]],
        "trainable_tokens": sum(fields["trainable_tokens"] for fields in said),
        "tokens": sum(fields["tokens"] for fields in said),
    }


def _update(said: Sequence[Fields]) -> Fields:
    """The states after are not compared here: they are named, and the ledger's rule U9 compares them."""
    _check_same(said, "step", "learning_rate", "gradient_norm", "before")
    return {
        **said[0],
        "loss": real(sum(parse_real(fields["loss"]) for fields in said)),
        "figures": _figures([fields["figures"] for fields in said]),
        "ranks": [{"rank": rank, "after": fields["after"]} for rank, fields in enumerate(said)],
    }


def _figures(said: Sequence[Fields]) -> Fields:
    """Counts are summed; an evaluation was made by every rank on all its rows, and says the same at each."""
    whole = [name for name in said[0] if name.startswith(EVALUATED)]
    _check_same(said, *whole)
    return {
        name: value if name in whole else sum(item[name] for item in said)
        for name, value in said[0].items()
    }


def _checkpoint(said: Sequence[Fields]) -> Fields:
    _check_same(said, "step", "state", "path")
    return dict(said[0])


def _check_same(said: Sequence[Fields], *names: str) -> None:
    for name in names:
        for rank, fields in enumerate(said):
            if fields[name] != said[0][name]:
                raise EvidenceError(
                    "RANKS_DISAGREE",
                    f"{name} of rank {rank} is not that of rank 0",
                    field=name,
                    expected=str(said[0][name])[:200],
                    actual=str(fields[name])[:200],
                )


_MERGES: dict[str, Callable[[Sequence[Fields]], Fields]] = {
    "start": _start,
    "restored": _restored,
    "batch": _batch,
    "update": _update,
    "checkpoint": _checkpoint,
}
