"""Chat templates of well-known models, as the training library ships them: learned rightly, or refused by a code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import chat_templates as t
import pytest

from ledger.errors import EvidenceError
from runners.train.templates import in_effect
from runners.train.tokens import IGNORED, encode_row

transformers = pytest.importorskip("transformers", reason="needs the train extra")
tokenizers = pytest.importorskip("tokenizers", reason="needs the train extra")
FOUND = importlib.util.find_spec("trl")
FOLDER = Path(str(FOUND.origin)).parent / "chat_templates" if FOUND else Path("absent")
NOT_PREFIX, DROPS, FAILED = "TEMPLATE_NOT_PREFIX", "TEMPLATE_DROPS", "TEMPLATE_FAILED"
ENDS = ["<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>"]


@pytest.fixture(scope="module")
def bytewise():
    """A tokenizer with a token for each byte: what it gives depends on the template alone."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    raw = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[])
    )
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|endoftext|>", bos_token="<s>"
    )
    made.add_special_tokens({"additional_special_tokens": ENDS})
    return made


# template, then what becomes of: two answers; thought in an earlier answer; a call with its result; two calls at once
TABLE = [
    ("qwen2_5", None, None, None, None),
    ("qwen2_5_training", None, None, None, None),
    ("qwen2_5_vl", None, None, DROPS, DROPS),
    ("qwen3", NOT_PREFIX, NOT_PREFIX, NOT_PREFIX, NOT_PREFIX),
    ("qwen3_training", None, None, None, None),
    ("qwen3_instruct_2507", None, None, None, None),
    ("llama3", None, None, DROPS, DROPS),
    ("llama3_1", None, None, None, FAILED),
    ("llama3_2", None, None, None, FAILED),
    ("gemma", FAILED, FAILED, FAILED, FAILED),
    ("gemma3", None, None, FAILED, FAILED),
    ("glm4moe", None, NOT_PREFIX, None, None),
    ("phi3", None, None, FAILED, DROPS),
]
ROWS = [(t.SEVERAL, None), (t.THOUGHT_EARLY, None), (t.CALLING, [t.TOOL]), (t.TWO_CALLS, [t.TOOL])]


@pytest.mark.parametrize("name", [row[0] for row in TABLE])
def test_a_public_template_is_learned_from_rightly_or_refused(bytewise, name):
    """What is learned holds every word of the assistant and no turn of anybody else, or the row is refused by its code."""
    path = FOLDER / f"{name}.jinja"
    if not path.exists():
        pytest.skip(f"this version of the library has no {name}")
    bytewise.chat_template = in_effect(path.read_text(encoding="utf-8"), "2026-11-30")
    (expected,) = [row[1:] for row in TABLE if row[0] == name]
    for (messages, tools), code in zip(ROWS, expected, strict=True):
        if code is not None:
            with pytest.raises(EvidenceError) as caught:
                encode_row(bytewise, "d", messages, 8192, tools)
            assert caught.value.code == code
            continue
        row = encode_row(bytewise, "d", messages, 8192, tools)
        said = bytewise.decode([label for label in row.labels if label != IGNORED])
        for message in messages:
            content = (message["content"] or "").replace("<think>", "").split("</think>")[-1]
            assert (content in said) == (message["role"] == "assistant"), message
            for call in message.get("tool_calls", ()):
                assert call["function"]["arguments"]["order_id"] in said
