"""The sentences of docstrings and comments, for the tests of plain words.

A sentence names its subject. Pronouns in place of nouns make a text hard to read, most of all at the beginning of a
sentence.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["MOST_PRONOUNS", "Prose", "SourceTexts", "read_prose", "read_source", "sentences"]

MOST_PRONOUNS = 0.05
"""Largest share of pronoun-like words in a room."""
_PRONOUNS = frozenset("what those such one other whose it that which".split())
_BEGINNING = re.compile(r"(?:[a-z_]+: )?(Of|What|Those|So many|One|It)\b")
"""A beginning that names no subject, perhaps behind the name of an argument."""
_WORD = re.compile(r"[A-Za-z']+")
_CODE = re.compile(r"``[^`]*``|>>>.*")
_PARTS = re.compile(r"\n\s*\n|\n\s*(?:Args|Returns|Raises|Yields|Example):\s*\n|(?<=[.:!?])\n\s*(?=[a-z_]+: )")
_ENDS = re.compile(r"(?<=[.!?])\s+")
_RAISED = frozenset(
    ("unsupported", "mismatch", "refused", "InputError", "OperationalError", "InternalError", "Finding")
)


class Prose(NamedTuple):
    """The prose of one room."""

    share: float
    """Share of pronoun-like words among all words."""
    nameless: list[str]
    """Sentences that begin without a subject, each with its file and line."""


class SourceTexts(NamedTuple):
    """The texts of one file, each with its line, and the names that the file defines."""

    prose: list[tuple[int, str]]
    """Docstrings and comments."""
    errors: list[tuple[int, str]]
    """The first argument of each refusal, as far as the argument is literal."""
    types: list[str]
    """Names of classes and type aliases, but not of type variables and command-line options."""
    names: set[str]
    """Names of functions, classes, arguments, variables and attributes that the file defines."""


@functools.cache
def read_source(path: Path) -> SourceTexts:
    """Return the texts of a file, which is parsed once for all tests: parsing all files takes seconds."""
    source = path.read_text("utf-8")
    module = ast.parse(source)
    texts = SourceTexts([], [], [], set())
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            texts.types.append(node.name)
        texts.names.update(_name(node))
        body = getattr(node, "body", None)
        for child in body if isinstance(body, list) else []:
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                texts.prose.append((child.lineno, str(child.value.value)))
        texts.errors.extend(_error_text(node))
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, ast.unparse(node.value)
            if re.match("_?[A-Z][A-Za-z]*[a-z]", name) and not value.startswith(("TypeVar", "Annotated")):
                texts.types.append(name)
    if "#" in source:  # Python's tokenizer takes longer than its parser
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                texts.prose.append((token.start[0], token.string.lstrip("# ")))
    return texts


def _name(node: ast.AST) -> Iterator[str]:
    """Yield the name that a node defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
        case _:
            pass


def _error_text(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the literal beginnings of the texts of a refusal (message, detail, hint), with its line."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _RAISED:
        for text in (*node.args, *(each.value for each in node.keywords)):
            part = text.values[0] if isinstance(text, ast.JoinedStr) and text.values else text
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield node.lineno, part.value


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
        for line, text in read_source(path).prose:
            words[room].update(word.lower() in _PRONOUNS for word in _WORD.findall(_CODE.sub("", text)))
            found = [sentence for sentence in sentences(text) if _BEGINNING.match(sentence)]
            nameless[room] += [f"{path.relative_to(root)}:{line}: {sentence}" for sentence in found]
    return {room: Prose(count[True] / max(count.total(), 1), nameless[room]) for room, count in words.items()}
