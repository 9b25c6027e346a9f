"""The stream of a test."""

from __future__ import annotations

from typing import Literal

from grouping.model.catalog import Stream as CatalogStream
from grouping.model.errors import InputError
from grouping.model.ids import StreamId
from grouping.model.query import CreateStream
from grouping.statements.command import parse
from grouping.statements.declaration import check_schemas
from grouping.statements.stream_declaration import declared_fields

__all__ = ["Stream"]

_STREAM_ID = StreamId("s_test")


class Stream:
    """A stream with the name, the columns and the options of its CREATE STREAM.

    Example:
        >>> quotes = Stream("quotes (symbol STRING, price DOUBLE)")
        >>> quotes.name, str(quotes.declared.columns[1].type)
        ('quotes', 'DOUBLE')
    """

    def __init__(
        self,
        declaration: str,
        *,
        format: Literal["json", "avro"] = "json",  # noqa: A002 - it is CREATE STREAM's own word
        schema: str | None = None,
        framing: Literal["single-object", "confluent", "raw"] = "single-object",
    ) -> None:
        """Declare a stream.

        Args:
            declaration: ``name (column TYPE, …)``, or a whole CREATE STREAM with options, whose topic and partitions
                have no meaning here. For a whole CREATE STREAM, the other arguments are ignored.
            format: The format of the records.
            schema: The writer's schema of Avro records, as JSON.
            framing: The framing of Avro records.

        Raises:
            InputError: The gateway would refuse the CREATE STREAM.
        """
        statement = _declared(declaration, format, schema, framing)
        check_schemas(statement, statement.columns)
        self.declared = CatalogStream(
            stream_id=_STREAM_ID,
            name=statement.name,
            start_offsets={"0": 0},
            created_at="",
            **declared_fields(statement),
        )
        """The declaration, in the form that gateway and evaluator use."""

    @property
    def name(self) -> str:
        """The stream's name, for FROM."""
        return self.declared.name

    def __repr__(self) -> str:
        columns = ", ".join(f"{column.name} {column.type}" for column in self.declared.columns)
        return f"Stream({f'{self.name} ({columns})'!r})"


def _declared(declaration: str, form: str, schema: str | None, framing: str) -> CreateStream:
    text = declaration
    if not declaration.lstrip()[:6].upper() == "CREATE":
        options = [f"topic = 'events', format = {_literal(form)}"]
        if form != "json":
            options += [f"framing = {_literal(framing)}", *([] if schema is None else [f"schema = {_literal(schema)}"])]
        text = f"CREATE STREAM {declaration} WITH ({', '.join(options)})"
    statement = parse(text)
    if not isinstance(statement, CreateStream):
        raise InputError(
            "this is not a CREATE STREAM",
            code="unknown-statement",
            detail="A stream's name and columns are required here.",
        )
    if statement.from_topic:
        raise InputError(
            "FROM TOPIC needs a gateway",
            code="unsupported-query",
            detail="The columns are inferred from the topic's records.",
            hint="Declare the columns, as DESCRIBE STREAM tells them under statement.",
        )
    return statement


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
