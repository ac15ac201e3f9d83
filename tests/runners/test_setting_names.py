"""What is said of a setting that does not exist: the nearest name, ours for another tool's, or that it is a section."""

from __future__ import annotations

import json

import pytest

from ledger.errors import UsageError
from runners.assess.protocols import read_config as read_protocol
from runners.train.config import SftSettings
from runners.train.foreign_names import FOREIGN
from runners.train.plans import NAMED, read_config

GIVEN = {"split": "s", "model": "m"}


def refused(tmp_path, values, *, toml=False):
    """The error of a configuration in JSON, or of the same in TOML."""
    path = tmp_path / ("a.toml" if toml else "a.json")
    path.write_text(_toml(values) if toml else json.dumps(values))
    with pytest.raises(UsageError) as caught:
        read_config(path)
    return caught.value


def _toml(values):
    plain = [
        f"{name} = {json.dumps(value)}"
        for name, value in values.items()
        if not isinstance(value, dict)
    ]
    sections = [
        "\n".join([f"[{name}]", *(f"{key} = {json.dumps(item)}" for key, item in value.items())])
        for name, value in values.items()
        if isinstance(value, dict)
    ]
    return "\n".join([*plain, *sections])


@pytest.mark.parametrize("toml", [False, True], ids=["json", "toml"])
@pytest.mark.parametrize(
    ("more", "field", "words"),
    [
        pytest.param({"learning_rat": 1}, "learning_rat", "the nearest is learning_rate", id="a letter less"),
        pytest.param({"Learning-Rate": 1}, "Learning-Rate", "the nearest is learning_rate", id="case and dash"),
        pytest.param({"size_batch": 1}, "size_batch", "the nearest is batch_size", id="words turned round"),
        pytest.param({"xyzzy": 1}, "xyzzy", "no setting is named xyzzy", id="nothing near"),
        pytest.param({"splt": "s"}, "splt", "the nearest is split", id="a name beside the settings"),
        pytest.param({"chat_tempalte": "f"}, "chat_tempalte", "the nearest is chat_template", id="letters turned round"),
        pytest.param({"num_train_epochs": 3}, "num_train_epochs", "a run is planned in steps", id="another tool's, without ours"),
        pytest.param({"per_device_train_batch_size": 3}, "per_device_train_batch_size", "is called batch_size here", id="another tool's"),
        pytest.param({"lora_r": 3}, "lora_r", "is called lora_rank here", id="another adapter's"),
        pytest.param({"training": {"steps": 3}}, "training", "write steps at the top", id="a section"),
        pytest.param({"lora": {"lora_r": 3}}, "lora", "write lora_rank at the top", id="a section in other names"),
        pytest.param({"extra": {"a": 3}}, "extra", "is a section, and there are none", id="a section of nothing known"),
    ],
)  # fmt: skip
def test_an_unknown_name_is_answered_with_a_known_one(tmp_path, more, field, words, toml):
    """TOML and JSON alike: the name is refused with what was probably meant, before anything else is read."""
    error = refused(tmp_path, {**GIVEN, **more}, toml=toml)
    assert (error.code, error.field) == ("SETTING_UNKNOWN", field)
    assert words in error.message
    assert error.hint


@pytest.mark.parametrize("toml", [False, True], ids=["json", "toml"])
@pytest.mark.parametrize(
    ("more", "field", "words"),
    [
        pytest.param({"steps": "6"}, "steps", "integer, not the text '6'", id="text for an integer"),
        pytest.param({"steps": 1.5}, "steps", "integer, not 1.5", id="a real for an integer"),
        pytest.param({"steps": True}, "steps", "integer, not true", id="a boolean for an integer"),
        pytest.param({"lora_targets": "q_proj"}, "lora_targets", "not the text 'q_proj'", id="text for a list"),
        pytest.param({"steps": {"a": 1}}, "steps", "not a section", id="a section for an integer"),
        pytest.param({"gradient_checkpointing": "yes"}, "gradient_checkpointing", "boolean, not the text 'yes'", id="text for a boolean"),
        pytest.param({"template_date": "yesterday"}, "template_date", "not the text 'yesterday'", id="no date"),
        pytest.param({"template_date": "2026-02-30"}, "template_date", "day", id="a day that does not exist"),
        pytest.param({"split": 7}, "split", "names no split", id="a number for a split"),
        pytest.param({"split": {"a": 1}}, "split", "names no split", id="a section for a split"),
        pytest.param({"chat_template": 7}, "chat_template", "string, not 7", id="a number for a file"),
    ],
)  # fmt: skip
def test_a_wrong_type_says_what_was_given(tmp_path, more, field, words, toml):
    """TOML and JSON alike: the setting is named, with what it takes and what it got."""
    error = refused(tmp_path, {**GIVEN, **more}, toml=toml)
    assert (error.code, error.field) == ("SETTING_INVALID", field)
    assert words in error.message


def test_every_name_of_another_tool_leads_somewhere():
    """It is a name of ours, or a sentence."""
    known = {*SftSettings.model_fields, *NAMED}
    for name, here in FOREIGN.items():
        assert here in known or " " in here, name


def test_a_protocols_names_are_known_beside_its_settings(tmp_path):
    """A misspelt name of a protocol's file is answered from both."""
    for given, near in (({"desk_case": 3}, "desk_cases"), ({"max_new_token": 3}, "max_new_tokens")):
        path = tmp_path / "cases.json"
        path.write_text(json.dumps({"split": "s", **given}))
        with pytest.raises(UsageError, match=f"the nearest is {near}") as caught:
            read_protocol(path)
        assert caught.value.code == "SETTING_UNKNOWN"
