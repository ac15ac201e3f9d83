"""V18: batches read training rows of their split; a checkpoint's bytes give the acknowledged state, and its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from ledger.canonical import loads, parse_real, real
from ledger.checks.ranks import processes_of
from ledger.digests import FileEntry, sha256, tree_digest
from ledger.errors import EvidenceError
from ledger.record import Record
from verifiers.data.hand_out import KINDS_OF_METHOD, hand_out
from verifiers.data.splits import read_assignment
from verifiers.learning.learner_state import (
    ADAPTER_FILE,
    CONFIG_FILE,
    KNOWN_FILES,
    LEARNER_FILE,
    parts_of,
    read_learner,
    rows_read,
    weights_file,
)
from verifiers.learning.moments import check_moments
from verifiers.learning.tensors import file_state_digest
from verifiers.learning.weights import Inventory, check_lines, checked_weights, near
from verifiers.replay.data import rows_of_split
from verifiers.replay.rollouts import batch_of_groups
from verifiers.replay.view import Replay, View, expect

Opener = Callable[[], BinaryIO]

FIGURES = ("step", "learning_rate", "loss", "gradient_norm")
"""What a line of a run's metrics repeats of its update, beside the update's own figures."""

CUT = ("labels_cut", "truncated")
"""Reasons for which a plan lists a row and trains on what is left of it."""
PICKLED = frozenset({".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth"})
MAX_CONFIG_BYTES = 1 << 20
MAX_CONFIG_DEPTH = 16


def batch_digest(rows: list[str]) -> str:
    """What names a supervised batch: its row digests in the order they are read."""
    return sha256("\n".join(rows).encode())


def batch(record: Record, view: View) -> str | None:
    """A supervised batch reads training rows of its split only, of its method's kinds; digest and counts are theirs.

    Raises:
        EvidenceError: `BATCH_ROWS`.
    """
    split_id = record.ref("split")
    if split_id is None:
        return batch_of_groups(record, view)
    body = record.body
    rows = body["rows"]
    if body.get("rows_blob") is not None:
        rows = [str(line["row"]) for line in view.lines(body["rows_blob"])]
    expect("BATCH_ROWS", "datums", body["datums"], len(rows))
    expect("BATCH_ROWS", "digest", body["digest"], batch_digest(rows))
    dropped = {item["row"] for item in body.get("dropped", [])}
    expect("BATCH_ROWS", "rows that are read and left out", sorted(dropped & set(rows)), [])
    plan = _plan(record, view)
    kinds = KINDS_OF_METHOD.get(plan.body["method"], ("chat",))
    training = training_rows(split_id, kinds, view)
    strangers = [row for row in rows if row not in training]
    expect("BATCH_ROWS", "rows that are not training rows of the split", strangers, [])
    left_out = dropped_rows(plan.id, view)
    read_all_the_same = [row for row in rows if row in left_out]
    expect("BATCH_ROWS", "rows that the plan leaves out", read_all_the_same, [])
    return "that each batch was fed these rows, in this order, with so many trainable tokens"


def training_rows(split_id: str, kinds: tuple[str, ...], view: View) -> frozenset[str]:
    """Digests of a split's training rows of some kinds."""
    return rows_of_role(split_id, "train", kinds, view)


@lru_cache(maxsize=8)
def rows_of_role(split_id: str, role: str, kinds: tuple[str, ...], view: View) -> frozenset[str]:
    """Digests of a split's rows of a role and some kinds; ids name content, so a cached answer cannot go stale."""
    split = view.get(split_id)
    rows = rows_of_split(split, view)
    role_of = read_assignment(list(view.lines(split.body["assignment"])), rows.digests)
    return frozenset(
        item.digest for kind in kinds for item in hand_out(rows.rows, role_of, role, kind)
    )


@lru_cache(maxsize=8)
def dropped_rows(plan_id: str, view: View) -> frozenset[str]:
    """Digests of the rows that a plan says it cannot train on."""
    told = view.get(plan_id).body.get("reading")
    if told is None or told["listed"] is None:
        return frozenset()
    lines = view.lines(told["listed"])
    return frozenset(str(line["row"]) for line in lines if line["reason"] not in CUT)


def checkpoint(record: Record, view: View) -> str | None:
    """The files are there with their bytes, the adapter's tensors have the acknowledged digest, the parts are there.

    Raises:
        EvidenceError: `CHECKPOINT_WRONG`, `TENSORS_INVALID`, `STATE_MALFORMED`, `BLOB_MISSING`, `BLOB_WRONG`.
    """
    body = record.body
    if body.get("hosted") is not None:
        return "what a hosted checkpoint is"
    entries = [FileEntry(item["path"], item["size"], item["digest"]) for item in body["files"]]
    expect("CHECKPOINT_WRONG", "tree", body["tree"], tree_digest(entries))
    if body["state"]["scheme"] != "tensors":
        return "what a checkpoint without tensors here is"
    files = _files(record, view)
    pickled = sorted(path for path in files if PurePosixPath(path).suffix.lower() in PICKLED)
    expect("CHECKPOINT_WRONG", "files of formats that run code", pickled, [])
    expect(
        "CHECKPOINT_WRONG", "files that no checkpoint has", sorted(files.keys() - KNOWN_FILES), []
    )
    with files[weights_file(files)]() as stream:
        state = file_state_digest(stream)
    plan = _plan(record, view)
    _weights(record, plan, view)
    _check_base(files, plan, view)
    expect("CHECKPOINT_WRONG", "state", body["state"]["value"], state)
    _check_parts(body, files, processes_of(plan.body))
    check_moments(files)
    return None if plan.body.get("trained") else "which tensors a run trains"


