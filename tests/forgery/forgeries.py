"""Invented evidence, one function each: it does its worst and answers with the codes that end it.

To add a row: write a function that grows a `StudyWorld`, forges it, and returns what `refused`, `gate_codes`, `found` or `consumed` gives;
enter it in `FORGERIES` of `test_forgery_table.py` with the code that must be among them. The forger holds every key but root's,
a reviewer's included: what a code rests on is bytes and order, not anybody's honesty.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import desk_world
import samples
from study_data import (
    CASES,
    Answers,
    StudyData,
    adapter_files,
    case,
    cases,
    chat,
    failing,
    lines_blob,
)
from study_world import SEEDS, StudyWorld
from world import World, key

from ledger.errors import EvidenceError, LedgerError
from ledger.promotions import check_folder
from ledger.record import Record, Refs
from runners.train.recovery import recover
from verifiers.judgement import assemble
from verifiers.judgement.judging import PARTS, likelihood_line
from verifiers.judgement.rubric import default_rubric
from verifiers.replay import REPLAYS

Codes = set[str]


# --- how a forgery ends ---------------------------------------------------------------------------


def refused(forge: Callable[[], object]) -> Codes:
    """The code with which the ledger does not take a record."""
    try:
        forge()
    except LedgerError as error:
        return {error.code}
    return set()


def found(made: StudyWorld, record: Record) -> Codes:
    """The code with which a verifier that derives the record again finds it."""
    try:
        REPLAYS[record.kind](record, made.here())
    except EvidenceError as error:
        return {error.code}
    return set()


def gate_codes(made: StudyWorld) -> Codes:
    """The codes of an honest gate's failed lines; a gate that claims to pass, and a grant on it, are found all the same."""
    honest = made.gate(made.here())
    codes = {line["code"] for line in honest.body["gates"] if not line["passed"]}
    if codes:
        claimed = [{**line, "passed": True, "code": None} for line in honest.body["gates"]]
        gate = made.gate(made.here(), gates=claimed, passed=True)
        assert found(made, gate) == {"GATE_UNFOUNDED"}
        grant = made.grant(gate, made.approve(gate))
        assert found(made, grant) == {"GRANT_UNFOUNDED"}
    return codes


def consumed(made: StudyWorld, spoil: Callable[[Path], object]) -> Codes:
    """The code with which whoever loads a promoted folder is told not to."""
    grant = made.granted()
    with (
        tempfile.TemporaryDirectory() as place,
        made.world.replay(Path(place) / "ledger") as ledger,
    ):
        folder = Path(place) / "promoted"
        recover(ledger, ledger.get(str(grant.ref("checkpoint"))), folder)
        assert check_folder(ledger, folder, [key("root").id]).id == grant.id
        spoil(folder)
        return refused(lambda: check_folder(ledger, folder, [key("root").id]))


# --- reports and digests --------------------------------------------------------------------------


def hand_typed_report() -> Codes:
    """Outcomes typed by hand: every case a success, beside transcripts that say otherwise."""
    made = StudyWorld(seeds=SEEDS[:1])
    arm = made.transcribe(made.protocol, made.checkpoints[0], failing(8), made.review)
    right, _ = assemble.evaluation_of(made.protocol, arm, [], made.here())
    lines = [{**line, "success": True} for line in right]
    body = {"outcomes": lines_blob(lines), "cases": CASES, "success": CASES, "failure": 0}
    refs: Refs = {"protocol": made.protocol.id, "arm": [arm.id]}
    return found(made, made.admit("evaluation.completed", {**body, "undecided": 0}, refs))


def hand_typed_comparison() -> Codes:
    """A comparison that calls a checkpoint eligible which lost a success."""
    made = StudyWorld(seeds=SEEDS[:1], eligible=(False,))
    body = {**made.comparison.body}
    body["candidates"] = [{**body["candidates"][0], "eligible": True, "guards": {}}]
    return found(made, made.admit("comparison.made", body, dict(made.comparison.refs)))


