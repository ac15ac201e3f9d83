"""What one model answers to every case: the child process.

    python -m runners.assess.generate          job on stdin, events on stdout (runners.protocol), log on stderr

Job: `model` {path, name, files}, `adapter` {path, files, state} or null, `cases` (JSON Lines with `id` and `messages`),
`settings` (`GenerationSettings.effective`), `template` (the file of the chat template in effect, or null), `seconds` (of
processor time for a prompt, where it is not the default), `output` (file for the transcripts; whole batches that an
earlier child left there are not answered again).
Events: `start` with the digest of the weights that speak, `progress` after each batch, then `end`.

The adapter is merged into the base weights, in float32, before the first token: the same answers as beside them up to
rounding, at the base model's speed. The digest is of the tensors in memory after the merge.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.assess.partial import Partial
from runners.protocol import Channel, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import torch

    from runners.assess.config import GenerationSettings

Case = dict[str, Any]


def main() -> int:
    """Serve one job; the exit code is 0 unless it failed."""
    return serve(transcribe)


def transcribe(channel: Channel, job: dict[str, Any]) -> dict[str, Any]:
    """Answer every case, in the order given.

    Returns:
        The fields of `end`: how many cases, new tokens and truncated answers, digests of prompts and weights.

    Raises:
        EvidenceError: model, adapter or cases are not what they should be.
        UsageError: a setting is wrong.
    """
    from ledger.digests import sha256
    from runners.assess.config import GenerationSettings
    from runners.loading import load_model, merge_adapter, tensors_digest
    from runners.seeding import seed_everything
    from runners.train.bounds import SECONDS, bounded, whole_seconds
    from runners.train.tokens import load_tokenizer, prompt_digest

    settings = GenerationSettings.from_values(job["settings"])
    seed_everything(0, settings.threads)
    template = None if job.get("template") is None else Path(job["template"])
    tokenizer = load_tokenizer(Path(job["model"]["path"]), template)
    cases = read_cases(Path(job["cases"]))
    with bounded(job.get("seconds", SECONDS), whole=whole_seconds(len(cases))) as begin:
        prompts = _prompts(tokenizer, cases, begin, at_file(job))
    model = merge_adapter(load_model(job["model"], settings.dtype), job["adapter"])
    weights = tensors_digest(model.named_parameters())
    channel.ask("start", weights=weights, cases=len(cases), **start_fields(settings.effective()))
    batches = list(_batches(len(cases), settings.batch_size))
    kept = Partial(
        Path(job["output"]),
        [
            [(cases[at]["id"], prompt_digest(prompts[at] or [])) for at in batch]
            for batch in batches
        ],
        lambda line: (line.get("case"), line.get("prompt_digest")),
    )
    for batch in batches[kept.batches :]:
        kept.add(
            _answered(model, tokenizer, [(cases[at]["id"], prompts[at]) for at in batch], settings)
        )
        channel.ask("progress", done=len(kept.lines), total=len(cases))
    lines = kept.lines
    return {
        "cases": len(lines),
        "tokens": sum(len(line["token_ids"]) for line in lines),
        "truncated": sum(line["truncated"] for line in lines),
        "prompts": sha256("\n".join(line["prompt_digest"] for line in lines).encode()),
        "weights": weights,
    }


def _answered(
    model: Any,
    tokenizer: Any,
    batch: Sequence[tuple[str, list[int] | None]],
    settings: GenerationSettings,
) -> list[Case]:
    """The lines of one batch, in its order."""
    asked = [prompt for _, prompt in batch if prompt is not None]
    answers = iter(answer(model, tokenizer, asked, settings) if asked else [])
    return [
        unasked_line(name)
        if prompt is None
        else transcript_line(tokenizer, name, prompt, next(answers), end_ids(model))
        for name, prompt in batch
    ]


def _prompts(
    tokenizer: Any, cases: Sequence[Case], begin: Callable[[], None], at: Path
) -> list[list[int] | None]:
    """Every case's prompt; None for one that the template refuses, which ends nothing but this case.

    Raises:
        EvidenceError: `TEMPLATE_FAILED`, it refuses them all.
    """
    from ledger.errors import EvidenceError

    found: list[list[int] | None] = []
    refused = None
    for case in cases:
        try:
            found.append(_prompt(tokenizer, case, begin, at))
        except EvidenceError as error:
            found.append(None)
            refused = refused or error
    if refused is not None and not any(found):
        raise refused
    return found


def _prompt(tokenizer: Any, case: Case, begin: Callable[[], None], at: Path) -> list[int]:
    """The prompt's token ids, rendered within the bounds that a stranger's template gets.

    Raises:
        EvidenceError: `TEMPLATE_FAILED`, with the case.
    """
    from ledger.errors import EvidenceError
    from runners.train.tokens import prompt_ids

    at.write_text(case["id"], encoding="utf-8")  # for whoever finds this process ended
    begin()
    try:
        return prompt_ids(tokenizer, case["messages"], case.get("tools"))
    except EvidenceError as error:
        raise EvidenceError(error.code, f"case {case['id']}: {error.message}") from None


def at_file(job: dict[str, Any]) -> Path:
    """Where the case stands whose prompt is being rendered: a template that never ends takes this process with it."""
    return Path(job["output"] + ".at")


def read_cases(path: Path) -> list[Case]:
    """The cases of a JSON Lines file.

    Raises:
        EvidenceError: `NOT_CANONICAL`, a line has no id or no messages.
    """
    from ledger.canonical import loads
    from ledger.errors import EvidenceError

    cases = [loads(line) for line in path.read_bytes().splitlines() if line]
    for number, case in enumerate(cases, 1):
        if not (
            isinstance(case, dict)
            and isinstance(case.get("id"), str)
            and isinstance(case.get("messages"), list)
        ):
            raise EvidenceError(
                "NOT_CANONICAL", f"line {number} has no id or no messages", field="messages"
            )
    return cases


def answer(
    model: Any, tokenizer: Any, prompts: Sequence[Sequence[int]], settings: GenerationSettings
) -> list[list[int]]:
    """The new tokens of each prompt, greedily, its end-of-sequence token included where one came.

    What all prompts of the batch open with is computed once; padding stands behind it, out of sight of the mask.
    """
    import torch

    pad, ends = int(tokenizer.pad_token_id), end_ids(model)
    shared = common_opening(prompts)
    opening, rests = prompts[0][:shared], [prompt[shared:] for prompt in prompts]
    longest = max(len(rest) for rest in rests)
    ids = torch.tensor([[*opening, *[pad] * (longest - len(rest)), *rest] for rest in rests])
    mask = torch.ones_like(ids)
    for row, rest in enumerate(rests):
        mask[row, shared : shared + longest - len(rest)] = 0
    with torch.inference_mode():
        output = model.generate(
            input_ids=ids.to(model.device),
            attention_mask=mask.to(model.device),
            past_key_values=_opened(model, ids[:1, :shared], len(prompts)),
            max_new_tokens=settings.max_new_tokens,
            do_sample=False,
            pad_token_id=pad,
        )
    return [_until_end(row, ends) for row in output[:, ids.shape[1] :].tolist()]


def common_opening(prompts: Sequence[Sequence[int]]) -> int:
    """How many tokens all prompts open with; each keeps at least one of its own."""
    limit = min(len(prompt) for prompt in prompts) - 1
    for position in range(limit):
        if len({prompt[position] for prompt in prompts}) > 1:
            return position
    return limit


def _opened(model: Any, opening: torch.Tensor, rows: int) -> Any:
    from transformers import DynamicCache

    if not opening.shape[1]:
        return None
    cache = DynamicCache(config=model.config)
    model.base_model(input_ids=opening.to(model.device), past_key_values=cache, use_cache=True)
    cache.batch_repeat_interleave(rows)
    return cache


def start_fields(effective: Mapping[str, Any]) -> dict[str, Any]:
    """What a child's `start` says besides the weights: its effective settings, versions, machine."""
    from runners.environment import library_versions, machine

    return {
        "settings": dict(effective),
        "libraries": library_versions(),
        "machine": machine().as_dict(),
    }


