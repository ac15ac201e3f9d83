"""Updates executed again from the evidence: the recorded batches from a recorded state, and what comes of them.

The nearest state before an update is a checkpoint of the same path, else where the run began. From there the child is fed
the rows or the groups of completions that the batches name, and each acknowledgement is compared with what the child computes now. It shows that the
training did what the ledger says; nothing is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledger.errors import EvidenceError, UsageError
from runners.child import Event, Reply, run_child
from runners.environment import library_versions
from runners.prepare.data import read_lines
from runners.prepare.shelf import model_folder
from runners.train.child_events import FIELDS, check_event
from runners.train.group_checks import check_sampled
from runners.train.methods import groups_job
from runners.train.own_rl_settings import TRAINER
from runners.train.planned_rows import template_job
from runners.train.plans import code_digests, training_rows, write_rows
from runners.train.sampled import RL_FIELDS
from runners.train.status import claims, is_adopted
from runners.train.supervisor import planned_job, promised, start_job
from runners.train.tasks import asking_rows, task_rows
from runners.train.world_size import processes_of, rank_wait_s

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ledger.book import Ledger
    from ledger.record import Record

CHILD, RL_CHILD = "runners.train.sft", "runners.train.rl"
COMPARED = ("before", "after", "loss", "gradient_norm", "learning_rate")


@dataclass(frozen=True)
class Disagreement:
    """An acknowledgement that says something else than what its batch gives."""

    update: Record
    field: str
    recorded: str
    found: str


@dataclass(frozen=True)
class Reexecuted:
    """What was executed again.

    Attributes:
        updates: the acknowledgements that were compared.
        steps: how many optimizer steps that took.
        disagreements: what did not come out as recorded, in step order.
        changed: what of the plan's code, libraries or processor is another here: bits may then differ for that reason.
    """

    updates: list[Record]
    steps: int
    disagreements: list[Disagreement]
    changed: list[str]


def reexecute(
    ledger: Ledger,
    targets: list[Record],
    shelf: Path,
    scratch: Path,
    tell: Callable[[int], None] = lambda _step: None,
) -> Reexecuted:
    """Execute updates of one run again and compare.

    Args:
        ledger: open for reading or writing.
        targets: updates of one run; superseded ones are compared like those that count.
        shelf: where model folders lie.
        scratch: an empty folder.
        tell: called with each step done.

    Raises:
        UsageError: `MODEL_NOT_HERE`; `REEXECUTION_FAILED`, the child did not come to the end, or the run is of another
            method or a script's own.
        EvidenceError: `BLOB_MISSING`, `BLOB_WRONG`, `HELD_OUT_ROW`: what the run rests on is not there or not what was
            recorded.
    """
    run = ledger.get(str(targets[0].ref("run")))
    plan = ledger.get(str(run.ref("plan")))
    _check_ours(plan, run)
    left = {item.id: item for item in targets}
    exact = all(item.body["exact"] for item in claims(ledger, run)[1:])
    steps, differing = 0, []
    while left:
        last = max(left.values(), key=lambda item: (item.body["step"], item.seq))
        path = _Path.to(ledger, plan, last, _first(left.values()))
        place = scratch / f"path-{last.seq}"
        place.mkdir()
        found = _execute(ledger, plan, path, shelf, place, tell)
        steps += len(path.updates)
        fed = {item.body["step"]: _digests(ledger, item) for item in path.updates}
        on_path = {item.id for item in path.updates}
        for item in sorted(left.values(), key=lambda item: item.seq):
            same = exact and fed.get(item.body["step"]) == _digests(ledger, item)
            if item.id in on_path or same:
                differing += _compare(item, found[item.body["step"]])
                del left[item.id]
    differing.sort(key=lambda item: (item.update.body["step"], item.update.seq))
    return Reexecuted(list(targets), steps, differing, _changed(plan))


@dataclass(frozen=True)
class _Path:
    """A stretch of updates, each following the one before, from a state that can be put back."""

    origin: Record | None
    step: int
    updates: list[Record]

    @classmethod
    def to(cls, ledger: Ledger, plan: Record, last: Record, first_step: int) -> _Path:
        """The path to an update from the nearest state before the first step that matters."""
        updates = [last]
        while True:
            previous = updates[-1].ref("previous")
            if previous is None:
                parent = plan.ref("parent")
                origin = None if parent is None else ledger.get(parent)
                return cls(origin, 0, updates[::-1])
            before = updates[-1].body["step"] <= first_step
            checkpoint = _complete_checkpoint(ledger, previous)
            inherited = ledger.get(previous).ref("run") != last.ref("run")
            if checkpoint is not None and (before or inherited):
                return cls(checkpoint, checkpoint.body["step"], updates[::-1])
            updates.append(ledger.get(previous))


def _complete_checkpoint(ledger: Ledger, update: str) -> Record | None:
    found = ledger.referrers(update, "update", "checkpoint.published")
    whole = [item for item in found if all(item.body["completeness"].values())]
    return whole[-1] if whole else None


def _first(updates: Iterable[Record]) -> int:
    return min(int(item.body["step"]) for item in updates)


def _digests(ledger: Ledger, update: Record) -> list[str]:
    return [str(ledger.get(name).body["digest"]) for name in update.ref_list("batch")]


def _rows(ledger: Ledger, update: Record) -> list[str]:
    rows: list[str] = []
    for name in update.ref_list("batch"):
        body = ledger.get(name).body
        blob = body.get("rows_blob")
        rows += body["rows"] if blob is None else [line["row"] for line in read_lines(ledger, blob)]
    return rows


def _execute(
    ledger: Ledger,
    plan: Record,
    path: _Path,
    shelf: Path,
    place: Path,
    tell: Callable[[int], None],
) -> dict[int, Event]:
    """The child's updates by step, from a state and the recorded batches."""
    found: dict[int, Event] = {}
    groups = plan.body["method"] == "rl"
    fields = RL_FIELDS if groups else FIELDS

    def answer(event: Event) -> Reply:
        check_event(event, fields)
        if event["event"] == "update":
            found[event["step"]] = event
            tell(event["step"])
        return {}

    log = place / "child.log"
    done = run_child(
        RL_CHILD if groups else CHILD,
        _job(ledger, plan, path, shelf, place),
        answer,
        log,
        threads=plan.body["settings"]["threads"],
        processes=processes_of(plan),
        rank_wait_s=rank_wait_s(plan),
    )
    if done.outcome != "completed":
        detail = f"{done.code}: {done.message}" if done.code else done.outcome
        raise UsageError("REEXECUTION_FAILED", detail, field=str(log))
    return found