def ended(record: Record, view: View) -> str | None:
    """The weights that a completed run binds are those of its last update, tensor by tensor, from the bytes.

    Its rows are those of its plan, and its figures those of its updates.

    Raises:
        EvidenceError: `ACCOUNT_WRONG`, `COMPLETION_WRONG`, or what `checked_weights` raises.
    """
    _check_account(record, view)
    bound = record.body.get("weights")
    if bound is None:
        return None
    update, checkpoint = view.ref(record, "last_update"), view.ref(record, "checkpoint")
    expect("COMPLETION_WRONG", "state", bound["state"], update.body["after"])
    if bound["state"]["scheme"] != "tensors":
        return "what weights a run elsewhere leaves"
    found = _weights(checkpoint, _plan(record, view), view)
    expect("COMPLETION_WRONG", "parameters", bound["parameters"], found.summary["parameters"])
    differing = check_lines(found, list(view.lines(bound["tensors"])))
    expect("COMPLETION_WRONG", "tensors", differing, None)
    if not near(found.norm, bound["norm"]):
        expect("COMPLETION_WRONG", "norm", bound["norm"], real(found.norm))
    return None


def _check_account(record: Record, view: View) -> None:
    """Where the rows went is what the plan said, and the figures are those of the newest updates, in order."""
    plan = _plan(record, view)
    if plan.body["method"] not in KINDS_OF_METHOD:
        return
    planned = plan.body["rows"]
    told = {name: record.body["rows"][name] for name in planned if name in record.body["rows"]}
    expect("ACCOUNT_WRONG", "rows", told, {name: planned[name] for name in told})
    if record.body["metrics"] is None:
        return
    update = record.ref("last_update")
    for line in reversed(list(view.lines(record.body["metrics"]))):
        expect(
            "ACCOUNT_WRONG", "figures of updates that are not there", update is None, derived=False
        )
        found = view.get(str(update))
        body = {**found.body["figures"], "time": found.time}
        body |= {name: found.body[name] for name in FIGURES}
        expect("ACCOUNT_WRONG", f"figures of step {found.body['step']}", line, body)
        update = found.ref("previous")


def moved(update: Record, get: Callable[[str], Record]) -> bool:
    """Whether an update, or one before it on its path, had a positive learning rate."""
    while parse_real(update.body["learning_rate"]) <= 0:
        previous = update.ref("previous")
        if previous is None:
            return False
        update = get(previous)
    return True


def check_base(config: bytes, model: Record) -> None:
    """An adapter's configuration names the registered base model, by name and revision.

    The bytes of that model are bound by the plan, which names its record and with it the digest of every file.

    Raises:
        EvidenceError: `BASE_OTHER`; `NOT_CANONICAL`, it is no JSON.
    """
    value = loads(config, MAX_CONFIG_DEPTH)
    named = (None, None)
    if isinstance(value, dict):
        named = (value.get("base_model_name_or_path"), value.get("revision"))
    registered = (model.body["name"], model.body["revision"])
    if named != registered:
        raise EvidenceError(
            "BASE_OTHER",
            f"{CONFIG_FILE} names another base model or revision than the plan's",
            field=CONFIG_FILE,
            expected=str(registered),
            actual=str(named),
        )


def _plan(record: Record, view: View) -> Record:
    return view.ref(view.ref(record, "run"), "plan")


def _files(checkpoint: Record, view: View) -> dict[str, Opener]:
    """What opens each file; the pass has hashed each of them before."""
    return {
        item["path"]: partial(view.blobs.open, item["digest"]) for item in checkpoint.body["files"]
    }


def _weights(checkpoint: Record, plan: Record, view: View) -> Inventory:
    return checked_weights(
        _files(checkpoint, view),
        plan.body.get("trained"),
        moved=moved(view.ref(checkpoint, "update"), view.get),
    )


def _check_base(files: Mapping[str, Opener], plan: Record, view: View) -> None:
    if ADAPTER_FILE not in files:
        return
    expect("CHECKPOINT_WRONG", CONFIG_FILE, CONFIG_FILE in files, derived=True)
    with files[CONFIG_FILE]() as stream:
        config = stream.read(MAX_CONFIG_BYTES)
    check_base(config, view.ref(plan, "model"))
    _check_adapter(loads(config, MAX_CONFIG_DEPTH), plan.body["settings"])


def _check_adapter(config: dict[str, Any], settings: Mapping[str, Any]) -> None:
    """What makes other weights of the same tensors is what the plan's settings say: scale, rank, places."""
    for field, name in (("r", "lora_rank"), ("lora_alpha", "lora_alpha")):
        if name in settings:
            expect("CHECKPOINT_WRONG", f"{CONFIG_FILE} {field}", config.get(field), settings[name])
    if "lora_targets" in settings:
        named, wanted = config.get("target_modules"), settings["lora_targets"]
        found = sorted(named) if isinstance(named, list) else named
        expect("CHECKPOINT_WRONG", f"{CONFIG_FILE} target_modules", found, sorted(wanted))


def _check_parts(body: dict[str, Any], files: Mapping[str, Opener], processes: int) -> None:
    """The parts that the record claims are those that the bytes hold, and the sampler stands where the datums say."""
    parts = parts_of(files, body["step"], processes)
    expect("CHECKPOINT_WRONG", "completeness", body["completeness"], parts)
    if body["completeness"]["sampler"]:
        read = rows_read(read_learner(files[LEARNER_FILE]))
        expect("CHECKPOINT_WRONG", "the sampler's position", read, body["spent_datums"])


REPLAYS: dict[str, Replay] = {
    "batch.built": batch,
    "checkpoint.published": checkpoint,
    "run.ended": ended,
}
