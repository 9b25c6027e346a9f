"""Makes a table from given rows, in the form in which a worker holds tables in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from grouping.model.table import Table
from grouping.settings.settings import Settings
from spark_jobs.engine.operators.lookup_join.replica import Replica
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from spark_jobs.engine.rows.headers import unpacked_headers

__all__ = ["table_of"]

_SETTINGS = Settings.model_construct()
"""The default settings, without those of the environment."""


def table_of(declared: Table, records: Sequence[bytes]) -> TableView:
    """Return a table with given rows.

    Args:
        declared: The declaration of the table.
        records: The values of records in the table's format. A later record replaces an earlier record with the same
            PRIMARY KEY.

    Raises:
        ValueError: A record does not fit the table. In the evaluator, the record would become a dead letter.
    """

    def refuse(letters: pa.RecordBatch) -> None:
        headers = dict(unpacked_headers(letters["headers"][0].as_py()))
        number = int(headers["source"].rpartition(b"/")[2])
        raise ValueError(f"row {number} of table {declared.name}: {headers['detail'].decode()}")

    return Replica(declared, _WholeTopic(records), _SETTINGS, refuse).at({0: len(records)})


class _WholeTopic:
    """The topic of the table, with one partition. All records are in memory."""

    def __init__(self, records: Sequence[bytes]) -> None:
        self._records = records

    def read(self, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
        count = len(self._records)
        yield pa.record_batch(
            {
                "key": pa.nulls(count, pa.binary()),
                "value": pa.array(self._records, pa.binary()),
                "partition": pa.array([0] * count, pa.int32()),
                "offset": pa.array(range(count), pa.int64()),
            }
        )
