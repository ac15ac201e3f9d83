"""The reducer's state: keys, policy, open plans and open runs; bounded, and its bytes are canonical.

Everything else that a rule needs is fetched by id and certified by its hash. The state grows with keys,
statements, unlaunched plans and unfinished runs, never with the number of records.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from ledger import canonical
from ledger.errors import EvidenceError
from ledger.records.base import Hex32

HEADS_KEPT = 256

TENSORS = "tensors"
"""The scheme of a weight state that is a digest over tensors."""

Size = Annotated[str, Field(pattern=r"^[0-9]{1,19}$")]
"""A number of records as the key of a JSON object."""


@dataclass
class KeyState:
    """An enrolled key: raw public key as hex, roles, the seqs between which it may sign.

    `suspect_from` is the seq from which its signatures are suspect, where it was revoked from an earlier one.
    """

    public: Hex32
    roles: list[str]
    from_seq: int
    until_seq: int | None = None
    suspect_from: int | None = None
    owner: str = ""


@dataclass
class RunState:
    """A launched run that has not completed.

    `status` is running, unconfirmed (the ledger was restored while it ran, and what it did since the backup
    is lost) or ended; `live` counts the updates on the live path; `last_update` and
    `last_state` are its newest update's id and state-after; `pending` maps batch id to batch digest.

    After a resumption `superseded` maps the steps still to be redone to the updates that no longer count, and `exact`
    says that redoing them gives the same states. `unrestored` is true from where an attempt begins at a checkpoint until it has
    said that it loaded it. `scheme` is how `last_state` is written where that is no digest over tensors. A run that goes on exactly from another's checkpoint has inherited
    that run's live path: `lineage` is the run with which it began, whose budget all share, and which counts in
    `elsewhere` the updates of the others. `heir` is the run that went on from this one's checkpoint. `ranks` is how many
    processes take each step, 0 where one does.
    """

    plan: str
    twin: str
    method: str
    split: str
    budget: int
    status: str = "running"
    live: int = 0
    last_update: str | None = None
    last_state: str | None = None
    groups: int = 0
    batches: int = 0
    datums: int = 0
    pending: dict[str, str] = field(default_factory=dict)
    ended: str | None = None
    superseded: dict[str, str] = field(default_factory=dict)
    exact: bool = False
    lineage: str | None = None
    elsewhere: int = 0
    heir: str | None = None
    ranks: int = 0
    unrestored: bool = False
    scheme: str | None = None

    def state(self) -> dict[str, str] | None:
        """The newest update's state-after as a record writes it; None where no update is known."""
        if self.last_state is None:
            return None
        return {"scheme": self.scheme or TENSORS, "value": self.last_state}

    def stand_at(self, state: dict[str, str] | None) -> None:
        """Take a record's state for the newest."""
        self.last_state = None if state is None else state["value"]
        self.scheme = None if state is None or state["scheme"] == TENSORS else state["scheme"]

    def plain(self) -> dict[str, Any]:
        """The run as an object; fields that came later are left out where they say nothing, so old bytes stay."""
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in _LATER or value not in (None, False, 0, {})
        }


_LATER = frozenset(
    {"superseded", "exact", "lineage", "elsewhere", "heir", "ranks", "unrestored", "scheme"}
)


@dataclass
class State:
    """What admission and replay carry from record to record."""

    origin: str = ""
    ledger_id: str = ""
    root_key: str = ""
    last_time: str = ""
    policy: str | None = None
    keys: dict[str, KeyState] = field(default_factory=dict)
    nonces: dict[str, int] = field(default_factory=dict)
    heads: dict[Size, Hex32] = field(default_factory=dict)
    plans: dict[str, str] = field(default_factory=dict)
    runs: dict[str, RunState] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Canonical bytes: what a snapshot's digest is over."""
        runs = {run_id: run.plain() for run_id, run in self.runs.items()}
        return canonical.encode({**asdict(self), "runs": runs})

    def root_of(self, run: RunState) -> RunState | None:
        """The run that a run's lineage began with, itself where it began one; None where that has completed."""
        return run if run.lineage is None else self.runs.get(run.lineage)

    @classmethod
    def from_bytes(cls, data: bytes) -> State:
        """The state of a snapshot's blob.

        Raises:
            EvidenceError: `NOT_CANONICAL` or `SNAPSHOT_WRONG`.
        """
        try:
            state = _ADAPTER.validate_json(canonical.encode(canonical.decode(data)), strict=True)
        except ValidationError as error:
            raise EvidenceError("SNAPSHOT_WRONG", f"no reducer state: {error.title}") from None
        if state.to_bytes() != data:
            raise EvidenceError("SNAPSHOT_WRONG", "the state has fields too many or too few")
        return state

    def remember_head(self, size: int, root: str) -> None:
        """Keep a sealed head so that later statements can name it; the oldest falls out."""
        self.heads[str(size)] = root
        while len(self.heads) > HEADS_KEPT:
            del self.heads[min(self.heads, key=int)]


_ADAPTER = TypeAdapter(State)
