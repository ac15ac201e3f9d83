"""What a draw is drawn from and what it hits, from records alone; and what came of the re-runs.

A draw covers what stood in the ledger before it: the updates behind each nominated checkpoint, every arm that a review of
the nomination let read its test, every pass over such an arm. The root is that of the tree up to the draw itself, whose
nonce its auditor chose at random: nobody, the auditor too, knew it before the draw was recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from ledger import merkle
from verifiers.judgement.draws import Stratum, Target, draw, taken

if TYPE_CHECKING:
    from ledger.record import Record
    from verifiers.replay.view import View


@dataclass(frozen=True)
class Again:
    """What was run again of one seed.

    Attributes:
        updates: distinct updates that agreed.
        share: the least share of cases that agreed, over the arms and passes of both models.
        disagreed: re-runs that did not give what was recorded.
        missing: targets that were drawn and never run.
    """

    updates: int
    share: Fraction
    disagreed: int
    missing: int


@lru_cache(maxsize=16)
def targets_of(draw_id: str, view: View) -> tuple[Target, ...]:
    """What a draw hits; ids name content, so a cached answer cannot go stale."""
    record = view.get(draw_id)
    history = list(back_from(record, view))
    root = merkle.root(bytes.fromhex(item.id.removeprefix("sha256:")) for item in history[::-1])
    return tuple(draw(root, strata_of(record, history, view)))


def strata_of(record: Record, history: Sequence[Record], view: View) -> list[Stratum]:
    """What a draw is drawn from.

    Args:
        record: the draw.
        history: the draw and every record before it, the newest first.
        view: records and blobs.
    """
    body = record.body
    nomination = view.ref(record, "nomination")
    strata = []
    for name in nomination.ref_list("checkpoint"):
        path = tuple(path_of(view.get(name), view))
        strata.append(Stratum("update", name, path, body["updates_per_seed"]))
    arms = [item for item in history if item.kind == "arm.transcribed"]
    arms = [item for item in arms if _is_of(item, nomination, view)][::-1]
    ids = {item.id for item in arms}
    passes = [item for item in history if item.kind == "judge.passed" and item.ref("arm") in ids]
    for role, records, blob, key in (
        ("arm", arms, "transcripts", "case"),
        ("pass", passes[::-1], "raw_input", "item"),
    ):
        for item in records:
            members = tuple(str(line[key]) for line in view.lines(item.body[blob]))
            take = taken(body["case_share"], len(members))
            strata.append(Stratum(role, item.id, members, take))
    return strata


def back_from(record: Record, view: View) -> Iterator[Record]:
    """A record and every one before it, the newest first."""
    at: Record | None = record
    while at is not None:
        yield at
        at = view.get(at.prev) if at.prev is not None else None


def path_of(checkpoint: Record, view: View) -> list[str]:
    """The updates that led to a checkpoint, oldest first, those of runs it went on from too."""
    found = []
    at: str | None = checkpoint.ref("update")
    while at is not None:
        found.append(at)
        at = view.get(at).ref("previous")
    return found[::-1]


def draws_of(nomination: Record, head: str, view: View) -> tuple[list[Record], list[Record]]:
    """Every draw for a nomination up to a record, and every check of them, oldest first: none can be left out."""
    draws, checks = [], []
    for record in back_from(view.get(head), view):
        if record.seq <= nomination.seq:
            break
        if record.kind == "draw.made" and record.ref("nomination") == nomination.id:
            draws.append(record)
        elif record.kind == "check.reproduced":
            checks.append(record)
    ids = {item.id for item in draws}
    return draws[::-1], [item for item in checks[::-1] if item.ref("draw") in ids]


def again(
    checkpoint: Record,
    evaluations: Sequence[Record],
    draws: Sequence[Record],
    checks: Sequence[Record],
    view: View,
) -> Again:
    """What was run again of a checkpoint and of the evaluations that speak for it, its own and its baseline's.

    A check counts where it names a target of its draw; what was drawn twice counts once.
    """
    arms = {name for item in evaluations for name in item.ref_list("arm")}
    passes = {name for item in evaluations for name in item.ref_list("pass")}
    wanted = {checkpoint.id, *arms, *passes}
    drawn = {
        (item.id, target.index): target
        for item in draws
        for target in targets_of(item.id, view)
        if target.stratum.record in wanted
    }
    run = {
        (str(item.ref("draw")), item.body["index"]): item
        for item in checks
        if (str(item.ref("draw")), item.body["index"]) in drawn
    }
    # the same target checked twice: a disagreement stands, whatever came after or before it
    disagreed = [
        item
        for item in checks
        if not item.body["agreed"] and (str(item.ref("draw")), item.body["index"]) in drawn
    ]
    agreed = [drawn[key] for key, item in run.items() if item.body["agreed"]]
    shares = [_share(name, agreed) for name in sorted(arms | passes)]
    return Again(
        updates=len({item.record for item in agreed if item.role == "update"}),
        share=min(shares, default=Fraction(0)),
        disagreed=len(disagreed),
        missing=len(drawn.keys() - run.keys()),
    )


def _share(name: str, agreed: Sequence[Target]) -> Fraction:
    mine = [item for item in agreed if item.stratum.record == name]
    return (
        Fraction(len({item.case for item in mine}), len(mine[0].stratum.members))
        if mine
        else Fraction(0)
    )


def _is_of(arm: Record, nomination: Record, view: View) -> bool:
    review = arm.ref("review")
    return review is not None and view.get(review).ref("nomination") == nomination.id
