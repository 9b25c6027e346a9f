"""get_json_object beside a whole number: Spark's BIGINT would lose fractions, so the query names the type itself."""

from __future__ import annotations

import pytest

from gateway.testing import Stream, evaluate
from grouping.compiler.compiler import compile_select
from grouping.compiler.prepared import Preparer
from grouping.model.errors import InputError
from grouping.statements.cq_text import CqText
from tests.quotes import catalog

_RISK = "get_json_object(symbol, '$.risk')"
_SCORED = Stream("scored (body STRING)")


def _rows(where: str) -> list[bool]:
    risks = ("99.5", "70", "70.5", '"71"', "71.0", '"high"', "null", "9007199254740993")
    rows = [{"body": f'{{"risk": {risk}}}'} for risk in risks]
    return [row.matches for row in evaluate(f"SELECT body FROM scored WHERE {where}", _SCORED, rows)]


@pytest.mark.parametrize(
    ("where", "double"),
    [
        (f"{_RISK} > 70", "Write 70.0 instead of 70 to compare as DOUBLE"),
        (f"-70 < {_RISK}", "Write -70.0 instead of -70"),
        (f"{_RISK} = 7", "Write 7.0 instead of 7"),
        (f"{_RISK} <=> 7", "Write 7.0 instead of 7"),
        (f"{_RISK} IN ('6', 7)", "Write 7.0 instead of 7"),
        (f"{_RISK} BETWEEN 1.5 AND 7", "Write 7.0 instead of 7"),
        (f"CASE {_RISK} WHEN 7 THEN TRUE END", "Write 7.0 instead of 7"),
        (f"{_RISK} > volume", "Write CAST(get_json_object(…) AS DOUBLE)"),
        (f"{_RISK} > 70L", "Write CAST(get_json_object(…) AS DOUBLE)"),
        (f"{_RISK} > volume + 1", "Write CAST(get_json_object(…) AS DOUBLE)"),
    ],
)
def test_a_whole_number_is_refused(where: str, double: str) -> None:
    """The hint has the form for numbers with fractions and the form for whole numbers."""
    with pytest.raises(InputError, match="is compared with a whole number") as raised:
        compile_select(f"SELECT symbol FROM quotes WHERE {where}", catalog())
    assert raised.value.code == "type-mismatch"
    assert str(raised.value.hint).startswith(double)
    assert "CAST(get_json_object(…) AS BIGINT)" in str(raised.value.hint)


def test_the_fast_path_refuses_it_too() -> None:
    """The text of a template is accepted with 70.0 and refused with 70, in any order."""
    preparer = Preparer(catalog())
    for constant, code in (("70.0", None), ("70", "type-mismatch"), ("'70'", None), ("71", "type-mismatch")):
        text = CqText.cut(f"CREATE CQ a AS SELECT symbol FROM quotes WHERE {_RISK} > {constant}")
        try:
            preparer.create(text)
        except InputError as error:
            assert error.code == code
        else:
            assert code is None


def test_the_forms_of_the_hint_compare_as_they_say() -> None:
    """As DOUBLE 99.5 is above 70; as BIGINT only whole numbers are, each digit of them counting."""
    risk = "get_json_object(body, '$.risk')"
    double = [True, False, True, True, True, False, False, True]
    assert _rows(f"{risk} > 70.0") == _rows(f"CAST({risk} AS DOUBLE) > 70") == double
    assert _rows(f"CAST({risk} AS BIGINT) > 70") == [False, False, False, True, False, False, False, True]
    assert _rows(f"CAST({risk} AS BIGINT) = 9007199254740992") == [False] * 8
