"""The dossier: its figures are the ledger's, its bytes are always the same, and no stranger's text becomes markup."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import click
import pytest
from dossier_reader import read_page
from study_data import Answers, failing
from study_world import StudyWorld

from ledger.book import Ledger
from ledger.canonical import real
from runners.assess.account import account_of
from runners.assess.dossier.markup import Markup, plain, resolve, shown, tag, text
from runners.assess.dossier.page import Picture, build
from runners.assess.sentences import tell
from runners.cli.dossier import _picture
from runners.cli.main import root
from verifiers.judgement.statistics import mcnemar, paired_table, sign_flip

ATTACK = "</td></svg></style>]]>--><script>alert(1)</script><img src=//x.test onerror=alert(1)>\" ' & {}\x1b[2J\u202e"
TAGS = {
    "html", "head", "meta", "title", "style", "body", "main", "section", "h1", "h2", "p", "strong", "div", "ul", "li",
    "code", "span", "table", "caption", "thead", "tbody", "tr", "th", "td", "data", "figure",
    "svg", "rect", "line", "circle", "polyline", "text", "g",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "id", "class", "role", "scope", "title", "value", "tabindex",
    "aria-label", "aria-labelledby", "data-label", "data-figure", "viewbox", "xmlns", "width", "height", "rx",
    "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "points",
}  # fmt: skip
LOST = Answers(frozenset({25}), forbidden=frozenset({13}), cut=frozenset({14}))


def pages(made: StudyWorld, folder, kind: str) -> tuple[dict[str, Any], str]:
    """The account of the newest record of a kind, and its page."""
    made.world.replay(folder).close()
    with Ledger.read(folder) as ledger:
        account = account_of(ledger, ledger.of_kind(kind)[-1])
        picture = _picture(ledger, ledger.get(account["about"]["checkpoint"]))
    return account, build(account, picture)


@pytest.fixture(scope="module")
def granted(tmp_path_factory) -> tuple[StudyWorld, dict[str, Any], str]:
    """A granted promotion."""
    made = StudyWorld()
    made.granted()
    return made, *pages(made, tmp_path_factory.mktemp("granted") / "ledger", "promotion.granted")


@pytest.fixture(scope="module")
def failed(tmp_path_factory) -> tuple[StudyWorld, dict[str, Any], str]:
    """A gate that failed on one family, one violation and one truncation."""
    made = StudyWorld(baseline_answers=failing(3), tested_answers=LOST)
    made.gate(made.here())
    return made, *pages(made, tmp_path_factory.mktemp("failed") / "ledger", "gate.decided")


@pytest.fixture(params=["granted", "failed"])
def both(request) -> tuple[StudyWorld, dict[str, Any], str]:
    """Each of the two."""
    return request.getfixturevalue(request.param)


def test_every_figure_is_the_accounts(both) -> None:
    """Each figure on the page is the account's value at the place it names, in full and as it is printed."""
    _, account, page = both
    figures = read_page(page).figures
    assert len(figures) > 200
    for item in figures:
        value = resolve(account, item.pointer)
        assert item.value == (plain(value) if value else item.value)
        assert item.shown in {shown(value), str(value).rpartition(":")[2][:12]}


def test_the_accounts_gate_is_the_ledgers(both) -> None:
    """The lines, derived again, are those on record, and the verdict says whether they all passed."""
    made, account, _ = both
    recorded = made.world.newest("gate.decided").body
    names = ("name", "value", "threshold", "passed", "code")
    assert [{name: line[name] for name in names} for line in account["gate"]["lines"]] == recorded[
        "gates"
    ]
    assert account["gate"]["passed"] == recorded["passed"]
    assert account["gate"]["differs"] == []
    assert account["verdict"] == ("granted" if recorded["passed"] else "failed")


def test_the_accounts_figures_are_those_of_the_outcomes(both) -> None:
    """Gains, p, interval and McNemar come out the same when they are counted from the evaluations' own lines."""
    made, account, _ = both
    view = made.here()
    baseline, *others = [
        {line["case"]: line["success"] for line in view.lines(item.body["outcomes"])}
        for item in made.evaluations
    ]
    deltas, pooled = [], ([], [])
    for seed, lines in zip(account["figures"]["seeds"], others, strict=True):
        delta = sum(lines.values()) - sum(baseline.values())
        deltas.append(delta)
        assert seed["gain"] == delta / len(baseline)
        assert seed["candidate_only"] - seed["baseline_only"] == delta
        for case, right in baseline.items():
            pooled[0].append(right)
            pooled[1].append(lines[case])
    overall = account["figures"]["overall"]
    lines = {line["name"]: line["value"] for line in account["gate"]["lines"]}
    assert overall["p"] == sign_flip(deltas)
    assert real(overall["lower"]) == lines["interval"]
    assert real(overall["mean_gain"]) == lines["gain"]
    assert account["figures"]["rivals"]["mcnemar_p"] == mcnemar(paired_table(*pooled))


def test_no_figure_stands_outside_a_figure(both) -> None:
    """A digit in the page's words is either in a figure, or in a sentence of the account that the page repeats."""
    _, account, page = both
    told = json.dumps(account)
    for part in read_page(page).loose:
        for number in re.findall(r"\d+(?:\.\d+)?", part):
            assert number in told, part


