"""Plans: everything a supervised run will do, written down before it does it (loads the tokenizer only)."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger import canonical
from ledger.digests import inventory, sha256, tree_digest
from ledger.errors import UsageError
from runners.environment import library_versions, machine, usable_cores
from runners.prepare.data import roles_of, split_rows
from runners.prepare.shelf import model_folder
from runners.settings import load_object
from runners.train.config import SftSettings
from runners.train.world_size import crowded
from verifiers.data.hand_out import HandedOut, hand_out
from verifiers.data.identity import rows_bytes

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record

PACKAGES = ("ledger", "verifiers", "runners")
TRUNCATED = "rows lose tokens to max_length"
OTHER_HARDWARE = (
    "the hardware is not the parent's: going on is equivalent, not bit for bit the same"
)


@dataclass(frozen=True)
class SftConfig:
    """What a configuration file says: which split, which model, and the settings that differ."""

    split: str
    model: str
    settings: SftSettings


def read_config(path: Path) -> SftConfig:
    """A plan's configuration from TOML, or JSON by its suffix.

    Raises:
        UsageError: `INPUT_MISSING`, `SETTING_UNKNOWN`, `SETTING_INVALID`.
    """
    values = load_object(path)
    named = {name: values.pop(name, None) for name in ("split", "model")}
    for name, value in named.items():
        if not isinstance(value, str):
            raise UsageError(
                "SETTING_INVALID",
                f"{path.name} names no {name}",
                field=name,
                hint=f'add {name} = "ID"',
            )
    return SftConfig(str(named["split"]), str(named["model"]), SftSettings.from_values(values))


@dataclass(frozen=True)
class Descent:
    """What a plan takes from elsewhere: nothing, another plan's settings, a checkpoint's weights, or its whole state.

    Attributes:
        like: the plan whose settings were taken.
        parent: the checkpoint to start from.
        exact: everything of the parent goes on, not its weights alone.
        fork: the parent has an heir already, or may have one beside this plan.
    """

    like: Record | None = None
    parent: Record | None = None
    exact: bool = False
    fork: bool = False

    @property
    def start(self) -> str:
        """How the record names it."""
        if self.parent is None:
            return "fresh"
        return "exact" if self.exact else "weights"


FRESH = Descent()


@dataclass(frozen=True)
class Prepared:
    """A plan's body and refs, ready to be recorded, and what a person should read first."""

    body: dict[str, Any]
    refs: dict[str, str | list[str]]
    figures: dict[str, Any]


def config_of(plan: Record) -> SftConfig:
    """The configuration of a plan that was made: its split, its model, every setting."""
    settings = SftSettings.from_values(plan.body["settings"])
    return SftConfig(str(plan.ref("split")), str(plan.ref("model")), settings)


def plan_of(ledger: Ledger, checkpoint: Record) -> Record:
    """The plan of the run that published a checkpoint."""
    run = ledger.get(str(checkpoint.ref("run")))
    return ledger.get(str(run.ref("plan")))


def prepare_sft(
    ledger: Ledger, config: SftConfig, shelf: Path, descent: Descent = FRESH
) -> Prepared:
    """Everything about a supervised run, counted before launch; nothing is recorded.

    Raises:
        UsageError: `REF_MISSING`, the split has no audit; `LEAKAGE_NOT_ACCEPTED`; `MODEL_NOT_HERE`; `ROW_UNTRAINABLE`.
        EvidenceError: `HELD_OUT_ROW`; `MODEL_FILES_CHANGED`; `TEMPLATE_NOT_PREFIX`.
    """
    split = ledger.get(config.split, "split.declared")
    model = ledger.get(config.model, "model.registered")
    audit = _newest_audit(ledger, split)
    acceptance = ledger.referrers(audit.id, "audit", "leakage.accepted")
    if audit.body["verdict"] != "clean" and not acceptance:
        raise _not_accepted(audit)
    folder = model_folder(shelf, model)
    figures = _preflight(folder, training_rows(ledger, split), config.settings)
    refs: dict[str, str | list[str]] = {"split": split.id, "audit": audit.id, "model": model.id}
    if acceptance:
        refs["acceptance"] = acceptance[-1].id
    body = _body(config.settings, split, model, figures)
    return Prepared(_descended(ledger, body, refs, descent), refs, figures)


def _descended(
    ledger: Ledger, body: dict[str, Any], refs: dict[str, str | list[str]], descent: Descent
) -> dict[str, Any]:
    """The body, and the refs, of a plan that takes something from elsewhere."""
    if descent.like is not None:
        refs["like"] = descent.like.id
    if descent.parent is None:
        return body
    parent = refs["parent"] = descent.parent.id
    twin = {"of": body["settings_digest"], "start": descent.start, "parent": parent}
    body |= {"start": descent.start, "settings_digest": sha256(canonical.encode(twin))}
    if descent.exact:
        old = plan_of(ledger, descent.parent)
        body["budget_updates"] = _budget_left(ledger, descent.parent, old, fork=descent.fork)
        if old.body["hardware"] != body["hardware"]:
            body["warnings"].append(OTHER_HARDWARE)
    if descent.fork:
        body["fork"] = True
    return body


