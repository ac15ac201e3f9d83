"""What a stranger's long text costs the checks that code decides: so much processor time a kilobyte, whatever it holds."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

SIZE = 200_000
LIMIT_S = 60
"""Far above what the checks take; one that grows with the square of a text takes hours."""

CHILD = """
import sys
from verifiers.judgement import text_checks as checks
from verifiers.rewards import decisions
piece, size = sys.argv[1], int(sys.argv[2])
text = (piece * size)[:size] + "x"
checks.invented_figures(text, [text])
checks.asserted_phrases(text, ["full refund"])
checks.clauses_of(text)
checks.is_negated(text, text)
checks.numbers_of(text)
checks.repeats_itself(text)
checks.repeats_earlier(text, [text])
decisions.read_decisions(text)
decisions.amounts_of(text)
print("done")
"""


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))


@pytest.mark.parametrize(
    "piece", ["\n", " ", "7", "a", ",", "1,", "!", ". ", "$1,", "i refund you "]
)
def test_a_long_text_ends_within_its_processor_seconds(piece):
    """Line ends, digits, commas, stops or one long word, two hundred thousand of them: every check answers."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, piece, str(SIZE)],
        preexec_fn=_bounded,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n")
