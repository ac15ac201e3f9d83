"""Plans: everything a supervised run will do, written down before it does it (loads the training libraries late)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger import canonical
from ledger.digests import inventory, sha256, tree_digest
from ledger.errors import UsageError
from ledger.twins import descended_digest, fresh_digest
from runners.environment import library_versions, machine, usable_cores
from runners.prepare.data import roles_of, split_rows
from runners.prepare.shelf import model_folder
from runners.settings import load_object
from runners.train import planned_rows
from runners.train.binding import check_tuning
from runners.train.config import SftSettings
from runners.train.expansion import expand_body
from runners.train.templates import template_named
from runners.train.validation import ROLE, validation_rows
from runners.train.world_size import crowded
from verifiers.data.hand_out import SUPERVISED_KIND, HandedOut, hand_out
from verifiers.data.identity import rows_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledger.book import Ledger
    from ledger.record import Record
    from runners.train.learner_settings import LearnerSettings

NAMED = ("split", "model")
PACKAGES = ("ledger", "verifiers", "runners")
OTHER_HARDWARE = (
    "the hardware is not the parent's: going on is equivalent, not bit for bit the same"
)


@dataclass(frozen=True)
class SftConfig:
    """What a configuration file says: which split, which model, and the settings that differ.

    `template` is the text of a chat template that was read from a file; `settings.chat_template` is its digest.
    """

    split: str
    model: str
    settings: SftSettings
    template: str | None = None


def read_config(path: Path) -> SftConfig:
    """A plan's configuration from TOML, or JSON by its suffix.

    Raises:
        UsageError: `INPUT_MISSING`, `SETTING_UNKNOWN`, `SETTING_INVALID`.
    """
    values = load_object(path)
    SftSettings.check_names(values, *NAMED)
    named = {name: values.pop(name, None) for name in NAMED}
    for name, value in named.items():
        if not isinstance(value, str):
            raise UsageError(
                "SETTING_INVALID",
                f"{path.name} names no {name}",
                field=name,
                hint=f'add {name} = "ID"',
            )
    template = template_named(path.parent, values)
    settings = SftSettings.from_values(values, from_toml=path.suffix != ".json")
    return SftConfig(str(named["split"]), str(named["model"]), settings, template)


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
    """A plan's body and refs, ready for `record_plan`, what it will name, and what a person should read first."""

    body: dict[str, Any]
    refs: dict[str, str | list[str]]
    figures: dict[str, Any]
    kept: tuple[planned_rows.Kept, ...] = ()


def config_of(plan: Record) -> SftConfig:
    """The configuration of a plan that was made: its split, its model, every setting."""
    settings = SftSettings.from_values(plan.body["settings"])
    return SftConfig(str(plan.ref("split")), str(plan.ref("model")), settings)


def plan_of(ledger: Ledger, checkpoint: Record) -> Record:
    """The plan of the run that published a checkpoint."""
    run = ledger.get(str(checkpoint.ref("run")))
    return ledger.get(str(run.ref("plan")))


