"""`evidence init`, `key` and `policy`: keys outside the ledger, root's word for who may sign."""

from __future__ import annotations

import stat

import pytest

from ledger.book import Ledger
from ledger.ed25519 import PrivateKey
from runners.cli.policy import TEMPLATE, read


def test_init_makes_a_sealed_ledger_and_keys_outside_it(cli, tmp_path):
    """After init the ledger has three sealed records and both keys lie in the configuration folder, 0600."""
    result = cli.json("init", tmp_path / "l", "--origin", "example.com/a").result
    assert result["origin"] == "example.com/a"
    assert result["seal"].startswith("example.com/a\n3\n")
    files = cli.key_files()
    assert {str(file) for file in files} == {result["root_key_file"], result["writer_key_file"]}
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
    assert stat.S_IMODE(files[0].parent.stat().st_mode) == 0o700
    assert not list((tmp_path / "l").rglob("*.pem"))


def test_init_enrols_the_writer_and_nobody_who_reviews(made):
    """The writer key ingests, trains, judges and seals; no key has role review."""
    keys = made.json("key", "list").result["keys"]
    roles = {key["owner"]: key["roles"] for key in keys}
    assert roles == {"root": ["root"], "writer": ["ingest", "judge", "seal", "train"]}


def test_init_says_where_the_keys_lie(cli, tmp_path):
    """A person reads where both keys are and that no review key was made."""
    called = cli("init", tmp_path / "l", "--origin", "example.com/a")
    assert str(cli.key_files()[0]) in called.out
    assert "No review key was made" in called.out
    assert called.err.splitlines()[-1].startswith("next: evidence policy declare")


@pytest.mark.parametrize(
    ("origin", "code"),
    [
        ("two words", "USAGE"),
        ("", "USAGE"),
        ("a\nb", "USAGE"),
        ("é.com", "USAGE"),
        ("x" * 129, "USAGE"),
    ],
)
def test_init_refuses_a_bad_origin_and_makes_nothing(cli, tmp_path, origin, code):
    """A name that no seal could carry is refused before a key or a folder is made."""
    called = cli.json("init", tmp_path / "l", "--origin", origin)
    assert (called.code, called.error["code"]) == (2, code)
    assert not (tmp_path / "l").exists()
    assert cli.key_files() == []


def test_init_refuses_a_folder_with_something_in_it(cli, tmp_path):
    """What lies in the folder already is left alone, and no key is made."""
    (tmp_path / "l").mkdir()
    (tmp_path / "l" / "thesis.txt").write_text("mine")
    called = cli.json("init", tmp_path / "l", "--origin", "example.com/a")
    assert (called.code, called.error["code"]) == (2, "LEDGER_EXISTS")
    assert cli.key_files() == []


def test_init_refuses_keys_inside_the_ledger(cli, tmp_path):
    """A ledger folder is made to be copied, so private keys may not lie in it."""
    called = cli.json(
        "init", tmp_path / "l", "--origin", "example.com/a", "--key-dir", tmp_path / "l" / "keys"
    )
    assert (called.code, called.error["code"]) == (2, "KEY_INSIDE_LEDGER")
    assert not (tmp_path / "l").exists()


def test_key_dir_is_used_with_key(cli, tmp_path):
    """Keys put elsewhere are found through --key."""
    keys = tmp_path / "safe"
    cli("init", tmp_path / "l", "--origin", "example.com/a", "--key-dir", keys)
    cli.ledger = tmp_path / "l"
    assert cli.json("note", "@0", "x").error["code"] == "KEY_MISSING"
    assert cli("note", "@0", "x", "--key", keys / "writer.pem").code == 0


def test_passphrase_is_needed_again(cli, tmp_path, monkeypatch):
    """Keys made under a passphrase open with that one and with no other."""
    monkeypatch.setenv("EVIDENCE_KEY_PASSPHRASE", "right")
    cli("init", tmp_path / "l", "--origin", "example.com/a")
    cli.ledger = tmp_path / "l"
    assert cli("note", "@0", "x").code == 0
    for wrong in ("", "wrong"):
        monkeypatch.setenv("EVIDENCE_KEY_PASSPHRASE", wrong)
        called = cli.json("note", "@0", "x")
        assert (called.code, called.error["code"]) == (2, "KEY_LOCKED")
    assert "PRIVATE KEY" not in called.out


