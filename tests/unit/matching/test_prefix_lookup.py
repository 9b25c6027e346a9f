"""LIKE and startswith looked up by the beginning of a text: the same matches as by looking at every pair."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grouping.access.access_path import access_paths, choose_index
from grouping.model.expression import Call, Expression
from grouping.values.like_pattern import like_parts, like_prefix
from spark_jobs.engine.index.prefix_lookup import PrefixLookup
from spark_jobs.engine.match.evaluate import match
from spark_jobs.engine.rows.event_column import EventColumns
from tests.unit.matching.matching import Events, apart, compare, destination, entry, found, looked_up_by, snapshot

_TEXTS = st.text(alphabet="ab%_\\é\n", max_size=4) | st.text(alphabet="ab%", min_size=5, max_size=12)
_ROWS = st.lists(st.tuples(st.one_of(_TEXTS, st.none()), st.integers(0, 2)), min_size=1, max_size=8)
_EVENTS = st.lists(st.tuples(st.one_of(_TEXTS, st.none()), st.integers(0, 2)), min_size=1, max_size=6)


def _like(text: str, parts: list[str]) -> bool:
    """Tell whether a text matches, by trying every way."""
    if not parts:
        return not text
    head, rest = parts[0], parts[1:]
    if head == "%":
        return any(_like(text[start:], rest) for start in range(len(text) + 1))
    return bool(text) and (head == "_" or head[1:] == text[0]) and _like(text[1:], rest)


def _true(op: str, text: str | None, constant: str | None) -> bool:
    if text is None or constant is None:
        return False
    if op in ("startswith", "endswith"):
        return getattr(text, op)(constant)
    if op == "contains":
        return constant in text
    parts = like_parts(constant)
    return parts is not None and _like(text, parts)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["like", "startswith", "endswith", "contains"]),
    st.sampled_from(["none", "and", "or"]),
    _ROWS,
    _EVENTS,
)
@example("like", "none", [("a\\", 0), ("\\%%", 0), ("", 0), ("%", 0)], [("%a", 0), ("", 0), (None, 0)])
def test_every_path_equals_brute_force(
    op: str, beside: str, rows: list[tuple[str | None, int]], events: list[tuple[str | None, int]]
) -> None:
    """Alone, beside another condition, and as a branch of an OR."""
    text, number = compare("s", op, "STRING", 0), compare("n", "=", "INT", 1)
    plan: list[Expression] = {
        "none": [text],
        "and": [text, compare("n", ">=", "INT", 1)],
        "or": [Call("or", (text, number), "BOOLEAN")],
    }[beside]
    types = ("STRING", "BIGINT")[: 1 if beside == "none" else 2]
    columns = {"s": ("STRING", [text for text, _ in events]), "n": ("INT", [number for _, number in events])}
    tables = snapshot(plan, [entry(i, types, row[: len(types)]) for i, row in enumerate(rows)])

    def wanted(event: tuple[str | None, int], row: tuple[str | None, int]) -> bool:
        first = _true(op, event[0], row[0])
        return {"none": first, "and": first and event[1] >= row[1], "or": first or event[1] == row[1]}[beside]

    expected = sorted(
        (i, destination(j)) for i, event in enumerate(events) for j, row in enumerate(rows) if wanted(event, row)
    )
    paths = access_paths(plan)
    assert any(path.prefix is not None or any(b.prefix is not None for b in path.branches) for path in paths)
    for path in paths:
        assert expected == found(match(apart(looked_up_by(tables, path)), Events(columns))), path


def test_only_what_begins_so_is_a_candidate() -> None:
    """Among a hundred thousand prefixes, an event is compared only with prefixes of its own text."""
    count = 100_000
    patterns = pa.array([f"{number:05d}%" for number in range(count)])
    lookup = PrefixLookup(compare("s", "like", "STRING", 0), [patterns])
    events = EventColumns(Events({"s": ("STRING", ["00017 and more", "none", "99999"])}))
    counts = np.zeros(3, np.int64)
    lookup.find(events, np.arange(3)).add_counts(counts)
    assert [1, 0, 1] == counts.tolist()


def test_only_what_holds_it_is_a_candidate() -> None:
    """Among a hundred thousand texts that may stand anywhere, an event meets the few that share a rare window."""
    count = 100_000
    patterns = pa.array([f"%common {number:06d} common%" for number in range(count)])
    lookup = PrefixLookup(compare("s", "like", "STRING", 0), [patterns])
    texts = ["a common 000017 common text", "common 00001 common", "none", None, "0" * 100, "x common 000017 common"]
    events = EventColumns(Events({"s": ("STRING", texts)}))
    counts = np.zeros(len(texts), np.int64)
    lookup.find(events, np.arange(len(texts))).add_counts(counts)
    assert [1, 0, 0, 0, 0, 1] == counts.tolist()


def test_a_prefix_comes_after_keys_and_bounds() -> None:
    """Without statistics columns compared with = or a bound decide; a LIKE alone is looked up by its beginning."""
    like = compare("s", "like", "STRING", 0)
    assert "prefix" == choose_index([like]).kind
    assert (0,) == choose_index([like]).residual
    assert "hash" == choose_index([like, compare("n", "=", "INT", 1)]).kind
    assert ["ordered", "prefix"] == [path.kind for path in access_paths([like, compare("n", ">", "INT", 1)])]


@given(_TEXTS, _TEXTS)
def test_matches_begin_with_the_prefix(pattern: str, text: str) -> None:
    """And if the prefix is the whole condition of a pattern, every text with the prefix matches."""
    prefix, parts = like_prefix(pattern), like_parts(pattern)
    assert (prefix is None) == (parts is None)
    if prefix is not None and parts is not None:
        matched = _like(text, parts)
        assert text.startswith(prefix[0]) or not matched
        assert not (prefix[1] and text.startswith(prefix[0])) or matched
