"""Rows with the column of UNTIL: whether a row lets its key enter or leave (`grouping.plan.switch`)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from grouping.plan.switch import SWITCH, Switch
from spark_jobs.engine.match.residual import holds
from spark_jobs.engine.operators.extended_rows import ExtendedRows
from spark_jobs.engine.rows.event_column import EventColumns
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["switched_rows"]


def switched_rows(rows: RowSource, switch: Switch | None, value_bytes: int) -> RowSource:
    """Return rows with the column `SWITCH`; without conditions for this column, return the rows unchanged.

    Args:
        rows: The rows.
        switch: The conditions.
        value_bytes: The largest number of bytes of a text that a condition computes; a longer text is NULL.

    Raises:
        Exception: Any exception, since conditions run code of libraries (`faults.FAULTS`).
    """
    if switch is None:
        return rows
    columns, every = EventColumns(rows, value_bytes), np.arange(rows.count)
    enters, leaves = (
        holds(conditions, columns, every) if conditions and rows.count else np.ones(rows.count, np.bool_)
        for conditions in (switch.enters, switch.leaves)
    )
    values = pa.array(np.where(leaves, -1, 1).astype(np.int8), mask=~(enters | leaves))
    return ExtendedRows(rows, every, {SWITCH.reference: (SWITCH.type, values)})
