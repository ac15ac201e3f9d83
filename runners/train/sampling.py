"""Completions sampled from a live model, with the log-probability of each token as it was sampled (loads torch).

Every completion has a seed of its own and draws from a generator of its own, so no completion depends on how many others
are sampled beside it but for the last bits of the sums, and no other generator moves: whoever replays recorded
completions instead goes on as if they had been sampled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from runners.train.serving.samples import Sampled

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

END, LENGTH = "end", "length"


@torch.no_grad()
def sample(
    model: Any,
    prompts: Sequence[Sequence[int]],
    seeds: Sequence[int],
    *,
    ends: Collection[int],
    pad: int,
    max_new_tokens: int,
    temperature: float,
) -> list[Sampled]:
    """One completion of each prompt from the whole distribution.

    Args:
        model: a causal language model, adapter and all; it is put into the mode for answers meanwhile.
        prompts: token ids.
        seeds: one a completion.
        ends: tokens that end a completion; the token itself is the completion's last.
        pad: the padding token.
        max_new_tokens: after which a completion is cut.
        temperature: logits are divided by it.
    """
    training = model.training
    model.train(mode=False)
    try:
        return _decode(model, prompts, seeds, set(ends), pad, max_new_tokens, temperature)
    finally:
        model.train(mode=training)


def _decode(
    model: Any,
    prompts: Sequence[Sequence[int]],
    seeds: Sequence[int],
    ends: set[int],
    pad: int,
    max_new_tokens: int,
    temperature: float,
) -> list[Sampled]:
    device = next(model.parameters()).device
    longest = max(len(prompt) for prompt in prompts)
    ids = torch.tensor([[pad] * (longest - len(prompt)) + list(prompt) for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    ids, mask = ids.to(device), mask.to(device)
    chances = _chances(seeds, max_new_tokens)
    tokens: list[list[int]] = [[] for _ in prompts]
    logprobs: list[list[float]] = [[] for _ in prompts]
    open_rows = set(range(len(prompts)))
    cache: Any = None
    positions = mask.cumsum(-1).sub(1).clamp(min=0)
    for turn in range(max_new_tokens):
        out = model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
        )
        cache = out.past_key_values
        logs = torch.log_softmax(out.logits[:, -1].float() / temperature, dim=-1).cpu()
        chosen = _chosen(logs, chances[:, turn])
        for row in sorted(open_rows):
            token = int(chosen[row])
            tokens[row].append(token)
            logprobs[row].append(min(0.0, float(logs[row, token])))
            if token in ends:
                open_rows.discard(row)
        if not open_rows:
            break
        ids = chosen.unsqueeze(1).to(device)
        mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)
        positions = positions[:, -1:] + 1
    return [
        Sampled(tuple(row), tuple(logs), END if row[-1] in ends else LENGTH)
        for row, logs in zip(tokens, logprobs, strict=True)
    ]


def _chances(seeds: Sequence[int], count: int) -> torch.Tensor:
    """Uniform numbers in [0, 1), a row for each seed."""
    rows = []
    for seed in seeds:
        generator = torch.Generator()
        generator.manual_seed(seed)
        rows.append(torch.rand(count, dtype=torch.float64, generator=generator))
    return torch.stack(rows)


def _chosen(logs: torch.Tensor, chances: torch.Tensor) -> torch.Tensor:
    """The token of each row at which the summed probabilities pass its chance: never one of probability zero."""
    sums = logs.double().exp().cumsum(dim=-1)
    wanted = (chances * sums[:, -1]).unsqueeze(1)
    return torch.searchsorted(sums, wanted, right=True).squeeze(1).clamp(max=logs.shape[1] - 1)
