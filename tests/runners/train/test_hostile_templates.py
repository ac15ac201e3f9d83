"""A chat template is a stranger's program: what it may not do, and how little of the machine it gets."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import chat_templates as t
import pytest
from tiny import loopback, rows, write_rows

from ledger.errors import EvidenceError, UsageError
from runners.train import planned_rows
from runners.train.bounds import SECONDS, whole_seconds
from runners.train.config import SftSettings
from runners.train.preflight import encode_rows
from runners.train.preflight_child import count
from runners.train.tokens import load_tokenizer
from verifiers.data.identity import rows_bytes

SETTINGS = SftSettings(steps=2, batch_size=2, max_length=400)
GIVEN = [("d0", rows(1)[0]["messages"])]


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("{% include '/etc/hostname' %}", id="reads a file"),
        pytest.param("{% import '/etc/hostname' as x %}", id="imports a file"),
        pytest.param("{{ messages.__class__.__base__.__subclasses__() }}", id="asks for classes"),
        pytest.param("{{ ''.format.__globals__ }}", id="asks for globals"),
        pytest.param("{{ '{0.__class__}'.format(1) }}", id="formats an attribute"),
        pytest.param("{{ strftime_now.__globals__['re'] }}", id="asks a function"),
        pytest.param("{{ messages.append(1) }}", id="changes the turns"),
        pytest.param("{{ 1 / 0 }}", id="divides by nothing"),
        pytest.param("{{ messages['role']['x'] }}", id="asks for what is not there"),
        pytest.param("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", id="calls itself"),
        pytest.param("{{ raise_exception('no') }}", id="refuses"),
        pytest.param("{% for i in range(10 ** 9) %}x{% endfor %}", id="a range without end"),
        pytest.param("{{ 'x' * 10 ** 15 }}", id="a text of a petabyte"),
        pytest.param("{{ 'x' * 10 ** 7 }}", id="a text of ten megabytes"),
    ],
)  # fmt: skip
def test_what_a_template_does_to_its_row_is_the_rows_reason(tiny_model, template):
    """Nothing is read or changed, no raw exception escapes, and the row is untrainable by a code."""
    tokenizer = load_tokenizer(tiny_model)
    tokenizer.chat_template = template
    with pytest.raises(UsageError, match=r"template_(failed|drops|not_prefix) 1") as caught:
        encode_rows(tokenizer, GIVEN, 400)
    assert caught.value.code == "ROW_UNTRAINABLE"


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", id="loops in loops"),
        pytest.param("{{ (9 ** (9 ** 9)) % 7 }}", id="a number of years"),
    ],
)  # fmt: skip
def test_a_template_that_does_not_end_is_ended(tiny_model, template, monkeypatch):
    """After its processor time the process that counts is gone, and the error names the row it was at."""
    monkeypatch.setattr(planned_rows, "SECONDS", 1)
    given = [{**row, "row": "sha256:" + "0" * 64} for row in rows(2)]
    with pytest.raises(
        EvidenceError, match=r"row row-0: the chat template took more than 1 s"
    ) as caught:
        planned_rows.counted(tiny_model, rows_bytes(given), SETTINGS, template, lambda *_: None)
    assert (caught.value.code, caught.value.field) == ("TEMPLATE_UNBOUNDED", "chat_template")


@pytest.mark.parametrize("stop", [False, True])
def test_a_wish_to_stop_is_heard_however_short_the_work(tiny_model, tmp_path, stop):
    """Counting that is told to stop gives no figures, also where it was told after its last row; else it gives them."""
    path = write_rows(tmp_path / "rows.jsonl", rows(2))
    (tmp_path / "t.jinja").write_text(t.CHATML)
    job = {
        "model": str(tiny_model), "rows": str(path), "settings": SETTINGS.effective(), "seconds": 60, "whole": 60,
        "template": str(tmp_path / "t.jinja"), "at": str(tmp_path / "at"), "output": str(tmp_path / "out"),
    }  # fmt: skip
    ended = count(loopback(lambda event: {"stop": stop}), job)
    assert ended == ({"outcome": "stopped"} if stop else {})
    assert (tmp_path / "out").exists() is not stop


def test_an_honest_template_is_counted_in_the_same_process(tiny_model):
    """The control: rows are counted, and the figures are those of counting here."""
    given = [{**row, "row": f"row {number}"} for number, row in enumerate(rows(4))]
    found = planned_rows.counted(tiny_model, rows_bytes(given), SETTINGS, t.CHATML, lambda *_: None)
    assert found["rows"] == {"input": 4, "effective": 4, "truncated": 0, "dropped": 0}
    here = encode_rows(
        load_tokenizer(tiny_model), [(row["row"], row["messages"]) for row in given], 400
    )
    assert found["encoding"] == here.digest
    assert json.loads(json.dumps(found)) == found


WITHIN = """
import sys, time
from runners.train.bounds import bounded
with bounded(60, whole=1) as begin:
    while True:
        begin()
        until = time.process_time() + 0.1
        while time.process_time() < until:
            pass
"""


def test_pieces_within_their_bound_have_one_together():
    """Each piece takes a tenth of a second of its minute; after all that they may take together the process is ended."""
    done = subprocess.run([sys.executable, "-c", WITHIN], check=False)
    assert done.returncode == -signal.SIGXCPU
    assert whole_seconds(0) < whole_seconds(10_000) < 10_000 * SECONDS
