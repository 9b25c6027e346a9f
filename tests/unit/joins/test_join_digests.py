"""Digests of matches over joins in which an event meets several rows: each row is in one digest, once."""

from __future__ import annotations

from array import array

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gateway.testing import Stream, Table, digests
from grouping.digests.cursor import Cursor
from grouping.digests.gather import DigestQuestion, gather
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_matches import pack_pending
from tests.unit.digests.pending import STORE, Partition

_QUOTES = Stream("quotes (symbol STRING, n BIGINT)")
_OWNERS = Table(
    "owners (owner STRING, symbol STRING, shares INT, PRIMARY KEY (owner, symbol))",
    [{"owner": owner, "symbol": "INTC", "shares": shares} for owner, shares in (("rose", 3), ("abe", 7), ("kim", 7))],
)
_ROWS = [{"symbol": "INTC", "n": 1}, {"symbol": "SAP", "n": 2}, {"symbol": "INTC", "n": 3}]
_SELECT = "SELECT n, o.owner, shares FROM quotes q JOIN owners o ON q.symbol = o.symbol WHERE n > 0 EVERY '1 minute'"
_Rows = list[tuple[int, int]]
"""By match: the offset of its event, and its number among the rows of this event."""


def _digest(clause: str) -> tuple[int, list[tuple[int, str]]]:
    [found] = digests(f"{_SELECT} DO PUBLISH DIGEST {clause}", _QUOTES, _ROWS, tables=[_OWNERS])
    return found["count"], [(row["n"], row["owner"]) for row in found["rows"]]


def test_a_digest_has_all_rows_of_an_event() -> None:
    """They stand in the order of the table's keys; of equal ones TOP keeps the first, and LATEST the last."""
    assert _digest("ALL") == (6, [(n, owner) for n in (1, 3) for owner in ("abe", "kim", "rose")])
    assert _digest("COUNT") == (6, [])
    assert _digest("TOP 3 BY shares") == (6, [(1, "abe"), (1, "kim"), (3, "abe")])
    assert _digest("LATEST BY shares") == (6, [(3, "rose"), (3, "kim")])


def _packed(rows: _Rows) -> bytes:
    offsets, numbers = np.array(rows, np.int64).reshape(-1, 2).T
    count = len(rows)
    ids = np.frombuffer(STORE * count, np.uint8).reshape(-1, 12)
    places = (np.zeros(count, np.int32), offsets, np.full(count, 5))
    values = [b"%d/%d" % each for each in rows]
    return pack_pending("s", (1, 1), ids, places, np.arange(count, dtype=np.int32), values, numbers)


_MATCHES = st.lists(st.integers(1, 4), min_size=1, max_size=8).map(
    lambda counts: [(offset, number) for offset, count in enumerate(counts) for number in range(count)]
)


@given(_MATCHES, st.data())
def test_rows_that_a_replay_writes_again_count_once(rows: _Rows, data: st.DataObject) -> None:
    """A batch dies anywhere, between two rows of an event too, and is replayed in records of other sizes."""
    log: list[bytes] = []
    lives = data.draw(st.lists(st.integers(0, len(rows)), max_size=3), "where batches die")
    for written in (*lives, len(rows)):
        begin = 0
        while begin < written:
            end = data.draw(st.integers(begin + 1, written))
            log.append(_packed(rows[begin:end]))
            begin = end
    places = MatchPlaces(0, array("q", range(len(log))))
    question = DigestQuestion(STORE, places, Cursor(), ((1, 1, [(None, None)]),), 10, {"0": len(rows)})
    [found] = gather(Partition(log).log, [question])
    assert [row.body for row in found.rows] == [b"%d/%d" % each for each in rows]
    assert found.repeats == sum(lives)
