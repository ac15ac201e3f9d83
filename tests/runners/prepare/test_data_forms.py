"""Data into a ledger in every form and every way of splitting, derived again from its blobs, and forged."""

from __future__ import annotations

import io
import json
import secrets

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import samples
from desk_world import chat_row, desk_case, lines
from world import key

from ledger.book import Ledger
from ledger.errors import EvidenceError, UsageError
from ledger.twins import fresh_digest
from runners.prepare.data import (
    SourceNote,
    ingest_files,
    put_lines,
    read_lines,
    roles_of,
    split_rows,
)
from runners.prepare.divide import assign_split, audit_split, declare_split, import_split
from runners.prepare.saved_folder import files_of
from verifiers.data.hand_out import hand_out
from verifiers.data.identity import dataset_identity, row_digest
from verifiers.replay.data import REPLAYS
from verifiers.replay.view import View
from verifiers.verify import Options, verify

QUESTIONS = (
    "may I return these shoes for a refund to my card",
    "where does the parcel with the lamp stay for so long",
    "please change the address of what I bought on Monday",
    "is there a gift card left on the account of my wife",
    "the keyboard came with two broken keys, send another",
    "which of my orders has been shipped already and when",
)
ROWS = [
    chat_row(f"r{number}", question, customer_id=f"c{number}", metadata={"pool": pool})
    for number, (question, pool) in enumerate(
        zip(QUESTIONS, ("train", "train", "train", "dev", "test", "test"), strict=True)
    )
]
BY_CUSTOMER = (["customer_id"], [3, 1, 2], 1)


@pytest.fixture
def ledger(tmp_path):
    """An empty ledger on disk."""
    with Ledger.create(
        tmp_path / "ledger",
        origin="example.com/data",
        root_key=key("root"),
        writer_key=key("writer"),
        writer_roles=["ingest", "train", "judge", "seal"],
        nonce=secrets.token_hex(16),
    ) as opened:
        yield opened


def parquet(rows):
    """A Parquet file's bytes."""
    made = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), made)
    return made.getvalue()


def stream(rows):
    """An Arrow stream's bytes."""
    made, table = io.BytesIO(), pa.Table.from_pylist(rows)
    with pa.ipc.new_stream(made, table.schema) as writer:
        writer.write_table(table)
    return made.getvalue()


def ingest(ledger, path, data, **more):
    """Ingest one file; its dataset record."""
    path.write_bytes(data)
    return ingest_files(ledger, [path], "d", SourceNote(), **more)[1]


def derive(ledger, record):
    """What verification says of a record's numbers: None, a sentence, or it raises."""
    return REPLAYS[record.kind](record, View(ledger, ledger.blobs))


def again(ledger, record, **changes):
    """A record once more, with some of its body changed."""
    return ledger.append(record.kind, {**record.body, **changes}, dict(record.refs))


def refused(ledger, record):
    """The code with which a record's numbers are refused."""
    with pytest.raises(EvidenceError) as caught:
        derive(ledger, record)
    return caught.value.code


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.jsonl", b"\xef\xbb\xbf" + lines(*ROWS) + b"oops\n"),
        ("x.json", json.dumps([*ROWS, {}]).encode()),
        ("x.parquet", parquet([*ROWS, {**ROWS[0], "id": ""}])),
    ],
)
def test_every_form_is_kept_and_derived_again(ledger, tmp_path, name, data):
    """The file's bytes are the source, its rows and rejects blobs, and both follow from the bytes."""
    dataset = ingest(ledger, tmp_path / name, data)
    assert (dataset.body["accepted"], dataset.body["rejected"]) == (6, 1)
    assert dataset.body["identity"] == dataset_identity(map(row_digest, ROWS))
    (source,) = (ledger.get(item) for item in dataset.ref_list("source"))
    assert ledger.blobs.read(source.body["content"]["digest"]) == data
    assert derive(ledger, dataset) is None
    ledger.seal()
    report = verify(ledger.path, Options(level="blobs"))
    assert report.verdict == "verified"
    assert not [sentence for sentence in report.on_faith if "these rows" in sentence]


def test_a_form_that_is_not_the_source_s_is_found(ledger, tmp_path):
    """A record that names another form, or no form, is no data set of these bytes."""
    dataset = ingest(ledger, tmp_path / "x.json", json.dumps(ROWS).encode())
    for forms in (["jsonl"], ["parquet"], ["poem"], [], "json"):
        assert refused(ledger, again(ledger, dataset, parser_settings={"forms": forms})) == "DATASET_WRONG"  # fmt: skip


