"""What keeps a group from being evaluated: a fault of ours, which must not stop the other groups."""

from __future__ import annotations

import logging

from polars.exceptions import PanicException, PolarsError

from grouping.errors import InternalError
from spark_jobs.table_shape import TableShape

__all__ = ["FAULTS", "report_fault"]

log = logging.getLogger(__name__)

FAULTS = (InternalError, PolarsError, PanicException)


def report_fault(shape: TableShape) -> None:
    """Log the fault that is being handled, of a group that is left out."""
    log.exception("group not evaluated", extra={"group": shape.plan.group_id, "signature": shape.plan.signature})
