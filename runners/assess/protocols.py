"""Protocols: which cases are put to which models, how they answer, how they are scored."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger import canonical
from ledger.blobs import JSON, TEXT
from ledger.errors import UsageError
from runners.assess.config import GenerationSettings
from runners.prepare.data import put_lines, roles_of, split_rows
from runners.settings import load_object
from runners.train.templates import template_named, template_text
from verifiers.data.hand_out import hand_out
from verifiers.data.identity import dataset_identity, row_digest
from verifiers.judgement.comparison import GUARDS
from verifiers.judgement.judging import PASS_KINDS
from verifiers.judgement.rubric import default_rubric
from verifiers.rewards.desk_baselines import take_cases

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record

KNOWN = (
    "name",
    "split",
    "judge",
    "judging",
    "role",
    "desk_cases",
    "dialogue_cases",
    "undecided_share",
)


@dataclass(frozen=True)
class ProtocolConfig:
    """What a protocol's file says.

    `split` and `judge` are record ids, `judging` is how the judge is asked; `desk_cases` and `dialogue_cases` are how many of each kind are taken, whole
    twins only; `template` is the text of a chat template that was read from a file; the rest are generation settings.
    """

    name: str
    split: str
    judge: str | None
    role: str
    desk_cases: int
    dialogue_cases: int
    undecided_share: str
    generation: GenerationSettings
    template: str | None = None
    judging: str = "likelihood"


def read_config(path: Path) -> ProtocolConfig:
    """A protocol's configuration from TOML, or JSON by its suffix.

    Raises:
        UsageError: `INPUT_MISSING`, `SETTING_UNKNOWN`, `SETTING_INVALID`.
    """
    values = load_object(path)
    GenerationSettings.check_names(values, *KNOWN)
    known = {name: values.pop(name) for name in KNOWN if name in values}
    if not isinstance(known.get("split"), str):
        raise UsageError(
            "SETTING_INVALID", f"{path.name} names no split", field="split", hint='add split = "ID"'
        )
    if known.get("role", "validation") not in ("validation", "test"):
        raise UsageError("SETTING_INVALID", "role is validation or test", field="role")
    if known.get("judging", "likelihood") not in PASS_KINDS:
        raise UsageError("SETTING_INVALID", "judging is likelihood or json", field="judging")
    template = template_named(path.parent, values)
    return ProtocolConfig(
        name=_typed(known, "name", str, path.stem),
        split=known["split"],
        judge=_typed(known, "judge", str, None),
        role=known.get("role", "validation"),
        desk_cases=_typed(known, "desk_cases", int, 64),
        dialogue_cases=_typed(known, "dialogue_cases", int, 0),
        undecided_share=canonical.real(_typed(known, "undecided_share", float, 0.05)),
        generation=GenerationSettings.from_values(values, from_toml=path.suffix != ".json"),
        template=template,
        judging=known.get("judging", "likelihood"),
    )


def _typed(values: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    value = values.get(name, default)
    if value is not default and type(value) is not kind:
        raise UsageError("SETTING_INVALID", f"{name} is not of type {kind.__name__}", field=name)
    return value


def register(ledger: Ledger, config: ProtocolConfig) -> Record:
    """Choose the cases and record the protocol, before any model sees them.

    Raises:
        UsageError: `CASES_TOO_FEW`, the role has fewer cases; `JUDGE_MISSING`, dialogues without a judge;
            `REF_NOT_FOUND`, `REF_KIND`, split or judge is no such record.
    """
    split = ledger.get(config.split, "split.declared")
    judge = ledger.get(config.judge, "model.registered") if config.judge else None
    cases = choose_cases(ledger, split, config)
    text = config.template
    if text is None and config.generation.chat_template is not None:
        text = template_text(ledger.blobs.read(config.generation.chat_template))
    template = None if text is None else ledger.blobs.put(text.encode(), TEXT)
    rubric = None
    if judge is not None:
        rubric = ledger.blobs.put(canonical.encode(default_rubric(config.judging)), JSON)
    refs: dict[str, str | list[str]] = {"split": split.id}
    if judge is not None:
        refs["judge"] = judge.id
    return ledger.append(
        "protocol.registered",
        {
            "name": config.name,
            "role": config.role,
            "cases": put_lines(ledger, cases).model_dump(),
            "identity": dataset_identity(row_digest(case) for case in cases),
            "case_kinds": dict(Counter(case["kind"] for case in cases)),
            "families": dict(Counter(case["family"] for case in cases)),
            "generation": config.generation.effective(),
            "template": template.model_dump() if template else None,
            "judging": config.judging if judge else None,
            "passes": list(PASS_KINDS[config.judging]) if judge else [],
            "rubric": rubric.model_dump() if rubric else None,
            "undecided_share": config.undecided_share,
            "guards": list(GUARDS),
        },
        refs,
    )


def choose_cases(ledger: Ledger, split: Record, config: ProtocolConfig) -> list[dict[str, Any]]:
    """The protocol's cases: a fair sample of the role's desk cases, then its first dialogues.

    Raises:
        UsageError: `CASES_TOO_FEW`.
    """
    rows, role_of = split_rows(ledger, split), roles_of(ledger, split)
    desk = [dict(item.row) for item in hand_out(rows, role_of, config.role, "desk")]
    dialogues = [dict(item.row) for item in hand_out(rows, role_of, config.role, "dialogue")]
    chosen = [dict(case) for case in take_cases(desk, config.desk_cases)]
    chosen += dialogues[: config.dialogue_cases]
    if not chosen or len(dialogues) < config.dialogue_cases or (config.desk_cases and not desk):
        raise UsageError(
            "CASES_TOO_FEW",
            f"role {config.role} has {len(desk)} desk and {len(dialogues)} dialogue cases",
            field="desk_cases",
        )
    return chosen
