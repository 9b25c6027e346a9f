"""WHERE clauses in the style of authors of alerts, with their streams and rows of these streams.

The clauses stand in ``tests/cases/alerts``, a file for each field of work and a clause in each line.
``expected.jsonl`` beside them has Spark's verdict on each clause, recorded by ``tests/spark/record_alerts.py``.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["EXPECTED", "FAILS", "STREAMS", "TIME", "clauses"]

_FOLDER = Path(__file__).parent / "cases" / "alerts"
EXPECTED = _FOLDER / "expected.jsonl"
"""A line for each clause: its field of work, its text, and its value in each row; null where Spark refuses it."""
FAILS = "fails"
"""Stands for the value in a row on which Spark fails."""
TIME = datetime(2026, 11, 20, 15, tzinfo=UTC)
"""The time of all records."""
STREAMS: dict[str, dict[str, Any]] = json.loads((_FOLDER / "streams.json").read_text("utf-8"))
"""By field of work, ``columns`` and ``rows``."""


def clauses() -> list[tuple[str, str]]:
    """Return each clause with its field of work."""
    return [(name, text) for name in STREAMS for text in (_FOLDER / f"{name}.sql").read_text("utf-8").splitlines()]
