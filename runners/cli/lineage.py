"""`evidence lineage`: the graph of what a record rests on, in several notations."""

from __future__ import annotations

import os
from pathlib import Path
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
    from ledger.query.lineage import Direction, Graph, Node
    from ledger.record import Record

Label = dict[str, str]
_BYTES = {
    "source.ingested": ("content", "digest"),
    "model.registered": ("tree",),
    "checkpoint.published": ("tree",),
    "promotion.granted": ("tree",),
}


@click.command(
    cls=Verb,
    example="evidence lineage 4f2a81\nevidence lineage ./adapter\n"
    "evidence lineage 4f2a81 --impact --format mermaid > impact.mmd",
)
@click.argument("record")
@click.option(
    "--up", "direction", flag_value="up", default="up", help="What it rests on [the default]."
)
@click.option("--impact", "direction", flag_value="impact", help="What rests on it.")
@click.option(
    "--format",
    "notation",
    type=click.Choice(["tree", "mermaid", "dot", "svg", "json"]),
    default="tree",
    show_default=True,
    help="How to draw it.",
)
@click.option("--full", is_flag=True, help="Show every update instead of folding long chains.")
@pass_app
def lineage(app: App, record: str, direction: str, notation: str, full: bool) -> None:
    """Show what a record rests on, or what rests on it.

    RECORD is an id, its first six hex digits or more, or @N for the record at seq N; or a folder, written with
    a slash: the promotion, checkpoint or model that has exactly its bytes.
    """
    from ledger.query.lineage import fold, walk

    with app.read_ledger() as ledger:
        root = _root(ledger, record)
        way: Direction = "impact" if direction == "impact" else "up"
        graph = None if full else _from_segments(app, ledger, root, way)
        if graph is None:
            graph = walk(ledger, root, way)
            graph = graph if full else fold(graph)
        suspects = _suspects(ledger, graph)
        labels = _labels(ledger, graph, suspects)
        result = as_result(graph, suspects, _bytes_of(ledger, graph))
    lines = _lines(notation, graph, labels, suspects, result)
    app.emit(result, lines, next_step=f"evidence show {render.short(root.id)}")


def drawn_from(ledger: Ledger, root: Record) -> tuple[Graph, Label, Label]:
    """What a record rests on, folded, with words for each node and why one is suspect: what a drawing is made of."""
    from ledger.query.lineage import fold, walk

    graph = fold(walk(ledger, root, "up"))
    suspects = _suspects(ledger, graph)
    return graph, _labels(ledger, graph, suspects), suspects


def _from_segments(app: App, ledger: Ledger, root: Record, direction: Direction) -> Graph | None:
    """The folded lineage from sealed history; None where the ledger has none."""
    history = app.history
    if not history.folder.is_dir():
        return None
    from ledger.query.links import folded

    return folded(ledger, root, history, direction)


def _root(ledger: Ledger, name: str) -> Record:
    """The record of an id or seq, or of a folder by its bytes."""
    if not any(mark in name for mark in (os.sep, os.altsep) if mark) and name not in {".", ".."}:
        return ledger.get(name, raw=True)
    from ledger.query.by_bytes import record_of_folder

    return record_of_folder(ledger, Path(name))


def _lines(
    notation: str, graph: Graph, labels: Label, suspects: Label, result: dict[str, Any]
) -> list[str]:
    if notation == "json":
        return _json(result)
    if notation == "svg":
        from runners.cli import lineage_svg

        return lineage_svg.draw(graph, labels, suspects)
    return _DRAWN[notation](graph, labels)


def as_result(graph: Graph, suspects: Label, held: Label) -> dict[str, Any]:
    """The graph as `--json` answers it; a folded node says how many records it stands for, a suspect one why.

    Args:
        graph: the graph.
        suspects: why a node is suspect.
        held: the digest of the bytes that a node is about.
    """
    return {
        "root": graph.root,
        "direction": graph.direction,
        "nodes": [_node_result(node, suspects, held) for node in graph.nodes.values()],
        "edges": [
            {"from": edge.source, "to": edge.target, "role": edge.role} for edge in graph.edges
        ],
    }


def _node_result(node: Node, suspects: Label, held: Label) -> dict[str, Any]:
    plain: dict[str, Any] = {"id": node.id, "kind": node.kind, "seq": node.seq}
    if node.records > 1:
        plain |= {"last_seq": node.last_seq, "records": node.records, "kinds": dict(node.kinds)}
    if node.id in suspects:
        plain["suspect"] = suspects[node.id]
    if node.id in held:
        plain["bytes"] = held[node.id]
    return plain


def _bytes_of(ledger: Ledger, graph: Graph) -> Label:
    """The digest of a source's file, and of a model's, a checkpoint's or a promotion's folder."""
    found: Label = {}
    for node in graph.nodes.values():
        if node.kind in _BYTES and (record := ledger.find(node.id)) is not None:
            value: Any = record.body
            for name in _BYTES[node.kind]:
                value = value.get(name) if isinstance(value, dict) else None
            if isinstance(value, str):
                found[node.id] = value
    return found


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
