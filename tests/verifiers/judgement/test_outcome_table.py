"""Tables of outcomes from elsewhere: two forms, each line checked."""

from __future__ import annotations

import json

import pytest

from ledger.errors import EvidenceError
from verifiers.judgement.outcome_table import Cell, read_table

HEAD = "seed,case,family,baseline,candidate,rollouts\n"
SINGLE_HEAD = "seed,arm,case,family,success\n"
CELLS = {(1, "a"): Cell("f", 1, 2, 2), (1, "b"): Cell("g", 0, 1, 2)}


def test_counts_and_single_answers_give_the_same_cells() -> None:
    """CSV and JSON lines, counted or a line an answer, are one table; blank lines and a byte mark are no matter."""
    counted = HEAD + "1,a,f,1,2,2\n\n1, b ,g,0,1,2\n"
    answers = [("baseline", "a", "f", (1, 0)), ("candidate", "a", "f", (1, 1))]
    answers += [("baseline", "b", "g", (0, 0)), ("candidate", "b", "g", (0, 1))]
    rows = [
        {"seed": 1, "arm": arm, "case": case, "family": family, "success": bool(success)}
        for arm, case, family, successes in answers
        for success in successes
    ]
    single = SINGLE_HEAD + "".join(",".join(map(str, row.values())) + "\n" for row in rows)
    lines = "\n".join(json.dumps(row) for row in rows)
    assert read_table(b"\xef\xbb\xbf" + counted.encode(), as_csv=True) == CELLS
    assert read_table(single.encode(), as_csv=True) == CELLS
    assert read_table(lines.encode(), as_csv=False) == CELLS


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("", None, "no line of outcomes"),
        (HEAD, None, "no line of outcomes"),
        ("seed,case,family,baseline,candidate\n1,a,f,1,1\n", "rollouts", "column rollouts"),
        ("seed,arm,case,family\n1,baseline,a,f\n", "success", "column success"),
        ("seed,seed\n1,1\n", None, "a column stands twice"),
        (HEAD + "1,a,f,1,2\n", None, "line 2: 5 values for 6 columns"),
        (HEAD + "1,a,f,1,3,2\n", "rollouts", "line 2: 3 successes out of 2"),
        (HEAD + "1,a,f,0,0,0\n", "rollouts", "0 successes out of 0"),
        (HEAD + "1,a,f,x,1,2\n", "baseline", "'x', not a whole number"),
        (HEAD + "1,a,f,-1,1,2\n", "baseline", "not a whole number"),
        (HEAD + "1,a,f,٣,1,2\n", "baseline", "not a whole number"),
        (HEAD + "1,a,f,1,1,9999999\n", "rollouts", "above"),
        (HEAD + "1,,f,1,1,2\n", "case", "case is empty"),
        (HEAD + "1,a,f,1,1,2\n1,a,f,1,1,2\n", "case", "line 3: case a of seed 1 stands twice"),
        (HEAD + "1,a,f,1,1,2\n2,a,g,1,1,2\n", "family", "another family in seed 2"),
        (HEAD + '1,"a,f,1,1,2\n', None, "not CSV"),
        (SINGLE_HEAD + "1,judge,a,f,1\n", "arm", "not baseline or candidate"),
        (SINGLE_HEAD + "1,baseline,a,f,2\n", "success", "not 0 or 1"),
        (SINGLE_HEAD + "1,baseline,a,f,1\n", "arm", "1 answers of the baseline and 0"),
        (SINGLE_HEAD + "1,baseline,a,f,1\n1,candidate,a,g,1\n", "family", "two families"),
    ],
)
def test_a_line_that_is_no_outcome_is_named(text, field, words) -> None:
    """Each malformed table is one error with its line and column."""
    with pytest.raises(EvidenceError) as caught:
        read_table(text.encode(), as_csv=True)
    assert (caught.value.code, caught.value.field) == ("TABLE_MALFORMED", field)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "line 1: this is not JSON"),
        (b"[1]", "line 1: this is no object"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"seed":1,"case":"a","family":"f","baseline":1.0,"candidate":1,"rollouts":1}', "1.0"),
    ],
)
def test_lines_that_are_no_json_objects_are_refused(data, words) -> None:
    """JSON lines are read strictly."""
    with pytest.raises(EvidenceError) as caught:
        read_table(data, as_csv=False)
    assert caught.value.code == "TABLE_MALFORMED"
    assert words in caught.value.message


def test_a_line_without_end_is_refused() -> None:
    """A line beyond the limit is refused before it is read as CSV."""
    with pytest.raises(EvidenceError) as caught:
        read_table((HEAD + "1," + "a" * 70_000).encode(), as_csv=True)
    assert caught.value.code == "TOO_LARGE"
