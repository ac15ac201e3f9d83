"""Plans of reinforcement runs: tasks, reward and every constant of the objective, written down before anything is sampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledger.digests import sha256
from ledger.errors import UsageError
from ledger.twins import fresh_digest
from runners.environment import usable_cores
from runners.prepare.shelf import model_folder
from runners.settings import load_object
from runners.train.expansion import expand_body
from runners.train.plans import (
    FRESH,
    Descent,
    Prepared,
    audited_refs,
    descended,
    plan_body,
    plan_of,
)
from runners.train.rl_config import RlSettings, warnings_of
from runners.train.serving.place import NAMES, Place, keep, kept
from runners.train.tasks import SCRIPTED, task_rows
from runners.train.templates import in_effect, model_template
from runners.train.world_size import crowded

if TYPE_CHECKING:
    from pathlib import Path

    from ledger.book import Ledger
    from ledger.record import Record
    from verifiers.data.hand_out import HandedOut

METHOD = "rl"
NAMED = ("split", "model")
FEW_TASKS = "the split has fewer tasks than a batch has groups: a batch asks some of them twice"


@dataclass(frozen=True)
class RlConfig:
    """What a configuration file says: which split, which model, the settings that differ, where a server samples."""

    split: str
    model: str
    settings: RlSettings
    place: Place | None = None


def read_config(path: Path) -> RlConfig:
    """A plan's configuration from TOML, or JSON by its suffix.

    Raises:
        UsageError: `INPUT_MISSING`, `SETTING_UNKNOWN`, `SETTING_INVALID`; `SAMPLER_UNREACHABLE`.
    """
    values = load_object(path)
    RlSettings.check_names(values, *NAMED, *NAMES)
    place = Place.of({name: values.pop(name, None) for name in NAMES})
    if place is not None and values.get("engine") == "vllm":
        values |= {"vllm_server": place.kind, "vllm_version": place.version()}
    elif place is not None:
        raise UsageError(
            "SETTING_INVALID", "vllm_python and vllm_url go with engine vllm", field="engine"
        )
    named = {name: values.pop(name, None) for name in NAMED}
    for name, value in named.items():
        if not isinstance(value, str):
            raise UsageError(
                "SETTING_INVALID",
                f"{path.name} names no {name}",
                field=name,
                hint=f'add {name} = "ID"',
            )
    settings = RlSettings.from_values(values)
    return RlConfig(str(named["split"]), str(named["model"]), settings, place)


def config_of(plan: Record) -> RlConfig:
    """The configuration of a plan that was made: its split, its model, every setting."""
    settings = RlSettings.from_values(plan.body["settings"])
    return RlConfig(str(plan.ref("split")), str(plan.ref("model")), settings)


def keep_place(ledger: Ledger, plan: Record, config: RlConfig, descent: Descent) -> None:
    """Keep where the sampling server of a recorded plan is: as its file says, or as the plan has it that it is like."""
    place = config.place
    if place is None and descent.like is not None and config.settings.engine == "vllm":
        place = kept(ledger.path, descent.like.id)
    if place is not None:
        keep(ledger.path, plan.id, place)


def prepare_rl(ledger: Ledger, config: RlConfig, shelf: Path, descent: Descent = FRESH) -> Prepared:
    """Everything about a reinforcement run, before launch; nothing is recorded or kept.

    Args:
        ledger: open for reading or writing.
        config: what to plan.
        shelf: where model folders lie.
        descent: what is taken from elsewhere: another plan's settings, or a checkpoint's weights.

    Raises:
        UsageError: `REF_MISSING`, `LEAKAGE_NOT_ACCEPTED`, `MODEL_NOT_HERE`, `ROW_UNTRAINABLE`; `REWARD_NOT_AUDITED`;
            `TEMPLATE_OTHER`, the parent was trained with another template.
        EvidenceError: `HELD_OUT_ROW`; `MODEL_FILES_CHANGED`; `TEMPLATE_INVALID`.
    """
    settings = config.settings
    split = ledger.get(config.split, "split.declared")
    model = ledger.get(config.model, "model.registered")
    refs = audited_refs(ledger, split, model)
    reward = audited_reward(ledger, settings)
    refs["reward"] = reward.id
    folder = model_folder(shelf, model)
    _check_template(ledger, folder, model, descent)
    figures = _figures(settings, *task_rows(ledger, split, settings.reward))
    digest = fresh_digest(
        METHOD,
        settings.effective(),
        split.id,
        model.body["tree"],
        reward.body["code"]["digest"],
    )
    body = plan_body(METHOD, settings, digest, figures)
    body["warnings"] += [*warnings_of(settings), *crowded(settings, usable_cores())]
    if figures["rows"]["effective"] < settings.groups_per_batch:
        body["warnings"].append(FEW_TASKS)
    expand_body(body, folder, model.body["name"], settings)
    return Prepared(descended(ledger, body, refs, descent), refs, figures)


def audited_reward(ledger: Ledger, settings: RlSettings) -> Record:
    """The newest audit of the reward that the settings name.

    Raises:
        UsageError: `REWARD_NOT_AUDITED`, there is none, or it found an inversion.
    """
    named = (settings.reward, settings.reward_version)
    audits = [
        item
        for item in ledger.of_kind("reward.audited")
        if (item.body["name"], item.body["reward_version"]) == named
    ]
    if not audits or audits[-1].body["inversions"]:
        found = (
            f"its audit orders {audits[-1].body['inversions']} pairs wrongly"
            if audits
            else "it was never audited here"
        )
        raise UsageError(
            "REWARD_NOT_AUDITED",
            f"reward {named[0]}, version {named[1]}: {found}",
            field="reward",
            record=audits[-1].id if audits else None,
            hint=f"audit it first: evidence reward audit {named[0]}",
        )
    return audits[-1]


def _check_template(ledger: Ledger, folder: Path, model: Record, descent: Descent) -> None:
    """Prompts are rendered with the model's own template; a parent that learned another one is refused."""
    text = model_template(folder, str(model.body["name"]))
    in_effect(text, None)
    if descent.parent is None:
        return
    told: dict[str, Any] | None = plan_of(ledger, descent.parent).body.get("reading")
    if told is not None and told["template"]["digest"] != sha256(text.encode()):
        raise UsageError(
            "TEMPLATE_OTHER",
            "the checkpoint was trained with another chat template than its model's own",
            field="chat_template",
            expected=told["template"]["digest"],
            actual=sha256(text.encode()),
        )


def _figures(
    settings: RlSettings, kept: list[HandedOut], left_out: list[HandedOut]
) -> dict[str, Any]:
    """The counts of a plan, shaped like those of a supervised one."""
    datums = settings.steps * settings.datums_per_step
    draws = -(-settings.steps // settings.cycle)
    return {
        "rows": {
            "input": len(kept) + len(left_out),
            "effective": len(kept),
            "truncated": 0,
            "dropped": len(left_out),
        },
        "tokens": {},
        "datums": datums,
        "epochs": f"{draws * settings.groups_per_batch / len(kept):.2f}",
        "reasons": {SCRIPTED: len(left_out)} if left_out else {},
        "listed": [
            {
                "row": item.digest,
                "id": item.row.get("id"),
                "reason": SCRIPTED,
                "detail": "the customer speaks again, and an episode has one turn",
                "tokens": None,
                "labels": None,
                "lost": None,
            }
            for item in left_out
        ],
    }