def test_every_part_names_commands_that_exist(both) -> None:
    """Each section that holds a figure names at least one command, and every command is one of the program's."""
    _, account, page = both
    found = read_page(page)
    assert {item.section for item in found.figures} <= found.commands.keys()
    shown_there = {command for commands in found.commands.values() for command in commands}
    for command in {*shown_there, *(item.command for item in tell(account))}:
        words = command.split()
        assert words[0] == "evidence"
        group: click.Command | None = root
        context = click.Context(root)
        for word in words[1:]:
            if not isinstance(group, click.Group):
                break
            group = group.get_command(context, word)
            assert group is not None, command


def test_the_same_ledger_gives_the_same_bytes(granted, tmp_path) -> None:
    """A second copy of the ledger gives the page again, to the byte."""
    made, _, page = granted
    assert pages(made, tmp_path / "ledger", "promotion.granted")[1] == page


def check_harmless(page: str) -> None:
    """Nothing on the page runs, fetches or leads away."""
    found = read_page(page)
    assert found.tags <= TAGS, found.tags - TAGS
    assert found.attributes <= ATTRIBUTES, found.attributes - ATTRIBUTES
    assert found.addresses == []
    assert page.count("<style>") == 1
    assert "url(" not in page.partition("</style>")[0]
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_the_page_runs_and_fetches_nothing(both) -> None:
    """There is no script, no address and no handler on it, and its policy forbids every request."""
    page = both[2]
    check_harmless(page)
    assert "default-src &#x27;none&#x27;" in page


def spoiled(value: Any, spoil: Callable[[str], str], keep: tuple[str, ...]) -> Any:
    """A value with every string in it replaced, those under kept names aside."""
    if isinstance(value, dict):
        return {
            key: item if key in keep else spoiled(item, spoil, keep) for key, item in value.items()
        }
    if isinstance(value, list):
        return [spoiled(item, spoil, keep) for item in value]
    return spoil(value) if isinstance(value, str) else value


def test_no_text_of_the_account_becomes_markup(both) -> None:
    """With markup in every string of the account the page has the same elements, and shows the markup as text."""
    _, account, page = both
    hostile = spoiled(account, lambda _: ATTACK, ("verdict",))
    hostile["commands"] = dict.fromkeys(account["commands"], ATTACK)
    attacked = build(hostile, Picture("", ""))
    check_harmless(attacked)
    assert "<script>alert(1)</script>" in read_page(attacked).text
    assert read_page(attacked).tags <= read_page(page).tags


def test_hostile_words_on_record_stay_words(tmp_path) -> None:
    """Markup as a reviewer's reason, a scope, a test's name, a source's name and a promoter's reason is text on the page."""
    made = StudyWorld()
    made.world.add("note.added", text=ATTACK[:90])
    gate = made.gate(made.here())
    words = ATTACK.replace("\x1b", "").replace("\u202e", "")
    (approval,) = made.approve(gate)
    reviewer = approval.body["reviewer"]
    refs = {"gate": gate.id, "checkpoint": made.nomination.body["chosen"]}
    second = made.admit(
        "promotion.approved", {"reviewer": reviewer, "why": words}, refs, stater="reviewer"
    )
    made.grant(gate, [approval], scope=words)
    account, page = pages(made, tmp_path / "ledger", "promotion.granted")
    assert account["promotion"]["scope"] == words
    assert second.id in {item["approval"] for item in account["approvals"]}
    check_harmless(page)
    assert words in read_page(page).text


def test_escaping_is_what_keeps_it_out(monkeypatch, failed) -> None:
    """A page made without the escaping is caught by these very checks."""
    account = spoiled(failed[1], lambda _: ATTACK, ("verdict",))
    monkeypatch.setattr("runners.assess.dossier.markup.escape", lambda value, quote: value)
    monkeypatch.setattr("runners.assess.dossier.markup.clean", lambda value: value)
    with pytest.raises(AssertionError):
        check_harmless(build(account, Picture("", "")))


@pytest.mark.parametrize(
    ("value", "markup"),
    [
        ("<b>", "&lt;b&gt;"),
        ('a"b', "a&quot;b"),
        ("a'b", "a&#x27;b"),
        ("&lt;", "&amp;lt;"),
        ("\x00\u202e", "\\x00\\u202e"),
        (Markup("<b>"), "<b>"),
    ],
)
def test_text_is_escaped_and_markup_is_not(value, markup) -> None:
    """Only what this package made is markup; everything else is text, in elements and in attributes."""
    assert text(value) == markup
    if not isinstance(value, Markup):
        assert tag("p", value, title=value) == f'<p title="{markup}">{markup}</p>'


def test_tables_have_headings_and_drawings_have_words(both) -> None:
    """Every table has a caption, column and row headings with their scope; every drawing says what it shows."""
    page = both[2]
    tables = page.count("<table")
    assert page.count("<caption>") == tables == page.count("<thead ")
    assert page.count('scope="col"') >= 2 * tables
    assert page.count('scope="row"') == page.count('role="rowheader"') >= tables
    for drawing in re.findall(r"<svg[^>]*class=.plot.[^>]*>", page):
        assert 'role="img"' in drawing
        assert "aria-label=" in drawing
    assert 'lang="en"' in page
