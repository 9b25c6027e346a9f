"""`cq gateway` and `cq evaluator`: run a single role with given servers."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from gateway.local.jars import SPARK, ensure_jars, show_progress
from gateway.local.java import find_java
from grouping.process.json_output import log_to_standard_error
from grouping.process.log_lines import change_level_by_signals
from grouping.settings.given_settings import given_settings
from grouping.settings.settings import Settings

__all__ = ["evaluator", "gateway"]

Data = Annotated[Path | None, typer.Option(help="Folder for checkpoints.", show_default="cq-data")]
Kafka = Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Kafka.", show_default="127.0.0.1:9092")]
Redis = Annotated[str | None, typer.Option(metavar="URL", help="Redis or Valkey.", show_default="CQ_REDIS_URL")]


def gateway(data: Data = None, kafka: Kafka = None, redis: Redis = None) -> None:
    """Run the gateway: take commands from Kafka, carry them out, and fire timers."""
    # The garbage collector finds nothing to free during imports, but would take 0.1 s of the 1.7 s of a restart.
    gc.disable()
    from gateway.service import run_gateway

    gc.enable()
    settings = _settings(data, kafka, redis)
    log_to_standard_error(settings.logs.level, settings.logs.form)
    change_level_by_signals(settings.logs.level)
    run_gateway(settings)


def evaluator(data: Data = None, kafka: Kafka = None, redis: Redis = None) -> None:
    """Run the evaluator: evaluate the events of all streams in Spark."""
    settings = _settings(data, kafka, redis)
    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if not settings.evaluator.jars:
        os.environ["CQ_EVALUATOR_JARS"] = str(ensure_jars(SPARK, settings.jars, show_progress))
    # The evaluator replaces this process and is not imported: gateway and evaluator share only topics and Redis.
    os.execv(sys.executable, [sys.executable, "-m", "spark_jobs.runtime.driver.job"])


def _settings(data: Path | None, kafka: str | None, redis: str | None) -> Settings:
    """Return the settings with the given options, and set these options in the environment for the evaluator too."""
    given = {"CQ_DATA": data, "CQ_KAFKA_BOOTSTRAP": kafka, "CQ_REDIS_URL": redis}
    os.umask(0o077)  # only the user of this process may read checkpoints, logs and status
    os.environ.update({name: str(value) for name, value in given.items() if value is not None})
    return given_settings()
