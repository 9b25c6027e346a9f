r"""Look-around in regular expressions, rewritten as conditions that a search in linear time can check.

A look-around at a fixed place becomes a separate pattern that the text must, or must not, match:
``^(?=.*a)(?!.*b)`` matches a text with ``a`` and without ``b``. Searches only ask whether there is a match, so a
look-around at either end of a pattern becomes part of the pattern: ``a(?=b)`` becomes ``ab``, and ``a(?!b)`` becomes
``a`` before a character other than ``b`` or before the end of the text.
"""

from __future__ import annotations

from typing import NamedTuple

from grouping.model.errors import InputError
from grouping.values.pattern_classes import Chars, complement, union
from grouping.values.pattern_refusals import refused_pattern
from grouping.values.pattern_tree import Branch, LookAround, PatternGroup, PatternNode, Repetition, TextPlace, all_nodes

__all__ = ["PatternConditions", "without_looks"]

_HINT = (
    "(?=…) and (?!…) work after a first ^ and a fixed number of characters, as in ^(?=.*a)(?!.*b), and at the end; "
    "(?<=…) and (?<!…) at the beginning; (?<!…) also before a last $."
)
_PLAIN_HINT = (
    "A negative look-around there may have only characters and sets, as in (?!abc) or (?<![a-z]); or write "
    "NOT (a RLIKE 'b')."
)


class PatternConditions(NamedTuple):
    """A pattern without look-arounds, and the conditions that replace its look-arounds."""

    branches: tuple[Branch, ...]
    also: tuple[tuple[Branch, ...], ...] = ()
    """Patterns that the text must match too."""
    never: tuple[tuple[Branch, ...], ...] = ()
    """Patterns that the text must not match."""
    unless: tuple[Branch, ...] = ()
    """A pattern that must have no match in the text. The pattern has the ``$`` or ``\\z`` at the end of `branches`."""


def without_looks(pattern: str, branches: tuple[Branch, ...]) -> PatternConditions:
    """Return the conditions that replace the look-arounds of a pattern.

    Raises:
        InputError: ``unsupported-query`` for a look-around without a form in linear time.
    """
    if not any(isinstance(node, LookAround) for node in all_nodes(branches)):
        return PatternConditions(branches)
    also: list[tuple[Branch, ...]] = []
    never: list[tuple[Branch, ...]] = []
    unless: tuple[Branch, ...] = ()
    if len(branches) == 1:
        branch = _anchored(branches[0], also, never)
        match branch:
            case (*before, LookAround(inner, False, True, at), TextPlace("end" | "very end") as end):
                branch = (*before, end)
                unless = ((PatternGroup(_bounded(pattern, inner, at)), end),)
        branches = (branch,)
    whole = tuple(_at_edges(pattern, branch) for branch in branches)
    for listed in (whole, *also, *never, unless):
        for node in all_nodes(listed):
            if isinstance(node, LookAround):
                raise refused_pattern(pattern, node.at, "a look-around at this place", _HINT)
    return PatternConditions(whole, tuple(also), tuple(never), unless)


def _anchored(branch: Branch, also: list[tuple[Branch, ...]], never: list[tuple[Branch, ...]]) -> Branch:
    """Return a sequence without the look-aheads at a fixed number of characters after a first ``^``.

    Args:
        branch: The sequence.
        also: Receives the patterns of positive look-aheads.
        never: Receives the patterns of negative look-aheads.
    """
    match branch:
        case (TextPlace("start"), *_):
            pass
        case _:
            return branch
    kept: list[PatternNode] = []
    for place, node in enumerate(branch):
        if isinstance(node, LookAround) and node.ahead:
            (never if node.negated else also).append(((*kept, PatternGroup(node.branches)),))
            continue
        if not (place == 0 or _is_fixed(node)):
            return (*kept, *branch[place:])
        kept.append(node)
    return tuple(kept)


def _is_fixed(node: PatternNode) -> bool:
    """Return whether an element always matches the same number of characters."""
    match node:
        case Chars() | TextPlace("border"):
            return True
        case Repetition(part, count):
            return "," not in count and count.startswith("{") and _is_fixed(part)
        case PatternGroup((only,)):
            return all(map(_is_fixed, only))
    return False


def _at_edges(pattern: str, branch: Branch) -> Branch:
    """Return a sequence with a first look-behind and a last look-ahead rewritten as elements."""
    match branch:
        case (LookAround(inner, False, negated, at), *rest):
            first = _beside(pattern, inner, at, ahead=False) if negated else PatternGroup(_bounded(pattern, inner, at))
            branch = (first, *rest)
    match branch:
        case (*rest, LookAround(inner, True, negated, at)):
            last = _beside(pattern, inner, at, ahead=True) if negated else PatternGroup(inner)
            branch = (*rest, last)
    return branch


def _bounded(pattern: str, branches: tuple[Branch, ...], at: int) -> tuple[Branch, ...]:
    """Return the alternatives of a look-behind. Refuse alternatives without a greatest length, as Java does."""
    for node in all_nodes(branches):
        if isinstance(node, Repetition) and (node.bounds in ("*", "+") or node.bounds.endswith(",}")):
            raise refused_pattern(
                pattern, at, "a look-behind without a greatest length", "Write a count such as {1,9}."
            )
    return branches


def _beside(pattern: str, branches: tuple[Branch, ...], at: int, *, ahead: bool) -> PatternGroup:
    """Return elements for a negative look-around, which match if none of its texts comes directly before or after.

    Args:
        pattern: The pattern, for an error.
        branches: The texts that must not be there.
        at: The place of the look-around in the pattern, for an error.
        ahead: Whether the texts must not come after the place; if False, they must not come before the place.

    Raises:
        InputError: ``unsupported-query`` if a text is not a sequence of characters, or if sets of characters overlap.
    """
    texts: list[list[Chars]] = []
    for branch in branches:
        chars = [node for node in branch if isinstance(node, Chars)]
        if len(chars) != len(branch) or not chars:
            raise refused_pattern(
                pattern, at, "a negative look-around for anything but a sequence of characters", _PLAIN_HINT
            )
        texts.append(chars if ahead else chars[::-1])
    return _not_beside(
        texts, refused_pattern(pattern, at, "a negative look-around for sets that overlap", _PLAIN_HINT), ahead
    )


def _not_beside(texts: list[list[Chars]], refusal: InputError, ahead: bool) -> PatternGroup:
    firsts: dict[Chars, list[list[Chars]]] = {}
    for first, *rest in texts:
        firsts.setdefault(first, []).append(rest)
    longer = {first: rests for first, rests in firsts.items() if all(rests)}
    if longer and len(firsts) > 1:
        members = "".join(first.members for first in firsts)
        if not all(first.members for first in firsts) or len({*members}) < len(members):
            raise refusal
    branches: list[Branch] = [(TextPlace("very end" if ahead else "start"),), (complement(union([*firsts])),)]
    for first, rests in longer.items():
        inner = _not_beside(rests, refusal, ahead)
        branches.append((first, inner) if ahead else (inner, first))
    return PatternGroup(tuple(branches))
