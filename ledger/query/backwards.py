"""Sealed edges from their ends: which records name one, by places alone."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ledger.query.sealed import read
from ledger.query.segments import invalid

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterable

Link = tuple[int, int, str]
"""Source, target, role."""

NOWHERE = -1
_SCHEMA = pa.schema(
    [
        ("seq", pa.int64()),
        ("target_seq", pa.int64()),
        ("role", pa.dictionary(pa.int32(), pa.string())),
    ]
)


class Backwards:
    """Who names a record.

    Args:
        files: the files of edges of all segments.
        later: links of what is not sealed.
    """

    def __init__(self, files: Iterable[mmap.mmap], later: Iterable[Link]) -> None:
        parts = [read(data, list(_SCHEMA.names), ["role"]) for data in files]
        table = pa.concat_tables([_SCHEMA.empty_table(), *parts]).filter(
            pc.field("target_seq").is_valid()
        )
        table = table.unify_dictionaries().combine_chunks()
        # by place of what is named, and of equal ones in the order of the ledger
        order = pc.sort_indices(table, [("target_seq", "ascending"), ("seq", "ascending")])
        table = table.take(order)
        self._sources = numbers(table["seq"], "q")
        self._targets = numbers(table["target_seq"], "q")
        self._words, self._roles = coded(table["role"])
        self._later: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for source, target, role in later:
            self._later[target].append((source, role))

    def steps(self, seq: int) -> list[tuple[int, str]]:
        """(source, role) of what names the record at a seq."""
        targets = self._targets
        row = bisect_left(targets, seq)
        found: list[tuple[int, str]] = []
        while row < len(targets) and targets[row] == seq:
            found.append((self._sources[row], self._words[self._roles[row]]))
            row += 1
        return found + self._later.get(seq, [])


def numbers(column: Any, code: Literal["i", "q"]) -> memoryview:
    """A column without nulls as numbers."""
    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if array.offset:
        raise invalid("a column does not begin at its beginning")
    plain = memoryview(array.buffers()[1]).cast("B")
    return plain.cast(code)[: len(array)]


def coded(column: Any) -> tuple[list[str], memoryview]:
    """A column of few words: the words, and which one each row has."""
    array = column.unify_dictionaries().combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0)
    return array.dictionary.to_pylist(), numbers(array.indices, "i")
