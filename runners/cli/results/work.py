"""Results of the commands that do the work: what of them is promised; more fields may stand beside."""

from __future__ import annotations

from typing import Any

from runners.cli.results.base import Id, Number, OpenResult, Result


class DataIngest(OpenResult):
    """`evidence data ingest`."""

    source: Id | list[Id]
    dataset: Id
    accepted: Number
    rejected: Number
    reasons: dict[str, Number]
    duplicates: Number
    secrets: dict[str, Number]


class DataSplit(OpenResult):
    """`evidence data split`: rows for each role."""

    split: Id
    roles: dict[str, Number]
    groups: Number


class Levels(OpenResult):
    """Held-out rows touched, a level each."""

    exact: Number
    normalised: Number
    masked: Number
    near_duplicate: Number
    edited: Number
    annotation: Number


class DataAudit(OpenResult):
    """`evidence data audit`: a count is the number of held-out rows touched; `history` is null where it was not asked for."""

    audit: Id
    verdict: str
    levels: Levels
    entities: dict[str, Number]
    pairs: Number
    history: dict[str, Number] | None
    examples: list[dict[str, str]]


class RewardAudit(OpenResult):
    """`evidence reward audit`: the pairs that are ordered wrongly, with what each reply earned."""

    audit: Id
    name: str
    reward_version: Number
    pairs: Number
    inversions: Number
    inverted: list[dict[str, Any]]


class DataAccept(OpenResult):
    """`evidence data accept`."""

    acceptance: Id
    audit: Id


class Plan(OpenResult):
    """`evidence plan sft|rl`: every effective setting, and each row that is cut or dropped; `plan` is null with `--check`."""

    plan: Id | None
    settings: dict[str, Any]
    warnings: list[str]
    reasons: dict[str, Number]
    listed: list[dict[str, Any]]


class Counters(OpenResult):
    """Groups sampled, datums built, updates acknowledged, outcomes evaluated."""

    groups: Number
    datums: Number
    updates: Number
    outcomes: Number


class Validation(OpenResult):
    """Mean loss in nats over the labelled tokens of validation rows, and the step after which it was taken."""

    step: Number
    loss: str
    labelled: Number


class Run(OpenResult):
    """`evidence run launch`, `resume`, `wait` and `status`: how a run stands, and how it goes.

    `run` is null for a plan that was never launched. Figures are null where there are none yet, `left_s` wherever the
    run is not running; `loss` and its like are decimal texts, as records have them.
    """

    run: Id | None
    plan: Id
    state: str
    counters: Counters
    checkpoint: Id | None = None
    attempts: Number
    superseded: Number
    loss: str | None = None
    gradient_norm: str | None = None
    learning_rate: str | None = None
    updates_per_s: float | None = None
    left_s: float | None = None
    last_update_age_s: float | None = None
    checkpoint_step: Number | None = None
    checkpoint_age_s: float | None = None
    validation: Validation | None = None


class RunList(OpenResult):
    """`evidence run list`: runs, and plans that nobody launched."""

    runs: list[Run]
    prepared: list[Run]


class RunReconcile(OpenResult):
    """`evidence run reconcile`: what was found, and whether it was seen here or is somebody's word."""

    reconciliation: Id
    run: Id
    found: str
    by: str
    evidence: str


class CheckpointRecover(OpenResult):
    """`evidence checkpoint recover`: what was written, and the parts of the learner's state that are not there."""

    checkpoint: Id
    folder: str
    files: list[str]
    bytes: Number
    absent: list[str]


class CheckpointReexecute(OpenResult):
    """`evidence checkpoint reexecute`: how many agreed, and each figure of an acknowledgement that did not."""

    updates: Number
    agreed: Number
    steps: Number
    disagreements: list[dict[str, Any]]
    changed: list[str]


class RunStop(OpenResult):
    """`evidence run stop`."""

    request: Id
    run: Id


class RunLogs(OpenResult):
    """`evidence run logs`."""

    run: Id
    log: str
    lines: list[str]


class Checkpoint(OpenResult):
    """A published checkpoint."""

    checkpoint: Id
    run: Id
    step: Number
    tree: Id
    bytes: Number


class CheckpointList(OpenResult):
    """`evidence checkpoint list`."""

    checkpoints: list[Checkpoint]


class ModelAdd(OpenResult):
    """`evidence model add`."""

    model: Id
    name: str
    family: str
    parameters: Number
    tree: Id
    licence: str


class ModelCatalog(OpenResult):
    """`evidence model catalog`."""

    models: list[dict[str, Any]]


class EvalRegister(OpenResult):
    """`evidence eval register`: cases for each kind and family."""

    protocol: Id
    role: str
    cases: dict[str, Number]
    families: dict[str, Number]


class EvalRun(OpenResult):
    """`evidence eval run`."""

    evaluation: Id
    cases: Number
    success: Number
    failure: Number
    undecided: Number
    violations: Number
    truncated: Number
    diagnostic: list[str]
    descriptive: bool


class EvalCompare(OpenResult):
    """`evidence eval compare`."""

    comparison: Id
    candidates: list[dict[str, Any]]
    recommendation: str
    descriptive: bool


class AuditDraw(OpenResult):
    """`evidence audit draw`: what it hits, and the chance that a forged share escapes, in one place and everywhere."""

    draw: Id
    drawn_from: Number
    members: Number
    targets: list[dict[str, Any]]
    escape: list[dict[str, Any]]