def random_digests() -> Codes:
    """A report whose blob has a digest of nothing: the ledger has no such bytes to keep."""
    made = StudyWorld(seeds=SEEDS[:1])
    body = {
        **made.evaluations[1].body,
        "outcomes": {**made.evaluations[1].body["outcomes"], "digest": samples.digest("nothing")},
    }
    refs = dict(made.evaluations[1].refs)
    with (
        tempfile.TemporaryDirectory() as place,
        made.world.replay(Path(place) / "ledger") as ledger,
    ):
        return refused(lambda: ledger.append("evaluation.completed", body, refs))


def invented_gate() -> Codes:
    """A gate whose lines all pass, over a study with a seed too few."""
    made = StudyWorld(seeds=SEEDS[1:])
    honest = made.gate(made.here())
    lines = [{**line, "passed": True, "code": None} for line in honest.body["gates"]]
    return found(made, made.gate(made.here(), gates=lines, passed=True))


def grant_on_an_invented_gate() -> Codes:
    """A grant on such a gate, approved and stated by everybody."""
    made = StudyWorld(seeds=SEEDS[1:])
    honest = made.gate(made.here())
    lines = [{**line, "passed": True, "code": None} for line in honest.body["gates"]]
    gate = made.gate(made.here(), gates=lines, passed=True)
    return found(made, made.grant(gate, made.approve(gate)))


# --- whose evaluation -----------------------------------------------------------------------------


def copied_evaluation() -> Codes:
    """A seed without an evaluation of its own is given another seed's once more."""
    made = StudyWorld()
    made.evaluations[-1] = made.admit(
        "evaluation.completed", made.evaluations[1].body, dict(made.evaluations[1].refs)
    )
    return gate_codes(made)


def another_checkpoints_evaluation() -> Codes:
    """A checkpoint that was not nominated reads the test."""
    made = StudyWorld()
    made.launch(SEEDS[0])
    made.world.add("update.acknowledged")
    other = made.world.add("checkpoint.published")
    return refused(lambda: made.transcribe(made.protocol, other, Answers(), made.review))


def transcripts_of_other_weights() -> Codes:
    """The baseline's weights answer for a checkpoint, and the arm says so."""
    made = StudyWorld()
    spoke = made.world.by_id[made.evaluations[0].ref_list("arm")[0]].body["weights"]
    made.tested_answers = Answers()
    made.evaluations[1] = made.evaluate(
        made.protocol, made.checkpoints[0], Answers(), made.review, weights=spoke
    )
    return gate_codes(made)


def weights_changed_since_validation() -> Codes:
    """Other weights answer the test than those that were chosen on validation."""
    made = StudyWorld()
    made.evaluations[1] = made.evaluate(
        made.protocol,
        made.checkpoints[0],
        Answers(),
        made.review,
        weights=samples.digest("better weights"),
    )
    return gate_codes(made)


def asked_until_it_was_right() -> Codes:
    """A checkpoint reads the test twice, and the better answers are handed in."""
    made = StudyWorld(tested_answers=failing(8))
    made.evaluations[1:] = [
        made.evaluate(made.protocol, item, Answers(), made.review) for item in made.checkpoints
    ]
    made.run_again()
    return gate_codes(made)


# --- adapters -------------------------------------------------------------------------------------


def adapter_that_is_no_model() -> Codes:
    """A checkpoint's adapter is a text."""
    made = StudyWorld(seeds=SEEDS[:1])
    files, _ = adapter_files(SEEDS[1], made.baseline.body)
    made.train(SEEDS[1], {**files, "adapter_model.safetensors": b"this is an adapter, promised"})
    return found(made, made.checkpoints[-1])


def adapter_without_tensors() -> Codes:
    """A checkpoint's adapter is a well-formed file of no tensor."""
    made = StudyWorld(seeds=SEEDS[:1])
    files, _ = adapter_files(SEEDS[1], made.baseline.body)
    empty = (2).to_bytes(8, "little") + b"{}"
    made.train(SEEDS[1], {**files, "adapter_model.safetensors": empty})
    return found(made, made.checkpoints[-1])


