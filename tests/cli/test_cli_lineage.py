"""`evidence lineage`: closures over refs, chains folded, drawn in several notations."""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from world import World

from ledger.book import Ledger
from ledger.digests import inventory, tree_digest
from ledger.query.lineage import Edge, Graph, Node, fold, walk
from runners.cli import lineage as drawing

UPDATES = 12
CHECKPOINTS = (4, 12)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def trained() -> World:
    """A run of twelve updates with checkpoints after the fourth and the last."""
    world = World()
    world.add("plan.prepared", budget_updates=UPDATES)
    for step in range(1, UPDATES + 1):
        world.add("update.acknowledged")
        if step in CHECKPOINTS:
            world.add("checkpoint.published")
    world.add("run.ended")
    return world


@pytest.fixture
def run(cli, tmp_path, trained):
    """A command line before that run's ledger."""
    cli.ledger = trained.write(tmp_path / "trained")
    return cli


def closure(world: World, root: str, *, up: bool) -> set[str]:
    """What the refs say, computed from the records alone."""
    steps: dict[str, list[str]] = defaultdict(list)
    for record in world.records:
        for _, ref in record.all_refs():
            near, far = (record.id, ref) if up else (ref, record.id)
            steps[near].append(far)
    found, queue = {root}, [root]
    for name in queue:
        for other in steps[name]:
            if other not in found:
                found.add(other)
                queue.append(other)
    return found


@pytest.mark.parametrize("option", ["--up", "--impact"])
def test_full_lineage_is_the_closure_over_refs(run, trained, option):
    """Unfolded, nodes are exactly the closure and edges exactly the refs inside it, for every record."""
    for record in trained.records:
        result = run.json("lineage", record.id, option, "--full").result
        wanted = closure(trained, record.id, up=option == "--up")
        assert {node["id"] for node in result["nodes"]} == wanted
        inside = [item for item in trained.records if item.id in wanted]
        edges = {
            (item.id, ref, role)
            for item in inside
            for role, ref in item.all_refs()
            if ref in wanted
        }
        assert {(edge["from"], edge["to"], edge["role"]) for edge in result["edges"]} == edges


def test_long_chains_are_folded_and_no_record_is_lost(run, trained):
    """Folded nodes stand for as many records as the closure has; checkpoints' updates stay on their own."""
    launched = trained.newest("run.launched")
    result = run.json("lineage", launched.id, "--impact").result
    folded = [node for node in result["nodes"] if "records" in node]
    stretches = [{"batch.built": number, "update.acknowledged": number} for number in (3, 7)]
    assert [node["kinds"] for node in folded] == stretches
    total = sum(node.get("records", 1) for node in result["nodes"])
    assert total == len(closure(trained, launched.id, up=False))
    shown = {node["id"] for node in result["nodes"]}
    checkpoints = [record for record in trained.records if record.kind == "checkpoint.published"]
    assert {record.ref("update") for record in checkpoints} <= shown


def test_folding_keeps_what_is_connected(run, trained):
    """From the root every node is reached over the folded edges, and no edge leads out of the graph."""
    with Ledger.read(run.ledger) as ledger:
        for record in trained.records[-3:]:
            for direction in ("up", "impact"):
                graph = fold(walk(ledger, record, direction), fold_from=2)
                children = graph.children()
                found, queue = {graph.root}, [graph.root]
                for name in queue:
                    for _, other in children.get(name, []):
                        if other not in found:
                            found.add(other)
                            queue.append(other)
                assert found == graph.nodes.keys()


def test_short_chains_are_left_alone(run, trained):
    """Below the limit nothing is folded."""
    with Ledger.read(run.ledger) as ledger:
        root = trained.newest("run.ended")
        whole = walk(ledger, root, "up")
        assert fold(whole, fold_from=1000).nodes.keys() == whole.nodes.keys()


def test_tree_draws_every_node_once(run, trained):
    """The tree names each record of the folded graph, and marks where one comes up again."""
    ended = trained.newest("run.ended")
    nodes = run.json("lineage", ended.id).result["nodes"]
    text = run("lineage", ended.id).out
    for node in nodes:
        if "records" not in node:
            assert node["id"][7:19] in text
    assert text.splitlines()[0].startswith("run.ended")
    assert "drawn above" in text


def test_a_deep_tree_is_drawn_without_recursion():
    """A chain deeper than the interpreter's stack is drawn in full."""
    depth = sys.getrecursionlimit() + 500
    names = [f"sha256:{number:064x}" for number in range(depth)]
    nodes = {
        name: Node(name, "note.added", seq, seq, (("note.added", 1),))
        for seq, name in enumerate(names)
    }
    edges = [Edge(names[seq], names[seq - 1], "about") for seq in range(1, depth)]
    graph = Graph(names[-1], "up", nodes, edges)
    lines = drawing._tree(graph, {name: name[-6:] for name in names})
    assert len(lines) == depth
    assert fold(graph).nodes.keys() == set(names)


def test_folding_takes_time_in_proportion():
    """A chain of 20,000 updates folds into one node at once: no step looks at every other record."""
    names = [f"sha256:{number:064x}" for number in range(20_000)]
    kinds = ["checkpoint.published", *["update.acknowledged"] * (len(names) - 1)]
    nodes = {
        name: Node(name, kind, len(names) - place, len(names) - place, ((kind, 1),))
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True))
    }
    edges = [Edge(near, far, "previous") for near, far in pairwise(names)]
    start = time.process_time()
    folded = fold(Graph(names[0], "up", nodes, edges))
    assert time.process_time() - start < 5
    assert [node.records for node in folded.nodes.values()] == [len(names) - 2, 1, 1]


