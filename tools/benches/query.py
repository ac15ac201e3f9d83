"""Questions, tables and lineage on a large ledger: wall-clock seconds, best of three, and the memory that they took.

The ledger is unsigned (every signature is 64 zero bytes) and written row by row without the rules: reading looks at
neither, and signing a million records would take longer than all of the bench.
"""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import samples
from world import ORIGIN, World, clock_at, key, row_of

from benches.report import Row, Settings, timed
from ledger import record as records
from ledger.book import DATABASE, Ledger
from ledger.digests import sha256
from ledger.query.ask import Limits, ask
from ledger.query.lineage import fold, walk
from ledger.query.named_queries import find
from ledger.record import Record, Refs
from ledger.store.sqlite import SqliteStore

SIZE, FULL_SIZE = 50_000, 1_000_000
TRIES = 3
RUNS = 20
GROUP_ROWS = 10_000
UNSIGNED = bytes(64)
WITHOUT_PARAMETERS = ("kinds", "runs", "losses", "run_times", "superseded", "storage", "test_looks")
PATIENT = Limits(timeout_s=600.0)


def run(settings: Settings) -> list[Row]:
    """Named questions, free SQL, a notebook's tables and a lineage."""
    size = FULL_SIZE if settings.full else SIZE
    folder = _built(settings, size)
    with Ledger.read(folder) as ledger:
        last = ledger.of_kind("update.acknowledged")[-1]
    run_id = str(last.ref("run"))
    works: dict[str, Callable[[], object]] = {
        "SELECT 1": lambda: ask(folder, "SELECT 1", None, PATIENT),
        **{
            f"query {name}": partial(ask, folder, find(name).sql, None, PATIENT)
            for name in WITHOUT_PARAMETERS
        },
        "query curve": lambda: ask(folder, find("curve").sql, {"run": run_id}, PATIENT),
        "query impact": lambda: ask(folder, find("impact").sql, _source(folder), PATIENT),
        "Ledger.duckdb(), every table": lambda: _notebook(folder),
        "lineage of the last update": lambda: _lineage(folder, last.id),
    }
    rows = [_row(f"{name}, {size:,} records", work, settings) for name, work in works.items()]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return [*rows, Row("largest query process", round(peak, 1), "MiB", "less")]


def _row(name: str, work: Callable[[], object], settings: Settings) -> Row:
    settings.say(name)
    best = min(timed(work)[1].wall_s for _ in range(TRIES))
    return Row(name, round(best, 3), "s", "less")


def _source(folder: Path) -> dict[str, str]:
    with Ledger.read(folder) as ledger:
        return {"source": ledger.of_kind("source.ingested")[0].id}


def _notebook(folder: Path) -> None:
    with Ledger.read(folder) as ledger:
        ledger.duckdb().sql("SELECT count(*) FROM records").fetchall()


def _lineage(folder: Path, record_id: str) -> None:
    with Ledger.read(folder) as ledger:
        fold(walk(ledger, ledger.get(record_id), "up"))


def _built(settings: Settings, size: int) -> Path:
    """The ledger in the scratch folder, made where it is not there yet."""
    folder = settings.scratch / f"unsigned-{size}"
    if folder.exists():
        return folder
    settings.say(f"building an unsigned ledger of {size:,} records in {settings.scratch}")
    building = folder.with_suffix(".building")
    shutil.rmtree(building, ignore_errors=True)
    world = World()
    launches = []
    for _ in range(RUNS):
        world.add("plan.prepared")
        launches.append(world.add("run.launched"))
    world.write(building)
    store = SqliteStore.open_writer(building / DATABASE)
    rows = _rows(world.records[-1], launches, world.newest("split.declared"), size)
    while group := [row_of(record) for record in islice(rows, GROUP_ROWS)]:
        with store.transaction():
            store.append(group)
    store.close()
    with Ledger.open(building, key=key("writer")):
        pass  # writes the derived index, as a ledger in use has it
    building.rename(folder)
    return folder


def _rows(
    last: Record, launches: list[Record], split: Record | None, size: int
) -> Iterator[Record]:
    """Batch and update of one run after the other, until the ledger has its size."""
    assert split is not None
    newest: dict[str, str] = {}
    step = 0
    while last.seq + 1 < size:
        step += 1
        for launch in launches:
            body = samples.body("batch.built", step=step, digest=sha256(f"{step}".encode()))
            last = batch = _next(last, "batch.built", body, {"run": launch.id, "split": split.id})
            yield batch
            refs: Refs = {"run": launch.id, "batch": [batch.id]}
            if launch.id in newest:
                refs["previous"] = newest[launch.id]
            states = {"before": samples.weights(step - 1), "after": samples.weights(step)}
            body = samples.body("update.acknowledged", step=step, loss=str(1 + 1 / step), **states)
            last = _next(last, "update.acknowledged", body, refs)
            newest[launch.id] = last.id
            yield last


def _next(last: Record, kind: str, body: dict[str, object], refs: Refs) -> Record:
    seq = last.seq + 1
    entry = records.build_entry(
        ledger=ORIGIN,
        seq=seq,
        prev=last.id,
        kind=kind,
        schema=1,
        time=clock_at(seq),
        actor=key("writer").id,
        refs=refs,
        body=body,
        statement=None,
    )
    return records.parse(entry, UNSIGNED)
