"""How probable a judge finds an answer: the sums are the model's own, part by part."""

from __future__ import annotations

import json
import warnings

import pytest
from tiny import AutoModelForCausalLM, loopback, model_job, torch, write_lines

from ledger.canonical import parse_real
from ledger.errors import EvidenceError
from runners.assess.config import LikelihoodSettings
from runners.assess.likelihood import PARTS, context, score, scored_texts
from runners.train.tokens import load_tokenizer

pytestmark = [pytest.mark.train, pytest.mark.slow]

SETTINGS = LikelihoodSettings(batch_size=3, threads=1)


def items():
    """Two items; the second reply is longer."""
    return [
        {
            "item": f"case-{number}",
            "messages": [
                {"role": "system", "content": "Policy: only pending orders."},
                {"role": "user", "content": "Can I cancel?"},
            ],
            "facts": ["The order is delivered."],
            "reference": "No, a delivered order cannot be cancelled.",
            "reply": "It is delivered. " * (number + 1),
        }
        for number in range(2)
    ]


def run(folder, tiny_model, made=None, settings=SETTINGS):
    """Score in this process: (events, end, lines)."""
    job = {
        "model": model_job(tiny_model),
        "items": str(write_lines(folder / "items.jsonl", items() if made is None else made)),
        "settings": settings.effective(),
        "output": str(folder / "out.jsonl"),
    }
    events = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries warn of one another
        end = score(loopback(lambda event: events.append(event) or {}), job)
    return (
        events,
        end,
        [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()],
    )


def test_sums_are_the_models_own(tiny_model, tmp_path):
    """Each sum is that of the log-probabilities which the model's plain forward pass gives, one text at a time."""
    _, end, lines = run(tmp_path, tiny_model)
    model = AutoModelForCausalLM.from_pretrained(tiny_model)
    tokenizer = load_tokenizer(tiny_model)
    texts = [text for item in items() for text in scored_texts(tokenizer, item)]
    assert [(line["item"], line["part"]) for line in lines] == [
        (text.item, text.part) for text in texts
    ]
    for line, text in zip(lines, texts, strict=True):
        ids = torch.tensor([[*text.context, *text.target]])
        with torch.no_grad():
            logits = model(ids).logits[0, len(text.context) - 1 : -1].log_softmax(-1)
        wanted = logits.gather(1, torch.tensor(text.target)[:, None]).sum().item()
        assert parse_real(line["logprob_sum"]) == pytest.approx(wanted, rel=1e-4)
        assert line["tokens"] == len(text.target)
    assert end["tokens"] == sum(line["tokens"] for line in lines)


def test_each_item_has_four_parts():
    """What stands before a text names the facts and the other answer only where its part says so."""
    (item, _) = items()
    alone, known = context(item, None), context(item, item["reference"])
    assert known.endswith(alone)
    assert item["facts"][0] in known
    assert item["facts"][0] not in alone
    assert item["reference"] in known
    assert item["reference"] not in alone
    assert alone == "Customer: Can I cancel?\nAgent:"


def test_parts_score_the_text_they_name(tiny_model):
    """Reply parts score the reply, reference parts the reference, alone parts in a shorter context."""
    tokenizer = load_tokenizer(tiny_model)
    texts = {text.part: text for text in scored_texts(tokenizer, items()[0])}
    assert tuple(texts) == PARTS
    for known, plain in (
        ("reply_given_reference", "reply_alone"),
        ("reference_given_reply", "reference_alone"),
    ):
        assert texts[known].target == texts[plain].target
        assert len(texts[known].context) > len(texts[plain].context)
    assert tokenizer.decode(texts["reply_alone"].target).strip() == items()[0]["reply"].strip()


def test_an_empty_reply_has_nothing_to_score(tiny_model, tmp_path):
    """An empty answer gets no line for its own likelihood, so its case stays undecided."""
    made = [{**items()[0], "reply": "  "}]
    _, _, lines = run(tmp_path, tiny_model, made)
    assert [line["part"] for line in lines] == ["reference_alone", "reference_given_reply"]


def test_batches_do_not_change_the_answer(tiny_model, tmp_path):
    """Alone or in a padded batch a text has the same sum, to rounding."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    _, _, together = run(tmp_path / "a", tiny_model)
    _, _, alone = run(
        tmp_path / "b", tiny_model, settings=LikelihoodSettings(batch_size=1, threads=1)
    )
    for left, right in zip(together, alone, strict=True):
        assert parse_real(left["logprob_sum"]) == pytest.approx(
            parse_real(right["logprob_sum"]), rel=1e-4
        )


def test_the_start_names_the_judge_and_its_prompt(tiny_model, tmp_path):
    """The first event has the digest of the weights and the version of the prompt."""
    events, end, _ = run(tmp_path, tiny_model)
    assert events[0]["weights"] == end["weights"]
    assert events[0]["settings"]["prompt"] == "completion-1"


def test_an_item_beyond_the_limit_has_no_line_and_ends_nothing(tiny_model, tmp_path):
    """Where one text of an item is longer than the limit the item is left out whole, never cut; the others are scored."""
    made = items()
    made[1]["reply"] = "It is delivered. " * 400
    _, end, lines = run(tmp_path, tiny_model, made, LikelihoodSettings(max_length=400, threads=1))
    assert end["items"] == 2
    assert [(line["item"], line["part"]) for line in lines] == [("case-0", part) for part in PARTS]


def test_a_child_goes_on_after_the_last_whole_batch(tiny_model, tmp_path):
    """What an earlier child left is kept batch by batch and not scored again; a torn line is, with its whole batch."""
    *_, whole = run(tmp_path, tiny_model)
    output = tmp_path / "out.jsonl"
    marked = [{**line, "logprob_sum": "-1.25"} for line in whole]
    left = [json.dumps(line) + "\n" for line in marked[:5]]
    output.write_text("".join(left) + '{"item": "case-1", "par')
    *_, again = run(tmp_path, tiny_model)
    assert [line["logprob_sum"] for line in again[:3]] == ["-1.25"] * 3
    assert again[3:] == whole[3:]


def test_items_must_be_items(tiny_model, tmp_path):
    """A line without a reference is refused with its number."""
    broken = {name: value for name, value in items()[0].items() if name != "reference"}
    with pytest.raises(EvidenceError, match="line 2"):
        run(tmp_path, tiny_model, [items()[0], broken])
