"""Whoever holds the writer's key can sign false claims; verification of the blobs finds each by its own code."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from other_plans import another_plan
from world import key

from ledger.blobs import SAFETENSORS, TEXT, BlobStore
from ledger.book import Ledger
from ledger.digests import FileEntry, sha256, tree_digest
from ledger.record import Record
from runners.prepare.data import put_lines, read_lines
from runners.prepare.divide import audit_split, declare_split
from verifiers.data.identity import dataset_identity, row_digest
from verifiers.learning.learner_state import ADAPTER_FILE
from verifiers.replay.learning import batch_digest

pytestmark = pytest.mark.slow  # whoever comes first waits for the job


@dataclass
class Forger:
    """Somebody with the writer's key and a copy of an honest ledger, who appends what is false."""

    ledger: Ledger
    ids: dict[str, str]

    def get(self, name: str) -> Record:
        """An honest record."""
        return self.ledger.get(self.ids[name])

    def again(self, record: Record, **changes: Any) -> Record:
        """An honest record once more, some of its body changed."""
        return self.ledger.append(record.kind, {**record.body, **changes}, dict(record.refs))

    def lines(self, blob: dict[str, Any]) -> list[Any]:
        """What a blob of JSON lines holds."""
        return read_lines(self.ledger, blob)

    def blob(self, lines: list[Any]) -> dict[str, Any]:
        """A new blob of JSON lines."""
        return put_lines(self.ledger, lines).model_dump()

    def opens_a_run(self) -> Record:
        """A second plan with other settings, launched: its records may be written."""
        plan = another_plan(self.ledger, self.get("plan"), seed=4711)
        body = {**self.get("run").body, "seen": self.ledger.seen().model_dump()}
        return self.ledger.append("run.launched", body, {"plan": plan.id})

    def batches(self, run: Record, rows: list[str]) -> Record:
        """A batch of that run."""
        body = {"rows": rows, "datums": len(rows), "digest": batch_digest(rows)}
        honest = self.ledger.of_kind("batch.built")[0]
        refs: dict[str, str | list[str]] = {"run": run.id, "split": self.ids["split"]}
        return self.ledger.append("batch.built", {**honest.body, **body}, refs)

    def updates(self) -> tuple[Record, Record]:
        """A second run up to its first update, as honest as the first run's."""
        run = self.opens_a_run()
        batch = self.batches(run, self.ledger.of_kind("batch.built")[0].body["rows"])
        honest = self.ledger.of_kind("update.acknowledged")[0]
        update = self.ledger.append(
            "update.acknowledged", honest.body, {"run": run.id, "batch": [batch.id]}
        )
        return run, update


@pytest.fixture
def forger(person):
    """A forger at work on a copy of the whole job."""
    with person.opens() as ledger:
        yield Forger(ledger, person.ids)


# --- the forgeries: each leaves false records, the last of which is found -----------------------


def _more_rows_than_there_are(forger: Forger) -> Record:
    dataset = forger.get("dataset")
    return forger.again(dataset, accepted=dataset.body["accepted"] + 1)


def _rows_that_the_source_lacks(forger: Forger) -> Record:
    dataset = forger.get("dataset")
    rows = forger.lines(dataset.body["rows"])
    changed = json.loads(json.dumps(rows).replace("everything before", "all before"))
    identity = dataset_identity(row_digest(row) for row in changed)
    return forger.again(dataset, rows=forger.blob(changed), identity=identity)


def _rejects_kept_silent(forger: Forger) -> Record:
    row = forger.lines(forger.get("dataset").body["rows"])[1]
    content = forger.blob([{"id": "a"}, row])
    honest = forger.ledger.of_kind("source.ingested")[0]
    source = forger.again(honest, content=content)
    body = {
        **forger.get("dataset").body,
        "rows": forger.blob([row]), "accepted": 1, "rejected": 1, "reasons": {"missing_field": 1},
        "identity": dataset_identity([row_digest(row)]), "rejects": None,
    }  # fmt: skip
    return forger.ledger.append("dataset.parsed", body, {"source": [source.id]})


