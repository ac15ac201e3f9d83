"""Results of the commands about the ledger itself."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from runners.cli.results.base import Id, Key, Number, OpenResult, Result, Root


class Init(Result):
    """`evidence init`; `seal` is the signed note."""

    ledger: str
    id: Id
    origin: str
    root_key: Key
    root_key_file: str
    writer_key: Key
    writer_key_file: str
    writer_roles: list[str]
    seal: str


class EnrolledKey(Result):
    """A key and its window; `until_seq` is the first seq at which it no longer signs."""

    key: Key
    public_key: Root
    roles: list[str]
    owner: str
    from_seq: Number
    until_seq: Number | None


class KeyList(Result):
    """`evidence key list`."""

    root_key: Key
    keys: list[EnrolledKey]


class KeyNew(Result):
    """`evidence key new`."""

    key: Key
    public_key: Root
    file: str
    public_file: str


class KeyEnroll(Result):
    """`evidence key enroll`."""

    record: Id
    seq: Number
    key: Key
    public_key: Root
    roles: list[str]
    from_seq: Number
    owner: str


class KeyRevoke(Result):
    """`evidence key revoke`."""

    record: Id
    seq: Number
    key: Key
    from_seq: Number
    reason: str


class KeyRotateRoot(Result):
    """`evidence key rotate-root`."""

    record: Id
    seq: Number
    old_key: Key
    new_key: Key
    file: str


class PolicyDeclare(Result):
    """`evidence policy declare`; with `--template` only `template`."""

    policy: Id | None = None
    seq: Number | None = None
    floors: dict[str, str | int] | None = None
    template: str | None = None


class Note(Result):
    """`evidence note`."""

    note: Id
    seq: Number
    about: Id


class Seal(Result):
    """`evidence seal`; `seal` is the signed note."""

    origin: str
    size: Number
    root: Root
    seal: str
    file: str | None


class SeenHead(Result):
    """A head of a ledger: how many records, and the root over them."""

    size: Number
    root: Root


class Restore(Result):
    """`evidence restore`; with `--request` only `request` and what is asked for.

    `finished_earlier`: the record was there, and only the high-water file had still to be lowered.
    """

    record: Id | None = None
    seq: Number | None = None
    lost_from: Number
    high_water: SeenHead
    why: str
    unconfirmed: list[Id] | None = None
    finished_earlier: bool | None = None
    request: str | None = None


class StatementRequest(Result):
    """`evidence statement request`."""

    ledger: str
    kind: str
    refs: dict[str, Id | list[Id]]
    body: dict[str, Any]
    seal: SeenHead
    file: str


class StatementRecord(Result):
    """`evidence statement record`."""

    record: Id
    seq: Number
    kind: str
    key: Key


class StatementSign(Result):
    """`evidence statement sign`; with `--bundle` whether its root was pinned, and the records that it is about."""

    key: Key
    ledger: str
    kind: str
    refs: dict[str, Id | list[Id]]
    body: dict[str, Any]
    seal: SeenHead
    file: str
    trust: Literal["pinned", "on_faith"] | None = None
    about: list[dict[str, Any]] | None = None


class CarriedBlobs(Result):
    """Blobs that travel, that a record withholds, and that whoever made the bundle left out."""

    here: Number
    withheld: Number
    left_out: Number


class ExportBundle(Result):
    """`evidence export bundle`; `size` and `root` of the ledger, or of the seal that a closure is proven under."""

    file: str
    digest: Id
    bytes: Number
    scope: Literal["ledger", "closure"]
    origin: str
    record: Id | None
    records: Number
    size: Number
    root: Root
    blobs: CarriedBlobs


class Import(Result):
    """`evidence import`."""

    ledger: str
    id: Id
    origin: str
    records: Number
    root: Root
    verdict: Literal["verified", "wrong", "incomplete"]
    level: Literal["records", "blobs"]
    trust: Literal["pinned", "on_faith"]
    rollback: str
    blobs: CarriedBlobs


class Backup(Result):
    """`evidence backup`; `absent` are blobs that records name and that the ledger has not."""

    folder: str
    origin: str
    size: Number
    root: Root
    blobs: Number
    bytes: Number
    absent: list[Id]


class Gc(Result):
    """`evidence gc`; `removed` and `leftovers` would be removed under `dry_run`, `young` are left for now."""

    dry_run: bool
    removed: list[Id]
    leftovers: list[str]
    bytes: Number
    young: Number
    named: Number


class Head(Result):
    """A tree head that a seal signs."""

    origin: str
    size: Number
    root: Root


class Prove(Result):
    """`evidence prove`; `trust` where a proof was checked, the rest where one was made."""

    record: Id
    seq: Number
    kind: str
    seal: Head
    vkeys: list[str] | None = None
    proof: str | None = None
    file: str | None = None
    trust: Literal["pinned", "on_faith"] | None = None


class LoggedRecord(Result):
    """A record in a few words; `suspect` says why it is, where it is."""

    seq: Number
    id: Id
    kind: str
    time: str
    actor: Key
    summary: str
    suspect: str | None = None


class Log(Result):
    """`evidence log`; `size` counts every record in the ledger."""

    size: Number
    records: list[LoggedRecord]


class Show(OpenResult):
    """`evidence show`: the entry's fields, its id and signature, `suspect` where it is; with `--dsse` the envelope instead."""


