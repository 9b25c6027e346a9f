"""The audit trail: one record for each statement of operators and each change of sources, with its outcome."""

from __future__ import annotations

import msgspec

from gateway.commands.requests import Request
from gateway.commands.source_statements import SourceChange
from gateway.kafka import OutgoingRecord
from grouping.model.operator_statements import OperatorStatement
from grouping.model.query import Statement
from grouping.settings.settings import Settings
from schemas.codec import Reply

__all__ = ["AuditTrail"]

_LONGEST = 16_384
"""Characters of a statement in the trail."""
_encode = msgspec.json.Encoder().encode


class AuditTrail:
    """Makes the records, which are written with the replies: one for each first reply, in one transaction."""

    def __init__(self, settings: Settings) -> None:
        self._topic = settings.topics.audit

    def records(self, request: Request, statement: Statement, reply: Reply) -> list[OutgoingRecord]:
        """Return the record of a statement that was answered; none where its kind is not audited.

        Audited are CREATE and DROP of streams, tables and views, GRANT, REVOKE, and the statements of operators,
        whoever sends them.
        """
        if not isinstance(statement, OperatorStatement | SourceChange) or request.record.key is None:
            return []
        fields = {
            "at": reply.replied_at,
            "subscriber": request.subscriber,
            "command_id": request.command_id,
            "statement": _clipped(request.text),
            "status": reply.status,
            "code": reply.code,
            "message": reply.message,
        }
        return [OutgoingRecord(self._topic, request.record.key, _encode(fields))]


def _clipped(text: str) -> str:
    """Return a statement, or its beginning where it is long: the trail is kept for ever, a schema need not be."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
