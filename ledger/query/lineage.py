"""What a record rests on, and what rests on it: a graph walked over refs and the edge index.

An arrow points from a record to one that it names. A run of thousands of updates is one chain, so the
stretches of it that nothing outside the chain names are folded into one node each.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ledger.errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ledger.book import Ledger
    from ledger.record import Record

Direction = Literal["up", "impact"]

CHAIN_KINDS = frozenset({"update.acknowledged", "batch.built", "rollout.group"})
FOLD_FROM = 6


@dataclass(frozen=True)
class Edge:
    """`source` names `target` under a role."""

    source: str
    target: str
    role: str


@dataclass(frozen=True)
class Node:
    """A record, or several that were folded: then `id` and `seq` are the first one's.

    Args:
        id: record id.
        kind: record kind, `folded` for several.
        seq: position in the ledger.
        last_seq: the last one's position.
        kinds: how many records of each kind the node stands for.
        members: ids of the records that it stands for, where there are several.
    """

    id: str
    kind: str
    seq: int
    last_seq: int
    kinds: tuple[tuple[str, int], ...]
    members: tuple[str, ...] = field(default=(), compare=False)

    @property
    def records(self) -> int:
        """How many records the node stands for."""
        return sum(number for _, number in self.kinds)


@dataclass
class Graph:
    """A closure from a root; nodes by id, edges in the order they were found."""

    root: str
    direction: Direction
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)

    def children(self) -> dict[str, list[tuple[str, str]]]:
        """Node id -> (role, node id) one step further from the root, in seq order."""
        found: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for edge in self.edges:
            near, far = edge.source, edge.target
            if self.direction == "impact":
                near, far = far, near
            found[near].append((edge.role, far))
        for steps in found.values():
            steps.sort(key=lambda step: (self.nodes[step[1]].seq, step[0]))
        return found


def walk(ledger: Ledger, root: Record, direction: Direction) -> Graph:
    """The closure of a record, unfolded.

    Args:
        ledger: where the records are.
        root: where to start.
        direction: `up` for what it rests on, `impact` for what rests on it.

    Raises:
        EvidenceError: `REF_NOT_FOUND`, a record names one that is not there.
    """
    graph = Graph(root.id, direction)
    graph.nodes[root.id] = _node(root)
    queue = [root]
    for record in queue:
        steps = _refs(ledger, record) if direction == "up" else _referrers(ledger, record)
        for edge, other in steps:
            graph.edges.append(edge)
            if other.id not in graph.nodes:
                graph.nodes[other.id] = _node(other)
                queue.append(other)
    return graph


def fold(graph: Graph, fold_from: int = FOLD_FROM) -> Graph:
    """The graph with each stretch of at least `fold_from` chain records as one node.

    A record is folded where it is an update, batch or group that only such records name, and is not the
    root; neighbours among those belong to one stretch.
    """
    stretches = [part for part in _stretches(graph) if len(part) >= fold_from]
    stands_for: dict[str, str] = {}
    folded = Graph(graph.root, graph.direction)
    for part in stretches:
        node = _folded_node([graph.nodes[name] for name in part])
        folded.nodes[node.id] = node
        stands_for.update(dict.fromkeys(part, node.id))
    folded.nodes.update(
        {name: node for name, node in graph.nodes.items() if name not in stands_for}
    )
    renamed = (
        Edge(
            stands_for.get(edge.source, edge.source),
            stands_for.get(edge.target, edge.target),
            edge.role,
        )
        for edge in graph.edges
    )
    folded.edges = list(dict.fromkeys(edge for edge in renamed if edge.source != edge.target))
    folded.nodes = dict(sorted(folded.nodes.items(), key=lambda item: item[1].seq))
    return folded


def _node(record: Record) -> Node:
    return Node(record.id, record.kind, record.seq, record.seq, ((record.kind, 1),))


def _refs(ledger: Ledger, record: Record) -> Iterator[tuple[Edge, Record]]:
    for role, ref in record.all_refs():
        other = ledger.find(ref)
        if other is None:
            raise EvidenceError(
                "REF_NOT_FOUND",
                f"ref {role} names a record that is not there",
                record=record.id,
                actual=ref,
            )
        yield Edge(record.id, ref, role), other


def _referrers(ledger: Ledger, record: Record) -> Iterator[tuple[Edge, Record]]:
    seen: set[str] = set()
    for other in ledger.referrers(record.id, raw=True):
        if other.id in seen:
            continue
        seen.add(other.id)
        for role, ref in other.all_refs():
            if ref == record.id:
                yield Edge(other.id, ref, role), other


def _stretches(graph: Graph) -> list[list[str]]:
    """Groups of foldable records that edges among them connect."""
    foldable = _foldable(graph)
    near: dict[str, list[str]] = defaultdict(list)
    for edge in graph.edges:
        if edge.source in foldable and edge.target in foldable:
            near[edge.source].append(edge.target)
            near[edge.target].append(edge.source)
    left = set(foldable)
    return [_connected(name, near, left) for name in foldable if name in left]


def _foldable(graph: Graph) -> dict[str, None]:
    """The records that may be folded, in the order they were found."""
    named_from_outside = {
        edge.target for edge in graph.edges if graph.nodes[edge.source].kind not in CHAIN_KINDS
    }
    return {
        name: None
        for name, node in graph.nodes.items()
        if node.kind in CHAIN_KINDS and name != graph.root and name not in named_from_outside
    }


def _connected(start: str, near: dict[str, list[str]], left: set[str]) -> list[str]:
    left.discard(start)
    part = [start]
    for name in part:
        for other in near[name]:
            if other in left:
                left.discard(other)
                part.append(other)
    return part


def _folded_node(nodes: Iterable[Node]) -> Node:
    ordered = sorted(nodes, key=lambda node: node.seq)
    kinds = Counter(node.kind for node in ordered)
    first, last = ordered[0], ordered[-1]
    members = tuple(node.id for node in ordered)
    return Node(first.id, "folded", first.seq, last.seq, tuple(sorted(kinds.items())), members)