def _budget_left(ledger: Ledger, checkpoint: Record, plan: Record, *, fork: bool) -> int:
    """In updates, those spent at the checkpoint included: an heir has the plan's, a fork what the lineage has left."""
    budget = int(plan.body["budget_updates"])
    state = ledger.state()
    run = state.runs.get(str(checkpoint.ref("run")))
    root = state.root_of(run) if run is not None else None
    if not fork or root is None:
        return budget
    left = root.budget - root.live - root.elsewhere
    return min(budget, int(checkpoint.body["spent_updates"]) + left)


def training_rows(ledger: Ledger, split: Record) -> list[HandedOut]:
    """The chat rows that a supervised run may read.

    Raises:
        EvidenceError: `HELD_OUT_ROW`.
    """
    return hand_out(split_rows(ledger, split), roles_of(ledger, split), "train", "chat")


def write_rows(path: Path, rows: list[HandedOut]) -> None:
    """Rows as the child reads them: each line a chat row with its digest under `row`."""
    path.write_bytes(rows_bytes({**item.row, "row": item.digest} for item in rows))


def code_digests() -> dict[str, str]:
    """Digests of the code a run reaches: ours by package, and all of it together."""
    root = Path(__file__).resolve().parents[2]
    files = {
        name: [item for item in inventory_of(root / name) if item.path.endswith((".py", ".sql"))]
        for name in PACKAGES
    }
    digests = {name: tree_digest(found) for name, found in files.items()}
    whole = sha256(canonical.encode(digests))
    return {**digests, "evidence-ledger": whole}


def check_fresh(plan: Record) -> None:
    """Refuse a plan whose code or libraries are no longer those installed: it would not do what it says.

    Raises:
        UsageError: `PLAN_STALE`, naming what changed.
    """
    planned = {**plan.body["code"], **plan.body["libraries"]}
    here = {**code_digests(), **library_versions()}
    changed = sorted(
        name for name in planned.keys() | here.keys() if planned.get(name) != here.get(name)
    )
    if changed:
        name = changed[0]
        raise UsageError(
            "PLAN_STALE",
            f"since the plan was prepared these changed: {', '.join(changed)}",
            field=name,
            record=plan.id,
            expected=planned.get(name),
            actual=here.get(name),
        )


def inventory_of(folder: Path) -> list[Any]:
    """The files of a package, caches left out."""
    return [item for item in inventory(folder) if "__pycache__" not in item.path]


def _newest_audit(ledger: Ledger, split: Record) -> Record:
    audits = ledger.referrers(split.id, "split", "leakage.audited")
    if not audits:
        short = split.id[7:19]
        raise UsageError(
            "REF_MISSING",
            f"split {short} has no leakage audit",
            field="refs.audit",
            record=split.id,
            expected="audit",
            hint=f"make it first: evidence data audit {short}",
        )
    return audits[-1]


def _not_accepted(audit: Record) -> UsageError:
    short = audit.id[7:19]
    return UsageError(
        "LEAKAGE_NOT_ACCEPTED",
        f"audit {short} has findings and no reviewer accepted them",
        field="refs.acceptance",
        record=audit.id,
        expected="acceptance",
        hint=f"split again, or have a reviewer accept: evidence data accept {short} --why WHY --review-key FILE",
    )


def _preflight(folder: Path, rows: list[HandedOut], settings: SftSettings) -> dict[str, Any]:
    from runners.train.preflight import preflight

    if not rows:
        raise UsageError(
            "ROW_UNTRAINABLE", "the split has no chat rows with role train", field="split"
        )
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "rows.jsonl"
        write_rows(path, rows)
        return preflight(folder, path, settings)


def _body(
    settings: SftSettings, split: Record, model: Record, figures: dict[str, Any]
) -> dict[str, Any]:
    effective = settings.effective()
    here = machine()
    twin = {"method": "sft", "settings": effective, "split": split.id, "model": model.body["tree"]}
    return {
        "method": "sft",
        "settings": effective,
        "settings_digest": sha256(canonical.encode(twin)),
        "libraries": library_versions(),
        "code": code_digests(),
        "hardware": {
            "processor": here.processor,
            "accelerator": None,
            "threads": settings.threads,
            "processes": settings.processes,
        },
        "seeds": {"training": settings.seed},
        "budget_updates": settings.steps,
        "budget_datums": figures["datums"],
        "start": "fresh",
        "rows": figures["rows"],
        "warnings": [*_warnings(figures), *crowded(settings, usable_cores())],
    }


def _warnings(figures: dict[str, Any]) -> list[str]:
    rows = figures["rows"]
    found = []
    if rows["truncated"]:
        found.append(f"{rows['truncated']} of {rows['input']} {TRUNCATED}")
    if rows["dropped"]:
        found.append(f"{rows['dropped']} of {rows['input']} rows keep no label and are dropped")
    return found
