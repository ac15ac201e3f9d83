"""Sampling by a server: what it must answer, that it gets new weights, and how one without them is seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from away import until
from loopback_sampler import LoopbackSampler, serving
from peft import LoraConfig, get_peft_model
from tiny import AutoModelForCausalLM, make_model, torch

from ledger.errors import EvidenceError, LedgerError, UsageError
from runners.train.processes import GONE, start_token
from runners.train.serving.merged import merged_tensors, write_merged
from runners.train.serving.probe import probe
from runners.train.serving.samples import Ask, Drawing
from runners.train.serving.vllm_client import VllmSampler
from runners.train.serving.vllm_server import VllmServer

PROMPT = (5, 9, 11, 4, 7)
ASKS = [Ask(PROMPT, 1), Ask(PROMPT, 2), Ask((*PROMPT, 6), 3)]
DRAWING = Drawing(max_new_tokens=8)
TOLERANCE = 1e-3
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.filterwarnings(
    "ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"
)
VLLM_PYTHON = os.environ.get("EVIDENCE_VLLM_PYTHON")


@pytest.fixture
def model(tmp_path) -> Path:
    """A tiny model's folder."""
    return make_model(tmp_path / "model")


@pytest.fixture
def server(model) -> LoopbackSampler:
    """The same model behind a server."""
    return LoopbackSampler(model)


def scores(model, ids) -> list[float]:
    """The learner's own log-probabilities of each token after the first."""
    with torch.no_grad():
        table = torch.log_softmax(model(torch.tensor([list(ids)])).logits[0].float(), -1)
    return [table[place, token].item() for place, token in enumerate(ids[1:])]


def adapted(folder, size: float):
    """The model with an adapter that does something."""
    torch.manual_seed(3)
    config = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj"])
    learner = get_peft_model(
        AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), config
    )
    for name, tensor in learner.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(tensor, std=size)
    return learner.eval()


def refusal(call, *arguments) -> LedgerError:
    """What the call is refused with."""
    with pytest.raises(LedgerError) as caught:
        call(*arguments)
    return caught.value


def test_completions_carry_the_log_probabilities_the_model_has(server, model, tmp_path):
    """Ids, log-probabilities and stop reasons are the server's own, and the learner computes the same ones."""
    learner = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    with serving(server) as url:
        sampler = VllmSampler(url, tmp_path / "live")
        sampled = sampler.sample(ASKS, DRAWING)
        again = sampler.sample(ASKS, DRAWING)
    assert sampled == again
    for ask, item in zip(ASKS, sampled, strict=True):
        own = scores(learner, [*ask.prompt, *item.ids])[len(ask.prompt) - 1 :]
        assert item.logprobs == pytest.approx(own, abs=1e-5)
        assert item.stop in ("end", "length")
    assert sampled[0].ids != sampled[1].ids


@pytest.mark.parametrize(
    "fault",
    [
        "no log-probabilities",
        "one log-probability too few",
        "a log-probability above 0",
        "a log-probability that is null",
        "another prompt",
        "no token ids",
        "token ids as text",
        "more tokens than the limit",
        "an aborted completion",
        "a reply without end",
        "an error",
        "no JSON",
        "elsewhere",
    ],
)
def test_reply_that_lacks_something_is_refused(server, tmp_path, fault):
    """A reply without what evidence needs is refused; nothing is made up for it."""
    server.faults.add(fault)
    with serving(server) as url:
        error = refusal(VllmSampler(url, tmp_path).sample, ASKS[:1], DRAWING)
    assert isinstance(error, EvidenceError)
    assert error.code == "SAMPLER_REPLY"


def test_server_that_is_not_there_is_named(tmp_path):
    """An address where nobody listens gives one error with the address, not a library's."""
    error = refusal(VllmSampler("http://127.0.0.1:9", tmp_path).sample, ASKS[:1], DRAWING)
    assert isinstance(error, UsageError)
    assert error.code == "SAMPLER_UNREACHABLE"
    assert "127.0.0.1:9" in error.message


def test_renewed_server_scores_as_the_learner_does(server, model, tmp_path):
    """After a renewal the server scores the probe as the learner with its adapter does, and not as the base."""
    learner = adapted(model, 0.3)
    with learner.disable_adapter():
        before = scores(learner, PROMPT)
    with serving(server) as url:
        sampler = VllmSampler(url, tmp_path / "live")
        digest = sampler.renew(lambda folder: write_merged(learner, model, folder))
        found = probe(scores(learner, PROMPT), before, sampler.score(PROMPT), TOLERANCE)
    assert digest.startswith("sha256:")
    assert found.gap < 1e-4 < found.moved
    assert found.tells


def test_server_that_kept_its_old_weights_is_caught(server, model, tmp_path):
    """A server that says yes and loads nothing is told by its scores: those of the weights before."""
    learner = adapted(model, 0.3)
    with learner.disable_adapter():
        before = scores(learner, PROMPT)
    server.faults.add("keeps its weights")
    with serving(server) as url:
        sampler = VllmSampler(url, tmp_path / "live")
        sampler.renew(lambda folder: write_merged(learner, model, folder))
        told = sampler.score(PROMPT)
    assert server.reloads == 1
    error = refusal(probe, scores(learner, PROMPT), before, told, TOLERANCE)
    assert error.code == "SAMPLER_STALE"
    assert "those before" in error.message


