"""The limits on the costs of commands and queries."""

from __future__ import annotations

from pydantic import BaseModel, Field

__all__ = ["LimitSettings"]


class LimitSettings(BaseModel):
    """Limits on the costs of commands and queries.

    Most limits refuse a CREATE. `commands_per_second` and `statement_words` hold for all commands. `state_megabytes`
    and `last_row_days` hold for the state of running queries.
    """

    cqs_per_subscriber: int = Field(2_000_000, description="live CQs of one subscriber")
    streams_per_subscriber: int = Field(500, description="live streams that one subscriber has created")
    partitions_per_subscriber: int = Field(
        4_096,
        description="partitions of the topics of one subscriber's live streams and tables; twice this number if the "
        "topics that were created for the subscriber's dropped streams and tables are counted too",
    )
    tables_per_subscriber: int = Field(100, description="live tables that one subscriber has created")
    views_per_subscriber: int = Field(1_000, description="live views that one subscriber has created")
    joins_per_stream: int = Field(
        1_000,
        description="different computations that the live CQs of one stream need, such as joins with tables, edges "
        "and frames",
    )
    dedicated_per_subscriber: int = Field(
        250,
        description="topics created for dedicated destinations of one subscriber, including those of ended "
        "ones until they are deleted",
    )
    virtual_per_subscriber: int = Field(
        100,
        description="topics created for groups with virtual destinations of one subscriber, including those of ended "
        "groups until they are deleted",
    )
    commands_per_second: int = Field(
        0, description="commands of one subscriber a second, as an average of ten seconds; 0 for no limit"
    )
    throttled_values: int = Field(
        1_000_000,
        description="different values of BY that AT MOST keeps intervals for, of all CQs together, besides one for "
        "each CQ; beyond this number, the oldest intervals of the CQs with the most values are forgotten",
    )
    quarantined_per_subscriber: int = Field(
        20,
        description="a subscriber with this many quarantines may create no new groups; a quarantine counts until an "
        "hour after its end; 0 for no limit",
    )
    matches_per_event: float = Field(
        10_000.0, description="expected matches per event of one group; VIRTUAL destinations are exempt"
    )
    residual_micros: float = Field(
        5_000.0,
        description="expected time in µs to check conjuncts that no index decides, per event of one group; the same "
        "limit holds for reading the rows of frames, per event of one stream",
    )
    batch_milliseconds: float = Field(
        2_000.0,
        description="expected time that the groups and joins of one stream add to a micro-batch, however few events "
        "it has",
    )
    statement_words: int = Field(
        6_000,
        description="words and signs of a statement, since other commands wait while it is parsed; two "
        "constants or commas count as one, as do twelve constants of a long IN list, and two "
        "equalities of a long OR",
    )
    normal_form: int = Field(
        10_000, description="operators, columns and constants of a predicate in its normal form; an IN list is one"
    )
    top_rows: int = Field(100_000, description="rows of DIGEST TOP")
    window_ticks: int = Field(
        60, description="ticks that OVER LAST covers, since each tick counts the whole window again"
    )
    table_megabytes: int = Field(
        4_096, description="expected memory of all constant tables and joined tables in each worker, in MB"
    )
    computations: int = Field(1_000, description="stateful computations of the live CQs of all streams")
    state_megabytes: int = Field(
        2_048,
        description="memory of the state of one computation in each worker, in MB; the CQs of a larger one are stopped",
    )
    last_row_days: float = Field(
        30.0, gt=0, description="for edges, days without an event after which the last row of a key is deleted"
    )
    table_rows: int = Field(20_000_000, description="rows of a table; new queries may not join a larger one")
