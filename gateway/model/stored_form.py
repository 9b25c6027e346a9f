"""The form of CQs and destinations in Redis, with as few bytes as possible, since there may be millions of them.

CQs are in hashes ``cqs:<subscriber>`` by folded name, and destinations are in the hash ``destinations`` by id. A value
is left out if it follows from the key, or if nearly all CQs or destinations have it. Ids are stored as raw bytes. A CQ
has only the literals of its text; the template of the text is stored once as a dependency (dependencies.py). Only this
module knows the forms.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from gateway.model.membership import ALWAYS, Membership
from gateway.model.records import Cq, Destination, EdgeSpec, TimedNote
from gateway.model.trigger_spec import CHANGE_BASED, TriggerSpec
from gateway.model.unit import CqKey
from grouping.model.ids import DestinationId, GroupId, SelectId, StreamId
from grouping.model.query import PackedDigest
from grouping.statements.cq_text import WHOLE, CqText, TextTemplate
from grouping.store.constant_table import MODES

__all__ = [
    "StoredCq",
    "decode_cq",
    "pack_cq",
    "pack_membership",
    "pack_key",
    "raw_id",
    "template_id",
    "unpack_cq",
    "unpack_membership",
    "unpack_key",
]

_encode = msgspec.msgpack.encode


class StoredCq(msgspec.Struct, array_like=True, frozen=True):
    """The value of a CQ in Redis; the fields from `start_ms` on are stored only if one of them is set."""

    template: bytes
    """The id of the text's template; empty if there is none, and `literals` holds the whole text."""
    literals: tuple[str, ...]
    """The literals of the text. If the first literal equals the CQ's name, "" is stored in its place."""
    name: str
    """The name as written; "" if it equals the folded name."""
    destination: bytes
    created_ms: int
    offset: int | tuple[int, ...]
    start_ms: int | None = None
    expire_ms: int | None = None
    paused: bool = False
    pauses: tuple[tuple[int, int | None], ...] = ()
    joined_ms: int = 0
    views: tuple[str, ...] = ()

    @property
    def destination_id(self) -> DestinationId:
        """The destination of the CQ's results."""
        return DestinationId(f"d_{self.destination.hex()}")


class _StoredMembership(msgspec.Struct, array_like=True, frozen=True):
    """The value of a destination in Redis; the fields from `windows` on are stored only if one of them is set."""

    ids: bytes
    """The ids of stream, group and SELECT list, from `_pack_ids`."""
    constants: str
    mode: int
    """The index of the mode in `MODES`."""
    partition: int
    number: int
    always: int
    """The number of members that see all times."""
    windows: dict[str, int] = {}
    """The windows of the other members."""
    paused: int = 0
    trigger: TriggerSpec = CHANGE_BASED
    digest: PackedDigest = ("all", (), 0, False)
    word: str = ""
    timed: TimedNote = TimedNote()
    slots: int | None = None
    bounds: dict[str, int] = {}
    """The bounds of a store of aggregates, as in `Membership`."""
    edges: EdgeSpec | None = None


decode_cq = msgspec.msgpack.Decoder(StoredCq).decode
_decode_membership = msgspec.msgpack.Decoder(_StoredMembership).decode


def raw_id(destination_id: DestinationId) -> bytes:
    """Return a destination's (or store's) id as the field of its hash."""
    return bytes.fromhex(destination_id[2:])


def pack_key(key: CqKey) -> bytes:
    """Return a CQ's identity as a member of a sorted set in Redis.

    Example:
        >>> unpack_key(pack_key(CqKey("alice", "intel")))
        CqKey(subscriber='alice', name='intel')
    """
    return _encode(key)


unpack_key = msgspec.msgpack.Decoder(CqKey).decode


def pack_cq(folded: str, cq: Cq) -> bytes:
    """Return the stored value of a CQ; its key is the folded name."""
    first, *literals = cq.text.literals
    template = _raw_template(cq.text.template.template_id)
    fields: tuple[Any, ...] = (
        template,
        ("" if first == cq.name and template else first, *literals),
        "" if cq.name == folded else cq.name,
        raw_id(cq.destination_id),
        cq.created_ms,
        cq.offset,
    )
    rest = (cq.start_ms, cq.expire_ms, cq.paused, cq.pauses)
    if cq.views:
        fields += (*rest, cq.joined_ms, cq.views)
    elif cq.joined_ms:
        fields += (*rest, cq.joined_ms)
    elif rest != _PLAIN:
        fields += rest
    return _encode(fields)


