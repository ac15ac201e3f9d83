"""Every named question and a lineage on a long sealed ledger: wall-clock seconds, best of three, and the memory.

The ledger is that of `history`; its segments are made first and are not part of a question's time.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benches import history as long_history
from benches.report import Row, Settings, timed
from ledger.book import Ledger
from ledger.query.ask import Limits, ask, seal
from ledger.query.lineage import fold, walk
from ledger.query.links import folded
from ledger.query.named_queries import find, names
from ledger.query.segments import History

SIZE, FULL_SIZE = 50_000, 1_000_000
TRIES = 3
PATIENT = Limits(timeout_s=600.0)
QUESTION_S, LINEAGE_S = 1.0, 0.2


def run(settings: Settings) -> list[Row]:
    """Sealing, every named question, and the lineage of the newest checkpoint."""
    size = FULL_SIZE if settings.full else SIZE
    folder = long_history.built(settings, size)
    history = History(settings.scratch / "segments", min(size, FULL_SIZE))
    settings.say("sealing")
    _, sealing = timed(seal, folder, history)
    values = _values(folder)
    rows = [Row(f"sealing, {size:,} records", round(sealing.wall_s, 1), "s", "less")]
    for name in names():
        question = find(name)
        given = {item.name: values[item.kind] for item in question.parameters}
        work = partial(ask, folder, question.sql, given, PATIENT, None, history)
        rows.append(_row(f"query {name}, {size:,} records", work, settings, QUESTION_S))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    rows.append(Row("largest process", round(peak, 1), "MiB", "less"))
    return [*rows, *_lineages(folder, history, settings)]


def _lineages(folder: Path, history: History, settings: Settings) -> list[Row]:
    """From sealed edges, and from the records."""
    with Ledger.read(folder) as ledger:
        newest = ledger.of_kind("checkpoint.published")[-1]
        closure = len(walk(ledger, newest, "up").nodes)
        works: dict[str, Callable[[], object]] = {
            "sealed edges": lambda: folded(ledger, newest, history),
            "records": lambda: fold(walk(ledger, newest, "up")),
        }
        return [
            _row(
                f"lineage of {closure:,} records from {name}",
                work,
                settings,
                LINEAGE_S if name == "sealed edges" else None,
            )
            for name, work in works.items()
        ]


def _values(folder: Path) -> dict[str, str]:
    """A record of each kind that a question asks for: the first source, the newest of the others."""
    kinds = {item.kind for name in names() for item in find(name).parameters}
    with Ledger.read(folder) as ledger:
        return {
            kind: ledger.of_kind(kind)[0 if kind == "source.ingested" else -1].id for kind in kinds
        }


def _row(
    name: str, work: Callable[[], object], settings: Settings, limit: float | None = None
) -> Row:
    settings.say(name)
    best = min((timed(work)[1] for _ in range(TRIES)), key=lambda spent: spent.wall_s)
    return Row(name, round(best.wall_s, 3), "s", "less", limit, details=best.as_json())
