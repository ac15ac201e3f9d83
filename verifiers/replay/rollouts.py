"""V18: groups count, were earned as recorded, and answer training rows; a batch of groups reads what it says it reads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ledger.digests import sha256
from ledger.errors import EvidenceError
from ledger.record import Record
from verifiers.data.hand_out import KINDS_OF_METHOD, hand_out
from verifiers.data.splits import read_assignment
from verifiers.learning.advantages import is_constant
from verifiers.learning.group_plan import GroupPlan
from verifiers.learning.groups import Group, check_group, read_group
from verifiers.replay.data import rows_of_split
from verifiers.replay.view import Replay, View, expect
from verifiers.rewards.earned import check_earned

SAMPLED = "that a group's tokens are its trace's texts, and that the policy named sampled them with these log-probabilities"
FED = "that each batch of groups was fed these completions, in this order"

Datum = tuple[str, int]
"""One completion of a batch: the id of its group, and which member it is."""


def datum_digest(datums: list[Datum]) -> str:
    """What names a batch of groups: its datums in the order they are read."""
    return sha256("\n".join(f"{group} {member}" for group, member in datums).encode())


def group(record: Record, view: View) -> str | None:
    """A group is exactly what its plan asks for, of a training row, and earned what the replay gives.

    Raises:
        EvidenceError: what `check_group` and `check_earned` raise; `GROUP_MALFORMED`, it has no trace.
    """
    plan_record = _plan(record, view)
    plan = GroupPlan.of(plan_record.body["settings"])
    found = _read(record, view)
    check_group(record.body, found, plan, _state_of(view.ref(record, "policy")))
    row = _training_rows(str(plan_record.ref("split")), view).get(record.body["task"])
    if row is None:
        raise EvidenceError(
            "GROUP_OTHER_TASK",
            "the group's task is no training row of the plan's split",
            field="task",
            actual=str(record.body["task"]),
        )
    faith = check_earned(found, plan, row)
    return SAMPLED if faith is None else f"{SAMPLED}; {faith}"


def batch_of_groups(record: Record, view: View) -> str | None:
    """The datums, tokens and digest are the groups', none is older than the plan allows, and not all are constant.

    Raises:
        EvidenceError: `BATCH_GROUPS`, `GROUP_STALE`, `BATCH_NO_SIGNAL`.
    """
    body = record.body
    plan = GroupPlan.of(_plan(record, view).body["settings"])
    groups = view.refs(record, "group")
    expect("BATCH_GROUPS", "groups named twice", len(groups) - len({item.id for item in groups}), 0)
    datums = _datums(record, groups, view)
    expect("BATCH_GROUPS", "datums", body["datums"], len(datums))
    expect("BATCH_GROUPS", "digest", body["digest"], datum_digest(datums))
    files = {item.id: _read(item, view) for item in groups}
    tokens = sum(files[name].trainable(member) for name, member in datums)
    expect("BATCH_GROUPS", "trainable_tokens", body["trainable_tokens"], tokens)
    for item in groups:
        _check_age(item, body["step"], plan, view)
    # of several batches made from one sampling, one may hold constant groups only: the others have the signal
    if plan.slices == 1 and all(_constant(item) for item in groups):
        raise EvidenceError("BATCH_NO_SIGNAL", "no group of the batch has unequal rewards")
    return FED


def _constant(record: Record) -> bool:
    return is_constant(record.body["rewards"])


def _datums(record: Record, groups: list[Record], view: View) -> list[Datum]:
    """What a batch reads: the completions that its blob lists, or all of its groups in order."""
    sizes = {item.id: int(item.body["members"]) for item in groups}
    if record.body.get("rows_blob") is None:
        return [(name, member) for name, size in sizes.items() for member in range(size)]
    lines = list(view.lines(record.body["rows_blob"]))
    datums = [(str(line["group"]), int(line["member"])) for line in lines]
    known = [0 <= member < sizes.get(name, 0) for name, member in datums]
    expect("BATCH_GROUPS", "datums of other groups", known.count(False), 0)
    expect("BATCH_GROUPS", "datums read twice", len(datums) - len(set(datums)), 0)
    unread = sizes.keys() - {name for name, _ in datums}
    expect("BATCH_GROUPS", "groups named and not read", sorted(unread), [])
    return datums


def _check_age(item: Record, step: int, plan: GroupPlan, view: View) -> None:
    """A batch for step n learns at the state after n - 1 updates; its groups were sampled at most `lag` updates before."""
    policy = view.ref(item, "policy")
    sampled_at = _updates_at(policy, view)
    lag = step - 1 - sampled_at
    if not 0 <= lag <= plan.lag:
        raise EvidenceError(
            "GROUP_STALE",
            f"group {item.id[7:19]} was sampled {lag} updates before the batch's",
            field="refs.group",
            expected=f"0 to {plan.lag}",
            actual=str(lag),
        )


def _updates_at(policy: Record, view: View) -> int:
    """After how many updates a policy state is the run's."""
    if policy.kind != "run.launched":
        return int(policy.body["step"])
    plan = view.ref(policy, "plan")
    if plan.body["start"] != "exact":
        return 0
    return int(view.ref(plan, "parent").body["spent_updates"])


def _state_of(policy: Record) -> Mapping[str, Any] | None:
    """The state that a policy's record names; a launch names none, and then the chain's rule U1 is all there is."""
    named = {"update.acknowledged": "after", "checkpoint.published": "state"}.get(policy.kind)
    state: Mapping[str, Any] | None = None if named is None else policy.body[named]
    return state


def _read(record: Record, view: View) -> Group:
    body = record.body
    if body["trace"] is None:
        raise EvidenceError("GROUP_MALFORMED", "the group has no trace", field="trace")
    with view.blobs.open(body["samples"]["digest"]) as stream:
        return read_group(stream, view.bytes(body["trace"]))


@lru_cache(maxsize=4)
def _training_rows(split_id: str, view: View) -> dict[str, Mapping[str, Any]]:
    """A split's training rows that an episode can be played on, by digest; ids name content, so none goes stale."""
    split = view.get(split_id)
    rows = rows_of_split(split, view)
    role_of = read_assignment(list(view.lines(split.body["assignment"])), rows.digests)
    return {
        item.digest: item.row
        for kind in KINDS_OF_METHOD["rl"]
        for item in hand_out(rows.rows, role_of, "train", kind)
    }


def _plan(record: Record, view: View) -> Record:
    return view.ref(view.ref(record, "run"), "plan")


REPLAYS: dict[str, Replay] = {"rollout.group": group}
