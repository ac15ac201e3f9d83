"""The settings of group-relative reinforcement: a preset's name, and every constant that it stands for (torch-free).

A preset is only a set of defaults. What a plan records is every field, so nobody has to know what a name means elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from ledger.errors import UsageError
from runners.train.learner_settings import LearnerSettings
from verifiers.learning.advantages import AdvantageRule
from verifiers.learning.objectives import Objective
from verifiers.rewards.desk import DESK_VERSION
from verifiers.rewards.support import VERSION as SUPPORT_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOKEN = {"ratio_level": "token", "clip": "ppo", "clip_low": 0.8, "clip_high": 1.2}
_STANDARD = {"advantage_centre": "mean", "advantage_scale": "std"}
PRESETS: dict[str, dict[str, Any]] = {
    # Shao et al. 2024, arXiv 2402.03300
    "grpo": {**_TOKEN, **_STANDARD, "aggregation": "sequence_mean"},
    # Zheng et al. 2025, arXiv 2507.18071, section 5.1
    "gspo": {
        **_STANDARD, "ratio_level": "sequence", "clip": "ppo", "clip_low": 0.9997, "clip_high": 1.0004,
        "aggregation": "sequence_mean",
    },
    # Yu et al. 2025, arXiv 2503.14476
    "dapo": {
        **_TOKEN, **_STANDARD, "clip_high": 1.28, "aggregation": "token_mean", "dynamic_sampling": True,
        "overlong_penalty": 1.0,
    },
    # MiniMax 2025, arXiv 2506.13585; the bound from Khatri et al. 2025, arXiv 2510.13786
    "cispo": {
        **_STANDARD, "ratio_level": "token", "clip": "cispo", "clip_low": 0.0, "clip_high": 5.0,
        "aggregation": "token_mean",
    },
    # Liu et al. 2025, arXiv 2503.20783
    "dr_grpo": {
        **_TOKEN, "advantage_centre": "mean", "advantage_scale": "none", "aggregation": "constant",
    },
}  # fmt: skip
"""What each name of an objective stands for; a field that is given outright wins."""

VERSIONS = {"desk": DESK_VERSION, "support": SUPPORT_VERSION}
"""The version of each reward that this program has."""

TOLERANCES: dict[tuple[Any, Any], float] = {
    ("transformers", "float32"): 0.01,
    ("transformers", "bfloat16"): 0.5,
    ("vllm", "float32"): 0.001,
    ("vllm", "bfloat16"): 0.5,
}
"""How far rounding may take sampler and learner apart, in nats a token, by engine and precision: one reads a cache, the
other whole rows."""

OVERLONG_SHARE = 5
"""A preset's overlong buffer is one of so many parts of the longest completion, as in its paper."""

Bound = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
_SUPPORT = {"top_p": 1.0, "top_k": 0, "min_p": 0.0}


