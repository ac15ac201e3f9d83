"""The command line as a program: start-up, exit codes, errors, interrupts, hostile text and files."""

from __future__ import annotations

import errno
import io
import json
import os
import pty
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from world import ORIGIN, World

from ledger.codes import CODES
from runners.cli import boundary, render
from runners.cli.commands import Verb, global_options
from runners.cli.context import App
from runners.cli.main import REGISTRY, root
from runners.cli.progress import Progress

HEAVY = {
    "duckdb",
    "numpy",
    "orjson",
    "peft",
    "pyarrow",
    "pydantic",
    "pysqlite3",
    "rich",
    "scipy",
    "torch",
    "transformers",
    "trl",
}


# as the installed script does, without the current folder among the places of modules
PROGRAM = (sys.executable, "-P", "-m", "runners.cli.main")


def program(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a process of its own."""
    command = [*PROGRAM, *(str(word) for word in words)]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


def loaded_modules(*words: object) -> set[str]:
    """Top-level packages that a call has loaded when it ends."""
    script = (
        "import sys\n"
        "from runners.cli.main import main\n"
        "code = main(sys.argv[1:])\n"
        "print('\\n' + ' '.join({name.split('.')[0] for name in sys.modules}))\n"
    )
    command = [sys.executable, "-P", "-c", script, *(str(word) for word in words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def verbs(group=root, path=()):
    """Every command that does something, with its path."""
    ctx = click.Context(group, info_name="evidence")
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield from verbs(command, (*path, name))
        else:
            yield (*path, name), command


# --- start-up -------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("nonsense",), ()])
def test_help_loads_nothing_heavy(words):
    """The table of commands and its errors need click alone: no pydantic, no database, no torch."""
    assert loaded_modules(*words) & HEAVY == set()


def test_verify_loads_no_training_library(made):
    """Verifying a ledger, blobs and all, never loads torch or its kin."""
    loaded = loaded_modules("--ledger", made.ledger, "verify", "--level", "blobs")
    assert "pydantic" in loaded
    assert (
        loaded & {"torch", "transformers", "trl", "peft", "datasets", "accelerate", "duckdb"}
        == set()
    )


# --- the shape of every command -------------------------------------------------------------------


def test_every_command_has_help_an_example_and_the_options_of_every_command():
    """Each command says what it does, shows how, and takes --ledger, --key, --json and --help."""
    for path, command in verbs():
        assert isinstance(command, Verb), path
        assert command.help, path
        assert command.example, path
        for line in command.example.splitlines():
            assert line.startswith(f"evidence {' '.join(path)}"), path
        names = {name for param in command.params for name in param.opts}
        assert names >= {"--ledger", "--key", "--json"}, path
        for param in command.params:
            assert not isinstance(param, click.Option) or param.help, (path, param.name)


def test_the_table_of_commands_says_what_each_command_says():
    """The one line in the table is the command's own first sentence."""
    ctx = click.Context(root, info_name="evidence")
    for rows in REGISTRY.values():
        for name, (_, line) in rows.items():
            command = root.get_command(ctx, name)
            assert (command.help or "").split("\n")[0].rstrip(".") == line, name


def test_no_command_takes_a_secret_as_an_argument():
    """Other users can read a command line, so only the names of variables and files are given."""
    for path, command in verbs():
        for param in command.params:
            secret = {"passphrase", "password", "secret", "token"} & set(
                (param.name or "").split("_")
            )
            assert not secret or param.name.endswith("_env"), path


def test_help_shows_the_example(cli):
    """The example stands in the help of a command."""
    called = cli("lineage", "--help")
    assert called.code == 0
    assert "evidence lineage 4f2a81" in called.out


# --- misuse ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "command", "says"),
    [
        (("lgo",), "", "did you mean log"),
        (("log", "--kidn", "x"), "log", "--kidn"),
        (("log", "--limit", "x"), "log", "x"),
        (("log", "--limit", "-1"), "log", "-1"),
        (("show",), "show", "missing"),
        (("note", "@0"), "note", "missing"),
        (("key",), "key", "missing"),
        (("key", "lst"), "key", "lst"),
        (("verify", "--level", "deepest"), "verify", "deepest"),
        ((), "", "missing"),
    ],
    ids=[
        "command",
        "option",
        "no number",
        "negative",
        "argument",
        "second argument",
        "group",
        "verb",
        "choice",
        "nothing",
    ],
)
def test_misuse_is_one_object_and_exit_2(cli, words, command, says):
    """A command line that is not one is told as USAGE, by the command that refused it."""
    called = cli.json(*words)
    assert (called.code, called.error["code"], called.answer["command"]) == (2, "USAGE", command)
    assert says in called.error["message"]
    person = cli(*words)
    assert (person.code, person.out) == (2, "")
    assert says in person.err
    assert person.err.splitlines()[-1].strip().startswith("next")


