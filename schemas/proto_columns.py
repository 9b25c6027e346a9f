"""Protobuf messages of source streams: their SQL columns.

Gateway (CREATE STREAM) and evaluator (decoding) use this module; the SDK does not, so it needs no Protobuf.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.message import DecodeError

from schemas.avro_columns import AvroMismatch
from schemas.avro_fields import MOST_FIELDS, declared_hint, too_many_fields

__all__ = [
    "TIMESTAMP_MESSAGE",
    "check_proto_columns",
    "is_map",
    "message_path",
    "message_type",
    "proto_fields",
    "wrapped_field",
]

TIMESTAMP_MESSAGE = "google.protobuf.Timestamp"
_WRAPPERS = frozenset(wrappers_pb2.DESCRIPTOR.message_types_by_name)
_KNOWN_FILES = {
    module.DESCRIPTOR.name: module.DESCRIPTOR.serialized_pb
    for module in (
        any_pb2, descriptor_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
    )
}  # fmt: skip
"""Protobuf's own files, which a descriptor may leave out."""
_MOST_FILES = 1_000
_REFUSED = 'the option "descriptor" cannot be used'
_SHOWN = 20
"""The largest number of names that an error message lists."""

_NO_COLUMN = (
    "Leave the column out: no column holds a message that contains itself, or a map with keys that are no strings."
)
_SIGNED = ("INT", "BIGINT", "SMALLINT", "TINYINT")
_UNSIGNED = ("BIGINT", "INT", "SMALLINT", "TINYINT")
_TYPES = {
    1: ("DOUBLE",),
    2: ("FLOAT", "DOUBLE"),
    3: ("BIGINT",),
    4: ("DECIMAL(20,0)", "BIGINT"),
    5: _SIGNED,
    6: ("DECIMAL(20,0)", "BIGINT"),
    7: _UNSIGNED,
    8: ("BOOLEAN",),
    9: ("STRING",),
    12: ("BINARY",),
    13: _UNSIGNED,
    14: ("STRING",),
    15: _SIGNED,
    16: ("BIGINT",),
    17: _SIGNED,
    18: ("BIGINT",),
}
"""Number of a field's type (`FieldDescriptorProto.Type`) → the SQL types that a column may have. The first type is the
natural type. If the column has a narrower type, values are checked.
"""


def message_type(descriptor: str, name: str) -> Any:
    """Return the descriptor of a message.

    Args:
        descriptor: A FileDescriptorSet in base64, as ``protoc --include_imports --descriptor_set_out`` writes it.
        name: The message's full name.

    Raises:
        AvroMismatch: The text is not a FileDescriptorSet, or lacks the message or a file.
    """
    pool = descriptor_pool.DescriptorPool()
    files = _files(descriptor)
    known = {name: file.SerializeToString() for name, file in files.items()}
    for file in _in_order(files):
        body = known.get(file) or _KNOWN_FILES.get(file)
        if body is None:
            raise AvroMismatch(_REFUSED, f'File "{file[:100]}" is missing: protoc adds it with --include_imports.')
        try:
            pool.AddSerializedFile(body)
        except (TypeError, ValueError, DecodeError) as error:
            raise AvroMismatch(_REFUSED, f'File "{file[:100]}" is refused: {str(error)[:300]}.') from error
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError:
        there = [f'"{each}"' for each in _messages(files)]
        shown = ", ".join(there[:_SHOWN]) + (", …" if len(there) > _SHOWN else "") or "none"
        raise AvroMismatch(
            f'message "{name[:200]}" is not in the descriptor', f"The descriptor has the messages: {shown}."
        ) from None


def check_proto_columns(descriptor: str, message: str, columns: Iterable[tuple[str, object]]) -> None:
    """Check that a message has a field of the right type for each column.

    Args:
        descriptor: A FileDescriptorSet in base64.
        message: The full name of the message.
        columns: Names and SQL types.

    Raises:
        AvroMismatch: The message has no field, or a field of another type, for a column. The error names the first
            such column.
    """
    fields = message_type(descriptor, message).fields_by_name
    for name, kind in columns:
        if name not in fields:
            there = ", ".join(f'"{field}"' for field in list(fields)[:_SHOWN]) or "none"
            missing, detail = f'column "{name}" is not in the message', f"The message has the fields: {there}."
            raise AvroMismatch(missing, detail, hint=_hint(descriptor, message, name))
        found = _sql_text(fields[name], kind)
        if found != str(kind):
            what = f"is of type {found}" if found else "has a type that no column can hold"
            wrong = f'column "{name}" is not a {kind} in the message'
            raise AvroMismatch(wrong, f"The field {what} there.", hint=_hint(descriptor, message, name))