class RlSettings(LearnerSettings):
    """Every effective setting of a reinforcement run; see `LearnerSettings` for those that every run has.

    An update reads `groups_per_batch / steps_per_generation` whole groups of `group_size` completions; a batch of groups
    serves `steps_per_generation * num_iterations` updates. Bounds are absolute ratios. `reference` is frozen: the adapter
    that the run starts with, or the model without an adapter. A batch without any signal is drawn again, up to
    `redraw_limit` times, and then the run fails; with `dynamic_sampling` each group without signal is. The last
    `overlong_buffer` tokens before `max_new_tokens` cost a completion up to `overlong_penalty`. Lengths are in tokens.
    Before a batch of groups changes the policy, its log-probabilities and the sampler's may differ by `sampler_tolerance`
    nats a token, or the run ends. With `engine` at vllm a server samples: a configuration names it by `vllm_python`, the
    interpreter of an environment that has vLLM, or `vllm_url`, and by `vllm_weights` a folder that both read.
    `vllm_server` and `vllm_version` are found out from that; paths and addresses are not recorded.
    """

    tuning: Literal["lora"] = "lora"
    learning_rate: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 5e-5
    schedule: Literal["linear", "cosine", "constant"] = "constant"
    lora_dropout: Annotated[float, Field(ge=0, le=0)] = 0.0
    processes: Annotated[int, Field(ge=1, le=1)] = 1
    save_steps: Annotated[int, Field(ge=0)] = 1

    objective: Literal["grpo", "gspo", "dapo", "cispo", "dr_grpo"] = "grpo"
    ratio_level: Literal["token", "sequence"] = "token"
    clip: Literal["ppo", "cispo", "none"] = "ppo"
    clip_low: Bound = 0.8
    clip_high: Bound = 1.2
    aggregation: Literal["token_mean", "sequence_mean", "sequence_sum_mean", "constant", "sum"] = (
        "sequence_mean"
    )
    advantage_centre: Literal["mean", "leave_one_out"] = "mean"
    advantage_scale: Literal["none", "std"] = "std"
    advantage_ddof: Annotated[int, Field(ge=0, le=1)] = 1
    advantage_epsilon: Annotated[float, Field(gt=0, le=1)] = 1e-4
    kl_estimator: Literal["k1", "k2", "k3"] = "k3"
    kl_coefficient: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = 0.01
    reference: Literal["start_adapter", "adapter_off"] = "start_adapter"
    group_size: Annotated[int, Field(ge=2, le=1024)] = 8
    groups_per_batch: Annotated[int, Field(ge=1, le=1024)] = 4
    num_iterations: Annotated[int, Field(ge=1, le=64)] = 2
    steps_per_generation: Annotated[int, Field(ge=1, le=64)] = 1
    max_new_tokens: Annotated[int, Field(ge=1, le=65_536)] = 64
    max_prompt_tokens: Annotated[int, Field(ge=8, le=131_072)] = 1024
    max_turns: Annotated[int, Field(ge=1, le=1)] = 1
    temperature: Annotated[float, Field(gt=0, le=10)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Field(ge=0)] = 0
    min_p: Annotated[float, Field(ge=0, le=1)] = 0.0
    redraw_limit: Annotated[int, Field(ge=0, le=1000)] = 8
    dynamic_sampling: bool = False
    overlong_buffer: Annotated[int, Field(ge=0)] = 0
    overlong_penalty: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0
    reward: Literal["desk", "support"] = "desk"
    reward_version: Annotated[int, Field(ge=0)] = DESK_VERSION
    engine: Literal["transformers", "vllm"] = "transformers"
    vllm_server: Literal["none", "started", "addressed"] = "none"
    vllm_version: Annotated[str, Field(max_length=80)] = ""
    sampler_tolerance: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)] = 0.01

    @model_validator(mode="after")
    def _fits(self) -> RlSettings:
        if self.warmup_steps >= self.steps:
            raise ValueError("warmup_steps is not below steps")
        if self.chat_template is not None or self.template_date is not None:
            raise ValueError("prompts are rendered with the model's own chat template")
        if self.groups_per_batch % self.steps_per_generation:
            raise ValueError(
                "steps_per_generation does not divide groups_per_batch: updates read whole groups"
            )
        if self.overlong_buffer > self.max_new_tokens:
            raise ValueError("overlong_buffer is above max_new_tokens")
        if bool(self.overlong_buffer) != bool(self.overlong_penalty):
            raise ValueError(
                "overlong_buffer and overlong_penalty go together: set both, or neither"
            )
        if (self.engine == "vllm") != (self.vllm_server != "none" and self.vllm_version != ""):
            raise ValueError(
                "engine vllm goes with vllm_python, an interpreter that has vLLM, or vllm_url"
            )
        return self

    @classmethod
    def from_values(cls, values: Mapping[str, Any], *, from_toml: bool = False) -> Self:
        """Settings from a plain object, what its preset stands for filled in; see `Settings.from_values`.

        Raises:
            UsageError: `SETTING_UNKNOWN`; `SETTING_INVALID`, also for what the objective or the sampler cannot be.
        """
        cls.check_names(values)
        objective = values.get("objective", "grpo")
        filled = {**PRESETS.get(objective, {}), **values} if isinstance(objective, str) else values
        version = VERSIONS.get(str(filled.get("reward", "desk")))
        filled = {"reward_version": version, **filled} if version is not None else filled
        if filled.get("overlong_penalty") and "overlong_buffer" not in filled:
            length = filled.get("max_new_tokens", cls.model_fields["max_new_tokens"].default)
            if type(length) is int:
                filled = {**filled, "overlong_buffer": max(1, length // OVERLONG_SHARE)}
        rounding = TOLERANCES.get(
            (filled.get("engine", "transformers"), filled.get("dtype", "float32"))
        )
        if rounding is not None:
            filled = {"sampler_tolerance": rounding, **filled}
        settings = super().from_values(filled, from_toml=from_toml)
        _check_objective(settings)
        _check_sampler(settings)
        return settings

    @property
    def cycle(self) -> int:
        """Updates that one batch of groups serves."""
        return self.num_iterations * self.steps_per_generation

    @property
    def groups_per_step(self) -> int:
        """Whole groups that one update reads."""
        return self.groups_per_batch // self.steps_per_generation

    @property
    def datums_per_step(self) -> int:
        """Completions that one update reads."""
        return self.groups_per_step * self.group_size

    def rule(self) -> AdvantageRule:
        """What an advantage is."""
        return AdvantageRule(
            baseline="mean" if self.advantage_centre == "mean" else "others",
            scale="none" if self.advantage_scale == "none" else "deviation",
            ddof=1 if self.advantage_ddof else 0,
            epsilon=self.advantage_epsilon,
        )

    def loss(self) -> Objective:
        """The policy loss, constant by constant."""
        return Objective(
            level=self.ratio_level,
            clip=self.clip,
            low=self.clip_low,
            high=self.clip_high,
            aggregation=self.aggregation,
            divisor=self.max_new_tokens if self.aggregation == "constant" else None,
            penalty=self.kl_estimator,
            coefficient=self.kl_coefficient,
        )

    def sampler(self) -> dict[str, Any]:
        """What changes the distribution that is sampled, as a record holds it."""
        values = self.effective()
        names = ("engine", "max_new_tokens", "min_p", "temperature", "top_k", "top_p")
        return {name: values[name] for name in names}


def warnings_of(settings: RlSettings) -> list[str]:
    """What a person should know of a method before it runs: above all where it can never act."""
    found = []
    if settings.cycle == 1:
        found.append(
            "one update reads each batch of groups, so every ratio is 1: clip and ratio_level never act, and"
            " objectives that differ in nothing else give the same run"
        )
    if settings.temperature != 1.0:
        found.append(
            f"temperature is {settings.temperature} at the sampler and at the learner alike: what is trained is the"
            " distribution at that temperature"
        )
    return found


def _check_objective(settings: RlSettings) -> None:
    """Refuse what would not be the objective that it is called, or what the trainer cannot compute."""
    if settings.clip == "cispo" and settings.clip_high < 1:
        raise _invalid(
            "clip_high",
            f"clip_high is {settings.clip_high}: with cispo it is the largest weight of a token, so every weight would be"
            " below 1; 5.0 is usual",
        )
    if settings.clip == "cispo" and (settings.clip_low, settings.aggregation) != (
        0.0,
        "token_mean",
    ):
        raise _invalid(
            "clip_low" if settings.clip_low else "aggregation",
            "with cispo the trainer has no lower bound (clip_low 0.0) and takes the mean over tokens (token_mean)",
        )
    if settings.clip == "cispo" and settings.ratio_level == "sequence":
        raise _invalid("ratio_level", "cispo weighs tokens: ratio_level is token")
    if settings.clip == "ppo" and not settings.clip_low <= 1 <= settings.clip_high:
        raise _invalid("clip_low", "clip_low and clip_high are absolute ratios with 1 between them")
    if settings.kl_estimator != "k3":
        raise _invalid("kl_estimator", "the trainer computes k3 only")
    if settings.aggregation == "sum":
        raise _invalid(
            "aggregation", "the trainer has no plain sum; sequence_sum_mean is the nearest"
        )


def _check_sampler(settings: RlSettings) -> None:
    """Refuse to sample from a part of what the learner's log-probabilities range over."""
    for name, whole in _SUPPORT.items():
        if getattr(settings, name) != whole:
            raise _invalid(
                name,
                f"{name} is {getattr(settings, name)}: the sampler would leave tokens out that the learner counts, so"
                f" every ratio would be wrong; it is {whole}",
            )


def _invalid(field: str, message: str) -> UsageError:
    return UsageError("SETTING_INVALID", message, field=field)
