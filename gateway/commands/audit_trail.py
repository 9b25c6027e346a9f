"""The audit trail: one record for each statement of an operator, or of somebody who would be one, with its outcome."""

from __future__ import annotations

import msgspec

from gateway.access.roles import OPERATOR
from gateway.commands.requests import Request
from gateway.kafka import OutgoingRecord
from grouping.model.operator_statements import OperatorStatement
from grouping.model.query import Statement
from grouping.settings.settings import Settings
from schemas.codec import Reply

__all__ = ["AuditTrail"]

_encode = msgspec.json.Encoder().encode


class AuditTrail:
    """Makes the records, which are written with the replies: one for each first reply, in one transaction."""

    def __init__(self, settings: Settings) -> None:
        self._topic = settings.topics.audit if settings.auth.roles.get(OPERATOR) else None

    def records(self, request: Request, statement: Statement, reply: Reply) -> list[OutgoingRecord]:
        """Return the record of a statement that was answered; none where it is no operator's, or there are none."""
        if self._topic is None or not isinstance(statement, OperatorStatement) or request.record.key is None:
            return []
        fields = {
            "at": reply.replied_at,
            "subscriber": request.subscriber,
            "command_id": request.command_id,
            "statement": request.text,
            "status": reply.status,
            "code": reply.code,
            "message": reply.message,
        }
        return [OutgoingRecord(self._topic, request.record.key, _encode(fields))]