def proto_fields(descriptor: str, message: str) -> dict[str, str | None]:
    """Return the SQL types of a message's fields, by name; None for a field that no column can hold.

    No column can hold a message that contains itself, or a map whose keys are no strings. A STRUCT leaves these fields
    out.

    Args:
        descriptor: A FileDescriptorSet in base64.
        message: The full name of the message.

    Raises:
        AvroMismatch: The descriptor lacks the message, or the message has more than 1,000 fields on all levels.
    """
    count = 0

    def own_type(field: Any, around: tuple[str, ...]) -> str | None:
        if is_map(field):
            key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            element = single_type(value, around) if key.type == key.TYPE_STRING else None
            return element and f"MAP<STRING, {element}>"
        element = single_type(field, around)
        return element and (f"ARRAY<{element}>" if field.is_repeated else element)

    def single_type(field: Any, around: tuple[str, ...]) -> str | None:
        nonlocal count
        count += 1
        if count > MOST_FIELDS:
            raise too_many_fields()
        inner = field.message_type
        if inner is None or inner.full_name == TIMESTAMP_MESSAGE or wrapped_field(field) is not None:
            return _single_text(field, None)
        if inner.full_name in around:
            return None
        found = {name: own_type(each, (*around, inner.full_name)) for name, each in inner.fields_by_name.items()}
        parts = [f"{name}: {text}" for name, text in found.items() if text is not None]
        return f"STRUCT<{', '.join(parts)}>" if parts else None

    return {name: own_type(field, ()) for name, field in message_type(descriptor, message).fields_by_name.items()}


def _hint(descriptor: str, message: str, name: str) -> str | None:
    try:
        return declared_hint(name, proto_fields(descriptor, message), _NO_COLUMN)
    except AvroMismatch:  # too many fields for a list of all
        return None


def is_map(field: Any) -> bool:
    """Tell whether a field is a map."""
    return bool(field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry)


def wrapped_field(field: Any) -> Any:
    """Return the field within a wrapper of Protobuf (``google.protobuf.Int64Value``); None for other fields."""
    inner = field.message_type
    if inner is None or inner.file.package != "google.protobuf" or inner.name not in _WRAPPERS:
        return None
    return inner.fields_by_name.get("value")


def message_path(message: Any) -> list[int]:
    """Return the path of a message in its file: the index of the top-level message, then of nested messages."""
    names: list[str] = []
    inner = message
    while inner is not None:
        names.insert(0, inner.name)
        inner = inner.containing_type
    siblings = descriptor_pb2.FileDescriptorProto.FromString(message.file.serialized_pb).message_type
    path: list[int] = []
    for name in names:
        place = [each.name for each in siblings].index(name)
        path.append(place)
        siblings = siblings[place].nested_type
    return path


def _files(text: str) -> dict[str, Any]:
    """Return the files of a descriptor by name."""
    try:
        found = descriptor_pb2.FileDescriptorSet.FromString(b64decode("".join(text.split()), validate=True))
    except (ValueError, DecodeError) as error:
        raise AvroMismatch(
            _REFUSED, f"The descriptor is no FileDescriptorSet in base64: {str(error)[:200]}."
        ) from error
    if not 0 < len(found.file) <= _MOST_FILES:
        raise AvroMismatch(
            _REFUSED, f"The descriptor has {len(found.file)} files, and 1 to {_MOST_FILES} are possible."
        )
    return {file.name: file for file in found.file}


def _in_order(files: dict[str, Any]) -> Iterator[str]:
    """Yield the names of files, each after its imports. If imports form a circle, Protobuf refuses the files later."""
    done: set[str] = set()
    waiting = [(name, False) for name in reversed(files)]
    while waiting:
        name, ready = waiting.pop()
        if ready:
            yield name
        elif name not in done:
            done.add(name)
            waiting.append((name, True))
            imports = files[name].dependency if name in files else _imports_of_known(name)
            waiting += [(each, False) for each in imports if each not in done]


def _imports_of_known(name: str) -> list[str]:
    body = _KNOWN_FILES.get(name)
    return [] if body is None else list(descriptor_pb2.FileDescriptorProto.FromString(body).dependency)


def _messages(files: dict[str, Any]) -> Iterator[str]:
    """Yield the full names of the top-level messages of files."""
    for file in files.values():
        for message in file.message_type:
            yield f"{file.package}.{message.name}" if file.package else message.name


def _sql_text(field: Any, wanted: Any) -> str | None:
    """Return the text of the SQL type of a field, given the declared type; None if no SQL type fits."""
    if is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        element = _single_text(value, getattr(wanted, "element", None))
        return f"MAP<STRING, {element}>" if key.type == key.TYPE_STRING and element else None
    if field.is_repeated:
        element = _single_text(field, getattr(wanted, "element", None))
        return element and f"ARRAY<{element}>"
    return _single_text(field, wanted)


def _single_text(field: Any, wanted: Any) -> str | None:
    if field.message_type is None:
        kinds = _TYPES[field.type]
        return str(wanted) if str(wanted) in kinds else kinds[0]
    if field.message_type.full_name == TIMESTAMP_MESSAGE:
        return "TIMESTAMP"
    if (inner := wrapped_field(field)) is not None:
        return _single_text(inner, wanted)
    there = field.message_type.fields_by_name
    parts = [(name, _sql_text(there[name], kind)) for name, kind in getattr(wanted, "fields", ()) if name in there]
    return f"STRUCT<{', '.join(f'{name}: {text}' for name, text in parts)}>"
