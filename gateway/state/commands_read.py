"""How far `cq.commands` was carried out: by partition up to an offset, and further commands that had their turn."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

__all__ = ["CommandsRead"]


class CommandsRead(msgspec.Struct, frozen=True):
    """A position on the topic of commands, whose subscribers take turns.

    Example:
        >>> noted, marked = CommandsRead({0: 17, 1: 5}, {0: [19, 21]}), CommandsRead({0: 20}, {0: [21, 22]})
        >>> noted.joined(marked)
        CommandsRead(offsets={0: 20, 1: 5}, ahead={0: [21, 22]})
    """

    offsets: dict[int, int] = {}
    """By partition, the offset of the first command that was not carried out."""
    ahead: dict[int, list[int]] = {}
    """By partition, the offsets of later commands that were carried out."""

    def then(self, later: CommandsRead) -> CommandsRead:
        """Return the position after a unit of work that knows what is ahead, but only the partitions it changed."""
        return CommandsRead({**self.offsets, **later.offsets}, later.ahead)

    def joined(self, other: CommandsRead) -> CommandsRead:
        """Return all that two notes of one position know: either may be older."""
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
        """Return the position without offsets that are covered already, by its own offsets or by the ones given."""
        offsets = self.offsets if known is None else dict(known)
        left = {
            partition: [offset for offset in done if offset >= offsets.get(partition, 0)]
            for partition, done in self.ahead.items()
        }
        return CommandsRead(offsets, {partition: done for partition, done in left.items() if done})

    def pack(self) -> bytes:
        """Return the value of `RedisKeys.commands_read`: an offset by partition, or a list of it and those ahead.

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


_decode = msgspec.json.Decoder(dict[int, int | list[int]]).decode
