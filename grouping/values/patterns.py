r"""Regular expressions with the same meaning in Java (Spark's engine) and in Rust (Polars' engine).

A pattern is parsed by Java's rules and rewritten for Rust: ``\d \w \s`` are ASCII, ``.`` stops at Java's line ends, and
``$`` matches before a last line end. As in Java 19 and later, ``\b`` matches between a character of ``\w`` and any
other character. A construct that cannot have the same meaning in both engines is refused, with a hint to the nearest
form.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from grouping.model.errors import InputError
from grouping.values.look_around import PatternConditions, without_looks
from grouping.values.pattern_classes import Chars
from grouping.values.pattern_reader import read_pattern
from grouping.values.pattern_refusals import refused_pattern
from grouping.values.pattern_tree import (
    Branch,
    LookAround,
    PatternGroup,
    PatternNode,
    Repetition,
    TextPlace,
    all_nodes,
    branches_size,
    edge_ends,
    is_empty,
    may_be_empty,
)

__all__ = ["LAST_LINE_END", "Groups", "Presence", "occurrences", "rust_groups", "rust_pattern"]

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_END = rf"(?:\r\n|[{_LINE_ENDS}])?\z"
_END_GROUP = rf"(\r\n|[{_LINE_ENDS}])?\z"
LAST_LINE_END = rf"(?:\r\n|[{_LINE_ENDS}])\z"
"""Matches, in Rust's engine, a line end at the end of a text. In Java, ``$`` also matches before this line end."""
_VERY_END = r"\z"
_PLACES = {
    "start": r"\A",
    "border": r"(?-u:\b)",
    "very end": _VERY_END,
    "line start": rf"(?:\A|\r\n|[{_LINE_ENDS}])",
    "line end": rf"(?:\z|[{_LINE_ENDS}])",
}
"""Kind of place → the pattern for Rust's engine. The patterns for the start and the end of a line match also the line
end, so no element may stand before the start of a line, or after the end of a line.
"""
_GROUP_HINT = "Ask for the whole with groups, as in regexp_extract(text, 'a(b)c', 1)."


class Presence(NamedTuple):
    """A pattern for searches that only ask whether a text has a match."""

    text: str
    """The pattern for Rust's engine."""
    twice: bool
    """Whether a text must be searched a second time, without its last line end: the part before ``$`` may match the CR
    of a CR LF. In Java, ``$`` does not match between CR and LF, but Rust's engine has no look-behind to check this.
    """
    size: int
    """The number of elements, with counted repetitions written out. At worst, a search takes a step for each element at
    each byte of a text.
    """
    unless: str = ""
    """A pattern for Rust's engine that must not be found in the same text; "" for no pattern."""
    also: tuple[Presence, ...] = ()
    """Patterns that must be found too."""
    never: tuple[Presence, ...] = ()
    """Patterns that must not be found."""


@lru_cache(maxsize=4096)
def rust_pattern(pattern: str) -> Presence:
    r"""Return a Java pattern for Rust's engine.

    Raises:
        InputError: ``unsupported-query`` if the pattern might have another meaning in Rust's engine.

    Example:
        >>> print(rust_pattern("^A[^b]{2}").text)
        \A\x{41}[^\x{62}]{2}
        >>> [each.text for each in rust_pattern("^(?!ab)(?=.*c)").never]
        ['\\A(?:\\x{61}\\x{62})']
    """
    return _presence(pattern, without_looks(pattern, read_pattern(pattern)))


def _presence(pattern: str, conditions: PatternConditions) -> Presence:
    branches = conditions.branches
    _check_tails(pattern, branches, last=True)
    _check_heads(pattern, branches, first=True, behind=())
    nodes = all_nodes(branches)
    twice = _ends_in_return(branches, ()) or TextPlace("end") in (
        node._replace(at=0) for node in all_nodes(conditions.unless) if isinstance(node, TextPlace)
    )
    if twice:
        for node in nodes:
            if isinstance(node, TextPlace) and node.kind in ("very end", "line end"):
                raise refused_pattern(pattern, node.at, '"$" or "\\z" next to a possible line end', r"Write [^\r\n].")
    also, never = (
        tuple(_presence(pattern, PatternConditions(each)) for each in listed)
        for listed in (conditions.also, conditions.never)
    )
    size = branches_size(branches) + branches_size(conditions.unless) + sum(each.size for each in (*also, *never))
    end = _VERY_END if twice else _END
    return Presence(_alternatives(branches, end), twice, size, _alternatives(conditions.unless, end), also, never)


class Groups(NamedTuple):
    """A pattern for searches that need the place of a match, or the groups within a match."""

    text: str
    """The pattern for Rust's engine. Group 1 is the match, and group n + 1 is group n of the original pattern. If the
    pattern ends in ``$``, the last group is the line end after the match.
    """
    number: int
    """The number of capturing groups in the original pattern."""
    ends: bool
    """Whether the pattern ends in ``$``."""
    empty: bool
    """Whether the pattern may match the empty text."""
    size: int
    """The size, as in `Presence`."""


