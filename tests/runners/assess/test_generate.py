"""What a model answers: greedy, in fixed batches, from the weights that are named."""

from __future__ import annotations

import json
import shutil
import warnings

import pytest
from tiny import (
    TEMPLATE,
    AutoModelForCausalLM,
    files_of,
    loopback,
    model_job,
    rows,
    torch,
    write_lines,
    write_rows,
)

from ledger.digests import sha256
from ledger.errors import EvidenceError
from runners.assess.asking import _check_template
from runners.assess.config import GenerationSettings
from runners.assess.generate import transcribe
from runners.child import run_child
from runners.train.config import SftSettings
from runners.train.sft import train
from runners.train.tokens import load_tokenizer, prompt_digest, prompt_ids

pytestmark = [pytest.mark.train, pytest.mark.slow]

SETTINGS = GenerationSettings(max_new_tokens=6, batch_size=3, threads=1)


def cases(count=5):
    """Cases whose prompts have different lengths."""
    return [
        {
            "id": f"case-{number}",
            "messages": [
                *row["messages"][:1],
                {**row["messages"][1], "content": "Cancel it. " * (number + 1)},
            ],
        }
        for number, row in enumerate(rows(count))
    ]


def run(folder, tiny_model, *, adapter=None, model=None, settings=SETTINGS, made=None, **more):
    """Transcribe in this process: (start, end, lines)."""
    folder.mkdir(parents=True, exist_ok=True)
    job = {
        "model": model or model_job(tiny_model),
        "adapter": adapter,
        "cases": str(write_lines(folder / "cases.jsonl", made or cases())),
        "settings": settings.effective(),
        "output": str(folder / "out.jsonl"),
        **more,
    }
    events = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries warn of one another
        end = transcribe(loopback(lambda event: events.append(event) or {}), job)
    lines = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    return events, end, lines


