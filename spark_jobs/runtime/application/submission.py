"""The options of an evaluator that was started by `spark-submit`, whose JVM already runs with the command's options."""

from __future__ import annotations

from collections.abc import Mapping

from grouping.model.errors import OperationalError

__all__ = ["options_left"]

_AT_START = {"spark.driver.extraJavaOptions", "spark.driver.memory", "spark.jars"}
"""Options that a JVM reads only when it starts."""
_AGREED = {"spark.master": "CQ_EVALUATOR_MASTER", "spark.driver.memory": "CQ_EVALUATOR_DRIVER_MEMORY"}
"""Options that are also settings, each with the setting's environment variable; both must have the same value."""
_DEFAULTS = {"spark.driver.memory": "1g"}


def options_left(ours: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the session's options that can still be set, and check the options that the JVM has already used.

    Args:
        ours: The evaluator's options.
        given: The options with which `spark-submit` has started the JVM.

    Raises:
        OperationalError: Options contradict each other, or `spark-submit` was given no Kafka connector.
    """
    for name, setting in _AGREED.items():
        theirs = given.get(name, _DEFAULTS.get(name, ""))
        if theirs != ours[name]:
            raise OperationalError(
                f'spark-submit has "{name}" as "{theirs}", the evaluator as "{ours[name]}"',
                detail=f"The evaluator's value comes from the setting {setting}.",
                hint=f"Give both the same: spark-submit --conf {name}=… and {setting}.",
            )
    if "spark-sql-kafka" not in given.get("spark.jars", ""):
        raise OperationalError(
            "spark-submit was given no connector for Kafka",
            detail="A JVM that runs already loads no further jars.",
            hint="spark-submit --jars with all jars of CQ_EVALUATOR_JARS, commas between them.",
        )
    return {name: value for name, value in ours.items() if name not in _AT_START}
