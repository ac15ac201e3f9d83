"""Figures of the page: each is fetched from the account by its pointer, so that none can be typed in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runners.assess.dossier.markup import Markup, join, plain, resolve, shown, tag

Item = dict[str, Any]


@dataclass(frozen=True)
class Page:
    """An account, and how its values become elements."""

    account: Item

    def at(self, pointer: str) -> Any:
        """The value under a pointer."""
        return resolve(self.account, pointer)

    def figure(self, pointer: str) -> Markup:
        """A value as a figure that names where it was taken from."""
        value = self.at(pointer)
        return tag("data", shown(value), value=plain(value), data_figure=pointer)

    def digits(self, pointer: str) -> Markup:
        """An id or digest by its first digits, the whole of it in its title."""
        value = self.at(pointer)
        if not value:
            return join("none")
        whole = str(value)
        name = whole.rpartition(":")[2][:12]
        return tag("data", name, value=whole, title=whole, class_="id", data_figure=pointer)

    def again(self, *names: str) -> Markup:
        """The commands that derive a section's figures again."""
        commands = [self.figure_command(name) for name in dict.fromkeys(names)]
        lines = [tag("li", item) for item in commands]
        return tag("div", tag("p", "Derived again by"), tag("ul", *lines), class_="again")

    def figure_command(self, name: str) -> Markup:
        """One command of the account; a line may end between its words only."""
        words = str(self.account["commands"][name]).split(" ")
        parts = [tag("span", word, class_="word") for word in words]
        spaced = [part for word in parts for part in (word, " ")][:-1]
        return tag("code", *spaced, class_="command")


def table(caption: str, headers: tuple[str, ...], rows: list[tuple[object, ...]]) -> Markup:
    """A table whose first column heads its rows; on a narrow screen each row becomes a block with its headings beside.

    Roles are given in full, since a style that makes blocks of rows takes a table's own from it.
    """
    head = [tag("th", name, scope="col", role="columnheader") for name in headers]
    body = [
        tag(
            "tr",
            tag("th", _cell(row[0]), scope="row", role="rowheader", data_label=headers[0]),
            *(
                tag("td", _cell(value), role="cell", data_label=name)
                for name, value in zip(headers[1:], row[1:], strict=True)
            ),
            role="row",
        )
        for row in rows
    ]
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *head, role="row"), role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
        role="table",
        class_="two" if len(headers) == 2 else None,
    )


def _cell(value: object) -> Markup:
    return tag("div", value)
