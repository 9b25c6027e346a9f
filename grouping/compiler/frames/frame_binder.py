"""Binding of SELECT, QUALIFY and UNTIL: a call with OVER becomes a column that is computed over a frame."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from grouping.binding.bind import Binder
from grouping.binding.bound import Bound, Constant, nodes, without_positions
from grouping.binding.constants import settle
from grouping.binding.operands import boolean
from grouping.binding.scope import Scope
from grouping.compiler.aggregate_binder import AggregateBinder
from grouping.compiler.aggregate_call import aggregate_call
from grouping.compiler.edge_key import check_covered, key_column
from grouping.compiler.frames.window import (
    MOST_BACK,
    FrameWindow,
    named_windows,
    range_milliseconds,
    read_window,
    row_count,
)
from grouping.compiler.normalize import normalize_value
from grouping.compiler.order import order
from grouping.model.expression import Column
from grouping.model.refusals import mismatch, unsupported
from grouping.plan.aggregate import AggregateValue
from grouping.plan.frame_value import LAG, FrameValue
from grouping.plan.row_before import EDGE
from grouping.statements.select_text import FUNCTION_MARK

__all__ = ["FrameBinder"]

_AGGREGATES = frozenset("count sum avg min max stddev_pop stddev_samp var_pop var_samp first last".split())
_LISTED = "Window functions are lag, count, sum, avg, min, max, stddev, variance, first and last."


class FrameBinder(Binder):
    """Binds the SELECT list, QUALIFY and UNTIL of a query with window functions."""

    def __init__(self, scope: Scope, tree: exp.Select, shown: Scope) -> None:
        """Begin without window functions.

        Args:
            scope: FROM.
            tree: The query.
            shown: FROM with the fields that only the SELECT list can name (`edge_key.with_edge`).
        """
        super().__init__(shown)
        self._plain = Binder(scope)
        self._windows = named_windows(tree)
        self._aliases: Mapping[str, Bound] = {}
        self.by: frozenset[Column] = frozenset()
        """The columns of PARTITION BY; empty until the first window is bound."""
        self.values: list[FrameValue] = []
        """The window functions that are bound so far."""

    def condition(self, node: exp.Expr, clause: str, aliases: Mapping[str, Bound]) -> Bound:
        """Return the condition of QUALIFY or UNTIL; a name means a column of FROM, or else an item of the SELECT list.

        Args:
            node: The condition.
            clause: ``QUALIFY`` or ``UNTIL``.
            aliases: The items by their names in lower case.

        Raises:
            InputError: ``type-mismatch`` for a value that is no condition; ``unsupported-query`` for ``_edge``.
        """
        self._aliases = aliases
        bound = boolean(self.bind(node), clause)
        declared = any(source.find(EDGE.stored) is not None for source in self._plain.scope.sources)
        if not declared and any(each == EDGE for each in nodes(bound)):
            detail = f"{clause} is decided before edges are known."
            raise unsupported(f"_edge in {clause}", detail, "Write EMIT ON ENTER, or EMIT ON EXIT.")
        return bound

    def _bind(self, node: exp.Expr) -> Bound:
        if isinstance(node, exp.Window):
            return self._windowed(node)
        if isinstance(node, exp.Column) and not node.table and (name := node.name.casefold()) in self._aliases:
            if not any(source.find(name) is not None for source in self.scope.sources):
                return self._aliases[name]
        return super()._bind(node)

    def _windowed(self, node: exp.Window) -> Bound:
        if node.this.find(exp.Window) is not None:
            raise unsupported("a window function within a window function", "Its argument reads single events.")
        if node.this.find(exp.IgnoreNulls, exp.RespectNulls) is not None:
            raise unsupported(
                "IGNORE NULLS or RESPECT NULLS",
                "lag, first and last return NULL where the row has NULL.",
                "Write first(price) FILTER (WHERE price IS NOT NULL); for lag write WHERE price IS NOT NULL, which "
                "leaves other events out of the frames.",
            )
        window = read_window(node, self._windows)
        self._check_order(window)
        called = node.this
        name = str(called.this).removeprefix(FUNCTION_MARK).casefold() if isinstance(called, exp.Anonymous) else ""
        value = self._lag(called, window) if name == LAG else self._aggregate(called, name, window)
        self._take_key(window)
        self.values.append(value)
        return value.column

    def _check_order(self, window: FrameWindow) -> None:
        """Check that ORDER BY names the record's own field, not a declared column of the same name."""
        found, stream = self._plain.bind(window.column), self.scope.stream
        assert stream is not None, "a table alone was refused"
        is_named = isinstance(found, Column) and found.reference == window.order
        if not (is_named and window.order in stream.record_fields):
            raise unsupported(
                f'ORDER BY a column named "{window.order}"',
                "The events of a key are ordered by arrival, or by the time of their records.",
                f"Give the column another name, and write ORDER BY {window.order} for the record's own field.",
            )

    def _lag(self, called: exp.Anonymous, window: FrameWindow) -> FrameValue:
        arguments = called.expressions
        if not 1 <= len(arguments) <= 2:
            raise unsupported("lag with a default value", "lag takes a column, and how many rows it looks back.")
        if window.unit or window.order != "_offset":
            hint = "Write lag(price) OVER (PARTITION BY symbol ORDER BY _offset)."
            raise unsupported("this window of lag", "The row before is the row that came before.", hint)
        back = (
            row_count(self._plain.bind(arguments[1]), "this second argument of lag", 1, MOST_BACK)
            if arguments[1:]
            else 1
        )
        bound = self._plain.bind(arguments[0])
        if isinstance(bound, Constant) and bound.value is None:
            raise unsupported("lag of NULL", "NULL has no type.", "Name a column.")
        if not bound.type.is_ordered:
            raise unsupported(
                f"lag of {bound.type}", "Only values without parts are kept.", "Name a field or an element."
            )
        (canonical,), _ = order((without_positions(normalize_value(bound)),))
        return FrameValue(LAG, (settle(canonical),), str(bound.type), rows=back)

    def _aggregate(self, called: exp.Expr, name: str, window: FrameWindow) -> FrameValue:
        if aggregate_call(called) is None:
            raise unsupported(f'"{name}" as a window function', _LISTED)
        binder = AggregateBinder(self._plain.scope, ())
        bound = binder.bind(called)
        value = binder.aggregates.get(bound.stored) if isinstance(bound, Column) else None
        if value is None or value.function not in _AGGREGATES:
            raise unsupported(f'"{name}" as a window function', _LISTED)
        if not window.unit:
            raise unsupported(
                "a window without a frame",
                "Without a frame, Spark would read all earlier events of the key.",
                "Add ROWS 19 PRECEDING after ORDER BY _offset, or RANGE INTERVAL '10' MINUTE PRECEDING after "
                "ORDER BY _time.",
            )
        if window.order != ("_offset" if window.unit == "ROWS" else "_time"):
            raise unsupported(
                f"{window.unit} after ORDER BY {window.order}",
                "ROWS counts events in the order of _offset, and RANGE compares their _time.",
                f"Write ORDER BY {'_offset' if window.unit == 'ROWS' else '_time'}.",
            )
        start = None if window.start is None else self._plain.bind(window.start)
        rows = row_count(start, "the length of a ROWS frame", 0) if window.unit == "ROWS" else None
        milliseconds = range_milliseconds(start) if window.unit == "RANGE" else None
        return _framed(value, rows, milliseconds)

    def _take_key(self, window: FrameWindow) -> None:
        columns = set()
        for node in window.partition_by:
            if not isinstance(node, exp.Column):
                raise unsupported("an expression in PARTITION BY", "PARTITION BY takes columns.", "Name a column.")
            columns.add(key_column(*self._plain.column(node)))
        assert self.scope.stream is not None, "a table alone was refused"
        check_covered(self.scope.stream, {column.stored for column in columns}, "PARTITION BY")
        if self.by and self.by != columns:
            raise unsupported(
                "a second PARTITION BY in one query",
                "All window functions of a query have the same PARTITION BY.",
                "Write two queries.",
            )
        self.by = frozenset(columns)


def _framed(value: AggregateValue, rows: int | None, milliseconds: int | None) -> FrameValue:
    if any(not argument.type.is_ordered for argument in value.args):  # type: ignore[union-attr]  # no slot stands here
        raise mismatch(f'an argument of "{value.function}" has parts', "Only values without parts are kept.")
    return FrameValue(
        value.function,
        value.args,
        value.type_text,
        value.distinct,
        value.condition,
        rows,
        milliseconds,
    )
