"""Generated files: schemas and reference pages are what the models, rules and commands say now."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from test_cli_boundary import verbs

from ledger import canonical
from ledger.codes import CODES
from ledger.query.named_queries import names
from ledger.query.names import ALL_TABLES
from ledger.records import KINDS
from ledger.rules import RULES
from runners.cli.results import RESULTS

HOME = Path(__file__).resolve().parents[2]
GENERATORS = ("gen_schemas.py", "gen_reference.py")
REFERENCE = HOME / "docs" / "reference"


def generate(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a generator."""
    command = [sys.executable, str(HOME / "tools" / script), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("script", GENERATORS)
def test_generated_files_are_current(script):
    """`--check` finds no difference between the committed files and what the sources give."""
    done = generate(script, "--check")
    assert done.returncode == 0, done.stderr


def test_check_names_the_file_and_the_command(tmp_path):
    """A file that was edited or is stray fails the check, which says how to make it again; nothing is written."""
    script = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); from generated import settle\n"
        "folder = Path(sys.argv[2]); files = {folder / 'a.md': 'new', folder / 'b.md': 'same'}\n"
        "sys.exit(settle(files, folders=[(folder, '.md')], command='make it so'))\n"
    )
    (tmp_path / "a.md").write_text("old")
    (tmp_path / "b.md").write_text("same")
    (tmp_path / "stray.md").write_text("x")
    command = [sys.executable, "-c", script, str(HOME / "tools"), str(tmp_path)]
    checked = subprocess.run([*command, "--check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 1
    assert "a.md" in checked.stderr
    assert "stray.md" in checked.stderr
    assert "b.md" not in checked.stderr
    assert checked.stderr.splitlines()[-1] == "run: make it so"
    assert (tmp_path / "a.md").read_text() == "old"
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.md", "b.md"]
    assert (tmp_path / "a.md").read_text() == "new"


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("commands.md", [f"## evidence {' '.join(path)}" for path, _ in verbs()]),
        ("codes.md", [f"| `{code}` |" for code in CODES]),
        ("records.md", [f"## {kind}" for kind in KINDS]),
        ("rules.md", [f"| `{kind}` |" for kind in RULES]),
        ("queries.md", [f"| `{name}` |" for name in (*names(), *ALL_TABLES)]),
    ],
)
def test_reference_names_everything(page, wanted):
    """Every command, code, kind, rule, query and table appears in its reference page."""
    lines = (REFERENCE / page).read_text(encoding="utf-8").splitlines()
    missing = [item for item in wanted if not any(line.startswith(item) for line in lines)]
    assert missing == []


def test_every_command_has_a_result_shape():
    """Each command's `--json` result is described, and no description is left of a command that is gone."""
    assert {" ".join(path) for path, _ in verbs()} == RESULTS.keys()


def test_entry_schemas_on_disk_accept_every_kind(full_world):
    """Each kind's file under schemas/records accepts that kind's entry and no other kind's."""
    for record in full_world.records:
        schema = json.loads((HOME / f"schemas/records/{record.kind}.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        validator.validate(canonical.decode(record.entry))
        other = full_world.records[0 if record.seq else 1]
        assert not validator.is_valid(canonical.decode(other.entry)) or other.kind == record.kind


@pytest.mark.parametrize(
    "words",
    [
        ("log",),
        ("show", "@0"),
        ("key", "list"),
        ("lineage", "@1"),
        ("query", "--list"),
        ("note", "@0", "x"),
        ("seal",),
        ("verify",),
        ("verify", "--root", "ed25519:" + "0" * 32),
        ("policy", "declare", "--template"),
        ("schema", "note.added"),
    ],
    ids=" ".join,
)
def test_answers_fit_the_schemas_on_disk(made, words):
    """What a command prints is valid under its file in schemas/cli, also where the answer is bad."""
    called = made.json(*words)
    name = called.answer["command"].replace(" ", "-")
    schema = json.loads((HOME / f"schemas/cli/{name}.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(called.answer)
    lying = {**called.answer, "ok": not called.answer["ok"]}
    assert not jsonschema.Draft202012Validator(schema).is_valid(lying)


def test_errors_fit_their_schema(cli):
    """An error object is valid under schemas/cli/error.schema.json."""
    schema = json.loads((HOME / "schemas/cli/error.schema.json").read_text())
    for words in (("show", "@0"), ("lgo",), ("show",)):
        jsonschema.Draft202012Validator(schema).validate(cli.json(*words).answer)
