"""A plan states what the libraries make of its settings, so a default of theirs that changed shows, and stops a run."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
from sft_run import Run, changed
from test_full import FULL
from tiny import AutoModelForCausalLM

from ledger.book import Ledger
from ledger.canonical import decode, encode
from ledger.errors import UsageError
from runners.train.config import ADAPTER_SETTINGS
from runners.train.expansion import LEFT_OUT, expand, plain

pytestmark = [pytest.mark.train, pytest.mark.slow]

SETTINGS = changed(lora_targets=("q_proj", "down_proj"))


@pytest.fixture
def another_default(monkeypatch):
    """A library whose next version has another default for smoothing the labels."""
    sft_config = pytest.importorskip("trl.trainer.sft_config").SFTConfig
    names = list(inspect.signature(sft_config.__init__).parameters)[1:]
    defaults = list(sft_config.__init__.__defaults__)
    defaults[names.index("label_smoothing_factor") - len(names)] = 0.1
    monkeypatch.setattr(sft_config.__init__, "__defaults__", tuple(defaults))


def test_every_argument_is_there(tiny_model):
    """Each field of both configurations is named with its value, but for places and accounts."""
    sft_config = pytest.importorskip("trl.trainer.sft_config").SFTConfig
    lora_config = pytest.importorskip("peft").LoraConfig
    found = expand(tiny_model, "tiny", SETTINGS).library_settings
    expected = {
        f"{kind.__name__}.{item.name}"
        for kind in (sft_config, lora_config)
        for item in dataclasses.fields(kind)
        if item.name not in LEFT_OUT[kind.__name__] and not item.name.startswith("_")
    }
    assert set(found) == expected
    assert len(expected) > 120
    assert found["SFTConfig.learning_rate"] == "0.01"
    assert found["SFTConfig.packing"] is False
    assert found["LoraConfig.target_modules"] == ["down_proj", "q_proj"]
    assert decode(encode(found)) == found
    assert not [value for value in found.values() if isinstance(value, str) and "/" in value]
    assert not [value for value in found.values() if isinstance(value, str) and " at 0x" in value]


def test_where_every_weight_is_trained_there_is_no_adapter(tiny_model):
    """The adapter's arguments are absent, and the tensors are the model's, tied ones once."""
    found = expand(tiny_model, "tiny", FULL)
    assert not [name for name in found.library_settings if name.startswith("LoraConfig.")]
    model = AutoModelForCausalLM.from_pretrained(tiny_model, local_files_only=True)
    assert found.trained["count"] == len(list(model.parameters()))
    assert found.trained["parameters"] == sum(value.numel() for value in model.parameters())


@pytest.mark.parametrize("settings", [SETTINGS, FULL, changed(first_layer=1)])
def test_a_run_trains_the_tensors_that_the_plan_states(tiny_model, tmp_path, settings):
    """The model without numbers has the names, types and shapes of the one that is trained."""
    found = expand(tiny_model, "tiny", settings)
    more = {"trained": found.trained, "library_settings": found.library_settings}
    run = Run(tiny_model, tmp_path, settings, **more).here()
    assert run.end["outcome"] == "completed"
    assert run.of("start")[0]["trainable_parameters"] == found.trained["parameters"]


def test_a_changed_default_shows_as_a_difference(tiny_model, request):
    """Two plans of the same settings differ in the one argument whose default is another."""
    before = expand(tiny_model, "tiny", SETTINGS).library_settings
    request.getfixturevalue("another_default")
    after = expand(tiny_model, "tiny", SETTINGS).library_settings
    differing = {name: after[name] for name in after if after[name] != before[name]}
    assert differing == {"SFTConfig.label_smoothing_factor": "0.1"}


def test_a_changed_default_stops_a_run(tiny_model, tmp_path, request):
    """A child whose libraries would do something else than the plan says does not begin, and names the argument."""
    planned = expand(tiny_model, "tiny", SETTINGS).library_settings
    request.getfixturevalue("another_default")
    run = Run(tiny_model, tmp_path, SETTINGS, library_settings=planned)
    with pytest.raises(UsageError) as caught:
        run.here()
    assert (caught.value.code, caught.value.field) == (
        "PLAN_STALE", "SFTConfig.label_smoothing_factor",
    )  # fmt: skip
    assert run.events == []


def test_another_model_stops_a_run(tiny_model, tmp_path):
    """Tensors other than those planned are noticed before a batch is read."""
    planned = expand(tiny_model, "tiny", changed(lora_rank=8)).trained
    run = Run(tiny_model, tmp_path, SETTINGS, trained=planned)
    with pytest.raises(UsageError, match="are planned") as caught:
        run.here()
    assert (caught.value.code, caught.value.field) == ("PLAN_STALE", "trained")
    assert run.events == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(0.5, "0.5", id="a real number"),
        pytest.param({"b", "a"}, ["a", "b"], id="a set"),
        pytest.param((1, 2), [1, 2], id="integers"),
        pytest.param([], [], id="nothing in a list"),
        pytest.param([1, "a"], '[1, "a"]', id="a list of both"),
        pytest.param({"b": {"x"}, "a": 0.5}, '{"a": 0.5, "b": ["x"]}', id="an object"),
        pytest.param(None, None, id="none"),
        pytest.param(True, True, id="truth"),
    ],
)
def test_values_have_one_plain_form(value, expected):
    """What a record can hold stays as it is, everything else is JSON in one order."""
    assert plain(value) == expected


def test_what_has_no_plain_form_is_an_error():
    """A text with a place in memory would be another in every process."""
    with pytest.raises(TypeError, match="no plain form"):
        plain(object())


def test_the_plan_holds_it(person):
    """The record of a plan names every argument and the trained tensors; the hardware says whether there is an accelerator."""
    with Ledger.read(person.ledger) as ledger:
        body = ledger.get(person.ids["plan"]).body
    assert body["library_settings"]["LoraConfig.r"] == body["settings"]["lora_rank"]
    assert body["library_settings"]["SFTConfig.packing"] is body["settings"]["packing"] is False
    assert body["trained"]["count"] == 28
    assert body["hardware"]["accelerator"] is None
    assert set(ADAPTER_SETTINGS) <= set(body["settings"])


def test_packing_is_refused_with_its_reason(person):
    """It is off, stands in the plan as off, and asking for it says why it is not there."""
    answer = person.plans(packing=True)
    assert (answer.code, answer.error["code"]) == (2, "SETTING_INVALID")
    assert "packing is not there" in answer.error["message"]
