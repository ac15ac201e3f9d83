"""The shipped example: small, whole, and verified under the root key that its page names."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ledger.book import Ledger
from verifiers.replay import REPLAYS
from verifiers.verify import Options, verify

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FOLDER = EXAMPLES / "small-ledger"
OF_STUDIES = {
    "study.registered",
    "candidate.nominated",
    "test.reviewed",
    "gate.decided",
    "check.reproduced",
    "judge.qualified",
    "promotion.granted",
}
"""The example is of one seed, with no study and no qualified judge."""
PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")


def shipped() -> list[Path]:
    """The example's files, without what a reader of the database leaves beside it."""
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    return [path for path in files if not path.name.endswith(("-shm", "-wal"))]


def test_the_example_verifies_under_the_root_key_of_its_page(tmp_path):
    """Every blob is there, every number is derived again, and the page's counts are the ledger's."""
    (root,) = set(re.findall(r"ed25519:[0-9a-f]{32}", PAGE))
    copy = shutil.copytree(FOLDER, tmp_path / "copy")
    report = verify(copy, Options(level="blobs", pinned_roots=frozenset([root]), workers=1))
    assert (report.verdict, report.trust, report.findings) == ("verified", "pinned", [])
    assert report.warnings == []
    assert f"{report.records} records and {report.blobs.checked} blobs" in PAGE
    assert set(report.replayed) == set(REPLAYS) - OF_STUDIES - {"reward.audited", "rollout.group"}


def test_the_example_is_small_and_holds_no_key():
    """Less than a megabyte: the database and its blobs, no private key, no index, no work folder."""
    files = shipped()
    assert sum(path.stat().st_size for path in files) < 1_000_000
    assert {path.relative_to(FOLDER).parts[0] for path in files} == {"ledger.sqlite", "blobs"}
    assert not [path for path in files if b"PRIVATE KEY" in path.read_bytes()]


def test_the_example_names_no_machine(tmp_path):
    """What would tell where it was made is not in it: the host is `example`, and no absolute path is recorded."""
    with Ledger.read(shutil.copytree(FOLDER, tmp_path / "copy")) as ledger:
        hosts = {record.body["host"] for record in ledger.of_kind("run.launched")}
    texts = [path.read_bytes() for path in shipped()]
    assert hosts == {"example"}
    assert not [text for text in texts if b"/tmp/" in text or b"/home/" in text]
