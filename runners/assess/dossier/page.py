"""The whole page: one HTML file without a script, an image to fetch or a font to fetch.

The policy in its head forbids every request and every style but the one that stands in it, by its digest: text that got
past the escaping could still neither run nor fetch nor restyle anything.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import Any, Final

from runners.assess.dossier import more_sections, sections
from runners.assess.dossier.figures import Page
from runners.assess.dossier.markup import Markup, join, tag, text
from runners.assess.dossier.style import CSS
from runners.assess.sentences import limits_of
from runners.assess.words import VERDICTS

Item = dict[str, Any]
GOOD: Final = frozenset({"granted", "passed"})
BAD: Final = frozenset({"failed", "void", "withdrawn", "unfounded", "refused"})
ALT: Final = "Lineage of the checkpoint; the command below prints it as a tree"


@dataclass(frozen=True)
class Picture:
    """A drawing that was made elsewhere, by code that escapes what it writes.

    Args:
        svg: the `svg` element, without a style.
        css: its style.
    """

    svg: str
    css: str


def build(account: Item, picture: Picture) -> str:
    """The page of an account.

    Args:
        account: what `runners.assess.account.account_of` gives.
        picture: the checkpoint's lineage.
    """
    page = Page(account)
    css = CSS + picture.css
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    title = f"Dossier of {_named(account)}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag(
            "meta",
            http_equiv="Content-Security-Policy",
            content=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        ),
        tag("meta", name="viewport", content="width=device-width,initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Markup(css)),
    )
    parts = [
        _top(page, title),
        sections.about(page),
        sections.gate(page),
        *sections.seeds(page),
        *more_sections.test(page),
        *more_sections.reruns(page),
        more_sections.standing(page),
        more_sections.origin(page, Markup(picture.svg), ALT),
        more_sections.faith(page),
        *sections.rivals(page),
    ]
    body = tag("body", tag("main", *parts))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _named(account: Item) -> str:
    about = account["about"]
    kind = "gate" if about["gate"] else "checkpoint"
    digits = str(about[kind]).partition(":")[2][:12]
    return f"{kind} {digits}"


def _top(page: Page, title: str) -> Markup:
    word = page.account["verdict"]
    weight = "good" if word in GOOD else "bad" if word in BAD else ""
    verdict = tag(
        "p",
        tag("strong", page.figure("/verdict")),
        text(VERDICTS[word]),
        class_=f"verdict {weight}".strip(),
    )
    note = (
        "Every figure was derived again from the ledger's bytes when this page was made. The page itself proves nothing: "
        "the commands under each part derive its figures again from a copy of the ledger."
    )
    labels = limits_of(page.account["figures"], page.account["test"])
    shown = [tag("p", tag("strong", label)) for label in labels]
    return join(tag("h1", title), verdict, *shown, tag("p", note), page.again("gate", "account"))