def test_options_of_every_command_stand_anywhere(made, tmp_path):
    """--json and --ledger count before the command and after it; the later one wins."""
    folder = made.ledger
    made.ledger = None
    for words in (
        ("--ledger", folder, "--json", "log"),
        ("log", "--ledger", folder, "--json"),
        ("--ledger", tmp_path / "none", "log", "--json", "--ledger", folder),
    ):
        called = made(*words)
        assert json.loads(called.out)["result"]["size"] == 3


def test_json_after_two_dashes_is_text(made):
    """What follows `--` is an argument even where it looks like an option."""
    called = made("note", "@0", "--", "--json")
    assert called.code == 0
    assert called.out.startswith("noted")


def test_ledger_and_key_come_from_the_environment(made, monkeypatch):
    """EVIDENCE_LEDGER and EVIDENCE_KEY stand in for the options."""
    writer = next(file for file in made.key_files() if file.name == "writer.pem")
    monkeypatch.setenv("EVIDENCE_LEDGER", str(made.ledger))
    monkeypatch.setenv("EVIDENCE_KEY", str(writer))
    made.ledger = None
    assert made.json("note", "@0", "x").code == 0


def test_the_default_ledger_is_a_folder_called_evidence(cli):
    """Without option or variable ./evidence is used, by init too."""
    assert cli.json("init", "--origin", "example.com/a").result["ledger"] == "evidence"
    assert cli.json("log").result["size"] == 3


# --- exit codes and errors ------------------------------------------------------------------------


def test_codes_that_exit_2_are_codes():
    """The list of codes with exit 2 holds no code that does not exist."""
    assert set(boundary.EXIT_2) - set(CODES) == set()


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("LEDGER_NOT_FOUND", 2), ("ROLE_MISSING", 1), ("SIGNATURE_INVALID", 1), ("INTERRUPTED", 130)],
)
def test_exit_code_of_a_code(code, exit_code):
    """Misused or unreadable is 2, refused or wrong 1, interrupted 130."""
    assert boundary.exit_code(code) == exit_code


def test_an_error_names_record_expectation_and_next_step(full, full_world):
    """A person reads what was expected, what was there and what to do, on stderr alone."""
    called = full("prove", "@5")
    assert (called.code, called.out) == (2, "")
    lines = called.err.splitlines()
    assert lines[0] == "error: no seal covers seq 5 yet [NOT_SEALED]"
    assert full_world.records[5].id in lines[1]
    assert lines[-1].split(maxsplit=1) == ["next", "seal the ledger: evidence seal"]


def spoiled(folder: Path, how: str) -> None:
    """Make a ledger folder into something that is none."""
    file = folder / "ledger.sqlite"
    if how == "missing":
        file.unlink()
    elif how == "no database":
        file.write_bytes(b"not a database" * 1000)
    elif how == "empty file":
        file.write_bytes(b"")
    elif how == "cut":
        file.write_bytes(file.read_bytes()[:5000])
    elif how == "a folder":
        file.unlink()
        file.mkdir()
    elif how == "a link":
        file.rename(folder / "real")
        file.symlink_to(folder / "real")
    else:
        db = sqlite3.connect(file)
        db.executescript(SPOILING_SQL[how])
        db.close()


SPOILING_SQL = {
    "future format": "PRAGMA user_version = 99",
    "other application": "PRAGMA application_id = 1",
    "view for a table": "ALTER TABLE records RENAME TO r; CREATE VIEW records AS SELECT * FROM r",
    "further table": "CREATE TABLE more (a)",
    "further trigger": (
        "CREATE TRIGGER evil AFTER INSERT ON records BEGIN INSERT INTO seals VALUES (1, x'00'); END"
    ),
}
READABLE = {
    "future format": "FORMAT_UNKNOWN",
    "a link": "UNSAFE_PATH",
    "missing": "LEDGER_NOT_FOUND",
}