def test_a_data_set_of_the_first_parser_is_derived_as_it_was(ledger, tmp_path):
    """Under `rows/1` files are read as one, lines counted through, and newer rows rejected as they were then."""
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file, row in zip(files, ROWS, strict=False):
        file.write_bytes(lines(row, {**row, "id": f"{row['id']}-list", "order_id": ["1"]}))
    today = ingest_files(ledger, files, "d", SourceNote())[1]
    assert today.body["accepted"] == 4
    rejects = [
        {"line": line, "code": "wrong_type", "message": "order_id is not of type str"}
        for line in (2, 4)
    ]
    then = again(
        ledger, today, parser="rows/1", parser_settings={}, accepted=2, rejected=2,
        reasons={"wrong_type": 2}, rows=put_lines(ledger, ROWS[:2]).model_dump(),
        rejects=put_lines(ledger, rejects).model_dump(),
        identity=dataset_identity(map(row_digest, ROWS[:2])),
    )  # fmt: skip
    assert derive(ledger, then) is None
    assert refused(ledger, again(ledger, today, parser="rows/1")) == "DATASET_WRONG"


def test_secrets_are_flagged_and_cannot_be_hushed_up(ledger, tmp_path):
    """A token is counted and placed, its text is in no blob of findings, and a record without it is refused."""
    token = "ghp_" + "a1B2" * 9
    dataset = ingest(ledger, tmp_path / "x.jsonl", lines(ROWS[0], chat_row("s", f"my key {token}")))
    assert dataset.body["secrets"] == {"github_token": 1}
    (flagged,) = read_lines(ledger, dataset.body["flagged"])
    assert flagged["field"] == "messages[1].content"
    assert token not in json.dumps(flagged)
    assert derive(ledger, dataset) is None
    assert refused(ledger, again(ledger, dataset, secrets={}, flagged=None)) == "DATASET_WRONG"


def saved(folder, **splits):
    """A data set saved to disk, of one or several splits."""
    for name, rows in splits.items():
        place = folder / name
        place.mkdir(parents=True)
        (place / "data-0.arrow").write_bytes(stream(rows))
        state = {"_data_files": [{"filename": "data-0.arrow"}], "_split": None}
        (place / "state.json").write_text(json.dumps(state))
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": list(splits)}))
    return folder


def test_a_folder_of_several_splits_is_split_as_it_says(ledger, tmp_path):
    """Its rows say which folder they came from; kept, they are assigned by that, and training reads its own only."""
    folder = saved(tmp_path / "d", train=ROWS[:3], validation=ROWS[3:4], test=ROWS[4:])
    dataset = ingest_files(ledger, [folder], "d", SourceNote(), keep_held_out=True)[1]
    assert dataset.body["parser_settings"]["forms"][:3] == ["saved-dict", "saved-state", "arrow"]
    split = assign_split(ledger, dataset, ["customer_id"], "split")
    assert split.body["roles"] == {"train": 3, "validation": 1, "test": 2}
    assert (derive(ledger, dataset), derive(ledger, split)) == (None, None)
    handed = hand_out(split_rows(ledger, split), roles_of(ledger, split), "train", "chat")
    assert [item.row["id"] for item in handed] == ["r0", "r1", "r2"]
    with pytest.raises(UsageError) as caught:
        declare_split(ledger, dataset, *BY_CUSTOMER)
    assert caught.value.code == "HELD_OUT_ROW"
    assert refused(ledger, again(ledger, split, roles_by="customer_id")) == "SPLIT_WRONG"
    hushed = {**dataset.body["parser_settings"], "held_out": "rejected"}
    assert refused(ledger, again(ledger, dataset, parser_settings=hushed)) == "DATASET_WRONG"


def test_a_folder_without_that_rule_gives_its_training_rows(ledger, tmp_path):
    """Rows of other splits are rejected by file and line."""
    folder = saved(tmp_path / "d", train=ROWS[:3], test=ROWS[4:])
    _, dataset, parsed = ingest_files(ledger, [folder], "d", SourceNote())
    assert dataset.body["reasons"] == {"held_out": 2}
    assert [(item.source, item.line) for item in parsed.rejects] == [(4, 1), (4, 2)]
    assert derive(ledger, dataset) is None


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (None, "INPUT_MISSING"),
        (b"{}", "SOURCE_UNREADABLE"),
        (b'{"_data_files": [{"filename": "../x"}]}', "SOURCE_UNREADABLE"),
        (b'{"_data_files": [{"filename": "x"}, 1]}', "SOURCE_UNREADABLE"),
        (b'{"_data_files": "x"}', "SOURCE_UNREADABLE"),
        (b"x" * ((1 << 20) + 1), "SOURCE_UNREADABLE"),
        (b"[", "NOT_CANONICAL"),
    ],
)
def test_folders_that_are_no_saved_data_set(tmp_path, state, code):
    """A folder without a state, or with one that names no files of its own, is refused before anything is kept."""
    if state is not None:
        (tmp_path / "state.json").write_bytes(state)
    with pytest.raises((EvidenceError, UsageError)) as caught:
        files_of(tmp_path)
    assert caught.value.code == code


