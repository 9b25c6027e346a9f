"""The scope of a SELECT: its visible columns, its joined tables, and the conditions of its views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from grouping.binding.bound import Bound
from grouping.binding.budget import Budget
from grouping.model.catalog import RECORD_FIELDS, Stream
from grouping.model.errors import InputError, near_name
from grouping.model.expression import TableColumn
from grouping.plan.computation import Computation, Node
from grouping.plan.row_before import EDGE
from grouping.plan.scan import Scan
from grouping.statements.tokens import clipped
from grouping.values.intervals import UNITS

__all__ = ["Scope", "BoundSource", "stream_source"]


class BoundSource(NamedTuple):
    """A source that FROM or JOIN names, with the bound trees of its columns."""

    name: str
    """The source's alias, or its own name."""
    columns: Mapping[str, tuple[str, Bound]]
    """By name in lower case: the name as shown, and its bound expression. `*` means all columns in this order."""
    fields: Mapping[str, tuple[str, Bound]]
    """The fields of the record, such as `_time`, which `*` leaves out."""
    kind: str = "stream"
    """The kind of source for messages: stream, table, view or subquery."""
    merged: frozenset[str] = frozenset()
    """Columns that USING has merged with columns of an earlier source."""
    own_name: str = ""
    """The name of the stream, table or view, which an alias hides; empty for a subquery."""

    def find(self, name: str) -> tuple[str, Bound] | None:
        """Return a column's shown name and its expression; None if there is no column of this name."""
        return self.columns.get(name) or self.fields.get(name)


class Scope(NamedTuple):
    """The names visible to the expressions of a SELECT."""

    stream: Stream | None
    """The stream of the events; None for a view or subquery that reads only a table."""
    sources: tuple[BoundSource, ...]
    budget: Budget
    """The budget of the whole query."""
    computation: Computation | None = None
    """The nodes between the stream and the group; None for a query that reads only a stream."""
    where: tuple[Bound, ...] = ()
    """The conditions of views and subqueries, and the conditions of ON that the joins do not evaluate."""
    row_keys: tuple[TableColumn, ...] = ()
    """The columns of PRIMARY KEYs that differ in the joined rows of one event; empty if an event has at most one row.
    """

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that join tables with the stream's events."""
        return self.computation.nodes if self.computation else ()

    def resolve(self, qualifier: str, name: str, *, quoted: bool = False) -> tuple[str, Bound]:
        """Return a column's shown name in its source, and its expression.

        Args:
            qualifier: The name before the dot, or "".
            name: The column, in any case.
            quoted: Whether the name is in double quotes, and may be meant as a string.

        Raises:
            InputError: ``unknown-column``: no column has this name, or several have it.
        """
        wanted = name.casefold()
        sources = self.named(qualifier)
        found = [(source, column) for source in sources if (column := source.find(wanted)) is not None]
        if not qualifier:
            found = [pair for pair in found if wanted not in pair[0].merged]
        if not found:
            raise self._unknown(qualifier, name, sources, quoted=quoted and not qualifier)
        if len(found) > 1:
            # A declared column takes precedence over a record field of the same name, since a later version of the
            # product may add record fields.
            found = [pair for pair in found if wanted in pair[0].columns] or found
        if len(found) > 1:
            names = " and ".join(f'"{source.name}"' for source, _ in found)
            raise InputError(
                f'column "{name}" is in several sources',
                code="unknown-column",
                detail=f"The sources are {names}.",
                hint=f"Write {found[0][0].name}.{name}.",
            )
        return found[0][1]

    def star(self, qualifier: str) -> Iterator[tuple[str, Bound]]:
        """Yield the shown name and the expression of each column; with a qualifier, only columns of that source."""
        for source in self.named(qualifier):
            for name, column in source.columns.items():
                if qualifier or name not in source.merged:
                    yield column

    def names(self, qualifier: str) -> bool:
        """Tell whether a source has this name."""
        wanted = qualifier.casefold()
        return any(source.name.casefold() == wanted for source in self.sources)

    def named(self, qualifier: str) -> Sequence[BoundSource]:
        """Return the sources that have a name or alias, in any case; for an empty name, all sources."""
        wanted = qualifier.casefold()
        return [source for source in self.sources if not wanted or source.name.casefold() == wanted]

    def _unknown(self, qualifier: str, name: str, sources: Sequence[BoundSource], *, quoted: bool) -> InputError:
        shown = f"{qualifier}.{name}" if qualifier else name
        if not sources:
            names = [source.name for source in self.sources]
            over = " and ".join(f'"{name}"' for name in names)
            hidden = [source for source in self.sources if source.own_name.casefold() == qualifier.casefold()]
            return InputError(
                f'column "{shown}" does not exist',
                code="unknown-column",
                detail=f"The query reads {over} only.",
                hint=f"Write {hidden[0].name}.{name}: the alias replaces the name."
                if hidden
                else near_name(qualifier, names),
            )
        columns = [[column for column, _ in source.columns.values()] for source in sources]
        listed = "; ".join(
            f'{source.kind} "{source.name}" has the columns {", ".join(some)}'
            for source, some in zip(sources, columns, strict=True)
        )
        return InputError(
            f'column "{shown}" does not exist',
            code="unknown-column",
            detail=f"{listed[0].upper()}{listed[1:]}.",
            hint=f"Double quotes are for names; write a string as '{clipped(name)}'."
            if quoted
            else self._meant(name, sources) or (None if qualifier else _written(name)),
        )

    def _meant(self, name: str, sources: Sequence[BoundSource]) -> str | None:
        """Return a hint about a column of a similar name, in these sources or in other sources."""
        for other in self.sources:
            if other not in sources and (column := other.find(name.casefold())) is not None:
                return f"Write {other.name}.{column[0]}."
        inner = [source for source in sources if source.kind in ("view", "subquery")]
        if inner and name.casefold() in RECORD_FIELDS:
            return f"A {inner[0].kind} has the columns that its SELECT lists: list {name.casefold()} there."
        if name.casefold() == EDGE.stored:
            return "The SELECT list of a query with EMIT ON ENTER or EXIT has _edge."
        if name.casefold() == "_value":
            return "Only records in JSON have _value."
        return near_name(name, [shown for source in sources for shown, _ in _all_columns(source)])


def stream_source(stream: Stream, alias: str | None) -> BoundSource:
    """Return a stream as a query names it, under an alias or by its own name."""
    scan = Scan(stream)
    columns = {column.stored.casefold(): (column.stored, column) for column in scan.columns}
    fields = {column.stored: (column.stored, column) for column in scan.record_fields}
    return BoundSource(alias or stream.name, columns, fields, own_name=stream.name)


def _written(name: str) -> str:
    """Return a hint for an unknown name that may be meant as a constant, a unit or a string."""
    if name.startswith("$"):
        return "Write the constant itself; parameters such as $1 are not supported."
    if name.upper().removesuffix("S") in UNITS:
        return f"Write the unit in quotes: '{name.upper()}'."
    return f"Write a string in single quotes: '{clipped(name)}'."


def _all_columns(source: BoundSource) -> Iterator[tuple[str, Bound]]:
    yield from source.columns.values()
    yield from source.fields.values()
