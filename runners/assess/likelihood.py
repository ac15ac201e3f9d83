"""How probable a judge model finds an answer, alone and given facts and reference: the child process.

    python -m runners.assess.likelihood          job on stdin, events on stdout (runners.protocol), log on stderr

Job: `model` {path, name, files}, `items` (JSON Lines with `item`, `messages`, `facts`, `reference`, `reply`), `settings`
(`LikelihoodSettings.effective`), `output` (file for the raw lines; whole batches that an earlier child left there are
not scored again). An item that is longer than `max_length` has no line.
Events: `start` with the digest of the weights that judge, `progress` after each batch, then `end`.

Raw lines: `{"item", "part", "tokens", "logprob_sum"}`, one for each of the four `PARTS`, sums in nats as text. What
follows from them is decided in `verifiers.judgement`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.assess.generate import start_fields
from runners.assess.partial import Partial
from runners.protocol import Channel, serve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

PROMPT_VERSION = "completion-1"
"""Changes whenever `context` does, so that sums of different prompts are never compared."""

PARTS = ("reply_alone", "reply_given_reference", "reference_alone", "reference_given_reply")

_NAMES = {"user": "Customer", "assistant": "Agent", "tool": "Tool"}


@dataclass(frozen=True)
class Scored:
    """One text to be scored: `target` is the tokens that count, `context` those before it."""

    item: str
    part: str
    context: tuple[int, ...]
    target: tuple[int, ...]


def main() -> int:
    """Serve one job; the exit code is 0 unless it failed."""
    return serve(score)


def score(channel: Channel, job: dict[str, Any]) -> dict[str, Any]:
    """Score every part of every item.

    Returns:
        The fields of `end`: how many items and tokens, the digest of the weights.

    Raises:
        EvidenceError: the model or the items are not what they should be.
    """
    from runners.assess.config import LikelihoodSettings
    from runners.loading import load_model, tensors_digest
    from runners.seeding import seed_everything
    from runners.train.tokens import load_tokenizer

    settings = LikelihoodSettings.from_values(job["settings"])
    seed_everything(0, settings.threads)
    tokenizer = load_tokenizer(Path(job["model"]["path"]))
    items = read_items(Path(job["items"]))
    texts = [
        text
        for item in items
        for text in _fitting(scored_texts(tokenizer, item), settings.max_length)
    ]
    model = load_model(job["model"], settings.dtype)
    model.train(mode=False)
    weights = tensors_digest(model.named_parameters())
    channel.ask(
        "start",
        weights=weights,
        items=len(items),
        **start_fields({**settings.effective(), "prompt": PROMPT_VERSION}),
    )
    size = settings.batch_size
    batches = [texts[start : start + size] for start in range(0, len(texts), size)]
    kept = Partial(
        Path(job["output"]),
        [[(text.item, text.part) for text in batch] for batch in batches],
        lambda line: (line.get("item"), line.get("part")),
    )
    for batch in batches[kept.batches :]:
        sums = logprob_sums(model, batch)
        kept.add([raw_line(text, total) for text, total in zip(batch, sums, strict=True)])
        channel.ask("progress", done=len(kept.lines), total=len(texts))
    lines = kept.lines
    return {
        "items": len(items),
        "tokens": sum(line["tokens"] for line in lines),
        "weights": weights,
    }


def read_items(path: Path) -> list[dict[str, Any]]:
    """The items of a JSON Lines file.

    Raises:
        EvidenceError: `NOT_CANONICAL`, a line has not the fields of an item.
    """
    from ledger.canonical import loads
    from ledger.errors import EvidenceError

    items = [loads(line) for line in path.read_bytes().splitlines() if line]
    for number, item in enumerate(items, 1):
        match item:
            case {
                "item": str(),
                "messages": [*_],
                "facts": [*_],
                "reference": str(),
                "reply": str(),
            }:
                continue
        raise EvidenceError("NOT_CANONICAL", f"line {number} has not the fields of an item")
    return items


def scored_texts(tokenizer: Any, item: Mapping[str, Any]) -> list[Scored]:
    """The four texts of one item, in the order of `PARTS`; an empty answer has none to score."""
    pairs = {
        "reply_alone": (context(item, None), item["reply"]),
        "reply_given_reference": (context(item, item["reference"]), item["reply"]),
        "reference_alone": (context(item, None), item["reference"]),
        "reference_given_reply": (context(item, item["reply"]), item["reference"]),
    }
    texts = []
    for part, (before, target) in pairs.items():
        if not target.strip():
            continue
        context_ids = tokenizer(before)["input_ids"]
        target_ids = tokenizer(" " + target.strip(), add_special_tokens=False)["input_ids"]
        texts.append(Scored(item["item"], part, tuple(context_ids), tuple(target_ids)))
    return texts


def context(item: Mapping[str, Any], known: str | None) -> str:
    """What stands before the answer that is scored: the conversation, and before it facts and a known good answer."""
    turns = [
        f"{_NAMES[message['role']]}: {message['content']}"
        for message in item["messages"]
        if message["role"] in _NAMES
    ]
    conversation = "\n".join([*turns, "Agent:"])
    if known is None:
        return conversation
    facts = "\n".join(f"- {fact}" for fact in item["facts"])
    return f"Facts:\n{facts}\n\nAn agent answered rightly: {known.strip()}\n\n{conversation}"


def logprob_sums(model: Any, texts: Sequence[Scored]) -> list[float]:
    """The summed log-probability of each text's target, in nats.

    The vocabulary projection is made for the target's positions only.
    """
    import torch

    rows = [[*text.context, *text.target] for text in texts]
    longest = max(len(row) for row in rows)
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], device=model.device)
    mask = torch.tensor(
        [[*[1] * len(row), *[0] * (longest - len(row))] for row in rows], device=model.device
    )
    with torch.inference_mode():
        hidden = model.base_model(
            input_ids=ids, attention_mask=mask, use_cache=False
        ).last_hidden_state
        return [_sum(model, hidden[row], text) for row, text in enumerate(texts)]


def _sum(model: Any, hidden: torch.Tensor, text: Scored) -> float:
    import torch

    start = len(text.context) - 1
    logits = model.lm_head(hidden[start : start + len(text.target)]).float()
    cap = getattr(model.config, "final_logit_softcapping", None)
    if cap is not None:
        logits = torch.tanh(logits / cap) * cap
    wanted = torch.tensor(text.target, device=logits.device)[:, None]
    return float(logits.log_softmax(dim=-1).gather(1, wanted).double().sum())


def raw_line(text: Scored, total: float) -> dict[str, Any]:
    """One raw line; a sum that is not finite is left to the reader as text that is no number."""
    return {
        "item": text.item,
        "part": text.part,
        "tokens": len(text.target),
        "logprob_sum": repr(total),
    }


def _fitting(texts: list[Scored], max_length: int) -> list[Scored]:
    """The texts of an item that has room for all of them, else none: the case is then undecided, and no other."""
    lengths = (len(text.context) + len(text.target) for text in texts)
    return texts if max(lengths, default=0) <= max_length else []


if __name__ == "__main__":
    sys.exit(main())
