"""CREATE TABLE and DROP TABLE. A table has the latest row for each key of a topic; queries join it with events."""

from __future__ import annotations

import msgspec

from gateway.access.source_rights import SourceRights
from gateway.model.records import instant
from gateway.registry.computations import Computations
from gateway.sources.declarations import (
    Declaration,
    check_unread,
    declared_columns,
    describe_topic,
    reading_views,
)
from gateway.sources.topics_read import MadeTopics, admitted_topic
from gateway.state.working_copy import WorkingCopy
from gateway.topics.topic_desk import TopicQuestions
from grouping.model.catalog import Catalog
from grouping.model.query import CreateTable
from grouping.model.source_access import Access
from grouping.model.table import Table
from grouping.settings.settings import Settings

__all__ = ["create_table", "describe_table", "drop_table", "exactness"]

_LAG = "min.compaction.lag.ms"
_KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""The configuration of a topic that the gateway makes for a table: all records stay. The topic is not compacted, since
a compacted topic refuses records without a key."""


def create_table(
    declaration: Declaration, topics: TopicQuestions, made: MadeTopics, statement: CreateTable
) -> tuple[Table, str | None]:
    """Declare a table, which is read from the beginning of its topic.

    Args:
        declaration: The command and the live sources.
        topics: Kafka's topics. While Kafka has not answered, the command waits (`NotYet`).
        made: The topics that were made for subscribers; a topic that is made here is added.
        statement: The parsed command.

    Returns:
        The table, and the warning of `exactness`.

    Raises:
        InputError: stream-exists, stream-mismatch, not-allowed, quota-exceeded.
        NotYet: Kafka has not answered.
    """
    form, origin = admitted_topic(declaration, topics, made, statement, _KEPT), declaration.origin
    table = Table(
        table_id=origin.source_id("t", statement.name),
        name=statement.name,
        columns=declared_columns(statement),
        key=statement.key,
        topic=statement.topic,
        format=statement.format,
        created_at=instant(origin.accepted_ms),
        avro_schema=statement.schema,
        framing=statement.framing,
        topic_id=form.topic_id,
        owner=origin.owner,
        access=Access(statement.access),
        decimals=statement.decimals or "" if statement.format == "debezium-json" else msgspec.UNSET,
        timestamps=statement.timestamps or msgspec.UNSET,
    )
    warning = exactness(declaration.settings, topics, table)
    declaration.working.unit.sources.put_table(table)
    declaration.catalog.whole.add(table)
    return table, warning


def exactness(settings: Settings, topics: TopicQuestions, table: Table) -> str | None:
    """Return a warning if a replayed micro-batch may find other rows of a table than in its first run; else None.

    A replay must read the table as it was in the first run. Compaction may have removed rows that were replaced since
    then. Deletion by age or size may have removed even current rows.
    """
    config = topics.configs([table.topic]).get(table.topic)
    if config is None:
        return None  # the topic does not exist; the table's state reports this
    policies = config.get("cleanup.policy", "delete")
    if "delete" in policies and (config.get("retention.ms") != "-1" or config.get("retention.bytes", "-1") != "-1"):
        return "Kafka deletes records of its topic by age or size: rows vanish although nobody removed them."
    lag = int(config.get(_LAG, "0"))
    if "compact" in policies and lag < settings.streams.compaction_lag_ms:
        return (
            f"Its topic is compacted after {lag} ms ({_LAG}): a batch that is evaluated again after this time may miss "
            "rows that have changed since."
        )
    return None


def drop_table(
    rights: SourceRights,
    working: WorkingCopy,
    catalog: Catalog,
    computations: Computations,
    name: str,
    subscriber: str,
) -> Table:
    """Drop a table that no CQ and no view reads.

    Micro-batches may still join the table, for CQs that were dropped shortly before.

    Raises:
        InputError: unknown-stream, not-allowed, stream-in-use.
    """
    table = catalog.table(name)
    rights.check_owner(subscriber, table, "DROP TABLE")
    cqs, views = computations.cqs(table.table_id), reading_views(working.inventory, table.name)
    check_unread(catalog, "table", table.name, cqs, views)
    working.unit.sources.remove_table(table.table_id, working.idle_groups(table.table_id))
    catalog.whole.remove(table)
    return table


def describe_table(table: Table, warning: str | None = None) -> dict[str, object]:
    """Return the description of a table for the replies to CREATE TABLE, DESCRIBE TABLE and SHOW TABLES."""
    decimals = table.encoding.decimals if table.format == "debezium-json" else ""
    return {
        "table": table.name,
        "id": table.table_id,
        **describe_topic(table),
        **({"decimals": decimals} if decimals else {}),
        **({"timestamps": table.timestamps} if table.timestamps else {}),
        "primary_key": list(table.key),
        "created_at": table.created_at,
        **({} if warning is None else {"warning": warning}),
    }
