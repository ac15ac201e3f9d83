"""V19: verdicts, outcomes and comparisons are derived again from transcripts and raw judge output."""

from __future__ import annotations

from collections import Counter

from ledger.digests import sha256
from ledger.record import Record
from verifiers.data.identity import dataset_identity, row_digest, rows_bytes
from verifiers.data.rows import parse_rows
from verifiers.data.splits import read_assignment
from verifiers.judgement import assemble
from verifiers.judgement.evaluation_inputs import answers_by_case, planned_cases
from verifiers.judgement.judging import ORDERS, PASS_KINDS
from verifiers.judgement.qualification import qualification
from verifiers.judgement.rubric import Rubric
from verifiers.replay.data import rows_of_split
from verifiers.replay.view import Replay, View, deriving, expect


def protocol(record: Record, view: View) -> str | None:
    """A protocol's cases are its split's rows of its role, and its counts are theirs.

    Raises:
        EvidenceError: `EVALUATION_WRONG`.
    """
    body = record.body
    template, named = body.get("template"), body["generation"].get("chat_template")
    expect("EVALUATION_WRONG", "template", template and template["digest"], named)
    cases = list(view.lines(body["cases"]))
    kinds = Counter(str(case.get("kind")) for case in cases)
    expect("EVALUATION_WRONG", "case_kinds", body["case_kinds"], dict(kinds))
    families = Counter(str(case.get("family")) for case in cases)
    expect("EVALUATION_WRONG", "families", body["families"], dict(families))
    digests = [row_digest(case) for case in cases]
    expect("EVALUATION_WRONG", "identity", body["identity"], dataset_identity(digests))
    split_id = record.ref("split")
    if split_id is None:
        dataset = view.ref(record, "dataset")
        rows = frozenset(parse_rows([view.bytes(dataset.body["rows"])]).digests)
        strangers = [digest for digest in digests if digest not in rows]
        expect("EVALUATION_WRONG", "cases that are not in the data set", len(strangers), 0)
        return "which role the cases of a protocol without a split have"
    split = view.get(split_id)
    known = rows_of_split(split, view).digests
    role_of = read_assignment(list(view.lines(split.body["assignment"])), known)
    strangers = [digest for digest in digests if role_of.get(digest) != body["role"]]
    expect("EVALUATION_WRONG", f"cases without role {body['role']}", len(strangers), 0)
    return None


def arm(record: Record, view: View) -> str | None:
    """An arm answers each case of its protocol once, and its counts follow from its transcripts.

    Raises:
        EvidenceError: `EVALUATION_WRONG`.
    """
    body = record.body
    lines = list(view.lines(body["transcripts"]))
    with deriving("EVALUATION_WRONG"):
        planned = planned_cases(list(view.lines(view.ref(record, "protocol").body["cases"])))
        answered = answers_by_case(planned, lines)
    expect("EVALUATION_WRONG", "cases answered", sorted(answered), sorted(planned))
    expect("EVALUATION_WRONG", "cases", body["cases"], len(lines))
    expect(
        "EVALUATION_WRONG", "tokens", body["tokens"], sum(len(line["token_ids"]) for line in lines)
    )
    expect(
        "EVALUATION_WRONG", "truncated", body["truncated"], sum(line["truncated"] for line in lines)
    )
    expect("EVALUATION_WRONG", "prompts", body["prompts"], prompts_digest(lines))
    return "which weights wrote the transcripts (a re-run would show it)"


def prompts_digest(lines: list[dict[str, str]]) -> str:
    """One digest over the prompts of an arm, in the order of its cases."""
    return sha256("\n".join(line["prompt_digest"] for line in lines).encode())


def judge_pass(record: Record, view: View) -> str | None:
    """What a judge was shown follows from the arm, its verdicts from its raw output.

    Raises:
        EvidenceError: `EVALUATION_WRONG`.
    """
    body = record.body
    protocol_record, arm_record = view.ref(record, "protocol"), view.ref(record, "arm")
    with deriving("EVALUATION_WRONG"):
        items = assemble.judge_items(protocol_record, arm_record, view)
        expect("EVALUATION_WRONG", "raw_input", view.bytes(body["raw_input"]), rows_bytes(items))
        lines, undecided = assemble.verdicts_of(
            protocol_record, arm_record, assemble.raw_pass(record, view), view
        )
    expect("EVALUATION_WRONG", "verdicts", view.bytes(body["verdicts"]), rows_bytes(lines))
    expect("EVALUATION_WRONG", "undecided", body["undecided"], undecided)
    return "which weights judged, and that they gave these numbers (a re-run would show it)"


def qualified(record: Record, view: View) -> str | None:
    """A judge's accuracy, flips and reasons follow from the labelled cases and its raw output.

    Raises:
        EvidenceError: `QUALIFICATION_WRONG`.
    """
    body = record.body
    with deriving("QUALIFICATION_WRONG"):
        rubric = Rubric.read(view.json(body["rubric"]))
        expect("QUALIFICATION_WRONG", "asked", body["asked"], rubric.ask)
        passes = {
            order: {
                "pass_kind": PASS_KINDS[rubric.ask][0],
                "order": order,
                "lines": list(view.lines(body[f"raw_{order}"])),
            }
            for order in ORDERS
        }
        rows = list(view.lines(body["cases"]))
        derived = qualification(rows, passes, rubric, body["floor"])
    for name, value in derived.items():
        expect("QUALIFICATION_WRONG", name, body[name], value)
    return "which weights were qualified, that they gave this output, and that the labelled cases were new to them"


def evaluation(record: Record, view: View) -> str | None:
    """Outcomes and counts follow from transcripts and passes.

    Raises:
        EvidenceError: `EVALUATION_WRONG`.
    """
    body = record.body
    with deriving("EVALUATION_WRONG"):
        lines, counts = assemble.evaluation_of(
            view.ref(record, "protocol"), view.ref(record, "arm"), view.refs(record, "pass"), view
        )
    expect("EVALUATION_WRONG", "outcomes", view.bytes(body["outcomes"]), rows_bytes(lines))
    for name, derived in counts.items():
        expect("EVALUATION_WRONG", name, body[name], derived)
    return None


def comparison(record: Record, view: View) -> str | None:
    """Paired counts, guards and recommendation follow from the evaluations.

    Raises:
        EvidenceError: `COMPARISON_WRONG`.
    """
    with deriving("COMPARISON_WRONG"):
        derived = assemble.comparison_of(
            view.ref(record, "baseline"), view.refs(record, "evaluation"), view
        )
    del derived["notes"]  # words for a reader, which a later version may put better
    for name, value in derived.items():
        expect("COMPARISON_WRONG", name, record.body[name], value)
    return None


REPLAYS: dict[str, Replay] = {
    "protocol.registered": protocol,
    "arm.transcribed": arm,
    "judge.passed": judge_pass,
    "judge.qualified": qualified,
    "evaluation.completed": evaluation,
    "comparison.made": comparison,
}
