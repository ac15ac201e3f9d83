"""What looks like a secret in a row: keys, tokens, card numbers. A finding says where, never what.

Patterns are those of the issuers' published prefixes and lengths, and of numbers that carry a check digit. They find
what has a form; a password in a sentence has none. What is found is flagged, not removed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

SCANNER = "secrets/1"
MAX_PER_FIELD = 8
MASKED_CHARS = 4

# Each pattern begins with letters or digits that a search finds fast, and has an upper bound, so that time stays linear.
_PATTERNS: dict[str, str] = {
    "private_key": r"-----BEGIN (?:[A-Z]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----",
    "aws_key": r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])",
    "github_token": r"(?<!\w)(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255})",
    "gitlab_token": r"(?<!\w)glpat-[A-Za-z0-9_-]{20,60}",
    "slack_token": r"(?<!\w)xox[abeprs]-[A-Za-z0-9-]{10,250}",
    "stripe_key": r"(?<!\w)[rs]k_(?:live|test)_[A-Za-z0-9]{16,200}",
    "google_key": r"(?<!\w)AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
    "model_api_key": r"(?<!\w)sk-[A-Za-z0-9_-]{20,250}",
    "hub_token": r"(?<!\w)(?:hf_[A-Za-z0-9]{30,60}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,250})",
    "json_web_token": r"(?<!\w)eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,1000}",
    "bearer_token": r"(?i:(?<!\w)bearer )[A-Za-z0-9._~+/-]{24,1000}",
    "password_in_url": r"(?<![a-z0-9])[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,64}:[^\s/@]{3,128}@",
    "card_number": r"(?<![\w-])[3-6]\d{3}(?:[ -]?\d{4}){2}[ -]?\d{1,7}(?![\w-])",
    "iban": r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)",
}  # fmt: skip
_ANY = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items()))
# one of these, or such a number, stands in every text that a pattern fits; most texts have none
_BEGINNINGS = (
    "-----BEGIN", "AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "k_live_",
    "k_test_", "AIza", "sk-", "hf_", "npm_", "pypi-", "eyJ", "earer ", "EARER ", "://",
)  # fmt: skip
_NUMBER = re.compile(r"\d{4}[ -]?\d{4}|[A-Z]{2}\d\d")
_SHORTEST = 13
KINDS = tuple(_PATTERNS)


@dataclass(frozen=True)
class Finding:
    """Where something looks like a secret: of what kind, in which row and field, and how it begins."""

    kind: str
    row: str
    field: str
    masked: str

    def as_json(self) -> dict[str, str]:
        """The finding as one line of its blob."""
        return dict(vars(self))


def scan(rows: Iterable[Mapping[str, Any]], digests: Iterable[str]) -> list[Finding]:
    """Everything in rows that looks like a secret, in the order of the rows and their fields.

    Args:
        rows: the accepted rows.
        digests: what names each of them.
    """
    return [
        Finding(kind, digest, field, masked)
        for row, digest in zip(rows, digests, strict=True)
        for field, text in _suspects(row)
        for kind, masked in _in_text(text)
    ]


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """How many of each kind, by name."""
    return dict(sorted(Counter(finding.kind for finding in findings).items()))


def _suspects(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The path and text of each text in a row that may hold a secret."""
    found: list[tuple[str, str]] = []
    _collect(row, "", found)
    return found


def _collect(value: Any, path: str, found: list[tuple[str, str]]) -> None:
    if isinstance(value, str):
        if len(value) >= _SHORTEST and _is_suspect(value):
            found.append((path, value))
    elif isinstance(value, dict):
        for name in sorted(value):
            inner = f"{path}.{_shown(name)}" if path else _shown(name)
            _collect(value[name], inner, found)
            if len(name) >= _SHORTEST and _is_suspect(name):
                found.append((f"{path}.(name)" if path else "(name)", name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _collect(item, f"{path}[{index}]", found)


def _is_suspect(text: str) -> bool:
    return any(sign in text for sign in _BEGINNINGS) or _NUMBER.search(text) is not None


def _shown(name: str) -> str:
    """A field's name for a path; a long one may be a secret itself."""
    return name if len(name) <= 24 else f"{name[:8]}…"


def _in_text(text: str) -> Iterator[tuple[str, str]]:
    found = 0
    for match in _ANY.finditer(text):
        kind, value = str(match.lastgroup), match.group()
        if kind == "card_number" and not is_card_number(value):
            continue
        if kind == "iban" and not is_iban(value):
            continue
        yield kind, _masked(kind, value)
        found += 1
        if found == MAX_PER_FIELD:
            return


def _masked(kind: str, value: str) -> str:
    """How long it is and, where the beginning is no part of the secret, how it begins."""
    if kind in ("card_number", "iban", "password_in_url", "bearer_token"):
        return f"… ({len(value)} characters)"
    return f"{value[:MASKED_CHARS]}… ({len(value)} characters)"


def is_card_number(text: str) -> bool:
    """Whether digits, perhaps with spaces or dashes, are a payment card's number by length and check digit (Luhn)."""
    digits = [int(sign) for sign in text if sign.isascii() and sign.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) < 2:
        return False
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def is_iban(text: str) -> bool:
    """Whether a text is an account number by its check digits (ISO 13616, modulo 97)."""
    plain = text.replace(" ", "")
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1
