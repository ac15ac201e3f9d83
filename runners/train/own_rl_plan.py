"""The plan of a run of groups in a user's own script: its tasks, its audited reward, its base model (loads torch).

The tasks are ingested beside what is held out, split and audited, as the rows of any adopted trainer. The reward is a
function of the user's whose file was audited, byte for byte, or one of ours by name.
"""

from __future__ import annotations

import inspect
import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasets import Dataset

from ledger.canonical import loads
from ledger.digests import sha256
from ledger.errors import UsageError
from ledger.twins import fresh_digest
from runners.prepare.data import UNKNOWN_LICENCE, SourceNote
from runners.prepare.rewards import OWN_VERSION
from runners.prepare.shelf import default_shelf, model_folder
from runners.train.adopted_plan import NO_SCRIPT, registered_base
from runners.train.adopted_rows import ASKING, AdoptedRows, adopted_rows
from runners.train.adopted_split import (
    HeldOut,
    adopted_split,
    audited,
    declared_held_out,
    held_out_of,
    training_digests,
)
from runners.train.expansion import expand_body
from runners.train.own_rl_arguments import refused
from runners.train.plans import plan_body
from runners.train.rl_config import VERSIONS, warnings_of
from runners.train.rl_plans import FEW_TASKS, METHOD
from runners.train.tasks import Task, task_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ledger.book import Ledger
    from ledger.record import Record
    from runners.train.adopted_weights import LiveWeights
    from runners.train.own_rl_settings import OwnRlSettings
    from runners.train.rewarding import Earned
    from runners.train.rl_config import RlSettings

    Function = Callable[[Mapping[str, Any], str], float]

NOT_ESTABLISHED = (
    "what modules of its own the script imported",
    "that the reward's function was called on these completions: its file is audited, the calls are not seen",
)


@dataclass(frozen=True)
class OwnReward:
    """A reward: its name and version, and the user's function and the digest of its file where it is not ours."""

    name: str
    version: int
    function: Function | None = None
    code: str | None = None

    @classmethod
    def of(cls, given: Function | str) -> OwnReward:
        """The reward that a user names, or whose function they give.

        Raises:
            UsageError: `ADOPTION_REFUSED`, it is no reward of ours, or a function that lies in no file of its own.
        """
        if isinstance(given, str):
            if given not in VERSIONS:
                raise refused("reward_funcs", f"{given} is none of {', '.join(VERSIONS)}")
            return cls(given, VERSIONS[given])
        file = inspect.getsourcefile(given) if inspect.isfunction(given) else None
        if file is None or given.__name__ != "reward":
            raise refused(
                "reward_funcs",
                "it is no function reward(row, completion) of a file of its own, which could be audited",
                "put it into a file, audit it, and import it: evidence reward audit FILE",
            )
        path = Path(file)
        return cls(path.stem, OWN_VERSION, given, sha256(path.read_bytes()))

    def audit(self, ledger: Ledger) -> Record:
        """The newest audit of this reward, of this very file where it is the user's.

        Raises:
            UsageError: `REWARD_NOT_AUDITED`, there is none, or it found an inversion.
        """
        named = (self.name, self.version)
        found = [
            item
            for item in ledger.of_kind("reward.audited")
            if (item.body["name"], item.body["reward_version"]) == named
            and self.code in (None, item.body["code"]["digest"])
        ]
        if found and not found[-1].body["inversions"]:
            return found[-1]
        what = self.name if self.code is None else f"{self.name}.py"
        why = (
            f"its audit orders {found[-1].body['inversions']} pairs wrongly"
            if found
            else "it was never audited here as it is now"
        )
        raise UsageError(
            "REWARD_NOT_AUDITED",
            f"reward {what}: {why}",
            field="reward_funcs",
            record=found[-1].id if found else None,
            hint=f"audit it first: evidence reward audit {what}",
        )

    def earned(
        self, row: Mapping[str, Any], text: str, stop: str, tokens: int, settings: RlSettings
    ) -> Earned:
        """What a completion earns; a function that raises or gives no number gives no reward, and says why."""
        del stop, tokens, settings
        assert self.function is not None  # ours are asked where they are
        try:
            value = float(self.function(row, text))
        except Exception as error:  # noqa: BLE001 - the user's own code may raise anything; the group is rejected with it
            return None, {}, f"REWARD_FAILED: {error!r}"[:300]
        if not math.isfinite(value):
            return None, {}, f"REWARD_FAILED: it gave {value}"
        return value, {}, None


