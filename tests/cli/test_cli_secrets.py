"""Secrets stay where they are: no output, no error and no file but the key's own ever holds one."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from ledger.ed25519 import PrivateKey

PASSPHRASE = "open-sesame-7319"
OTHER = "wrong-sesame-8420"
SEED = bytes.fromhex("5ec2e7" * 10 + "a7b1")
ROOT = Path(__file__).resolve().parents[2]


class Watch:
    """Everything that was printed, and the secrets that must not be in it."""

    def __init__(self, cli) -> None:
        self.cli = cli
        self.seen: list[str] = []
        self.secrets = [PASSPHRASE, OTHER]

    def __call__(self, *words: object) -> str:
        """Call for a person and with --json; the code of the error, or an empty text."""
        person = self.cli(*words)
        place = words.index("--") if "--" in words else len(words)
        program = self.cli(*words[:place], "--json", *words[place:])
        self.seen += [person.out, person.err, program.out, program.err]
        return program.answer.get("error", {}).get("code", "")

    def learn(self, *files: Path) -> None:
        """Add the seeds and the PEM bodies of some key files to the secrets."""
        for file in files:
            pem = file.read_bytes()
            locked = pem.startswith(b"-----BEGIN ENCRYPTED")
            key = load_pem_private_key(pem, PASSPHRASE.encode() if locked else None)
            seed = key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
            body = [line for line in pem.decode().splitlines() if not line.startswith("-----")]
            self.secrets += [seed.hex(), base64.b64encode(seed).decode()[:40], *body]

    def found(self, text: str) -> list[str]:
        """The secrets in a text, in any case of its letters."""
        return [secret for secret in self.secrets if secret.lower() in text.lower()]


@pytest.fixture
def watch(cli, tmp_path, monkeypatch) -> Watch:
    """A command line whose keys are under a passphrase, with a ledger."""
    monkeypatch.setenv("EVIDENCE_KEY_PASSPHRASE", PASSPHRASE)
    watch = Watch(cli)
    folder = tmp_path / "ledger"
    made = cli("init", folder, "--origin", "example.com/a")
    watch.seen += [made.out, made.err]
    cli.ledger = folder
    watch.learn(*cli.key_files())
    return watch


def bad_files(folder: Path) -> dict[str, Path]:
    """Key files that are no good, each holding a secret."""
    folder.mkdir()
    PrivateKey.from_seed(SEED).save(folder / "plain.pem")
    whole = (folder / "plain.pem").read_bytes()
    forms = {
        "cut": whole[:-30],
        "renamed": whole.replace(b"PRIVATE KEY", b"EC PRIVATE KEY"),
        "doubled": whole.replace(b"MC4C", b"MC4CMC4C"),
        "locked by name only": whole.replace(b"PRIVATE KEY", b"ENCRYPTED PRIVATE KEY"),
        "raw": SEED,
        "hex": SEED.hex().encode(),
    }
    found = {}
    for name, data in forms.items():
        found[name] = folder / f"{name.replace(' ', '-')}.pem"
        found[name].write_bytes(data)
        found[name].chmod(0o600)
    PrivateKey.from_seed(SEED).save(folder / "open.pem")
    (folder / "open.pem").chmod(0o644)
    PrivateKey.from_seed(SEED).save(folder / "other.pem", OTHER.encode())
    (folder / "link.pem").symlink_to(folder / "plain.pem")
    return found | {name: folder / f"{name}.pem" for name in ("open", "other", "link")}


def test_no_command_repeats_a_secret(watch, tmp_path, monkeypatch):
    """Good and bad key files, wrong passphrases and pasted keys: nothing printed holds a secret."""
    files = bad_files(tmp_path / "bad")
    watch.learn(tmp_path / "bad" / "plain.pem")
    codes = {name: watch("note", "@0", "x", "--key", file) for name, file in files.items()}
    assert codes == {
        "cut": "KEY_MALFORMED",
        "renamed": "KEY_MALFORMED",
        "doubled": "KEY_MALFORMED",
        "locked by name only": "KEY_MALFORMED",
        "raw": "KEY_MALFORMED",
        "hex": "KEY_MALFORMED",
        "open": "KEY_FILE_OPEN",
        "other": "KEY_LOCKED",
        "link": "UNSAFE_PATH",
    }
    for file in files.values():
        assert watch("key", "rotate-root", "--root-key", file)
        assert watch("key", "rotate-root", "--new-key", file)
        watch("key", "enroll", file, "--role", "train", "--owner", "x")
    assert watch("note", "@0", "x") == ""
    monkeypatch.setenv("EVIDENCE_KEY_PASSPHRASE", OTHER)
    for words in (("note", "@0", "x"), ("seal",), ("key", "rotate-root"), ("policy", "declare")):
        assert watch(*words)
    monkeypatch.delenv("EVIDENCE_KEY_PASSPHRASE")
    assert watch("note", "@0", "x") == "KEY_LOCKED"
    assert [watch.found(text) for text in watch.seen if watch.found(text)] == []
    assert len(watch.seen) > 100


def test_a_pasted_private_key_is_not_repeated(watch, tmp_path):
    """Whoever gives the key itself where its file belongs is told so, without the key, and no file is made of it."""
    PrivateKey.from_seed(SEED).save(tmp_path / "plain.pem")
    watch.learn(tmp_path / "plain.pem")
    pem = (tmp_path / "plain.pem").read_text()
    before = sorted(tmp_path.rglob("*"))
    for words in (
        ("key", "enroll", pem, "--role", "train", "--owner", "x"),
        ("key", "enroll", "--role", "train", "--owner", "x", "--", pem),
        ("key", "new", pem),
        ("key", "new", "--", pem),
        ("show", pem),
        ("key", "rotate-root", "--new-key", pem),
        ("key", "rotate-root", "--root-key", pem),
        ("note", "@0", "x", "--key", pem),
    ):
        assert watch(*words) in {"KEY_MALFORMED", "KEY_FILE_MISSING", "USAGE"}
    assert [watch.found(text) for text in watch.seen if watch.found(text)] == []
    assert sorted(tmp_path.rglob("*")) == before


def test_a_passphrase_given_for_its_variable_s_name_is_not_repeated(watch, tmp_path):
    """The mistake is named, the passphrase is not, and no key without a passphrase is made by it."""
    for words in (
        ("key", "new", tmp_path / "k.pem", "--passphrase-env", OTHER),
        ("init", tmp_path / "second", "--origin", "a.b/c", "--passphrase-env", OTHER),
    ):
        assert watch(*words) == "KEY_LOCKED"
    assert [watch.found(text) for text in watch.seen if watch.found(text)] == []
    assert not (tmp_path / "k.pem").exists()


def test_no_file_but_the_keys_holds_a_secret(watch, tmp_path):
    """Ledger, blobs, index, high water: none holds a passphrase, a seed or a line of a key file."""
    assert watch("note", "@0", "x") == ""
    assert watch("seal") == ""
    assert watch.cli("key", "new", tmp_path / "more.pem").code == 0
    keys = {*watch.cli.key_files(), tmp_path / "more.pem"}
    watch.learn(*keys)
    seeds = [bytes.fromhex(item) for item in watch.secrets if re.fullmatch("[0-9a-f]{64}", item)]
    assert len(set(seeds)) == 3
    others = [file for file in tmp_path.rglob("*") if file.is_file() and file not in keys]
    assert any(file.name == "ledger.sqlite" for file in others)
    for file in others:
        data = file.read_bytes()
        assert watch.found(data.decode("latin-1")) == [], file
        assert not any(seed in data for seed in seeds), file


def test_the_process_itself_says_nothing_more(watch, tmp_path):
    """As a process of its own, with a passphrase in its environment, nothing secret is on either stream."""
    file = bad_files(tmp_path / "bad")["other"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1"}
    command = [sys.executable, "-m", "runners.cli.entry", "--ledger", str(watch.cli.ledger)]
    done = subprocess.run(
        [*command, "note", "@0", "x", "--key", str(file)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "KEY_LOCKED" in done.stderr
    assert watch.found(done.stdout + done.stderr) == []


def test_a_key_never_lands_inside_a_ledger(made, tmp_path):
    """Neither a new key nor a new root goes into a ledger folder, not even through a link to it."""
    (tmp_path / "way-round").symlink_to(made.ledger)
    for folder in (made.ledger, made.ledger / "blobs", tmp_path / "way-round"):
        for words in (
            ("key", "new", folder / "k"),
            ("key", "rotate-root", "--new-key", folder / "k"),
        ):
            assert made.json(*words).error["code"] == "KEY_INSIDE_LEDGER"
    assert not list(made.ledger.rglob("k*"))


@pytest.mark.parametrize(
    "make", [lambda path: path.write_text("mine"), lambda path: path.symlink_to("/tmp/x")]
)
def test_a_public_file_is_never_overwritten(made, tmp_path, make):
    """What lies beside the new key under its public name, a dangling link too, stays, and no key is made."""
    make(tmp_path / "k.pem.pub")
    assert made.json("key", "new", tmp_path / "k.pem").error["code"] == "KEY_FILE_EXISTS"
    assert not (tmp_path / "k.pem").exists()
