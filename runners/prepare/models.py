"""Model folders: what is in one, whether it may be loaded, and whether it is still what was registered (torch-free).

Trusted for: naming every byte that decides what a model says. A folder is refused when it holds weights in a format
that can run code on loading, a link, or a safetensors header that does not describe its file.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ledger.canonical import loads
from ledger.digests import FileEntry, digest_file, inventory, open_regular, sha256, tree_digest
from ledger.errors import EvidenceError
from runners.prepare.claims import check_claims
from verifiers.learning.tensors import TensorEntry, read_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

UNSAFE_SUFFIXES = frozenset(
    {".bin", ".ckpt", ".h5", ".joblib", ".msgpack", ".npz", ".pickle", ".pkl", ".pt", ".pth", ".py"}
)
"""Formats that unpickle, or are code: none is needed, none is loaded, none may lie in the folder."""

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)
PARSED_FILES = frozenset({*TOKENIZER_FILES[1:], "generation_config.json"})
"""Files that the library parses in Python: one that nests without end would end its process."""

TEMPLATE_FILE = "chat_template.jinja"
INDEX_SUFFIX = ".index.json"
ADAPTER_FILE = "adapter_config.json"
MAX_CONFIG_BYTES = 1 << 20
MAX_INDEX_BYTES = 16 << 20


@dataclass(frozen=True)
class ModelFolder:
    """What a model folder is, as `model.registered` records it.

    `family` is the configuration's model type: two models of one family may not judge one another. `parameters` counts
    the numbers that the weight files hold, tied weights once. Digests: `tree` over all files, `tokenizer` over the
    tokenizer's, `chat_template` over the template's bytes, None where the model has none.
    """

    name: str
    family: str
    architecture: str
    parameters: int
    files: tuple[FileEntry, ...]
    tree: str
    tokenizer: str
    chat_template: str | None

    def as_dict(self) -> dict[str, Any]:
        """The description as a JSON object."""
        return {**asdict(self), "files": [asdict(file) for file in self.files]}


def describe(folder: Path, name: str | None = None) -> ModelFolder:
    """What a model folder holds, after the checks that loading demands.

    Args:
        folder: holds `config.json`, a tokenizer and `*.safetensors`.
        name: the model's name; that of the folder where none is given.

    Raises:
        EvidenceError: `MODEL_UNSAFE`, `UNSAFE_PATH` or `TENSORS_INVALID`: it is no folder that may be loaded.
    """
    files = tuple(checked_files(folder))
    config = _config(folder)
    tensors = _tensors(folder, files)
    check_claims(config, tensors)
    for path in sorted(PARSED_FILES & {file.path for file in files}):
        _json(folder, path, MAX_INDEX_BYTES)
    return ModelFolder(
        name=name or folder.resolve().name,
        family=str(config["model_type"]),
        architecture=str(config["architectures"][0]),
        parameters=sum(entry.elements for entry in tensors),
        files=files,
        tree=tree_digest(files),
        tokenizer=_tokenizer_digest(files),
        chat_template=_template_digest(folder, files),
    )


def checked_files(folder: Path) -> list[FileEntry]:
    """The inventory of a folder that may be loaded.

    Raises:
        EvidenceError: `UNSAFE_PATH`, a link or no regular file; `MODEL_UNSAFE`, a file of a format that can run code, or
            no safetensors weights, tokenizer or configuration.
    """
    if not folder.is_dir() or folder.is_symlink():
        raise EvidenceError("MODEL_UNSAFE", f"{folder.name} is no folder", field=str(folder))
    files = inventory(folder)
    for file in files:
        if any(file.path.lower().endswith(suffix) for suffix in UNSAFE_SUFFIXES):
            raise EvidenceError(
                "MODEL_UNSAFE", f"{file.path} is of a format that can run code", field=file.path
            )
    names = {file.path for file in files}
    if ADAPTER_FILE in names:
        # the library would take it for an adapter and load the base that it names, from anywhere
        raise EvidenceError(
            "MODEL_UNSAFE", f"{folder.name} is an adapter, no whole model", field=ADAPTER_FILE
        )
    for needed in ("config.json", "tokenizer.json"):
        if needed not in names:
            raise EvidenceError("MODEL_UNSAFE", f"{folder.name} has no {needed}", field=needed)
    if not any(name.endswith(".safetensors") for name in names):
        raise EvidenceError("MODEL_UNSAFE", f"{folder.name} has no safetensors weights")
    for name in sorted(names):
        if name.endswith(INDEX_SUFFIX):
            _check_index(folder, name, names)
    return files


def check_unchanged(folder: Path, registered: Iterable[Mapping[str, Any]]) -> list[FileEntry]:
    """The inventory of a folder that is, byte for byte, what was registered.

    Args:
        folder: the model folder or adapter folder.
        registered: `path`, `size` and `digest` of each file.

    Raises:
        EvidenceError: `MODEL_FILES_CHANGED`, a file is missing, new or different; the message names it.
    """
    expected = {str(file["path"]): file for file in registered}
    present = {file.path: file for file in inventory(folder)}
    for path in sorted(expected.keys() | present.keys()):
        wanted, found = expected.get(path), present.get(path)
        if wanted is None or found is None or wanted["digest"] != found.digest:
            raise EvidenceError(
                "MODEL_FILES_CHANGED",
                f"{path} in {folder.name} is not the registered file",
                field=path,
                expected=None if wanted is None else str(wanted["digest"]),
                actual=None if found is None else found.digest,
            )
    return list(present.values())


def _check_index(folder: Path, name: str, names: set[str]) -> None:
    """An index of shards names files of its own folder only: the library opens whatever it names."""
    match _json(folder, name, MAX_INDEX_BYTES):
        case {"weight_map": dict(places)}:
            astray = [place for place in places.values() if place not in names]
        case _:
            raise EvidenceError("MODEL_UNSAFE", f"{name} has no map of weights", field=name)
    if astray:
        raise EvidenceError(
            "MODEL_UNSAFE",
            f"{name} names {str(astray[0])[:80]!r}, no file of the folder",
            field=name,
        )


def _json(folder: Path, name: str, max_bytes: int = MAX_CONFIG_BYTES) -> Any:
    with open_regular(folder / name) as stream:
        data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise EvidenceError("MODEL_UNSAFE", f"{name} is longer than {max_bytes} bytes", field=name)
    try:
        return loads(data)
    except EvidenceError as error:
        raise EvidenceError("MODEL_UNSAFE", f"{name}: {error.message}", field=name) from None


def _config(folder: Path) -> dict[str, Any]:
    config = _json(folder, "config.json")
    match config:
        case {"model_type": str(), "architectures": [str(), *_]} if "auto_map" not in config:
            return dict(config)
    raise EvidenceError("MODEL_UNSAFE", "config.json names no library model", field="config.json")


def _tensors(folder: Path, files: Iterable[FileEntry]) -> list[TensorEntry]:
    found: list[TensorEntry] = []
    for file in files:
        if file.path.endswith(".safetensors"):
            with open_regular(folder / file.path) as stream:
                entries = read_header(stream)
                _check_length(
                    file, stream.tell() + max((entry.end for entry in entries), default=0)
                )
                found += entries
    return found


def _check_length(file: FileEntry, described: int) -> None:
    if file.size != described:
        raise EvidenceError(
            "TENSORS_INVALID",
            f"{file.path} has not the length that its header gives",
            field=file.path,
            expected=str(described),
            actual=str(file.size),
        )


def _tokenizer_digest(files: Iterable[FileEntry]) -> str:
    return tree_digest(file for file in files if file.path in TOKENIZER_FILES)


def own_template(folder: Path) -> str | None:
    """The text of a model folder's chat template; None where it has none, or several of which none is *the* one.

    Raises:
        EvidenceError: `MODEL_UNSAFE`, it is too large or not UTF-8, or the tokenizer's configuration cannot be read.
    """
    if (folder / TEMPLATE_FILE).exists():
        with open_regular(folder / TEMPLATE_FILE) as stream:
            data = stream.read(MAX_CONFIG_BYTES + 1)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise EvidenceError(
                "MODEL_UNSAFE", f"{TEMPLATE_FILE} is not UTF-8", field=TEMPLATE_FILE
            ) from None
        if len(data) > MAX_CONFIG_BYTES:
            raise EvidenceError(
                "MODEL_UNSAFE",
                f"{TEMPLATE_FILE} is longer than {MAX_CONFIG_BYTES} bytes",
                field=TEMPLATE_FILE,
            )
        return text
    if (folder / "tokenizer_config.json").exists():
        return _template_in_config(folder)
    return None


def _template_digest(folder: Path, files: Iterable[FileEntry]) -> str | None:
    names = {file.path for file in files}
    if TEMPLATE_FILE in names:
        own_template(
            folder
        )  # what cannot be read cannot be rendered: refused before a plan rests on it
        return digest_file(folder / TEMPLATE_FILE)[0]
    if "tokenizer_config.json" in names:
        template = _template_in_config(folder)
        return None if template is None else sha256(template.encode())
    return None


def _template_in_config(folder: Path) -> str | None:
    config = _json(folder, "tokenizer_config.json", MAX_INDEX_BYTES)
    if not isinstance(config, dict):
        raise EvidenceError(
            "MODEL_UNSAFE", "tokenizer_config.json is no object", field="tokenizer_config.json"
        )
    template = config.get("chat_template")
    return template if isinstance(template, str) else None
