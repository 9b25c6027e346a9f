"""Members of destinations: the token by which a reader recognises its own `cq.leave` (docs/results.md)."""

from __future__ import annotations

import hashlib

import msgspec

from gateway.model.records import Cq
from gateway.model.unit import CqKey

__all__ = ["SECRET_BYTES", "member_token"]

SECRET_BYTES = 16


def member_token(secret: bytes, key: CqKey, cq: Cq) -> str:
    """Return the token of a CQ in its destination; the token stays the same as long as the CQ stays there.

    The token is computed, not stored. The CQ of a token cannot be found without the secret, even by trying names.

    Args:
        secret: The gateway's secret, kept on `cq.catalog`.
        key: The CQ's identity.
        cq: The CQ.
    """
    text = msgspec.json.encode((key.subscriber, key.name, cq.destination_id, cq.since_ms))
    return "m_" + hashlib.blake2b(text, key=secret, digest_size=12).hexdigest()
