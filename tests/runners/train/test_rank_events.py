"""What several ranks say becomes one event: sums where they share, one word where they must agree."""

from __future__ import annotations

import pytest

from ledger.errors import EvidenceError
from runners.train.rank_events import merged


def updates(**change):
    """Two ranks' words on one update, the second with changes."""
    said = {
        "step": 3,
        "learning_rate": "0.1",
        "gradient_norm": "0.5",
        "before": "a",
        "after": "b",
        "loss": "0.25",
        "figures": {"labelled": 5, "right": 2},
    }
    return [said, {**said, "loss": "1.5", "figures": {"labelled": 7, "right": 0}, **change}]


def batches(**change):
    """Two ranks' words on one batch."""
    first = {
        "step": 1,
        "micro_batches": [["r1"], ["r2"]],
        "trainable_tokens": 4,
        "tokens": 9,
    }
    return [first, {**first, "micro_batches": [["r3"], ["r4"]], "trainable_tokens": 6, **change}]


def test_an_update_sums_and_names_each_state():
    """Losses and figures are sums over the ranks, and each state after is named by its rank."""
    found = merged("update", updates(after="c"))
    assert (found["loss"], found["figures"]) == ("1.75", {"labelled": 12, "right": 2})
    assert found["ranks"] == [{"rank": 0, "after": "b"}, {"rank": 1, "after": "c"}]
    assert (found["after"], found["gradient_norm"]) == ("b", "0.5")


def test_an_evaluation_is_said_once():
    """Every rank evaluated all rows: its figures are no sums, and one that differs is an error."""
    evaluated = {"validation_loss": "2.5", "validation_rows": 4}
    said = updates()
    for fields in said:
        fields["figures"] = {**fields["figures"], **evaluated}
    found = merged("update", said)["figures"]
    assert found == {"labelled": 12, "right": 2, **evaluated}
    said[1]["figures"]["validation_loss"] = "2.6"
    with pytest.raises(EvidenceError, match="validation_loss of rank 1") as caught:
        merged("update", said)
    assert caught.value.code == "RANKS_DISAGREE"


def test_a_batch_lists_rows_rank_by_rank():
    """Rank, then micro-batch: the order in which one process would read them."""
    found = merged("batch", batches())
    assert found["micro_batches"] == [["r1"], ["r2"], ["r3"], ["r4"]]
    assert (found["trainable_tokens"], found["tokens"]) == (10, 18)


def test_a_start_says_how_many_there_are():
    """The number of ranks is counted, not claimed."""
    said = [{"state": "a", "rows": {"input": 1}, "processes": 9}] * 3
    assert merged("start", said)["processes"] == 3


def test_an_event_without_a_rule_is_rank_0s():
    """What needs no merging is said once."""
    assert merged("there", [{"x": 1}, {"x": 2}]) == {"x": 1}


@pytest.mark.parametrize(
    ("event", "said", "field"),
    [
        pytest.param("update", updates(step=4), "step", id="another step"),
        pytest.param("update", updates(before="x"), "before", id="another beginning"),
        pytest.param("update", updates(gradient_norm="0.6"), "gradient_norm", id="another norm"),
        pytest.param("update", updates(learning_rate="0.2"), "learning_rate", id="another rate"),
        pytest.param("batch", batches(step=2), "step", id="another batch"),
        pytest.param(
            "start", [{"state": "a", "rows": {}}, {"state": "b", "rows": {}}], "state", id="weights"
        ),
        pytest.param(
            "restored",
            [
                {"step": 1, "state": "a", "mode": "exact", "digests": {"x": "1"}},
                {"step": 1, "state": "a", "mode": "exact", "digests": {"x": "2"}},
            ],
            "digests",
            id="another file",
        ),
        pytest.param(
            "checkpoint",
            [{"step": 1, "state": "a", "path": "p"}, {"step": 1, "state": "b", "path": "p"}],
            "state",
            id="another state saved",
        ),
    ],
)
def test_ranks_that_must_agree_and_do_not(event, said, field):
    """A field that is the same at every rank by construction, and is not, is an error that names it."""
    with pytest.raises(EvidenceError, match="rank 1") as caught:
        merged(event, said)
    assert (caught.value.code, caught.value.field) == ("RANKS_DISAGREE", field)
