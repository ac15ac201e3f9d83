"""Two configurations that mean the same are one plan; one setting that differs makes another."""

from __future__ import annotations

import json
from typing import Any

import pytest
import samples

from ledger.book import Ledger
from ledger.errors import UsageError
from ledger.twins import fresh_digest
from runners.train.config import SftSettings
from runners.train.plans import read_config

SPLIT, MODEL = "s", "m"
PLAIN = 'split = "s"\nmodel = "m"\nlearning_rate = 0.001\nmax_gradient_norm = 1.0\nsteps = 5\n'
DEFAULTS = SftSettings().effective()


def digest_of(path) -> str:
    """The settings digest that a plan of a configuration file would have."""
    config = read_config(path)
    tree = samples.digest("a tree")
    return fresh_digest("sft", config.settings.effective(), config.split, tree)


def written(folder, name: str, text: str):
    """A configuration file."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def spelled_out() -> str:
    """The same plan with every default in it."""
    return json.dumps({"split": SPLIT, "model": MODEL, **DEFAULTS, "steps": 5})


SAME = {
    "other order": ("a.toml", "\n".join(reversed(PLAIN.splitlines()))),
    "without its defaults": ("a.toml", 'split = "s"\nmodel = "m"\nsteps = 5\n'),
    "with every default": ("a.json", spelled_out()),
    "as JSON": ("a.json", '{"steps": 5, "model": "m", "split": "s", "learning_rate": 0.001}'),
    "an exponent": ("a.toml", PLAIN.replace("0.001", "1e-3")),
    "a larger exponent": ("a.toml", PLAIN.replace("0.001", "0.01e-1")),
    "zeros behind": ("a.toml", PLAIN.replace("0.001", "0.001000")),
    "as a record has it": ("a.json", '{"steps": 5, "model": "m", "split": "s", "learning_rate": "0.001"}'),
    "an integer for a real": ("a.toml", PLAIN.replace("1.0", "1")),
    "underscores and a sign": ("a.toml", PLAIN.replace("steps = 5", "steps = +5")),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_what_means_the_same_has_the_same_digest(tmp_path, name):
    """Order, defaults spelled out and other forms of the same number change nothing."""
    plain = digest_of(written(tmp_path, "plain.toml", PLAIN))
    assert digest_of(written(tmp_path, *SAME[name])) == plain


def changed(value: Any) -> Any:
    """Another value of the same type as a recorded setting, whatever it means."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return [*value, value[0]] if value else ["x"]
    return f"{value}1" if isinstance(value, str) else "x"


@pytest.mark.parametrize("name", DEFAULTS)
def test_each_setting_counts(name):
    """One setting that differs, whichever it is, makes another plan."""
    tree = samples.digest("a tree")
    other = {**DEFAULTS, name: changed(DEFAULTS[name])}
    assert fresh_digest("sft", other, SPLIT, tree) != fresh_digest("sft", DEFAULTS, SPLIT, tree)


@pytest.mark.slow
def test_a_plan_written_otherwise_is_the_twin_of_a_live_run(person):
    """Recorded plans of equal meaning have equal digests, and a made-up digest is refused with the one it should be."""
    first = person.plans(seed=52, learning_rate=0.01).result["plan"]
    named = {"model": person.ids["model"], "split": person.ids["split"]}
    with Ledger.read(person.ledger) as ledger:
        body = ledger.get(first).body
    spelled = person.writes("spelled.json", {**body["settings"], **named})
    second = person.gets("plan", "sft", spelled)["plan"]
    with person.opens() as ledger:
        assert ledger.get(second).body["settings_digest"] == body["settings_digest"]
        made_up = {**body, "settings_digest": samples.digest("made up")}
        with pytest.raises(UsageError, match="SETTINGS_DIGEST_WRONG") as caught:
            ledger.append("plan.prepared", made_up, dict(ledger.get(first).refs))
    assert caught.value.expected == body["settings_digest"]
