"""Cuts long runs of literals out of a text before parsing: half a megabyte of literals would be 100,000 tokens.

Two forms have long runs: ``IN ('a', 'b', …, 'y', 'z')`` and ``s = 'a' OR s = 'b' OR … OR s = 'z'``. The parser reads
only the first and the last literal of a run. The literals between them are replaced by as many blanks, so all other
tokens keep their positions, and errors name the right positions. Nodes of the tree carry the runs as metadata, and
binding reads the literals from there (`grouping/binding/predicates.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from sqlglot import exp

from grouping.model.refusals import unsupported

__all__ = ["CutText", "LiteralRun", "cut_runs", "mark_runs", "run_before"]

_SHORT = 4096
"""Texts of at most this number of characters are never cut. The fast path (`grouping/compiler/prepared.py`) compiles
these texts, and needs all their literals in place.
"""
_FEWEST = 16
"""The least number of literals in a run. To cut out fewer literals takes as long as to parse them."""
_MARK = "run"
"""The key in a node's metadata for the run that was cut out before the node's literal."""

_BLANK = r"[ \t\r\n]*+"
_UNSIGNED = r"(?:'[^'\r\n]*+(?:''[^'\r\n]*+)*+'|[0-9]++(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+)"
_LITERAL = rf"(?:-(?!'))?+{_UNSIGNED}"
_WORD = r"""(?:[^\W\d]\w*+|"[^"\r\n]++"|`[^`\r\n]++`)"""
_COMMA = rf"{_BLANK},{_BLANK}"
_OR = r"[ \t\r\n]++OR[ \t\r\n]++"
_EQUAL = rf"{_BLANK}={_BLANK}{_LITERAL}{_OR}"
_LAST_LISTED = rf"-?+(?P<last_listed>){_UNSIGNED}{_BLANK}[,)]"
_LAST_EQUAL = rf"(?P=name){_BLANK}={_BLANK}-?+(?P<last_equal>){_UNSIGNED}{_OR}"
_RUNS = re.compile(
    rf"(?<![\w.])IN{_BLANK}\({_BLANK}{_LITERAL}{_COMMA}"
    rf"(?P<listed>(?:{_LITERAL}{_COMMA}(?={_LAST_LISTED})){{{_FEWEST},}}+)"
    rf"|(?<![\w.])(?P<name>{_WORD}(?:\.{_WORD})*+){_EQUAL}"
    rf"(?P<equal>(?:(?P=name){_EQUAL}(?={_LAST_EQUAL})){{{_FEWEST},}}+)"
    # Within these parts nothing is cut: strings, quoted names, and comments by sqlglot's rules.
    r"""|'[^']*+(?:''[^']*+)*+'|"[^"]*+"|`[^`]*+`|--[^\n]*+|/\*.*?(?:\*/|\Z)|\{\#.*?(?:\#\}|\Z)""",
    re.DOTALL | re.IGNORECASE,
)
_LISTED = re.compile(_LITERAL)
_COMPARED = re.compile(rf"={_BLANK}({_LITERAL})")
_LINES = re.compile(r"[^\r\n]++")


class LiteralRun(NamedTuple):
    """A run of literals that was cut out of a text."""

    source: str
    """The literals, with the text between them."""
    start: int
    """The position of `source` in the text."""
    is_list: bool
    """Whether the literals are values after IN; otherwise they are in equalities with OR between them."""

    @property
    def literals(self) -> list[str]:
        """The literals as written, in order: strings in quotes, and numbers with their signs."""
        return (_LISTED if self.is_list else _COMPARED).findall(self.source)


class CutText(NamedTuple):
    """A text without its long runs of literals."""

    text: str
    """The text, as long as the original and with as many lines."""
    runs: Mapping[int, LiteralRun]
    """Position of a literal → the run that was cut out before this literal. A number's position is that of its first
    digit, after the sign.
    """

    @property
    def rest(self) -> str:
        """The text without its runs, and without blanks in their place."""
        parts, behind = [], 0
        for run in self.runs.values():
            parts.append(self.text[behind : run.start])
            behind = run.start + len(run.source)
        return "".join((*parts, self.text[behind:]))


@lru_cache(maxsize=1)  # measuring and parsing a statement both need its cut text
def cut_runs(text: str) -> CutText:
    """Return a text without its long runs of literals; a short text stays unchanged.

    Example:
        >>> listed = ", ".join(map(str, range(1_000)))
        >>> cut = cut_runs(f"SELECT a FROM s WHERE a IN ({listed})")
        >>> cut.rest, [len(run.literals) for run in cut.runs.values()]
        ('SELECT a FROM s WHERE a IN (0, 999)', [998])
    """
    if len(text) <= _SHORT:
        return CutText(text, {})
    parts: list[str] = []
    runs: dict[int, LiteralRun] = {}
    behind = 0
    for found in _RUNS.finditer(text):
        kind = "listed" if found["listed"] is not None else "equal"
        if found[kind] is None:
            continue
        start, end = found.span(kind)
        runs[found.start(f"last_{kind}")] = LiteralRun(text[start:end], start, kind == "listed")
        parts += (text[behind:start], _LINES.sub(_blanked, text[start:end]))
        behind = end
    return CutText("".join((*parts, text[behind:])), runs)


def _blanked(line: re.Match[str]) -> str:
    return " " * len(line[0])


def mark_runs(tree: exp.Expr, runs: Mapping[int, LiteralRun]) -> None:
    """Mark the values of IN and the equalities in a text's tree with the runs that were cut out before them.

    Raises:
        InputError: ``unsupported-query`` if a run belongs neither to an IN nor to an equality.
    """
    left = dict(runs)
    for node in tree.find_all(exp.In, exp.EQ) if runs else ():
        within = isinstance(node, exp.In)
        for value in node.expressions if within else [node.expression]:
            literal = value.this if isinstance(value, exp.Neg) else value
            if isinstance(literal, exp.Literal) and (run := left.pop(literal.meta.get("start", -1), None)) is not None:
                (value if within else node).meta[_MARK] = run
    if left:
        raise unsupported("a long list of literals here", "Only IN and an OR of equalities take one.", "Write IN (…).")


def run_before(node: exp.Expr) -> LiteralRun | None:
    """Return the run that was cut out before a value of IN or an equality; None without a run."""
    run: LiteralRun | None = node.meta_get(_MARK)
    return run