class AuditRun(OpenResult):
    """`evidence audit run`: every re-run of a draw so far, those that disagreed one by one."""

    draw: Id
    checks: Number
    agreed: Number
    disagreed: list[dict[str, Any]]


class JudgeQualify(OpenResult):
    """`evidence judge qualify`: `lower` of the accuracy must reach `floor`; `flips` are contradictions of so many compared."""

    qualification: Id
    asked: str
    shipped: bool
    right: Number
    total: Number
    undecided: Number
    flips: list[Number]
    lower: str
    upper: str
    floor: str
    reasons: list[str]
    qualified: bool


class Nominate(OpenResult):
    """`evidence nominate`: a checkpoint for each seed, and the one to be promoted."""

    nomination: Id
    chosen: Id
    checkpoints: dict[str, Id]
    not_eligible: list[Number]


class StudyRegister(OpenResult):
    """`evidence study register`: what can be attained; `study` is null with `--check` and `--template`."""

    study: Id | None
    descriptive: bool | None
    attainable: dict[str, str]
    reasons: list[dict[str, str]]


class StudyDecide(OpenResult):
    """`evidence study decide`: every line of the gate."""

    gate: Id
    study: Id
    passed: bool
    gates: list[dict[str, Any]]


class Bootstrap(OpenResult):
    """A percentile interval of the mean gain."""

    lower: float
    upper: float
    level: float
    replicates: Number


class Attainable(OpenResult):
    """What a candidate that never fails could reach."""

    gain: float
    minimum_p: float
    power: float


class StudyAnalyse(OpenResult):
    """`evidence study analyse`: the gate's figures and lines; `rivals` are not the gate."""

    seeds: list[Number]
    mean_gain: float
    sign_flip_p: float
    bootstrap: Bootstrap
    attainable: Attainable
    gates: list[dict[str, Any]]
    rivals: dict[str, float | None]
    standing: str
    source: Id | None


class ReviewTest(OpenResult):
    """`evidence review test`: the review, or with `--request` the file to be signed."""

    review: Id | None = None
    request: str | None = None
    fresh: bool
    look: Number
    levels: dict[str, Number]


class EvalTest(OpenResult):
    """`evidence eval test`: the evaluation of each model, by the model's record."""

    review: Id
    protocol: Id
    evaluations: dict[Id, Id]


class PromotionApprove(OpenResult):
    """`evidence promotion approve`: how many reviewers there are, and how many are needed."""

    approval: Id | None = None
    request: str | None = None
    gate: Id
    checkpoint: Id


class PromotionGrant(OpenResult):
    """`evidence promotion grant`: the digest of the promoted bytes, and where they lie."""

    promotion: Id | None = None
    request: str | None = None
    gate: Id
    checkpoint: Id
    tree: Id


class PromotionCheck(OpenResult):
    """`evidence promotion check`: the grant; `derived` is the verdict of level blobs, null where it was not asked."""

    promoted: bool
    promotion: Id
    checkpoint: Id
    tree: Id
    scope: str
    derived: str | None


class PromotionWithdraw(OpenResult):
    """`evidence promotion withdraw`."""

    withdrawal: Id | None = None
    request: str | None = None
    promotion: Id


class PromotionRow(OpenResult):
    """A promotion and how it stands: `stands`, `withdrawn` or `void`."""

    promotion: Id
    checkpoint: Id
    tree: Id
    standing: str


class PromotionList(OpenResult):
    """`evidence promotion list`."""

    promotions: list[PromotionRow]


class Promote(OpenResult):
    """`evidence promote`: the reasons against it, each with its code."""

    refusal: Id
    checkpoint: Id
    reasons: list[dict[str, Any]]
    gates: list[dict[str, Any]]


class Recovery(OpenResult):
    """A run that the demo killed: `redone` has step, state before the kill and state done again for each lost update."""

    run: Id
    checkpoint: Id
    saved_at: Number
    killed_at: Number
    redone: list[list[Any]]
    executed_again: Number
    tree: Id


class Demo(OpenResult):
    """`evidence demo`: what the job came to."""

    updates: Number
    verified: str
    recovery: Recovery


RESULTS: dict[str, type[Result]] = {
    "checkpoint list": CheckpointList,
    "checkpoint recover": CheckpointRecover,
    "checkpoint reexecute": CheckpointReexecute,
    "data accept": DataAccept,
    "audit draw": AuditDraw,
    "audit run": AuditRun,
    "data audit": DataAudit,
    "data ingest": DataIngest,
    "data split": DataSplit,
    "demo": Demo,
    "eval compare": EvalCompare,
    "eval register": EvalRegister,
    "eval run": EvalRun,
    "eval test": EvalTest,
    "model add": ModelAdd,
    "model catalog": ModelCatalog,
    "plan rl": Plan,
    "plan sft": Plan,
    "judge qualify": JudgeQualify,
    "nominate": Nominate,
    "promote": Promote,
    "promotion approve": PromotionApprove,
    "promotion check": PromotionCheck,
    "promotion grant": PromotionGrant,
    "promotion list": PromotionList,
    "promotion withdraw": PromotionWithdraw,
    "review test": ReviewTest,
    "reward audit": RewardAudit,
    "study analyse": StudyAnalyse,
    "study decide": StudyDecide,
    "study register": StudyRegister,
    "run launch": Run,
    "run list": RunList,
    "run logs": RunLogs,
    "run reconcile": RunReconcile,
    "run resume": Run,
    "run status": Run,
    "run stop": RunStop,
    "run wait": Run,
}
