"""The process that runs a query: reads the tables, shuts every door, answers on stdout, dies.

Started by `ledger.query.ask` with a request as JSON on stdin and an environment without secrets. The answer is a
line of JSON; the bytes of a Parquet file follow it where one was asked for.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from ledger.errors import LedgerError, UsageError
from ledger.query import engine
from ledger.query.segments import History
from ledger.query.tables import load_folder

MAX_ANSWER_BYTES = 64 << 20
_PAGES = Path("/proc/self/statm")
_RUNTIME_BYTES = 256 << 20  # stacks and arenas that the engine's own budget does not count
_SPARE_S = 30  # for reading and answering, when processor time bounds a query that nobody waits for any more


def answer(request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Run a request: the answer's fields, or the error's, and the file where one was asked for."""
    try:
        return _answer(request)
    except LedgerError as error:
        return {"error": error.as_dict(), "usage": isinstance(error, UsageError)}, b""
    except MemoryError:
        return _too_much("the query ran out of memory"), b""


def _answer(request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    sql, parameters, max_rows = request["sql"], request["parameters"], request["max_rows"]
    history = None
    if request["segments"] is not None:
        history = History(Path(request["segments"]["folder"]), request["segments"]["from_records"])
    database = engine.connect()
    wanted = engine.check(database, sql)
    loaded = load_folder(Path(request["ledger"]), wanted.tables, history)
    engine.put(database, loaded, wanted.views)
    engine.lock(database, request["memory_bytes"])
    as_of = {"size": loaded.size, "root": loaded.root}
    if not request["parquet"]:
        _shut_doors(request["memory_bytes"], request["timeout_s"])
        return {"answer": {**engine.run(database, sql, parameters, max_rows), "as_of": as_of}}, b""
    from ledger.query import parquet  # noqa: PLC0415 - only this form of answer needs it, and no file opens later

    _shut_doors(request["memory_bytes"], request["timeout_s"])
    about = {f"as_of_{name}": str(value) for name, value in as_of.items()}
    data, found = parquet.run(database, sql, parameters, max_rows, about)
    return {"answer": {**found, "as_of": as_of}}, data


def _shut_doors(memory_bytes: int, timeout_s: float) -> None:
    """Let the system refuse what the engine might overlook: memory, time, and every file or socket not open yet."""
    if _PAGES.exists():  # else no Linux: the engine's own limit and the deadline are left
        pages = int(_PAGES.read_text(encoding="ascii").split()[0])
        limit = pages * resource.getpagesize() + memory_bytes + _RUNTIME_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    seconds = int(timeout_s * engine.THREADS) + _SPARE_S
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
        resource.setrlimit(kind, (0, 0))


def _too_much(message: str) -> dict[str, Any]:
    return {"error": UsageError("QUERY_LIMITS", message).as_dict(), "usage": True}


class _Kept:
    """Keeps a library from being loaded: Arrow looks for pandas, which would take longer than most questions."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def main() -> None:
    """Read a request, write the answer."""
    sys.meta_path.insert(0, _Kept())
    found, data = answer(json.load(sys.stdin))
    line = json.dumps(found)
    if len(line) + len(data) > MAX_ANSWER_BYTES:
        line = json.dumps(_too_much(f"the answer has more than {MAX_ANSWER_BYTES >> 20} MiB"))
        data = b""
    sys.stdout.buffer.write(line.encode() + b"\n" + data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
