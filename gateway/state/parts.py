"""What many CQs have in common, kept once for each stream as long as one of them lives."""

from __future__ import annotations

import msgspec

from grouping.model.group import GroupPlan, SelectList

__all__ = ["decode_part"]


def decode_part(body: bytes) -> GroupPlan | SelectList:
    """Read a part as `cq.catalog` has it; which of both it is, is told by the id that it gives as its own.

    Raises:
        msgspec.MsgspecError: It is neither.
    """
    named = _decode_named(body)
    return _decode_plan(body) if named.group_id else _decode_select(body)


class _NamedPart(msgspec.Struct):
    group_id: str = ""
    select_id: str = ""


_decode_named = msgspec.json.Decoder(_NamedPart).decode
_decode_plan = msgspec.json.Decoder(GroupPlan).decode
_decode_select = msgspec.json.Decoder(SelectList).decode
