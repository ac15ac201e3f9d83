"""The child's environment, the machine, and seeds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import UsageError
from runners.environment import child_environment, library_versions, machine, usable_cores
from runners.seeding import SEED_LIMIT, check_seed, derive


@pytest.mark.parametrize(
    "name",
    ["EVIDENCE_KEY_PASSPHRASE", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "A_SECRET_NOBODY_THOUGHT_OF"],
)
def test_no_secret_reaches_a_child(name):
    """A child gets only variables from a short list, so a secret under any name stays behind."""
    passed = child_environment({name: "hunter2", "PATH": "/bin"}, threads=2)
    assert name not in passed
    assert "hunter2" not in passed.values()
    assert passed["PATH"] == "/bin"


def test_child_is_offline_and_pinned():
    """A child is told to stay off the network, to hash alike and to use the planned threads."""
    passed = child_environment({"OMP_NUM_THREADS": "64", "PYTHONPATH": "/elsewhere"}, threads=3)
    assert passed["HF_HUB_OFFLINE"] == passed["TRANSFORMERS_OFFLINE"] == "1"
    assert passed["OMP_NUM_THREADS"] == passed["MKL_NUM_THREADS"] == "3"
    assert passed["PYTHONHASHSEED"] == "0"
    assert "/elsewhere" not in passed["PYTHONPATH"]


def test_machine_names_its_processor():
    """The machine's description has a processor, at least one core and no empty field that a plan needs."""
    found = machine()
    assert found.processor
    assert found.cores == usable_cores() >= 1
    assert set(found.as_dict()) == {
        "processor",
        "features",
        "cores",
        "memory_bytes",
        "system",
        "python",
    }


def test_versions_leave_out_what_is_not_installed():
    """A library that is not installed is absent, not recorded as some version."""
    found = library_versions(["numpy", "no-such-library-anywhere"])
    assert set(found) == {"numpy"}


@given(st.integers(0, SEED_LIMIT - 1), st.integers(0, 50), st.integers(0, 50))
def test_streams_of_a_seed_differ(seed, left, right):
    """Two streams of one seed are equal only if their paths are."""
    assert (derive(seed, "rollout", left) == derive(seed, "rollout", right)) == (left == right)


def test_number_and_text_are_other_streams():
    """`1` and `"1"` name two streams, and the empty path a third."""
    assert len({derive(7, 1), derive(7, "1"), derive(7)}) == 3


@pytest.mark.parametrize("seed", [-1, SEED_LIMIT])
def test_seed_out_of_range(seed):
    """A seed that numpy would refuse is refused here, by code."""
    with pytest.raises(UsageError) as caught:
        check_seed(seed)
    assert caught.value.code == "SETTING_INVALID"
