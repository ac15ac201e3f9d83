"""Settings files: complete, strict, with the nearest name."""

from __future__ import annotations

import pytest

from ledger.canonical import decode, encode
from ledger.errors import UsageError
from runners.assess.config import GenerationSettings, LikelihoodSettings
from runners.train.config import SftSettings, read_settings, settings_from


@pytest.mark.parametrize("kind", [SftSettings, GenerationSettings, LikelihoodSettings])
def test_effective_settings_come_back_from_a_record(kind):
    """Every effective setting survives the canonical form and gives the same settings."""
    settings = kind()
    assert kind.from_values(decode(encode(settings.effective()))) == settings
    assert set(settings.effective()) == set(kind.model_fields)


@pytest.mark.parametrize(
    ("values", "code", "field", "word"),
    [
        pytest.param(
            {"lerning_rate": 1}, "SETTING_UNKNOWN", "lerning_rate", "learning_rate", id="misspelt"
        ),
        pytest.param({"xyzzy": 1}, "SETTING_UNKNOWN", "xyzzy", "no setting", id="nothing near"),
        pytest.param({"steps": 0}, "SETTING_INVALID", "steps", "greater", id="too small"),
        pytest.param(
            {"steps": True}, "SETTING_INVALID", "steps", "integer", id="a boolean is no number"
        ),
        pytest.param(
            {"steps": "9"}, "SETTING_INVALID", "steps", "integer", id="text is no integer"
        ),
        pytest.param(
            {"learning_rate": "1e-3"},
            "SETTING_INVALID",
            "learning_rate",
            "shortest",
            id="not as real writes it",
        ),
        pytest.param(
            {"learning_rate": float("nan")},
            "SETTING_INVALID",
            "learning_rate",
            "",
            id="not a number",
        ),
        pytest.param(
            {"schedule": "stairs"}, "SETTING_INVALID", "schedule", "linear", id="no such choice"
        ),
        pytest.param(
            {"lora_targets": []}, "SETTING_INVALID", "lora_targets", "at least 1", id="no layer"
        ),
        pytest.param(
            {"warmup_steps": 100}, "SETTING_INVALID", "settings", "not below steps", id="never warm"
        ),
    ],
)
def test_wrong_settings_name_the_field(values, code, field, word):
    """A wrong setting is refused by code, with its field and what would do."""
    with pytest.raises(UsageError) as caught:
        settings_from(values)
    assert (caught.value.code, caught.value.field) == (code, field)
    assert word in caught.value.message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(
            "a.toml", "steps = 7\nlearning_rate = 0.5\nlora_targets = ['q_proj']\n", id="toml"
        ),
        pytest.param(
            "a.json", '{"steps": 7, "learning_rate": 0.5, "lora_targets": ["q_proj"]}', id="json"
        ),
        pytest.param(
            "a.json",
            '{"steps": 7, "learning_rate": "0.5", "lora_targets": ["q_proj"]}',
            id="recorded",
        ),
    ],
)
def test_files_name_only_what_differs(tmp_path, name, text):
    """A TOML and a JSON file that say the same give the same settings, the rest by default."""
    (tmp_path / name).write_text(text)
    assert read_settings(tmp_path / name) == SftSettings(
        steps=7, learning_rate=0.5, lora_targets=("q_proj",)
    )


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        pytest.param("a.json", '{"steps": 1, "steps": 2}', "twice", id="a name twice in JSON"),
        pytest.param(
            "a.toml", "steps = 1\nsteps = 2\n", "cannot be read", id="a name twice in TOML"
        ),
        pytest.param("a.json", "[1]", "no object", id="a list"),
        pytest.param("a.json", "{", "cannot be read", id="half a file"),
    ],
)
def test_files_that_cannot_be_settings(tmp_path, name, text, word):
    """A file that is no object of settings, or sets a name twice, is refused."""
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=word) as caught:
        read_settings(tmp_path / name)
    assert caught.value.code == "SETTING_INVALID"
