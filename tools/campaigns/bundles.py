"""Bundles changed in every way, and imports killed: what is accepted is what was exported, and nothing is half there.

Judged of each bundle: it is refused with a code, or what was accepted is the records of the ledger that it was made of;
never a raw exception; and a refused import leaves its folder as it was. Of a bundle with one bit flipped nothing is accepted. Of each
kill: the ledger is whole or not there, and the next import clears away what was left.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import bundle_world
from world import grown

from campaigns import bundle_attacks
from campaigns.bundle_attacks import Attacked
from campaigns.report import ROOT, Outcome, Settings
from ledger.book import DATABASE
from ledger.errors import LedgerError
from ledger.staging import staging_of
from ledger.store.carried import CarriedStore
from ledger.store.sqlite import SqliteStore
from runners.bundles import import_bundle
from verifiers.bundles import verify_bundle
from verifiers.verify import Options, verify

PATTERN = (
    *("flip", "repack", "flip", "scramble", "foreign") * 8,
    *("bomb", "repack", "flip") * 3,
    "kill",
)
"""Fifty cases; each kind comes in every round."""
SLICE_ROUNDS, FULL_ROUNDS = 2, 200
CLOSURES = ("promotion.refused", "checkpoint.published", "dataset.parsed", "key.enrolled")
OPTIONS = Options(workers=1)
EXCLUDED = {
    "a lying disk": "the file system is taken to rename in one step and to keep what it synced",
    "blobs left out": "a bundle without some blobs is a good one, which says so; level blobs is then incomplete",
    "who made the bundle": "nobody signs a bundle: its records, statements and seals are signed",
}
_CHILD = (
    "import sys; from pathlib import Path; from runners.bundles import import_bundle; "
    "from verifiers.verify import Options; "
    "import_bundle(Path(sys.argv[1]), Path(sys.argv[2]), Options(workers=1))"
)


class Good:
    """The good bundles that every case begins with, and the ids of the ledger's records.

    Args:
        folder: where the ledger lies for a while.
    """

    def __init__(self, folder: Path) -> None:
        ledger = bundle_world.sealed(folder / "ledger", grown())
        self.whole = bundle_world.whole(ledger)
        self.closures = [bundle_world.closure(ledger, kind) for kind in CLOSURES]
        store = SqliteStore.open_reader(ledger / DATABASE)
        self.rows = [(seq, raw) for seq, raw, _, _ in store.rows()]
        self.seals = [size for size, _ in store.seals()]
        store.close()


def run(settings: Settings) -> Outcome:
    """Controls, then every kind of attack in turn."""
    outcome = Outcome(excluded=dict(EXCLUDED))
    good = Good(settings.folder)
    rounds = FULL_ROUNDS if settings.full else SLICE_ROUNDS
    cases = range(rounds * len(PATTERN)) if settings.case is None else [settings.case]
    if settings.case is None:
        _controls(settings.folder, good, outcome)
    for case in cases:
        kind = PATTERN[case % len(PATTERN)]
        place = settings.folder / f"case-{case}"
        place.mkdir()
        said, problems = _case(settings, good, case, kind, place)
        outcome.cases += 1
        outcome.counts[f"{kind}: {said}"] += 1
        outcome.failures += [f"case {case}: {kind}: {item}" for item in problems]
        shutil.rmtree(place)
        settings.progress(case + 1, rounds * len(PATTERN))
    return outcome


def _case(
    settings: Settings, good: Good, case: int, kind: str, place: Path
) -> tuple[str, list[str]]:
    rng = settings.random(case)
    if kind == "kill":
        return _killed(good, place, rng.random())
    whole = rng.random() < 0.5
    data = good.whole if whole else rng.choice(good.closures)
    made = bundle_attacks.KINDS[kind](rng, data)
    return _judged(Attacked(kind, made, whole, made == data), good, place)


def _judged(attacked: Attacked, good: Good, place: Path) -> tuple[str, list[str]]:
    file, target = place / "x.tar", place / "copy"
    file.write_bytes(attacked.data)
    try:
        code = _attempt(attacked, file, target)
    except LedgerError as error:
        code = error.code
    except Exception as error:  # noqa: BLE001 - what this campaign is for: nothing raw gets out
        return "raw", [f"a raw {type(error).__name__}: {error}"[:300]]
    if code is not None:
        left = sorted(item.name for item in place.iterdir())
        clean = left == ["x.tar"] or not attacked.whole
        return f"refused {code}", [] if clean else [f"left behind: {left}"]
    if attacked.kind == "flip" and not attacked.same:
        return "accepted", ["a bundle with a bit flipped was accepted"]
    return "accepted, same records", _differences(attacked, good, target)


def _attempt(attacked: Attacked, file: Path, target: Path) -> str | None:
    """Import a whole bundle, verify a closure; the code of what is wrong, None where nothing is."""
    if attacked.whole:
        import_bundle(file, target, OPTIONS)
        return None
    target.mkdir()
    report = verify_bundle(file, target, OPTIONS)
    return report.findings[0].code if report.findings else None


def _differences(attacked: Attacked, good: Good, target: Path) -> list[str]:
    """What was accepted must be records of the ledger, in their places, all of them where it is a whole one."""
    if attacked.whole:
        store = SqliteStore.open_reader(target / DATABASE)
        try:
            rows = [(seq, raw) for seq, raw, _, _ in store.rows()]
            seals = [size for size, _ in store.seals()]
        finally:
            store.close()
        same = rows == good.rows and set(seals) <= set(good.seals)
        return [] if same else ["other records than those exported were accepted"]
    with CarriedStore.open(target / DATABASE) as carried:
        found = {(record.seq, bytes.fromhex(record.id[7:])) for record in carried.records()}
    return [] if found <= set(good.rows) else ["records of no ledger were accepted"]


def _controls(folder: Path, good: Good, outcome: Outcome) -> None:
    """Unchanged bundles must be accepted, or the campaign shows nothing."""
    for number, data in enumerate([good.whole, *good.closures]):
        place = folder / f"control-{number}"
        place.mkdir()
        whole = number == 0
        said, problems = _judged(Attacked("control", data, whole, same=True), good, place)
        outcome.counts[f"control: {said}"] += 1
        if not said.startswith("accepted") or problems:
            outcome.failures.append(f"control {number}: {said} {problems}")
        shutil.rmtree(place)


def _killed(good: Good, place: Path, when: float) -> tuple[str, list[str]]:
    """Kill an import somewhere between its first file and its end; then import again."""
    file, target = place / "x.tar", place / "copy"
    file.write_bytes(good.whole)
    words = [sys.executable, "-P", "-c", _CHILD, str(file), str(target)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "TMPDIR": str(place)}
    with subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL) as child:
        begun = staging_of(target)
        while child.poll() is None and not begun.exists() and not target.exists():
            time.sleep(0.001)
        time.sleep(when * 0.6)
        child.kill()
    there, half = target.exists(), begun.exists()
    problems = [] if not (there and half) else ["both the ledger and what it is made of are there"]
    if there:
        said = "the ledger was whole"
        problems += [str(item.code) for item in verify(target, OPTIONS).findings]
        shutil.rmtree(target)
    else:
        said = "nothing was there" if not half else "nothing but what is cleared away"
    problems += _again(file, target)
    left = sorted(item.name for item in place.iterdir())
    return said, problems if left == ["copy", "x.tar"] else [*problems, f"left behind: {left}"]


def _again(file: Path, target: Path) -> list[str]:
    try:
        import_bundle(file, target, OPTIONS)
    except LedgerError as error:
        return [f"the next import was refused: {error.code}"]
    return []
