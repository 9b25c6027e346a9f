"""Places named in errors count from the start of the statement, not of its SELECT."""

from __future__ import annotations

import pytest

from grouping.compiler.prepared import Preparer
from grouping.model.errors import InputError
from grouping.statements.cq_text import CqText
from tests.quotes import catalog


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("CREATE CQ a AS SELECT symbol FROM quotes WHERE price > 5 AND AND volume = 1", 1, "AND volume"),
        ("CREATE CQ a AS\n  SELECT symbol FROM quotes\n WHERE price > > 5", 3, "> 5"),
        ("CREATE CQ a AS\n  SELECT price + FROM quotes", 2, "FROM"),
        ("CREATE CQ a AS SELECT symbol FROM quotes WHERE price > 5 EVERY 10", 1, "10"),
    ],
)
def test_places_count_from_the_first_character(text: str, line: int, word: str) -> None:
    """Whoever reads the error finds the word there in the statement."""
    with pytest.raises(InputError) as refused:
        Preparer(catalog()).create(CqText.cut(text))
    column = text.split("\n")[line - 1].index(word) + 1
    assert str(refused.value.detail).startswith(f"Line {line}, column {column}: ")
