"""Values of a table's records that are no JSON objects."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from grouping.model.catalog import StreamColumn
from spark_jobs.engine.operators.lookup_join.replica import Replica
from tests.unit.replica.table_records import SETTINGS, MemoryLog, table


def test_a_value_that_is_no_object_leaves_the_row() -> None:
    """A table with a column from the key or from a path takes only objects, as other tables do."""
    placed = (StreamColumn("id", "STRING", "KEY"), StreamColumn("n", "INT", "'$.n'"))
    of = msgspec.structs.replace(table("id STRING", "n INT", key=["id"]), columns=placed)
    values = b' {"n": 1}', b"", b"null", b"5", b"[1]", b'"x"'
    letters: list[object] = []
    replica = Replica(
        of, MemoryLog([{offset: (b"a", value) for offset, value in enumerate(values)}]), SETTINGS, letters.append
    )
    view = replica.at({0: len(values)})
    assert [1] == view.take("n", view.find(("id",), [pa.array(["a"])])[1]).to_pylist()
    assert len(letters) > 0
