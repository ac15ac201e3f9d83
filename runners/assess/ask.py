"""What a judge model writes when it is asked for a verdict in JSON: the child process.

    python -m runners.assess.ask          job on stdin, events on stdout (runners.protocol), log on stderr

Job: `model` {path, name, files}, `items` (JSON Lines as in `runners.assess.likelihood`), `checks` (the judge's checks as
[id, question]), `settings` (`AskSettings.effective`), `output` (file for the raw lines).
Events: `start` with the digest of the weights that judge, `progress` after each batch, then `end`.

Every item is asked in both orders: forwards the facts come first and the checks as they stand; reversed everything stands
the other way round, the checks too. A reply that can't be read is asked for once more. Raw lines: `{"item", "order", "attempts"}`.
A prompt that the model has no room for has no attempt, with which the case is undecided.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.assess.generate import start_fields
from runners.assess.likelihood import read_items
from runners.assess.partial import Partial
from runners.protocol import Channel, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runners.assess.config import AskSettings, GenerationSettings

PROMPT_VERSION = "verdict-1"
"""Changes whenever `question` does, so that replies to different prompts are never compared."""

ORDERS = ("forward", "reversed")
SYSTEM = "You check replies of customer service. You answer with one JSON object and nothing else."
AGAIN = (
    "That could not be read. Write the JSON object only, with every check and true or false for it."
)

_NAMES = {"user": "Customer", "assistant": "Agent", "tool": "Tool"}
Messages = list[dict[str, str]]


def main() -> int:
    """Serve one job; the exit code is 0 unless it failed."""
    return serve(ask)


def ask(channel: Channel, job: dict[str, Any]) -> dict[str, Any]:
    """Ask for a verdict on every item, in both orders.

    Returns:
        The fields of `end`: how many items, the digest of the weights.

    Raises:
        EvidenceError: the model or the items are not what they should be.
    """
    from runners.assess.config import AskSettings
    from runners.loading import load_model, tensors_digest
    from runners.seeding import seed_everything
    from runners.train.tokens import load_tokenizer

    settings = AskSettings.from_values(job["settings"])
    seed_everything(0, settings.threads)
    tokenizer = load_tokenizer(Path(job["model"]["path"]))
    items = read_items(Path(job["items"]))
    model = load_model(job["model"], settings.dtype)
    model.train(mode=False)
    weights = tensors_digest(model.named_parameters())
    channel.ask(
        "start",
        weights=weights,
        items=len(items),
        **start_fields({**settings.effective(), "prompt": PROMPT_VERSION}),
    )
    asked = [(item, order) for item in items for order in ORDERS]
    size = settings.batch_size
    batches = [asked[start : start + size] for start in range(0, len(asked), size)]
    keys = [[(item["item"], order) for item, order in batch] for batch in batches]
    kept = Partial(Path(job["output"]), keys, lambda line: (line.get("item"), line.get("order")))
    for batch in batches[kept.batches :]:
        prompts = [question(item, job["checks"], order) for item, order in batch]
        attempts = attempts_of(model, tokenizer, prompts, job["checks"], settings)
        kept.add(
            [
                {"item": item["item"], "order": order, "attempts": texts}
                for (item, order), texts in zip(batch, attempts, strict=True)
            ]
        )
        channel.ask("progress", done=len(kept.lines), total=len(asked))
    return {"items": len(items), "weights": weights}


def question(
    item: Mapping[str, Any], checks: Sequence[Sequence[str]], order: str
) -> list[dict[str, str]]:
    """What a judge is asked about one item."""
    facts = "Facts:\n" + "\n".join(f"- {fact}" for fact in item["facts"])
    conversation = "Conversation:\n" + "\n".join(
        f"{_NAMES[turn['role']]}: {turn['content']}"
        for turn in item["messages"]
        if turn["role"] in _NAMES
    )
    reference = f"A right answer: {item['reference']}"
    reply = f"Reply to check: {item['reply'].strip()}"
    shown = checks if order == "forward" else checks[::-1]
    asked = "Checks:\n" + "\n".join(f"- {name}: {text}?" for name, text in shown)
    named = ", ".join(f'"{name}": true or false' for name, _ in shown)
    form = f'Answer in this form: {{"checks": {{{named}}}}}'
    parts = [facts, conversation, reference, reply, asked, form]
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "\n\n".join(parts if order == "forward" else parts[::-1])},
    ]


def attempts_of(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Messages],
    checks: Sequence[Sequence[str]],
    settings: AskSettings,
) -> list[list[str]]:
    """The judge's replies to each prompt: one, or two where the first can't be read, or none."""
    from verifiers.judgement.json_verdicts import parse

    names = tuple(name for name, _ in checks)
    first = _replies(model, tokenizer, prompts, settings)
    found: list[list[str]] = [[] if text is None else [text] for text in first]
    again = [index for index, texts in enumerate(found) if texts and parse(texts[0], names) is None]
    second = _replies(model, tokenizer, [_retry(prompts[i], found[i][0]) for i in again], settings)
    for index, text in zip(again, second, strict=True):
        if text is not None:
            found[index].append(text)
    return found


def _retry(prompt: Messages, said: str) -> Messages:
    return [
        *prompt,
        {"role": "assistant", "content": said},
        {"role": "user", "content": AGAIN},
    ]


def _replies(
    model: Any, tokenizer: Any, prompts: Sequence[Messages], settings: AskSettings
) -> list[str | None]:
    """What the model writes to each prompt; None where there is no room for prompt and reply."""
    from runners.assess.generate import answer
    from runners.train.bounds import bounded

    with bounded() as begin:
        encoded = [_encode(tokenizer, prompt, begin) for prompt in prompts]
    room = _room(model) - settings.max_new_tokens
    fitting = {at: ids for at, ids in enumerate(encoded) if ids is not None and len(ids) <= room}
    found: list[str | None] = [None] * len(prompts)
    if not fitting:
        return found
    answers = answer(model, tokenizer, list(fitting.values()), _greedy(settings))
    for index, ids in zip(fitting, answers, strict=True):
        found[index] = tokenizer.decode(ids, skip_special_tokens=True)
    return found


def _greedy(settings: AskSettings) -> GenerationSettings:
    from runners.assess.config import GenerationSettings

    return GenerationSettings(
        max_new_tokens=settings.max_new_tokens,
        batch_size=settings.batch_size,
        dtype=settings.dtype,
        threads=settings.threads,
    )


def _room(model: Any) -> int:
    """How many tokens the model has positions for."""
    return int(getattr(model.config, "max_position_embeddings", None) or 1 << 30)


def _encode(tokenizer: Any, messages: Messages, begin: Callable[[], None]) -> list[int] | None:
    """Token ids of a prompt by the model's own template, plain text where it has none.

    A template may take no system turn: its words then stand in the first turn. None where it refuses that too.
    """
    from ledger.errors import EvidenceError
    from runners.train.tokens import prompt_ids

    if not tokenizer.chat_template:
        text = "\n\n".join(message["content"] for message in messages)
        return list(tokenizer(text)["input_ids"])
    first, second, *rest = messages
    joined = {"role": "user", "content": f"{first['content']}\n\n{second['content']}"}
    for shape in (messages, [joined, *rest]):
        begin()
        try:
            return prompt_ids(tokenizer, shape)
        except EvidenceError:
            continue  # the other shape, and else no prompt: this case alone is undecided
    return None


if __name__ == "__main__":
    sys.exit(main())
