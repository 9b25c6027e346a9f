"""A Spark session for all tests of this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_jobs.runtime.application.spark_options import shared_classes


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local Spark for batch queries; small ones are evaluated in the driver, without a job."""
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "768m")
        # The session runs for seconds: quick compilation is worth more than quick code.
        .config("spark.driver.extraJavaOptions", f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {shared_classes()}")
        .config("spark.sql.session.timeZone", "UTC")
        # The rule makes TRUE of `1.5 > CAST(NULL AS INT)`, a fault of Spark's.
        .config(
            "spark.sql.optimizer.excludedRules", "org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison"
        )
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.pyspark.python", sys.executable)
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )
    yield session
    session.stop()