class LineageNode(Result):
    """A record; `last_seq`, `records` and `kinds` where several were folded into one node; `bytes` of file or folder."""

    id: Id
    kind: str
    seq: Number
    last_seq: Number | None = None
    records: Number | None = None
    kinds: dict[str, Number] | None = None
    suspect: str | None = None
    bytes: Id | None = None


class LineageEdge(Result):
    """`from` names `to` under `role`."""

    source: Id = Field(alias="from")
    to: Id
    role: str


class Lineage(Result):
    """`evidence lineage`."""

    root: Id
    direction: Literal["up", "impact"]
    nodes: list[LineageNode]
    edges: list[LineageEdge]


class FieldDifference(Result):
    """A field that differs; null where a record has no such field."""

    field: str
    a: Any
    b: Any


class Parting(Result):
    """The first step at which two runs read another batch, or came to another state."""

    step: Number
    batch: bool
    state: bool


class Diff(Result):
    """`evidence diff`: fields that differ, how many are `equal`; of runs how many `steps` both took, and where they part."""

    kind: str
    a: Id
    b: Id
    equal: Number
    differences: list[FieldDifference]
    steps: Number
    parting: Parting | None


class AuditLineage(OpenResult):
    """`evidence audit lineage`: what a checkpoint rests on, what is missing for a promotion, what is taken on faith."""

    checkpoint: Id
    step: Number
    tree: Id
    suspect: str | None
    models: list[dict[str, Any]]
    sources: list[dict[str, Any]]
    splits: list[dict[str, Any]]
    leaks: list[dict[str, Any]]
    runs: list[dict[str, Any]]
    test_looks: list[dict[str, Any]]
    promotion: dict[str, Any]
    on_faith: dict[str, Number]
    underived: dict[str, Number]


class Sentence(Result):
    """One sentence of an account, the record that it is about, and the command that derives it again."""

    section: str
    text: str
    record: Id | None
    command: str


class Explain(OpenResult):
    """`evidence explain`: every number of an account, derived again, and the account in sentences."""

    about: dict[str, Any]
    commands: dict[str, str]
    verdict: str
    gate: dict[str, Any] | None
    figures: dict[str, Any] | None
    test: dict[str, Any] | None
    draws: list[dict[str, Any]] | dict[str, Any]
    approvals: list[dict[str, Any]]
    promotion: dict[str, Any]
    rests_on: dict[str, Any]
    derived: dict[str, Any]
    sentences: list[Sentence]


class Dossier(Result):
    """`evidence dossier`: the page, its digest and size, and what it is about."""

    file: str
    digest: Id
    bytes: Number
    record: Id
    verdict: str


class AsOf(Result):
    """The head at which the ledger was read."""

    size: Number
    root: str


class Query(Result):
    """`evidence query`: an answer, or with `--list` the queries, or with `--tables` the tables."""

    columns: list[str] | None = None
    rows: list[list[Any]] | None = None
    truncated: bool | None = None
    as_of: AsOf | None = None
    queries: list[dict[str, Any]] | None = None
    tables: list[dict[str, Any]] | None = None


class Segments(Result):
    """`evidence segments build` and `check`: how many records are sealed, in how many segments and bytes."""

    sealed: Number
    size: Number
    segments: Number
    made: Number
    refused: str | None
    bytes: Number


class Blobs(Result):
    """Blobs re-hashed and whole, with other bytes, withheld on purpose, and not there to read."""

    checked: Number
    wrong: Number
    withheld: Number
    unread: Number
    bytes: Number


class Finding(OpenResult):
    """One thing that is wrong or missing."""

    code: str
    seq: Number | None
    id: str | None
    expected: str | None
    actual: str | None
    hint: str


class Verify(OpenResult):
    """`evidence verify`."""

    verdict: Literal["verified", "wrong", "incomplete"]
    level: Literal["records", "blobs"]
    trust: Literal["pinned", "on_faith"]
    rollback: str
    records: Number
    since: Number
    blobs: Blobs
    findings: list[Finding]
    warnings: list[Finding]


class Schema(OpenResult):
    """`evidence schema`: the list of kinds, or for a kind its JSON Schema."""


RESULTS: dict[str, type[Result]] = {
    "audit lineage": AuditLineage,
    "backup": Backup,
    "diff": Diff,
    "dossier": Dossier,
    "explain": Explain,
    "export bundle": ExportBundle,
    "gc": Gc,
    "import": Import,
    "init": Init,
    "key enroll": KeyEnroll,
    "key list": KeyList,
    "key new": KeyNew,
    "key revoke": KeyRevoke,
    "key rotate-root": KeyRotateRoot,
    "lineage": Lineage,
    "log": Log,
    "note": Note,
    "policy declare": PolicyDeclare,
    "prove": Prove,
    "query": Query,
    "segments build": Segments,
    "segments check": Segments,
    "restore": Restore,
    "schema": Schema,
    "seal": Seal,
    "show": Show,
    "statement record": StatementRecord,
    "statement request": StatementRequest,
    "review sign": StatementSign,
    "statement sign": StatementSign,
    "verify": Verify,
}