def test_a_named_passphrase_variable_must_hold_one(cli, tmp_path):
    """Asking for a passphrase and giving none does not make keys without one."""
    called = cli.json(
        "init", tmp_path / "l", "--origin", "example.com/a", "--passphrase-env", "NOT_SET"
    )
    assert (called.code, called.error["code"]) == (2, "KEY_LOCKED")
    assert cli.key_files() == []


def test_key_file_that_others_can_read_is_refused(made):
    """A writer key with open permissions signs nothing."""
    writer = next(file for file in made.key_files() if file.name == "writer.pem")
    writer.chmod(0o644)
    called = made.json("note", "@0", "x")
    assert (called.code, called.error["code"]) == (2, "KEY_FILE_OPEN")
    assert called.error["hint"] == f"chmod 600 {writer}"


def test_enrolled_key_signs_in_its_role_only(made, tmp_path):
    """A key made with key new writes after its enrolment, and not what its role forbids."""
    file = tmp_path / "second.pem"
    public = made.json("key", "new", file).result["public_key"]
    assert made.json("note", "@0", "x", "--key", file).error["code"] == "KEY_UNKNOWN"
    enrolled = made.json("key", "enroll", public, "--role", "train", "--owner", "second").result
    assert enrolled["roles"] == ["train"]
    assert made("note", "@0", "x", "--key", file).code == 0
    called = made.json("seal", "--key", file)
    assert (called.code, called.error["code"]) == (1, "ROLE_MISSING")


def test_key_new_never_overwrites(made, tmp_path):
    """A key file that exists stays as it is."""
    file = tmp_path / "key.pem"
    file.write_text("mine")
    assert made.json("key", "new", file).error["code"] == "KEY_FILE_EXISTS"
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("-----BEGIN PRIVATE KEY-----", "is a private key"),
        ("00ff", "does not hold 64 hex digits"),
        ("é" * 32, "does not hold 64 hex digits"),
    ],
    ids=["private", "short", "not ASCII"],
)
def test_enroll_refuses_a_file_without_a_public_key(made, tmp_path, content, says):
    """Only a public key is enrolled, and a private one handed over by mistake is said to be one."""
    (tmp_path / "file").write_text(content)
    called = made.json("key", "enroll", tmp_path / "file", "--role", "train", "--owner", "x")
    assert (called.code, called.error["code"]) == (2, "KEY_MALFORMED")
    assert says in called.error["message"]


def test_a_review_key_holds_no_other_role(made):
    """The rules refuse a reviewer who also trains, and nothing is recorded."""
    public = PrivateKey.from_seed(b"r" * 32).public.hex()
    before = made.json("log").result["size"]
    called = made.json(
        "key", "enroll", public, "--role", "review", "--role", "train", "--owner", "x"
    )
    assert (called.code, called.error["code"]) == (1, "REVIEW_KEY_SHARED")
    assert made.json("log").result["size"] == before


def test_revoked_key_no_longer_signs(made, tmp_path):
    """Revocation by a prefix of the key's id ends its window."""
    file = tmp_path / "second.pem"
    new = made.json("key", "new", file).result
    made("key", "enroll", f"{file}.pub", "--role", "train", "--owner", "second")
    revoked = made.json("key", "revoke", new["key"][8:16], "--reason", "left").result
    assert revoked["key"] == new["key"]
    assert made.json("note", "@0", "x", "--key", file).error["code"] == "KEY_OUT_OF_WINDOW"


@pytest.mark.parametrize("name", ["ed25519:", "abc", "ed25519:ffffffff"])
def test_revoke_needs_a_known_key(made, name):
    """A prefix that is too short or fits nothing revokes nothing."""
    assert made.json("key", "revoke", name, "--reason", "x").error["code"] == "KEY_UNKNOWN"


