"""Hostile model folders for `evidence model add`: headers that lie, files that run code, paths that lead out."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from random import Random
from typing import Any

from campaigns.hostile_bytes import BOM, ESCAPES, Maker, mutated, odd_name, special
from campaigns.hostile_child import Attack
from campaigns.hostile_place import Place

CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
TENSOR = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"


class _Runs:
    """What runs a command when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self._mark}",)


def safetensors(header: object, data: bytes = bytes(16), length: int | None = None) -> bytes:
    """A safetensors file with a header as it is given, bytes or JSON."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    claimed = len(text) if length is None else length
    return claimed.to_bytes(8, "little") + text + data


def _folder(place: Place, **files: bytes | None) -> Path:
    """A small good model folder, some files replaced, added or left out; `__` in a name is a dot."""
    good: dict[str, bytes | None] = {
        "config.json": json.dumps(CONFIG).encode(),
        "tokenizer.json": b"{}",
        "tokenizer_config.json": b"{}",
        WEIGHTS: safetensors({"w": TENSOR}),
    }
    for name, data in {**good, **files}.items():
        if data is not None:
            place.put(f"model/{name}", data)
    return place.input / "model"


def good_folder(place: Place) -> Path:
    """A folder that may be registered."""
    return _folder(place)


def _add(place: Place, folder: Path | bytes, *, accepts: bool = False) -> Attack:
    return Attack(place.own("model", "add", "--licence", "x", "--", bytes(folder)), accepts=accepts)


def _with_weights(place: Place, data: bytes) -> Attack:
    return _add(place, _folder(place, **{WEIGHTS: data}))


def header_length(rng: Random, place: Place) -> Attack:
    """A header that claims gigabytes, more than there is, or nothing."""
    length = rng.choice((0, 1, 8 << 20, 1 << 32, 2**63, 2**64 - 1))
    return _with_weights(place, safetensors({"w": TENSOR}, length=length))


def offsets(rng: Random, place: Place) -> Attack:
    """Tensors that overlap, leave gaps, run backwards or go beyond the end."""
    first = rng.choice(
        ([0, 8], [8, 24], [16, 0], [-16, 0], [0, 2**63], [0.0, 16.0], [True, 17], [0], "x")
    )
    header = {"a": {**TENSOR, "data_offsets": first}, "w": TENSOR}
    return _with_weights(place, safetensors(header))


def types(rng: Random, place: Place) -> Attack:
    """Types that do not exist, are no text, or have another width."""
    dtype = rng.choice(("F64", "F4", "", 1, None, ["F32"], "\x1b[2J", "x" * 100_000))
    return _with_weights(place, safetensors({"w": {**TENSOR, "dtype": dtype}}))


def shapes(rng: Random, place: Place) -> Attack:
    """Shapes whose product is astronomic, negative, or takes for ever to multiply."""
    shape = rng.choice(
        (
            [2**63, 2**63],
            [-2, -2],
            [2**53, 0],
            [2] * 62,
            [1.5],
            [True],
            [2**60] * 300_000,
            "4",
            [10**30],
        )
    )
    return _with_weights(place, safetensors({"w": {**TENSOR, "shape": shape}}))


def consistent_lie(rng: Random, place: Place) -> Attack:
    """A header that fits itself and claims exabytes that the file does not have."""
    size = rng.choice((2**20, 2**40, 2**60))
    return _with_weights(
        place, safetensors({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}})
    )


def names(rng: Random, place: Place) -> Attack:
    """Tensors of one name, of a name with nulls, of a name of megabytes."""
    one = json.dumps(TENSOR)
    nasty = rng.choice(("a\0F32\0", "\x1b[2J", "x" * (1 << 20)))
    text = rng.choice(
        (
            f'{{"w":{one},"w":{one}}}',
            json.dumps({nasty: TENSOR, "z": {**TENSOR, "dtype": "F9"}}),
            json.dumps({nasty: {**TENSOR, "shape": [3]}}),
        )
    )
    return _with_weights(place, safetensors(text.encode()))


def header_json(rng: Random, place: Place) -> Attack:
    """A header that is no object, nests without end, or is no JSON."""
    header = rng.choice(
        (
            b"[" * 100_000,
            b'{"a":' * 100_000,
            b"[]",
            b"null",
            b"\xff" * 50,
            b'{"w":1}',
            b'{"w":{}}',
            BOM + b"{}",
        )
    )
    return _with_weights(place, safetensors(header))


def cut(rng: Random, place: Place) -> Attack:
    """A file that ends too early or goes on too long."""
    whole = safetensors({"w": TENSOR})
    return _with_weights(place, rng.choice((whole[: rng.randrange(len(whole))], whole + bytes(7))))


def unpickled(rng: Random, place: Place) -> Attack:
    """A pickle that runs a command: refused by its name, never loaded."""
    data = pickle.dumps(_Runs(place.outside / "ran"))
    name = rng.choice(
        ("pytorch_model.bin", "a.pt", "b.PTH", "deep/x.pkl", "c.ckpt", "w.PICKLE", "m.py")
    )
    return _add(place, _folder(place, **{name: data}))


def pickle_as_weights(rng: Random, place: Place) -> Attack:
    """A pickle under a harmless name."""
    data = pickle.dumps(_Runs(place.outside / "ran"))
    name = rng.choice((WEIGHTS, "config.json", "tokenizer_config.json"))
    return _add(place, _folder(place, **{name: data}))


def configuration(rng: Random, place: Place) -> Attack:
    """A configuration that is deep, huge, of other types, or names code."""
    data = rng.choice(
        (
            b"[" * 100_000,
            b"[]",
            b'"x"',
            json.dumps({**CONFIG, "auto_map": {"AutoModel": "x.Y"}}).encode(),
            json.dumps({**CONFIG, "architectures": [1]}).encode(),
            json.dumps({**CONFIG, "n": 1}).encode()[:-1] + b',"m":1e400}',
            json.dumps({**CONFIG, "pad": "x" * (2 << 20)}).encode(),
            BOM + json.dumps(CONFIG).encode(),
            b'{"model_type":"\\ud800","architectures":["x"]}',
            json.dumps({**CONFIG, "model_type": "x" * 300_000}).encode(),
        )
    )
    return _add(place, _folder(place, **{"config.json": data}))


def tokenizer_configuration(rng: Random, place: Place) -> Attack:
    """A tokenizer's configuration that is no object, deep, or huge."""
    data = rng.choice(
        (b"[]", b"1", b"null", b"[" * 100_000, b"{" * 9, BOM + b"{}", b"\xff", b" " * (80 << 20))
    )
    return _add(place, _folder(place, **{"tokenizer_config.json": data}))


