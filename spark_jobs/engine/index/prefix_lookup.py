"""The index for the texts of events that must begin with a constant row's prefix, or contain a constant row's text.

For each length of prefixes, there is an equality index over the texts' first characters. A LIKE pattern that begins
with a wildcard is looked up by its longest piece without a wildcard (`substring_lookup`). The residual checks the rest
of each pattern. For a pattern of only wildcards, every event with a text is a candidate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grouping.model.expression import Expression
from grouping.model.sql_type import STRING
from grouping.values.like_pattern import like_part, like_prefix
from spark_jobs.engine.index import EqualityIndex, Ints
from spark_jobs.engine.index.key_codes import KeyCodes
from spark_jobs.engine.index.lookup import AliveRows, Candidates, comparison
from spark_jobs.engine.index.substring_lookup import substring_lookups
from spark_jobs.engine.index.union_candidates import UnionCandidates
from spark_jobs.engine.rows.event_column import EventColumns

__all__ = ["PrefixLookup"]

_LONGEST = 32
"""The largest number of characters of a prefix that are looked up.

This limits the number of look-ups, since each length of prefixes needs a look-up of its own.
"""


class PrefixLookup:
    """The index of ``column LIKE :c``, startswith, endswith or contains; it does not change after it is built."""

    def __init__(self, conjunct: Expression, constants: Sequence[pa.Array]) -> None:
        """Index the rows.

        Args:
            conjunct: The conjunct of the group that the index decides.
            constants: For each slot, its constant in each row. A row is never found if its constant is NULL or a
                pattern that Spark refuses.
        """
        op, key, slot = comparison(conjunct)
        beginnings = _beginnings(op, constants[slot])
        parts = _parts(op, constants[slot], beginnings)
        inner = np.flatnonzero(parts.is_valid().to_numpy(zero_copy_only=False))
        self._inner = substring_lookups(key.reference, parts.take(pa.array(inner)), inner.astype(np.int32))
        lengths = pc.if_else(parts.is_valid(), None, pc.utf8_length(beginnings))
        self._parts: list[tuple[KeyCodes, EqualityIndex, AliveRows]] = []
        for length in lengths.unique().drop_null().to_pylist():
            rows = np.flatnonzero(pc.equal(lengths, length).fill_null(False).to_numpy(zero_copy_only=False))
            own = beginnings.take(pa.array(rows))
            keys = KeyCodes(key.reference, STRING, STRING, own, length)
            index = EqualityIndex(keys.constants(own), keys.count, rows.astype(np.int32))
            self._parts.append((keys, index, AliveRows(index.rows)))

    def find(self, events: EventColumns, selected: Ints) -> UnionCandidates:
        """Return the candidates of the events at the positions `selected`."""
        found = []
        for keys, index, alive in self._parts:
            codes = keys.find(events)[selected]
            known = np.flatnonzero(codes >= 0)
            found.append(Candidates(selected[known], index.find(codes[known]), alive))
        found += (inner.find(events, selected) for inner in self._inner)
        return UnionCandidates(found, events.source.count)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        inner = sum(part.nbytes for part in self._inner)
        return inner + sum(keys.nbytes + index.nbytes for keys, index, _ in self._parts)


def _beginnings(op: str, constants: pa.Array) -> pa.Array:
    """Return for each row the prefix of all texts that satisfy it, at most `_LONGEST` characters; NULL if none does."""
    texts = constants.cast(pa.string())
    if op in ("endswith", "contains"):
        return pc.utf8_slice_codeunits(texts, 0, 0)
    if op == "like":
        escaped = np.flatnonzero(pc.match_substring(texts, "\\").fill_null(False).to_numpy(zero_copy_only=False))
        plain = pc.replace_substring_regex(texts, r"(?s)[%_].*", "")
        if escaped.size:
            slow = [like_prefix(text.as_py()) for text in texts.take(pa.array(escaped))]
            mask = np.zeros(len(texts), np.bool_)
            mask[escaped] = True
            found = pa.array([None if one is None else one[0] for one in slow], pa.string())
            plain = pc.replace_with_mask(plain, pa.array(mask), found)
        texts = plain
    return pc.utf8_slice_codeunits(texts, 0, _LONGEST)


def _parts(op: str, constants: pa.Array, beginnings: pa.Array) -> pa.Array:
    """Return for each row without a prefix the text that must occur anywhere in an event's text, else NULL."""
    texts = constants.cast(pa.string())
    inner = pc.equal(beginnings, "").fill_null(False)
    if op == "like":
        at = np.flatnonzero(inner.to_numpy(zero_copy_only=False))
        found = [like_part(text) for text in texts.take(pa.array(at)).to_pylist()]
        texts = pc.replace_with_mask(texts, inner, pa.array(found, pa.string()))
    return pc.if_else(pc.and_(inner, pc.greater(pc.binary_length(texts), 0)).fill_null(False), texts, None)
