"""Files of every form: the same rows, places that a person finds again, and broken files refused whole."""

from __future__ import annotations

import io
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from desk_world import chat_row, lines
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import EvidenceError
from verifiers.data import arrow_lines
from verifiers.data.json_list import elements
from verifiers.data.sources import in_memory, parse_sources

CALLS = [
    {"role": "user", "content": "Where is it?"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "find", "arguments": {"order": "#W1"}}}]},
    {"role": "tool", "content": "there", "tool_call_id": "c1"},
    {"role": "assistant", "content": "There."},
]  # fmt: skip
ROWS = [
    chat_row("a", "Grüße, one thing — 数", customer_id="ann"),
    chat_row("b", "Another", metadata={"pool": 1}),
    {"id": "c", "messages": CALLS},
]


def table(rows):
    """Rows as one Arrow table whose columns are all fields that any row has, as libraries make it."""
    reader = pa.BufferReader(lines(*rows))
    from pyarrow import json as arrow_json  # noqa: PLC0415 - a name of its own

    return arrow_json.read_json(reader)


def parquet(rows):
    """A Parquet file's bytes."""
    made = io.BytesIO()
    pq.write_table(rows if isinstance(rows, pa.Table) else table(rows), made)
    return made.getvalue()


def stream(rows):
    """An Arrow stream's bytes, as a data set saved to disk holds them."""
    made, content = io.BytesIO(), rows if isinstance(rows, pa.Table) else table(rows)
    with pa.ipc.new_stream(made, content.schema) as writer:
        writer.write_table(content)
    return made.getvalue()


def with_footer(rows):
    """An Arrow file's bytes."""
    made, content = io.BytesIO(), table(rows)
    with pa.ipc.new_file(made, content.schema) as writer:
        writer.write_table(content)
    return made.getvalue()


FORMS = [
    ("rows.jsonl", lines),
    ("rows.json", lambda *rows: json.dumps(rows, indent=2).encode()),
    ("rows.parquet", lambda *rows: parquet(rows)),
    ("rows.arrow", lambda *rows: stream(rows)),
    ("footer.arrow", lambda *rows: with_footer(rows)),
]


def parse(*named, **more):
    """Parse files given as (name, bytes), their forms told by their names."""
    return parse_sources([in_memory(name, data) for name, data in named], **more)


def refusal(*named):
    """The message with which files are refused whole."""
    with pytest.raises(EvidenceError) as caught:
        parse(*named)
    assert caught.value.code == "SOURCE_UNREADABLE"
    return caught.value.message


@pytest.mark.parametrize(("name", "write"), FORMS, ids=[name for name, _ in FORMS])
def test_every_form_gives_the_same_data_set(name, write):
    """The same rows have one identity, whatever file they come in and in whatever order they stand."""
    mixed = ROWS.copy()
    random.Random(2).shuffle(mixed)
    parsed = parse((name, write(*mixed)))
    assert parsed.rejects == []
    assert parsed.identity == parse(("x.jsonl", lines(*ROWS))).identity


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
def test_a_mark_of_utf8_does_not_cost_the_first_row(name):
    """A byte order mark before the first row is no part of it."""
    data = lines(ROWS[0]) if name.endswith("l") else json.dumps(ROWS[:1]).encode()
    parsed = parse((name, b"\xef\xbb\xbf" + data))
    assert (len(parsed.rows), parsed.rejects) == (1, [])


def test_a_reject_names_its_file_and_its_line():
    """Each file counts its own lines; a list's element has the line on which it begins; ids are unique over all files."""
    listed = b'[\n {"id": 1},\n\n  %s\n]' % json.dumps(ROWS[0]).encode()
    parsed = parse(("a.jsonl", lines(ROWS[0]).rstrip(b"\n")), ("b.json", listed))
    assert [(item.source, item.line, item.code) for item in parsed.rejects] == [
        (1, 2, "missing_field"),
        (1, 4, "duplicate_id"),
    ]
    assert parsed.rejects[0].as_json()["source"] == 1


