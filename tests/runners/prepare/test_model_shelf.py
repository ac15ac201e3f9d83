"""Models are named by their bytes: what is on the shelf, what changed, and what is never loaded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from world import key

from ledger.book import Ledger
from ledger.codes import CODES
from ledger.errors import UsageError
from runners.prepare.register import add_folder
from runners.prepare.shelf import default_shelf, place, remember

pytestmark = pytest.mark.slow  # whoever comes first waits for the job


@pytest.fixture
def folder(finished, tmp_path) -> Path:
    """A copy of the tiny model's folder."""
    return shutil.copytree(finished.folder / "models" / "tiny", tmp_path / "tiny")


def test_one_model_has_one_tree_wherever_it_lies(person, folder):
    """A copy elsewhere is the same model by its digest, under the licence and source that are said."""
    again = person.gets(
        "model", "add", folder, "--name", "other", "--licence", "CC0-1.0", "--from", "a shelf",
        "--revision", "1",
    )  # fmt: skip
    with Ledger.read(person.ledger) as ledger:
        assert again["tree"] == ledger.get(person.ids["model"]).body["tree"]
    assert (again["name"], again["family"], again["licence"]) == ("other", "llama", "CC0-1.0")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        pytest.param("weights.bin", b"\x80\x04K\x01.", id="a pickle"),
        pytest.param("modeling.py", b"import os", id="code"),
        pytest.param("old.pt", b"x", id="a torch file"),
    ],
)
def test_a_folder_that_could_run_code_is_refused(person, folder, name, data):
    """Beside good weights, one file of a format that can run code is enough."""
    (folder / name).write_bytes(data)
    answer = person.types("model", "add", folder)
    assert (answer.code, answer.error["code"], answer.error["field"]) == (1, "MODEL_UNSAFE", name)
    assert answer.error["hint"] == CODES["MODEL_UNSAFE"].hint


def test_a_folder_that_is_not_there_is_no_model(person):
    """A path without a folder is refused."""
    answer = person.types("model", "add", person.folder / "absent")
    assert (answer.code, answer.error["code"]) == (1, "MODEL_UNSAFE")


def test_add_takes_a_folder_or_a_package(person):
    """One of the two is named."""
    answer = person.types("model", "add")
    assert (answer.code, answer.error["code"]) == (2, "INPUT_MISSING")


def test_an_unknown_package_is_refused(person):
    """The catalogue has no such model."""
    answer = person.types("model", "add", "--package", "no-such-model")
    assert (answer.code, answer.error["code"]) == (2, "MODEL_UNKNOWN")
    assert answer.error["hint"] == CODES["MODEL_UNKNOWN"].hint


def move_shelf(person, folder):
    """Let the shelf say that the person's model lies in that folder."""
    (note,) = [
        item for item in (person.folder / "shelf").glob("*.path") if Path(item.read_text()).name == "tiny"
    ]  # fmt: skip
    note.write_text(str(folder))
    return note


def test_a_model_that_is_refused_leaves_nothing_on_the_shelf(folder, tmp_path):
    """The record comes first: where the key may not register, the shelf does not claim a model that no ledger knows."""
    with (
        Ledger.create(
            tmp_path / "ledger",
            origin="example.com/trains-only",
            root_key=key("root"),
            writer_key=key("writer"),
            writer_roles=["train"],
            nonce=f"{1:032x}",
        ) as ledger,
        pytest.raises(UsageError, match="ROLE_MISSING"),
    ):
        add_folder(
            ledger,
            folder,
            tmp_path / "shelf",
            name=None,
            licence="CC0-1.0",
            source="",
            revision=None,
        )
    assert not (tmp_path / "shelf").exists()


@pytest.mark.parametrize("command", ["plan", "eval"])
def test_a_model_without_a_copy_here_is_named(person, folder, command):
    """Registered, but not on this machine: the error says to add the same files again."""
    note = move_shelf(person, folder)
    note.unlink()
    answer = use(person, command)
    assert (answer.code, answer.error["code"], answer.error["field"]) == (
        1,
        "MODEL_NOT_HERE",
        "model",
    )
    assert answer.error["hint"] == "add the same files again: evidence model add DIR"
    person.gets("model", "add", folder)
    assert person.plans(seed=3).code == 0


@pytest.mark.parametrize("command", ["plan", "eval"])
def test_changed_files_are_refused_before_use(person, folder, command):
    """One byte of the weights changed since registration: named by file, with both digests."""
    move_shelf(person, folder)
    weights = folder / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    answer = use(person, command)
    assert (answer.code, answer.error["code"]) == (1, "MODEL_FILES_CHANGED")
    assert answer.error["field"] == "model.safetensors"
    assert answer.error["expected"] != answer.error["actual"]
    assert answer.error["hint"] == CODES["MODEL_FILES_CHANGED"].hint


def test_a_hosted_model_has_no_bytes_to_use(person):
    """A model that somebody else hosts is registered by name; nothing here can speak with it."""
    with person.opens() as ledger:
        honest = ledger.get(person.ids["model"])
        body = {**honest.body, "hosted": True, "provider_name": "a provider"}
        hosted = ledger.append("model.registered", body)
    answer = person.types("eval", "run", person.ids["protocol"], hosted.id)
    assert (answer.code, answer.error["code"]) == (1, "MODEL_HOSTED")
    assert answer.error["hint"] == CODES["MODEL_HOSTED"].hint


def use(person, command):
    """Plan with the model, or evaluate it."""
    if command == "plan":
        return person.plans(seed=3)
    return person.types("eval", "run", person.ids["protocol"], person.ids["model"])


def test_the_shelf_lies_where_the_user_says(monkeypatch, tmp_path):
    """EVIDENCE_MODELS first, then the cache folder."""
    monkeypatch.setenv("EVIDENCE_MODELS", str(tmp_path / "a"))
    assert default_shelf() == tmp_path / "a"
    monkeypatch.delenv("EVIDENCE_MODELS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    assert default_shelf() == tmp_path / "b/evidence-ledger/models"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "c"))
    assert default_shelf() == tmp_path / "c/.cache/evidence-ledger/models"


def test_remembering_again_points_to_the_newer_place(tmp_path):
    """A note on the shelf is replaced as a whole."""
    tree = "sha256:" + "1" * 64
    for name in ("old", "new"):
        remember(tmp_path / "shelf", tree, tmp_path / name)
    note = place(tmp_path / "shelf", tree).with_suffix(".path")
    assert note.read_text() == str(tmp_path / "new")
    assert list((tmp_path / "shelf").iterdir()) == [note]
