"""Matches of rows with which stays began or ended, found as edges between two values of each row.

`LastingRows.before` and `LastingRows.now` have the two values; the row is an edge for the constants between them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.constants.load import Loads
from spark_jobs.engine.match.edges import coded_edges
from spark_jobs.engine.match.table_lookup import PAIRS
from spark_jobs.engine.rows.edge_rows import KIND_BITS
from spark_jobs.engine.rows.event_column import VALUE_BYTES
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.rows.silent_rows import LastingRows

__all__ = ["lasting_matches"]


def lasting_matches(
    snapshot: Snapshot,
    rows: LastingRows,
    limit: int = PAIRS,
    loads: Loads | None = None,
    value_bytes: int = VALUE_BYTES,
) -> Iterator[Matches]:
    """Yield the matches of rows in slices, so that the memory is bounded for any number of matches.

    An enter matches an entry if the key entered with the row, and if each later row within the interval was a match for
    the entry, too. If a value satisfies the entry, each higher value satisfies the entry, too; so the lowest value
    decides for all these rows. An exit matches an entry if a stay that had lasted for the interval ended with the row.

    Args:
        snapshot: The tables of groups over one computation with keys that stay in.
        rows: The rows.
        limit: The largest number of candidate pairs in a slice, unless a single row has more.
        loads: Counts the costs of each table; None to count nothing.
        value_bytes: The largest size of a text that an expression computes; a longer text is NULL.

    Raises:
        Exception: Any exception, because predicates run code of libraries (`faults.FAULTS`).
    """
    for found in coded_edges(snapshot, rows.now, rows.before, limit, loads, value_bytes):
        event, kind = found.event >> KIND_BITS, found.event & (1 << KIND_BITS) - 1
        # The comparison may also give the opposite edge, for entries that began after the row of the earlier value.
        own = np.flatnonzero(kind == rows.edges[event])
        yield found.of_rows(event.astype(np.int32)).taken(own)
