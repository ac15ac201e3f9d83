"""The process that runs a query: reads the tables, locks everything, answers on stdout, dies.

Started by `ledger.query.ask` with a request as JSON on stdin and an environment without secrets.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from ledger.book import Ledger
from ledger.errors import LedgerError, UsageError
from ledger.query import engine
from ledger.query.tables import Loaded, load

MAX_ANSWER_BYTES = 64 << 20
_PAGES = Path("/proc/self/statm")
_RUNTIME_BYTES = 256 << 20  # stacks and arenas that the engine's own budget does not count


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run a request; the answer's fields, or the error's."""
    try:
        return {"answer": _answer(request)}
    except LedgerError as error:
        return {"error": error.as_dict(), "usage": isinstance(error, UsageError)}
    except MemoryError:
        return _too_much("the query ran out of memory")


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    database = engine.connect()
    tables = engine.check(database, request["sql"])
    loaded = _load(Path(request["ledger"]), tables)
    for name, table in loaded.tables.items():
        database.register(name, table)
    engine.lock(database, request["memory_bytes"])
    _limit_memory(request["memory_bytes"])
    return engine.run(database, request["sql"], request["parameters"], loaded, request["max_rows"])


def _load(path: Path, tables: frozenset[str]) -> Loaded:
    """Read what is wanted; the ledger's file is closed before any SQL runs."""
    with Ledger.read(path) as ledger:
        return load(ledger.store.rows(0), tables)


def _limit_memory(memory_bytes: int) -> None:
    """Bound the address space: some functions ignore the engine's own limit."""
    if not _PAGES.exists():
        return  # no Linux: the engine's own limit and the deadline are left
    pages = int(_PAGES.read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + memory_bytes + _RUNTIME_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _too_much(message: str) -> dict[str, Any]:
    return {"error": UsageError("QUERY_LIMITS", message).as_dict(), "usage": True}


def main() -> None:
    """Read a request, write the answer."""
    text = json.dumps(answer(json.load(sys.stdin)))
    if len(text) > MAX_ANSWER_BYTES:
        text = json.dumps(_too_much(f"the answer has more than {MAX_ANSWER_BYTES >> 20} MiB"))
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
