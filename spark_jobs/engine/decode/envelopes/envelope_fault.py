"""The detail of a dead letter whose record is no change: the path, the expected value, and the value found."""

from __future__ import annotations

from collections.abc import Mapping

from spark_jobs.engine.decode.json_exact import NOT_ONE_OBJECT, WrongRecord, json_kind, read_json

__all__ = ["envelope_fault", "json_fault"]

_UNREADABLE = "a text in it is no valid UTF-8 or has half of a surrogate pair"


def envelope_fault(name: str, value: bytes, fields: Mapping[str, str], around: str = "") -> WrongRecord:
    """Return the fault of a record that the decoder of envelopes refuses.

    Args:
        name: The system that writes such records, for the message.
        value: The envelope.
        fields: By name, the kind of JSON value that a field of the envelope holds, unless it is null.
        around: The path of the envelope in the record, with a point at its end.

    Example:
        >>> str(envelope_fault("Maxwell", b'{"type": 5}', {"type": "a string"}))
        'The value is no Maxwell change: "type" is a number, and must be a string.'
    """
    try:
        record = read_json(value, any_json=True)
    except WrongRecord as exc:
        return exc
    if not isinstance(record, dict):
        return WrongRecord("The value is JSON but no object.")
    kinds = {field: json_kind(record[field]) for field in fields if record.get(field) is not None}
    wrong = next((field for field, kind in kinds.items() if kind != fields[field]), None)
    fault = _UNREADABLE if wrong is None else f'"{around}{wrong}" is {kinds[wrong]}, and must be {fields[wrong]}'
    return WrongRecord(f"The value is no {name} change: {fault}.")


def json_fault(value: bytes) -> str:
    r"""Return why a text is refused as JSON, as the end of a sentence.

    Example:
        >>> json_fault(b'{"id": }'), json_fault(b'"\xff"')
        ('Expecting value at character 7.', 'a text in it is no valid UTF-8 or has half of a surrogate pair.')
    """
    try:
        read_json(value, any_json=True)
    except WrongRecord as exc:
        return str(exc).removeprefix(NOT_ONE_OBJECT)
    return f"{_UNREADABLE}."
