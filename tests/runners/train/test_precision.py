"""bfloat16 where the hardware has it, one error where it has not, and exactness in both."""

from __future__ import annotations

import pytest
from sft_run import Run, changed, going_on
from test_full import FULL
from tiny import files_of, torch

from ledger.canonical import parse_real
from ledger.errors import UsageError
from runners.environment import machine
from runners.train.config import SftSettings, settings_from
from runners.train.precision import (
    PROCESSOR_FEATURES,
    SMALL_UPDATES,
    accelerator,
    check_precision,
    computing,
    warnings_of,
)
from verifiers.learning.tensors import read_header

pytestmark = [pytest.mark.train, pytest.mark.slow]

HAS = set(machine().features) & set(PROCESSOR_FEATURES)
needs_bfloat16 = pytest.mark.skipif(not HAS, reason="needs a processor with bfloat16")


@pytest.mark.parametrize(
    ("features", "of_accelerator", "refused"),
    [
        pytest.param(("avx2", "avx512f"), None, "processor", id="a processor without"),
        pytest.param(("avx512_bf16",), None, None, id="AVX512"),
        pytest.param(("amx_bf16",), None, None, id="AMX"),
        pytest.param(("amx_bf16",), False, "accelerator", id="an accelerator without"),
        pytest.param((), True, None, id="an accelerator with"),
    ],
)
@pytest.mark.parametrize("field", ["dtype", "autocast"])
def test_a_precision_that_the_hardware_lacks_is_refused(field, features, of_accelerator, refused):
    """What computes decides: the accelerator where there is one, else the processor; the setting is named."""
    settings = changed(**{field: "bfloat16"})
    check_precision(changed(), features, of_accelerator)
    if refused is None:
        check_precision(settings, features, of_accelerator)
        return
    with pytest.raises(UsageError, match=refused) as caught:
        check_precision(settings, features, of_accelerator)
    assert (caught.value.code, caught.value.field) == ("PRECISION_UNSUPPORTED", field)


@pytest.mark.parametrize("values", [{"dtype": "float16"}, {"autocast": "float16"}])
def test_half_precision_is_refused(values):
    """float16 needs a scaler whose skipped steps are no updates; it is no choice here."""
    with pytest.raises(UsageError, match="bfloat16") as caught:
        settings_from(values)
    assert caught.value.code == "SETTING_INVALID"


def test_whole_models_in_bfloat16_are_warned_of():
    """Where the weights themselves are short numbers, small updates are lost; an adapter's are not short."""
    assert warnings_of(FULL.model_copy(update={"dtype": "bfloat16"})) == [SMALL_UPDATES]
    assert warnings_of(SftSettings(dtype="bfloat16")) == warnings_of(FULL) == []


def test_without_an_accelerator_none_is_named():
    """The name and the precision of an accelerator come together or not at all."""
    name, has = accelerator()
    assert (name is None) == (has is None) == (not torch.cuda.is_available())


def test_autocast_is_off_unless_asked_for():
    """The context rounds products of float32 matrices where it is on, and does nothing where it is off."""
    device, ones = torch.device("cpu"), torch.ones(2, 2)
    with computing(changed(), device):
        assert (ones @ ones).dtype is torch.float32
    with computing(changed(autocast="bfloat16"), device):
        assert (ones @ ones).dtype is torch.bfloat16


CASES = [
    pytest.param(changed(autocast="bfloat16"), "adapter_model.safetensors", "F32", id="autocast"),
    pytest.param(changed(dtype="bfloat16"), "adapter_model.safetensors", "F32", id="base"),
    pytest.param(
        FULL.model_copy(update={"dtype": "bfloat16", "learning_rate": 0.02}),
        "model.safetensors", "BF16", id="whole",
    ),
    pytest.param(
        FULL.model_copy(update={"autocast": "bfloat16"}), "model.safetensors", "F32",
        id="whole, autocast",
    ),
]  # fmt: skip


@needs_bfloat16
@pytest.mark.parametrize(("settings", "file", "dtype"), CASES)
def test_runs_in_bfloat16_learn_and_go_on_exactly(tiny_model, tmp_path, settings, file, dtype):
    """The loss falls, the file has the weights' own type, and from the second step on the bytes are the same."""
    run = Run(tiny_model, tmp_path / "whole", settings).here()
    losses = [parse_real(event["loss"]) for event in run.of("update")]
    assert losses[-1] < losses[0]
    last = tmp_path / "whole" / "out" / "checkpoint-000004"
    with (last / file).open("rb") as stream:
        assert {entry.dtype for entry in read_header(stream)} == {dtype}
    start = going_on(tmp_path / "whole" / "out" / "checkpoint-000002")
    Run(tiny_model, tmp_path / "again", settings, start=start).here()
    assert files_of(tmp_path / "again" / "out" / "checkpoint-000004") == files_of(last)


@needs_bfloat16
def test_autocast_gives_other_bits_than_float32(tiny_model, tmp_path):
    """It is really on: the first step's loss is near that of float32, and not the same."""
    left = Run(tiny_model, tmp_path / "a", changed(steps=1)).here().of("update")[0]
    right = Run(tiny_model, tmp_path / "b", changed(steps=1, autocast="bfloat16")).here()
    right = right.of("update")[0]
    assert left["before"] == right["before"]
    assert left["loss"] != right["loss"]
    assert parse_real(left["loss"]) == pytest.approx(parse_real(right["loss"]), rel=0.05)