def _job(ledger: Ledger, plan: Record, path: _Path, shelf: Path, place: Path) -> dict[str, Any]:
    model = ledger.get(str(plan.ref("model")))
    folder = model_folder(shelf, model)
    common = {
        **planned_job(plan, model, folder),
        "rows": str(place / "rows.jsonl"),
        "output": str(place / "output"),
        "until": path.updates[-1].body["step"],
        "start": start_job(ledger, path.origin, path.step, place / "start"),
    }
    split = ledger.get(str(plan.ref("split")))
    if plan.body["method"] == "rl":
        own = is_adopted(plan)
        settings = plan.body["settings"]
        rows = (
            asking_rows(ledger, split) if own else task_rows(ledger, split, settings["reward"])[0]
        )
        write_rows(place / "rows.jsonl", rows)
        groups = [_groups(ledger, item, settings, place / "groups") for item in path.updates]
        return {**common, **groups_job(ledger, plan, folder, place), "batches": groups}
    write_rows(place / "rows.jsonl", training_rows(ledger, split))
    batches = [_rows(ledger, item) for item in path.updates]
    return {**common, **template_job(ledger, plan, place), "batches": batches}


def _groups(
    ledger: Ledger, update: Record, settings: dict[str, Any], place: Path
) -> list[dict[str, str]]:
    """The groups that an update read, their files put into a folder.

    Raises:
        UsageError: `REEXECUTION_FAILED`, its batch lists completions one by one, which only other trainers do.
        EvidenceError: `BLOB_MISSING`, `BLOB_WRONG`; a group's own fault, see `check_sampled`.
    """
    place.mkdir(exist_ok=True)
    found = []
    for name in update.ref_list("batch"):
        batch = ledger.get(name)
        if batch.body.get("rows_blob") is not None:
            raise UsageError(
                "REEXECUTION_FAILED", "its batch does not read whole groups", record=batch.id
            )
        for group in (ledger.get(item) for item in batch.ref_list("group")):
            body = group.body
            if body["trace"] is None:
                raise EvidenceError("GROUP_MALFORMED", "the group has no trace", record=group.id)
            paths = {part: place / f"{group.id[7:]}.{part}" for part in ("samples", "trace")}
            for part, path in paths.items():
                path.write_bytes(ledger.blobs.read(body[part]["digest"]))
            check_sampled(body, paths["samples"], paths["trace"], {body["task"]}, settings)
            found.append({"id": group.id, **{part: str(path) for part, path in paths.items()}})
    return found


def _check_ours(plan: Record, run: Record) -> None:
    """Refuse updates that no child of ours can take: those of another trainer of a script."""
    settings, method = plan.body["settings"], plan.body["method"]
    if method == "rl" and settings.get("trainer", TRAINER) == TRAINER:
        return
    if method != "sft" or is_adopted(plan):
        raise UsageError(
            "REEXECUTION_FAILED",
            f"updates of a script's {settings.get('trainer', method)} are not executed again by this version",
            record=run.id,
        )


def _compare(update: Record, event: Event) -> list[Disagreement]:
    differing = []
    for name in COMPARED:
        recorded = update.body[name]
        recorded = recorded["value"] if isinstance(recorded, dict) else recorded
        if recorded != event[name]:
            differing.append(Disagreement(update, name, str(recorded), str(event[name])))
    return differing


def _changed(plan: Record) -> list[str]:
    here: dict[str, str] = {**code_digests(), **library_versions()}
    planned: dict[str, str] = {**plan.body["code"], **plan.body["libraries"]}
    names = (planned.keys() | here.keys()) - {"script"}  # it ran there, and is not run here
    changed = sorted(name for name in names if planned.get(name) != here.get(name))
    return changed if promised(plan) else [*changed, "processor"]


def updates_of(ledger: Ledger, run: Record) -> list[Record]:
    """Every acknowledged update of a run, superseded ones too.

    Raises:
        EvidenceError: `REF_NOT_FOUND`, there is none.
    """
    found = ledger.referrers(run.id, "run", "update.acknowledged")
    if not found:
        raise EvidenceError("REF_NOT_FOUND", f"run {run.id[7:19]} has no update", record=run.id)
    return found
