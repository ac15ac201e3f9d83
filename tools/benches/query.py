"""Every named question and a lineage on a long sealed ledger: wall-clock seconds, best of two, and the memory.

The ledger is that of `history`; its segments are made first and are not part of a question's time.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benches import history as long_history
from benches import query_peers
from benches.report import Row, Settings, timed
from ledger.book import Ledger
from ledger.query.ask import Limits, ask, seal
from ledger.query.lineage import fold, walk
from ledger.query.links import folded
from ledger.query.named_queries import find, names
from ledger.query.names import TABLES
from ledger.query.segments import History

SIZE, FULL_SIZE = 50_000, 1_000_000
TRIES = 2
PATIENT = Limits(timeout_s=600.0)
QUESTION_S, LINEAGE_S = 1.0, 0.2


def run(settings: Settings) -> list[Row]:
    """Sealing, every named question, and the lineage of the newest checkpoint."""
    size = FULL_SIZE if settings.full else SIZE
    folder = long_history.built(settings, size)
    history = History(settings.scratch / "segments", min(size, FULL_SIZE))
    settings.say("sealing")
    sealed, sealing = timed(seal, folder, history)
    values = _values(folder, history)
    # segments of an earlier run in the same scratch folder are used again
    made = {"made": sealed["made"], "segments": sealed["segments"], **sealing.as_json()}
    rows = [Row(f"sealing, {size:,} records", round(sealing.wall_s, 1), "s", "less", details=made)]
    for name in names():
        question = find(name)
        given = {item.name: values[item.kind] for item in question.parameters}
        work = partial(ask, folder, question.sql, given, PATIENT, None, history)
        rows.append(_row(f"query {name}, {size:,} records", work, settings, QUESTION_S))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    rows.append(Row("largest process", round(peak, 1), "MiB", "less"))
    rows += _lineages(folder, history, settings, values["checkpoint.published"])
    return [*rows, *query_peers.run(settings, folder, history, values["run.launched"])]


def _lineages(folder: Path, history: History, settings: Settings, checkpoint: str) -> list[Row]:
    """From sealed edges, and from the records."""
    with Ledger.read(folder) as ledger:
        newest = ledger.get(checkpoint)
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


def _values(folder: Path, history: History) -> dict[str, str]:
    """A record of each kind that a question asks for: the first source, the newest of the others."""
    kinds = {item.kind for name in names() for item in find(name).parameters}
    found: dict[str, str] = {}
    for kind in kinds:
        which = "min_by" if kind == "source.ingested" else "max_by"
        sql = f"SELECT {which}(id, seq) FROM {TABLES[kind]}"  # noqa: S608 - our own table names
        found[kind] = ask(folder, sql, {}, PATIENT, None, history).rows[0][0]
    return found


def _row(
    name: str, work: Callable[[], object], settings: Settings, limit: float | None = None
) -> Row:
    settings.say(name)
    best = min((timed(work)[1] for _ in range(TRIES)), key=lambda spent: spent.wall_s)
    return Row(name, round(best.wall_s, 3), "s", "less", limit, details=best.as_json())