def test_a_published_split_is_kept_and_derived_again(ledger, tmp_path):
    """The list's bytes are kept, the assignment follows from them, and one moved row is found."""
    dataset = ingest(ledger, tmp_path / "x.jsonl", lines(*ROWS))
    listed = tmp_path / "split.json"
    names = [row["id"] for row in ROWS]
    listed.write_text(json.dumps({"train": names[:4], "test": names[4:], "base": names}))
    split = import_split(ledger, dataset, [], listed)
    assert (split.body["method"], split.body["roles"]) == ("published", {"train": 4, "test": 2})
    assert derive(ledger, split) is None
    assert derive(ledger, audit_split(ledger, split)) is None
    moved = read_lines(ledger, split.body["assignment"])
    for line in moved:
        line["role"] = {"train": "test", "test": "train"}[line["role"]]
    forged = {
        "assignment": put_lines(ledger, moved).model_dump(),
        "roles": {"train": 2, "test": 4},
    }
    assert refused(ledger, again(ledger, split, **forged)) == "SPLIT_WRONG"
    faith = derive(ledger, again(ledger, split, roles_from=None))
    assert faith.startswith("that the published assignment was made")


def test_an_assignment_of_unknown_origin_tears_no_group(ledger, tmp_path):
    """Where nobody says where the roles come from, rows of one customer have one role all the same."""
    rows = [{**row, "customer_id": f"c{number // 2}"} for number, row in enumerate(ROWS)]
    dataset = ingest(ledger, tmp_path / "x.jsonl", lines(*rows))
    split = assign_split(ledger, dataset, [], "metadata.pool")
    faith = derive(ledger, again(ledger, split, roles_by=None))
    assert faith.startswith("that the explicit assignment was made")
    torn = again(ledger, split, roles_by=None, by=["customer_id"], groups=3)
    assert refused(ledger, torn) == "SPLIT_WRONG"


def test_a_list_of_roles_is_kept_and_derived_again(ledger, tmp_path):
    """An explicit list by line; a field's name that is no file is taken for a field."""
    dataset = ingest(ledger, tmp_path / "x.jsonl", lines(*ROWS))
    listed = tmp_path / "roles.jsonl"
    roles = [{"id": row["id"], "role": row["metadata"]["pool"]} for row in ROWS]
    listed.write_bytes(lines(*roles))
    by_file = assign_split(ledger, dataset, [], str(listed))
    by_field = assign_split(ledger, dataset, [], "metadata.pool")
    assert by_file.body["assignment"] == by_field.body["assignment"]
    assert (derive(ledger, by_file), derive(ledger, by_field)) == (None, None)
    with pytest.raises(UsageError) as caught:
        assign_split(ledger, dataset, [], "metadata.absent")
    assert (caught.value.code, caught.value.field) == ("SPLIT_SETTINGS", "metadata.absent")


def launch_on(ledger, split):
    """A run that was launched on a split, as records go."""
    audit = ledger.referrers(split.id, "split", "leakage.audited")[0]
    model = ledger.append("model.registered", samples.body("model.registered"))
    refs = {"split": split.id, "audit": audit.id, "model": model.id}
    body = samples.body("plan.prepared", settings={"seed": ledger.size})
    digest = fresh_digest("sft", body["settings"], split.id, model.body["tree"])
    plan = ledger.append("plan.prepared", {**body, "settings_digest": digest}, refs)
    seen = ledger.seen().model_dump()
    return ledger.append("run.launched", samples.body("run.launched", seen=seen), {"plan": plan.id})


def protocol_on(ledger, split, cases):
    """A protocol over cases of a split, as records go."""
    kept = put_lines(ledger, cases).model_dump()
    body = samples.body(
        "protocol.registered",
        cases=kept, case_kinds={"desk": len(cases)}, rubric=None, judging=None, passes=[],
    )  # fmt: skip
    return ledger.append("protocol.registered", body, {"split": split.id})


