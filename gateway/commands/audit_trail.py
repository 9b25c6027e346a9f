"""The audit trail: one record for each statement of operators and each change of sources, with its outcome."""

from __future__ import annotations

import re
from datetime import datetime

import msgspec

from gateway.commands.requests import Request
from gateway.commands.statement_table import STATEMENTS
from gateway.kafka import OutgoingRecord
from grouping.settings.settings import Settings
from schemas.codec import MalformedCommand, Reply, decode_command

__all__ = ["AuditTrail"]

_ALWAYS = [title.replace(" ", r"\s+") for title, row in STATEMENTS.items() if row.audit == "always"]
_OPERATORS = re.compile(rf"\s*(?:{'|'.join(_ALWAYS)})\b", re.IGNORECASE)
"""The first words of statements that are audited even if they are refused before parsing."""
_REFUSED_A_MINUTE = 300
_LONGEST = 16_384
"""The largest number of characters of a statement in the trail."""
_encode = msgspec.json.Encoder().encode


class AuditTrail:
    """Makes the audit records of answered statements. A repeated command gets no second record."""

    def __init__(self, settings: Settings) -> None:
        self._topic = settings.topics.audit
        self._minute: datetime | None = None
        self._refused = 0
        """Statements that were refused before parsing in this minute."""
        self._left_out = 0

    def records(self, request: Request, title: str, reply: Reply) -> list[OutgoingRecord]:
        """Return the audit record of an answered statement; nothing if statements of its title are not audited."""
        return self._record(request, request.text, reply) if STATEMENTS[title].audit else []

    def refused(self, request: Request, reply: Reply) -> list[OutgoingRecord]:
        """Return the audit record of a statement that was refused before parsing; nothing if it need not be audited.

        The reason of the refusal may be the token, the rate or the syntax. The number of these records per minute is
        limited; the next record says how many were left out.
        """
        text = _sent_text(request)
        if not _OPERATORS.match(text):
            return []
        minute = reply.replied_at.replace(second=0, microsecond=0)
        if minute != self._minute:
            self._minute, self._refused = minute, 0
        self._refused += 1
        if self._refused > _REFUSED_A_MINUTE:
            self._left_out += 1
            return []
        return self._record(request, text, reply)

    def _record(self, request: Request, text: str, reply: Reply) -> list[OutgoingRecord]:
        if request.record.key is None:
            return []
        left_out, self._left_out = self._left_out, 0
        fields = {
            "at": reply.replied_at,
            "subscriber": request.subscriber,
            "command_id": request.command_id,
            "statement": _clipped(text),
            "status": reply.status,
            "code": reply.code,
            "message": reply.message,
            **({"left_out": left_out} if left_out else {}),
        }
        return [OutgoingRecord(self._topic, request.record.key, _encode(fields))]


def _sent_text(request: Request) -> str:
    """Return the text of a command, even of a command refused before its text was read."""
    if request.text or request.record.value is None:
        return request.text
    try:
        return decode_command(request.record.value).text
    except MalformedCommand:
        return ""


def _clipped(text: str) -> str:
    """Return a statement; a long statement is shortened, because the trail is kept forever."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
