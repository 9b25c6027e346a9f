"""Members of destinations: the token by which a reader knows that a `cq.leave` is its own (docs/results.md)."""

from __future__ import annotations

import hashlib

import msgspec

from gateway.model.records import Cq
from gateway.model.unit import CqKey

__all__ = ["SECRET_BYTES", "member_token"]

SECRET_BYTES = 16


def member_token(secret: bytes, key: CqKey, cq: Cq) -> str:
    """Return what a CQ is called in its destination, the same for as long as it stays there.

    Nothing is stored for it. Without the secret nobody can tell whose it is, not even by trying names.

    Args:
        secret: The gateway's own, kept on `cq.catalog`.
        key: Whose the CQ is.
        cq: The CQ.
    """
    text = msgspec.json.encode((key.subscriber, key.name, cq.destination_id, cq.since_ms))
    return "m_" + hashlib.blake2b(text, key=secret, digest_size=12).hexdigest()
