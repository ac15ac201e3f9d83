"""The verification steps V1 to V20 (docs/spec/verification.md) and which code belongs to which."""

from __future__ import annotations

STEPS: dict[str, str] = {
    "V1": "the store opens: readable, plain tables, a known format version",
    "V2": "the rows are there: seq 0, 1, 2, … without a gap",
    "V3": "each entry is canonical and within the size limit",
    "V4": "each envelope has exactly its fields",
    "V5": "each record stands in its place: seq, prev, origin, record 0",
    "V6": "each kind and schema version is known and the body is its model's",
    "V7": "each writer's key is enrolled, within its window, with a role the kind demands",
    "V8": "each signature is the writer's over these bytes",
    "V9": "each statement is there where due, new, over a prefix of this ledger, by the right role",
    "V10": "each ref names an earlier record of the right kind",
    "V11": "each rule beyond the refs holds",
    "V12": "each stored id is the hash of its record",
    "V13": "each seal's root is the tree's at its size, signed by a seal key",
    "V14": "the end is the expected one: seal given, high-water file, pinned root",
    "V15": "guards and derived files are as they should be (warnings only)",
    "V16": "each blob named is there and has the bytes its name says",
    "V17": "datasets, splits and audits, of data and of rewards, are derived again from their rows",
    "V18": "batches read training rows, checkpoint bytes give the acknowledged state, the planned tensors, the parts",
    "V19": "outcomes, evaluations and comparisons are derived again from transcripts and raw passes",
    "V20": "studies, nominations, gates and refusals are derived again from the evidence",
}

_CODES_OF_STEP: dict[str, tuple[str, ...]] = {
    "V1": (
        "LEDGER_NOT_FOUND",
        "LEDGER_UNREADABLE",
        "LEDGER_SCHEMA",
        "LEDGER_EMPTY",
        "FORMAT_UNKNOWN",
        "SQLITE_UNSAFE",
        "UNSAFE_PATH",
        "LEDGER_READ_ONLY",
        "LEDGER_BUSY",
    ),
    "V2": ("SEQ_GAP",),
    "V3": ("ENTRY_TOO_LARGE", "NOT_CANONICAL", "NOT_A_REAL"),
    "V4": ("ENVELOPE_INVALID",),
    "V5": ("CHAIN_BROKEN", "GENESIS_MISPLACED", "ORIGIN_FOREIGN"),
    "V6": ("KIND_UNKNOWN", "SCHEMA_FUTURE", "SCHEMA_UNKNOWN", "BODY_INVALID"),
    "V7": ("KEY_UNKNOWN", "KEY_OUT_OF_WINDOW", "ROLE_MISSING"),
    "V8": ("SIGNATURE_INVALID",),
    "V9": (
        "STATEMENT_MISSING",
        "STATEMENT_UNEXPECTED",
        "STATEMENT_ROLE",
        "STATEMENT_INVALID",
        "STATEMENT_REPLAYED",
        "STATEMENT_STALE",
        "STATEMENT_FOREIGN",
    ),
    "V10": ("REF_MISSING", "REF_UNEXPECTED", "REF_SHAPE", "REF_KIND", "REF_NOT_FOUND"),
    "V12": ("ROW_ID_WRONG",),
    "V13": ("SEAL_WRONG", "SEAL_INVALID", "TAIL_CUT"),
    "V14": (
        "EXPECTED_SEAL",
        "LEDGER_ROLLED_BACK",
        "LEDGER_FORKED",
        "LEDGER_RESTORED",
        "HIGHWATER_INVALID",
        "ROOT_UNTRUSTED",
        "SINCE_UNANCHORED",
        "KEY_SUSPECT",
        "PROMOTION_VOID",
        "ROOT_ROTATED",
    ),
    "V15": ("TRIGGER_MISSING", "INDEX_STALE", "CLOCK_BACKWARDS"),
    "V16": ("BLOB_MISSING", "BLOB_WRONG", "BLOB_WITHHELD", "BLOB_MALFORMED", "TOO_LARGE"),
    "V17": ("DATASET_WRONG", "SPLIT_WRONG", "AUDIT_WRONG", "REWARD_WRONG"),
    "V18": (
        "PLAN_WRONG",
        "BATCH_ROWS",
        "CHECKPOINT_WRONG",
        "TENSORS_INVALID",
        "STATE_MALFORMED",
        "WEIGHTS_EMPTY",
        "WEIGHTS_OTHER",
        "WEIGHTS_NOT_FINITE",
        "OPTIMIZER_WRONG",
        "ACCOUNT_WRONG",
        "MODEL_WRONG",
        "ADAPTER_UNTRAINED",
        "BASE_OTHER",
        "COMPLETION_WRONG",
    ),
    "V19": ("EVALUATION_WRONG", "COMPARISON_WRONG"),
    "V20": (
        "REFUSAL_WRONG",
        "STUDY_WRONG",
        "NOMINATION_WRONG",
        "GATE_UNFOUNDED",
        "UNDERIVED",
    ),
}

_STEP_OF = {code: step for step, codes in _CODES_OF_STEP.items() for code in codes}


def step_of(code: str) -> str:
    """The step that a finding's code belongs to; rules beyond the refs are all V11."""
    return _STEP_OF.get(code, "V11")
