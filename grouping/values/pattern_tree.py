"""The tree of a regular expression, and properties of its parts: the size, possible emptiness, possible line ends."""

from __future__ import annotations

from typing import Literal, NamedTuple

from grouping.values.pattern_classes import Chars

__all__ = [
    "Branch",
    "PatternGroup",
    "LookAround",
    "PatternNode",
    "TextPlace",
    "PlaceKind",
    "Repetition",
    "all_nodes",
    "branches_size",
    "edge_ends",
    "is_empty",
    "may_be_empty",
    "node_size",
]

PlaceKind = Literal["start", "end", "very end", "border", "line start", "line end"]


class TextPlace(NamedTuple):
    """A place between two characters."""

    kind: PlaceKind
    at: int = 0
    """The position in the pattern, for refusals."""


class Repetition(NamedTuple):
    """A part that is repeated."""

    part: PatternNode
    bounds: str
    """``*``, ``+``, ``?`` or ``{n,m}``."""
    lazy: bool
    times: int
    """The factor with which the part enters the size of a pattern."""
    at: int

    @property
    def optional(self) -> bool:
        """Whether the part may be absent."""
        return self.bounds in ("*", "?") or self.bounds.startswith("{0")


class PatternGroup(NamedTuple):
    """Alternatives, in parentheses."""

    branches: tuple[Branch, ...]
    captures: bool = False
    at: int = 0


class LookAround(NamedTuple):
    """A condition on the text before or after a place."""

    branches: tuple[Branch, ...]
    ahead: bool
    negated: bool
    at: int


PatternNode = Chars | TextPlace | Repetition | PatternGroup | LookAround
Branch = tuple[PatternNode, ...]


def branches_size(branches: tuple[Branch, ...]) -> int:
    """Return the number of elements of alternatives, with counted repetitions written out."""
    return len(branches) + sum(node_size(node) for branch in branches for node in branch)


def node_size(node: PatternNode) -> int:
    """Return the number of elements within an element, with counted repetitions written out."""
    match node:
        case Chars(weight=weight):
            return weight
        case Repetition(part, _, _, times):
            return node_size(part) * times
        case PatternGroup(branches) | LookAround(branches):
            return branches_size(branches)
    return 0


def may_be_empty(branch: Branch) -> bool:
    """Return whether a sequence may match the empty text."""
    return all(map(is_empty, branch))


def is_empty(node: PatternNode) -> bool:
    """Return whether an element may match the empty text."""
    match node:
        case Chars():
            return False
        case PatternGroup(branches):
            return any(map(may_be_empty, branches))
        case Repetition(part):
            return node.optional or is_empty(part)
    return True


def edge_ends(branch: Branch, *, last: bool) -> frozenset[str]:
    """Return the line ends that the first or the last character of a sequence may match."""
    found: frozenset[str] = frozenset()
    for node in reversed(branch) if last else branch:
        found |= _node_ends(node, last=last)
        if not is_empty(node):
            break
    return found


def _node_ends(node: PatternNode, *, last: bool) -> frozenset[str]:
    match node:
        case Chars(_, ends):
            return ends
        case PatternGroup(branches):
            return frozenset[str]().union(*(edge_ends(branch, last=last) for branch in branches))
        case Repetition(part):
            return _node_ends(part, last=last)
    return frozenset()


def all_nodes(branches: tuple[Branch, ...]) -> list[PatternNode]:
    """Return all elements of a tree, each before its parts."""
    found: list[PatternNode] = []
    stack: list[PatternNode] = [node for branch in reversed(branches) for node in reversed(branch)]
    while stack:
        node = stack.pop()
        found.append(node)
        match node:
            case PatternGroup(inner) | LookAround(inner):
                stack += [each for branch in reversed(inner) for each in reversed(branch)]
            case Repetition(part):
                stack.append(part)
    return found
