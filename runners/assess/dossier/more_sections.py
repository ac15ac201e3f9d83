"""The rest of the page: the test, the re-runs, what stands against a promotion, the origin, what is on faith."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runners.assess.dossier import plots
from runners.assess.dossier.figures import Page, table
from runners.assess.dossier.markup import Markup, step, tag
from runners.assess.dossier.sections import section

Item = dict[str, Any]
Rows = list[tuple[object, ...]]


def test(page: Page) -> Iterator[Markup]:
    """How fresh the test was, who reviewed it, and every look at it."""
    found = page.account["test"]
    if found is None or "problem" in found:
        return
    rows: Rows = [
        ("test", page.figure("/test/name")),
        ("cases", page.figure("/test/cases")),
        ("look", page.figure("/test/look")),
        *(
            (f"cases alike: {key}", page.figure(f"/test/levels/{step(key)}"))
            for key in sorted(found["levels"])
        ),
    ]
    if found["seen"]:
        rows.append(("trained or validated on", ", ".join(found["seen"])))
    reviews: Rows = [
        (
            page.digits(f"/test/reviews/{index}/review"),
            page.figure(f"/test/reviews/{index}/look"),
            item["paraphrase"],
            item["contamination"],
        )
        for index, item in enumerate(found["reviews"])
    ]
    heads = ("review", "look", "on paraphrases", "on contamination elsewhere")
    drawn = tag("figure", plots.looks(found["looks"], page.account["about"]["nomination"]))
    yield section(
        "test",
        "The test, and every look at it",
        table("The test", ("what", "which"), rows),
        table("Who reviewed it, in their words", heads, reviews) if reviews else "",
        tag("div", drawn, _looks(page, found), class_="pair"),
        page.again("account", "gate"),
        long=True,
    )


def _looks(page: Page, found: Item) -> Markup:
    rows: Rows = [
        (
            page.figure(f"/test/looks/{index}/seq"),
            page.digits(f"/test/looks/{index}/answered_by"),
            "baseline" if item["baseline"] else "checkpoint",
            page.digits(f"/test/looks/{index}/nomination"),
            page.figure(f"/test/looks/{index}/cases"),
            page.figure(f"/test/looks/{index}/truncated"),
        )
        for index, item in enumerate(found["looks"])
    ]
    heads = ("seq", "answered by", "as", "nomination", "cases", "cut off")
    return table("Answers to cases of this test", heads, rows)


def reruns(page: Page) -> Iterator[Markup]:
    """What was drawn and run again, and the chance that a forgery escaped."""
    draws = page.account["draws"]
    if page.account["gate"] is None or not isinstance(draws, list):
        return
    parts: list[object] = []
    if not draws:
        parts.append(
            tag(
                "p", "Nothing was run again, so all of it may be invented by the key that wrote it."
            )
        )
    for index, draw in enumerate(draws):
        at = f"/draws/{index}"
        names = ("drawn_from", "members", "targets", "updates", "cases", "run", "agreed")
        rows: Rows = [("draw", page.digits(f"{at}/draw"))]
        rows += [(name.replace("_", " "), page.figure(f"{at}/{name}")) for name in names]
        parts += [
            table("A draw, and what came of it", ("what", "figure"), rows),
            *_disagreed(page, at, draw),
            _escapes(page, at, draw),
        ]
    yield section("reruns", "What was run again", *parts, page.again("account"), long=True)


def _disagreed(page: Page, at: str, draw: Item) -> list[Markup]:
    rows: Rows = [
        (page.digits(f"{at}/disagreed/{index}/check"), item["case"] or "an update", item["detail"])
        for index, item in enumerate(draw["disagreed"])
    ]
    heads = ("check", "case", "what differs")
    return [table("Did not give what was recorded", heads, rows)] if rows else []


def _escapes(page: Page, at: str, draw: Item) -> Markup:
    rows: Rows = [
        tuple(page.figure(f"{at}/escape/{index}/{name}") for name in ("forged", "one", "every"))
        for index in range(len(draw["escape"]))
    ]
    heads = ("share forged", "in one place", "everywhere alike")
    numbers = table("Chance that a forgery escapes this draw", heads, rows)
    return tag("div", tag("figure", plots.escapes(draw["escape"])), numbers, class_="pair")


def standing(page: Page) -> Markup:
    """Approvals, the promotion, and what stands against one now."""
    promotion = page.account["promotion"]
    approvals: Rows = [
        (
            page.digits(f"/approvals/{index}/reviewer"),
            page.digits(f"/approvals/{index}/approval"),
            item["why"],
        )
        for index, item in enumerate(page.account["approvals"])
    ]
    missing: Rows = [
        (tag("span", item["code"], class_="code"), item["message"], item["hint"])
        for item in promotion["missing"]
    ]
    facts: Rows = [
        (name, page.digits(f"/promotion/{name}"))
        for name in ("granted", "withdrawn")
        if promotion[name]
    ]
    facts += [
        (words, promotion[name])
        for name, words in (("scope", "promoted for"), ("withdrawn_why", "withdrawn because"))
        if promotion[name]
    ]
    parts = [
        table("The promotion", ("what", "which"), facts) if facts else "",
        table("Reviewers who approved, in their words", ("reviewer", "record", "why"), approvals)
        if approvals
        else "",
        table(
            "What stands against a promotion now",
            ("code", "what is missing", "what helps"),
            missing,
        )
        if missing
        else "",
        tag("p", "A promotion is no approval of deployment."),
    ]
    return section(
        "standing",
        "Approval and promotion",
        *parts,
        page.again("checkpoint", "promotion"),
        long=True,
    )


def origin(page: Page, picture: Markup, picture_alt: str) -> Markup:
    """What the checkpoint rests on: models, sources, splits, leaks, runs, and the picture of its lineage."""
    rests = page.account["rests_on"]
    sources: Rows = [
        (
            item["name"],
            item["licence"],
            item["review"],
            page.digits(f"/rests_on/sources/{index}/bytes"),
            item["withheld"] or "no",
        )
        for index, item in enumerate(rests["sources"])
    ]
    models: Rows = [
        (
            item["name"],
            item["licence"],
            item["source"],
            page.digits(f"/rests_on/models/{index}/tree"),
        )
        for index, item in enumerate(rests["models"])
    ]
    runs: Rows = [
        (
            page.digits(f"/rests_on/runs/{index}/run"),
            item["outcome"] or "not ended",
            *(
                page.figure(f"/rests_on/runs/{index}/{name}")
                for name in ("attempts", "on_path", "superseded")
            ),
        )
        for index, item in enumerate(rests["runs"])
    ]
    leaks: Rows = [
        (
            page.digits(f"/rests_on/leaks/{index}/audit"),
            item["verdict"],
            item["why"] or "none accepted",
        )
        for index, item in enumerate(rests["leaks"])
    ]
    scroll = tag(
        "div", picture, class_="scroll", tabindex="0", role="region", aria_label=picture_alt
    )
    return section(
        "origin",
        "What the checkpoint rests on",
        table("Models", ("model", "licence", "from", "bytes"), models),
        table("Sources", ("source", "licence", "review", "bytes", "withheld"), sources),
        table(
            "Leaks between training and held-out rows",
            ("audit", "verdict", "accepted because"),
            leaks,
        ),
        table("Runs", ("run", "outcome", "attempts", "updates on its path", "superseded"), runs),
        scroll,
        page.again("checkpoint", "lineage"),
        long=True,
    )


def faith(page: Page) -> Markup:
    """What was derived again, what could not be, and what stays somebody's word."""
    derived = page.account["derived"]
    counts: Rows = [
        ("records that it rests on", page.figure("/derived/records")),
        ("of them derived again", page.figure("/derived/replayed")),
        ("outcome", page.figure("/derived/verdict")),
    ]
    problems: Rows = [
        (
            tag("span", item["code"], class_="code"),
            item["message"],
            page.digits(f"/derived/problems/{index}/record"),
        )
        for index, item in enumerate(derived["problems"])
    ]
    words: Rows = [
        (item["what"], page.figure(f"/derived/on_faith/{index}/records"))
        for index, item in enumerate(derived["on_faith"])
    ]
    return section(
        "faith",
        "Derived again, and on faith",
        table("Derived again from the bytes", ("what", "figure"), counts),
        table("Wrong or missing", ("code", "what", "record"), problems) if problems else "",
        table("Taken on faith, whatever is verified", ("what", "records"), words),
        page.again("gate"),
        long=True,
    )