_PLAIN: tuple[object, ...] = (None, None, False, ())


@lru_cache(maxsize=10_000)
def _raw_template(template_id: str) -> bytes:
    return bytes.fromhex(template_id[2:])


def template_id(raw: bytes) -> str:
    """Return the id of a template from the bytes in a CQ's value."""
    return f"t_{raw.hex()}"


def unpack_cq(folded: str, stored: StoredCq, template: TextTemplate, home: DestinationId) -> Cq:
    """Decode a stored CQ with its template and the id of its destination."""
    name, literals = stored.name or folded, stored.literals
    if template is not WHOLE and not literals[0]:
        literals = (name, *literals[1:])
    text = CqText(template, literals)
    return Cq(
        name,
        text,
        home,
        stored.created_ms,
        stored.offset,
        stored.start_ms,
        stored.expire_ms,
        stored.paused,
        stored.pauses,
        stored.joined_ms,
        stored.views,
    )


def pack_membership(membership: Membership) -> bytes:
    """Return the value of a destination."""
    destination = membership.destination
    windows = membership.windows.copy()
    always = windows.pop(ALWAYS, 0)
    fields: tuple[Any, ...] = (
        _pack_ids(destination.stream_id, destination.group_id, destination.select_id),
        destination.constants,
        MODES.index(destination.mode),
        destination.partition,
        membership.number,
        always,
    )
    rest = (windows, membership.paused, destination.trigger, destination.digest, destination.word, membership.timed)
    if destination.edges is not None:
        return _encode((*fields, *rest, destination.slots, membership.bounds, destination.edges))
    if destination.slots is not None:
        return _encode((*fields, *rest, destination.slots, membership.bounds))
    return _encode(fields if rest == _USUAL else fields + rest)


_USUAL: tuple[object, ...] = ({}, 0, CHANGE_BASED, ("all", (), 0, False), "", TimedNote())


def unpack_membership(destination_id: DestinationId, body: bytes) -> Membership:
    """Return a destination from its stored value."""
    stored = _decode_membership(body)
    destination = Destination(
        destination_id,
        *_unpack_ids(stored.ids),
        stored.constants,
        MODES[stored.mode],
        stored.partition,
        CHANGE_BASED if stored.trigger == CHANGE_BASED else stored.trigger,
        stored.digest,
        stored.word,
        stored.slots,
        stored.edges,
    )
    windows = stored.windows | {ALWAYS: stored.always} if stored.always else stored.windows
    return Membership(destination, stored.number, windows, stored.paused, stored.timed, stored.bounds)


_IDS = re.compile(r"s_([0-9a-f]{12}) g_([0-9a-f]{24}) s([0-9a-f]{24})")
_DIGITS = 30
"""Length in bytes of the hexadecimal digits of the three ids, two digits in a byte."""


@lru_cache(maxsize=10_000)
def _pack_ids(*ids: str) -> bytes:
    """Return three ids as bytes: their packed digits if all ids have the usual form.

    Otherwise the result is a text with the ids, padded to more bytes than the packed digits have.
    """
    text = " ".join(ids)
    usual = _IDS.fullmatch(text)
    return bytes.fromhex("".join(usual.groups())) if usual else text.encode().ljust(_DIGITS + 1)


@lru_cache(maxsize=10_000)
def _unpack_ids(packed: bytes) -> tuple[StreamId, GroupId, SelectId]:
    if len(packed) > _DIGITS:
        stream_id, group_id, select_id = packed.decode().split()
    else:
        digits = packed.hex()
        stream_id, group_id, select_id = f"s_{digits[:12]}", f"g_{digits[12:36]}", f"s{digits[36:]}"
    return StreamId(stream_id), GroupId(group_id), SelectId(select_id)
