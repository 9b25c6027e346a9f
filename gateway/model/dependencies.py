"""Dependencies of CQs: the plans, SELECT lists, text templates, group topics and views that many CQs share.

For each stream, the gateway counts the CQs that need each dependency. While the count is not 0, the plan, SELECT list
or template is stored once for the stream. In memory a dependency has a kind and an id. In Redis and on `cq.catalog` a
dependency has a name, which begins with `g_` for a group, `t_` for a template, `v_` for a group's topic and `w_` for a
view; all other names belong to SELECT lists. Only this module derives the kind from the name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import NamedTuple

import msgspec

from grouping.model.ids import StreamId
from grouping.plan.group import GroupPlan, SelectList
from grouping.statements.cq_text import TextTemplate
from grouping.store.keys import RedisKeys

__all__ = [
    "RECORDED",
    "Definition",
    "Dependency",
    "DependencyCounts",
    "DependencyKind",
    "decode_definition",
    "definition_hash",
    "topic_kind",
]

Definition = GroupPlan | SelectList | TextTemplate
"""The stored content of a dependency; topics and views have no definition."""


class DependencyKind(Enum):
    """The kinds of dependencies."""

    GROUP = auto()
    """The plan of a group."""
    SELECT = auto()
    """A SELECT list."""
    TEXT = auto()
    """The template of texts."""
    TOPIC = auto()
    """The topic of a group, which the group's virtual CQs need. These CQs are counted under the group's id."""
    VIEW = auto()
    """A view. The CQs that read it are counted under its folded name."""

    __hash__ = object.__hash__  # the hash of Enum is slow Python code, and each CQ needs four hashes


RECORDED = (DependencyKind.GROUP, DependencyKind.SELECT)
"""The kinds whose definitions are on `cq.catalog`. Only these definitions are evaluated, so only they can be
quarantined. For each plan and SELECT list, the gateway notes the sole user, that is, the only subscriber whose CQs need
it."""


class Dependency(NamedTuple):
    """A dependency's identity within its stream."""

    kind: DependencyKind
    item_id: str
    """The id of the group, SELECT list or template; for a topic, the group's id; for a view, its folded name."""

    @classmethod
    def read(cls, name: bytes | str) -> Dependency:
        """Return the dependency from its name in Redis.

        Example:
            >>> Dependency.read(b"v_1")
            Dependency(kind=<DependencyKind.TOPIC: 4>, item_id='g_1')
        """
        text = name if isinstance(name, str) else name.decode()
        kind = _KINDS.get(text[:2], DependencyKind.SELECT)
        match kind:
            case DependencyKind.TOPIC:
                return cls(kind, f"g_{text[2:]}")
            case DependencyKind.VIEW:
                return cls(kind, text[2:])
            case _:
                return cls(kind, text)

    @classmethod
    def on(cls, definition: Definition) -> Dependency:
        """Return the dependency whose content is `definition`."""
        match definition:
            case GroupPlan():
                return cls(DependencyKind.GROUP, definition.group_id)
            case SelectList():
                return cls(DependencyKind.SELECT, definition.select_id)
            case TextTemplate():
                return cls(DependencyKind.TEXT, definition.template_id)

    @property
    def name(self) -> str:
        """The dependency's name in Redis."""
        match self.kind:
            case DependencyKind.TOPIC:
                return f"v_{self.item_id[2:]}"
            case DependencyKind.VIEW:
                return f"w_{self.item_id}"
            case _:
                return self.item_id


_KINDS = {"g_": DependencyKind.GROUP, "t_": DependencyKind.TEXT, "v_": DependencyKind.TOPIC, "w_": DependencyKind.VIEW}


class DependencyCounts:
    """How many CQs of a stream need each dependency: kind → id → count.

    Example:
        >>> counts = DependencyCounts.read({b"g_1": b"3", b"v_1": b"2"})
        >>> counts[DependencyKind.GROUP], counts[DependencyKind.TOPIC], len(counts)
        ({'g_1': 3}, {'g_1': 2}, 2)
    """

    __slots__ = ("_by_kind",)

    def __init__(self) -> None:
        self._by_kind: dict[DependencyKind, dict[str, int]] = {kind: {} for kind in DependencyKind}

    @classmethod
    def read(cls, stored: Mapping[bytes, bytes]) -> DependencyCounts:
        """Return the counts from their form in Redis: name of a dependency → number of CQs."""
        counts = cls()
        for name, count in stored.items():
            kind, item_id = Dependency.read(name)
            counts[kind][item_id] = int(count)
        return counts

    def __getitem__(self, kind: DependencyKind) -> dict[str, int]:
        return self._by_kind[kind]

    def __contains__(self, key: Dependency) -> bool:
        return key.item_id in self._by_kind[key.kind]

    def __iter__(self) -> Iterator[Dependency]:
        return (Dependency(kind, item_id) for kind, counts in self._by_kind.items() for item_id in counts)

    def __len__(self) -> int:
        return sum(map(len, self._by_kind.values()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DependencyCounts) and self._by_kind == other._by_kind

    __hash__ = None  # type: ignore[assignment]


def definition_hash(keys: RedisKeys, stream_id: StreamId, kind: DependencyKind) -> str | None:
    """Return the Redis hash with the definitions of a kind; None for kinds without definitions."""
    match kind:
        case DependencyKind.GROUP:
            return keys.groups(stream_id)
        case DependencyKind.SELECT:
            return keys.selects(stream_id)
        case DependencyKind.TEXT:
            return keys.texts(stream_id)
        case DependencyKind.TOPIC | DependencyKind.VIEW:
            return None


def decode_definition(body: bytes) -> GroupPlan | SelectList:
    """Read a definition from `cq.catalog`: a plan if the record has a group's id, else a SELECT list.

    Raises:
        msgspec.MsgspecError: The record is neither.
    """
    named = _decode_named(body)
    return _decode_plan(body) if named.group_id else _decode_select(body)


class _Ids(msgspec.Struct):
    group_id: str = ""
    select_id: str = ""


_decode_named = msgspec.json.Decoder(_Ids).decode
_decode_plan = msgspec.json.Decoder(GroupPlan).decode
_decode_select = msgspec.json.Decoder(SelectList).decode


def topic_kind(owner_id: str) -> str:
    """Return the name of the quota that a topic counts against, from the id of its destination or group.

    Example:
        >>> topic_kind("g_1"), topic_kind("d_1")
        ('virtual', 'dedicated')
    """
    return "virtual" if owner_id.startswith("g_") else "dedicated"
