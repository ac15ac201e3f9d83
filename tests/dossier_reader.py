"""Reads a dossier's page: its elements, its figures and where each was taken from, the text that a person sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br"}


@dataclass
class Figure:
    """A figure: where the page says it was taken from, its value in full, what is printed, its section."""

    pointer: str
    value: str
    section: int
    shown: str = ""


@dataclass
class Read:
    """What was found on a page; `commands` and `headings` are by section, the first part is section 0."""

    tags: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    addresses: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    commands: dict[int, list[str]] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)
    text: str = ""


class Reader(HTMLParser):
    """Fills a `Read`; text outside figures, commands, drawings and styles is loose."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.read = Read()
        self.open: list[str] = []
        self.sections = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        given = {name: value or "" for name, value in attrs}
        self.read.tags.add(tag)
        self.read.attributes |= given.keys()
        self.read.addresses += [given[name] for name in ("src", "href", "action") if name in given]
        self.sections += tag == "section"
        if "data-figure" in given:
            found = Figure(given["data-figure"], given["value"], self.sections)
            self.read.figures.append(found)
        if tag == "code":
            self.read.commands.setdefault(self.sections, []).append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """An element ends; they nest as they must."""
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        """Text between elements."""
        if "data" in self.open:
            self.read.figures[-1].shown += data
        elif "code" in self.open:
            self.read.commands[self.sections][-1] += data
        elif not {"style", "svg", "title"} & set(self.open):
            self.read.loose.append(data)
        self.read.text += data


def read_page(page: str) -> Read:
    """Everything on a page."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == [], reader.open
    return reader.read
