"""The audit trail: records of statements that were refused unread."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from gateway.commands.audit_trail import AuditTrail
from gateway.commands.requests import RequestReader
from gateway.kafka import Record
from grouping.settings.settings import Settings
from schemas.codec import Reply

_AT = datetime(2026, 11, 28, 12, tzinfo=UTC)


def _refused(trail: AuditTrail, text: str, at: datetime = _AT) -> list[dict[str, object]]:
    value = json.dumps({"command_id": "c1", "subscriber": "root", "text": text}).encode()
    request = RequestReader(Settings(), lambda _: 0).read(Record("cq.commands", 0, 0, 0, b"root", value, []))
    reply = Reply(
        command_id="c1", subscriber="root", status="rejected", code="not-allowed", message="it is forged", replied_at=at
    )
    return [json.loads(record.value or b"") for record in trail.refused(request, reply)]


def test_refused_statements_of_operators_are_on_record() -> None:
    """A forged statement of an operator leaves its text and its code; a statement open to anybody leaves nothing."""
    trail = AuditTrail(Settings())
    [record] = _refused(trail, "drop cqs like '%' of alice")
    assert ("root", "not-allowed", "drop cqs like '%' of alice") == tuple(
        record[name] for name in ("subscriber", "code", "statement")
    )
    for text in ("SHOW CQS", "SHOW QUOTAS", "CREATE CQ a AS SELECT b FROM c", "DROP CQ a", ""):
        assert [] == _refused(trail, text)


def test_a_flood_of_them_is_counted() -> None:
    """Up to a number in a minute are recorded one by one; the next record counts the rest."""
    trail = AuditTrail(Settings())
    assert 300 == sum(len(_refused(trail, "SHOW QUOTA FOR bob")) for _ in range(1_000))
    later = _AT + timedelta(minutes=1)
    assert [700, None] == [_refused(trail, "SHOW QUOTA FOR bob", later)[0].get("left_out") for _ in range(2)]
