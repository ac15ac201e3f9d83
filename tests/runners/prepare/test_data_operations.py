"""Ingest, split and audit: what is recorded, and what is refused with its code, its reason and what helps."""

from __future__ import annotations

import contextlib
import io
import json

import pytest
from desk_world import chat_row, lines
from small_job import small_rows
from world import key

from ledger.book import Ledger
from ledger.codes import CODES
from runners.cli.main import main
from runners.prepare.data import put_lines, read_lines
from verifiers.data.identity import dataset_identity, row_digest
from verifiers.data.secrets import SCANNER

pytestmark = pytest.mark.slow  # whoever comes first waits for the job

GOOD = chat_row("good")
BAD_LINES = [
    pytest.param(b"not json\n", "not_json", id="no JSON"),
    pytest.param(b'{"id": "a", "id": "b", "messages": []}\n', "duplicate_key", id="a key twice"),
    pytest.param(lines({"id": "a"}), "missing_field", id="no messages"),
    pytest.param(lines(chat_row("x", split="test")), "held_out", id="a row declared test"),
    pytest.param(
        lines(chat_row("x", role="validation")), "held_out", id="a row declared validation"
    ),
    pytest.param(
        lines(chat_row("x", metadata={"split": "eval"})), "held_out", id="declared in its metadata"
    ),
    pytest.param(lines(chat_row("good", "Another?")), "duplicate_id", id="an id twice"),
]


def ingest(person, data: bytes, name: str = "more.jsonl"):
    """Ingest bytes as a file."""
    path = person.folder / name
    path.write_bytes(data)
    return person.types("data", "ingest", path)


@pytest.mark.parametrize(("line", "reason"), BAD_LINES)
def test_a_bad_line_is_kept_with_its_reason(person, line, reason):
    """The good row is accepted, the bad line rejected by number and reason, and the source kept whole."""
    answer = ingest(person, lines(GOOD) + line)
    assert (answer.code, answer.result["accepted"], answer.result["reasons"]) == (0, 1, {reason: 1})
    with Ledger.read(person.ledger) as ledger:
        dataset = ledger.get(answer.result["dataset"])
        (source,) = (ledger.get(item) for item in answer.result["source"])
        assert ledger.blobs.read(source.body["content"]["digest"]) == lines(GOOD) + line
        (reject,) = read_lines(ledger, dataset.body["rejects"])
    assert (reject["line"], reject["code"]) == (2, reason)
    assert person.verify().result["verdict"] == "verified"


@pytest.mark.parametrize(("line", "reason"), [row for row in BAD_LINES if row.id != "an id twice"])
def test_a_file_without_a_good_row_makes_no_dataset(person, line, reason):
    """Nothing accepted: the first reason is said, and no dataset is recorded."""
    answer = ingest(person, line)
    assert (answer.code, answer.error["code"]) == (1, "DATASET_EMPTY")
    assert answer.error["message"].startswith(f"none of 1 lines was accepted; line 1: {reason}: ")
    assert answer.error["hint"] == CODES["DATASET_EMPTY"].hint
    with Ledger.read(person.ledger) as ledger:
        assert len(ledger.of_kind("dataset.parsed")) == 1


def test_two_files_are_one_dataset_of_two_sources(person):
    """Files that do not end in a line feed never run together."""
    first, second = person.folder / "a.jsonl", person.folder / "b.jsonl"
    first.write_bytes(lines(GOOD).rstrip(b"\n"))
    second.write_bytes(lines(chat_row("other", "What else?")))
    found = person.gets("data", "ingest", first, second, "--licence", "CC0-1.0", "--reviewer", "r")
    assert (found["accepted"], found["rejected"], len(found["source"])) == (2, 0, 2)
    assert person.verify().result["verdict"] == "verified"


def test_a_file_that_is_not_there_is_named(person):
    """The path is in the message, and the call was misused: exit 2."""
    answer = person.types("data", "ingest", person.folder / "absent.jsonl")
    assert (answer.code, answer.error["code"]) == (2, "INPUT_MISSING")
    assert "absent.jsonl" in answer.error["message"]


@pytest.mark.parametrize(
    "words",
    [pytest.param([], id="neither"), pytest.param(["x", "--package", "tau2-retail"], id="both")],
)
def test_ingest_takes_files_or_a_package(person, words):
    """One of the two is named."""
    answer = person.types("data", "ingest", *words)
    assert (answer.code, answer.error["code"]) == (2, "INPUT_MISSING")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        pytest.param(
            ["--by", "family"], "SPLIT_ROLE_EMPTY", "no row would be validation", id="too few groups"
        ),
        pytest.param(["--by", "colour"], "SPLIT_SETTINGS", "no row has a value in 'colour'", id="no such field"),
        pytest.param(["--fractions", "80,20"], "SPLIT_SETTINGS", "three whole numbers", id="two fractions"),
        pytest.param(["--fractions", "80,20,0"], "SPLIT_SETTINGS", "three positive", id="a zero"),
    ],
)  # fmt: skip
def test_a_split_that_cannot_be_is_refused(person, words, code, message):
    """Roles without rows, fields without values and fractions that are none: refused, nothing recorded."""
    answer = person.types("data", "split", person.ids["dataset"], *words)
    assert (answer.code, answer.error["code"]) == (1, code)
    assert message in answer.error["message"]
    assert answer.error["hint"]
    with Ledger.read(person.ledger) as ledger:
        assert len(ledger.of_kind("split.declared")) == 1


