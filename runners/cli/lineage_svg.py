"""A lineage as one SVG picture: boxes in rows by their distance from the root, a line for each ref.

No program and no font is needed to draw it, and nothing in it is fetched or run.
"""

from __future__ import annotations

from collections import defaultdict
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledger.query.lineage import Graph

BOX_WIDTH, BOX_HEIGHT = 250, 44
GAP_X, GAP_Y, MARGIN = 24, 56, 20
LINE_CHARACTERS = 32
# Each rule is of this picture alone, so that it may stand in a page beside others.
STYLE = (
    ".lineage text{font:12px monospace;fill:#222}.lineage .box{fill:#f6f8fa;stroke:#57606a}"
    ".lineage .root{fill:#ddf4ff}.lineage .suspect{fill:#fff1e5}.lineage line{stroke:#8c959f}"
)


def draw(
    graph: Graph,
    labels: Mapping[str, str],
    suspects: Mapping[str, str],
    *,
    styled: bool = True,
) -> list[str]:
    """The picture's lines.

    Args:
        graph: what to draw.
        labels: words for each node.
        suspects: nodes to mark.
        styled: whether its style stands in it; a page that has `STYLE` in its head does without.
    """
    places = _places(graph)
    width = max(x for x, _ in places.values()) + BOX_WIDTH + MARGIN
    height = max(y for _, y in places.values()) + BOX_HEIGHT + MARGIN
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lineage" {size}>',
        *([f"<style>{STYLE}</style>"] if styled else []),
        *(_line(places[edge.source], places[edge.target], edge.role) for edge in graph.edges),
        *(_box(graph, name, places[name], labels[name], name in suspects) for name in graph.nodes),
        "</svg>",
    ]


def _places(graph: Graph) -> dict[str, tuple[int, int]]:
    """Upper left corner of each box: rows by the shortest way from the root, in seq order."""
    rows: dict[int, list[str]] = defaultdict(list)
    for name, depth in _depths(graph).items():
        rows[depth].append(name)
    places = {}
    for depth, names in rows.items():
        names.sort(key=lambda name: graph.nodes[name].seq)
        for column, name in enumerate(names):
            x = MARGIN + column * (BOX_WIDTH + GAP_X)
            places[name] = (x, MARGIN + depth * (BOX_HEIGHT + GAP_Y))
    return places


def _depths(graph: Graph) -> dict[str, int]:
    children = graph.children()
    depths = {graph.root: 0}
    queue = [graph.root]
    for name in queue:
        for _, other in children.get(name, []):
            if other not in depths:
                depths[other] = depths[name] + 1
                queue.append(other)
    return depths


def _box(graph: Graph, name: str, place: tuple[int, int], label: str, suspect: bool) -> str:
    x, y = place
    kind = "suspect" if suspect else "root" if name == graph.root else ""
    lines = wrap(label, LINE_CHARACTERS, max_lines=2, placeholder=" …") or [""]
    first, second = (*lines, "")[:2]
    return (
        f'<g><title>{escape(name)}</title><rect class="box {kind}" x="{x}" y="{y}" '
        f'width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="4"/>'
        f'<text x="{x + 8}" y="{y + 18}">{escape(first)}</text>'
        f'<text x="{x + 8}" y="{y + 35}">{escape(second)}</text></g>'
    )


def _line(near: tuple[int, int], far: tuple[int, int], role: str) -> str:
    """From the middle of one box to that of the other, under the boxes."""
    x1, y1 = near[0] + BOX_WIDTH // 2, near[1] + BOX_HEIGHT // 2
    x2, y2 = far[0] + BOX_WIDTH // 2, far[1] + BOX_HEIGHT // 2
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"><title>{escape(role)}</title></line>'
        f'<text x="{(x1 + x2) // 2 + 4}" y="{(y1 + y2) // 2}">{escape(role)}</text>'
    )
