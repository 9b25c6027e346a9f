"""Avro single-object encoding: two magic bytes, the schema's fingerprint, the body."""

from __future__ import annotations

import io
import json
from functools import lru_cache
from importlib import resources
from typing import Any

import fastavro
from fastavro.schema import fingerprint, to_parsing_canonical_form

from schemas.avro_indexes import index_checked

__all__ = ["MAGIC", "SingleObject", "load_schema"]

MAGIC = b"\xc3\x01"
"""The first two bytes; no JSON text begins with them."""

_FINGERPRINT_BYTES = 8


@lru_cache
def load_schema(name: str) -> dict[str, Any]:
    """Return a schema of this folder, parsed by fastavro.

    Example:
        >>> load_schema("digest")["name"]
        'cq.Digest'
    """
    text = resources.files("schemas").joinpath(f"{name}.avsc").read_text(encoding="utf-8")
    parsed = fastavro.parse_schema(json.loads(text))
    assert isinstance(parsed, dict)
    return parsed


class SingleObject:
    """The encoder and decoder of a schema; safe for concurrent use.

    Example:
        >>> codec = SingleObject(load_schema("command"))
        >>> data = codec.encode({"command_id": "1", "subscriber": "alice", "text": "SHOW CQS"})
        >>> codec.decode(data)["text"]
        'SHOW CQS'
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._reading = index_checked(schema)
        crc = fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO")
        self.header = MAGIC + bytes.fromhex(crc)
        """The header of every encoded object; fastavro returns the fingerprint in the little-endian order of the
        wire.
        """

    def encode(self, record: dict[str, Any]) -> bytes:
        """Encode a record."""
        body = io.BytesIO()
        body.write(self.header)
        fastavro.schemaless_writer(body, self._schema, record)
        return body.getvalue()

    def decode(self, data: bytes) -> dict[str, Any]:
        """Decode a record.

        Raises:
            ValueError: The object has another schema, a truncated or malformed body, or bytes after it. The message
                names the fault, without any of the data.
        """
        if data[: len(MAGIC)] != MAGIC or len(data) < len(MAGIC) + _FINGERPRINT_BYTES:
            raise ValueError("The value is not in Avro single-object encoding.")
        if not data.startswith(self.header):
            raise ValueError(f"Its Avro schema is another one than {self._schema['name']}.")
        body = io.BytesIO(data)
        body.seek(len(self.header))
        try:
            record: dict[str, Any] = fastavro.schemaless_reader(body, self._reading, None)  # type: ignore[assignment]
        # fastavro has no error class for a malformed body. The errors that its reading code raises are caught here.
        except (ArithmeticError, EOFError, LookupError, MemoryError, TypeError, ValueError):
            raise ValueError("Its Avro body is cut short, or has another form.") from None
        if body.tell() != len(data):
            raise ValueError("There are bytes after its Avro body.")
        return record