@pytest.mark.parametrize(
    ("command", "expected", "maker"),
    [
        pytest.param(("data", "split"), "dataset.parsed", "evidence data ingest FILE", id="split"),
        pytest.param(
            ("data", "audit"), "split.declared", "evidence data split DATASET", id="audit"
        ),
        pytest.param(("run", "launch"), "plan.prepared", "evidence plan sft CONFIG", id="launch"),
        pytest.param(
            ("run", "stop"),
            "run.launched or plan.prepared",
            "evidence run launch PLAN or evidence plan sft CONFIG",
            id="stop",
        ),
        pytest.param(
            ("promote",), "checkpoint.published", "evidence run launch PLAN", id="promote"
        ),
    ],
)
def test_what_a_command_needs_is_named_with_the_command_that_makes_it(
    person, command, expected, maker
):
    """Neither an unknown id nor another kind's record will do; the error says what would and how to get it."""
    for name, code in (("abcdef012345", "REF_NOT_FOUND"), (person.ids["model"], "REF_KIND")):
        answer = person.types(*command, name)
        assert (answer.code, answer.error["code"]) == (1, code)
        assert answer.error["record"] == name
        assert answer.error["expected"] == expected
        assert answer.error["hint"] == f"make it: {maker}; or find its id: evidence log"


def test_findings_stop_a_plan_until_a_reviewer_accepts_them(person, tmp_path):
    """Rows dealt one by one leak; the plan is refused by name of the audit, and goes on once it is accepted."""
    split = person.gets("data", "split", person.ids["dataset"], "--fractions", "60,20,20")["split"]
    person.ids["split"] = split
    audit = person.gets("data", "audit", split)
    assert audit["verdict"] == "findings"
    short = audit["audit"][7:19]
    for words in ([], ["--check"]):
        config = person.folder / "sft.json"
        person.plans()
        refused = person.types("plan", "sft", config, *words)
        assert (refused.code, refused.error["code"]) == (1, "LEAKAGE_NOT_ACCEPTED")
        assert refused.error["record"] == audit["audit"]
        assert f"evidence data accept {short}" in refused.error["hint"]
    key("reviewer").save(tmp_path / "reviewer.pem", None)
    public = key("reviewer").public.hex()
    person.gets("key", "enroll", public, "--role", "review", "--owner", "a reviewer")
    accept = ("data", "accept", audit["audit"], "--why", "one desk", "--review-key")
    person.gets(*accept, tmp_path / "reviewer.pem")
    assert person.plans().code == 0
    assert person.verify().result["verdict"] == "verified"


def test_a_held_out_row_is_not_trained_on_whatever_file_it_is_in(person):
    """Even a dataset recorded past the parser hands out no row that declares itself held out."""
    with person.opens() as ledger:
        honest = ledger.get(person.ids["dataset"])
        rows = [row for row in small_rows() if row["id"].startswith("chat")]
        rows[0]["metadata"] = {"split": "test"}
        digests = [row_digest(row) for row in rows]
        body = {
            **honest.body,
            "rows": put_lines(ledger, rows).model_dump(),
            "identity": dataset_identity(digests), "accepted": len(rows),
        }  # fmt: skip
        dataset = ledger.append("dataset.parsed", body, dict(honest.refs))
        roles = ["train", *("validation", "test") * 2, *["train"] * (len(rows) - 5)]
        assignment = [{"row": row, "role": role} for row, role in zip(digests, roles, strict=True)]
        split = ledger.append(
            "split.declared",
            {
                "assignment": put_lines(ledger, assignment).model_dump(),
                "roles": {role: roles.count(role) for role in ("train", "validation", "test")},
                "method": "explicit", "by": [], "fractions": None, "seed": None, "groups": len(rows),
            },
            {"dataset": [dataset.id]},
        )  # fmt: skip
        clean = ledger.get(person.ids["audit"]).body
        ledger.append("leakage.audited", clean, {"split": split.id})
    person.ids["split"] = split.id
    answer = person.plans()
    assert (answer.code, answer.error["code"]) == (1, "HELD_OUT_ROW")
    assert answer.error["field"] == "chat-0-pending"
    assert "declares itself held out" in answer.error["message"]
    assert answer.error["hint"] == CODES["HELD_OUT_ROW"].hint
    found = {item["code"] for item in person.verify().result["findings"]}
    assert {"DATASET_WRONG", "SPLIT_WRONG"} <= found


