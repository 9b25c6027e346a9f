"""Windows: reads OVER and WINDOW into a key and a frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlglot import exp

from grouping.binding.bound import Bound, Constant
from grouping.binding.intervals import counted, interval_unit, is_interval
from grouping.model.errors import InputError
from grouping.model.refusals import unsupported
from grouping.values.intervals import DAY_MICROS

__all__ = ["MOST_BACK", "FrameWindow", "named_windows", "range_milliseconds", "read_window", "row_count"]

MOST_BACK = 10
"""The largest number of rows that lag looks back."""
_MOST_ROWS = 10_000
"""The largest number of rows in a frame before the event's own row."""
_MOST_MICROS = 7 * DAY_MICROS
"""The length of the longest frame by time, in microseconds."""
_FORMS = (
    "Write ORDER BY _offset ROWS BETWEEN 19 PRECEDING AND CURRENT ROW, "
    "or ORDER BY _time RANGE BETWEEN INTERVAL '10' MINUTE PRECEDING AND CURRENT ROW."
)


class FrameWindow(NamedTuple):
    """A window, before its names are looked up."""

    partition_by: list[exp.Expr]
    column: exp.Column
    """The column in ORDER BY."""
    order: str
    """The name of that column: ``_offset`` or ``_time``."""
    unit: str
    """``ROWS`` or ``RANGE``; empty if OVER has no frame."""
    start: exp.Expr | None
    """The length of the frame before the current row; None if the frame is only the current row, or without a frame."""


def named_windows(tree: exp.Select) -> dict[str, exp.Window]:
    """Return the windows that the clause WINDOW names, by their names in lower case.

    Raises:
        InputError: ``syntax-error``: two windows have one name.
    """
    found: dict[str, exp.Window] = {}
    for window in tree.args.get("windows") or ():
        if found.setdefault(window.this.name.casefold(), window) is not window:
            raise InputError(
                f'window "{window.this.name}" is defined twice',
                code="syntax-error",
                detail="A name stands for one window.",
                hint="Rename one of them.",
            )
    return found


def read_window(node: exp.Window, named: Mapping[str, exp.Window]) -> FrameWindow:
    """Return the window that follows OVER.

    Raises:
        InputError: ``syntax-error`` for a window that WINDOW does not name; ``unsupported-query`` for other windows.
    """
    parts = {name: node.args.get(name) for name in ("partition_by", "order", "spec")}
    if (alias := node.args.get("alias")) is not None:
        base = named.get(alias.name.casefold())
        if base is None:
            raise InputError(
                f'window "{alias.name}" does not exist',
                code="syntax-error",
                detail="The clause WINDOW names windows.",
                hint=f"Add WINDOW {alias.name} AS (PARTITION BY … ORDER BY _offset).",
            )
        parts = {name: value or base.args.get(name) for name, value in parts.items()}
    if not parts["partition_by"]:
        raise unsupported(
            "a window without PARTITION BY",
            "Only the events of a key have an order.",
            "Write PARTITION BY and the columns of the stream's PARTITION KEY, or PARTITION BY _key.",
        )
    column = _order(parts["order"])
    return FrameWindow(parts["partition_by"], column, column.name.casefold(), *_frame(parts["spec"]))


def _order(order: exp.Order | None) -> exp.Column:
    ordered = order.expressions if order is not None else []
    if len(ordered) == 1 and not ordered[0].args.get("desc"):
        column = ordered[0].this
        if isinstance(column, exp.Column) and column.name.casefold() in ("_offset", "_time"):
            return column
    raise unsupported(
        "this order of a window" if ordered else "a window without ORDER BY",
        "The events of a key are ordered by arrival, or by the time of their records.",
        _FORMS,
    )


def _frame(spec: exp.WindowSpec | None) -> tuple[str, exp.Expr | None]:
    """Return the unit and the length of a frame."""
    if spec is None:
        return "", None
    unit, start, end = (spec.args.get(name) for name in ("kind", "start", "end"))
    if "UNBOUNDED" in (start, end):
        raise unsupported("an unbounded frame", "The worker would have to keep every event forever.", _FORMS)
    if spec.args.get("exclude") or "FOLLOWING" in (spec.args.get("start_side"), spec.args.get("end_side")):
        raise unsupported(
            "a frame with later events",
            "The result of an event is published at once, before later events are known.",
            _FORMS,
        )
    if unit not in ("ROWS", "RANGE") or end not in ("CURRENT ROW", None):
        raise unsupported("this frame", "A frame ends with the event's own row.", _FORMS)
    return unit, None if start == "CURRENT ROW" else start


def row_count(bound: Bound | None, what: str, least: int, most: int = _MOST_ROWS) -> int:
    """Return a constant number of rows.

    Args:
        bound: The number; None for 0.
        what: The name of the number in errors.
        least: The smallest number.
        most: The largest number.

    Raises:
        InputError: ``unsupported-query``.
    """
    value = 0 if bound is None else bound.value if isinstance(bound, Constant) else None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise unsupported(what, f"The number of rows must be a whole constant from {least} to {most:,}.")
    return value


def range_milliseconds(bound: Bound | None) -> int:
    """Return the length of a frame by time, rounded down to milliseconds, the unit of record times.

    Raises:
        InputError: ``unsupported-query``.
    """
    if bound is None:
        return 0
    unit = interval_unit(bound) if is_interval(bound) else ""
    count = counted(bound) if unit else None
    value = count.value if isinstance(count, Constant) else None
    micros = value * (DAY_MICROS if unit == "DAY" else 1) if isinstance(value, int) and unit != "MONTH" else -1
    if not 0 <= micros <= _MOST_MICROS:
        raise unsupported(
            "the length of a RANGE frame", "The length must be a constant interval from 0 to 7 days.", _FORMS
        )
    return micros // 1000