def prepare_sft(
    ledger: Ledger,
    config: SftConfig,
    shelf: Path,
    descent: Descent = FRESH,
    tell: Callable[[int, int], None] = lambda _done, _total: None,
) -> Prepared:
    """Everything about a supervised run, counted before launch; nothing is recorded or kept.

    Args:
        ledger: open for reading or writing.
        config: what to plan.
        shelf: where model folders lie.
        descent: what is taken from elsewhere.
        tell: called with rows counted and all rows.

    Raises:
        UsageError: `REF_MISSING`, the split has no audit; `LEAKAGE_NOT_ACCEPTED`; `MODEL_NOT_HERE`; `ROW_UNTRAINABLE`;
            `TEMPLATE_MISSING`; `TEMPLATE_UNSTABLE`.
        EvidenceError: `HELD_OUT_ROW`; `MODEL_FILES_CHANGED`; `TEMPLATE_INVALID`; `TEMPLATE_UNBOUNDED`.
    """
    split = ledger.get(config.split, "split.declared")
    model = ledger.get(config.model, "model.registered")
    refs = audited_refs(ledger, split, model)
    folder = model_folder(shelf, model)
    template = planned_rows.template_of(ledger, model, folder, config.settings, config.template)
    rows = training_rows(ledger, split)
    if not rows:
        raise UsageError(
            "ROW_UNTRAINABLE", "the split has no chat rows with role train", field="split"
        )
    figures = planned_rows.counted(folder, rows_of(rows), config.settings, template, tell)
    evaluated = validation_rows(ledger, split, config.settings)
    settings = config.settings
    digest = fresh_digest("sft", settings.effective(), split.id, model.body["tree"])
    body = plan_body("sft", settings, digest, figures)
    body["warnings"] += [
        *planned_rows.warnings_of(figures),
        *crowded(settings, usable_cores()),
    ]
    body["reading"], kept = planned_rows.reading(model, template, figures)
    expand_body(body, folder, model.body["name"], config.settings)
    if evaluated:
        body["rows"] = {**body["rows"], ROLE: len(evaluated)}
    return Prepared(descended(ledger, body, refs, descent), refs, figures, tuple(kept))


def audited_refs(ledger: Ledger, split: Record, model: Record) -> dict[str, str | list[str]]:
    """What a plan on a split and a model names: them, the split's newest audit, its acceptance where there is one.

    Raises:
        UsageError: `REF_MISSING`, the split has no audit; `LEAKAGE_NOT_ACCEPTED`.
    """
    audit = _newest_audit(ledger, split)
    acceptance = ledger.referrers(audit.id, "audit", "leakage.accepted")
    if audit.body["verdict"] != "clean" and not acceptance:
        raise _not_accepted(audit)
    refs: dict[str, str | list[str]] = {"split": split.id, "audit": audit.id, "model": model.id}
    if acceptance:
        refs["acceptance"] = acceptance[-1].id
    return refs


def record_plan(ledger: Ledger, prepared: Prepared) -> Record:
    """Keep what a prepared plan names, and record it."""
    planned_rows.keep(ledger, prepared.kept)
    return ledger.append("plan.prepared", prepared.body, prepared.refs)


def descended(
    ledger: Ledger, body: dict[str, Any], refs: dict[str, str | list[str]], descent: Descent
) -> dict[str, Any]:
    """The body, and the refs, of a plan that takes something from elsewhere."""
    if descent.like is not None:
        refs["like"] = descent.like.id
    if descent.parent is None:
        return body
    check_tuning(descent.parent, plan_of(ledger, descent.parent), body["settings"]["tuning"])
    parent = refs["parent"] = descent.parent.id
    digest = descended_digest(body["settings_digest"], descent.start, parent)
    body |= {"start": descent.start, "settings_digest": digest}
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
    return hand_out(split_rows(ledger, split), roles_of(ledger, split), "train", SUPERVISED_KIND)


def write_rows(path: Path, rows: list[HandedOut]) -> None:
    """Rows as the child reads them: each line a chat row with its digest under `row`."""
    path.write_bytes(rows_of(rows))


def rows_of(rows: list[HandedOut]) -> bytes:
    """The bytes of that file."""
    return rows_bytes({**item.row, "row": item.digest} for item in rows)


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


def plan_body(
    method: str, settings: LearnerSettings, digest: str, figures: dict[str, Any]
) -> dict[str, Any]:
    """The body of a plan that starts fresh, as far as settings, figures and this machine give it.

    Args:
        method: `sft` or `rl`.
        settings: of the run.
        digest: of the settings and what they are used on.
        figures: `rows` and `datums`.
    """
    here = machine()
    return {
        "method": method,
        "settings": settings.effective(),
        "settings_digest": digest,
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
        "warnings": [],
    }
