"""The sections of the page, each an account's part with the commands that derive it again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runners.assess.dossier import plots
from runners.assess.dossier.figures import Page, table
from runners.assess.dossier.markup import Markup, join, tag
from runners.assess.words import LINES, RIVALS

Item = dict[str, Any]


def section(name: str, title: str, *parts: object, long: bool = False) -> Markup:
    """A section with its heading."""
    return tag(
        "section",
        tag("h2", title, id=name),
        *parts,
        aria_labelledby=name,
        class_="long" if long else None,
    )


def about(page: Page) -> Markup:
    """What the page is about, and the head of the ledger that it was made at."""
    names = ("checkpoint", "tree", "gate", "study", "nomination", "policy", "head")
    rows: list[tuple[object, ...]] = [
        (name, page.digits(f"/about/{name}")) for name in names if page.at(f"/about/{name}")
    ]
    rows += [
        ("ledger", page.figure("/about/origin")),
        ("records", page.figure("/about/records")),
        ("newest record", page.figure("/about/newest_record_time")),
    ]
    found = table("What this page is about", ("what", "which"), rows)
    return section("about", "About", found, page.again("account", "head"))


def gate(page: Page) -> Markup:
    """The gate's lines, each with number, threshold and verdict."""
    found = page.account["gate"]
    if found is None:
        return section(
            "gate",
            "The gate",
            tag("p", "No gate was decided. What stands against a promotion is below."),
        )
    rows = [_gate_row(page, index, line) for index, line in enumerate(found["lines"])]
    notes = []
    if found["problem"] is not None:
        notes.append(tag("p", "These lines are as recorded: they could not be derived again."))
    if found["differs"]:
        said = ", ".join(found["differs"])
        notes.append(tag("p", f"The record says otherwise than the evidence gives: {said}."))
    shown = table("Every line of the gate", ("line", "number", "demanded", "verdict"), rows)
    return section("gate", "The gate", *notes, shown, page.again("gate"), long=True)


def _gate_row(page: Page, index: int, line: Item) -> tuple[object, ...]:
    at = f"/gate/lines/{index}"
    words = LINES.get(line["name"])
    name = join(line["name"], tag("span", words, class_="small") if words else "")
    if line["passed"]:
        verdict = tag("span", "passed", class_="passed")
    else:
        verdict = join(
            tag("span", "failed", class_="failed"),
            tag("span", line["code"], class_="small"),
            tag("span", line["means"] or "", class_="small"),
        )
    return name, page.figure(f"{at}/value"), page.figure(f"{at}/threshold"), verdict


def seeds(page: Page) -> Iterator[Markup]:
    """The gain of each seed, drawn and in numbers; the families of cases."""
    found = page.account["figures"]
    if found is None or not found.get("seeds"):
        return
    names = ("gain", "pairs", "candidate_only", "baseline_only", "both", "neither", "undecided")
    heads = (
        "seed",
        "gain",
        "pairs",
        "only candidate",
        "only baseline",
        "both",
        "neither",
        "undecided",
    )
    rows: list[tuple[object, ...]] = [
        (
            page.figure(f"/figures/seeds/{index}/seed"),
            *(page.figure(f"/figures/seeds/{index}/{name}") for name in names),
        )
        for index in range(len(found["seeds"]))
    ]
    drawn = tag("figure", plots.gains(found))
    numbers = table("Paired outcomes of each seed, candidate against baseline", heads, rows)
    yield section(
        "seeds",
        "Gain of each seed",
        *_overall(page, found),
        tag("div", drawn, numbers, class_="pair"),
        _families(page, found),
        page.again("account", "gate"),
        long=True,
    )


def _overall(page: Page, found: Item) -> list[Markup]:
    if found["overall"] is None:
        return [tag("p", "No figure over all seeds: ", found["problem"])]
    names = {
        "mean_gain": "mean gain",
        "p": "two-sided p, exact sign flip",
        "lower": "interval, lower end",
        "upper": "interval, upper end",
        "level": "coverage of the interval",
        "replicates": "replicates of the bootstrap",
    }
    rows: list[tuple[object, ...]] = [
        (words, page.figure(f"/figures/overall/{name}")) for name, words in names.items()
    ]
    rows += [
        ("largest p that counts", page.figure("/figures/limits/alpha")),
        ("planned comparisons", page.figure("/figures/limits/comparisons")),
        ("smallest gain that counts", page.figure("/figures/limits/minimum_gain")),
    ]
    return [table("Over all seeds", ("what", "figure"), rows)]


def _families(page: Page, found: Item) -> Markup:
    rows: list[tuple[object, ...]] = [
        tuple(
            page.figure(f"/figures/families/{index}/{name}")
            for name in ("family", "pairs", "baseline", "candidate")
        )
        for index in range(len(found["families"]))
    ]
    heads = ("family", "pairs", "baseline right", "candidate right")
    return table("Families of cases, over all seeds", heads, rows)


def rivals(page: Page) -> Iterator[Markup]:
    """What weaker analyses would have said."""
    found = page.account["figures"]
    if found is None or not found.get("rivals"):
        return
    rows: list[tuple[object, ...]] = [
        (what, page.figure(f"/figures/rivals/{name}"), flaw)
        for name, (what, flaw) in RIVALS.items()
    ]
    shown = table("Not the gate", ("analysis", "figure", "why it decides nothing"), rows)
    note = tag(
        "p", "These figures decide nothing here. They show what a weaker analysis would have said."
    )
    yield section("rivals", "Not the gate", note, shown, page.again("account"), long=True)