def _a_row_moved_to_train(forger: Forger) -> Record:
    split = forger.get("split")
    lines = forger.lines(split.body["assignment"])
    moved = next(line for line in lines if line["role"] == "test")
    moved["role"] = "train"
    roles = {**split.body["roles"]}
    roles["train"] += 1
    roles["test"] -= 1
    return forger.again(split, assignment=forger.blob(lines), roles=roles)


def _a_row_dealt_to_nobody(forger: Forger) -> Record:
    split = forger.get("split")
    lines = forger.lines(split.body["assignment"])
    gone = lines.pop()
    roles = {**split.body["roles"], gone["role"]: split.body["roles"][gone["role"]] - 1}
    return forger.again(split, assignment=forger.blob(lines), roles=roles)


def _an_assignment_of_numbers(forger: Forger) -> Record:
    return forger.again(forger.get("split"), assignment=forger.blob([1, 2, 3]))


def _clean_although_rows_leak(forger: Forger) -> Record:
    torn = declare_split(forger.ledger, forger.get("dataset"), [], [60, 20, 20], 1)
    clean = forger.get("audit").body
    assert clean["verdict"] == "clean"
    return forger.ledger.append("leakage.audited", clean, {"split": torn.id})


def _findings_without_a_list(forger: Forger) -> Record:
    torn = declare_split(forger.ledger, forger.get("dataset"), [], [60, 20, 20], 1)
    return forger.again(audit_split(forger.ledger, torn), findings=None)


def _looser_settings_than_used(forger: Forger) -> Record:
    audit = forger.get("audit")
    return forger.again(audit, settings={**audit.body["settings"], "threshold": "0.9"})


def _a_validation_row_in_a_batch(forger: Forger) -> Record:
    lines = forger.lines(forger.get("split").body["assignment"])
    held_out = next(line["row"] for line in lines if line["role"] == "validation")
    rows = [*forger.ledger.of_kind("batch.built")[0].body["rows"][1:], held_out]
    return forger.batches(forger.opens_a_run(), rows)


def _a_case_in_a_batch(forger: Forger) -> Record:
    lines = forger.lines(forger.get("split").body["assignment"])
    train = {line["row"] for line in lines if line["role"] == "train"}
    rows = forger.lines(forger.get("dataset").body["rows"])
    case = next(row for row in rows if row.get("kind") == "desk" and row_digest(row) in train)
    return forger.batches(forger.opens_a_run(), [row_digest(case)])


def _a_batch_named_by_other_rows(forger: Forger) -> Record:
    honest = forger.ledger.of_kind("batch.built")[0].body
    run = forger.opens_a_run()
    body = {**honest, "digest": sha256(b"other rows")}
    refs: dict[str, str | list[str]] = {"run": run.id, "split": forger.ids["split"]}
    return forger.ledger.append("batch.built", body, refs)


def _a_row_read_and_left_out(forger: Forger) -> Record:
    honest = forger.ledger.of_kind("batch.built")[0].body
    apart = forger.blob([{"row": row} for row in honest["rows"]])
    dropped = [{"row": honest["rows"][0], "reason": "too_long"}]
    run = forger.opens_a_run()
    refs: dict[str, str | list[str]] = {"run": run.id, "split": forger.ids["split"]}
    body = {**honest, "rows": [], "rows_blob": apart, "dropped": dropped}
    return forger.ledger.append("batch.built", body, refs)


def _other_weights_in_a_checkpoint(forger: Forger) -> Record:
    run, update = forger.updates()
    return publish(forger, run, update, forger.get("checkpoint").body["files"])


def _a_checkpoint_without_its_adapter(forger: Forger) -> Record:
    run, update = forger.updates()
    files = forger.get("checkpoint").body["files"]
    return publish(forger, run, update, [item for item in files if item["path"] != ADAPTER_FILE])


