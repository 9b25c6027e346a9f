"""Typed decoders for columns at their paths.

A *layer* decodes columns whose paths fit together: no path begins with another path, and no value is read both as an
object and as an array. Nearly all streams have a single layer. Columns at `$.a` and `$.a.b`, or two columns of the same
field, are in two layers; each of the layers then decodes the record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import msgspec

from grouping.model.catalog import StreamColumn
from grouping.model.column_place import RecordPath

__all__ = ["Layer", "Raw", "layers_of"]

Raw = Callable[[bytes], object]
"""Reads a value from the JSON text that msgspec has left undecoded."""


@dataclass(slots=True)
class _LayerNode:
    """A value in the record: a column, an object with fields, or an array with elements."""

    children: dict[str | int, _LayerNode] = field(default_factory=dict)
    column: int | None = None


class Layer:
    """Decodes some columns of a record."""

    def __init__(
        self, root: _LayerNode, types: Sequence[Any], readers: Mapping[int, Raw], *, named: bool, lax: bool
    ) -> None:
        """Make the decoder.

        Args:
            root: The paths of the columns, as a tree.
            types: For each column, its type for msgspec.
            readers: For each column of type `msgspec.Raw`, the reader of its values.
            named: Whether the layer decodes JSON, and finds fields by their names. Otherwise the layer only makes
                empty records, since the exact reader returns the values.
            lax: Whether texts are accepted as numbers and booleans.
        """
        self._named = named
        self._types = types
        self._readers = readers
        self._raw: list[tuple[Callable[[Any], Any] | None, str, Raw]] = []
        self._places: dict[int, tuple[str, str]] = {}
        """For each column: the path of attributes to its holder (the object with its value), and its attribute."""
        self._empty: dict[str, Any] = {}
        """By path of attributes: an empty holder, for records with null at this path."""
        self.struct: Any = None
        """The type of decoded records; None if the layer's only column is the whole value (path ``$``)."""
        if root.column is None:
            record = self.struct = self._struct(root, "")
            self._decode = msgspec.json.Decoder(record, strict=not lax).decode
        else:
            record = msgspec.defstruct("Whole", [("c", types[root.column], msgspec.field(default=None))], gc=False)
            whole = msgspec.json.Decoder(types[root.column], strict=not lax).decode
            self._decode = lambda value: record(whole(value))
            self._add(root.column, "c", "")
        self.empty: Any = record()
        """A record without values."""
        self.decode: Callable[[bytes], Any] = self._finish if self._raw else self._decode
        """Decodes a record; raises errors of msgspec and of the readers in `readers`."""

    @property
    def has_raw(self) -> bool:
        """Whether decoded records have raw values."""
        return bool(self._raw)

    @property
    def columns(self) -> list[int]:
        """The numbers of the layer's columns."""
        return list(self._places)

    def values(self, holders: dict[str, list[Any]], column: int) -> list[Any]:
        """Return a column of decoded records.

        Args:
            holders: By path of attributes, the holders of columns. The caller must set the decoded records as the
                holders at the path "". The method adds further holders, which are used again for other columns.
            column: The number of the column.
        """
        holder, attribute = self._places[column]
        return list(map(attrgetter(attribute), self._holders(holders, holder)))

    def _holders(self, known: dict[str, list[Any]], path: str) -> list[Any]:
        found = known.get(path)
        if found is None:
            above, _, attribute = path.rpartition(".")
            found = list(map(attrgetter(attribute), self._holders(known, above)))
            if None in found:
                empty = self._empty[path]
                found = [empty if each is None else each for each in found]
            known[path] = found
        return found

    def _finish(self, value: bytes) -> Any:
        """Decode a record, and read its raw values."""
        return self.finished(self._decode(value))

    def finished(self, record: Any) -> Any:
        """Read the raw values of a record of the type `struct`, and return the record; raises as `decode` does."""
        for holder, name, read in self._raw:
            owner = record if holder is None else _get(holder, record)
            if owner is not None and (raw := getattr(owner, name)) is not None:
                setattr(owner, name, read(bytes(raw)))
        return record

    def _struct(self, node: _LayerNode, path: str) -> Any:
        """Return the type of the object or array at a path of attributes."""
        array = any(isinstance(step, int) for step in node.children)
        steps: list[str | int] = list(node.children)
        if array:
            steps = list(range(max(step for step in node.children if isinstance(step, int)) + 1))
        fields: list[tuple[str, Any, Any]] = []
        for number, step in enumerate(steps):
            name = step if isinstance(step, str) and self._named else None
            child = node.children.get(step)
            if child is None:
                fields.append((f"u{number}", msgspec.Raw, msgspec.field(default=msgspec.Raw())))
            elif child.column is not None:
                fields.append((f"c{number}", self._types[child.column], msgspec.field(default=None, name=name)))
                self._add(child.column, f"c{number}", path)
            else:
                below = f"{path}.n{number}".lstrip(".")
                inner = self._struct(child, below)
                empty = self._empty[below] = inner()
                fields.append((f"n{number}", inner | None, msgspec.field(default_factory=_always(empty), name=name)))
        return msgspec.defstruct("Record", fields, gc=False, array_like=array)

    def _add(self, column: int, attribute: str, path: str) -> None:
        self._places[column] = path, attribute
        if column in self._readers:
            self._raw.append((attrgetter(path) if path else None, attribute, self._readers[column]))


def layers_of(
    columns: Sequence[StreamColumn], types: Sequence[Any], readers: Mapping[int, Raw], *, named: bool, lax: bool
) -> list[Layer]:
    """Return the layers that decode all columns. There is at least one layer, which checks that the record is JSON."""
    roots: list[_LayerNode] = [_LayerNode()]
    for number, column in enumerate(columns):
        path = column.place.path or ()
        if not any(_insert(root, path, number) for root in roots):
            roots.append(_LayerNode())
            _insert(roots[-1], path, number)
    return [Layer(root, types, readers, named=named, lax=lax) for root in roots]


def _insert(root: _LayerNode, path: RecordPath, column: int) -> bool:
    """Put a column at its path. Return False if the path does not fit together with the paths in this layer."""
    node = root
    for step in path:
        if node.column is not None or type(next(iter(node.children), step)) is not type(step):
            return False
        node = node.children.setdefault(step, _LayerNode())
    if node.column is not None or node.children:
        return False
    node.column = column
    return True


def _always(value: Any) -> Callable[[], Any]:
    return lambda: value


def _get(getter: Callable[[Any], Any], record: Any) -> Any:
    try:
        return getter(record)
    except AttributeError:
        return None