def test_mermaid_and_dot_have_every_node_and_edge(run, trained):
    """The other notations hold as many nodes and edges as the JSON."""
    ended = trained.newest("run.ended").id
    result = run.json("lineage", ended).result
    mermaid = run("lineage", ended, "--format", "mermaid").out.splitlines()
    assert mermaid[0] == "flowchart TD"
    assert len(mermaid) == 1 + len(result["nodes"]) + len(result["edges"])
    dot = run("lineage", ended, "--format", "dot").out
    assert dot.count(" -> ") == len(result["edges"])
    assert dot.count("[label=") == len(result["nodes"]) + len(result["edges"])
    assert json.loads(run("lineage", ended, "--format", "json").out) == result


def test_labels_cannot_break_out_of_a_drawing(made):
    """A note's text with quotes, brackets and escapes stays inside its label in every notation."""
    note = made.json("note", "@0", '"]; x[label="<script>\x1b[31m`|`').result["note"]
    dot = made("lineage", note, "--format", "dot").out
    assert [
        line for line in dot.splitlines() if "script" in line and not line.endswith('"];')
    ] == []
    assert dot.replace('\\"', "").count('"') == 6  # two nodes and one edge, each with one label
    mermaid = made("lineage", note, "--format", "mermaid").out
    assert "<script>" not in mermaid
    assert "\x1b" not in dot + mermaid


def test_a_record_that_rests_on_nothing_is_alone(made):
    """Record 0 rests on nothing."""
    result = made.json("lineage", "@0").result
    assert (len(result["nodes"]), result["edges"]) == (1, [])


def test_svg_is_a_picture_with_every_node_and_edge(run, trained):
    """The SVG parses as XML, holds a box a node and a line an edge, all of them inside the picture."""
    ended = trained.newest("run.ended").id
    result = run.json("lineage", ended).result
    picture = ET.fromstring(run("lineage", ended, "--format", "svg").out)
    boxes = list(picture.iter(SVG + "rect"))
    assert len(boxes) == len(result["nodes"])
    assert len(list(picture.iter(SVG + "line"))) == len(result["edges"])
    width, height = int(picture.attrib["width"]), int(picture.attrib["height"])
    for box in boxes:
        assert int(box.attrib["x"]) + int(box.attrib["width"]) <= width
        assert int(box.attrib["y"]) + int(box.attrib["height"]) <= height
    corners = {(box.attrib["x"], box.attrib["y"]) for box in boxes}
    assert len(corners) == len(boxes)


def test_text_cannot_break_out_of_an_svg(made):
    """A note's markup is text in the picture, and nothing in it can be run or fetched."""
    note = made.json("note", "@0", '</text><script>alert(1)</script>" onload="x').result["note"]
    text = made("lineage", note, "--format", "svg").out
    names = {item.tag.removeprefix(SVG) for item in ET.fromstring(text).iter()}
    assert names == {"svg", "style", "g", "title", "rect", "text", "line"}
    assert "<script" not in text


def test_a_promoted_folder_leads_to_the_source_bytes(cli, tmp_path):
    """A folder is known by its bytes alone: from the promotion of exactly these down to the file that was ingested."""
    folder = tmp_path / "adapter"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights file")
    tree = tree_digest(inventory(folder))
    world = World()
    checkpoint = world.add("checkpoint.published", tree=tree)
    cli.ledger = world.write(tmp_path / "before")
    assert cli.json("lineage", f"{folder}/").result["root"] == checkpoint.id
    granted = world.add("promotion.granted")
    assert granted.body["tree"] == tree
    cli.ledger = world.write(tmp_path / "after")
    result = cli.json("lineage", folder).result
    held = {node["id"]: node["bytes"] for node in result["nodes"] if "bytes" in node}
    source = world.newest("source.ingested")
    assert result["root"] == granted.id
    assert held[granted.id] == held[checkpoint.id] == tree
    assert held[source.id] == source.body["content"]["digest"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("another byte", "REF_NOT_FOUND"),
        ("another name", "REF_NOT_FOUND"),
        ("one more file", "REF_NOT_FOUND"),
        ("a link", "UNSAFE_PATH"),
        ("no folder", "INPUT_MISSING"),
    ],
)
def test_a_folder_of_other_bytes_is_nobodys(cli, tmp_path, change, code):
    """A byte, a name or a file that is not as published leads to no record."""
    folder = tmp_path / "adapter"
    folder.mkdir()
    file = folder / "model.safetensors"
    file.write_bytes(b"weights file")
    world = World()
    world.add("checkpoint.published", tree=tree_digest(inventory(folder)))
    cli.ledger = world.write(tmp_path / "ledger")
    assert cli.json("lineage", folder).code == 0
    if change == "another byte":
        file.write_bytes(b"weights filE")
    elif change == "another name":
        file.rename(folder / "weights.safetensors")
    elif change == "one more file":
        (folder / "x").touch()
    elif change == "a link":
        (folder / "x").symlink_to(file)
    called = cli.json("lineage", tmp_path / "absent" if change == "no folder" else folder)
    assert (called.code != 0, called.error["code"]) == (True, code)