def _a_flipped_weight_in_a_checkpoint(forger: Forger) -> Record:
    run, update = forger.updates()
    files = [dict(item) for item in forger.get("checkpoint").body["files"]]
    adapter = next(item for item in files if item["path"] == ADAPTER_FILE)
    data = bytearray(forger.ledger.blobs.read(adapter["digest"]))
    data[-1] ^= 1
    adapter["digest"] = forger.ledger.blobs.put(bytes(data), SAFETENSORS).digest
    return publish(forger, run, update, files)


def publish(
    forger: Forger,
    run: Record,
    update: Record,
    files: list[dict[str, Any]],
    there: dict[str, bool] | None = None,
) -> Record:
    """A checkpoint of the second run's first update, with the state that was acknowledged."""
    honest = forger.get("checkpoint").body
    batch = forger.ledger.get(update.ref_list("batch")[0])
    body = {
        **honest,
        "step": 1, "spent_updates": 1, "spent_datums": batch.body["datums"],
        "state": update.body["after"], "files": files,
        "completeness": {**honest["completeness"], **(there or {})},
        "tree": tree_digest([FileEntry(**item) for item in files]),
    }  # fmt: skip
    return forger.ledger.append("checkpoint.published", body, {"run": run.id, "update": update.id})


def _a_template_of_nobody(forger: Forger) -> Record:
    """A plan that names another template than its model has."""
    plan = forger.get("plan")
    other = forger.ledger.blobs.put(b"{{ 1 }}", TEXT).model_dump()
    return forger.again(plan, reading={**plan.body["reading"], "template": other})


def _a_tokenizer_of_nobody(forger: Forger) -> Record:
    """A plan that names another tokenizer than its model has."""
    plan = forger.get("plan")
    return forger.again(plan, reading={**plan.body["reading"], "tokenizer": sha256(b"other")})


def _a_dropped_row_kept_silent(forger: Forger) -> Record:
    """A plan that counts a row fewer than the split has, and lists none."""
    plan = forger.get("plan")
    rows = {**plan.body["rows"], "effective": plan.body["rows"]["effective"] - 1, "dropped": 1}
    return forger.again(plan, rows=rows)


def _a_listed_row_of_nobody(forger: Forger) -> Record:
    """A plan that lists a row that the split does not train on."""
    plan = forger.get("plan")
    line = {"row": sha256(b"x"), "id": None, "reason": "no_label_left", "detail": ""}
    listed = put_lines(forger.ledger, [line]).model_dump()
    rows = {**plan.body["rows"], "effective": plan.body["rows"]["effective"] - 1, "dropped": 1}
    reading = {**plan.body["reading"], "listed": listed, "reasons": {"no_label_left": 1}}
    return forger.again(plan, rows=rows, reading=reading)


def _a_protocol_of_another_template(forger: Forger) -> Record:
    """A protocol that keeps another template than its settings name."""
    protocol = forger.get("protocol")
    other = forger.ledger.blobs.put(b"{{ 1 }}", TEXT).model_dump()
    return forger.again(protocol, template=other)


def _a_protocol_of_another_role(forger: Forger) -> Record:
    protocol = forger.get("protocol")
    return forger.again(protocol, role="test")


def _a_success_too_many(forger: Forger) -> Record:
    honest = forger.get("adapter")
    body = honest.body
    assert body["failure"] > 0
    return forger.again(honest, success=body["success"] + 1, failure=body["failure"] - 1)


def _an_outcome_turned_round(forger: Forger) -> Record:
    honest = forger.get("adapter")
    lines = forger.lines(honest.body["outcomes"])
    turned = next(line for line in lines if line["kind"] == "desk" and line["success"] is False)
    turned["success"] = True
    body = honest.body
    counts = {"success": body["success"] + 1, "failure": body["failure"] - 1}
    return forger.again(honest, outcomes=forger.blob(lines), **counts)


def _fewer_tokens_than_written(forger: Forger) -> Record:
    arm = forger.ledger.of_kind("arm.transcribed")[0]
    return forger.again(arm, tokens=arm.body["tokens"] - 1)


def _answers_to_other_cases(forger: Forger) -> Record:
    arm = forger.ledger.of_kind("arm.transcribed")[0]
    lines = forger.lines(arm.body["transcripts"])
    lines[0]["case"] = "a case that was never planned"
    return forger.again(arm, transcripts=forger.blob(lines))


