"""The sentences of docstrings and comments, for the tests of plain words.

A sentence names its subject. Pronouns in place of nouns make a text hard to read, most of all at the beginning of a
sentence.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["MOST_PRONOUNS", "Prose", "error_texts", "read_prose", "sentences"]

MOST_PRONOUNS = 0.05
"""Largest share of pronoun-like words in a room."""
_PRONOUNS = frozenset("what those such one other whose it that which".split())
_BEGINNING = re.compile(r"(?:[a-z_]+: )?(Of|What|Those|So many|One|It)\b")
"""A beginning that names no subject, perhaps behind the name of an argument."""
_WORD = re.compile(r"[A-Za-z']+")
_CODE = re.compile(r"``[^`]*``|>>>.*")
_PARTS = re.compile(r"\n\s*\n|\n\s*(?:Args|Returns|Raises|Yields|Example):\s*\n|(?<=[.:!?])\n\s*(?=[a-z_]+: )")
_ENDS = re.compile(r"(?<=[.!?])\s+")
_RAISED = frozenset(("unsupported", "mismatch", "InputError", "OperationalError", "refused"))


class Prose(NamedTuple):
    """The prose of one room."""

    share: float
    """Share of pronoun-like words among all words."""
    nameless: list[str]
    """Sentences that begin without a subject, each with its file and line."""


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings and comments of a file, each with its line."""
    source = path.read_text("utf-8")
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for child in body if isinstance(body, list) else []:
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                yield child.lineno, str(child.value.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def sentences(text: str) -> Iterator[str]:
    r"""Yield the sentences of a docstring or comment, without line breaks.

    Example:
        >>> list(sentences("Return it. The rest\nfollows."))
        ['Return it.', 'The rest follows.']
    """
    for part in _PARTS.split(text):
        yield from filter(None, _ENDS.split(" ".join(part.split())))


def read_prose(paths: Iterable[Path], root: Path) -> dict[str, Prose]:
    """Return the prose of each room, by its path from the root."""
    words: dict[str, Counter[bool]] = defaultdict(Counter)
    nameless: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        room = str(path.parent.relative_to(root))
        for line, text in _texts(path):
            words[room].update(word.lower() in _PRONOUNS for word in _WORD.findall(_CODE.sub("", text)))
            found = [sentence for sentence in sentences(text) if _BEGINNING.match(sentence)]
            nameless[room] += [f"{path.relative_to(root)}:{line}: {sentence}" for sentence in found]
    return {room: Prose(count[True] / max(count.total(), 1), nameless[room]) for room, count in words.items()}


def error_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the first argument of each refusal in a file, as far as it is literal, with its line."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and node.args and getattr(node.func, "id", "") in _RAISED:
            first = node.args[0]
            part = first.values[0] if isinstance(first, ast.JoinedStr) and first.values else first
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield node.lineno, part.value
