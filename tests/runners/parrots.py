"""Real models of fixed weights that answer every prompt with one text, for judges that misbehave.

The whole text is one token. The next token depends on the last one alone: after the text comes the end, after anything
else the text. Hidden states are one-hot, attention and MLP add nothing.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verifiers.judgement.rubric import JUDGE_QUESTIONS

pytest.importorskip("torch", reason="needs the train extra")

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

END = "<|end|>"
TURN = "<|turn|>"
TEMPLATE = (
    "{% for message in messages %}{{ message['content'] + '<|turn|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '' }}{% endif %}"
)


def make_parrot(
    folder: Path, text: str, *, stops: bool = True, after: dict[str, str] | None = None
) -> Path:
    """A model folder whose model says `text`; `after` names other texts by the character that a prompt ends with.

    Args:
        folder: where to write.
        text: what it says.
        stops: whether it ever ends; without, it says the text again and again.
        after: what it says instead after a prompt that ends with a character; such a judge has no chat template.
    """
    others = after or {}
    tokenizer = _tokenizer([text, *others.values()], templated=not others)
    size = len(tokenizer) + len(tokenizer) % 2  # an even rotary dimension
    config = Qwen2Config(
        vocab_size=size, hidden_size=size, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
        num_key_value_heads=1, head_dim=size, max_position_embeddings=8192, tie_word_embeddings=False,
        bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    model = Qwen2ForCausalLM(config)
    one = tokenizer.convert_tokens_to_ids(text)
    following = torch.full((size,), one)
    for character, said in others.items():
        following[tokenizer.convert_tokens_to_ids(character)] = tokenizer.convert_tokens_to_ids(
            said
        )
    for said in (text, *others.values()):
        spoken = tokenizer.convert_tokens_to_ids(said)
        following[spoken] = tokenizer.eos_token_id if stops else spoken
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(1.0 if "norm" in name else 0.0)
        model.model.embed_tokens.weight.copy_(torch.eye(size))
        model.lm_head.weight[following, torch.arange(size)] = 10.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_letter_counter(folder: Path) -> Path:
    """A model to which a letter is the likelier the oftener it stands in the text before: its attention is uniform."""
    tokenizer = _tokenizer([], templated=False)
    size = len(tokenizer) + len(tokenizer) % 2  # an even rotary dimension
    config = Qwen2Config(
        vocab_size=size, hidden_size=size, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
        num_key_value_heads=1, head_dim=size, max_position_embeddings=8192, tie_word_embeddings=False,
        bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    model = Qwen2ForCausalLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(1.0 if "norm" in name else 0.0)
        model.model.embed_tokens.weight.copy_(torch.eye(size))
        attention = model.model.layers[0].self_attn
        attention.v_proj.weight.copy_(torch.eye(size))
        attention.o_proj.weight.copy_(torch.eye(size))
        model.lm_head.weight.copy_(torch.eye(size))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(texts: list[str], *, templated: bool) -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(alphabet)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token=END, pad_token=TURN)
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in texts])
    if templated:
        tokenizer.chat_template = TEMPLATE
    return tokenizer


def verdict(*, yes: bool) -> str:
    """The JSON in which every check of the shipped rubric is answered alike."""
    checks = {name: yes for name, _, _ in JUDGE_QUESTIONS}
    return json.dumps({"checks": checks}, separators=(",", ":"))
