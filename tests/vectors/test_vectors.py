"""The vectors: byte for byte what their recipes give, and each judged as its header says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import recipes
from world import key

from verifiers import chain as verifier
from verifiers.steps import STEPS, step_of

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "schemas/vectors"
NAMES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.json"))


def judge(vector):
    """What the verifier's core finds in a vector."""
    ids = vector.get("stored_ids", [None] * len(vector["records"]))
    rows = []
    for place, (item, name) in enumerate(zip(vector["records"], ids, strict=True)):
        entry = item["entry"].encode()
        raw = None if name is None else bytes.fromhex(name[7:])
        seq = json.loads(entry)["seq"] if vector["expect"] == "SEQ_GAP" else place
        rows.append((seq, raw, bytes.fromhex(item["signature"]), entry))
    by_seq = {row[0]: row for row in rows}
    notes = [(item["size"], item["note"].encode()) for item in vector["seals"]]
    return verifier.verify_chain(rows, by_seq.get, notes)


@pytest.mark.parametrize("name", NAMES)
def test_vector_is_judged_as_its_header_says(name):
    """The first finding has the code and step of the header; a valid vector has none."""
    vector = json.loads((FOLDER / name).read_bytes())
    result = judge(vector)
    findings = [(item.code, item.step) for item in result.wrong]
    expected = [] if vector["expect"] == "verified" else [(vector["expect"], vector["step"])]
    assert findings[:1] == expected
    assert [item.code for item in result.warnings] == vector["warnings"]
    if not expected:
        assert result.chain.size == len(vector["records"])
        assert result.seals_checked == len(vector["seals"])


def test_files_are_what_the_recipes_give():
    """The tool finds nothing to write: the recipes are repeatable and the files are fresh."""
    command = [sys.executable, "tools/gen_vectors.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_bad_vectors_outnumber_good_ones_two_to_one():
    """There are at least two invalid vectors for each valid one."""
    assert len(recipes.INVALID) >= 2 * len(recipes.VALID)
    assert len(NAMES) == len(recipes.INVALID) + len(recipes.VALID)


def test_header_names_a_step_that_exists():
    """Each invalid vector's step is one of those of the verification and belongs to its code."""
    for name in NAMES:
        vector = json.loads((FOLDER / name).read_bytes())
        assert list(vector)[:3] == ["expect", "step", "comment"]
        assert vector["comment"]
        if name.startswith("invalid/"):
            assert vector["step"] in STEPS
            assert vector["step"] == step_of(vector["expect"])


def test_keys_of_the_vectors_are_public_knowledge():
    """The private keys are made of the names themselves, so anybody can make more vectors."""
    vector = json.loads((FOLDER / "valid/beginning.json").read_bytes())
    first = json.loads(vector["records"][0]["entry"])
    assert first["actor"] == key("root").id
