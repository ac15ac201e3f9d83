"""Rules about studies and the plans that name one (docs/spec/rules.md, S1 to S4)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple, cast

from ledger import canonical
from ledger.checks.context import Check, Context
from ledger.digests import sha256
from ledger.errors import EvidenceError
from ledger.floors import DEFAULT_POLICY
from ledger.record import Record
from ledger.records.evaluation import StudyRegistered

STREAM_SPACE: Final = 2**32
"""Seeds of sampler streams are taken modulo this: libraries keep 32 bits of them."""


class Weakness(NamedTuple):
    """Why no promotion can rest on a study."""

    code: str
    field: str
    message: str


def _registered(context: Context) -> None:
    """S1: seeds and streams are apart; limits are the policy's or stricter and can be reached, or it is descriptive."""
    body = context.record.body
    if body["settings_digest"] != sha256(canonical.encode(body["settings"])):
        raise context.fail(
            "STUDY_WRONG", "settings_digest is not of the settings", field="body.settings_digest"
        )
    clash = stream_clash(body["seeds"], body["streams"])
    if clash is not None:
        raise context.fail("STUDY_SEEDS", clash, field="body.seeds")
    weak = weaknesses(body, _policy(context))
    if weak and not body["descriptive"]:
        first = weak[0]
        raise context.fail(first.code, first.message, field=f"body.{first.field}")


def _measured(context: Context) -> None:
    """S2: a baseline's rate, cases and families are those of the baseline's evaluation and of the protocol named."""
    body = cast("StudyRegistered", context.body)
    evaluation, protocol = context.ref("evaluation"), context.ref("protocol")
    if evaluation is not None:
        _same(context, "baseline_rate", body.baseline_rate, measured_rate(evaluation))
        arms = [context.fetch(item) for item in evaluation.ref_list("arm")]
        subjects = {arm.ref("model") or arm.ref("checkpoint") for arm in arms}
        _same(context, "evaluation", context.need("baseline").id, ", ".join(map(str, subjects)))
    if protocol is not None:
        _same(context, "cases", body.cases, sum(protocol.body["case_kinds"].values()))
        _same(context, "families", body.families, len(protocol.body["families"]))


def _joined(context: Context) -> None:
    """S3: a plan of a study has one of its seeds, one of its splits and all of its settings."""
    study = context.ref("study")
    if study is None:
        return
    plan = context.record.body
    seed = plan["seeds"].get("training")
    if seed not in study.body["seeds"]:
        raise context.fail(
            "STUDY_OTHER",
            "the plan's training seed is not one of the study's",
            field="body.seeds",
            expected=", ".join(map(str, study.body["seeds"])),
            actual=str(seed),
        )
    if context.need("split").id not in study.ref_list("split"):
        raise context.fail("STUDY_OTHER", "the plan's split is not the study's", field="refs.split")
    for name, wanted in sorted(study.body["settings"].items()):
        if plan["settings"].get(name) != wanted:
            raise context.fail(
                "STUDY_OTHER",
                f"setting {name} is not the study's",
                field=f"body.settings.{name}",
                expected=str(wanted),
                actual=str(plan["settings"].get(name)),
            )


def _one_seed(context: Context) -> None:
    """S4: a plan's training seed is the seed of its settings, where both are named."""
    plan = context.record.body
    named, told = plan["settings"].get("seed"), plan["seeds"].get("training")
    # a settings' true is equal to 1, and no seed
    if named is None or told is None or (type(named) is int and named == told):
        return
    raise context.fail(
        "SEED_DIFFERS",
        "the plan's training seed is not the one that its settings name",
        field="body.seeds",
        expected=str(named),
        actual=str(told),
    )


def stream_clash(seeds: Sequence[int], streams: int) -> str | None:
    """Why training seeds are not apart, or None: seed s draws from the streams s to s + streams - 1.

    A trainer on several processes seeds each with its seed plus its rank, so neighbouring seeds would share streams.
    """
    ordered = sorted(seed % STREAM_SPACE for seed in seeds)
    if len(set(ordered)) < len(ordered):
        twice = next(one for one, two in itertools.pairwise(ordered) if one == two)
        return f"training seed {twice} stands twice"
    around = [*ordered[1:], ordered[0] + STREAM_SPACE]
    for one, two in zip(ordered, around, strict=True):
        if two - one < streams:
            near = f"{one} and {two % STREAM_SPACE}"
            return f"seeds {near} overlap: each uses {streams} sampler streams from its number on"
    return None


