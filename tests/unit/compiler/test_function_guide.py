"""SHOW FUNCTIONS and DESCRIBE FUNCTION: each function has a form, and an example that is accepted."""

from __future__ import annotations

import pytest

from grouping.access.function_guide import describe_function, function_item, function_names
from grouping.functions.functions import AGGREGATES
from grouping.model.errors import InputError


@pytest.mark.parametrize("name", function_names())
def test_every_function_is_described(name: str) -> None:
    """Its example compiles, and its list entry equals its description."""
    described = describe_function(name.upper())
    assert described["function"] == name and str(described["form"]).startswith(f"{name}(")
    assert function_item(name).items() <= described.items()
    assert described["group"] and described["example"] and described["note"]


def test_the_index_is_told() -> None:
    """DESCRIBE FUNCTION tells whether an index serves the function."""
    found = {
        name: describe_function(name)["index"] for name in ("lower", "startswith", "array_contains", "rlike", "lpad")
    }
    assert found == {"lower": True, "startswith": True, "array_contains": True, "rlike": False, "lpad": False}
    assert not any(describe_function(name)["index"] for name in AGGREGATES)


@pytest.mark.parametrize(("name", "code"), [("lowr", "unknown-function"), ("rand", "unsupported-query")])
def test_what_is_no_function_is_refused(name: str, code: str) -> None:
    """As in a query: a near name, or the reason why one of Spark's cannot be used."""
    with pytest.raises(InputError) as refused:
        describe_function(name)
    assert refused.value.code == code
