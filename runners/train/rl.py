"""Group-relative reinforcement of an adapter: the child process, top to bottom.

    python -m runners.train.rl          job on stdin, events on stdout (runners.protocol), log on stderr

Job: as for `runners.train.sft`, with `rows` tasks in place of chat rows; `journal`, a folder that outlives the attempt; and
`sampler`, where a sampling server is, or null; `reference`, the checkpoint whose weights the run began with, or null: its adapter is the frozen reference where the plan
says `start_adapter`, whatever checkpoint this attempt goes on from. Updates that are executed again (`runners.train.reexecute`)
have `batches` in place of the journal: for each step its recorded groups, `id`, `samples` and `trace`, and nothing is sampled.
Events: `start`, `restored` where a state was put back,
then per step `groups` (where a generation begins, one for each draw), `batch`, `update`, sometimes `checkpoint`, then `end`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError, UsageError
from runners.protocol import Channel, serve

if TYPE_CHECKING:
    from runners.train.rl_config import RlSettings
    from runners.train.tasks import Task


def main() -> int:
    """Serve one job; the exit code is 0 unless it failed."""
    return serve(train)


def train(channel: Channel, job: dict[str, Any]) -> dict[str, Any]:
    """Train as the job says.

    Returns:
        The fields of `end`: outcome, steps done, last state.

    Raises:
        EvidenceError: the model, the tasks or the state to go on from are not what they should be.
        UsageError: a setting, a prompt that is too long, a supervisor that refuses; `NO_SIGNAL`; `SHORT_RUN`.
    """
    from runners.seeding import seed_everything
    from runners.train.own_rl_settings import planned_settings
    from runners.train.sft import Start
    from runners.train.tasks import read_tasks

    settings = planned_settings(job["settings"])
    until, start = int(job["until"]), Start.of(job)
    tasks = read_tasks(Path(job["rows"]))
    seed_everything(settings.seed, settings.threads, settings.matmul)
    trainer = build(channel, job, settings, tasks)
    channel.ask("start", **start_fields(trainer, len(tasks), job, settings))
    done = start.step
    if done < until:
        if start.mode == "weights":
            channel.ask("restored", step=0, state=trainer.state_digest, mode="weights", digests={})
        try:
            trainer.train()
        finally:
            trainer.sampler.close()
        done = trainer.state.global_step
    if done < until and not channel.stop:
        raise UsageError("SHORT_RUN", f"{done} of {until} steps were taken")
    outcome = "completed" if done >= until else "stopped"
    return {"outcome": outcome, "steps": done, "state": trainer.state_digest}


def build(channel: Channel, job: dict[str, Any], settings: RlSettings, tasks: list[Task]) -> Any:
    """The trainer on a freshly loaded model, its reference frozen at the run's start, its weights those to begin with."""
    from datasets import Dataset

    from runners.assess.generate import end_ids
    from runners.loading import load_model
    from runners.train.adapted import trained_model
    from runners.train.expansion import check_expansion, check_trained
    from runners.train.generations import Sampler
    from runners.train.journal import Journal
    from runners.train.preflight import given_template
    from runners.train.recorded import Origin, Recording
    from runners.train.rl_arguments import arguments
    from runners.train.rl_trainer import RecordedGRPOTrainer
    from runners.train.serving.engine import engine_of
    from runners.train.sft import Start
    from runners.train.tokens import load_tokenizer
    from runners.train.trained import load_weights

    start = Start.of(job)
    given = arguments(job, settings)
    check_expansion(given, job, settings)
    tokenizer: Any = load_tokenizer(Path(job["model"]["path"]), given_template(job))
    prompts = encoded_prompts(tokenizer, tasks, settings.max_prompt_tokens)
    base = load_model(job["model"], settings.dtype, settings.attention)
    ends = end_ids(base) | {int(tokenizer.eos_token_id)}
    model = trained_model(base, job, settings)
    check_trained(model, job.get("trained"))
    if job["reference"] is not None:
        load_weights(model, job["reference"])
    trainer = RecordedGRPOTrainer(
        settings=settings,
        model=model,
        args=given,
        train_dataset=Dataset.from_list([{"prompt": ""}]),
        processing_class=tokenizer,
    )
    exact = start.checkpoint if start.mode == "exact" else None
    if exact is not None:
        load_weights(model, exact)
    origin = None if exact is None else Origin(Path(exact["path"]), start.step)
    folder = Path(job["model"]["path"])
    recording = Recording(channel, settings, int(job["until"]), folder, origin)
    trainer.fed = None if job.get("batches") is None else fed_batches(job["batches"], settings)
    journal = Journal(Path(job.get("journal") or job["output"]))
    sampling = trainer.fed is None  # what was recorded is fed, and nothing sampled
    engine = engine_of(job, settings, model, prompts, ends) if sampling else None
    trainer.begin_sampling(
        recording,
        Sampler(model, tokenizer, tasks, prompts, ends, settings, journal, channel, engine=engine),
    )
    return trainer


def encoded_prompts(tokenizer: Any, tasks: list[Task], longest: int) -> list[list[int]]:
    """Each task's prompt as token ids, rendered within the bounds that a stranger's template gets.

    Raises:
        UsageError: `ROW_UNTRAINABLE`, a prompt is longer than the settings allow.
        EvidenceError: `TEMPLATE_FAILED`.
    """
    from runners.train.bounds import bounded
    from runners.train.tokens import prompt_ids

    found = []
    with bounded() as begin:
        for task in tasks:
            begin()
            found.append(prompt_ids(tokenizer, task.messages))
    for task, ids in zip(tasks, found, strict=True):
        if len(ids) > longest:
            named = str(task.row.get("id", task.digest))[:60]
            raise UsageError(
                "ROW_UNTRAINABLE",
                f"the prompt of {named} has {len(ids)} tokens, max_prompt_tokens is {longest}",
                field="max_prompt_tokens",
            )
    return found


def fed_batches(batches: list[list[dict[str, str]]], settings: RlSettings) -> list[tuple[Any, ...]]:
    """The recorded groups of the steps to come, with the advantages of the plan's rule.

    Raises:
        EvidenceError: `BATCH_GROUPS`, a step does not read as many whole groups as planned.
    """
    from runners.train.generations import Recorded
    from runners.train.group_files import read_group
    from verifiers.learning.advantages import advantages

    found: list[tuple[Any, ...]] = []
    for batch in batches:
        if len(batch) != settings.groups_per_step:
            raise EvidenceError("BATCH_GROUPS", "a recorded batch has not the planned groups")
        read = []
        for item in batch:
            group = read_group(Path(item["samples"]).read_bytes(), Path(item["trace"]).read_bytes())
            gains = tuple(float(value) for value in advantages(group.rewards, settings.rule()))
            read.append(Recorded(item["id"], group, gains))
        found.append(tuple(read))
    return found


def start_fields(
    trainer: Any, tasks: int, job: dict[str, Any], settings: RlSettings
) -> dict[str, Any]:
    """What a `start` event says: tasks, weights before the first step, versions, machine, threads."""
    from runners.environment import library_versions, machine

    trainable = sum(
        parameter.numel() for parameter in trainer.model.parameters() if parameter.requires_grad
    )
    return {
        "rows": job["counts"] | {"effective": tasks},
        "state": trainer.state_digest,
        "trainable_parameters": trainable,
        "libraries": library_versions(),
        "machine": machine().as_dict(),
        "threads": settings.threads,
    }


if __name__ == "__main__":
    sys.exit(main())