def adapter_of_other_weights() -> Codes:
    """A checkpoint holds another adapter than its run acknowledged."""
    made = StudyWorld(seeds=SEEDS[:1])
    files, _ = adapter_files(4711, made.baseline.body)
    made.train(SEEDS[1], files)
    return found(made, made.checkpoints[-1])


# --- seeds and studies ----------------------------------------------------------------------------


def one_seed_twice_in_a_study() -> Codes:
    """A study plans one seed twice."""
    made = StudyWorld(seeds=SEEDS[:1])
    return refused(lambda: made.register_study(seeds=[11, 11, 12, 13, 14, 15]))


def seed_tried_again() -> Codes:
    """A seed is trained once more, and the better run nominated."""
    return gate_codes(StudyWorld(second_run=True))


def one_run_under_six_seeds() -> Codes:
    """Six plans of the same settings, each with another seed beside them."""
    return gate_codes(StudyWorld(one_setting=True))


def one_adapter_under_six_seeds() -> Codes:
    """Six runs acknowledge and publish the same weights."""
    return gate_codes(StudyWorld(one_state=True))


def seed_left_out() -> Codes:
    """The seed that did worst is left out of the gate."""
    made = StudyWorld()
    del made.evaluations[-1]
    return gate_codes(made)


def seed_not_nominated() -> Codes:
    """The seed that did worst is not nominated at all."""
    made = StudyWorld()
    made.nomination = made.nominate(made.checkpoints[:-1])
    made.checkpoints = made.checkpoints[:-1]
    made.protocol = made.register("test")
    made.test_all()
    return gate_codes(made)


def study_after_its_runs() -> Codes:
    """A study is registered once its runs are known, and they are nominated for it."""
    made = StudyWorld()
    made.study = made.register_study(name="registered afterwards")
    return found(made, made.nominate(made.checkpoints))


def trained_on_until_it_passed() -> Codes:
    """After the gate a further run of the study is launched; the grant no longer counts every run."""
    made = StudyWorld()
    gate = made.gate(made.here())
    approvals = made.approve(gate)
    made.launch(SEEDS[0])
    return found(made, made.grant(gate, approvals))


def looser_than_the_policy() -> Codes:
    """A study asks for less than the policy."""
    made = StudyWorld(seeds=SEEDS[:1])
    return refused(lambda: made.register_study(alpha="0.1"))


def policy_changed_after_the_gate() -> Codes:
    """A gate that passed by a policy that root has replaced."""
    made = StudyWorld()
    gate = made.gate(made.here())
    approvals = made.approve(gate)
    made.world.add("policy.declared", seeds=8)
    return refused(lambda: made.grant(gate, approvals))


# --- keys and offices -----------------------------------------------------------------------------


def trainer_as_reviewer() -> Codes:
    """A key that trains is enrolled to review."""
    return refused(lambda: World().enroll("both", ["train", "review"]))


def trainer_as_auditor() -> Codes:
    """A key that trains is enrolled to audit."""
    return refused(lambda: World().enroll("both", ["train", "audit"]))


def trainer_signs_the_review() -> Codes:
    """The writer signs what a reviewer must state."""
    made = StudyWorld(seeds=SEEDS[:1])
    body = samples.body("test.reviewed")
    refs: Refs = {"nomination": made.nomination.id, "protocol": made.protocol.id}
    return refused(lambda: made.admit("test.reviewed", body, refs, stater="writer"))


def trainer_runs_again() -> Codes:
    """The writer records a re-run of its own."""
    made = StudyWorld(seeds=SEEDS[:1])
    refs: Refs = {"update": str(made.checkpoints[0].ref("update"))}
    return refused(lambda: made.admit("check.reproduced", {}, refs, writer="writer"))