def test_a_new_test_set_is_compared_with_everything_before(ledger, tmp_path):
    """What earlier runs trained on and protocols asked is found in the new test set, named, and derived again."""
    first = ingest(ledger, tmp_path / "x.jsonl", lines(*ROWS))
    trained = assign_split(ledger, first, [], "metadata.pool")
    assert audit_split(ledger, trained).body["verdict"] == "clean"
    launch_on(ledger, trained)
    launch_on(ledger, trained)
    asked = protocol_on(ledger, trained, [desk_case("case-1")])
    fresh = [chat_row(f"n{n}", f"{n} " + text[::-1], customer_id=f"n{n}") for n, text in enumerate(QUESTIONS)]  # fmt: skip
    leaked = chat_row("leak", QUESTIONS[0].upper(), customer_id="c1")
    case = desk_case("case-2", customer_id="other", order_id="#other")
    second = ingest(ledger, tmp_path / "y.jsonl", lines(*fresh, leaked, case))
    roles = {row["id"]: role for row, role in zip(fresh, ["train"] * 5 + ["validation"], strict=True)}  # fmt: skip
    listed = tmp_path / "roles.jsonl"
    given = [{"id": name, "role": role} for name, role in {**roles, "leak": "test", "case-2": "test"}.items()]  # fmt: skip
    listed.write_bytes(lines(*given))
    split = assign_split(ledger, second, [], str(listed))
    alone = audit_split(ledger, split)
    assert (alone.body["verdict"], alone.body["history"]) == ("clean", None)
    audit = audit_split(ledger, split, against_history=True)
    assert audit.ref_list("history") == [trained.id, asked.id]
    assert audit.body["history"] == {
        "train/edited": 1, "train/entity:customer_id": 1, "train/masked": 1, "train/near_duplicate": 1,
        "train/normalised": 1, "validation/exact": 1, "validation/normalised": 1,
    }  # fmt: skip
    assert audit.body["verdict"] == "findings"
    assert derive(ledger, audit) is None
    for refs in ({"split": split.id, "history": [trained.id]}, {"split": split.id}):
        forged = ledger.append("leakage.audited", audit.body, refs)
        assert refused(ledger, forged) == "AUDIT_WRONG"
    clean = {**alone.body, "history": {}}
    assert refused(ledger, ledger.append("leakage.audited", clean, dict(audit.refs))) == "AUDIT_WRONG"  # fmt: skip
    own = audit_split(ledger, trained, against_history=True)
    assert (own.ref_list("history"), own.body["history"]) == ([], {})
    assert derive(ledger, own) is None


def test_more_fields_may_be_compared_and_none_left_out(ledger, tmp_path):
    """A field that the caller names is compared too; an audit that leaves an entity field out is refused."""
    dataset = ingest(ledger, tmp_path / "x.jsonl", lines(*ROWS))
    split = declare_split(ledger, dataset, *BY_CUSTOMER)
    audit = audit_split(ledger, split, fields=["metadata.pool"])
    assert audit.body["settings"]["entities"] == ["customer_id", "metadata.pool"]
    assert derive(ledger, audit) is None
    loose = {**audit.body["settings"], "entities": ["metadata.pool"]}
    assert refused(ledger, again(ledger, audit, settings=loose)) == "AUDIT_WRONG"
    assert refused(ledger, again(ledger, audit, method="leakage/9")) == "AUDIT_WRONG"


def test_an_audit_of_the_first_method_is_derived(ledger, tmp_path):
    """An audit recorded under `leakage/1` has no level of edited texts, and is derived under that method."""
    dataset = ingest(ledger, tmp_path / "x.jsonl", lines(*ROWS))
    audit = audit_split(ledger, declare_split(ledger, dataset, *BY_CUSTOMER))
    settings = {name: value for name, value in audit.body["settings"].items() if not name.startswith("edited")}  # fmt: skip
    levels = {name: count for name, count in audit.body["levels"].items() if name != "edited"}
    old = again(ledger, audit, method="leakage/1", settings={**settings, "band_rows": 3}, levels=levels)  # fmt: skip
    assert derive(ledger, old) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda roles, lines: (roles, lines[1:]), "not the data set's rows"),
        (lambda roles, lines: ({**roles, "train": roles["train"] - 1}, lines), "record states"),
    ],
)
def test_a_hand_out_is_checked_against_the_records(ledger, tmp_path, change, said):
    """Nothing is handed out where the assignment is not of the data set's rows, or not of the counts recorded."""
    dataset = ingest(ledger, tmp_path / "x.jsonl", lines(*ROWS))
    split = declare_split(ledger, dataset, *BY_CUSTOMER)
    roles, left = change(split.body["roles"], read_lines(ledger, split.body["assignment"]))
    forged = again(ledger, split, roles=roles, assignment=put_lines(ledger, left).model_dump())
    with pytest.raises(EvidenceError) as caught:
        roles_of(ledger, forged)
    assert caught.value.code == "SPLIT_WRONG"
    assert said in caught.value.message