def test_a_reject_of_the_only_file_names_its_line_only():
    """With one file of rows there is nothing to tell apart."""
    (reject,) = parse(("a.jsonl", b"oops\n")).rejects
    assert set(reject.as_json()) == {"line", "code", "message"}


def test_a_number_that_is_none_in_a_table_is_rejected():
    """NaN in a column is no value of JSON; only its row is lost."""
    rows = pa.Table.from_pylist(
        [{"messages": r["messages"], "metadata": {"x": x}} for r, x in zip(ROWS[:2], (float("nan"), 1.0), strict=True)]
    )  # fmt: skip
    parsed = parse(("x.parquet", parquet(rows)))
    assert [(item.line, item.code) for item in parsed.rejects] == [(1, "not_json")]
    assert len(parsed.rows) == 1


BROKEN = [
    ("x.parquet", b"", "size is 0"),
    ("x.parquet", b"PAR1" + b"\0" * 60 + b"PAR1", ""),
    ("x.parquet", parquet(ROWS)[:-9], ""),
    ("x.parquet", parquet(pa.table({"image": [b"x"]})), "image"),
    ("x.parquet", parquet(pa.table({"when": pa.array([0], pa.timestamp("s"))})), "when"),
    ("x.arrow", stream(pa.table([[1], [2]], names=["a", "a"])), "one name twice"),
    ("x.arrow", stream(ROWS)[:400], ""),
    ("x.arrow", b"\xff\xff\xff\xff" + b"\xff" * 40, ""),
    ("x.json", b'[{"id": 1}', "bracket"),
    ("x.json", b'[{"id": 1}] []', "bracket"),
    ("x.json", b"[}", "bracket"),
    ("x.json", b'{"rows": []}', "neither a list of rows nor a database"),
    ("x.json", b"", "not JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "said"), BROKEN, ids=range(len(BROKEN)))
def test_a_file_that_is_not_of_its_form_is_refused_whole(name, data, said):
    """Nothing of a broken table or list is taken, and the message names the file and what is wrong."""
    message = refusal(("good.jsonl", lines(ROWS[0])), (name, data))
    assert message.startswith(f"{name}: ")
    assert said in message


def test_a_table_that_would_take_all_memory_is_refused():
    """A few kilobytes that unfold to a hundred gigabytes end their reader, not this process."""
    huge = pa.DictionaryArray.from_arrays(pa.array([0] * 4096, pa.int32()), ["x" * (24 << 20)])
    data = parquet(pa.table({"id": huge}))
    assert len(data) < 32 << 20
    assert "x.parquet: " in refusal(("x.parquet", data))


@given(st.integers(0, 10**6), st.integers(0, 255))
def test_lists_with_a_byte_changed_raise_nothing_else(place, byte):
    """Whatever a changed byte does to a list, it is refused whole or each of its elements has a verdict."""
    data = bytearray(json.dumps(ROWS, indent=1).encode())
    data[place % len(data)] = byte
    try:
        parse(("x.json", bytes(data)))
    except EvidenceError as error:
        assert error.code == "SOURCE_UNREADABLE"  # noqa: PT017 - most changes are harmless


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_broken_tables_never_end_this_process(form):
    """Twelve tables with bytes changed at random are refused or read; nothing else escapes."""
    source = random.Random(form)
    write = parquet if form == "parquet" else stream
    for _ in range(12):
        data = bytearray(write(ROWS))
        for _ in range(source.randint(1, 20)):
            data[source.randrange(len(data))] = source.randrange(256)
        try:
            parse((f"x.{form}", bytes(data)))
        except EvidenceError as error:
            assert error.code == "SOURCE_UNREADABLE"  # noqa: PT017 - some changes are harmless


def test_a_table_beyond_the_limit_is_not_begun(monkeypatch):
    """A table of more bytes than may be read is refused before a process is started."""
    monkeypatch.setattr(arrow_lines, "MAX_TABLE_BYTES", 10)
    assert "more than 10 bytes" in refusal(("x.parquet", parquet(ROWS)))
    monkeypatch.setattr(arrow_lines, "MAX_TABLE_BYTES", 1 << 20)
    monkeypatch.setattr(arrow_lines, "MAX_TEXT_BYTES", 10)
    assert "rows take more than 10" in refusal(("x.parquet", parquet(ROWS)))


def state(*names, split=None, **more):
    """What a data set saved to disk says about itself."""
    return json.dumps(
        {"_data_files": [{"filename": name} for name in names], "_split": split, **more}
    ).encode()


def test_a_saved_data_set_is_its_rows():
    """State and tables together are the rows; a training split's rows are those of any other file."""
    saved = [
        ("d/state.json", state("data-0.arrow", "data-1.arrow", split="train")),
        ("d/data-0.arrow", stream(ROWS[:1])),
        ("d/data-1.arrow", stream(ROWS[1:])),
    ]
    assert parse(*saved).identity == parse(("x.jsonl", lines(*ROWS))).identity


def test_the_split_of_a_saved_data_set_is_written_into_its_rows():
    """What the folder says its rows are for, they say themselves from then on; so they are never trained on."""
    saved = [("d/state.json", state("a.arrow", split="test")), ("d/a.arrow", stream(ROWS[:1]))]
    assert [item.code for item in parse(*saved).rejects] == ["held_out"]
    (row,) = parse(*saved, keep_held_out=True).rows
    assert row["split"] == "test"


def test_folders_of_several_splits_say_which():
    """The folder's name is the split of every row in it, whatever its state says."""
    saved = [
        ("d/dataset_dict.json", b'{"splits": ["train", "test"]}'),
        ("d/train/state.json", state("a.arrow", split="train")),
        ("d/train/a.arrow", stream(ROWS[:1])),
        ("d/test/state.json", state("a.arrow", split="train")),
        ("d/test/a.arrow", stream(ROWS[1:2])),
    ]
    assert [row["split"] for row in parse(*saved, keep_held_out=True).rows] == ["train", "test"]


@pytest.mark.parametrize(
    ("said", "tables", "message"),
    [
        (state(), ["a.arrow"], "names no data files"),
        (state("../a.arrow"), ["a.arrow"], "names no data files"),
        (state("b.arrow"), ["a.arrow"], "the saved data set's next file is 'b.arrow'"),
        (state("a.arrow", "b.arrow"), ["a.arrow"], "has no b.arrow"),
        (state("a.arrow", _indices_files=[{"filename": "i"}]), ["a.arrow"], "flatten_indices"),
        (b"[]", ["a.arrow"], ""),
    ],
)
def test_saved_data_sets_that_are_not_whole(said, tables, message):
    """A state that names no files, other files or a choice among rows is refused."""
    named = [("d/state.json", said), *((f"d/{name}", stream(ROWS[:1])) for name in tables)]
    assert message in refusal(*named)


@given(
    st.lists(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=6),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
            max_leaves=6,
        ),
        max_size=6,
    ),
    st.sampled_from([None, 1, 3]),
)  # fmt: skip
def test_a_list_is_taken_apart_as_it_was_put_together(values, indent):
    """Each element comes back by itself, with the line on which it begins."""
    data = json.dumps(values, indent=indent).encode()
    found = list(elements(data, "x"))
    assert [json.loads(element) for _, element in found] == values
    for line, element in found:
        assert element.split(b"\n")[0] in data.split(b"\n")[line - 1]


def test_an_element_that_is_missing_has_a_verdict():
    """Between two commas stands an empty row; what follows the last comma is one, too."""
    parsed = parse(("x.json", b"[,\n" + json.dumps(ROWS[0]).encode() + b",\n]"))
    assert [(item.line, item.code) for item in parsed.rejects] == [(1, "empty"), (3, "empty")]
    assert len(parsed.rows) == 1
