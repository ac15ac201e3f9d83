"""Separation of offices at the command line: what `evidence key` refuses, by which code, with nothing recorded."""

from __future__ import annotations

import pytest

from ledger.ed25519 import PrivateKey
from runners.cli.boundary import REFUSED

SEED = b"s" * 32
P = 2**255 - 19


@pytest.fixture
def staffed(made, tmp_path):
    """A ledger with a reviewer and a trainer whose key was revoked; their key files lie beside it."""
    for name, role in (("reviewer", "review"), ("leaver", "train")):
        made.json("key", "new", tmp_path / f"{name}.pem")
        public = tmp_path / f"{name}.pem.pub"
        assert made("key", "enroll", public, "--role", role, "--owner", name).code == 0
    leaver = PrivateKey.load(tmp_path / "leaver.pem").id
    assert made("key", "revoke", leaver, "--reason", "left").code == 0
    return made


def size(cli) -> int:
    """How many records the ledger has."""
    return cli.json("log", "--limit", "1").result["size"]


def public_of(cli, owner: str) -> str:
    """The public key of an owner's newest key."""
    keys = cli.json("key", "list").result["keys"]
    return next(item["public_key"] for item in reversed(keys) if item["owner"] == owner)


ENROLMENTS = {
    "a reviewer who trains": (None, ("review", "train"), "REVIEW_KEY_SHARED"),
    "a reviewer who promotes": (None, ("review", "promote"), "REVIEW_KEY_SHARED"),
    "an auditor who judges": (None, ("audit", "judge"), "AUDIT_KEY_SHARED"),
    "a role twice": (None, ("seal", "seal"), "KEY_ROLES"),
    "the reviewer's key to train": ("reviewer", ("train",), "KEY_TWICE"),
    "the writer's key to review": ("writer", ("review",), "KEY_TWICE"),
    "the root key to review": ("root", ("review",), "KEY_TWICE"),
    "a revoked trainer to review": ("leaver", ("review",), "KEY_TWICE"),
    "a revoked trainer to train": ("leaver", ("train",), "KEY_TWICE"),
    "a point of order two": ("ec" + "ff" * 30 + "7f", ("review",), "WEAK_KEY"),
    "another encoding": ((P + 3).to_bytes(32, "little").hex(), ("review",), "KEY_MALFORMED"),
    "no point": ("02" + "00" * 31, ("review",), "KEY_MALFORMED"),
}


@pytest.mark.parametrize("name", ENROLMENTS)
def test_enrolment_refuses(staffed, name):
    """Each enrolment that would mix offices, or of a key that anybody holds, is refused and not recorded."""
    whose, roles, code = ENROLMENTS[name]
    public = PrivateKey.from_seed(SEED).public.hex() if whose is None else whose
    public = public if len(public) == 64 else public_of(staffed, public)
    before = size(staffed)
    words = [word for role in roles for word in ("--role", role)]
    called = staffed.json("key", "enroll", public, *words, "--owner", "x")
    assert called.error["code"] == code
    assert size(staffed) == before


def test_root_is_no_role_at_the_command_line(staffed):
    """Nobody is enrolled as root: the option does not offer it."""
    public = PrivateKey.from_seed(SEED).public.hex()
    called = staffed.json("key", "enroll", public, "--role", "root", "--owner", "x")
    assert (called.code, called.error["code"]) == (2, "USAGE")


@pytest.mark.parametrize("name", ["reviewer", "leaver"])
def test_root_is_not_handed_to_a_key_with_an_office(staffed, tmp_path, name):
    """An enrolled or a revoked key does not become root."""
    before = size(staffed)
    called = staffed.json("key", "rotate-root", "--new-key", tmp_path / f"{name}.pem")
    assert (called.code, called.error["code"]) == (REFUSED, "KEY_TWICE")
    assert size(staffed) == before


def test_root_is_not_handed_to_itself(staffed):
    """The root key is not its own successor, before a rotation and after one."""
    root = next(file for file in staffed.key_files() if file.name == "root.pem")
    assert staffed.json("key", "rotate-root", "--new-key", root).error["code"] == "KEY_TWICE"
    assert staffed("key", "rotate-root").code == 0
    assert staffed.json("key", "rotate-root", "--new-key", root).error["code"] == "KEY_TWICE"


def test_only_the_root_key_s_file_does_root_s_work(staffed, tmp_path):
    """A reviewer's or a stranger's file given as the root key neither enrols, revokes nor rotates."""
    staffed.json("key", "new", tmp_path / "stranger.pem")
    public = PrivateKey.from_seed(SEED).public.hex()
    before = size(staffed)
    for file, codes in (
        ("reviewer.pem", {"STATEMENT_ROLE", "ROOT_WRONG"}),
        ("leaver.pem", {"KEY_OUT_OF_WINDOW"}),
        ("stranger.pem", {"KEY_UNKNOWN"}),
    ):
        given = ("--root-key", tmp_path / file)
        for words in (
            ("key", "enroll", public, "--role", "train", "--owner", "x"),
            ("key", "revoke", PrivateKey.load(tmp_path / "reviewer.pem").id, "--reason", "x"),
            ("key", "rotate-root", "--new-key", tmp_path / "next.pem"),
        ):
            assert staffed.json(*words, *given).error["code"] in codes
    assert size(staffed) == before


def test_the_root_key_is_not_revoked(staffed):
    """Root is rotated; a revocation of it is refused."""
    root = staffed.json("key", "list").result["root_key"]
    assert staffed.json("key", "revoke", root, "--reason", "x").error["code"] == "KEY_ROLES"


def test_a_second_revocation_only_reaches_further_back(staffed, tmp_path):
    """A key that was revoked is not revoked again from now; from an earlier seq it is, once."""
    words = ("key", "revoke", PrivateKey.load(tmp_path / "leaver.pem").id, "--reason", "x")
    assert staffed.json(*words).error["code"] == "KEY_UNKNOWN"
    assert staffed(*words, "--from-seq", 0).code == 0
    assert staffed.json(*words, "--from-seq", 0).error["code"] == "KEY_UNKNOWN"


def test_a_chain_of_rotations_is_found_and_pinned(staffed):
    """Three rotations later the newest root's file is found by itself, and a pin of the first still holds."""
    first = staffed.json("key", "list").result["root_key"]
    for _ in range(3):
        staffed.json("key", "rotate-root")
    public = PrivateKey.from_seed(SEED).public.hex()
    assert staffed("key", "enroll", public, "--role", "train", "--owner", "x").code == 0
    report = staffed.json("verify", "--root", first).result
    assert (report["verdict"], report["trust"]) == ("verified", "pinned")
    assert [item["code"] for item in report["warnings"]] == ["ROOT_ROTATED"]