def _verdicts_that_the_judge_did_not_give(forger: Forger) -> Record:
    honest = forger.ledger.of_kind("judge.passed")[0]
    lines = forger.lines(honest.body["verdicts"])
    return forger.again(honest, verdicts=forger.blob(lines[:-1]))


def _a_judge_shown_other_replies(forger: Forger) -> Record:
    honest = forger.ledger.of_kind("judge.passed")[0]
    items = forger.lines(honest.body["raw_input"])
    items[0]["reply"] = "You paid with a gift card, so it is refunded immediately."
    return forger.again(honest, raw_input=forger.blob(items))


def _a_significance_made_up(forger: Forger) -> Record:
    honest = forger.get("comparison")
    (candidate,) = honest.body["candidates"]
    return forger.again(honest, candidates=[{**candidate, "mcnemar_p": "0.001"}])


def _a_recommendation_made_up(forger: Forger) -> Record:
    honest = forger.get("comparison")
    (candidate,) = honest.body["candidates"]
    body = {
        "candidates": [{**candidate, "eligible": True}],
        "recommendation": "candidate",
        "recommended": candidate["evaluation"],
    }
    return forger.again(honest, **body)


def _reasons_left_out(forger: Forger) -> Record:
    honest = forger.get("refusal")
    assert len(honest.body["reasons"]) > 1
    return forger.again(honest, reasons=honest.body["reasons"][:1])


def _a_failed_gate_called_passed(forger: Forger) -> Record:
    honest = forger.get("refusal")
    gates = [{**gate, "passed": True} for gate in honest.body["gates"]]
    return forger.again(honest, gates=gates)


def _a_count_beside_the_lines(forger: Forger) -> Record:
    honest = forger.get("dataset")
    return forger.again(honest, rows={**honest.body["rows"], "count": 1})


FORGERIES: list[tuple[Callable[[Forger], Record], str, str]] = [
    (_more_rows_than_there_are, "DATASET_WRONG", "V17"),
    (_a_count_beside_the_lines, "BLOB_WRONG", "V16"),
    (_rows_that_the_source_lacks, "DATASET_WRONG", "V17"),
    (_rejects_kept_silent, "DATASET_WRONG", "V17"),
    (_a_row_moved_to_train, "SPLIT_WRONG", "V17"),
    (_a_row_dealt_to_nobody, "SPLIT_WRONG", "V17"),
    (_an_assignment_of_numbers, "BLOB_MALFORMED", "V16"),
    (_clean_although_rows_leak, "AUDIT_WRONG", "V17"),
    (_findings_without_a_list, "AUDIT_WRONG", "V17"),
    (_looser_settings_than_used, "AUDIT_WRONG", "V17"),
    (_a_template_of_nobody, "PLAN_WRONG", "V18"),
    (_a_tokenizer_of_nobody, "PLAN_WRONG", "V18"),
    (_a_dropped_row_kept_silent, "PLAN_WRONG", "V18"),
    (_a_listed_row_of_nobody, "PLAN_WRONG", "V18"),
    (_a_validation_row_in_a_batch, "BATCH_ROWS", "V18"),
    (_a_case_in_a_batch, "BATCH_ROWS", "V18"),
    (_a_batch_named_by_other_rows, "BATCH_ROWS", "V18"),
    (_a_row_read_and_left_out, "BATCH_ROWS", "V18"),
    (_other_weights_in_a_checkpoint, "CHECKPOINT_WRONG", "V18"),
    (_a_checkpoint_without_its_adapter, "CHECKPOINT_WRONG", "V18"),
    (_a_flipped_weight_in_a_checkpoint, "CHECKPOINT_WRONG", "V18"),
    (_a_protocol_of_another_role, "EVALUATION_WRONG", "V19"),
    (_a_protocol_of_another_template, "EVALUATION_WRONG", "V19"),
    (_a_success_too_many, "EVALUATION_WRONG", "V19"),
    (_an_outcome_turned_round, "EVALUATION_WRONG", "V19"),
    (_fewer_tokens_than_written, "EVALUATION_WRONG", "V19"),
    (_answers_to_other_cases, "EVALUATION_WRONG", "V19"),
    (_verdicts_that_the_judge_did_not_give, "EVALUATION_WRONG", "V19"),
    (_a_judge_shown_other_replies, "EVALUATION_WRONG", "V19"),
    (_a_significance_made_up, "COMPARISON_WRONG", "V19"),
    (_a_recommendation_made_up, "COMPARISON_WRONG", "V19"),
    (_reasons_left_out, "REFUSAL_WRONG", "V20"),
    (_a_failed_gate_called_passed, "REFUSAL_WRONG", "V20"),
]