@pytest.mark.parametrize(
    "how",
    ["missing", "no database", "empty file", "cut", "a folder", "a link", *SPOILING_SQL],
)
@pytest.mark.parametrize("words", [("log",), ("show", "@0"), ("key", "list"), ("note", "@0", "x")])
def test_what_is_no_ledger_is_exit_2(made, how, words):
    """Whatever lies where the ledger should, each command ends with a code and exit 2, not a traceback."""
    for suffix in ("-wal", "-shm"):
        made.ledger.joinpath(f"ledger.sqlite{suffix}").unlink(missing_ok=True)
    spoiled(made.ledger, how)
    called = made.json(*words)
    assert called.code == 2
    wanted = READABLE.get(how)
    assert called.error["code"] == wanted or (
        wanted is None
        and called.error["code"] in {"LEDGER_UNREADABLE", "LEDGER_SCHEMA", "UNSAFE_PATH"}
    )


def test_a_row_that_is_no_record_is_an_error_with_its_code(full):
    """A row whose entry was changed is found by reading, as evidence that is wrong: exit 1."""
    db = sqlite3.connect(full.ledger / "ledger.sqlite")
    db.executescript(
        "DROP TRIGGER records_no_update; UPDATE records SET entry = x'7b7d' WHERE seq = 3;"
    )
    db.close()
    called = full.json("log")
    assert (called.code, called.error["code"]) == (1, "ENVELOPE_INVALID")


def test_a_folder_that_cannot_be_written_is_an_error_of_the_system(made, tmp_path):
    """An output path in a missing folder is told as a missing input, not as a traceback."""
    called = made.json("seal", "--out", tmp_path / "none" / "seal")
    assert (called.code, called.error["code"]) == (2, "INPUT_MISSING")
    called = made.json("seal", "--out", tmp_path)
    assert (called.code, called.error["code"]) == (2, "OS_REFUSED")


def test_a_ledger_that_went_back_is_refused_to_writers(made, tmp_path):
    """An older copy put in the ledger's place is noticed by the high-water file in the user's folder."""
    shutil.copytree(made.ledger, tmp_path / "older")
    assert made("note", "@0", "x").code == 0
    shutil.rmtree(made.ledger)
    shutil.copytree(tmp_path / "older", made.ledger)
    called = made.json("note", "@0", "y")
    assert (called.code, called.error["code"]) == (1, "LEDGER_ROLLED_BACK")


# --- verify ---------------------------------------------------------------------------------------


def test_verify_says_verified_and_names_its_trust(made):
    """A good ledger verifies on faith, and pinned once the root key is named."""
    key = made.json("key", "list").result["root_key"]
    assert made.json("verify").result["trust"] == "on_faith"
    result = made.json("verify", "--root", key).result
    assert (result["verdict"], result["trust"], result["records"]) == ("verified", "pinned", 3)
    text = made("verify").out
    assert text.startswith(f"verified: {made.json('show', '@0').result['ledger']}")


