"""What a model's configuration may claim: no more than the weights beside it hold (torch-free).

A library makes the model that config.json describes before it looks at the weights. So a configuration of a billion
layers would take all memory of whoever loads it. The tensors bound it: a layer has a tensor of its own, a width is a
dimension of some tensor, and the matrices that the widths promise are not far larger than all weights together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verifiers.learning.tensors import TensorEntry

LAYERS = (
    "num_hidden_layers",
    "num_layers",
    "n_layer",
    "n_layers",
    "encoder_layers",
    "decoder_layers",
    "num_encoder_layers",
    "num_decoder_layers",
    "depth",
)
EMBEDDINGS = ("embedding_size", "word_embed_proj_dim", "hidden_size", "n_embd", "d_model")
"""The width of the embedding: the first of these that there is."""

HIDDEN = ("hidden_size", "n_embd", "d_model")
INNER = ("intermediate_size", "n_inner", "d_ff", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim")
WIDTHS = (
    *EMBEDDINGS,
    *INNER,
    "vocab_size",
    "moe_intermediate_size",
    "head_dim",
    "num_attention_heads",
    "num_key_value_heads",
    "num_heads",
    "n_head",
    "n_positions",
)
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "n_shared_experts")
PACKED = 8
"""Numbers that quantised weights may hold in one; also the room for layers that share their weights."""

Number = int | float


def check_claims(config: dict[str, Any], tensors: Sequence[TensorEntry]) -> None:
    """Refuse a configuration that claims more than the weights hold, parts of a composed model included.

    Raises:
        EvidenceError: `MODEL_UNSAFE`, naming the field.
    """
    full = [entry for entry in tensors if entry.elements]
    largest = max((size for entry in full for size in entry.shape), default=0)
    numbers = PACKED * sum(entry.elements for entry in full)
    for part in _parts(config):
        _check_each(part, LAYERS, len(full), "tensors")
        _check_each(part, WIDTHS, largest, "numbers in the longest dimension")
        _check_each(part, EXPERTS, max(len(full), largest), "tensors or numbers in a dimension")
        _check_products(part, numbers)


def _parts(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield config
    for value in config.values():
        if isinstance(value, dict):
            yield from _parts(value)


def _values(part: dict[str, Any], name: str) -> list[Number]:
    """The numbers of a field, one or one a layer; other values are for the library to refuse."""
    value = part.get(name)
    several = value if isinstance(value, list) else [value]
    return [item for item in several if isinstance(item, int | float)]


def _check_each(part: dict[str, Any], names: Iterable[str], most: int, what: str) -> None:
    for name in names:
        for value in _values(part, name):
            if value > most:
                raise _refusal(name, value, f"the weights have {most} {what}")


def _check_products(part: dict[str, Any], numbers: int) -> None:
    """All layers' matrices, the inner ones and the embedding: each no more than all weights."""
    layers, hidden = _first(part, LAYERS), _first(part, HIDDEN)
    claims = (
        (HIDDEN, layers * hidden * hidden),
        (INNER, hidden * _first(part, INNER)),
        (("num_attention_heads", "n_head"), hidden * _heads(part)),
        (("vocab_size",), _first(part, ("vocab_size",)) * _first(part, EMBEDDINGS)),
    )
    for names, claimed in claims:
        if claimed > numbers:
            name = next(item for item in names if _values(part, item))
            raise _refusal(name, _first(part, names), "the weights are too few for such matrices")


def _heads(part: dict[str, Any]) -> Number:
    """The width of all heads together, where the configuration states both; else 0."""
    return _first(part, ("num_attention_heads", "n_head")) * _first(part, ("head_dim",))


def _first(part: dict[str, Any], names: Iterable[str]) -> Number:
    return next((max(values) for name in names if (values := _values(part, name))), 0)


def _refusal(name: str, value: Number, why: str) -> EvidenceError:
    return EvidenceError(
        "MODEL_UNSAFE",
        f"config.json claims {name} {str(value)[:40]}, {why}",
        field=name,
        actual=str(value)[:40],
    )
