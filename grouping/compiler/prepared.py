"""The fast path: a CREATE CQ of a shape that was seen before is compiled by reading its literals only.

The template is the text with its string and number literals, and the CQ's name, cut out (`cq_text`). When a second text
of a template comes, the first text and its compiled form give the template's shape (`template_shape`).
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from grouping.compiler.compiler import compile_draft, finish
from grouping.compiler.draft import Draft
from grouping.compiler.statement_places import in_statement
from grouping.compiler.template_shape import CompiledText, TemplateShape, has_fixed_literals
from grouping.model.catalog import Catalog
from grouping.model.errors import InputError
from grouping.model.query import CreateCq
from grouping.plan.group import CompiledQuery
from grouping.statements.command import parse
from grouping.statements.cq_text import CqText

__all__ = ["Preparer"]

_OPAQUE = re.compile(r"""["`\[{$#]|--|/\*""")
"""Marks that may hide a quote from the scan for literals: a text with such a mark is never a template."""
_MOST = 10_000
"""Templates with a known shape, and as many seen once: seven and nine kilobytes each."""

_Pieces = tuple[str, ...]
"""The pieces of a template."""
_Kept = TypeVar("_Kept")


class Preparer:
    """Compiles CREATE CQ statements, quickly where the shape is known; for one thread."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._shapes: dict[_Pieces, TemplateShape] = {}
        self._firsts: dict[_Pieces, CompiledText] = {}
        """The first text of each template that came once: making its shape takes a quarter of a compilation."""

    def create(self, text: CqText, seen: Catalog | None = None) -> tuple[CreateCq, CompiledQuery]:
        """Return the command of a CREATE CQ without its SELECT, and the compiled SELECT.

        Args:
            text: The command.
            seen: The catalog as its sender sees it; None where the sender may read all sources.

        Raises:
            InputError: As `command.parse` and `compiler.compile_select` do; ``unknown-statement`` for another one.
        """
        if not text.is_cut:
            command, draft = self._compile(str(text), seen)
            return _without_select(command), finish(draft)
        pieces = text.template.pieces
        shape = self._shapes.get(pieces) or self._second(pieces)
        if shape is not None:
            # A stream that was dropped, or created anew, takes its shapes with it.
            if self._catalog.find(shape.stream.name) is not shape.stream:
                del self._shapes[pieces]
            elif seen is not None and not all(map(seen.find_source, shape.named)):
                pass  # the whole path tells which source its sender does not see
            elif (read := shape.read(text)) is not None:
                return read
        return self._whole_path(text, seen)

    def _compile(self, text: str, seen: Catalog | None) -> tuple[CreateCq, Draft]:
        command = parse(text)
        if not isinstance(command, CreateCq):
            raise InputError("this is no CREATE CQ", code="unknown-statement", detail="A CREATE CQ is wanted here.")
        try:
            return command, compile_draft(command.select, self._catalog if seen is None else seen)
        except InputError as error:
            raise in_statement(error, text, command.select) from None

    def has_fixed_literals(self, text: CqText) -> bool:
        """Return whether literals of a text's SELECT decide more than its row of constants.

        Only texts of these templates can have been compiled wrongly by the fast path of earlier versions.

        Raises:
            InputError: As `create` does.
        """
        if not text.is_cut:
            return False
        compiled = self._compiled(text, None)
        return _may_be_template(compiled) and has_fixed_literals(compiled)

    def _compiled(self, text: CqText, seen: Catalog | None) -> CompiledText:
        """Compile a text the whole way."""
        whole = str(text)
        parsed, draft = self._compile(whole, seen)
        start = whole.find(parsed.select, text.name_end)
        return CompiledText(text, start, draft, _without_select(parsed), finish(draft))

    def _whole_path(self, text: CqText, seen: Catalog | None) -> tuple[CreateCq, CompiledQuery]:
        """Compile a text, and keep the result for further texts of its template."""
        compiled, pieces = self._compiled(text, seen), text.template.pieces
        if _may_be_template(compiled):
            shape = self._shapes.get(pieces)
            if shape is None:
                _keep(self._firsts, pieces, compiled)
            elif not shape.suits(compiled):
                del self._shapes[pieces]  # the next text of this template may suit it better
        return compiled.command, compiled.query

    def _second(self, pieces: _Pieces) -> TemplateShape | None:
        """Return the shape of a template at its second text; None at its first."""
        first = self._firsts.pop(pieces, None)
        if first is None:
            return None
        shape = TemplateShape.of(first)
        if not shape.suits(first):
            return None
        _keep(self._shapes, pieces, shape)
        return shape


def _may_be_template(compiled: CompiledText) -> bool:
    """Return whether all literals of a text are known, so that its template may have a shape."""
    pieces = compiled.text.template.pieces
    # The quote that may follow the name hides no literal.
    rest = (pieces[1].removeprefix('"'), *pieces[2:])
    return compiled.start >= 0 and not any(_OPAQUE.search(piece) for piece in rest)


def _keep(kept: dict[_Pieces, _Kept], pieces: _Pieces, new: _Kept) -> None:
    """Keep something of a template, in the place of the oldest where there are too many."""
    if len(kept) >= _MOST:
        del kept[next(iter(kept))]
    kept[pieces] = new


def _without_select(command: CreateCq) -> CreateCq:
    return msgspec.structs.replace(command, select="")