def test_verify_finds_a_flipped_byte_and_exits_1(full):
    """One bit of one entry is found; `ok` is false, and the error is the first finding."""
    db = sqlite3.connect(full.ledger / "ledger.sqlite")
    db.executescript("DROP TRIGGER records_no_update")
    (entry,) = db.execute("SELECT entry FROM records WHERE seq = 7").fetchone()
    flipped = bytearray(entry)
    flipped[len(entry) // 2] ^= 1
    db.execute("UPDATE records SET entry = ? WHERE seq = 7", (bytes(flipped),))
    db.commit()
    db.close()
    called = full.json("verify")
    assert (called.code, called.answer["ok"], called.result["verdict"]) == (1, False, "wrong")
    finding = called.result["findings"][0]
    assert finding["seq"] == 7
    assert called.error["code"] == finding["code"]
    person = full("verify")
    assert (person.code, person.out.splitlines()[0].split(":")[0]) == (1, "wrong")
    assert f"{finding['step']} {finding['code']} at seq 7" in person.out


def test_verify_of_nothing_is_incomplete_and_exits_2(cli, tmp_path):
    """Nothing read is never verified."""
    cli.ledger = tmp_path / "none"
    called = cli.json("verify")
    assert (called.code, called.result["verdict"]) == (2, "incomplete")
    assert called.error["code"] == "LEDGER_NOT_FOUND"


def test_verify_expects_a_seal(made, tmp_path):
    """The ledger must contain the seal given: one that is its own, and not one of another ledger."""
    made("seal", "--out", tmp_path / "mine")
    assert made.json("verify", "--expect-seal", tmp_path / "mine").result["rollback"] != "unchecked"
    (tmp_path / "other").write_bytes(World().note())
    called = made.json("verify", "--expect-seal", tmp_path / "other")
    assert (called.code, called.error["code"]) == (1, "EXPECTED_SEAL")
    assert made.json("verify", "--expect-seal", tmp_path / "no").error["code"] == "INPUT_MISSING"


def test_verify_of_an_untrusted_root_is_wrong(made):
    """A root key that is not the one pinned makes the verdict wrong."""
    called = made.json("verify", "--root", "ed25519:" + "0" * 32)
    assert (called.code, called.error["code"]) == (1, "ROOT_UNTRUSTED")


def test_verify_of_a_record_that_is_not_there(made):
    """Naming no record of the ledger is an error of the caller."""
    assert made.json("verify", "ffffff", "--level", "blobs").error["code"] == "REF_NOT_FOUND"


# --- text from somebody else ----------------------------------------------------------------------

HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202eevil\u2066\x9b31m\x00\r\n\x7f"


@pytest.mark.parametrize(
    "words",
    [
        ("log",),
        ("show", "@3"),
        ("lineage", "@3"),
        ("lineage", "@3", "--format", "dot"),
        ("lineage", "@3", "--format", "mermaid"),
        ("query", "SELECT text FROM notes"),
    ],
)
def test_no_control_sequence_of_a_ledger_reaches_a_terminal(made, words):
    """Escape sequences, bells, carriage returns and marks that reverse text are shown, never sent."""
    made("note", "@0", HOSTILE.replace("\x00", ""))
    made_note = made(*words)
    assert made_note.code == 0
    assert all(char.isprintable() for line in made_note.out.split("\n") for char in line)
    as_json = made.json(*words)
    assert all(char.isprintable() for char in as_json.out.rstrip("\n"))


def test_hostile_text_comes_back_whole_in_json(made):
    """Escaping is JSON's own: a program reads exactly the text that was recorded."""
    note = made.json("note", "@0", HOSTILE.replace("\x00", "")).result["note"]
    assert made.json("show", note).result["body"]["text"] == HOSTILE.replace("\x00", "")


def test_an_error_shows_hostile_arguments_cleaned(made):
    """What the caller typed is cleaned in messages too."""
    called = made("show", "\x1b[31mabc")
    assert "\x1b" not in called.err
    assert called.code == 2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 文", "plain é 文"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb", "a\\x0ab"),
        ("\u202e", "\\u202e"),
        ("\U000e0001", "\\U000e0001"),
        ("\ud800", "\\ud800"),
    ],
)
def test_clean_shows_what_cannot_be_printed(text, shown):
    """Printable text is left alone; everything else becomes its code."""
    assert render.clean(text) == shown


def test_tables_align_numbers_right_and_cut_long_cells():
    """Numbers end in one column, text begins in one, and a long cell ends in an ellipsis."""
    lines = render.table(("name", "n"), [("a", 5), ("bb", 1234), ("x" * 99, None)], limit=5)
    assert lines == ["name      n", "a         5", "bb     1234", "xxxx…     -"]


# --- colour, progress, pipes, interrupts ----------------------------------------------------------


def on_terminal(*words: object, **environment: str) -> str:
    """What a terminal receives."""
    parent, child = pty.openpty()
    command = [*PROGRAM, *(str(word) for word in words)]
    with subprocess.Popen(command, stdout=child, stderr=child, env={**os.environ, **environment}):
        os.close(child)
        received = b""
        while True:
            try:
                part = os.read(parent, 65536)
            except OSError as error:
                if error.errno != errno.EIO:  # Linux says so at the end of a terminal
                    raise
                break
            if not part:
                break
            received += part
    os.close(parent)
    return received.decode()


def test_colour_only_on_a_terminal(made):
    """A terminal gets colour unless NO_COLOR is set; a pipe never does."""
    words = ("--ledger", made.ledger, "log")
    assert "\x1b[1m" in on_terminal(*words, TERM="xterm")
    assert "\x1b" not in on_terminal(*words, TERM="xterm", NO_COLOR="1")
    assert "\x1b" not in program(*words).stdout


def test_progress_waits_two_seconds_and_leaves_nothing():
    """Short work draws nothing; long work draws one line, several times, and clears it at the end."""
    now = 0.0
    terminal = io.StringIO()
    bar = Progress("reading", 4, terminal, clock=lambda: now)
    bar()
    assert terminal.getvalue() == ""
    now = 2.0
    bar()
    bar()  # too soon after the last one
    assert terminal.getvalue() == "\r\x1b[2Kreading [############............] 2 of 4 (50%)"
    now = 3.0
    bar()
    bar.close()
    assert terminal.getvalue().endswith("4 of 4 (100%)\r\x1b[2K")


