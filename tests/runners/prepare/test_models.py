"""Model folders: what may be loaded, what is in one, and whether it is still what was registered."""

from __future__ import annotations

import json
import shutil

import pytest
from tiny import files_of

from ledger.digests import inventory, sha256, tree_digest
from ledger.errors import EvidenceError
from runners.prepare.models import check_unchanged, checked_files, describe


@pytest.fixture
def folder(tiny_model, tmp_path):
    """A copy of the tiny model that a test may spoil."""
    shutil.copytree(tiny_model, tmp_path / "model")
    return tmp_path / "model"


def test_description_names_every_byte(folder):
    """A description has each file's digest, the tree's, the template's, and the size of the model."""
    found = describe(folder, "Tiny")
    assert (found.name, found.family, found.architecture) == ("Tiny", "llama", "LlamaForCausalLM")
    assert list(found.files) == inventory(folder)
    assert found.tree == tree_digest(found.files)
    assert found.chat_template == sha256((folder / "chat_template.jinja").read_bytes())
    layer = 32 * 32 * 2 + 16 * 32 * 2 + 3 * 32 * 64 + 2 * 32
    vocabulary = json.loads((folder / "config.json").read_text())["vocab_size"]
    assert found.parameters == 2 * layer + 32 + 32 * vocabulary


def test_description_follows_the_tokenizer(folder):
    """Another tokenizer gives another tokenizer digest, and other weights do not."""
    before = describe(folder)
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    assert describe(folder).tokenizer == before.tokenizer
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "added": 1}))
    assert describe(folder).tokenizer != before.tokenizer


def test_a_template_inside_the_tokenizers_configuration_counts(folder):
    """Where the template lies in the tokenizer's configuration, its digest is of the text there."""
    (folder / "chat_template.jinja").unlink()
    assert describe(folder).chat_template is None
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(
        json.dumps({**config, "chat_template": "{{ 1 }}"})
    )
    assert describe(folder).chat_template == sha256(b"{{ 1 }}")


@pytest.mark.parametrize(
    "name",
    [
        "pytorch_model.bin",
        "old.pt",
        "deep/state.PKL",
        "modeling.py",
        "x.ckpt",
        "weights.pth",
        "a.npz",
    ],
)
def test_formats_that_can_run_code_are_refused(folder, name):
    """A file of a format that can run code on loading is refused by name, even where nothing would load it."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"cos\nsystem\n")
    with pytest.raises(EvidenceError) as caught:
        describe(folder)
    assert (caught.value.code, caught.value.field) == ("MODEL_UNSAFE", name)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_model_needs_its_parts(folder, name):
    """A folder without configuration, tokenizer or weights is no model."""
    (folder / name).unlink()
    with pytest.raises(EvidenceError) as caught:
        checked_files(folder)
    assert caught.value.code == "MODEL_UNSAFE"


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"auto_map": {"AutoModel": "x.Y"}}, id="code of its own"),
        pytest.param({"architectures": []}, id="no architecture"),
        pytest.param({"model_type": 3}, id="no family"),
    ],
)
def test_a_configuration_must_name_a_library_model(folder, config):
    """A configuration that brings code, or names no architecture, is refused."""
    known = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**known, **config}))
    with pytest.raises(EvidenceError) as caught:
        describe(folder)
    assert caught.value.code == "MODEL_UNSAFE"


def test_a_header_that_lies_is_refused(folder):
    """Weights whose header claims an absurd length are refused without reading that much."""
    raw = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes((1 << 60).to_bytes(8, "little") + raw[8:])
    with pytest.raises(EvidenceError) as caught:
        describe(folder)
    assert caught.value.code == "TENSORS_INVALID"


@pytest.mark.parametrize("change", [-1, 1])
def test_weights_of_another_length_than_their_header_gives_are_refused(folder, change):
    """Weights cut short, or going on behind the last tensor, are not what their header describes."""
    raw = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(raw[:-1] if change < 0 else raw + b"x")
    with pytest.raises(EvidenceError) as caught:
        describe(folder)
    assert (caught.value.code, caught.value.field) == ("TENSORS_INVALID", "model.safetensors")


@pytest.mark.parametrize(
    "place", ["../secret.safetensors", "/etc/passwd", "absent.safetensors", 1, None]
)
def test_an_index_names_files_of_its_folder_only(folder, place):
    """A library opens whatever an index of shards names, so a path that leads out is refused."""
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": "model.safetensors"}}))
    checked_files(folder)
    index.write_text(json.dumps({"weight_map": {"w": place}}))
    with pytest.raises(EvidenceError) as caught:
        checked_files(folder)
    assert (caught.value.code, caught.value.field) == ("MODEL_UNSAFE", index.name)


@pytest.mark.parametrize("text", ["[]", "{}", "[" * 10_000, '{"weight_map": []}'])
def test_an_index_that_is_none_is_refused(folder, text):
    """An index of shards without a map of weights is refused, however deep it nests."""
    (folder / "model.safetensors.index.json").write_text(text)
    with pytest.raises(EvidenceError) as caught:
        checked_files(folder)
    assert caught.value.code == "MODEL_UNSAFE"


def test_an_adapter_is_no_whole_model(folder):
    """A folder with an adapter's configuration is refused: a library would load the base it names, from anywhere."""
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "/elsewhere"}')
    with pytest.raises(EvidenceError) as caught:
        checked_files(folder)
    assert (caught.value.code, caught.value.field) == ("MODEL_UNSAFE", "adapter_config.json")


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("text", ["[]", "null", "[" * 10_000, "{", " " * (17 << 20)])
def test_configurations_that_are_none_are_named(folder, name, text):
    """A configuration that is no object, too deep, broken or too long is refused by its name."""
    (folder / "chat_template.jinja").unlink()
    (folder / name).write_text(text)
    with pytest.raises(EvidenceError) as caught:
        describe(folder)
    assert (caught.value.code, caught.value.field) == ("MODEL_UNSAFE", name)


