"""The specification's pages agree with the code: sections, rules, steps, kinds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ledger.checks import CHECKS
from ledger.records import KINDS
from ledger.rules import RULES
from verifiers.steps import _CODES_OF_STEP, STEPS

ROOT = Path(__file__).resolve().parents[1]
SPEC = ROOT / "docs/spec"
SECTION = re.compile(r"^## (\d+)\. (.+)$", re.MULTILINE)
CITED = re.compile(r"spec: ledger\.md, sections? (\d+)(?: (and|to) (\d+))?")
RULE = re.compile(r"^\| ([A-Z]\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def page(name: str) -> str:
    """A page of the specification."""
    return (SPEC / name).read_text(encoding="utf-8")


def sources() -> list[Path]:
    """Every source file of the core."""
    return sorted((ROOT / "ledger").rglob("*.py"))


def test_sections_are_numbered_one_to_ten():
    """The format's page has ten sections in order."""
    assert [int(number) for number, _ in SECTION.findall(page("ledger.md"))] == list(range(1, 11))


SUBJECTS = {
    "canonical.py": [2],
    "digests.py": [3],
    "record.py": [1, 2, 3, 4],
    "base.py": [1, 4],
    "ed25519.py": [5],
    "statements.py": [6],
    "merkle.py": [8],
    "notes.py": [8],
    "seals.py": [8],
    "proofs.py": [8],
    "highwater.py": [8],
    "sqlite.py": [9],
    "index.py": [9],
    "blobs.py": [10],
    "book.py": [7, 8, 9, 10],
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_module_cites_the_section_that_it_implements(name):
    """Each module of the core names the sections that the page gives to its subject."""
    (path,) = [item for item in sources() if item.name == name]
    first, word, last = CITED.search(path.read_text(encoding="utf-8")).groups()
    cited = [int(first)] if last is None else [int(first), int(last)]
    if word == "to":
        cited = list(range(cited[0], cited[1] + 1))
    assert cited == SUBJECTS[name]


def test_rules_on_the_page_are_the_checks_of_the_code():
    """Each numbered rule stands on the page in the words of the check's own docstring."""
    in_code: dict[str, set[str]] = {}
    for checks in CHECKS.values():
        for check in checks:
            if check.__doc__:
                number, sentence = check.__doc__.split(": ", 1)
                in_code.setdefault(number, set()).add(sentence.strip().split("\n")[0].rstrip("."))
    on_page: dict[str, set[str]] = {}
    for number, sentence, _ in RULE.findall(page("rules.md")):
        on_page.setdefault(number, set()).add(sentence)
    assert on_page == in_code


def test_codes_of_the_rules_page_are_those_that_the_checks_give():
    """The codes in the last column are exactly the codes that the family's module raises."""
    on_page = {
        code
        for _, _, codes in RULE.findall(page("rules.md"))
        for code in re.findall(r"`(\w+)`", codes)
    }
    text = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "ledger/checks").glob("*.py")
    )
    raised = set(re.findall(r'"([A-Z][A-Z_]+[A-Z])",?', text)) - {"REF_NOT_FOUND", "CHECKS"}
    assert raised <= on_page
    assert on_page - raised <= {"WEAK_KEY", "KEY_MALFORMED", "NOT_A_REAL"}


def test_every_kind_stands_on_the_rules_page():
    """The page's table of kinds has a row for each kind, with its roles and refs."""
    text = page("rules.md")
    assert set(RULES) == set(KINDS)
    for kind, rule in RULES.items():
        rows = [line for line in text.split("\n") if line.startswith(f"| `{kind}` |")]
        assert len(rows) == 1, kind
        for role in rule.refs:
            assert f"`{role}`" in rows[0], (kind, role)
        for role in rule.roles:
            assert role in rows[0], (kind, role)
        assert ("*st*" in rows[0]) == (rule.statement is not None), kind


def test_every_step_stands_on_the_verification_page():
    """The page describes V1 to V20 in order, each with the codes it can give."""
    text = page("verification.md")
    assert re.findall(r"^\| (V\d+) \|", text, re.MULTILINE) == list(STEPS)
    for step, codes in _CODES_OF_STEP.items():
        (row,) = [line for line in text.split("\n") if line.startswith(f"| {step} |")]
        for code in codes:
            assert f"`{code}`" in row, (step, code)


PAGES = sorted(
    path
    for pattern in ("README.md", "docs/[!l]*.md", "docs/spec/*.md", "docs/decisions/*.md")
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_page_is_of_a_readable_length_and_its_links_lead_somewhere(path):
    """No page is longer than 300 lines, and each relative link names a file that exists."""
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 300
    for target in re.findall(r"\]\(([^)#:]+)[^):]*\)", text):
        assert (path.parent / target).exists(), target


def test_decisions_say_context_decision_rejected_and_consequences():
    """Each decision has the same four headings and is numbered without a gap."""
    decisions = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    assert [int(path.name[:4]) for path in decisions] == list(range(1, len(decisions) + 1))
    for path in decisions:
        headings = re.findall(r"^## (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert headings == ["Context", "Decision", "Rejected", "Consequences"], path.name