def test_rotated_root_is_found_and_the_old_one_is_done(made, tmp_path):
    """After a rotation the new root key enrols from its file in the user's folder; the old one cannot."""
    old = next(file for file in made.key_files() if file.name == "root.pem")
    rotated = made.json("key", "rotate-root").result
    assert rotated["file"].startswith(str(old.parent))
    public = PrivateKey.from_seed(b"t" * 32).public.hex()
    words = ("key", "enroll", public, "--role", "train", "--owner", "x")
    assert made.json(*words, "--root-key", old).error["code"] == "KEY_OUT_OF_WINDOW"
    assert made(*words).code == 0


def test_rotation_takes_a_key_that_was_made_before(made, tmp_path):
    """The new root may come from a key file made on another machine."""
    file = tmp_path / "next-root.pem"
    new = made.json("key", "new", file).result
    assert made.json("key", "rotate-root", "--new-key", file).result["new_key"] == new["key"]


def test_missing_root_key_is_named(made):
    """Without the root key nothing is enrolled, and the error says which option gives it."""
    next(file for file in made.key_files() if file.name == "root.pem").unlink()
    called = made.json("key", "enroll", "0" * 64, "--role", "train", "--owner", "x")
    assert (called.code, called.error["code"]) == (2, "KEY_MISSING")
    assert "--root-key" in called.error["hint"]


def test_policy_template_is_accepted_as_it_is(made, tmp_path):
    """The printed template is a valid policy, and its reals are recorded as strings."""
    template = made("policy", "declare", "--template").out
    (tmp_path / "policy.toml").write_text(template)
    result = made.json("policy", "declare", tmp_path / "policy.toml").result
    assert result["floors"]["power"] == "0.8"
    assert result["floors"]["seeds"] == 6
    with Ledger.read(made.ledger) as ledger:
        assert ledger.get(result["policy"]).body == result["floors"]


def test_policy_may_be_json(tmp_path):
    """The same floors in JSON give the same body."""
    toml, other = tmp_path / "p.toml", tmp_path / "p.json"
    toml.write_text(TEMPLATE)
    other.write_text(
        '{"seeds":6,"alpha":0.05,"power":"0.8","cases":32,"undecided_share":0.05,"reviewers":1,'
        '"reruns_updates_per_seed":3,"reruns_case_share":0.05,"minimum_gain":0.03,'
        '"judge_accuracy":0.8,"judge_family":"other"}'
    )
    assert read(other) == read(toml)


@pytest.mark.parametrize(
    ("text", "code", "field"),
    [
        (TEMPLATE.replace("seeds = 6", "seeds = 0"), "BODY_INVALID", "seeds"),
        (TEMPLATE.replace("seeds = 6", "seeds = true"), "BODY_INVALID", "seeds"),
        (TEMPLATE.replace("seeds = 6", "seeds = 6.0"), "BODY_INVALID", "seeds"),
        (TEMPLATE.replace("alpha = 0.05", "alpha = nan"), "NOT_A_REAL", None),
        (TEMPLATE + "extra = 1\n", "BODY_INVALID", "extra"),
        ("seeds = 6\n", "BODY_INVALID", "alpha"),
        ("no toml", "BODY_INVALID", None),
    ],
    ids=["too small", "boolean", "real", "nan", "unknown", "missing", "not TOML"],
)
def test_bad_policy_is_refused_by_field(made, tmp_path, text, code, field):
    """A floor that is missing, unknown or malformed is named, and nothing is recorded."""
    (tmp_path / "p.toml").write_text(text)
    called = made.json("policy", "declare", tmp_path / "p.toml")
    assert (called.code, called.error["code"], called.error.get("field")) == (1, code, field)


def test_policy_needs_a_file_that_is_there(made, tmp_path):
    """A missing file is an input error, no argument at all a usage error."""
    assert made.json("policy", "declare", tmp_path / "none.toml").error["code"] == "INPUT_MISSING"
    assert made.json("policy", "declare").error["code"] == "USAGE"
