"""The labelled loss beside the library's own, and which rows share a pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import rows, torch

pytest.importorskip("peft", reason="needs the train extra")

from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from runners.train.loss import MIN_SHARED, STEP, Shared, labelled_loss, share
from runners.train.tokens import IGNORED, encode_row, load_tokenizer
from runners.train.trainer import Collator

pytestmark = [
    pytest.mark.train,
    # peft asks transformers for a name that transformers has renamed
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"),
]


@pytest.fixture
def adapted(tiny_model):
    """The tiny model with an adapter that already does something."""
    model = AutoModelForCausalLM.from_pretrained(tiny_model)
    torch.manual_seed(1)
    config = LoraConfig(
        r=4, target_modules=["q_proj", "down_proj"], init_lora_weights=False, task_type="CAUSAL_LM"
    )
    return get_peft_model(model, config)


def batch(tiny_model, count, opening=""):
    """A padded batch of rows; `opening` gives every other row another beginning."""
    tokenizer = load_tokenizer(tiny_model)
    made = rows(count)
    for number, row in enumerate(made):
        if opening and number % 2:
            row["messages"][0]["content"] = opening + row["messages"][0]["content"]
    encoded = [
        encode_row(tokenizer, str(index), row["messages"], 512) for index, row in enumerate(made)
    ]
    examples = [
        {"input_ids": list(row.ids), "labels": list(row.labels), "rows": index}
        for index, row in enumerate(encoded)
    ]
    return Collator(0)(examples), [len(row.ids) for row in encoded]


def gradients(model):
    """A copy of every adapter gradient, then none."""
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.requires_grad}
    model.zero_grad()
    return found


@pytest.mark.parametrize(
    "opening", ["", "Hello. ", "x"], ids=["one opening", "two openings", "other first word"]
)
@pytest.mark.parametrize("count", [1, 5])
def test_value_and_gradient_are_the_librarys(tiny_model, adapted, count, opening):
    """Loss and every gradient equal those of the model's own forward pass over all rows, to rounding."""
    inputs, lengths = batch(tiny_model, count, opening)
    found = labelled_loss(adapted.get_base_model(), inputs["input_ids"], inputs["labels"], lengths)
    (found.total / found.labelled).backward()
    ours = gradients(adapted)
    own = adapted(
        input_ids=inputs["input_ids"],
        attention_mask=inputs["attention_mask"],
        labels=inputs["labels"],
    ).loss
    own.backward()
    theirs = gradients(adapted)
    assert (found.total / found.labelled).item() == pytest.approx(own.item(), rel=1e-5)
    for name, gradient in theirs.items():
        torch.testing.assert_close(ours[name], gradient, rtol=1e-3, atol=1e-6)
    assert any(gradient.abs().max() > 1e-4 for gradient in theirs.values())


def test_sharing_computes_fewer_tokens(tiny_model, adapted):
    """Rows with one opening are computed in far fewer tokens than they have, and all labels are counted."""
    inputs, lengths = batch(tiny_model, 8)
    found = labelled_loss(adapted.get_base_model(), inputs["input_ids"], inputs["labels"], lengths)
    assert found.computed < 0.6 * sum(lengths)
    assert found.labelled == int((inputs["labels"][:, 1:] != IGNORED).sum())


TOKENS = st.lists(st.integers(0, 1), min_size=2, max_size=60)


@given(st.lists(st.tuples(TOKENS, st.booleans()), min_size=1, max_size=8), st.data())
def test_shares_are_sound(made, data):
    """Every row is in one group, a group's rows do open alike, and no group costs more than its rows alone."""
    opening = data.draw(st.lists(st.integers(0, 1), min_size=40, max_size=40))
    tokens = [[*opening, *row] if shares else row for row, shares in made]
    first = [data.draw(st.integers(1, len(row) - 1)) for row in tokens]
    lengths = [len(row) for row in tokens]
    groups = share(tokens, first, lengths)
    assert sorted(row for group in groups for row in group.rows) == list(range(len(tokens)))
    for group in groups:
        assert len({tuple(tokens[row][: group.length]) for row in group.rows}) == 1
        assert all(group.length < first[row] for row in group.rows)
        assert group.length == 0 or (len(group.rows) > 1 and group.length >= MIN_SHARED)
        assert group.length % STEP == 0
    cost = sum(
        group.length + sum(lengths[row] - group.length for row in group.rows) for group in groups
    )
    assert cost <= sum(lengths)


def test_two_openings_make_two_groups():
    """Rows of two kinds are shared by kind, not by the little that all have in common."""
    common, left, right = [9] * 20, [1] * 80, [2] * 80
    made = [[*common, *kind, *[5 + n] * 4] for n, kind in enumerate([left, right, left, right])]
    groups = share(made, [102] * 4, [104] * 4)
    assert groups == [Shared((0, 2), 96), Shared((1, 3), 96)]