@pytest.mark.parametrize("where", ["file", "folder"])
def test_links_are_refused(folder, tmp_path, where):
    """A link inside the folder, or in its place, is refused: it could point elsewhere tomorrow."""
    if where == "folder":
        (tmp_path / "link").symlink_to(folder)
        target = tmp_path / "link"
    else:
        (folder / "model.safetensors").rename(tmp_path / "weights")
        (folder / "model.safetensors").symlink_to(tmp_path / "weights")
        target = folder
    with pytest.raises(EvidenceError) as caught:
        describe(target)
    assert caught.value.code in {"UNSAFE_PATH", "MODEL_UNSAFE"}


def test_an_unchanged_folder_passes(folder):
    """A folder is what was registered as long as every byte is."""
    assert [file.path for file in check_unchanged(folder, files_of(folder))] == [
        file["path"] for file in files_of(folder)
    ]


@pytest.mark.parametrize("change", ["flipped", "missing", "new"])
def test_a_changed_folder_is_named(folder, change):
    """A flipped bit, a missing file and a new file are each refused with the file's name."""
    registered = files_of(folder)
    path = folder / "config.json"
    if change == "flipped":
        raw = bytearray(path.read_bytes())
        raw[0] ^= 1
        path.write_bytes(raw)
    elif change == "missing":
        path.unlink()
    else:
        path = folder / "extra.json"
        path.write_text("{}")
    with pytest.raises(EvidenceError) as caught:
        check_unchanged(folder, registered)
    assert (caught.value.code, caught.value.field) == ("MODEL_FILES_CHANGED", path.name)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_hidden_layers", 10**9),
        ("num_hidden_layers", 1e300),
        ("hidden_size", 10**9),
        ("hidden_size", 398),
        ("intermediate_size", [64, 10**9]),
        ("vocab_size", 10**12),
        ("head_dim", 10**7),
        ("num_attention_heads", 10**7),
        ("num_local_experts", 10**9),
    ],
)
def test_a_configuration_claims_no_more_than_the_weights_hold(folder, field, value):
    """Layers without tensors and widths that no tensor has are refused by name, in a part of a model too."""
    config = json.loads((folder / "config.json").read_text())
    for claimed in ({**config, field: value}, {**config, "text_config": {**config, field: value}}):
        (folder / "config.json").write_text(json.dumps(claimed))
        with pytest.raises(EvidenceError) as refused:
            describe(folder)
        assert (refused.value.code, refused.value.field) == ("MODEL_UNSAFE", field)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "generation_config.json"])
def test_a_file_that_nests_without_end_is_refused(folder, name):
    """It is named when the model is described, also where a template lies beside it."""
    (folder / name).write_text('{"a":' * 100_000 + "1" + "}" * 100_000)
    with pytest.raises(EvidenceError) as refused:
        describe(folder)
    assert (refused.value.code, refused.value.field) == ("MODEL_UNSAFE", name)


def test_a_template_that_is_no_text_is_refused(folder):
    """A template that is not UTF-8 is named when the model is described."""
    (folder / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(EvidenceError) as refused:
        describe(folder)
    assert (refused.value.code, refused.value.field) == ("MODEL_UNSAFE", "chat_template.jinja")
