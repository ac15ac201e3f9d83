"""`evidence reward audit`: recorded either way, refused as an answer where a wrong reply earns as much."""

from __future__ import annotations

import pytest

from ledger.book import Ledger
from ledger.ed25519 import PrivateKey
from runners.prepare.data import put_lines
from runners.prepare.rewards import PAIRS_OF
from verifiers.rewards.suite import Pair

WRONG_SIGN = """
from verifiers.rewards.support import reward as ours
def reward(scenario, reply):
    return -ours(scenario, reply)[0]
"""


def test_our_reward_passes_its_audit_and_the_audit_is_derived_again(made):
    """The audit of the support reward finds no inversion, and a verifier gets the same from the recorded pairs."""
    result = made.json("reward", "audit", "support").result
    assert (result["name"], result["reward_version"], result["inversions"]) == ("support", 3, 0)
    assert result["pairs"] > 50
    verified = made.json("verify", "--level", "blobs").result
    assert verified["verdict"] == "verified"
    assert verified["replayed"]["reward.audited"] == 1


@pytest.mark.parametrize("name", ["desk", "desk_episode"])
def test_the_desk_rewards_pass_their_audits(made, name):
    """Each has pairs of its own, orders every one rightly, and a verifier gets the same from the recorded pairs."""
    result = made.json("reward", "audit", name).result
    assert (result["name"], result["reward_version"], result["inversions"]) == (name, 1, 0)
    assert result["pairs"] > 50
    report = made.json("verify", "--level", "blobs").result
    assert (report["verdict"], report["replayed"]["reward.audited"]) == ("verified", 1)


DESK_WRONG_SIGN = """
from verifiers.rewards.episodes import REWARDS, spoken
def reward(case, reply):
    return 1 - spoken(REWARDS["desk", 1], case, [reply])
"""


def test_a_desk_reward_with_the_wrong_sign_fails_its_audit(made, tmp_path):
    """A reward of one's own for desk cases is put to the desk's pairs by name, and turned round it inverts all."""
    (tmp_path / "turned.py").write_text(DESK_WRONG_SIGN, encoding="utf-8")
    called = made.json("reward", "audit", tmp_path / "turned.py", "--pairs", PAIRS_OF["desk"])
    assert called.error["code"] == "REWARD_INVERTED"
    assert called.result["inversions"] == called.result["pairs"] > 50


def test_a_reward_with_the_wrong_sign_fails_its_audit(made, tmp_path):
    """The audit is recorded with what it found, the exit status is 1, and the worst pairs are shown."""
    (tmp_path / "signed.py").write_text(WRONG_SIGN, encoding="utf-8")
    called = made.json("reward", "audit", tmp_path / "signed.py")
    assert (called.code, called.error["code"]) == (1, "REWARD_INVERTED")
    assert called.result["inversions"] == called.result["pairs"]
    report = made.json("verify", "--level", "blobs").result
    assert report["verdict"] == "verified"
    assert any("not the project's own" in text for text in report["on_faith"])
    assert "late-return" in made("reward", "audit", tmp_path / "signed.py").out


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("def reward(scenario, reply):\n    return 1 / 0\n", "ZeroDivisionError"),
        ("raise SystemError('at once')\n", "at once"),
        ("def score(scenario, reply):\n    return 1\n", "defines no reward"),
        ("this is no Python\n", "SyntaxError"),
    ],
)
def test_a_reward_that_cannot_be_asked_is_one_clear_error(made, tmp_path, code, says):
    """A file that raises, is no Python or defines no reward is named, and nothing is recorded."""
    (tmp_path / "mine.py").write_text(code, encoding="utf-8")
    called = made.json("reward", "audit", tmp_path / "mine.py")
    assert called.error["code"] == "REWARD_FAILED"
    assert says in called.error["message"]
    with Ledger.read(made.ledger) as ledger:
        assert ledger.of_kind("reward.audited") == []


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (b"", "CASE_BROKEN"),
        (b"[]\n", "CASE_BROKEN"),
        (b"{\n", "NOT_CANONICAL"),
        (b"{}\n", "CASE_BROKEN"),
    ],
)
def test_pairs_that_are_none_are_one_clear_error(made, tmp_path, lines, code):
    """An empty suite, a line that is no pair and a line that is no JSON are refused."""
    (tmp_path / "pairs.jsonl").write_bytes(lines)
    called = made.json("reward", "audit", "support", "--pairs", tmp_path / "pairs.jsonl")
    assert (called.code, called.error["code"]) == (1, code)


def test_a_reward_that_is_not_there_is_named(made):
    """A name that is neither ours nor a file is refused with what is missing."""
    assert made.json("reward", "audit", "suport").error["code"] == "INPUT_MISSING"


def test_other_code_under_our_rewards_name_is_on_faith(made):
    """An audit whose code is not the one that a verifier has is not called derived, whatever its name."""
    made.json("reward", "audit", "support")
    (writer,) = [path for path in made.key_files() if "root" not in path.name]
    with Ledger.open(made.ledger, key=PrivateKey.load(writer)) as ledger:
        honest = ledger.of_kind("reward.audited")[0].body
        code = ledger.blobs.put(b"def reward(scenario, reply): return 1.0", "text/plain")
        ledger.append("reward.audited", {**honest, "code": code.model_dump()}, {})
    report = made.json("verify", "--level", "blobs").result
    assert report["on_faith"]["what a reward that is not the project's own gives"] == 1


def test_an_audit_that_was_made_up_is_found_out(made):
    """An audit that hides an inversion of our own reward, or counts its pairs wrongly, is wrong at level blobs."""
    made.json("reward", "audit", "support")
    pair = Pair(
        "hidden", "turned round",
        {"id": "s", "family": "f", "opening": "Refund the kettle, please.", "policy_facts": [], "context": "",
         "turns": [], "expected": {"decision": "refuse"}, "must_avoid": []},
        right="I have refunded the kettle.", wrong="I can't refund the kettle.",
    )  # fmt: skip
    (writer,) = [path for path in made.key_files() if "root" not in path.name]
    with Ledger.open(made.ledger, key=PrivateKey.load(writer)) as ledger:
        honest = ledger.of_kind("reward.audited")[0].body
        suite = put_lines(ledger, [vars(pair)]).model_dump()
        for change in ({"suite": suite, "pairs": 1}, {"pairs": honest["pairs"] + 1}):
            ledger.append("reward.audited", {**honest, **change}, {})
    found = made.json("verify", "--level", "blobs").result["findings"]
    assert [(item["code"], item["step"]) for item in found] == [("REWARD_WRONG", "V17")] * 2
