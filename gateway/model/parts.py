"""What many CQs have in common, kept once for each stream as long as one of them lives.

Memory and code know a part by its kind and its id. In Redis and on `cq.catalog` its name alone stands, of which this
module alone knows that it tells the kind: `g_…` a group, `t_…` a template, `v_…` a group's topic, `w_…` a view, else a
SELECT list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import NamedTuple

import msgspec

from grouping.model.group import GroupPlan, SelectList
from grouping.statements.cq_text import TextTemplate
from grouping.store.keys import RedisKeys

__all__ = ["Part", "PartCounts", "PartKey", "PartKind", "decode_part", "key_of", "shelf_of"]

Part = GroupPlan | SelectList | TextTemplate


class PartKind(Enum):
    """What of CQs it is that they have in common."""

    GROUP = auto()
    """The plan of their group."""
    SELECT = auto()
    """Their SELECT list."""
    TEXT = auto()
    """The template of their text."""
    TOPIC = auto()
    """Of virtual CQs, their group's topic, which is no one else's: it is counted only, by the group's id."""
    VIEW = auto()
    """A view that they read: it is counted only, by its folded name."""

    __hash__ = object.__hash__  # the members' own is Python code, and there are four for each CQ


class PartKey(NamedTuple):
    """A part's identity within its stream."""

    kind: PartKind
    part_id: str
    """Of a topic, its group's; of a view, its folded name."""

    @classmethod
    def read(cls, name: bytes | str) -> PartKey:
        """Return what a name stands for.

        Example:
            >>> PartKey.read(b"v_1")
            PartKey(kind=<PartKind.TOPIC: 4>, part_id='g_1')
        """
        text = name if isinstance(name, str) else name.decode()
        kind = _KINDS.get(text[:2], PartKind.SELECT)
        match kind:
            case PartKind.TOPIC:
                return cls(kind, f"g_{text[2:]}")
            case PartKind.VIEW:
                return cls(kind, text[2:])
            case _:
                return cls(kind, text)

    @property
    def name(self) -> str:
        """What it is called in Redis."""
        match self.kind:
            case PartKind.TOPIC:
                return f"v_{self.part_id[2:]}"
            case PartKind.VIEW:
                return f"w_{self.part_id}"
            case _:
                return self.part_id


_KINDS = {"g_": PartKind.GROUP, "t_": PartKind.TEXT, "v_": PartKind.TOPIC, "w_": PartKind.VIEW}


class PartCounts:
    """How many CQs of one stream use each part, by its id.

    Example:
        >>> counts = PartCounts.of({PartKey.read("g_1"): 3, PartKey.read("v_1"): 2})
        >>> counts[PartKind.GROUP], counts[PartKind.TOPIC], len(counts)
        ({'g_1': 3}, {'g_1': 2}, 2)
    """

    __slots__ = ("_by_kind",)

    def __init__(self) -> None:
        self._by_kind: dict[PartKind, dict[str, int]] = {kind: {} for kind in PartKind}

    @classmethod
    def of(cls, counts: Mapping[PartKey, int]) -> PartCounts:
        """Return these counts."""
        made = cls()
        for (kind, part_id), count in counts.items():
            made[kind][part_id] = count
        return made

    def __getitem__(self, kind: PartKind) -> dict[str, int]:
        return self._by_kind[kind]

    def __contains__(self, key: PartKey) -> bool:
        return key.part_id in self._by_kind[key.kind]

    def __iter__(self) -> Iterator[PartKey]:
        return (PartKey(kind, part_id) for kind, counts in self._by_kind.items() for part_id in counts)

    def __len__(self) -> int:
        return sum(map(len, self._by_kind.values()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartCounts) and self._by_kind == other._by_kind

    __hash__ = None  # type: ignore[assignment]


def key_of(part: Part) -> PartKey:
    """Return a part's identity."""
    match part:
        case GroupPlan():
            return PartKey(PartKind.GROUP, part.group_id)
        case SelectList():
            return PartKey(PartKind.SELECT, part.select_id)
        case TextTemplate():
            return PartKey(PartKind.TEXT, part.template_id)


def shelf_of(keys: RedisKeys, stream_id: str, kind: PartKind) -> str | None:
    """Return the hash in which parts of a kind are kept; none for what is counted only."""
    match kind:
        case PartKind.GROUP:
            return keys.groups(stream_id)
        case PartKind.SELECT:
            return keys.selects(stream_id)
        case PartKind.TEXT:
            return keys.texts(stream_id)
        case PartKind.TOPIC | PartKind.VIEW:
            return None


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