@lru_cache(maxsize=4096)
def rust_groups(pattern: str) -> Groups:
    r"""Return a Java pattern for Rust's engine, with its groups, for a search of its first occurrence.

    Raises:
        InputError: ``unsupported-query`` if Rust's engine might find another occurrence or other groups.

    Example:
        >>> print(rust_groups("A(b)").text)
        (\x{41}(\x{62}))
    """
    branches = read_pattern(pattern)
    nodes = all_nodes(branches)
    last = branches[-1][-1:] if len(branches) == 1 else ()
    ends = bool(last) and isinstance(last[0], TextPlace) and last[0].kind == "end"
    for node in nodes:
        match node:
            case LookAround(at=at):
                raise refused_pattern(pattern, at, "a look-around", _GROUP_HINT)
            case TextPlace("line start" | "line end", at):
                raise refused_pattern(pattern, at, '"^" or "$" under (?m)', r"Write (?:^|\n) or (?:\n|\z).")
            case TextPlace("end", at) if not ends or node is not last[0]:
                raise refused_pattern(pattern, at, '"$" before its end, or in one of several branches', r"Write \z.")
            case Repetition(part, at=at) if is_empty(part):
                raise refused_pattern(
                    pattern, at, "a repetition of a part that may be empty", "Ask for one character in it."
                )
    if ends and any(isinstance(node, Chars) and node.ends for node in nodes):
        raise refused_pattern(pattern, len(pattern) - 1, '"$" next to a possible line end', r"Write [^\r\n] or \z.")
    number = sum(isinstance(node, PatternGroup) and node.captures for node in nodes)
    written = f"({_alternatives(branches[:-1] + (branches[-1][:-1],) if ends else branches, '', captures=True)})"
    empty = any(map(may_be_empty, branches))
    return Groups(written + (_END_GROUP if ends else ""), number, ends, empty, branches_size(branches))


def occurrences(pattern: str) -> Groups:
    """Return a pattern as `rust_groups` does, for a search of all its occurrences.

    Raises:
        InputError: As `rust_groups`, and for a pattern that matches the empty text, which engines find in different
            places.
    """
    groups = rust_groups(pattern)
    if groups.empty:
        raise InputError(
            f'regular expression "{pattern[:60]}" matches the empty text',
            code="unsupported-query",
            detail="Engines find the empty text in different places.",
            hint="Ask for one character at least: + instead of *.",
        )
    return groups


def _alternatives(branches: tuple[Branch, ...], end: str, *, captures: bool = False) -> str:
    """Return alternatives for Rust's engine.

    Args:
        branches: The alternatives, without look-arounds.
        end: The text of ``$``.
        captures: Whether capturing groups are kept.
    """
    return "|".join("".join(_written(node, end, captures) for node in branch) for branch in branches)


def _written(node: PatternNode, end: str, captures: bool) -> str:
    match node:
        case Chars(text):
            return text
        case TextPlace(kind):
            return end if kind == "end" else _PLACES[kind]
        case Repetition(part, count, lazy):
            # Laziness decides where a match ends, but not whether there is a match.
            return _written(part, end, captures) + count + ("?" if lazy and captures else "")
        case PatternGroup(branches):
            inner = _alternatives(branches, end, captures=captures)
            return f"({inner})" if captures and node.captures else f"(?:{inner})"
    raise AssertionError("looks around were replaced")


def _check_tails(pattern: str, branches: tuple[Branch, ...], *, last: bool) -> None:
    """Refuse a ``$`` that is not the last element, since the rewritten ``$`` also matches the line end."""
    for branch in branches:
        for place, node in enumerate(branch):
            ends = last and place == len(branch) - 1
            match node:
                case TextPlace("end" | "line end", at) if not ends:
                    raise refused_pattern(pattern, at, '"$" before its end', r"Write \$ for the character, or \n.")
                case PatternGroup(inner):
                    _check_tails(pattern, inner, last=ends)
                case Repetition(part, count):
                    _check_tails(pattern, ((part,),), last=ends and count == "?")


def _check_heads(pattern: str, branches: tuple[Branch, ...], *, first: bool, behind: Branch) -> None:
    r"""Refuse a ``^`` under ``(?m)`` that is not first, or whose next element may be empty or begin with ``\n``.

    The reason is that in Java no line starts at the end of the text, or between ``\r`` and ``\n``.
    """
    for branch in branches:
        for place, node in enumerate(branch):
            rest = branch[place + 1 :] + behind
            begins = first and place == 0
            match node:
                case TextPlace("line start", at):
                    if not begins:
                        raise refused_pattern(pattern, at, '"^" under (?m) that is not first', "Write (?:^|…) first.")
                    if may_be_empty(rest) or "\n" in edge_ends(rest, last=False):
                        hint = r"Write a first character that is no line end, as in (?m)^[^\r\n] or (?m)^[ \t]*a."
                        raise refused_pattern(pattern, at, '"^" under (?m) before a possible line end', hint)
                case PatternGroup(inner):
                    _check_heads(pattern, inner, first=begins, behind=rest)
                case Repetition(part, count):
                    _check_heads(pattern, ((part,),), first=begins and count == "?", behind=rest)


def _ends_in_return(branches: tuple[Branch, ...], before: Branch) -> bool:
    r"""Return whether the element before a ``$`` may match a ``\r``."""
    for branch in branches:
        for place, node in enumerate(branch):
            ahead = before + branch[:place]
            match node:
                case TextPlace("end" | "line end") if "\r" in edge_ends(ahead, last=True):
                    return True
                case PatternGroup(inner) if _ends_in_return(inner, ahead):
                    return True
                case Repetition(part) if _ends_in_return(((part,),), ahead):
                    return True
    return False
