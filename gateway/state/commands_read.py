"""The position on `cq.commands`: for each partition an offset, and the later commands that are already carried out.

`CommandsInHand` is written before each unit. If the gateway dies during the unit, the next gateway reads there which
commands may have killed it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

__all__ = ["CommandsInHand", "CommandsRead"]


class CommandsRead(msgspec.Struct, frozen=True):
    """A position on the topic of commands. Commands are not carried out in their order, because subscribers take turns.

    Example:
        >>> noted, marked = CommandsRead({0: 17, 1: 5}, {0: [19, 21]}), CommandsRead({0: 20}, {0: [21, 22]})
        >>> noted.joined(marked)
        CommandsRead(offsets={0: 20, 1: 5}, ahead={0: [21, 22]})
    """

    offsets: dict[int, int] = {}
    """Partition → offset of the first command that was not carried out."""
    ahead: dict[int, list[int]] = {}
    """Partition → offsets of later commands that were carried out already."""

    def then(self, later: CommandsRead) -> CommandsRead:
        """Return the position after a unit of work.

        Args:
            later: The unit's position, with only those offsets that have changed, but with the complete `ahead`.
        """
        return CommandsRead({**self.offsets, **later.offsets}, later.ahead)

    def joined(self, other: CommandsRead) -> CommandsRead:
        """Return the position with the commands that at least one of two positions reports as carried out.

        Each of the two positions may be outdated.
        """
        offsets = {
            partition: max(self.offsets.get(partition, 0), other.offsets.get(partition, 0))
            for partition in sorted(self.offsets.keys() | other.offsets.keys())
        }
        ahead = {
            partition: {*self.ahead.get(partition, ()), *other.ahead.get(partition, ())}
            for partition in sorted(self.ahead.keys() | other.ahead.keys())
        }
        return CommandsRead(offsets, {partition: sorted(done) for partition, done in ahead.items()}).from_offsets()

    def from_offsets(self, known: Mapping[int, int] | None = None) -> CommandsRead:
        """Return the position without entries of `ahead` that are below the offsets; `known` replaces the offsets."""
        offsets = self.offsets if known is None else dict(known)
        left = {
            partition: [offset for offset in done if offset >= offsets.get(partition, 0)]
            for partition, done in self.ahead.items()
        }
        return CommandsRead(offsets, {partition: done for partition, done in left.items() if done})

    def pack(self) -> bytes:
        """Return the value of `RedisKeys.commands_read`: partition → offset, or → [offset, offsets ahead, …].

        Example:
            >>> CommandsRead({0: 17, 1: 5}, {0: [19]}).pack()
            b'{"0":[17,19],"1":5}'
        """
        return msgspec.json.encode(
            {
                partition: [offset, *done] if (done := self.ahead.get(partition)) else offset
                for partition, offset in self.offsets.items()
            }
        )

    @classmethod
    def unpack(cls, body: bytes | None) -> CommandsRead:
        """Read the value of `pack`; None is the position before all commands.

        Example:
            >>> CommandsRead.unpack(b'{"0":[17,19],"1":5}'), CommandsRead.unpack(None)
            (CommandsRead(offsets={0: 17, 1: 5}, ahead={0: [19]}), CommandsRead(offsets={}, ahead={}))
        """
        noted = {
            partition: note if isinstance(note, list) else [note] for partition, note in _decode(body or b"{}").items()
        }
        ahead = {partition: note[1:] for partition, note in noted.items() if note[1:]}
        return cls({partition: note[0] for partition, note in noted.items()}, ahead)


class CommandsInHand(msgspec.Struct, frozen=True):
    """The commands of the present unit of work, or of the last one.

    Example:
        >>> CommandsInHand.of([(0, 17), (1, 5), (0, 21)], deaths=1)
        CommandsInHand(spans={0: (17, 21), 1: (5, 5)}, count=3, deaths=1, refused=())
    """

    spans: dict[int, tuple[int, int]] = {}
    """Partition → first and last offset of the commands; other commands may lie between them."""
    count: int = 0
    deaths: int = 0
    """How many gateways in succession have died during a unit with some of these commands."""
    refused: tuple[bytes, ...] = ()
    """The keys (`CommandIds.key`) of commands that were refused because gateways died. Copies of these commands are
    refused too."""

    @classmethod
    def of(cls, places: Iterable[tuple[int, int]], deaths: int, refused: tuple[bytes, ...] = ()) -> CommandsInHand:
        """Return the note of the commands at some places, each a partition and an offset."""
        by_partition: defaultdict[int, list[int]] = defaultdict(list)
        for partition, offset in places:
            by_partition[partition].append(offset)
        spans = {partition: (min(offsets), max(offsets)) for partition, offsets in by_partition.items()}
        return cls(spans, sum(map(len, by_partition.values())), deaths, refused)

    def __contains__(self, place: tuple[int, int]) -> bool:
        """Tell whether the command at a partition and offset may be among these commands."""
        partition, offset = place
        first, last = self.spans.get(partition, (0, -1))
        return first <= offset <= last

    def pack(self) -> bytes:
        """Return the value of `RedisKeys.commands_in_hand`."""
        return msgspec.json.encode(self)

    @classmethod
    def unpack(cls, body: bytes | None) -> CommandsInHand:
        """Read the value of `pack`; None gives a note without commands.

        Example:
            >>> CommandsInHand.unpack(CommandsInHand.of([(0, 17)], 0).pack())
            CommandsInHand(spans={0: (17, 17)}, count=1, deaths=0, refused=())
        """
        return cls() if body is None else msgspec.json.decode(body, type=cls)


_decode = msgspec.json.Decoder(dict[int, int | list[int]]).decode