@pytest.fixture(scope="module")
def adapter(tiny_model, tmp_path_factory):
    """A trained adapter of the tiny model, as a job names it."""
    folder = tmp_path_factory.mktemp("adapter")
    settings = SftSettings(steps=2, batch_size=4, learning_rate=0.05, lora_rank=2, threads=1)
    job = {
        "model": model_job(tiny_model),
        "rows": str(write_rows(folder / "rows.jsonl", rows(8))),
        "settings": settings.effective(),
        "output": str(folder / "out"),
        "until": settings.steps,
        "start": {"mode": "fresh"},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries warn of one another
        end = train(loopback(lambda _: {}), job)
    checkpoint = folder / "out" / "checkpoint-000002"
    return {"path": str(checkpoint), "files": files_of(checkpoint), "state": end["state"]}


def test_lines_are_the_models_own_greedy_tokens(tiny_model, tmp_path):
    """Each line has the tokens that one step of argmax after another gives for that prompt alone."""
    _, _, lines = run(tmp_path, tiny_model)
    model = AutoModelForCausalLM.from_pretrained(tiny_model)
    tokenizer = load_tokenizer(tiny_model)
    for case, line in zip(cases(), lines, strict=True):
        ids = prompt_ids(tokenizer, case["messages"])
        for token in line["token_ids"]:
            with torch.no_grad():
                assert int(model(torch.tensor([ids])).logits[0, -1].argmax()) == token
            ids.append(token)


def test_lines_say_what_was_asked_and_how_it_ended(tiny_model, tmp_path):
    """A line names its case, the digest of its prompt's tokens, and whether the limit cut it."""
    _, end, lines = run(tmp_path, tiny_model)
    tokenizer = load_tokenizer(tiny_model)
    for case, line in zip(cases(), lines, strict=True):
        prompt = prompt_ids(tokenizer, case["messages"])
        assert line["case"] == case["id"]
        assert (line["prompt_digest"], line["prompt_tokens"]) == (
            prompt_digest(prompt),
            len(prompt),
        )
        assert line["text"] == tokenizer.decode(line["token_ids"], skip_special_tokens=True)
        ended = line["token_ids"][-1] == 2
        assert (line["truncated"], line["stop"]) == ((False, "eos") if ended else (True, "length"))
    assert end["prompts"] == sha256("\n".join(line["prompt_digest"] for line in lines).encode())
    assert end["tokens"] == sum(len(line["token_ids"]) for line in lines)
    assert end["truncated"] == sum(line["truncated"] for line in lines)


def test_an_answer_ends_at_its_end_token(tiny_model, tmp_path):
    """A model that ends at once is not truncated, and what fills the batch afterwards is no answer."""
    broken = tmp_path / "ends"
    shutil.copytree(tiny_model, broken)
    config = json.loads((broken / "generation_config.json").read_text())
    _, _, lines = run(tmp_path / "a", tiny_model)
    first = lines[0]["token_ids"][1]
    (broken / "generation_config.json").write_text(
        json.dumps({**config, "eos_token_id": [2, first]})
    )
    _, _, lines = run(tmp_path / "b", tiny_model, model=model_job(broken))
    assert lines[0]["token_ids"][-1] == first
    assert len(lines[0]["token_ids"]) == 2
    assert (lines[0]["stop"], lines[0]["truncated"]) == ("eos", False)


def test_two_runs_and_a_child_agree(tiny_model, tmp_path):
    """The same model, cases and settings give the same bytes, in this process and in another."""
    _, end, _ = run(tmp_path / "a", tiny_model)
    job = {
        "model": model_job(tiny_model),
        "adapter": None,
        "cases": str(tmp_path / "a" / "cases.jsonl"),
        "settings": SETTINGS.effective(),
        "output": str(tmp_path / "apart.jsonl"),
    }
    ended = run_child("runners.assess.generate", job, lambda _: {}, tmp_path / "log", threads=1)
    assert ended.outcome == "completed", (tmp_path / "log").read_text()
    assert (tmp_path / "apart.jsonl").read_bytes() == (tmp_path / "a" / "out.jsonl").read_bytes()
    assert ended.end["weights"] == end["weights"]


def test_a_template_without_end_is_told_with_its_case(tiny_model, tmp_path):
    """The system ends the child within a prompt: the error is the template's and names the case it was at."""
    run(tmp_path / "a", tiny_model)
    template = tmp_path / "endless.jinja"
    template.write_text(
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    )
    job = {
        "model": model_job(tiny_model),
        "adapter": None,
        "cases": str(tmp_path / "a" / "cases.jsonl"),
        "settings": SETTINGS.effective(),
        "template": str(template),
        "seconds": 1,
        "output": str(tmp_path / "apart.jsonl"),
    }
    ended = run_child("runners.assess.generate", job, lambda _: {}, tmp_path / "log", threads=1)
    first = json.loads((tmp_path / "a" / "cases.jsonl").read_text().splitlines()[0])["id"]
    with pytest.raises(EvidenceError, match=f"case {first}: the chat template") as caught:
        _check_template(job, ended)
    assert caught.value.code == "TEMPLATE_UNBOUNDED"


def test_an_adapter_speaks_with_weights_of_its_own(tiny_model, tmp_path, adapter):
    """With an adapter the named weights and the answers are others, the prompts are the same."""
    start, base, plain = run(tmp_path / "a", tiny_model)
    _, tuned, lines = run(tmp_path / "b", tiny_model, adapter=adapter)
    assert base["weights"] != tuned["weights"]
    assert base["prompts"] == tuned["prompts"]
    assert [line["token_ids"] for line in lines] != [line["token_ids"] for line in plain]
    assert start[0]["weights"] == base["weights"]


@pytest.mark.parametrize("what", ["flipped", "state", "extra"])
def test_another_adapter_is_refused(tiny_model, tmp_path, adapter, what):
    """An adapter whose bytes or state are not the registered ones never speaks."""
    folder = tmp_path / "adapter"
    shutil.copytree(adapter["path"], folder)
    job = {**adapter, "path": str(folder)}
    if what == "flipped":
        raw = bytearray((folder / "adapter_model.safetensors").read_bytes())
        raw[-1] ^= 1
        (folder / "adapter_model.safetensors").write_bytes(raw)
    elif what == "state":
        job["state"] = sha256(b"another")
    else:
        (folder / "adapter_model.bin").write_bytes(b"cos\nsystem\n")
    with pytest.raises(EvidenceError) as caught:
        run(tmp_path / "run", tiny_model, adapter=job)
    assert caught.value.code in {"MODEL_FILES_CHANGED", "CHECKPOINT_CHANGED"}


def test_one_case_that_the_template_refuses_ends_nothing(tiny_model, tmp_path):
    """Its line says that it was not asked, the others are answered; a template that refuses all of them is an error."""
    template = tmp_path / "template.jinja"
    refusing = "{% if '@' in messages[1]['content'] %}{{ raise_exception('no') }}{% endif %}"
    template.write_text(refusing + TEMPLATE)
    made = cases()
    made[1]["messages"][1]["content"] += " @"
    _, end, lines = run(tmp_path / "one", tiny_model, made=made, template=str(template))
    assert [line["case"] for line in lines] == [case["id"] for case in made]
    assert [line["stop"] == "unasked" for line in lines] == [at == 1 for at in range(len(made))]
    assert end["cases"] == len(made)
    for case in made:
        case["messages"][1]["content"] += " @"
    with pytest.raises(EvidenceError) as caught:
        run(tmp_path / "all", tiny_model, made=made, template=str(template))
    assert caught.value.code == "TEMPLATE_FAILED"


def test_cases_must_be_cases(tiny_model, tmp_path):
    """A line without messages is refused with its number, before anything is generated."""
    with pytest.raises(EvidenceError, match="line 2"):
        run(tmp_path, tiny_model, made=[*cases(1), {"id": "x"}])
