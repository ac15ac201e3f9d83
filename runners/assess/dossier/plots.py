"""The page's plots as SVG: gains a seed, looks at the test, chances of an escape. No font and no script is needed.

Each is drawn for a width of 340 units, so that its words stay readable on a telephone; the table beside it says the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from runners.assess.dossier.markup import Markup, join, shown, tag

Item = dict[str, Any]
WIDTH: Final = 340
LEFT, RIGHT, ROW, TOP = 66, 14, 24, 16


def gains(figures: Item) -> Markup:
    """A dot a seed at its gain over the baseline, the interval as a band, zero and the demanded gain as lines."""
    seeds, overall, floor = figures["seeds"], figures["overall"], figures["limits"]["minimum_gain"]
    marks = [0.0, floor, *(item["gain"] for item in seeds)]
    if overall is not None:
        marks += [overall["lower"], overall["upper"], overall["mean_gain"]]
    x = _Scale(min(marks), max(marks))
    bottom = TOP + ROW * len(seeds)
    parts = []
    if overall is not None:
        low, high = x(overall["lower"]), x(overall["upper"])
        parts.append(
            tag("rect", x=low, y=TOP, width=max(high - low, 1), height=bottom - TOP, class_="band")
        )
        parts.append(_upright(x(overall["mean_gain"]), bottom, "mean"))
    parts += [_upright(x(0.0), bottom, "zero"), _upright(x(floor), bottom, "floor")]
    for row, item in enumerate(seeds):
        y = TOP + ROW * row + ROW // 2
        parts += [
            tag("text", f"seed {item['seed']}", x=4, y=y + 4),
            tag("line", x1=x(0.0), x2=x(item["gain"]), y1=y, y2=y, class_="stem"),
            tag("circle", cx=x(item["gain"]), cy=y, r=5, class_="dot"),
        ]
    parts += _ticks(x, bottom)
    key = "dots: seeds; band: interval; dashes: demanded gain"
    parts.append(tag("text", key, x=4, y=bottom + 36, class_="key"))
    alt = "Gain of each seed over the baseline, with the interval and the demanded gain; the table says the same."
    return _svg(alt, bottom + 44, parts)


def looks(found: Sequence[Item], own: str | None) -> Markup:
    """Every answer to the test's cases in the order of the ledger, a row for each nomination."""
    rows = list(dict.fromkeys(item["nomination"] or item["arm"] for item in found))
    x = _Scale(0.0, max(1.0, float(len(found) - 1)))
    parts = []
    for row, name in enumerate(rows):
        y = TOP + ROW * row + ROW // 2
        label = "this one" if name == own else f"other {row + 1}"
        parts.append(tag("text", label, x=4, y=y + 4))
        parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="stem"))
    for place, item in enumerate(found):
        y = TOP + ROW * rows.index(item["nomination"] or item["arm"]) + ROW // 2
        if item["baseline"]:
            mark = tag("rect", x=x(place) - 5, y=y - 5, width=10, height=10, class_="square")
        else:
            mark = tag("circle", cx=x(place), cy=y, r=5, class_="dot")
        parts.append(mark)
    bottom = TOP + ROW * len(rows)
    key = "squares: the baseline; dots: checkpoints; in order"
    parts.append(tag("text", key, x=4, y=bottom + 14, class_="key"))
    alt = "Answers to cases of this test, a row for each nomination, in the order of the ledger; the table says the same."
    return _svg(alt, bottom + 22, parts)


def escapes(chances: Sequence[Item]) -> Markup:
    """The chance that a forgery escapes a draw, over the share that is forged: in one place, and everywhere alike."""
    height = 120
    bottom = TOP + height
    x = _Scale(0.0, max(1.0, float(len(chances) - 1)))
    parts = []
    for level in (0.0, 0.5, 1.0):
        y = round(bottom - level * height, 1)
        parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        parts.append(tag("text", shown(level), x=LEFT - 6, y=y + 4, class_="tick end"))
    for name, style in (("one", "dot"), ("every", "square")):
        points = [
            (x(place), round(bottom - item[name] * height, 1)) for place, item in enumerate(chances)
        ]
        path = " ".join(f"{left},{top}" for left, top in points)
        parts.append(tag("polyline", points=path, class_=f"curve {style}"))
        parts += [_mark(left, top, style) for left, top in points]
    for place, item in enumerate(chances):
        label = f"{item['forged']:.0%}"
        parts.append(tag("text", label, x=x(place), y=bottom + 16, class_="tick middle"))
    key = "dots: forged in one place; squares: everywhere"
    parts.append(tag("text", key, x=4, y=bottom + 34, class_="key"))
    alt = "Chance that a forgery escapes the draw over the share that is forged; the table says the same."
    return _svg(alt, bottom + 42, parts)


class _Scale:
    """From a value to a place across the plot."""

    def __init__(self, low: float, high: float) -> None:
        room = (high - low) * 0.06 or 0.05
        self.low, self.high = low - room, high + room

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def _ticks(x: _Scale, bottom: int) -> list[Markup]:
    middle = (x.low + x.high) / 2
    return [
        tag("text", f"{value:.3g}", x=x(value), y=bottom + 16, class_=f"tick {anchor}")
        for value, anchor in ((x.low, "start"), (middle, "middle"), (x.high, "end"))
    ]


def _upright(x: float, bottom: int, style: str) -> Markup:
    return tag("line", x1=x, x2=x, y1=TOP, y2=bottom, class_=style)


def _mark(x: float, y: float, style: str) -> Markup:
    if style == "dot":
        return tag("circle", cx=x, cy=y, r=4, class_="dot")
    return tag("rect", x=x - 4, y=y - 4, width=8, height=8, class_="square")


def _svg(alt: str, height: int, parts: Sequence[Markup]) -> Markup:
    return tag(
        "svg",
        tag("title", alt),
        join(*parts),
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_label=alt,
        class_="plot",
    )