@dataclass(frozen=True)
class OwnWishes:
    """What the user says beside the trainer's arguments; see `runners.train.adoption.Wishes` for those of the same name."""

    held_out: str | Path | Sequence[str | Path] | None = None
    name: str = "adopted"
    licence: str = UNKNOWN_LICENCE
    shelf: Path = field(default_factory=default_shelf)


def tasks_of(data: Any, tokenizer: Any) -> tuple[AdoptedRows, list[Task]]:
    """The rows of a data set, and what they ask.

    Raises:
        UsageError: `ADOPTION_REFUSED`, they are no desk or scenario rows, or a customer speaks again; `HELD_OUT_ROW`.
    """
    if not isinstance(data, Dataset):
        raise refused("train_dataset", f"a {type(data).__name__} is no datasets.Dataset")
    rows = adopted_rows(data, tokenizer, asking=True)
    found: dict[str, Task] = {}
    for position, (line, digest) in enumerate(zip(rows.lines, rows.digests, strict=True)):
        row = loads(line, 64)
        if row.get("kind") not in ASKING or row.get("turns"):
            raise refused(
                f"train_dataset[{position}]",
                "it is no desk case and no scenario without scripted turns, so it asks nothing that can be on record",
                "what a row may be: docs/spec/data.md",
            )
        found[digest] = task_of({**row, "row": digest})
    return rows, list(found.values())


def record_plan(
    ledger: Ledger,
    settings: OwnRlSettings,
    reward: OwnReward,
    rows: AdoptedRows,
    weights: LiveWeights,
    tokenizer: Any,
    wishes: OwnWishes,
) -> Record:
    """Ingest the tasks, audit them, register the base model, and record the plan.

    Raises:
        UsageError: `REWARD_NOT_AUDITED`, `HELD_OUT_ROW`, `LEAKAGE_NOT_ACCEPTED`, `ADOPTION_REFUSED`, or what the rules refuse.
        EvidenceError: a held-out file or the base model's folder is broken.
    """
    audit = reward.audit(ledger)
    refs = audited(ledger, _split(ledger, rows, wishes))
    base = registered_base(ledger, weights, tokenizer, wishes.shelf)
    refs |= {"model": base.id, "reward": audit.id}
    code = audit.body["code"]["digest"]
    digest = fresh_digest(METHOD, settings.effective(), str(refs["split"]), base.body["tree"], code)
    count = len(set(rows.digests))
    figures = {
        "rows": {"input": count, "effective": count, "truncated": 0, "dropped": 0},
        "datums": settings.steps * settings.datums_per_step,
    }
    body = plan_body(METHOD, settings, digest, figures)
    body["warnings"] += warnings_of(settings)
    if count < settings.groups_per_batch:
        body["warnings"].append(FEW_TASKS)
    script = _script()
    body["code"] |= script
    if not script:
        body["warnings"].append(NO_SCRIPT)
    expand_body(body, model_folder(wishes.shelf, base), base.body["name"], settings)
    return ledger.append("plan.prepared", body, refs)


def _split(ledger: Ledger, rows: AdoptedRows, wishes: OwnWishes) -> Record:
    """The split that a run reads: the one named, where all rows are its training rows, else one made for them."""
    wish = wishes.held_out
    named = [wish] if isinstance(wish, str | Path) else list(wish or ())
    files = tuple(Path(item) for item in named if Path(item).exists() or "." in str(item))
    splits = [ledger.get(str(item), "split.declared") for item in named if Path(item) not in files]
    for split in splits:
        if training_digests(ledger, split, METHOD) >= set(rows.digests):
            return split
    found: dict[str, dict[str, Any]] = {} if wish is not None else declared_held_out(ledger)
    for split in splits:
        found |= held_out_of(ledger, split)
    note = SourceNote(licence=wishes.licence, origin="the data set of a trainer")
    return adopted_split(ledger, rows, HeldOut(files, found), wishes.name, note)


def _script() -> dict[str, str]:
    """The digest of the script that runs; nothing where it is no file."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if file is None or not Path(file).is_file():
        return {}
    return {"script": sha256(Path(file).read_bytes())}
