"""The settings of an evaluator."""

from __future__ import annotations

import re
from typing import Self

from pydantic import BaseModel, Field, SecretStr, model_validator

from grouping.settings.masked_options import Options

__all__ = ["EvaluatorSettings"]

_NAME = re.compile("[A-Za-z0-9_-]{1,40}")


class EvaluatorSettings(BaseModel):
    """The Spark application."""

    name: str = Field(
        "",
        description="name of this evaluator, if it has streams of its own; empty for the evaluator of all "
        "other streams",
    )
    streams: dict[str, str] = Field(
        {},
        description="the streams of each named evaluator (JSON): names of streams or shell patterns, "
        "separated by commas; the unnamed evaluator has all others. Gateway and evaluators need "
        "the same value",
    )
    master: str = Field("local[2]", description="Spark's master")
    checkpoints: str = Field(
        "",
        description="folder in which Spark keeps the offsets of streams, or a URL such as `s3a://bucket/cq` "
        "or `hdfs://name/cq`; empty: in `CQ_DATA`",
    )
    events_per_batch: int = Field(250_000, description="source records in one micro-batch, at most")
    driver_host: str = Field(
        "",
        description="host name at which executors reach the driver; empty: loopback for a local master, else "
        "Spark's choice",
    )
    bind_address: str = Field(
        "", description="address on which the driver listens; empty: as for `CQ_EVALUATOR_DRIVER_HOST`"
    )
    spark: Options = Field(
        {}, repr=False, description="further Spark options (JSON); those that the evaluator itself sets are refused"
    )
    spark_secret: SecretStr = Field(
        SecretStr(""),
        description="secret shared by the processes of a Spark cluster, for authentication and encryption "
        "between them; empty for neither",
    )
    driver_memory: str = Field("1g", description="heap of the Spark driver")
    value_bytes: int = Field(
        1024 * 1024,
        ge=1,
        description="longest text, array, map or struct that a function may return, in bytes; a longer one is NULL",
    )
    event_rows: int = Field(
        2_000_000,
        ge=1_000,
        description="most rows that one event may produce in a join with tables; an event with more is a dead letter",
    )
    group_seconds: float = Field(
        5.0,
        gt=0,
        description="CPU seconds that the expressions of one group, or of one SELECT list, may use in a "
        "micro-batch, in addition to `CQ_LIMITS_RESIDUAL_MICROS` for each event; a group that "
        "uses more is stopped and quarantined",
    )
    poll_ms: int = Field(100, description="milliseconds between two polls of an idle stream")
    watermark_delay_seconds: float = Field(
        2.0,
        ge=0,
        description="seconds that the watermark of a source partition is behind its latest event time, for streams "
        "without WATERMARK FOR; an event behind the watermark is late",
    )
    idle_seconds: float = Field(
        60.0,
        ge=1,
        description="seconds without new events after which the watermark of a source partition advances with the "
        "clock, for streams without the option `idle`",
    )
    future_seconds: float = Field(
        3600.0,
        ge=0,
        description="seconds that the event time of an event may be ahead of the time of its record; an event that is "
        "further ahead moves no watermark and counts as future",
    )
    hang_seconds: float = Field(
        60.0,
        gt=0,
        description="seconds after which a worker that has not finished a step of the evaluation counts as dead",
    )
    jars: str = Field(
        "", description="folder of the jars of Spark's Kafka connector; `cq evaluator` finds it without this setting"
    )

    @model_validator(mode="after")
    def _has_streams(self) -> Self:
        for name in self.streams:
            if not _NAME.fullmatch(name):
                raise ValueError(f'streams names an evaluator "{name}": a name has 1 to 40 letters, digits, _ and -')
        if self.name and self.name not in self.streams:
            raise ValueError(f'evaluator.streams gives the evaluator "{self.name}" no streams')
        return self