def transcript_line(
    tokenizer: Any, case: str, prompt: Sequence[int], ids: list[int], ends: frozenset[int]
) -> dict[str, Any]:
    """One line of a transcript; see the arm's transcripts blob."""
    from runners.train.tokens import prompt_digest

    ended = bool(ids) and ids[-1] in ends
    return {
        "case": case,
        "prompt_digest": prompt_digest(prompt),
        "prompt_tokens": len(prompt),
        "token_ids": ids,
        "text": tokenizer.decode(ids, skip_special_tokens=True),
        "truncated": not ended,
        "stop": "eos" if ended else "length",
    }


def unasked_line(case: str) -> dict[str, Any]:
    """The line of a case whose prompt the template refuses: nothing was asked, and nothing is held against the model."""
    from runners.train.tokens import prompt_digest

    return {
        "case": case,
        "prompt_digest": prompt_digest([]),
        "prompt_tokens": 0,
        "token_ids": [],
        "text": "",
        "truncated": False,
        "stop": "unasked",
    }


def _batches(count: int, size: int) -> Iterator[range]:
    for start in range(0, count, size):
        yield range(start, min(start + size, count))


def _until_end(ids: list[int], ends: frozenset[int]) -> list[int]:
    for position, token in enumerate(ids):
        if token in ends:
            return ids[: position + 1]
    return ids


def end_ids(model: Any) -> frozenset[int]:
    """The token ids that end the model's answer."""
    ends = model.generation_config.eos_token_id
    return frozenset([ends] if isinstance(ends, int) else ends or [])


if __name__ == "__main__":
    sys.exit(main())
