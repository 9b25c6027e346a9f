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

    name: str = Field("", description="which evaluator this is, of those with streams of their own; empty: of the rest")
    streams: dict[str, str] = Field(
        {},
        description="evaluators that have streams of their own (JSON): names of streams or shell patterns, with commas "
        "between, by the evaluator's name; the unnamed one has the others. The same for gateway and evaluators",
    )
    master: str = Field("local[2]", description="Spark's master")
    checkpoints: str = Field(
        "",
        description="where Spark keeps the offsets of streams: a folder, or a URL such as `s3a://bucket/cq` or "
        "`hdfs://name/cq`; empty: in `CQ_DATA`",
    )
    events_per_batch: int = Field(250_000, description="source records in one micro-batch, at most")
    driver_host: str = Field(
        "",
        description="where executors reach the driver; empty: loopback for a local master, else Spark's choice",
    )
    bind_address: str = Field("", description="address on which the driver listens; likewise")
    spark: Options = Field(
        {}, repr=False, description="further Spark options (JSON); those that the evaluator itself sets are refused"
    )
    spark_secret: SecretStr = Field(
        SecretStr(""),
        description="secret of all processes of a Spark cluster: they log in to one another with it, and encrypt what "
        "they send; empty for neither",
    )
    driver_memory: str = Field("1g", description="heap of the Spark driver")
    value_bytes: int = Field(
        1024 * 1024,
        ge=1,
        description="longest text, array, map or struct that a function yields, in bytes; beyond it is NULL",
    )
    event_rows: int = Field(
        2_000_000,
        ge=1_000,
        description="rows that one event may make with rows of the tables of a join; with more it is a dead letter",
    )
    group_seconds: float = Field(
        5.0,
        gt=0,
        description="CPU time that the expressions of one group, or of one SELECT list, may take of a batch of events, "
        "besides `CQ_LIMITS_RESIDUAL_MICROS` for each event; beyond it the group is stopped and quarantined",
    )
    poll_ms: int = Field(100, description="how often an idle stream looks for events")
    hang_seconds: float = Field(
        60.0,
        gt=0,
        description="a worker at whose events a step of the evaluation takes so long is taken for dead",
    )
    jars: str = Field("", description="folder of the jars of Spark's Kafka connector; found by `cq evaluator`")

    @model_validator(mode="after")
    def _has_streams(self) -> Self:
        for name in self.streams:
            if not _NAME.fullmatch(name):
                raise ValueError(f'streams names an evaluator "{name}": 1 to 40 letters, digits, _ and - are a name')
        if self.name and self.name not in self.streams:
            raise ValueError(f'evaluator.streams gives the evaluator "{self.name}" no streams')
        return self
