"""Public reports about data and splits: for each a failing input, refused by its code, and the corrected one.

Each row names its report. Those about labels and masks (huggingface/trl#3927, QwenLM/Qwen3#1522 and their like) and
about adapters are shown where tokens and checkpoints are; here is what concerns rows, files, splits and leakage.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from desk_world import chat_row, lines
from world import World

from ledger.errors import EvidenceError, UsageError
from verifiers.data.hand_out import HandedOut, check_counts, check_training_rows, hand_out
from verifiers.data.identity import row_digest
from verifiers.data.leakage import PastRow, audit, entity_fields
from verifiers.data.rows import parse_rows
from verifiers.data.secrets import scan
from verifiers.data.sources import in_memory, parse_sources
from verifiers.data.splits import read_assignment, split_as_published, split_by_fractions

REQUEST = "please send the blue lamp that I ordered last week to my sister in the old town"
OTHER = "may I return these shoes for a refund to the card that I paid with"
THIRD = "is anybody there who knows when the parcel from Monday comes at last"


@dataclass(frozen=True)
class Pain:
    """A report: what fails and with which code, and the same mended, which must pass (no code)."""

    report: str
    what: str
    code: str
    failing: Callable[[], str | None]
    corrected: Callable[[], str | None]


def refusal(work: Callable[[], Any]) -> str | None:
    """The code with which something is refused, or None."""
    try:
        work()
    except (EvidenceError, UsageError) as error:
        return error.code
    return None


def reject(*rows: dict[str, Any]) -> str | None:
    """The reason for the first reject of some lines, or None."""
    return reject_of("rows.jsonl", lines(*rows))


def reject_of(name: str, data: bytes) -> str | None:
    """The reason for the first reject of a file, or None."""
    parsed = parse_sources([in_memory(name, data)])
    return parsed.rejects[0].code if parsed.rejects else None


def touched(train: dict[str, Any], test: dict[str, Any], level: str) -> str | None:
    """The level, where an audit of one training and one test row finds it; None where the audit is clean."""
    roles = {row_digest(train): "train", row_digest(test): "test"}
    found = audit([train, test], roles, entity_fields([train, test]))
    named = {item.level for item in found.findings}
    assert bool(named) == (found.verdict == "findings")
    return level if level in named else next(iter(sorted(named)), None)


def customers(count: int) -> list[dict[str, Any]]:
    """Two rows for each of so many customers."""
    return [
        chat_row(f"r{n}", f"question {n} of {REQUEST}", customer_id=f"c{n // 2}")
        for n in range(2 * count)
    ]


# --- resume: another data set under the cursor of the first --------------------------------------


def _batch_of(split: Callable[[World], str]) -> str | None:
    world = World()
    draft = world.draft("batch.built")
    draft.refs["split"] = split(world)
    return refusal(lambda: world.admit(draft))


def _planned_split(world: World) -> str:
    return str(world.need("plan.prepared").ref("split"))


# --- leaks stop a plan ---------------------------------------------------------------------------


def _plan_after(verdict: str) -> str | None:
    world = World()
    draft = world.draft("plan.prepared")
    found = world.add("leakage.audited", verdict=verdict)
    draft.refs["audit"] = found.id
    return refusal(lambda: world.admit(draft))


# --- splits --------------------------------------------------------------------------------------


def _split(count: int, weights: tuple[int, int, int]) -> str | None:
    return refusal(lambda: split_by_fractions(customers(count), ["customer_id"], weights, 1))


def _after_deduplication(rows: list[dict[str, Any]]) -> str | None:
    split = split_by_fractions(customers(6), ["customer_id"], (4, 1, 1), 1)
    return refusal(lambda: read_assignment(list(split.lines()), [row_digest(row) for row in rows]))


def _published(**roles: list[str]) -> str | None:
    rows = customers(2)
    data = json.dumps(roles).encode()
    return refusal(lambda: split_as_published(rows, ["customer_id"], data))


def _withheld(stated: dict[str, int]) -> str | None:
    split = split_by_fractions(customers(6), ["customer_id"], (4, 1, 1), 1)
    return refusal(lambda: check_counts(split.role_of, stated))


def _handed(rows: list[dict[str, Any]], role: str) -> str | None:
    role_of = {row_digest(row): "train" for row in customers(2)}
    return refusal(lambda: hand_out(rows, role_of, role, "chat"))


def _template(by: list[str]) -> str | None:
    """Generated rows that differ in names of orders only, dealt by id or by template."""
    texts = (REQUEST, OTHER, THIRD, "which of all these colours would you call the warmest one")
    rows = [chat_row(f"r{n}", f"{texts[n % 4]} #W{n}") for n in range(32)]
    split = split_by_fractions(rows, by, (2, 1, 1), 1)
    found = audit(rows, split.role_of, [])
    return "masked" if found.levels["masked"] else None


def _again_tested(row: dict[str, Any]) -> str | None:
    """A new test row, after the rows of an earlier run."""
    kept = chat_row("kept", OTHER)
    roles = {row_digest(kept): "train", row_digest(row): "test"}
    past = [PastRow("train", chat_row("old", REQUEST))]
    found = audit([kept, row], roles, [], past=past)
    return "history" if found.history else None


# --- files ---------------------------------------------------------------------------------------


def _table(content: Any) -> bytes:
    made = io.BytesIO()
    pq.write_table(pa.table({"messages": [chat_row()["messages"]], "extra_id": [content]}), made)
    return made.getvalue()


def _lost(data: bytes) -> str | None:
    """Lines that have no verdict."""
    parsed = parse_rows([data])
    return None if len(parsed.rows) + len(parsed.rejects) == data.count(b"\n") else "lost"


def _kept_a_secret(text: str) -> str | None:
    found = scan([chat_row("a", text)], ["sha256:a"])
    return found[0].kind if found else None


CHAT = chat_row("a", REQUEST, "Sure.")
PAINS = [
    Pain("NVIDIA-NeMo/RL PR #2519", "a resumed run reads another data set under the first one's cursor", "BATCH_OTHER_SPLIT", lambda: _batch_of(lambda world: world.add("split.declared", groups=5).id), lambda: _batch_of(_planned_split)),
    Pain("huggingface/datasets#4261", "a test row stands among the training rows", "exact", lambda: touched(CHAT, chat_row("b", REQUEST, "Sure."), "exact"), lambda: touched(CHAT, chat_row("b", OTHER, "Sure."), "exact")),
    Pain("embeddings-benchmark/mteb#1036", "a test row is a training row with a word changed", "edited", lambda: touched(CHAT, chat_row("b", REQUEST.replace("ordered", "bought")), "edited"), lambda: touched(CHAT, chat_row("b", THIRD), "edited")),
    Pain("embeddings-benchmark/mteb#5492", "a training row stands in the test set under another label", "annotation", lambda: touched(CHAT, chat_row("b", REQUEST, "No."), "annotation"), lambda: touched(CHAT, chat_row("b", OTHER, "No."), "annotation")),
    Pain("embeddings-benchmark/mteb#5492", "a plan rests on an audit with findings", "LEAKAGE_NOT_ACCEPTED", lambda: _plan_after("findings"), lambda: _plan_after("clean")),
    Pain("axolotl-ai-cloud/axolotl#1226", "a validation share of one in ten is no row at all", "SPLIT_ROLE_EMPTY", lambda: _split(2, (8, 1, 1)), lambda: _split(10, (8, 1, 1))),
    Pain("axolotl-ai-cloud/axolotl#1226", "no validation share is asked for", "SPLIT_SETTINGS", lambda: _split(10, (8, 0, 2)), lambda: _split(10, (7, 1, 2))),
    Pain("axolotl-ai-cloud/axolotl#2719", "duplicates are removed after the split was saved", "SPLIT_WRONG", lambda: _after_deduplication(customers(6)[:-1]), lambda: _after_deduplication(customers(6))),
    Pain("a published benchmark split", "rows of one customer are in train and in test", "SPLIT_GROUP_TORN", lambda: _published(train=["r0", "r2"], test=["r1", "r3"]), lambda: _published(train=["r0", "r1"], test=["r2", "r3"])),
    Pain("a published benchmark split", "training tasks are in the set that is evaluated by default", "SPLIT_SETTINGS", lambda: _published(train=["r0", "r1"], test=["r0", "r1", "r2", "r3"]), lambda: _published(train=["r0", "r1"], test=["r2", "r3"], base=["r0", "r1", "r2", "r3"])),
    Pain("a check of ids in other spellings", "a double space makes a test row fresh", "normalised", lambda: touched(CHAT, chat_row("b", REQUEST.replace(" ", "  "), "Sure."), "normalised"), lambda: touched(CHAT, chat_row("b", OTHER, "Sure."), "normalised")),
    Pain("a check of ids in other spellings", "a no-break space makes a test row fresh", "normalised", lambda: touched(CHAT, chat_row("b", REQUEST.replace(" ", "\u00a0"), "Sure."), "normalised"), lambda: touched(CHAT, chat_row("b", OTHER, "Sure."), "normalised")),
    Pain("a check of ids in other spellings", "a full-width question mark makes a test row fresh", "normalised", lambda: touched(chat_row("a", f"{REQUEST}?"), chat_row("b", f"{REQUEST}\uff1f"), "normalised"), lambda: touched(CHAT, chat_row("b", f"{OTHER}\uff1f"), "normalised")),
    Pain("a check of ids in other spellings", "an id in another case makes a test row fresh", "masked", lambda: touched(chat_row("a", f"{REQUEST} #W17a"), chat_row("b", f"{REQUEST} #w17A"), "masked"), lambda: touched(CHAT, chat_row("b", f"{OTHER} #w17A"), "masked")),
    Pain("generated splits isolated by id only", "with ids masked the test prompts are those of training", "masked", lambda: _template(["id"]), lambda: _template(["text:masked"])),
    Pain("a test set of another run", "what an earlier run was trained on is the new test set", "history", lambda: _again_tested(chat_row("new", REQUEST)), lambda: _again_tested(chat_row("new", THIRD))),
    Pain("rows withheld without a word", "the loader holds back rows that the record counts as training", "SPLIT_WRONG", lambda: _withheld({"train": 6, "validation": 4, "test": 2}), lambda: _withheld({"train": 8, "validation": 2, "test": 2})),
    Pain("rows of another file", "a loader reads a row that the split never dealt", "SPLIT_WRONG", lambda: _handed([chat_row("stranger")], "train"), lambda: _handed(customers(2), "train")),
    Pain("rows of another role", "a loader asks for a role that is none", "SPLIT_WRONG", lambda: _handed(customers(2), "holdout"), lambda: _handed(customers(2), "train")),
    Pain("a held-out row in a training file", "a row says that it is for the test", "held_out", lambda: reject(chat_row("a", split="test")), lambda: reject(chat_row("a", split="train"))),
    Pain("a held-out row in a training file", "it came past the parser", "HELD_OUT_ROW", lambda: refusal(lambda: check_training_rows([HandedOut("d", chat_row("a", metadata={"split": "eval"}))])), lambda: refusal(lambda: check_training_rows([HandedOut("d", chat_row("a"))]))),
    Pain("three parsers for one format", "a misspelt column is ignored", "unknown_field", lambda: reject({**CHAT, "expcted": "deny"}), lambda: reject(CHAT)),
    Pain("three parsers for one format", "arguments of a tool call are a text in one back end, an object in another", "wrong_type", lambda: reject(_calling("{}")), lambda: reject(_calling({}))),
    Pain("a row that is skipped with a warning", "a prompt that holds an answer would be trained on whole", "prompt_answered", lambda: reject({"prompt": CHAT["messages"], "completion": [{"role": "assistant", "content": "x"}]}), lambda: reject({"prompt": "x", "completion": "y"})),
    Pain("a byte order mark", "two marks are one too many, one costs nothing", "not_json", lambda: reject_of("a.jsonl", b"\xef\xbb\xbf" * 2 + lines(CHAT)), lambda: reject_of("a.jsonl", b"\xef\xbb\xbf" + lines(CHAT))),
    Pain("a table from anywhere", "a column holds bytes that no row can hold", "SOURCE_UNREADABLE", lambda: refusal(lambda: reject_of("a.parquet", _table(b"x"))), lambda: refusal(lambda: reject_of("a.parquet", _table("x")))),
    Pain("keys in transcripts", "a customer's card stands in a row", "card_number", lambda: _kept_a_secret("card 4111 1111 1111 1111"), lambda: _kept_a_secret("card 4111 1111 1111 1112")),
]  # fmt: skip


def _calling(arguments: Any) -> dict[str, Any]:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return {
        "messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "", "tool_call_id": "c"},
            {"role": "assistant", "content": "y"},
        ]
    }


@pytest.mark.parametrize("pain", PAINS, ids=[f"{n}-{pain.report}" for n, pain in enumerate(PAINS)])
def test_a_report_is_answered(pain):
    """The failing input is refused by its code, and the corrected one passes."""
    assert pain.failing() == pain.code, pain.what
    assert pain.corrected() is None, pain.what


@pytest.mark.parametrize("line", [b"\n", b"oops\n", lines(CHAT), b"[]\n", b"\xff\n", b"{}\n"])
def test_no_line_goes_missing(line):
    """Whatever a line holds, it is accepted or it is rejected; none is skipped."""
    assert _lost(line * 3) is None
