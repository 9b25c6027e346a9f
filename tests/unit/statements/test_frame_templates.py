"""The fast path reads the constants of window queries as the full compilation does."""

from __future__ import annotations

import pytest

from grouping.compiler.compiler import compile_select
from grouping.compiler.prepared import Preparer
from grouping.statements.cq_text import CqText
from tests.quotes import catalog

_LAG = "lag(price) OVER (PARTITION BY symbol ORDER BY _offset)"
_COUNT = "count(*) OVER (PARTITION BY symbol ORDER BY _time RANGE INTERVAL '{}' MINUTE PRECEDING)"


@pytest.mark.parametrize(
    ("select", "constants"),
    [
        (f"SELECT price FROM trades WHERE name = '{{}}' QUALIFY price > {_LAG} * {{}}", [("a", 1.5), ("b", 2.5)]),
        (f"SELECT price FROM trades WHERE volume > {{}} QUALIFY {_LAG} > {{}}", [(1, 2), (3, 4), (1, 5)]),
        (f"SELECT symbol FROM trades QUALIFY {_COUNT} > {{}}", [(10, 5), (20, 5), (10, 6)]),
        (f"SELECT {_LAG} * {{}} AS x FROM trades QUALIFY x > {{}}", [(2, 5), (3, 5), (2, 7)]),
        ("SELECT lag(price, {}) OVER (PARTITION BY symbol ORDER BY _offset) AS x FROM trades", [(2,), (3,), (2,)]),
    ],
)
def test_texts_of_a_template_compile_as_each_alone(select: str, constants: list[tuple[object, ...]]) -> None:
    """Lifted constants are read anew; constants of windows and of conditions below make other plans."""
    known = catalog()
    preparer = Preparer(known)
    for number, some in enumerate([*constants, *constants, *constants]):
        text = select.format(*some)
        command, query = preparer.create(CqText.cut(f"CREATE CQ q{number} AS {text}"))
        assert (command.name, query) == (f"q{number}", compile_select(text, known))
