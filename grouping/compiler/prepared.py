"""The fast path: to compile a CREATE CQ with a known template, only its literals are read.

A template is a text without its string and number literals and without the CQ's name (`cq_text`). When the second text
of a template arrives, the template's shape (`template_shape`) is made from the first text and its compiled form.
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from grouping.compiler.compiler import compile_draft, finish
from grouping.compiler.draft import Draft
from grouping.compiler.statement_places import in_statement
from grouping.compiler.template_shape import CompiledText, TemplateShape, has_fixed_literals
from grouping.model.catalog import Catalog, Stream
from grouping.model.errors import InputError
from grouping.model.query import CreateCq
from grouping.model.table import Table, View
from grouping.plan.group import CompiledQuery
from grouping.plan.table_changes import table_changes
from grouping.statements.command import parse
from grouping.statements.cq_text import CqText

__all__ = ["Preparer"]

_OPAQUE = re.compile(r"""["`\[{$#]|--|/\*""")
"""Characters that may hide a quote from the scan for literals; a text with such a character has no template."""
_MOST = 10_000
"""The largest number of templates with a shape (7 kB each), and of templates with one text so far (9 kB each)."""

_Pieces = tuple[str, ...]
"""The pieces of a template."""
_Kept = TypeVar("_Kept")


class Preparer:
    """Compiles CREATE CQ statements, by the fast path if possible; not thread-safe."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._shapes: dict[_Pieces, TemplateShape] = {}
        self._firsts: dict[_Pieces, CompiledText] = {}
        """Template with one text so far → the compiled text. The shape is made at the second text: making a shape takes
        a quarter of the time of a compilation, and a template with a single text needs no shape."""

    def create(self, text: CqText, seen: Catalog | None = None) -> tuple[CreateCq, CompiledQuery]:
        """Return the command of a CREATE CQ without its SELECT, and the compiled SELECT.

        Args:
            text: The command.
            seen: The catalog restricted to the sources that the sender may read; None for all sources.

        Raises:
            InputError: As `command.parse` and `compiler.compile_select` do; ``unknown-statement`` for a statement other
                than CREATE CQ.
        """
        if not text.is_cut:
            command, draft = self._compile(str(text), seen)
            return _without_select(command), finish(draft)
        pieces = text.template.pieces
        shape = self._shapes.get(pieces) or self._second(pieces)
        if shape is not None:
            # A shape is invalid once its stream was dropped, even if a new stream has the same name.
            if self._source_of(shape) is not shape.stream:
                del self._shapes[pieces]
            elif seen is not None and not all(map(seen.find_source, shape.named)):
                pass  # the full compilation names the unreadable source
            elif (read := shape.read(text)) is not None:
                return read
        return self._whole_path(text, seen)

    def _source_of(self, shape: TemplateShape) -> Stream | Table | View | None:
        """Return the source that now has the name of a shape's source; for a table, the stream of its changes."""
        found = self._catalog.find_source(shape.stream.name)
        return table_changes(found) if isinstance(found, Table) else found

    def _compile(self, text: str, seen: Catalog | None) -> tuple[CreateCq, Draft]:
        command = parse(text)
        if not isinstance(command, CreateCq):
            raise InputError(
                "this is not a CREATE CQ", code="unknown-statement", detail="This method compiles CREATE CQ only."
            )
        try:
            return command, compile_draft(command.select, self._catalog if seen is None else seen)
        except InputError as error:
            raise in_statement(error, text, command.select) from None

    def has_fixed_literals(self, text: CqText) -> bool:
        """Return whether literals of a text's SELECT influence more than the row of constants.

        A fault that the fast path had in earlier versions concerns only such texts
        (`gateway/commands/stored_queries.py`).

        Raises:
            InputError: As `create` does.
        """
        if not text.is_cut:
            return False
        compiled = self._compiled(text, None)
        return _may_be_template(compiled) and has_fixed_literals(compiled)

    def _compiled(self, text: CqText, seen: Catalog | None) -> CompiledText:
        """Compile a text fully."""
        whole = str(text)
        parsed, draft = self._compile(whole, seen)
        start = whole.find(parsed.select, text.name_end)
        return CompiledText(text, start, draft, _without_select(parsed), finish(draft))

    def _whole_path(self, text: CqText, seen: Catalog | None) -> tuple[CreateCq, CompiledQuery]:
        """Compile a text fully, and keep the result for further texts of its template."""
        compiled, pieces = self._compiled(text, seen), text.template.pieces
        if _may_be_template(compiled):
            shape = self._shapes.get(pieces)
            if shape is None:
                _keep(self._firsts, pieces, compiled)
            elif not shape.suits(compiled):
                del self._shapes[pieces]  # the next text of this template starts a new shape
        return compiled.command, compiled.query

    def _second(self, pieces: _Pieces) -> TemplateShape | None:
        """Return the shape of a template whose first text is known; None for the first text, or an unsuitable shape."""
        first = self._firsts.pop(pieces, None)
        if first is None:
            return None
        shape = TemplateShape.of(first)
        if not shape.suits(first):
            return None
        _keep(self._shapes, pieces, shape)
        return shape


def _may_be_template(compiled: CompiledText) -> bool:
    """Return whether the scan has found all literals of a text, so that its template may have a shape."""
    pieces = compiled.text.template.pieces
    # If the CQ's name is in quotes, the next piece begins with the closing quote, which hides no literal.
    rest = (pieces[1].removeprefix('"'), *pieces[2:])
    return compiled.start >= 0 and not any(_OPAQUE.search(piece) for piece in rest)


def _keep(kept: dict[_Pieces, _Kept], pieces: _Pieces, new: _Kept) -> None:
    """Store a value for a template, and drop the oldest entry if there are too many."""
    if len(kept) >= _MOST:
        del kept[next(iter(kept))]
    kept[pieces] = new


def _without_select(command: CreateCq) -> CreateCq:
    return msgspec.structs.replace(command, select="")
