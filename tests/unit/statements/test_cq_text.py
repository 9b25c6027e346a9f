"""Cutting a text at its literals: the cut does not depend on the texts before it."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from grouping.statements.cq_text import RECENT, CqText

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


@settings(max_examples=400)
@given(_like_texts())
@example(("CREATE CQ a AS SELECT 5e+'x'", "CREATE CQ a AS SELECT 5e+7"))
@example(("CREATE CQ a AS SELECT 5e+5.", "CREATE CQ a AS SELECT 5e+5"))
@example(("CREATE CQ a AS SELECT 'x'", "CREATE CQ a AS SELECT 'x''y'"))
def test_a_text_is_cut_alike_after_others_of_its_kind(texts: tuple[str, str]) -> None:
    """The two texts before have no influence on how a text is cut."""
    before, text = texts
    RECENT.clear()
    expected = CqText.cut(text)
    RECENT.clear()
    CqText.cut(before)
    CqText.cut(before)
    assert expected == CqText.cut(text)


def test_the_third_text_of_a_kind_is_cut_at_one_match() -> None:
    """Two of one template are enough to know the next, also where kinds come in turns."""
    RECENT.clear()
    where = "AS SELECT a FROM s WHERE b = 'x{0}' AND c < {0}.5"
    for number in range(3):
        texts = [f"CREATE {word}CQ q{number} {where.format(number)}" for word in ("", "OR REPLACE ")]
        cuts = [CqText.cut(text) for text in texts]
        assert [(f"q{number}", f"'x{number}'", f"{number}.5")] * 2 == [cut.literals for cut in cuts]
    assert {cut.template for cut in cuts} == {template for template, _ in RECENT.kinds}
    for text in texts:
        assert 1 == sum(like(text) is not None for _, like in RECENT.kinds)