def test_progress_without_a_total_counts():
    """Where nobody knows the end, the number of steps is shown."""
    bar = Progress("reading", None, None)
    bar(1234)
    assert bar.line() == "reading 1,234"


def test_results_on_stdout_and_hints_on_stderr(made):
    """The table goes to stdout, the next step to stderr."""
    done = program("--ledger", made.ledger, "log")
    assert done.stdout.splitlines()[0].startswith("seq")
    assert done.stderr.splitlines() == [done.stderr.rstrip("\n")]
    assert done.stderr.startswith("next: evidence show ")


def test_a_reader_that_goes_away_is_no_error(full):
    """`evidence log | head -1` ends quietly with 141 and no traceback."""
    command = [*PROGRAM, "--ledger", str(full.ledger), "log", "--limit", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaint = process.stderr.read()
    assert process.returncode == boundary.PIPE_CLOSED
    assert b"Traceback" not in complaint


@pytest.mark.parametrize("as_json", [True, False])
def test_an_interrupt_says_so_and_leaves_the_ledger_whole(made, as_json):
    """Ctrl-C during a query ends with 130 and INTERRUPTED, and the ledger verifies afterwards."""
    endless = (
        "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t) SELECT count(*) FROM t"
    )
    words = ["--ledger", str(made.ledger), "query", endless, *(["--json"] if as_json else [])]
    command = [*PROGRAM, *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for_child(process.pid)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    if as_json:
        assert json.loads(out)["error"]["code"] == "INTERRUPTED"
        assert err == ""
    else:
        assert out == ""
        assert "[INTERRUPTED]" in err
    assert made.json("verify").result["verdict"] == "verified"


def wait_for_child(pid: int) -> None:
    """Wait until a process has started another one."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    for _ in range(200):
        if children.read_text():
            return
        time.sleep(0.05)
    raise AssertionError("the process started no other")


def test_an_interrupt_inside_a_command_is_one_answer(cli, monkeypatch):
    """KeyboardInterrupt from anywhere below becomes the one answer, exit 130."""

    def interrupted(self, path=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(App, "read_ledger", interrupted)
    called = cli.json("log")
    assert (called.code, called.error["code"], called.answer["command"]) == (
        130,
        "INTERRUPTED",
        "log",
    )


def test_globals_are_the_documented_ones():
    """The options of every command are these three."""
    assert [option.opts[0] for option in global_options()] == ["--ledger", "--key", "--json"]


def test_this_worlds_origin_is_not_the_tests_own():
    """The stranger's ledger in these tests has another origin than the user's, so mixing them shows."""
    assert ORIGIN != "example.com/tests"


def test_an_answer_that_cannot_be_written_is_one_line(made):
    """A full disk under stdout ends in one line on stderr and exit code 2, not in a traceback."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [
                sys.executable,
                "-P",
                "-m",
                "runners.cli.main",
                "log",
                "--json",
                "--ledger",
                str(made),
            ],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: the answer could not be written: No space left on device [OS_REFUSED]"
    ]


def test_an_interrupt_while_the_program_starts_is_one_line():
    """A Ctrl-C that falls into the first imports is answered in one line with exit code 130."""
    script = """
import sys
class Finger:
    def find_spec(self, name, *_):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finger())
from runners.cli.entry import main
sys.exit(main())
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, check=False, text=True
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "error: interrupted [INTERRUPTED]\n"


def test_verify_since_begins_at_the_snapshot_of_the_seal(made, tmp_path):
    """Only what was added is checked, and the answer says what vouches for the rest."""
    made("seal", "--out", tmp_path / "mine")
    assert made("note", "@0", "later").code == 0
    called = made.json("verify", "--since", tmp_path / "mine")
    assert called.result["since"] == called.result["records"] - 2
    told = made("verify", "--since", tmp_path / "mine").out
    assert "vouched for before it by: expected seal found" in told
    assert made.json("verify", "--since", "last").result["rollback"] == "high water reached"
    assert made.json("verify", "--since", tmp_path / "no").error["code"] == "INPUT_MISSING"
    (tmp_path / "none").write_text("no seal")
    refused = made.json("verify", "--since", tmp_path / "none")
    assert (refused.code, refused.error["field"]) == (2, "--since")
