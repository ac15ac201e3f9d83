"""Settings files: complete, strict, with the nearest name."""

from __future__ import annotations

import os

import pytest

from ledger.canonical import decode, encode
from ledger.errors import EvidenceError, UsageError
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
        pytest.param({"steps": 10**90}, "SETTING_INVALID", "steps", "at most", id="too large"),
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
            {"lora_targets": []},
            "SETTING_INVALID",
            "lora_targets",
            "at least one has to be named",
            id="no layer",
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
        pytest.param("a.json", "[" * 50_000, "too deep", id="deep JSON"),
        pytest.param("a.toml", "a = " + "[" * 50_000, "too deep", id="deep TOML"),
        pytest.param("a.toml", "a." * 30_000 + "b = 1", "dots", id="a name of 30,000 parts"),
        pytest.param("a.toml", "#" * 70_000, "more than 65536 bytes", id="too large"),
        pytest.param(
            "a.json", '{"steps": ' + "9" * 5000 + "}", "cannot be read", id="5,000 digits"
        ),
        pytest.param(
            "a.json", '{"learning_rate": ' + "9" * 400 + "}", "learning_rate", id="400 digits"
        ),
        pytest.param("a.toml", "max_gradient_norm = inf", "max_gradient_norm", id="an infinity"),
    ],
)
def test_files_that_cannot_be_settings(tmp_path, name, text, word):
    """A file that is no object of settings, or sets a name twice, is refused."""
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=word) as caught:
        read_settings(tmp_path / name)
    assert caught.value.code == "SETTING_INVALID"


def test_a_long_name_is_quoted_in_part(tmp_path):
    """An unknown name of 50,000 letters does not fill the terminal."""
    (tmp_path / "a.toml").write_text('"' + "x" * 50_000 + '" = 1')
    with pytest.raises(UsageError, match=r"no setting is named x{80}$") as caught:
        read_settings(tmp_path / "a.toml")
    assert (caught.value.code, caught.value.field) == ("SETTING_UNKNOWN", "x" * 80)


def test_a_mark_of_utf_8_is_no_part_of_a_file(tmp_path):
    """A byte order mark that an editor put before the first setting changes nothing."""
    for name, text in (("a.toml", b"steps = 7"), ("a.json", b'{"steps": 7}')):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text)
        assert read_settings(tmp_path / name).steps == 7


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_plain_file_is_no_settings(tmp_path, make):
    """A pipe, a folder or a link in the file's place is refused at once."""
    make(tmp_path / "a.toml")
    with pytest.raises(EvidenceError) as caught:
        read_settings(tmp_path / "a.toml")
    assert caught.value.code == "UNSAFE_PATH"


def test_names_by_the_thousand_are_read_in_one_pass(tmp_path):
    """A name that stands twice among thousands is found without comparing each with each."""
    names = [f'"k{number}": 1' for number in range(5000)]
    (tmp_path / "a.json").write_text("{" + ",".join([*names, '"k1": 2']) + "}")
    with pytest.raises(UsageError, match="k1 is set twice"):
        read_settings(tmp_path / "a.json")


def test_a_number_in_quotes_is_refused_in_toml(tmp_path):
    """TOML has numbers: a text where one belongs is a mistake, named by its field."""
    path = tmp_path / "sft.toml"
    path.write_text('learning_rate = "0.01"\n')
    with pytest.raises(UsageError) as caught:
        read_settings(path)
    assert (caught.value.code, caught.value.field) == ("SETTING_INVALID", "learning_rate")
    assert "valid number, not the text '0.01'" in caught.value.message


def test_what_is_said_of_a_value_has_no_prefix_of_the_library(tmp_path):
    """A rule of ours is told in our words."""
    with pytest.raises(UsageError) as caught:
        settings_from({"packing": True})
    assert caught.value.message.startswith("settings: packing is not there")
