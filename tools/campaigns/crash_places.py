"""Places that cannot be written, files that dead processes left, and a writer that stands still.

A part of `crash-faults`. Read-only and tiny file systems are mounted in a name space of the child's own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from campaigns.crashing import WRITERS, Child, Oracle, Site, ended, seed_of
from campaigns.report import Outcome, Settings
from ledger.book import DATABASE, INDEX

WORKER = "campaigns.children.worker"
FILLER = "campaigns.children.filler"
NOBODY = 65534
BUSY_TIMEOUT_MS = 300
TINY_BYTES = 1_500_000
BALLAST_BYTES = 300_000
STOPPED_S = 30.0
NO_MOUNTS = "not permitted to mount a file system here"
_READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
_TINY = 'mount -t tmpfs -o size="$1" tmpfs "$0" && cp -a "$2/." "$0" && shift 2 && exec "$@"'


def run(settings: Settings, template: Site, outcome: Outcome) -> None:
    """Each place once: what the process answered must be what the table says."""
    mounts = _may_mount()
    if not mounts:
        outcome.excluded["read-only and tiny file systems"] = NO_MOUNTS
    for name, (call, expected, needs_mounts) in PLACES.items():
        if needs_mounts and not mounts:
            continue
        site = template.copy(settings.folder / name.replace(" ", "-"))
        answer, problems = call(settings, site)
        outcome.cases += 1
        outcome.counts[f"{name}: {answer}"] += 1
        if answer != expected:
            problems.append(f"answered {answer}, not {expected}")
        outcome.failures += [f"{name}: {problem}" for problem in problems]


def _may_mount() -> bool:
    probe = ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=64k tmpfs /mnt"]
    try:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def worker(
    settings: Settings, site: Site, name: str, before: tuple[str, ...] = (), **more: Any
) -> Child:
    """A worker that appends two notes to a ledger, after rehearsing on a copy."""
    rehearsal = site.copy(settings.folder / f"rehearsal-{site.folder.name}-{name}")
    options: dict[str, Any] = {
        "job": "append",
        "ledger": str(site.ledger),
        "state": str(site.state),
        "key": seed_of(WRITERS[0]),
        "rehearsal": {"ledger": str(rehearsal.ledger), "state": str(rehearsal.state)},
        **more,
    }
    folder = settings.folder / "children"
    return Child(WORKER, folder, f"{site.folder.name}-{name}", options, before)


def answer_of(child: Child) -> str:
    """What became of a worker, in a word."""
    if child.said("escaped"):
        return f"escaped {child.said('escaped')}"
    if not child.said("end"):
        return f"ended with status {child.process.returncode}: {child.stderr()[-300:]}"
    codes = [line["code"] for line in child.said("error")]
    warned = [code for line in child.said("warnings") for code in line["codes"]]
    if codes:
        return f"refused {codes[0]}"
    return f"warned {warned[0]}" if warned else "done"


def _done(child: Child, site: Site) -> tuple[str, list[str]]:
    oracle = Oracle(site)
    with ended([child]):
        child.wait_ready()
        child.go()
        child.wait()
    return answer_of(child), oracle.hear(child) + oracle.look()


def _read_only_ledger(settings: Settings, site: Site) -> tuple[str, list[str]]:
    before = ("unshare", "-m", "sh", "-c", _READ_ONLY, str(site.ledger))
    return _done(worker(settings, site, "one", before), site)


def _read_only_state(settings: Settings, site: Site) -> tuple[str, list[str]]:
    before = ("unshare", "-m", "sh", "-c", _READ_ONLY, str(site.state))
    return _done(worker(settings, site, "one", before), site)


def _another_user(settings: Settings, site: Site) -> tuple[str, list[str]]:
    if os.geteuid() != 0:
        site.ledger.chmod(0o500)
        return _done(worker(settings, site, "one"), site)
    with tempfile.TemporaryDirectory(prefix="campaign-") as folder:  # where others may go
        there = site.copy(Path(folder) / "site")
        for path in (Path(folder), there.folder, *there.folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        return _done(worker(settings, there, "one", uid=NOBODY), there)


def _tiny_disk(settings: Settings, site: Site) -> tuple[str, list[str]]:
    ballast = site.folder / "ballast"
    ballast.write_bytes(b"\0" * BALLAST_BYTES)
    place = settings.folder / "tiny"
    place.mkdir()
    inside = Site(place)
    options = {
        "ledger": str(inside.ledger),
        "state": str(inside.state),
        "ballast": str(place / "ballast"),
        "key": seed_of(WRITERS[0]),
    }
    before = ("unshare", "-m", "sh", "-c", _TINY, str(place), str(TINY_BYTES), str(site.folder))
    child = Child(FILLER, settings.folder / "children", "filler", options, before)
    with ended([child]):
        child.wait_ready()
        child.go()
        child.wait()
    problems = [] if not child.stderr() else [f"stderr: {child.stderr()[-500:]}"]
    codes = [line["code"] for line in child.said("error")]
    ends = child.said("end")
    acknowledged = sum(len(line["records"]) for line in child.said("ack"))
    if not ends or ends[0]["verdict"] != "verified":
        return f"refused {codes}", [*problems, f"not verified afterwards: {ends}"]
    with site.open_read() as ledger:
        if ends[0]["records"] != ledger.size + acknowledged:
            problems.append(f"{ends[0]['records']} records, {acknowledged} acknowledged")
    return f"refused {', '.join(codes)}", problems


def _stale_files(settings: Settings, site: Site) -> tuple[str, list[str]]:
    """What processes that died in the middle leave, and worse."""
    noise = settings.random("stale").randbytes(5000)
    for name in (f"{DATABASE}-shm", f"{DATABASE}-journal", f"{INDEX}-journal", f"{INDEX}-wal"):
        (site.ledger / name).write_bytes(noise)
    (site.ledger / "blobs" / "sha256").mkdir(parents=True)
    (site.ledger / "blobs" / "sha256" / ".new-0123456789abcdef").write_bytes(noise)
    mark = next(site.state.glob("*.json"))
    mark.with_suffix(".lock").write_bytes(b"12345\n")
    mark.with_suffix(".tmp").write_bytes(noise)
    return _done(worker(settings, site, "one"), site)


def _stopped(settings: Settings, site: Site, call: str, others: int) -> tuple[str, list[str]]:
    """One writer is stopped as it holds a lock; another comes; then the first goes on."""
    oracle = Oracle(site)
    first = worker(settings, site, "stopped")
    second = worker(settings, site, "other", busy_timeout_ms=others)
    with ended([first, second]):
        for child in (first, second):
            child.wait_ready()
        log = settings.folder / f"{call}.stopped"
        first.trace(f"{call}:signal=SIGSTOP:when=1", log=log)
        first.go()
        _wait_until_stopped(first, log)
        second.go()
        waiting = not second.ends(STOPPED_S)
        first.process.send_signal(signal.SIGCONT)
        first.wait()
        second.wait()
    problems = oracle.hear(first) + oracle.hear(second) + oracle.look()
    if answer_of(first) != "done":
        problems.append(f"the stopped one: {answer_of(first)}")
    return "waits for ever" if waiting else answer_of(second), problems


def _stopped_in_commit(settings: Settings, site: Site) -> tuple[str, list[str]]:
    return _stopped(settings, site, "fsync", BUSY_TIMEOUT_MS)


def _stopped_with_high_water(settings: Settings, site: Site) -> tuple[str, list[str]]:
    return _stopped(settings, site, "flock", BUSY_TIMEOUT_MS)


def _wait_until_stopped(child: Child, log: Path) -> None:
    while child.process.poll() is None:
        if "stopped by SIGSTOP" in log.read_text(encoding="utf-8"):
            return
        time.sleep(0.005)


Call = Callable[[Settings, Site], tuple[str, list[str]]]
# name: how it is made, what the process must answer, whether it takes a mount
PLACES: dict[str, tuple[Call, str, bool]] = {
    "read-only ledger": (_read_only_ledger, "refused LEDGER_READ_ONLY", True),
    "read-only state folder": (_read_only_state, "warned HIGHWATER_LAGS", True),
    "another user's ledger": (_another_user, "refused LEDGER_READ_ONLY", False),
    "tiny disk": (_tiny_disk, "refused DISK_FULL", True),
    "stale files": (_stale_files, "done", False),
    "stopped in its commit": (_stopped_in_commit, "refused LEDGER_BUSY", False),
    "stopped with the high-water lock": (_stopped_with_high_water, "warned HIGHWATER_LAGS", False),
}
