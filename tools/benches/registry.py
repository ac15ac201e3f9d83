"""The benches there are: a name, what it measures, and the function that runs it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from benches.report import Row, Settings

Run = Callable[[Settings], list[Row]]


@dataclass(frozen=True)
class Bench:
    """One bench; its module is loaded only when it is run and has a function `run`."""

    name: str
    module: str
    measures: str

    def load(self) -> Run:
        """The function that runs it."""
        return cast("Run", importlib.import_module(self.module).run)


BENCHES = {
    item.name: item
    for item in (
        Bench(
            "append", "benches.append", "durable append against signing, a bare insert and fsync"
        ),
        Bench(
            "verify", "benches.verify", "verification against bare Ed25519 over the same messages"
        ),
        Bench("since", "benches.since", "verify --since over the last hundredth of a ledger"),
        Bench("memory", "benches.memory", "resident memory of verify as the ledger grows"),
        Bench("bytes", "benches.stored", "bytes on disk for each byte of entry"),
        Bench("small", "benches.small", "small times that a person waits for"),
        Bench("audit", "benches.audit", "a leakage audit of 100,000 rows"),
        Bench(
            "recover",
            "benches.recover",
            "a checkpoint rebuilt against copying and hashing its bytes once",
        ),
        Bench(
            "overhead", "benches.ledger_overhead", "supervised training with the ledger and without"
        ),
        Bench(
            "query",
            "benches.query",
            "named questions, tables and lineage on a large unsigned ledger",
        ),
        Bench("peers", "benches.peers", "MLflow and a JSONL file for the same facts"),
    )
}
