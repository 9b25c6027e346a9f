"""Spans of commands and events, and their traces.

Each command and each event has a trace. The trace's id is a hash of the id of the command or event (`trace_id`), so a
reader of a result can find its trace, and an event that is evaluated twice has a single trace. A command with a header
of W3C Trace Context (https://www.w3.org/TR/trace-context) belongs to its sender's trace instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

__all__ = ["TRACEPARENT", "Parent", "Span", "trace_id"]

TRACEPARENT = "traceparent"
"""The record header with the context of a command's sender."""
_CONTEXT = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1


class Span(NamedTuple):
    """A part of a trace; times are in nanoseconds since 1970."""

    name: str
    began_ns: int
    ended_ns: int
    attributes: Mapping[str, str | int | Sequence[str]] = {}


class Parent(NamedTuple):
    """The span in which a sender sent its command."""

    trace_id: int
    span_id: int
    sampled: bool

    @classmethod
    def of(cls, header: bytes | None) -> Parent | None:
        """Return the parent from the header `traceparent`; None if the header names none.

        Example:
            >>> Parent.of(b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").sampled
            True
            >>> Parent.of(b"00-" + b"0" * 32 + b"-b7ad6b7169203331-01") is None
            True
        """
        found = _CONTEXT.fullmatch(header or b"")
        if found is None:
            return None
        trace, span, flags = (int(found[place], 16) for place in (1, 2, 3))
        return cls(trace, span, bool(flags & _SAMPLED)) if trace and span else None


def trace_id(name: str) -> int:
    """Return the id of the trace of an event or command: the first 16 bytes of the SHA-256 of its id.

    Example:
        >>> f"{trace_id('quotes/0/17'):032x}"
        '04a2069dd04307a926c8fd236a48fe95'
    """
    return int.from_bytes(sha256(name.encode("utf-8", "surrogatepass")).digest()[:16])
