"""Schemas of Avro records for tests of decoding."""

from __future__ import annotations

import json

__all__ = ["NESTED", "record_schema"]


def record_schema(fields: dict) -> str:
    """Return the text of a record schema."""
    return json.dumps(
        {
            "type": "record",
            "name": "Quote",
            "namespace": "test",
            "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
        }
    )


NESTED = record_schema(
    {
        "before": {
            "type": "record",
            "name": "Who",
            "fields": [
                {"name": "id", "type": "long"},
                {"name": "surplus", "type": {"type": "long", "logicalType": "timestamp-millis"}},
                {"name": "born", "type": ["null", {"type": "int", "logicalType": "date"}]},
                {"name": "owes", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}},
                {"name": "manager", "type": ["null", "Who"]},
            ],
        },
        "who": ["null", "Who"],
        "tags": {"type": "array", "items": ["null", "string"]},
        "times": {"type": "map", "values": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
    }
)