def test_the_tau2_package_gives_desk_data(person):
    """The shop's own files become sources with their licence, and the desk data are a dataset of them."""
    answer = person.types("data", "ingest", "--package", "tau2-retail", "--seed", 3)
    if answer.code and answer.error["code"] == "DATA_MISSING":
        pytest.skip("needs the data package")
    with Ledger.read(person.ledger) as ledger:
        dataset = ledger.get(answer.result["dataset"])
        sources = [ledger.get(item) for item in answer.result["source"]]
        kinds = {row.get("kind", "chat") for row in read_lines(ledger, dataset.body["rows"])}
        licence = sources[0].body["licence_text"]["digest"]
        assert b"MIT" in ledger.blobs.read(licence)
    assert dataset.body["parser_settings"] == {"seed": 3, "secrets": SCANNER}
    assert kinds == {"chat", "desk", "dialogue"}
    assert json.dumps(answer.result["reasons"]) == "{}"


def says(*words) -> str:
    """What a command that succeeds prints for a person."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([*map(str, words)]) == 0
    return out.getvalue()


def test_a_split_has_one_way_to_its_roles(person):
    """Fractions, a published list and an assignment exclude each other; a list by file or field is taken over."""
    dataset = person.ids["dataset"]
    with Ledger.read(person.ledger) as ledger:
        rows = read_lines(ledger, ledger.get(dataset).body["rows"])
    listed = person.folder / "split.json"
    roles = {"train": [], "test": []}
    for row in rows:
        roles["test" if row["customer_id"] > "customer-7" else "train"].append(row["id"])
    listed.write_text(json.dumps({**roles, "base": []}))
    for words in (["--seed", "1"], ["--assign", "customer_id"]):
        answer = person.types("data", "split", dataset, "--published", listed, *words)
        assert (answer.code, answer.error["code"]) == (1, "SPLIT_SETTINGS")
    by = ("--by", "customer_id")
    found = person.gets("data", "split", dataset, "--published", listed, *by)
    assert found["roles"] == {"train": 40, "test": 10}
    assert person.types("data", "split", dataset, "--assign", listed).error["code"] == "SPLIT_ROLE_EMPTY"  # fmt: skip
    assert person.types("data", "split", dataset, "--assign", "family").error["code"] == "SPLIT_SETTINGS"  # fmt: skip
    assert person.verify().result["verdict"] == "verified"


def test_an_audit_looks_at_what_runs_have_read(person):
    """Rows that a run was trained on are found in a new test set, shown with examples, and derived again."""
    with Ledger.read(person.ledger) as ledger:
        split = ledger.get(person.ids["split"])
        role_of = {line["row"]: line["role"] for line in read_lines(ledger, split.body["assignment"])}  # fmt: skip
    old = [row for row in small_rows() if role_of[row_digest(row)] == "train"][:5]
    fresh = [chat_row(f"n{n}", f"{n} and {n * 7} which nobody asked", str(n)) for n in range(4)]
    again = [{**row, "id": f"again-{row['id']}"} for row in old]
    path, listed = person.folder / "fresh.jsonl", person.folder / "roles.json"
    path.write_bytes(lines(*fresh, *again))
    listed.write_text(
        json.dumps(
            {
                "train": ["n0", "n1"],
                "validation": ["n2", "n3"],
                "test": [row["id"] for row in again],
            }
        )
    )
    dataset = person.gets("data", "ingest", path)["dataset"]
    made = person.gets("data", "split", dataset, "--assign", listed)["split"]
    assert person.gets("data", "audit", made)["history"] is None
    found = person.gets("data", "audit", made, "--against-history", "--entity", "family")
    assert found["history"]["train/exact"] == 5
    assert found["history"]["train/entity:customer_id"] == 5
    assert found["verdict"] == "findings"
    assert len(found["examples"]) == 5
    text = says("data", "audit", made, "--against-history")
    assert "past train/exact" in text
    assert "touched by" in text
    assert person.verify().result["verdict"] == "verified"


def test_rejects_and_secrets_are_shown(person):
    """The table names file, line and reason of each reject; what looks like a secret is counted and not repeated."""
    token = "ghp_" + "a1B2" * 9
    first, second = person.folder / "a.jsonl", person.folder / "b.jsonl"
    first.write_bytes(lines(chat_row("s", f"my token is {token}")))
    second.write_bytes(b"\noops\n")
    text = says("data", "ingest", first, second)
    assert "b.jsonl" in text
    assert "not_json" in text
    assert "github_token" in text
    assert token not in text
    held = person.folder / "held.jsonl"
    held.write_bytes(lines(chat_row("h", split="test")))
    assert person.gets("data", "ingest", held, "--keep-held-out")["accepted"] == 1
