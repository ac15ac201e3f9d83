"""A real model in miniature: a Llama of two layers and a byte-pair tokenizer, made in a second."""

from __future__ import annotations

import json
import queue
from pathlib import Path
from typing import Any

import pytest

from ledger.canonical import decode, encode
from ledger.digests import FileEntry, inventory, sha256
from runners.protocol import Channel

pytest.importorskip("torch", reason="needs the train extra")

import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    trainers,
)
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

__all__ = [
    "AutoModelForCausalLM",
    "files_of",
    "loopback",
    "make_model",
    "model_job",
    "rows",
    "torch",
    "write_lines",
    "write_rows",
]

TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TEXTS = [
    "Please cancel my order, it was placed by mistake.",
    "Order: 2 items. Owner: caller. Status: pending. Status: delivered.",
    '{"tool":"cancel","reason":"no longer needed"} {"tool":"refuse","reason":"wrong_status"}',
    "You are a desk. Reply with one JSON tool call. system user assistant",
]
SYSTEM = (
    "You are a desk. Reply with one JSON tool call. Policy: only pending orders can be cancelled."
)


def make_model(folder: Path, width: int = 32) -> Path:
    """A folder with seeded random weights, configuration, tokenizer and chat template; four heads share the width."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|endoftext|>", bos_token=None
    )
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        initializer_range=0.2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def rows(count: int = 12) -> list[dict[str, Any]]:
    """Chat rows in twins: the same request, another answer because of the record."""
    made = []
    for number in range(count):
        pending = number % 2 == 0
        status = "pending" if pending else "delivered"
        answer = (
            '{"tool":"cancel","reason":"no longer needed"}'
            if pending
            else '{"tool":"refuse","reason":"wrong_status"}'
        )
        made.append(
            {
                "id": f"row-{number}",
                "messages": [
                    {"role": "system", "content": SYSTEM},
                    {
                        "role": "user",
                        "content": f"Cancel it. Order: {number // 2} items. Status: {status}.",
                    },
                    {"role": "assistant", "content": answer},
                ],
            }
        )
    return made


def write_lines(path: Path, values: list[dict[str, Any]]) -> Path:
    """The values as JSON Lines."""
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def write_rows(path: Path, values: list[dict[str, Any]]) -> Path:
    """Rows with their digests, as a supervisor hands them to a child."""
    return write_lines(
        path, [{**value, "row": sha256(json.dumps(value).encode())} for value in values]
    )


def files_of(folder: Path) -> list[dict[str, Any]]:
    """A folder's inventory as a record lists it."""
    return [as_json(file) for file in inventory(folder)]


def as_json(file: FileEntry) -> dict[str, Any]:
    """One file as a record lists it."""
    return {"path": file.path, "size": file.size, "digest": file.digest}


def model_job(folder: Path) -> dict[str, Any]:
    """A job's `model`."""
    return {"path": str(folder), "name": "tiny", "files": files_of(folder), "revision": "r1"}


def loopback(on_event):
    """A channel whose other end is a function in this process."""
    replies = queue.SimpleQueue()

    class Reader:
        def readline(self, _limit):
            return replies.get_nowait()

    class Writer:
        def write(self, line):
            event = decode(line.rstrip(b"\n"))
            replies.put(encode({"ok": True, **on_event(event), "n": event["n"]}) + b"\n")

        def flush(self):
            """Nothing waits."""

    return Channel(Reader(), Writer())
