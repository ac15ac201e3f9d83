"""`evidence lineage`: the graph of what a record rests on, in several notations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from runners.cli import render
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app
from runners.cli.summary import summary
from runners.cli.suspicion import Marker

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledger.book import Ledger
    from ledger.query.lineage import Graph, Node

Label = dict[str, str]


@click.command(
    cls=Verb,
    example="evidence lineage 4f2a81\nevidence lineage 4f2a81 --impact --format mermaid > impact.mmd",
)
@click.argument("record")
@click.option(
    "--up", "direction", flag_value="up", default="up", help="What it rests on [the default]."
)
@click.option("--impact", "direction", flag_value="impact", help="What rests on it.")
@click.option(
    "--format",
    "notation",
    type=click.Choice(["tree", "mermaid", "dot", "json"]),
    default="tree",
    show_default=True,
    help="How to draw it.",
)
@click.option("--full", is_flag=True, help="Show every update instead of folding long chains.")
@pass_app
def lineage(app: App, record: str, direction: str, notation: str, full: bool) -> None:
    """Show what a record rests on, or what rests on it."""
    from ledger.query.lineage import fold, walk

    with app.read_ledger() as ledger:
        root = ledger.get(record)
        graph = walk(ledger, root, "impact" if direction == "impact" else "up")
        graph = graph if full else fold(graph)
        suspects = _suspects(ledger, graph)
        labels = _labels(ledger, graph, suspects)
    result = as_result(graph, suspects)
    lines = _json(result) if notation == "json" else _DRAWN[notation](graph, labels)
    app.emit(result, lines, next_step=f"evidence show {render.short(root.id)}")


def as_result(graph: Graph, suspects: Label) -> dict[str, Any]:
    """The graph as `--json` answers it; a folded node says how many records it stands for, a suspect one why."""
    return {
        "root": graph.root,
        "direction": graph.direction,
        "nodes": [_node_result(node, suspects) for node in graph.nodes.values()],
        "edges": [
            {"from": edge.source, "to": edge.target, "role": edge.role} for edge in graph.edges
        ],
    }


def _node_result(node: Node, suspects: Label) -> dict[str, Any]:
    plain: dict[str, Any] = {"id": node.id, "kind": node.kind, "seq": node.seq}
    if node.records > 1:
        plain |= {"last_seq": node.last_seq, "records": node.records, "kinds": dict(node.kinds)}
    if node.id in suspects:
        plain["suspect"] = suspects[node.id]
    return plain


def _suspects(ledger: Ledger, graph: Graph) -> Label:
    """Why a node is suspect, for each node that is or that stands for a record that is."""
    marker = Marker(ledger)
    found: Label = {}
    for node in graph.nodes.values():
        reasons = (marker.reason_of(name) for name in node.members or (node.id,))
        reason = next((text for text in reasons if text), None)
        if reason:
            found[node.id] = reason
    return found


def _labels(ledger: Ledger, graph: Graph, suspects: Label) -> Label:
    return {
        node.id: _label(ledger, node) + (" SUSPECT" if node.id in suspects else "")
        for node in graph.nodes.values()
    }


def _label(ledger: Ledger, node: Node) -> str:
    if node.records > 1:
        parts = ", ".join(f"{number} {kind}" for kind, number in node.kinds)
        return f"{parts} (seq {node.seq} to {node.last_seq})"
    record = ledger.find(node.id)
    words = "" if record is None else render.clip(summary(record))
    return f"{node.kind} {render.short(node.id)} (seq {node.seq})" + (f" {words}" if words else "")


def _tree(graph: Graph, labels: Label) -> list[str]:
    """Each record once with its branches; where it comes up again, a pointer to that place."""
    children = graph.children()
    lines: list[str] = [render.Styled(labels[graph.root], bold=True)]
    drawn = {graph.root}
    stack = _steps(children.get(graph.root, []), "")
    while stack:
        prefix, last, role, name = stack.pop()
        again = name in drawn
        steps = children.get(name, [])
        mark = " …" if again and steps else ""
        lines.append(f"{prefix}{'└─' if last else '├─'} {role}: {labels[name]}{mark}")
        if not again:
            drawn.add(name)
            stack += _steps(steps, prefix + ("   " if last else "│  "))
    if any(line.endswith(" …") for line in lines):
        lines.append("… drawn above")
    return lines


def _steps(steps: list[tuple[str, str]], prefix: str) -> list[tuple[str, bool, str, str]]:
    """Stack entries of a node's branches, the first one on top."""
    rows = [
        (prefix, place == len(steps) - 1, role, name) for place, (role, name) in enumerate(steps)
    ]
    return rows[::-1]


def _mermaid(graph: Graph, labels: Label) -> list[str]:
    names = {name: f"n{place}" for place, name in enumerate(graph.nodes)}
    nodes = [f'    {names[name]}["{_quoted(labels[name])}"]' for name in graph.nodes]
    edges = [
        f"    {names[edge.source]} -->|{edge.role}| {names[edge.target]}" for edge in graph.edges
    ]
    return ["flowchart TD", *nodes, *edges]


def _dot(graph: Graph, labels: Label) -> list[str]:
    names = {name: f"n{place}" for place, name in enumerate(graph.nodes)}
    nodes = [f'    {names[name]} [label="{_backslashed(labels[name])}"];' for name in graph.nodes]
    edges = [
        f'    {names[edge.source]} -> {names[edge.target]} [label="{edge.role}"];'
        for edge in graph.edges
    ]
    return ["digraph lineage {", "    node [shape=box];", *nodes, *edges, "}"]


def _json(result: dict[str, Any]) -> list[str]:
    import json

    return json.dumps(result, indent=2).splitlines()


def _quoted(text: str) -> str:
    """Text in a mermaid label: its entity codes for what would end the label or be markup."""
    return "".join(
        char if char.isalnum() or char in " .,:()-_/" else f"#{ord(char)};" for char in text
    )


def _backslashed(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


_DRAWN: dict[str, Callable[[Graph, Label], list[str]]] = {
    "tree": _tree,
    "mermaid": _mermaid,
    "dot": _dot,
}
