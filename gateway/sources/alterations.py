"""ALTER STREAM: adds a column to a stream, or changes an option; later micro-batches use the new declaration."""

from __future__ import annotations

from gateway.access.source_rights import SourceRights
from gateway.model.inventory import Inventory
from gateway.sources.declarations import in_use, listed_views, reading_views
from gateway.state.working_copy import WorkingCopy
from grouping.compiler.plan import plan_view
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.model.explode import explode_levels
from grouping.model.query import AlterStream
from grouping.statements.declaration import check_schemas
from grouping.statements.stream_declaration import check_envelope_field, check_format, check_outer

__all__ = ["alter_stream"]


def alter_stream(
    rights: SourceRights, working: WorkingCopy, catalog: Catalog, statement: AlterStream, subscriber: str
) -> tuple[Stream, bool]:
    """Change the declaration of a stream; return the stream, and whether the declaration has changed.

    A micro-batch is evaluated with the declaration that it has pinned. Existing CQs keep their SELECT lists.

    Args:
        rights: The rights on sources.
        working: The working copy; the change becomes part of its unit of work.
        catalog: The sources that the sender may see. The changed stream replaces the old one in `catalog.whole`.
        statement: The parsed command.
        subscriber: The sender.

    Raises:
        InputError: unknown-stream, not-allowed, stream-mismatch, stream-in-use.
    """
    stream = catalog.stream(statement.name)
    rights.check_owner(subscriber, stream, "ALTER STREAM")
    added = statement.added
    if added is not None:
        _check_column(stream, added)
        altered = stream.altered((added,))
        _check_views(working, catalog, altered)
    else:
        given = {"lenient": statement.lenient, "timestamps": statement.timestamps}
        check_format(stream.format, [name for name, value in given.items() if value is not None], ())
        if statement.schemas is not None:
            _check_schemas(stream, statement.schemas)
        altered = stream.altered((), statement.lenient, statement.timestamps, statement.schemas, statement.idle_ms)
        options = [(each.lenient, each.timestamps, each.schemas, each.declared_time) for each in (stream, altered)]
        if options[0] == options[1]:
            return stream, False
    working.unit.sources.replace_stream(altered)
    catalog.whole.add(altered)
    return altered, True


def _check_column(stream: Stream, added: StreamColumn) -> None:
    """Check that a column can be added to a stream.

    Raises:
        InputError: stream-mismatch.
    """
    for column in stream.columns:
        if column.name.casefold() == added.name.casefold():
            raise InputError(
                f'column "{column.name}" exists already',
                code="stream-mismatch",
                detail=f'Stream "{stream.name}" has it with the type {column.type}.',
                hint="Choose another name.",
            )
    if not added.from_text:
        check_envelope_field(stream.format, added.name)
    else:
        check_format(stream.format, (), [added.name])
        check_outer({added.name: added.from_text}, len(explode_levels(stream.explode)) if stream.explode else 0)
    check_schemas(stream, [(added.name, added.type)])


def _check_schemas(stream: Stream, schemas: str) -> None:
    """Check that an ALTER may set the schemas of a stream.

    Raises:
        InputError: stream-mismatch.
    """
    if stream.format != "avro" or stream.framing != "confluent" or stream.registry:
        form = f"format = '{stream.format}' and framing = '{stream.framing}'"
        raise InputError(
            "option \"schemas\" is for Avro with framing = 'confluent' only",
            code="stream-mismatch",
            detail=f"The stream has {f'registry = {stream.registry!r}' if stream.registry else form}.",
            hint="Leave it out.",
        )
    check_schemas(stream.altered(schemas=schemas), [(column.name, column.type) for column in stream.columns])


def _check_views(working: WorkingCopy, catalog: Catalog, altered: Stream) -> None:
    """Check that the views over a stream stay valid with its new column.

    Raises:
        InputError: stream-in-use.
    """
    inventory = working.inventory
    streams = (altered if each.stream_id == altered.stream_id else each for each in inventory.streams.values())
    changed = Catalog(streams, inventory.tables.values(), inventory.views.values())
    for name in _readers(inventory, altered.name):
        select = inventory.views[name.casefold()].select
        if _is_valid(select, catalog.whole) and not _is_valid(select, changed):
            detail = f'With a column "{altered.columns[-1].name}", {listed_views(catalog, [name])} would not be valid.'
            raise in_use("stream", altered.name, detail, "Choose another name.")


def _readers(inventory: Inventory, name: str) -> list[str]:
    """Return the names of the views that read a source, directly or through other views."""
    found: dict[str, None] = {}
    waiting = [name]
    while waiting:
        new = [each for each in reading_views(inventory, waiting.pop()) if each not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return list(found)


def _is_valid(select: str, catalog: Catalog) -> bool:
    try:
        plan_view(select, catalog)
    except InputError:
        return False
    return True
