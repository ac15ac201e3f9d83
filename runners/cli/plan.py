"""Commands about plans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runners.cli import planned
from runners.cli.commands import Group
from runners.cli.context import App, pass_app

if TYPE_CHECKING:
    from ledger.book import Ledger
    from runners.train.plans import Descent, SftConfig


@click.group(cls=Group)
def plan() -> None:
    """Prepare a run: every effective setting, before it does anything."""


@plan.command(
    example="evidence plan sft sft.toml --check\nevidence plan sft sft.toml\n"
    "evidence plan sft --like 4f2a81\nevidence plan sft sft.toml --init-from 9c03de\n"
    "evidence plan sft --continue 9c03de"
)
@click.argument("config", type=click.Path(path_type=Path), required=False)
@click.option("--like", metavar="RUN", help="The settings of this run or plan, and a fresh start.")
@click.option(
    "--init-from", metavar="CHECKPOINT", help="Start from these weights; all else begins anew."
)
@click.option(
    "--continue",
    "continued",
    metavar="CHECKPOINT",
    help="Go on exactly from here under a plan of its own, within the first plan's budget.",
)
@click.option(
    "--fork", is_flag=True, help="With --continue: beside another run that went on from it."
)
@click.option("--study", metavar="STUDY", help="The run is one of this study's, by its seed.")
@click.option("--check", is_flag=True, help="Count and print everything, record nothing.")
@pass_app
def sft(
    app: App,
    config: Path | None,
    like: str | None,
    init_from: str | None,
    continued: str | None,
    fork: bool,
    study: str | None,
    check: bool,
) -> None:
    """Plan supervised fine-tuning.

    CONFIG is a TOML or JSON file that names a split and a model and the settings that differ from the
    defaults. Every effective setting is printed, and each row that is cut or cannot be trained on is listed with the
    reason. --like and --continue take the settings from there.
    """
    from runners.prepare.shelf import default_shelf
    from runners.train.plans import prepare_sft, record_plan

    _check_choice(config, like, init_from, continued, fork=fork)
    with app.read_ledger() if check else app.open_ledger() as ledger:
        descent = _descent(ledger, like, init_from, continued, fork=fork)
        chosen = _config(ledger, config, descent)
        with app.progress("counting rows") as bar:
            prepared = prepare_sft(ledger, chosen, default_shelf(), descent, planned.telling(bar))
        if study is not None:
            prepared.refs["study"] = ledger.get(study, "study.registered").id
        record = None if check else record_plan(ledger, prepared)
    command = planned.command(config, like, init_from, continued, study, fork=fork)
    planned.emit(app, prepared, record, command)


def _check_choice(
    config: Path | None,
    like: str | None,
    init_from: str | None,
    continued: str | None,
    *,
    fork: bool,
) -> None:
    if sum(name is not None for name in (like, init_from, continued)) > 1:
        raise click.UsageError("--like, --init-from and --continue are three things: give one")
    if config is None and like is None and continued is None:
        raise click.UsageError("name a CONFIG, or --like RUN, or --continue CHECKPOINT")
    if config is not None and like is not None:
        raise click.UsageError("--like takes every setting from there: leave CONFIG out")
    if fork and continued is None:
        raise click.UsageError("--fork says how to --continue a checkpoint")


def _descent(
    ledger: Ledger, like: str | None, init_from: str | None, continued: str | None, *, fork: bool
) -> Descent:
    from runners.train.plans import Descent

    if like is not None:
        found = ledger.get(like, "run.launched", "plan.prepared")
        plan = found if found.kind == "plan.prepared" else ledger.get(str(found.ref("plan")))
        return Descent(like=plan)
    name = init_from or continued
    if name is None:
        return Descent()
    parent = ledger.get(name, "checkpoint.published")
    return Descent(parent=parent, exact=continued is not None, fork=fork)


def _config(ledger: Ledger, config: Path | None, descent: Descent) -> SftConfig:
    from runners.train.plans import config_of, plan_of, read_config

    if config is not None:
        return read_config(config)
    if descent.like is not None:
        planned.check_same_method(descent.like, "sft")
        return config_of(descent.like)
    assert descent.parent is not None  # one of the three is there
    return config_of(plan_of(ledger, descent.parent))


@plan.command(
    example="evidence plan rl rl.toml --check\nevidence plan rl rl.toml --init-from 9c03de\n"
    "evidence plan rl --like 4f2a81"
)
@click.argument("config", type=click.Path(path_type=Path), required=False)
@click.option("--like", metavar="RUN", help="The settings of this run or plan, and a fresh start.")
@click.option(
    "--init-from", metavar="CHECKPOINT", help="Start from these weights; all else begins anew."
)
@click.option("--check", is_flag=True, help="Count and print everything, record nothing.")
@pass_app
def rl(app: App, config: Path | None, like: str | None, init_from: str | None, check: bool) -> None:
    """Plan group-relative reinforcement.

    CONFIG is a TOML or JSON file that names a split, a model, an objective and the settings that differ. The objective
    is a preset (grpo, gspo, dapo, cispo, dr_grpo): every constant that it stands for is printed and recorded. The reward
    has to be audited before. With --init-from the run starts from a checkpoint, usually a supervised one.
    """
    from runners.prepare.shelf import default_shelf
    from runners.train.plans import record_plan
    from runners.train.rl_plans import config_of, keep_place, prepare_rl, read_config

    if (config is None) == (like is None):
        raise click.UsageError("name a CONFIG, or --like RUN: one of the two")
    if like is not None and init_from is not None:
        raise click.UsageError("--like and --init-from are two things: give one")
    with app.read_ledger() if check else app.open_ledger() as ledger:
        descent = _descent(ledger, like, init_from, None, fork=False)
        if config is not None:
            chosen = read_config(config)
        else:
            assert descent.like is not None  # one of the two is there
            planned.check_same_method(descent.like, "rl")
            chosen = config_of(descent.like)
        prepared = prepare_rl(ledger, chosen, default_shelf(), descent)
        record = None if check else record_plan(ledger, prepared)
        if record is not None:
            keep_place(ledger, record, chosen, descent)
    command = planned.command(config, like, init_from, None, None, fork=False, method="rl")
    planned.emit(app, prepared, record, command)
