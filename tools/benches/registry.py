"""The benches there are: a name, the function that runs it, and what it measures."""

from __future__ import annotations

from collections.abc import Callable

from entries import Entry

from benches.report import Row, Settings

Bench = Entry[Callable[[Settings], list[Row]]]

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
        Bench(
            "sampling", "benches.sampling", "tokens a second of the two sampling engines, in turns"
        ),
        Bench("peers", "benches.peers", "MLflow and a JSONL file for the same facts"),
    )
}