@pytest.mark.parametrize(
    ("learner", "before", "sampler", "found"),
    [
        ([-1.0, -2.0], [-1.5, -2.0], [-1.0001, -2.0], True),
        ([-1.0, -2.0], [-1.0, -2.0], [-1.0, -2.0], False),
        ([-1.0, -2.0], [-1.5, -2.0], [-1.5, -2.0], "SAMPLER_STALE"),
        ([-1.0, -2.0], [-1.002, -2.0], [-1.0015, -2.0], "SAMPLER_STALE"),
        ([-1.0, -2.0], [-1.0005, -2.0], [-1.0004, -2.0], False),
        ([-1.0, -2.0], [-1.0005, -2.0], [-1.00049, -2.0], "SAMPLER_STALE"),
        ([-1.0, -2.0], [-1.00005, -2.0], [-1.00005, -2.0], False),
        ([-1.0, -2.0], [-1.5, -2.0], [-1.0], "SAMPLER_REPLY"),
        ([], [], [], "SAMPLER_REPLY"),
    ],
)
def test_probe_tells_the_given_weights_from_those_before(learner, before, sampler, found):
    """Near the learner passes, with whether the old weights would have been seen; near those, or of another length, does not."""
    if isinstance(found, bool):
        assert probe(learner, before, sampler, TOLERANCE).tells == found
    else:
        assert refusal(probe, learner, before, sampler, TOLERANCE).code == found


def test_merging_leaves_the_live_weights_as_they_are(model, tmp_path):
    """The merged copy computes what the adapted model does, and no bit of the live one changed."""
    learner = adapted(model, 0.3)
    live = {name: tensor.clone() for name, tensor in learner.state_dict().items()}
    write_merged(learner, model, tmp_path / "live")
    assert all(torch.equal(live[name], tensor) for name, tensor in learner.state_dict().items())
    copy = AutoModelForCausalLM.from_pretrained(tmp_path / "live", dtype=torch.float32).eval()
    assert scores(copy, PROMPT) == pytest.approx(scores(learner, PROMPT), abs=1e-5)
    assert not any("lora" in name for name in merged_tensors(learner))


def test_interpreter_that_is_none_is_refused(model, tmp_path):
    """A path that cannot be run is refused before anything starts."""
    with pytest.raises(UsageError) as caught:
        VllmServer(tmp_path / "python", model, tmp_path / "log", max_model_tokens=64, threads=1)
    assert (caught.value.code, caught.value.field) == ("SAMPLER_UNREACHABLE", "vllm_python")


def test_server_that_ends_at_once_says_its_last_words(model, tmp_path):
    """A server that cannot start is reported with how it ended and the end of its log."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no vllm here >&2\nexit 3\n")
    python.chmod(0o755)
    server = VllmServer(python, model, tmp_path / "log", max_model_tokens=64, threads=1)
    with server:
        error = refusal(server.wait_ready)
    assert error.code == "SAMPLER_FAILED"
    assert "ended with 3" in error.message
    assert "no vllm here" in error.message


def test_server_ends_when_whoever_started_it_is_killed(model, tmp_path):
    """No word is said to it: its guard sees that nobody holds the pipe any more."""
    python, pid = tmp_path / "python", tmp_path / "pid"
    python.write_text(f"#!/bin/sh\necho $$ > {pid}.new\nmv {pid}.new {pid}\nexec sleep 300\n")
    python.chmod(0o755)
    code = (
        "import sys, time; from pathlib import Path; from runners.train.serving.vllm_server import VllmServer;"
        "VllmServer(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), max_model_tokens=64, threads=1);"
        "time.sleep(300)"
    )
    command = [sys.executable, "-P", "-c", code, str(python), str(model), str(tmp_path / "log")]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}) as starter:
        until(pid.exists)
        server = int(pid.read_text())
        assert start_token(server) != GONE
        starter.kill()
    until(lambda: start_token(server) == GONE)


@pytest.mark.slow
@pytest.mark.skipif(
    VLLM_PYTHON is None, reason="EVIDENCE_VLLM_PYTHON names no interpreter with vLLM"
)
def test_vllm_itself_samples_scores_and_is_renewed(tmp_path):
    """vLLM, started by us, gives ids and log-probabilities, takes an adapter's weights and scores with them."""
    model = make_model(tmp_path / "model", width=256)  # its attention knows no heads of 8
    learner = adapted(model, 0.3)
    with learner.disable_adapter():
        before = scores(learner, PROMPT)
    log = tmp_path / "vllm.log"
    with VllmServer(Path(VLLM_PYTHON), model, log, max_model_tokens=64, threads=2) as server:
        server.wait_ready()
        sampler = VllmSampler(server.url, tmp_path / "live")
        assert probe(before, before, sampler.score(PROMPT), TOLERANCE).gap < TOLERANCE
        sampler.renew(lambda folder: write_merged(learner, model, folder))
        found = probe(scores(learner, PROMPT), before, sampler.score(PROMPT), TOLERANCE)
        sampled = sampler.sample(ASKS, DRAWING)
    assert found.tells
    for ask, item in zip(ASKS, sampled, strict=True):
        own = scores(learner, [*ask.prompt, *item.ids])[len(ask.prompt) - 1 :]
        assert item.logprobs == pytest.approx(own, abs=1e-3)
