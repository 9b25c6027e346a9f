"""Functions: the documentation lists them, and accepted functions are evaluated."""

from __future__ import annotations

from grouping.functions.function_table import GROUPS
from grouping.functions.functions import ALIASES, CASTS, FUNCTIONS, REDUCED, REWRITTEN
from grouping.functions.spark_functions import REASONS
from spark_jobs.engine.expressions import casts
from spark_jobs.engine.expressions import functions as polars_functions
from spark_jobs.engine.expressions.times.units import BY_UNIT


def test_the_section_shows_every_function_once() -> None:
    """No function is left out of the section or in two of its groups."""
    shown = [name for names in GROUPS.values() for name in names.split()]
    assert sorted({*FUNCTIONS, *REWRITTEN}) == sorted(shown)


def test_every_other_name_is_one_of_a_function() -> None:
    """Aliases lead to functions, and nothing is both accepted and refused."""
    assert set(ALIASES.values()) <= set(FUNCTIONS)
    assert not set(REASONS) & {*FUNCTIONS, *ALIASES, *REWRITTEN}


def test_all_that_is_accepted_is_evaluated() -> None:
    """The evaluator computes every function and CAST that a query may use."""
    assert set(FUNCTIONS) - REDUCED <= {*polars_functions.FUNCTIONS, *BY_UNIT}
    plain = {source: targets for source, targets in CASTS.items() if source != "VARIANT"}  # by variant_get
    assert {(source, target) for source, targets in plain.items() for target in targets} <= set(casts.CASTS)
