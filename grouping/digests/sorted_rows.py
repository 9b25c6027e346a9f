"""External sorting of rows: runs are sorted in memory, written to a file, and merged."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from grouping.digests.rows import IN_MEMORY, DigestRow, RowFile, size_of

__all__ = ["sorted_rows"]

SortKey = Callable[[DigestRow], Any]
RowLimit = Callable[[Iterable[DigestRow]], Iterable[DigestRow]]


def sorted_rows(
    rows: Iterable[DigestRow], key: SortKey, cut: RowLimit, *, in_memory: int = IN_MEMORY
) -> Iterable[DigestRow]:
    """Sort rows by a key, and return the rows that a cut selects.

    Args:
        rows: The rows; they are read once.
        key: Returns the key of a row. Rows with equal keys come from one event, and keep their order.
        cut: Selects from sorted rows. A row that is selected from all rows must also be selected from each subset that
            contains the row.
        in_memory: Approximate bytes of rows that are held at once.

    Raises:
        RowsUnavailable: There is no room for the file.

    Example:
        >>> made = [DigestRow(0, offset, 5, b"{}") for offset in (3, 1, 2)]
        >>> [row.offset for row in sorted_rows(made, lambda row: row.offset, lambda some: list(some)[:2])]
        [1, 2]
    """
    held: list[DigestRow] = []
    size = 0
    runs: list[tuple[int, int]] = []
    file: RowFile | None = None
    for row in rows:
        held.append(row)
        size += size_of(row)
        if size > in_memory:
            held = list(cut(sorted(held, key=key)))
            size = sum(map(size_of, held))
            if size > in_memory // 2:
                file = file or RowFile()
                runs.append(file.write(held))
                held, size = [], 0
    held.sort(key=key)
    if file is None:
        return cut(held)
    return cut(_merged(file, runs, held, key))


def _merged(file: RowFile, runs: list[tuple[int, int]], held: list[DigestRow], key: SortKey) -> Iterator[DigestRow]:
    return heapq.merge(*(file.read(*run) for run in runs), held, key=key)
