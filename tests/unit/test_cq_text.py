"""Cutting a text at its literals: in whatever company it comes, the cut is the same."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from grouping import cq_text
from grouping.cq_text import CqText

_heads = st.sampled_from(['CREATE CQ "{}" AS SELECT ', "create or replace cq {} SELECT ", 'CREATE CQ "{}" AS\t'])
_names = st.sampled_from(["a", "B2", "AS", "a b", "a.b/c", "5", "Ä", '"', "a AS SELECT 5"])
_words = st.sampled_from(
    ["a", "5", "5.", ".5", "5e+", "e", "7", "'x'", "'it''s'", "'", "''", "+", ".", " ", "a5", "é", "²"]
)


@st.composite
def _like_texts(draw: st.DrawFn) -> tuple[str, str]:
    """Two texts that have most in common."""
    head = draw(_heads)
    words = draw(st.lists(_words, max_size=6))
    others = [draw(_words) if draw(st.integers(0, 3)) == 0 else word for word in words]
    return head.format(draw(_names)) + "".join(words), head.format(draw(_names)) + "".join(others)


@settings(max_examples=1000)
@given(_like_texts())
@example(("CREATE CQ a AS SELECT 5e+'x'", "CREATE CQ a AS SELECT 5e+7"))
@example(("CREATE CQ a AS SELECT 5e+5.", "CREATE CQ a AS SELECT 5e+5"))
@example(("CREATE CQ a AS SELECT 'x'", "CREATE CQ a AS SELECT 'x''y'"))
def test_a_text_is_cut_alike_after_others_of_its_kind(texts: tuple[str, str]) -> None:
    """What two texts before it were has no influence on how a text is cut."""
    before, text = texts
    cq_text._last = cq_text._Last()
    expected = CqText.cut(text)
    cq_text._last = cq_text._Last()
    CqText.cut(before)
    CqText.cut(before)
    assert expected == CqText.cut(text)


def test_the_third_text_of_a_kind_is_cut_at_one_match() -> None:
    """Two in a row of one template are enough to know the next."""
    texts = [f"CREATE CQ q{number} AS SELECT a FROM s WHERE b = 'x{number}' AND c < {number}.5" for number in range(3)]
    cuts = [CqText.cut(text) for text in texts]
    assert cq_text._last.like is not None
    assert cq_text._last.like(texts[2])
    assert ("q2", "'x2'", "2.5") == cuts[2].literals
    assert cuts[0].template is cuts[2].template