def one_reviewer_for_two() -> Codes:
    """One reviewer approves twice where two are asked for."""
    made = StudyWorld(policy={"reviewers": 2})
    gate = made.gate(made.here())
    return refused(lambda: made.grant(gate, made.approve(gate, "reviewer", "reviewer")))


def nobody_approved() -> Codes:
    """A promoter grants by an approval of another gate."""
    made = StudyWorld()
    first = made.gate(made.here())
    approvals = made.approve(first)
    return refused(lambda: made.grant(made.gate(made.here()), approvals))


# --- judges and tests -----------------------------------------------------------------------------


def _judged(made: StudyWorld) -> tuple[Record, Record, list[dict[str, Any]]]:
    """A judged dialogue: its protocol, its arm, and what the judge said."""
    talk = {
        "id": "talk",
        "kind": "dialogue",
        "family": "refund_time",
        "policy_facts": ["Gift cards are refunded immediately."],
        "messages": [{"role": "user", "content": "When do I see my money?"}],
        "reference": "It is refunded immediately.",
        "must_avoid": [],
    }
    rubric = {**samples.blob("", json.dumps(default_rubric("likelihood")).encode())}
    judge = made.world.add("model.registered", name="a judge", family="another")
    protocol = made.admit(
        "protocol.registered",
        {
            "cases": lines_blob([talk]),
            "case_kinds": {"dialogue": 1},
            "families": {"refund_time": 1},
            "judging": "likelihood",
            "passes": ["direction"],
            "rubric": rubric,
        },
        {"split": made.split.id, "judge": judge.id},
    )
    said = "You will see it next year."
    line = {
        "case": "talk",
        "prompt_digest": samples.digest("talk"),
        "text": said,
        "token_ids": [1, 2],
        "truncated": False,
    }
    arm = made.admit(
        "arm.transcribed",
        {"transcripts": lines_blob([line]), "cases": 1, "tokens": 2},
        {"protocol": protocol.id, "model": made.baseline.id},
    )
    parts = {name: (-9.0 if "given" in name else -3.0, 4) for name in PARTS["forward"]}
    return protocol, arm, [likelihood_line("talk", said, parts)]


def judge_output_edited() -> Codes:
    """The judge's raw output is edited where it lies; nothing is signed again."""
    made = StudyWorld(seeds=SEEDS[:1])
    protocol, arm, lines = _judged(made)
    record = _pass(made, protocol, arm, lines, lines)
    assert found(made, record) == set()
    with tempfile.TemporaryDirectory() as place:
        view = made.view(Path(place) / "blobs")
        file = view.blobs.path(record.body["raw_output"]["digest"])
        file.chmod(0o600)
        file.write_bytes(file.read_bytes().replace(b"-9", b"-1"))
        try:
            REPLAYS[record.kind](record, view)
        except EvidenceError as error:
            return {error.code}
    return set()


def judge_output_that_gives_other_verdicts() -> Codes:
    """Verdicts are kept, and raw output is put beside them that does not give them."""
    made = StudyWorld(seeds=SEEDS[:1])
    protocol, arm, lines = _judged(made)
    kinder = [
        {
            **lines[0],
            "parts": {
                name: {**part, "logprob_sum": "-1.0" if "given" in name else "-30.0"}
                for name, part in lines[0]["parts"].items()
            },
        }
    ]
    return found(made, _pass(made, protocol, arm, lines, kinder))


def _pass(
    made: StudyWorld,
    protocol: Record,
    arm: Record,
    raw: list[dict[str, Any]],
    judged: list[dict[str, Any]],
) -> Record:
    """A forward pass with this raw output, and the verdicts that `judged` gives."""
    view = made.here()
    verdicts, undecided = assemble.verdicts_of(
        protocol, arm, {"pass_kind": "direction", "order": "forward", "lines": judged}, view
    )
    body = {
        "pass_kind": "direction",
        "order": "forward",
        "raw_input": lines_blob(assemble.judge_items(protocol, arm, view)),
        "raw_output": lines_blob(raw),
        "verdicts": lines_blob(verdicts),
        "undecided": undecided,
    }
    return made.admit("judge.passed", body, {"protocol": protocol.id, "arm": arm.id})


