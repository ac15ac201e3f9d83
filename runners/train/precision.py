"""Whether the hardware has the precision that a run asks for, and the context that computes in it (torch loaded late).

bfloat16 is emulated where the processor lacks it: the same kind of result, an order of magnitude slower, and other last
bits than on hardware that has it. So it is refused there, at the plan and again where the run starts.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection
    from contextlib import AbstractContextManager

    from runners.train.learner_settings import LearnerSettings

PROCESSOR_FEATURES = ("avx512_bf16", "amx_bf16")
"""Either multiplies bfloat16 numbers in the processor."""

SMALL_UPDATES = (
    "weights in bfloat16 keep 8 bits of a number: updates below 1/256 of a weight are lost"
)


def check_precision(
    settings: LearnerSettings, features: Collection[str], accelerator_bf16: bool | None
) -> None:
    """Refuse a precision that the hardware does not have.

    Args:
        settings: of the run.
        features: the processor's.
        accelerator_bf16: whether the accelerator has bfloat16, None where there is no accelerator.

    Raises:
        UsageError: `PRECISION_UNSUPPORTED`, naming the setting.
    """
    has = accelerator_bf16
    if has is None:
        has = any(feature in features for feature in PROCESSOR_FEATURES)
    where = "processor" if accelerator_bf16 is None else "accelerator"
    for field in ("dtype", "autocast"):
        if getattr(settings, field) == "bfloat16" and not has:
            raise UsageError(
                "PRECISION_UNSUPPORTED",
                f"{field} is bfloat16 and the {where} has none",
                field=field,
                expected=" or ".join(PROCESSOR_FEATURES) if accelerator_bf16 is None else None,
            )


def warnings_of(settings: LearnerSettings) -> list[str]:
    """What a person should know of a run's precision before it starts."""
    return [SMALL_UPDATES] if (settings.tuning, settings.dtype) == ("full", "bfloat16") else []


def accelerator() -> tuple[str | None, bool | None]:
    """The name of this machine's accelerator and whether it has bfloat16; None twice where there is none."""
    import torch

    if not torch.cuda.is_available():
        return None, None
    return str(torch.cuda.get_device_name()), bool(torch.cuda.is_bf16_supported())


def computing(settings: LearnerSettings, device: Any) -> AbstractContextManager[Any]:
    """The context in which forward passes run.

    Args:
        settings: of the run.
        device: a torch device.
    """
    import torch

    if settings.autocast == "none":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)