def weaknesses(body: Mapping[str, Any], policy: Mapping[str, Any] | None) -> list[Weakness]:
    """Everything for which no promotion can rest on a study, by its own figures.

    Args:
        body: the body of `study.registered`.
        policy: the body of the policy in force; the defaults where None.
    """
    floors = policy or DEFAULT_POLICY
    return [*_laxer(body, floors), *_unreachable(body), *_weak(body, floors)]


def _laxer(body: Mapping[str, Any], floors: Mapping[str, Any]) -> list[Weakness]:
    real: Callable[[Any], Fraction] = Fraction
    given = {**body, "seeds": len(body["seeds"])}
    at_least, at_most = ("seeds", "cases", "minimum_gain"), ("alpha", "undecided_share")
    lax = [name for name in at_least if real(given[name]) < real(floors[name])]
    lax += [name for name in at_most if real(given[name]) > real(floors[name])]
    return [
        Weakness(
            "STUDY_LAXER",
            name,
            f"{name} {given[name]} is laxer than the policy's {floors[name]}",
        )
        for name in lax
    ]


def _unreachable(body: Mapping[str, Any]) -> list[Weakness]:
    found = []
    wanted, most = Fraction(body["minimum_gain"]), Fraction(body["attainable_gain"])
    if wanted > most:
        found.append(
            Weakness(
                "STUDY_UNATTAINABLE",
                "minimum_gain",
                f"a minimum gain of {points(wanted)} points is unattainable: the baseline leaves {points(most)}",
            )
        )
    if Fraction(body["minimum_p"]) > Fraction(body["alpha"]):
        found.append(
            Weakness(
                "STUDY_UNATTAINABLE",
                "seeds",
                f"p = {body['minimum_p']} is the smallest that {len(body['seeds'])} seeds and "
                f"{body['comparisons']} planned comparison(s) allow, {body['alpha']} is demanded",
            )
        )
    return found


def _weak(body: Mapping[str, Any], floors: Mapping[str, Any]) -> list[Weakness]:
    floor, best = Fraction(floors["power"]), Fraction(body["best_power"])
    design = f"{len(body['seeds'])} seeds of {body['cases'] * body['rollouts']} answers"
    if best < floor:
        message = (
            f"underpowered: power {_short(best)} at best with {design}, {floors['power']} demanded"
        )
        return [Weakness("STUDY_UNDERPOWERED", "best_power", message)]
    power = Fraction(body["power"])
    if power >= floor:
        return []
    gain = points(Fraction(body["effect"]))
    message = f"underpowered: power {_short(power)} for a gain of {gain} points with {design}, {floors['power']} demanded"
    return [Weakness("STUDY_UNDERPOWERED", "power", message)]


def measured_rate(evaluation: Record) -> str:
    """A baseline's share of right answers among those decided, as a record has it."""
    right, wrong = evaluation.body["success"], evaluation.body["failure"]
    if right + wrong == 0:
        raise EvidenceError("STUDY_WRONG", "the baseline's evaluation decided no case")
    return canonical.real(right / (right + wrong))


def points(share: Fraction) -> str:
    """A share in percentage points, at most three digits after the point."""
    return f"{float(share * 100):.3f}".rstrip("0").rstrip(".")


def _short(share: Fraction) -> str:
    return f"{float(share):.3f}"


def _policy(context: Context) -> Mapping[str, Any] | None:
    named = context.state.policy
    return context.fetch(named).body if named is not None else None


def _same(context: Context, field: str, claimed: object, found: object) -> None:
    if claimed != found:
        raise context.fail(
            "STUDY_WRONG",
            f"{field} is not that of the record named",
            field=field,
            expected=str(found),
            actual=str(claimed),
        )


CHECKS: dict[str, tuple[Check, ...]] = {
    "study.registered": (_registered, _measured),
    "plan.prepared": (_joined, _one_seed),
}