def index_leads_out(rng: Random, place: Place) -> Attack:
    """An index of shards that names a file outside the folder, or that is no index."""
    target = rng.choice(
        ("../secret.safetensors", "/etc/passwd", "..\\x", "C:\\x", "absent.safetensors", "a\0b")
    )
    place.put("secret.safetensors", safetensors({"w": TENSOR}))
    data = rng.choice(
        (
            json.dumps({"weight_map": {"w": target}}).encode(),
            json.dumps({"weight_map": [target]}).encode(),
            b"[]",
            b"[" * 100_000,
        )
    )
    return _add(place, _folder(place, **{INDEX: data}))


def adapter_inside(rng: Random, place: Place) -> Attack:
    """An adapter's configuration, which makes a library load another base from anywhere."""
    base = rng.choice(("/tmp", "../other", "some/hub-model"))  # noqa: S108 - a hostile path, never written
    data = json.dumps({"base_model_name_or_path": base, "peft_type": "LORA"}).encode()
    return _add(place, _folder(place, **{"adapter_config.json": data}))


def tree(rng: Random, place: Place) -> Attack:
    """Folders a thousand levels deep, links, pipes, and names that are no text."""
    folder = _folder(place)
    match rng.randrange(5):
        case 0:
            _deep_folder(folder, 1500)
        case 1:
            (folder / "link").symlink_to(place.outside)
        case 2:
            os.mkfifo(folder / "pipe")
        case 3:
            (folder / os.fsdecode(b"\xff\xfe")).write_bytes(b"x")
        case _:
            special(rng, place, "model/extra.json.d")
            (folder / "loop").symlink_to(folder)
    return _add(place, folder)


def _deep_folder(folder: Path, levels: int) -> None:
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)


def folder_name(rng: Random, place: Place) -> Attack:
    """A good model in a folder with an awkward name."""
    folder = _folder(place)
    renamed = bytes(place.input) + b"/" + odd_name(rng, "")
    folder.rename(os.fsdecode(renamed))
    return _add(place, renamed, accepts=True)


def no_folder(rng: Random, place: Place) -> Attack:
    """Something else where the folder, or a file in it, should be."""
    if rng.random() < 0.5:
        return _add(place, special(rng, place, "model"))
    folder = _folder(place)
    name = rng.choice(("config.json", "tokenizer.json", WEIGHTS))
    (folder / name).unlink()
    special(rng, place, f"model/{name}")
    return _add(place, folder)


def changed(rng: Random, place: Place) -> Attack:
    """A good weight file or configuration with a few random changes."""
    name = rng.choice((WEIGHTS, "config.json", "tokenizer_config.json", INDEX))
    good = {
        WEIGHTS: safetensors({"w": TENSOR, "a": {**TENSOR, "data_offsets": [16, 32]}}, bytes(32)),
        "config.json": json.dumps(CONFIG).encode(),
        "tokenizer_config.json": json.dumps({"chat_template": rng.choice(ESCAPES)}).encode(),
        INDEX: json.dumps({"weight_map": {"w": WEIGHTS}}).encode(),
    }
    return _add(place, _folder(place, **{name: mutated(rng, good[name])}), accepts=True)


KINDS: dict[str, Maker] = {
    "header-length": header_length,
    "offsets": offsets,
    "types": types,
    "shapes": shapes,
    "consistent-lie": consistent_lie,
    "names": names,
    "header-json": header_json,
    "cut": cut,
    "unpickled": unpickled,
    "pickle-as-weights": pickle_as_weights,
    "configuration": configuration,
    "tokenizer-configuration": tokenizer_configuration,
    "index-leads-out": index_leads_out,
    "adapter-inside": adapter_inside,
    "tree": tree,
    "folder-name": folder_name,
    "no-folder": no_folder,
    "changed": changed,
}