@pytest.mark.parametrize(
    ("forge", "code", "step"),
    [pytest.param(*row, id=row[0].__name__.replace("_", " ").strip()) for row in FORGERIES],
)
def test_a_signed_lie_is_found_where_it_stands(person, forger, forge, code, step):
    """A false claim signed with the right key passes every rule, and is the one thing that replay finds."""
    is_found_alone(person, forger, forge(forger), code, step)


def is_found_alone(person, forger, forged: Record, code: str, step: str) -> None:
    """The rules let the ledger by, and the one finding of the blobs is this record."""
    forger.ledger.seal()
    records = person.types("verify", "--workers", 1)
    assert records.result["verdict"] == "verified", records.result["findings"]
    answer = person.verify()
    found = [
        (item["code"], item["step"], item["seq"], item["id"]) for item in answer.result["findings"]
    ]
    assert found == [(code, step, forged.seq, forged.id)]
    assert (answer.code, answer.error["code"]) == (1, code)


# --- bytes changed after the fact ---------------------------------------------------------------


def stored(person, digest: str) -> Path:
    """Where a blob lies."""
    return BlobStore(person.ledger / "blobs").path(digest)


def transcripts(person) -> tuple[Record, Path]:
    """The first arm, and the file of its transcripts."""
    with Ledger.read(person.ledger) as ledger:
        arm = ledger.of_kind("arm.transcribed")[0]
    return arm, stored(person, arm.body["transcripts"]["digest"])


def test_an_edited_transcript_is_named(person):
    """One answer changed in place: the first finding is the blob, at the record that names it."""
    arm, path = transcripts(person)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes().replace(b'"truncated":true', b'"truncated":false', 1))
    answer = person.verify()
    first = answer.result["findings"][0]
    assert (answer.code, answer.result["verdict"]) == (1, "wrong")
    assert (first["code"], first["step"], first["seq"], first["id"]) == (
        "BLOB_WRONG", "V16", arm.seq, arm.id,
    )  # fmt: skip


def test_a_missing_blob_leaves_the_verdict_open(person):
    """Without the transcripts nothing is wrong, but nothing that rests on them is verified: exit 2."""
    arm, path = transcripts(person)
    path.unlink()
    answer = person.verify()
    assert (answer.code, answer.result["verdict"]) == (2, "incomplete")
    assert {item["code"] for item in answer.result["findings"]} == {"BLOB_MISSING"}
    assert answer.result["findings"][0]["seq"] == arm.seq
    assert "comparison.made" in answer.result["replayed"]  # its outcomes are all there


def test_a_withheld_blob_is_a_warning(person):
    """A blob that a reviewer withheld by name is absent on purpose: a warning, and the rest is verified."""
    arm, path = transcripts(person)
    public = key("reviewer").public.hex()
    person.gets("key", "enroll", public, "--role", "review", "--owner", "a reviewer")
    with person.opens() as ledger:
        body = {"digest": arm.body["transcripts"]["digest"], "why": "holds a customer's name"}
        ledger.append_stated(
            "blob.withheld", body, {"record": arm.id}, signer=key("reviewer"), nonce=f"{9:032x}"
        )
    path.unlink()
    answer = person.verify()
    assert (answer.code, answer.result["verdict"]) == (0, "verified")
    assert {item["code"] for item in answer.result["warnings"]} == {"BLOB_WITHHELD"}
    assert answer.result["blobs"]["withheld"] == 1
