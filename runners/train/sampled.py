"""One attempt at a run of groups while it goes on: groups become records or rejections, batches name groups.

A group that the run recorded before is not recorded again: after a crash the child replays what it had sampled, and the
record stands already. So the batches of a redone update have the digests of those before (U6).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ledger.blobs import JSON_LINES, SAFETENSORS
from ledger.errors import EvidenceError
from runners.train.child_events import FIELDS, folder_within, nonsense
from runners.train.group_checks import check_given, check_sampled
from runners.train.journal import SAMPLES, TRACE
from runners.train.own_rl_settings import planned_settings
from runners.train.supervised import Supervised
from verifiers.replay.rollouts import datum_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ledger.record import Record
    from runners.child import Event, Reply
    from runners.train.rl_config import RlSettings

RL_FIELDS: dict[str, dict[str, type]] = {
    **FIELDS,
    "groups": {"generation": int, "draw": int, "state": str, "path": str, "groups": list},
    "batch": {"step": int, "groups": list, "trainable_tokens": int},
}
_SAID: dict[str, tuple[type, ...]] = {
    "task": (str,),
    "script": (str,),
    "rewards": (list,),
    "advantages": (list,),
    "stops": (dict,),
}


@dataclass
class Sampled(Supervised):
    """An attempt at a run of groups; see `Supervised`.

    Attributes:
        journal: the child's folder of draws.
    """

    fields: ClassVar[Mapping[str, Mapping[str, type]]] = RL_FIELDS

    journal: Path = field(kw_only=True)
    settings: RlSettings = field(init=False)
    groups: dict[str, int] = field(init=False)
    known: dict[tuple[str, ...], Record] = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.settings = planned_settings(self.plan.body["settings"])
        found = self.ledger.referrers(self.run.id, "run", "rollout.group")
        self.known = {_key(item.body): item for item in found}
        self.groups = {item.id: int(item.body["members"]) for item in found}

    def handlers(self) -> dict[str, Callable[[Event], Reply]]:
        """What answers each event."""
        return {**super().handlers(), "groups": self._groups}

    def build(self, event: Event) -> Record:
        """Record which groups the next step is about to read, member by member.

        Raises:
            EvidenceError: `CHILD_PROTOCOL`, one of them is no recorded group of the run, or is not read whole.
        """
        self.check_restored(event)
        groups = [self._whole(item) for item in event["groups"]]
        datums = [(name, member) for name, members in groups for member in range(members)]
        refs: dict[str, str | list[str]] = {
            "run": self.run.id,
            "group": [name for name, _ in groups],
        }
        self.batch = self.ledger.append(
            "batch.built",
            {
                "step": event["step"],
                "digest": datum_digest(datums),
                "rows": [],
                "rows_blob": None,
                "datums": len(datums),
                "trainable_tokens": event["trainable_tokens"],
                "dropped": [],
            },
            refs,
        )
        self.datums += len(datums)
        return self.batch

    def _whole(self, item: Any) -> tuple[str, int]:
        if not isinstance(item, list) or [type(part) for part in item] != [str, int]:
            raise nonsense("event batch does not list groups with their members")
        name, members = item
        if self.groups.get(name) != members:
            raise nonsense(f"the child read {members} members of group {name[:80]}")
        return name, members

    def _groups(self, event: Event) -> Reply:
        """Record the groups of a draw; the reply names them in order, null for one that was rejected.

        Raises:
            EvidenceError: `CHILD_PROTOCOL`.
        """
        self.check_restored(event)
        folder = folder_within(event, self.journal)
        files = sorted(folder.glob(f"*{SAMPLES}"))
        if len(files) != len(event["groups"]) or len(files) != self.settings.groups_per_batch:
            raise nonsense("event groups does not say one group for each file of its draw")
        served = self.settings.engine != "transformers"
        if (type(event.get("weights")) is str) != served:
            raise nonsense(
                "event groups does not say which weights a server had, or says it of none"
            )
        return {
            "groups": [
                self._group(event, path, said)
                for path, said in zip(files, event["groups"], strict=True)
            ]
        }

    def _group(self, event: Event, path: Path, said: Any) -> str | None:
        if not isinstance(said, dict) or any(
            type(said.get(name)) not in kinds for name, kinds in _SAID.items()
        ):
            raise nonsense("event groups does not say what each group is")
        samples = self.ledger.blobs.put_file(path, SAFETENSORS)
        trace = self.ledger.blobs.put_file(path.with_suffix(TRACE), JSON_LINES)
        body = {
            "task": said["task"],
            "script": said["script"],
            "members": self.settings.group_size,
            "samples": samples.model_dump(),
            "state": {"scheme": "tensors", "value": event["state"]},
            "rewards": said["rewards"],
            "advantages": said["advantages"],
            "dialect": self.settings.objective,
            "sampler": self.settings.sampler(),
            "stops": said["stops"],
            "trace": trace.model_dump(),
            "generation": event["generation"],
            "draw": event["draw"],
            "weights": event.get("weights"),
        }
        known = self.known.get(_key(body))
        if known is not None:
            return known.id
        policy = self.last_update or self.run.id
        refs: dict[str, str | list[str]] = {"run": self.run.id, "policy": policy}
        try:
            check_given(said.get("refused"))
            planned = self.plan.body["settings"]
            check_sampled(body, path, path.with_suffix(TRACE), self.given, planned)
        except EvidenceError as error:
            detail = f"{error.message}; task {said['task']}"[:4000]
            rejection = {"code": error.code, "detail": detail, "seen": trace.model_dump()}
            self.ledger.append("rollout.rejected", rejection, refs)
            return None
        record = self.ledger.append("rollout.group", body, refs)
        self.known[_key(body)] = record
        self.groups[record.id] = self.settings.group_size
        return record.id


def _key(body: Mapping[str, Any]) -> tuple[str, ...]:
    """What tells a group from every other of its run: its place, what was sampled, by which policy."""
    place = (str(body.get("generation")), str(body.get("draw")))
    return (*place, body["samples"]["digest"], body["trace"]["digest"], body["state"]["value"])
