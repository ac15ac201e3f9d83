"""What looks like a secret: found by its form, never repeated."""

from __future__ import annotations

import json
import random
import string

import pytest
from desk_world import chat_row
from hypothesis import given
from hypothesis import strategies as st

from verifiers.data.identity import row_digest
from verifiers.data.secrets import KINDS, counts, is_card_number, is_iban, scan

MIXED = string.ascii_letters + string.digits
SOURCE = random.Random(3)


def some(count, signs=MIXED):
    """Signs at random, from a fixed seed."""
    return "".join(SOURCE.choices(signs, k=count))


SECRETS = [
    ("private_key", "-----BEGIN RSA PRIVATE KEY-----"),
    ("private_key", "-----BEGIN PRIVATE KEY-----"),
    ("private_key", "-----BEGIN OPENSSH PRIVATE KEY-----"),
    ("private_key", "-----BEGIN PGP PRIVATE KEY BLOCK-----"),
    ("aws_key", "AKIA" + some(16, string.ascii_uppercase)),
    ("github_token", "ghp_" + some(36)),
    ("github_token", "github_pat_" + some(82)),
    ("gitlab_token", "glpat-" + some(20)),
    ("slack_token", "xoxb-" + some(30)),
    ("stripe_key", "sk_live_" + some(24)),
    ("google_key", "AIza" + some(35)),
    ("model_api_key", "sk-" + some(48)),
    ("model_api_key", "sk-proj-" + some(60)),
    ("hub_token", "hf_" + some(34)),
    ("hub_token", "pypi-" + some(120)),
    ("json_web_token", f"eyJ{some(30)}.eyJ{some(60)}.{some(40)}"),
    ("bearer_token", "Authorization: Bearer " + some(32)),
    ("password_in_url", "postgres://shop:hunter22@db.example:5432/orders"),
    ("card_number", "4111 1111 1111 1111"),
    ("card_number", "5555-5555-5555-4444"),
    ("card_number", "378282246310005"),
    ("iban", "DE89 3704 0044 0532 0130 00"),
    ("iban", "GB82WEST12345698765432"),
]
HARMLESS = [
    "My order is #W2378156 of 4111111111111112, please.",
    "call 1234 5678 1234 5678 or 0000 0000 0000 0000",
    "reservation ABCD12, flight HAT1234, user mia_li_3668",
    "gift_card_1234567 and credit_card_9513926",
    "sk-learn is a library, https://example.com:8080/a@b",
    "The bearer of this letter may enter.",
    "sha256:" + "ab" * 32,
    "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "2026-11-30T17:41:36.000Z 12345678901234567890123",
]


def found_in(text):
    """Findings in a row that holds a text."""
    row = chat_row("r", f"Please look: {text} Thanks.")
    return scan([row], [row_digest(row)])


@pytest.mark.parametrize(
    ("kind", "secret"), SECRETS, ids=[f"{n}-{k}" for n, (k, _) in enumerate(SECRETS)]
)
def test_a_secret_is_flagged_and_not_repeated(kind, secret):
    """Kind, row and field are named; of the secret itself at most four signs and its length."""
    (finding,) = found_in(secret)
    assert (finding.kind, finding.field) == (kind, "messages[1].content")
    assert finding.row == row_digest(chat_row("r", f"Please look: {secret} Thanks."))
    said = json.dumps(finding.as_json(), ensure_ascii=False)
    assert secret[5:] not in said
    assert len(finding.masked.split("\u2026")[0]) <= 4


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_long_is_no_secret(text):
    """Order numbers, wrong check digits, digests and dates are not flagged."""
    assert found_in(text) == []


def test_every_kind_is_shown():
    """Each kind has an example above."""
    assert {kind for kind, _ in SECRETS} == set(KINDS)


def test_secrets_are_found_wherever_they_stand():
    """In a turn, a tool call's arguments, metadata, a list, and in a field's name, which is not repeated either."""
    token = "ghp_" + some(36)
    row = {
        "messages": [{"role": "user", "content": "x", "tool_calls": [{"function": {"arguments": {"key": token}}}]}],
        "metadata": {token: 1, "list": ["x", token]},
    }  # fmt: skip
    findings = scan([row], ["sha256:row"])
    assert [item.field for item in findings] == [
        "messages[0].tool_calls[0].function.arguments.key",
        "metadata.(name)",
        "metadata.list[1]",
    ]
    assert counts(findings) == {"github_token": 3}
    assert all(token not in json.dumps(item.as_json()) for item in findings)


@given(st.text(st.sampled_from("0123456789-_ .:/@aeBEGINsk"), max_size=400))
def test_any_text_is_scanned(text):
    """A scan of any text ends, and what it masks is never the whole."""
    for finding in found_in(text):
        assert finding.kind in KINDS
        assert finding.masked.endswith("characters)")


@pytest.mark.parametrize(
    "text", ["4" * 100_000, "ab:" * 50_000, "a://" + "b" * 100_000, "eyJ" * 40_000]
)
def test_hostile_texts_cost_no_more_than_their_length(text):
    """Texts made to send a pattern back and forth are scanned like any other."""
    assert found_in(text) == []


def test_check_digits():
    """A changed digit makes a card's and an account's number another."""
    assert is_card_number("4111111111111111")
    assert not is_card_number("4111111111111112")
    assert is_iban("DE89370400440532013000")
    assert not is_iban("DE88370400440532013000")
