"""Studies: what will be done and what would count, checked and recorded before any of its runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from ledger import canonical
from ledger.checks.study import Weakness, measured_rate, stream_clash, weaknesses
from ledger.digests import sha256
from ledger.errors import UsageError
from ledger.floors import DEFAULT_POLICY
from runners.settings import Settings, load_object
from verifiers.judgement.comparison import GUARDS
from verifiers.judgement.studies import SIMULATION, TESTS, figures, what_would_do

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record

SEED_NAMES = ("seed",)
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class StudySettings(Settings):
    """What a study's file says. Ids may be shortened.

    `plan` is a prepared plan whose settings all runs share; `split` is taken from it where none is named. The baseline's
    rate is that of `evaluation`, or stated as `baseline_rate`; cases and families are those of `protocol`, or stated.
    Rates, gains and `spread` (standard deviation of the true gain between seeds) are fractions of 1. A floor that is left
    out is the policy's, `effect` is then twice the minimum gain. A training seed uses `streams` sampler streams, as
    many as its trainer has processes.
    """

    name: str = ""
    baseline: str
    plan: str
    split: str | None = None
    evaluation: str | None = None
    protocol: str | None = None
    seeds: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1, max_length=16)]
    streams: Count = 1
    baseline_rate: Share | None = None
    cases: Count | None = None
    families: Count | None = None
    rollouts: Count = 1
    comparisons: Count = 1
    alpha: Share | None = None
    minimum_gain: Share | None = None
    effect: Share | None = None
    spread: Share = 0.0
    undecided_share: Share | None = None

    @classmethod
    def read(cls, path: Path) -> StudySettings:
        """A study from a TOML file, or a JSON file by its suffix.

        Raises:
            UsageError: `INPUT_MISSING`, `SETTING_UNKNOWN`, `SETTING_INVALID`.
        """
        values = load_object(path)
        values.setdefault("name", path.stem)
        for name in ("baseline", "plan", "seeds"):
            if name not in values:
                raise UsageError(
                    "SETTING_INVALID",
                    f"{path.name} names no {name}",
                    field=name,
                    hint="see an example: evidence study register --template",
                )
        return cls.from_values(values, from_toml=path.suffix != ".json")


TEMPLATE = """\
# What a study will do and what would count, before any of its runs is launched.
baseline = "4f2a81"                  # the model or checkpoint that a candidate must beat
plan = "77ab12"                      # a prepared plan whose settings every run shares, its seed aside
evaluation = "91c0de"                # how good the baseline is; or state it: baseline_rate = 0.62
seeds = [101, 202, 303, 404, 505, 606]
cases = 64                           # of the test, the same for every seed
families = 4                         # how many families they come from
rollouts = 1                         # answers to each case
minimum_gain = 0.03                  # smallest mean gain that passes
effect = 0.10                        # the gain that the study wants to be able to find
spread = 0.02                        # standard deviation of the true gain between seeds
comparisons = 1                      # planned comparisons, all of them
streams = 1                          # sampler streams a seed uses: the trainer's processes
"""


@dataclass(frozen=True)
class Drafted:
    """A study as it would be recorded, why no promotion could rest on it, and the power that is demanded."""

    body: dict[str, Any]
    refs: dict[str, str | list[str]]
    weak: list[Weakness]
    floor: str


def draft(ledger: Ledger, given: StudySettings) -> Drafted:
    """Everything about a study, computed before it is recorded.

    Raises:
        UsageError: `SETTING_INVALID`, neither a rate nor an evaluation; `STUDY_SEEDS`; `STATISTIC_INPUT`, a figure out of
            range; `REF_NOT_FOUND`, `REF_KIND`, something named is not such a record.
    """
    policy = _policy(ledger)
    refs = _refs(ledger, given)
    clash = stream_clash(given.seeds, given.streams)
    if clash is not None:
        raise UsageError("STUDY_SEEDS", clash, field="seeds")
    body = _body(ledger, given, refs, policy or DEFAULT_POLICY)
    body |= figures(body)
    weak = weaknesses(body, policy)
    body["descriptive"] = bool(weak)
    return Drafted(body, refs, weak, str((policy or DEFAULT_POLICY)["power"]))


def record(ledger: Ledger, drafted: Drafted) -> Record:
    """Record a study; what it says of itself, descriptive or not, stands in its body."""
    return ledger.append("study.registered", drafted.body, drafted.refs)


def refusal(drafted: Drafted) -> UsageError:
    """Why a study is not registered, every reason in one message, and what would do as its hint."""
    first = drafted.weak[0]
    message = "; ".join(item.message for item in drafted.weak)
    codes = {item.code for item in drafted.weak}
    hint = None
    if codes == {"STUDY_UNDERPOWERED"}:
        hint = f"{what_would_do(drafted.body, drafted.floor)}; or register it as descriptive: evidence study register FILE --underpowered"
    return UsageError(first.code, message, field=first.field, hint=hint)


def _policy(ledger: Ledger) -> dict[str, Any] | None:
    named = ledger.state().policy
    return ledger.get(named).body if named else None


def _refs(ledger: Ledger, given: StudySettings) -> dict[str, str | list[str]]:
    plan = ledger.get(given.plan, "plan.prepared")
    split = ledger.get(given.split, "split.declared").id if given.split else str(plan.ref("split"))
    baseline = ledger.get(given.baseline, "model.registered", "checkpoint.published")
    refs: dict[str, str | list[str]] = {"baseline": baseline.id, "split": [split]}
    if given.evaluation:
        refs["evaluation"] = ledger.get(given.evaluation, "evaluation.completed").id
    if given.protocol:
        refs["protocol"] = ledger.get(given.protocol, "protocol.registered").id
    return refs


def _body(
    ledger: Ledger,
    given: StudySettings,
    refs: dict[str, str | list[str]],
    floors: dict[str, Any],
) -> dict[str, Any]:
    plan = ledger.get(given.plan, "plan.prepared").body
    settings = {name: value for name, value in plan["settings"].items() if name not in SEED_NAMES}
    cases, families = _cases(ledger, given, refs, floors)
    minimum_gain = _or(given.minimum_gain, floors["minimum_gain"])
    return {
        "name": given.name,
        "seeds": list(given.seeds),
        "streams": given.streams,
        "settings": settings,
        "settings_digest": sha256(canonical.encode(settings)),
        "tests": list(TESTS),
        "comparisons": given.comparisons,
        "alpha": _or(given.alpha, floors["alpha"]),
        "minimum_gain": minimum_gain,
        "effect": _or(given.effect, canonical.real(2 * canonical.parse_real(minimum_gain))),
        "spread": canonical.real(given.spread),
        "baseline_rate": _rate(ledger, given, refs),
        "cases": cases,
        "families": families,
        "rollouts": given.rollouts,
        "undecided_share": _or(given.undecided_share, floors["undecided_share"]),
        "guards": list(GUARDS),
        "simulation": dict(SIMULATION),
    }


def _rate(ledger: Ledger, given: StudySettings, refs: dict[str, str | list[str]]) -> str:
    if "evaluation" in refs:
        if given.baseline_rate is not None:
            raise UsageError(
                "SETTING_INVALID",
                "baseline_rate and evaluation both say how good the baseline is: leave one out",
                field="baseline_rate",
            )
        return measured_rate(ledger.get(str(refs["evaluation"])))
    if given.baseline_rate is None:
        raise UsageError(
            "SETTING_INVALID",
            "how good is the baseline? name its evaluation, or state its rate as baseline_rate",
            field="baseline_rate",
            hint="evaluate it first: evidence eval run PROTOCOL MODEL",
        )
    return canonical.real(given.baseline_rate)


def _cases(
    ledger: Ledger,
    given: StudySettings,
    refs: dict[str, str | list[str]],
    floors: dict[str, Any],
) -> tuple[int, int]:
    if "protocol" not in refs:
        return given.cases or floors["cases"], given.families or 1
    body = ledger.get(str(refs["protocol"])).body
    cases, families = sum(body["case_kinds"].values()), len(body["families"])
    for field, mine, theirs in (
        ("cases", given.cases, cases),
        ("families", given.families, families),
    ):
        if mine not in (None, theirs):
            raise UsageError(
                "SETTING_INVALID", f"{field} is {mine}, the protocol has {theirs}", field=field
            )
    return cases, families


def _or(value: float | None, floor: str) -> str:
    return floor if value is None else canonical.real(value)