def cases_trained_on() -> Codes:
    """A test case's question stands among the training rows, with another answer and another customer."""
    asked = case("test", 5)["messages"][0]["content"]
    row = desk_world.chat_row(
        "leak", asked.upper(), "Gladly", customer_id="somebody", metadata={"pool": "train"}
    )
    return gate_codes(StudyWorld(data=StudyData.made([row])))


def review_that_hides_a_finding() -> Codes:
    """A reviewer signs "fresh" over a test of which a case was trained on."""
    asked = case("test", 5)["messages"][0]["content"]
    row = desk_world.chat_row(
        "leak", asked, "Gladly", customer_id="somebody", metadata={"pool": "train"}
    )
    made = StudyWorld(seeds=SEEDS[:1], data=StudyData.made([row]))
    return found(made, made.sign_test(made.nomination, made.protocol, fresh=True, findings=None))


def second_look_behind_other_ids() -> Codes:
    """The same questions once more, as a data set of other ids, customers and order numbers, for a second nomination."""
    made = StudyWorld(data=_numbered(1000))
    made.data = _numbered(2000)
    made.ingest()
    made.protocol = made.register("test")
    made.nomination = made.nominate(made.checkpoints)
    made.test_all()
    return gate_codes(made)


def _numbered(first: int) -> StudyData:
    """The study's data with order numbers in the questions, which begin at a number."""
    rows = []
    for row in cases("test"):
        number = first + int(row["id"][4:])
        text = f"{row['request']} order #W{number}"
        owner = f"customer_{number}"
        order = desk_world.order(
            order_id=f"#W{number}", owner_id=owner, caller_id=owner, status=row["order"]["status"]
        )
        rows.append(
            desk_world.desk_case(
                f"{row['id']}-{number}",
                order,
                family=row["family"],
                request=text,
                messages=[{"role": "user", "content": text}],
                metadata={"pool": "test"},
            )
        )
    return _of_test(rows)


def another_test_after_a_bad_one() -> Codes:
    """The same nomination takes a second test, of cases that nobody has seen, after it did badly in the first."""
    made = StudyWorld(tested_answers=failing(8))
    made.data = _of_test(dict(case("second", number)) for number in range(CASES))
    made.ingest()
    made.protocol = made.register("test")
    made.tested_answers = Answers()
    made.test_all()
    return gate_codes(made)


def nominated_again_for_another_test() -> Codes:
    """The same checkpoints are nominated once more, for a second test of unseen cases."""
    made = StudyWorld(tested_answers=failing(8))
    made.data = _of_test(dict(case("second", number)) for number in range(CASES))
    made.ingest()
    made.protocol = made.register("test")
    made.nomination = made.nominate(made.checkpoints)
    made.tested_answers = Answers()
    made.test_all()
    return gate_codes(made)


def _of_test(rows: Iterable[dict[str, Any]]) -> StudyData:
    """The study's data with these as its test cases."""
    test = [{**row, "metadata": {"pool": "test"}} for row in rows]
    return StudyData((*[chat(number) for number in range(8)], *cases("validation"), *test))


def second_look_called_the_first() -> Codes:
    """A reviewer signs "look 1" over a test that another nomination has read."""
    made = StudyWorld()
    nomination = made.nominate(made.checkpoints[1:])
    return found(made, made.sign_test(nomination, made.protocol, look=1))


# --- the promoted folder --------------------------------------------------------------------------


def one_byte_changed() -> Codes:
    """The promoted weights, one bit other."""

    def flip(folder: Path) -> None:
        file = folder / "adapter_model.safetensors"
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(bytes(data))

    return consumed(StudyWorld(), flip)


def one_file_added() -> Codes:
    """The promoted folder and a file of code beside the weights."""
    return consumed(StudyWorld(), lambda folder: (folder / "modeling.py").write_text("1"))
