"""What a record rests on, or what rests on it, walked over sealed edges: numbers only, until it is known which records are shown.

A closure of fifty thousand records is mostly one chain that is folded away. So the walk and the folding use places
in the ledger; the few records that are left are read from the ledger and certified by their hash.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from ledger.errors import EvidenceError, UsageError
from ledger.query.backwards import NOWHERE, Backwards, Link, coded, numbers
from ledger.query.lineage import CHAIN_KINDS, FOLD_FROM, Direction, Edge, Graph, Node
from ledger.query.names import EDGES, RECORDS
from ledger.query.sealed import Sealed, read
from ledger.suspects import first_seq, windows_in

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterator

    from ledger.book import Ledger
    from ledger.query.segments import History, Segment
    from ledger.record import Record


def folded(
    ledger: Ledger,
    root: Record,
    history: History,
    direction: Direction = "up",
    fold_from: int = FOLD_FROM,
) -> Graph | None:
    """What `fold(walk(ledger, root, direction))` gives, from segments; None where they cannot tell.

    Of the members of a folded stretch only those are named that a revocation may have made suspect.

    Args:
        ledger: where the records are.
        root: where to start.
        history: where segments lie.
        direction: `up` for what it rests on, `impact` for what rests on it.
        fold_from: how long a stretch must be to be folded.

    Raises:
        EvidenceError: `REF_NOT_FOUND`, a record names one that is not there.
    """
    try:
        sealed = Sealed.opened(history, ledger.store)
        if sealed is None:
            return None
        walked = _Walk(ledger, sealed, direction)
        walked.walk(root)
        return walked.graph(root, fold_from)
    except (UsageError, EvidenceError) as error:
        if error.code in ("SEGMENTS_DUE", "SEGMENT_INVALID", "UNSAFE_PATH"):
            return None
        raise


class _Stretch:
    """One segment's kinds and edges, by place; numbers as they lie in Arrow's own buffers."""

    def __init__(self, start: int, kinds: mmap.mmap, edges: mmap.mmap | None) -> None:
        self._start = start
        self._kind_words, self._kinds = coded(read(kinds, ["kind"], ["kind"])["kind"])
        self._role_words: list[str] = []
        self._sources = self._roles = self._targets = memoryview(b"")
        if edges is not None:
            table = read(edges, ["seq", "target_seq", "role"], ["role"])
            self._sources = numbers(table["seq"], "q")  # in the order of the ledger
            self._targets = numbers(pc.fill_null(table["target_seq"], NOWHERE), "q")
            self._role_words, self._roles = coded(table["role"])

    def kind(self, seq: int) -> str:
        """The kind of the record at a seq."""
        return self._kind_words[self._kinds[seq - self._start]]

    def steps(self, seq: int) -> list[tuple[int, str]]:
        """(target, role) of what the record at a seq names."""
        sources, targets, roles, words = (
            self._sources,
            self._targets,
            self._roles,
            self._role_words,
        )
        row = bisect_left(sources, seq)
        found: list[tuple[int, str]] = []
        while row < len(sources) and sources[row] == seq:
            found.append((targets[row], words[roles[row]]))
            row += 1
        return found


class _Walk:
    """A closure as places and links."""

    def __init__(self, ledger: Ledger, sealed: Sealed, direction: Direction) -> None:
        self._ledger = ledger
        self._direction = direction
        windows = windows_in(ledger.of_kind("key.revoked", raw=True))
        # from here on a folded record may be suspect, and the reason is wanted, so it must be named
        self._named_from = first_seq(windows) if windows else None
        self._stop = sealed.stop
        self._edges = {item.start: data for item, data in sealed.files_of(EDGES)}
        self._files = sealed.files_of(RECORDS)
        self._stretches: list[_Stretch | None] = [None] * len(self._files)
        # every segment begins at a multiple of the least one's size
        self._unit = min((item.stop - item.start for item, _ in self._files), default=1)
        self._number = [
            number for number, (item, _) in enumerate(self._files) for _ in range(self._units(item))
        ]
        self._backwards: Backwards | None = None
        self.kinds: dict[int, str] = {}
        self.links: list[Link] = []

    def _units(self, item: Segment) -> int:
        return (item.stop - item.start) // self._unit

    def walk(self, root: Record) -> None:
        """Everything that a record rests on, or that rests on it."""
        if self._direction == "impact":
            self._backwards = Backwards(self._edges.values(), self._later())
        queue = [root.seq]
        seen = {root.seq}
        for seq in queue:
            for link in self._links(seq):
                self.links.append(link)
                far = link[0] if self._backwards else link[1]
                if far not in seen:
                    seen.add(far)
                    queue.append(far)

    def _links(self, seq: int) -> list[Link]:
        if self._backwards is None:
            return [(seq, target, role) for target, role in self._steps(seq)]
        sealed = seq < self._stop
        self.kinds[seq] = self._part_of(seq).kind(seq) if sealed else self._record(seq).kind
        return [(source, seq, role) for source, role in self._backwards.steps(seq)]

    def _later(self) -> Iterator[Link]:
        """Links of what is not sealed."""
        size, _ = self._ledger.store.tail()
        for seq in range(self._stop, size):
            for target, role in self._new_steps(seq):
                yield seq, target, role
        self.kinds.clear()  # of the closure only

    def _steps(self, seq: int) -> list[tuple[int, str]]:
        if seq >= self._stop:
            return self._new_steps(seq)
        part = self._part_of(seq)
        self.kinds[seq] = part.kind(seq)
        found = part.steps(seq)
        for target, role in found:
            if target == NOWHERE:
                raise _missing(seq, role)
        return found

    def _new_steps(self, seq: int) -> list[tuple[int, str]]:
        """Those of a record that is not sealed."""
        record = self._record(seq)
        self.kinds[seq] = record.kind
        found: list[tuple[int, str]] = []
        for role, ref in record.all_refs():
            other = self._ledger.find(ref)
            if other is None:
                raise _missing(seq, role)
            found.append((other.seq, role))
        return found

    def _part_of(self, seq: int) -> _Stretch:
        number = self._number[seq // self._unit]
        part = self._stretches[number]
        if part is None:
            item, kinds = self._files[number]
            part = _Stretch(item.start, kinds, self._edges.get(item.start))
            self._stretches[number] = part
        return part

    def _record(self, seq: int) -> Record:
        record = self._ledger.at(seq)
        if record is None:
            raise EvidenceError("REF_NOT_FOUND", f"there is no record at {seq}", seq=seq)
        return record

    def graph(self, root: Record, fold_from: int) -> Graph:
        """The closure with its long stretches folded."""
        parts = [part for part in self._parts(root.seq) if len(part) >= fold_from]
        stands_for: dict[int, int] = {}
        for part in parts:
            stands_for.update(dict.fromkeys(part, part[0]))
        shown = {part[0]: self._folded_node(part) for part in parts}
        for seq in self.kinds:
            if seq not in stands_for:
                shown[seq] = self._node(seq)
        graph = Graph(root.id, self._direction)
        graph.nodes = {shown[seq].id: shown[seq] for seq in sorted(shown)}
        kept: dict[Link, None] = {}
        for source, target, role in self.links:
            near, far = stands_for.get(source, source), stands_for.get(target, target)
            if near != far:
                kept[near, far, role] = None
        graph.edges = [Edge(shown[near].id, shown[far].id, role) for near, far, role in kept]
        return graph

    def _node(self, seq: int) -> Node:
        record = self._record(seq)
        return Node(record.id, record.kind, seq, seq, ((record.kind, 1),))

    def _folded_node(self, part: list[int]) -> Node:
        kinds = Counter(self.kinds[seq] for seq in part)
        first = self._record(part[0])
        members = tuple(self._record(seq).id for seq in part if self._may_be_suspect(seq))
        counts = tuple(sorted(kinds.items()))
        return Node(first.id, "folded", first.seq, part[-1], counts, members)

    def _may_be_suspect(self, seq: int) -> bool:
        return self._named_from is not None and seq >= self._named_from

    def _parts(self, root: int) -> list[list[int]]:
        """Foldable records that links among them connect, each group in the order of the ledger."""
        kinds = self.kinds
        chain = {seq for seq, kind in kinds.items() if kind in CHAIN_KINDS and seq != root}
        chain -= {target for source, target, _ in self.links if kinds[source] not in CHAIN_KINDS}
        leader = {seq: seq for seq in chain}
        for source, target, _ in self.links:
            if source in chain and target in chain:
                _join(leader, source, target)
        groups: dict[int, list[int]] = {}
        for seq in sorted(chain):
            groups.setdefault(_leader(leader, seq), []).append(seq)
        return list(groups.values())


def _leader(leader: dict[int, int], seq: int) -> int:
    while leader[seq] != seq:
        leader[seq] = leader[leader[seq]]
        seq = leader[seq]
    return seq


def _join(leader: dict[int, int], one: int, other: int) -> None:
    first, second = _leader(leader, one), _leader(leader, other)
    if first != second:
        leader[max(first, second)] = min(first, second)


def _missing(seq: int, role: str) -> EvidenceError:
    return EvidenceError(
        "REF_NOT_FOUND", f"ref {role} names a record that is not there", seq=seq, field=role
    )
