"""The limits of a CREATE's costs."""

from __future__ import annotations

from pydantic import BaseModel, Field

__all__ = ["LimitSettings"]


class LimitSettings(BaseModel):
    """Limits of a CREATE's costs."""

    cqs_per_subscriber: int = Field(2_000_000, description="live CQs of one subscriber")
    streams_per_subscriber: int = Field(500, description="live streams that one subscriber has created")
    partitions_per_subscriber: int = Field(
        4_096,
        description="partitions of their topics and those of tables; topics made for dropped ones may have as many",
    )
    tables_per_subscriber: int = Field(100, description="live tables that one subscriber has created")
    views_per_subscriber: int = Field(1_000, description="live views that one subscriber has created")
    joins_per_stream: int = Field(
        1_000, description="different joins with tables, keys of edges, and frames that live CQs of a stream make"
    )
    dedicated_per_subscriber: int = Field(
        250, description="topics of dedicated destinations that one subscriber had made, with ended ones that stay"
    )
    virtual_per_subscriber: int = Field(
        100, description="topics of groups with virtual destinations that one subscriber had made, with ended ones"
    )
    commands_per_second: int = Field(
        0, description="commands of one subscriber a second, on the average of ten; 0 for any number"
    )
    quarantined_per_subscriber: int = Field(
        20, description="quarantines of a subscriber within the hour, at which it makes no new groups; 0 for any number"
    )
    matches_per_event: float = Field(10_000.0, description="expected matches per event of one group, unless VIRTUAL")
    residual_micros: float = Field(
        5_000.0,
        description="expected time to check conjuncts that no index decides, per event of one group, in µs; and to "
        "read the rows of frames, per event of one stream",
    )
    batch_milliseconds: float = Field(
        2_000.0, description="expected time of a micro-batch of one stream whatever its events, by its groups and joins"
    )
    statement_words: int = Field(
        6_000,
        description="words and signs of a statement, of which two constants or commas count as one, twelve constants "
        "of a long list after IN, and two equalities of a long OR of them; others' commands wait while it is read",
    )
    normal_form: int = Field(
        10_000, description="operators, columns and constants of a predicate in its normal form; an IN list is one"
    )
    top_rows: int = Field(100_000, description="rows that DIGEST TOP shows, at most")
    window_ticks: int = Field(60, description="ticks that OVER LAST counts: each tick counts the whole window anew")
    table_megabytes: int = Field(
        4_096, description="expected memory of all constant tables and joined tables in each worker, in MB"
    )
    computations: int = Field(1_000, description="computations of live CQs that keep a state, of all streams together")
    state_megabytes: int = Field(
        2_048, description="memory of the state of one computation in each worker, in MB; beyond it its CQs are stopped"
    )
    last_row_days: float = Field(
        30.0, gt=0, description="days without an event after which the last row of a key is forgotten, for edges"
    )
    table_rows: int = Field(20_000_000, description="rows of a table that further queries may join")
