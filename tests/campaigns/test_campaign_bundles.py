"""The campaign of changed bundles: its slice holds, and a product without one of its checks is caught."""

from __future__ import annotations

import pytest
from campaign_settings import settings_in
from campaigns import bundles

from ledger import multiproof, staging
from ledger.bundles import container
from ledger.bundles.unpack import _Unpacking

pytestmark = pytest.mark.slow


def test_slice_holds_and_tries_every_kind(tmp_path):
    """The slice finds nothing, every kind of attack was tried, and unchanged bundles were accepted."""
    outcome = bundles.run(settings_in(tmp_path))
    assert outcome.failures == []
    assert outcome.cases == bundles.SLICE_ROUNDS * len(bundles.PATTERN)
    tried = {name.partition(":")[0] for name in outcome.counts}
    assert tried == {*bundles.PATTERN, "control"}
    assert outcome.counts["control: accepted, same records"] == 1 + len(bundles.CLOSURES)


def only(folder, kinds, monkeypatch, cases=40):
    """Run cases of some kinds only; the failures."""
    monkeypatch.setattr(bundles, "PATTERN", kinds)
    monkeypatch.setattr(bundles, "SLICE_ROUNDS", cases // len(kinds))
    return bundles.run(settings_in(folder)).failures


def test_a_reader_that_checks_no_padding_and_no_digest_is_caught(tmp_path, monkeypatch):
    """Without the two checks of bytes that no record covers, flipped bits are accepted."""
    monkeypatch.setattr(
        container.Reader, "_padding", lambda self, size: self.take(-size % 512) and None
    )
    monkeypatch.setattr(container.Reader, "_end", lambda self, size, _: self.take(size) and None)
    found = only(tmp_path, ("flip",), monkeypatch)
    assert [item for item in found if "a bundle with a bit flipped was accepted" in item]


def test_an_import_that_leaves_its_folder_is_caught(tmp_path, monkeypatch):
    """Where a refused import does not clear away what it filled, the campaign says so."""
    monkeypatch.setattr(staging.shutil, "rmtree", lambda *_, **__: None)
    monkeypatch.setattr(bundles, "shutil", _Remover())
    found = only(tmp_path, ("flip",), monkeypatch, cases=6)
    assert [item for item in found if "left behind" in item]


class _Remover:
    """The campaign's own way to remove its folders, whatever became of the product's."""

    def rmtree(self, folder):
        """Leave it: the test's folder is removed by pytest."""


def test_a_parser_that_raises_something_raw_is_caught(tmp_path, monkeypatch):
    """A raw exception out of a bundle is a failure, not an end of the campaign."""

    def raw(*_):
        raise ValueError("raw")

    monkeypatch.setattr(_Unpacking, "_list", raw)
    found = only(tmp_path, ("flip",), monkeypatch, cases=6)
    assert [item for item in found if "a raw ValueError" in item]


def test_a_verifier_that_takes_any_proof_is_caught(tmp_path, monkeypatch):
    """Where a closure's proof proves nothing, bits flipped in it are accepted."""
    monkeypatch.setattr(multiproof, "verify", lambda *_: None)
    monkeypatch.setattr(container.Reader, "_end", lambda self, size, _: self.take(size) and None)
    found = only(tmp_path, ("flip",), monkeypatch, cases=120)
    assert [item for item in found if "a bundle with a bit flipped was accepted" in item]
