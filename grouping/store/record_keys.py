"""The keys of records that the gateway writes to Kafka for itself; only this module makes and reads these keys.

The table lists the content of the records under each key, by topic. A record without a value deletes the record with
the same key.

| `cq.catalog` (forms in gateway/state) | |
|---|---|
| `cq/["<subscriber>","<folded name>"]` | `CatalogCq` |
| `stream/<stream>` | `Stream` |
| `table/<table>` | `Table` |
| `view/<folded name>` | `View` |
| `part/<stream>/<id>` | `GroupPlan` or `SelectList`; the fields of the record show which |
| `quota/<subscriber>` | `Quota` |
| `pause/<stream>/<group>` | `GroupPause` |
| `timed/<destination>` | `TimedNote` |
| `end/<batch>` | `EndNotice`s |
| `secret/<name>` | bytes |
| `commit` | `CommitMark` |

| `cq.ticks` (forms in gateway/timers) | |
|---|---|
| `cut/<name>` | `Cut` |
| `cursor/<incarnation>` | `Cursor` |
| `settled/<stream>` | `ProgressNote` |
| `closed/orders` | the offset of `cq.orders` before which all orders are carried out |

| `cq.throttles` (forms in gateway/throttling) | |
|---|---|
| `reached/<partition>` | the offset of `cq.throttled` before which all results are decided |
| `mark/<destination>/<partition>/<source>` | `Mark` |
| `interval/<destination>/<values, hexadecimal>` | `Interval` |

| others | |
|---|---|
| `cq.positions`: `<partition>/<number>` | a part of the checkpoint of a partition of `cq.pending` |
| `cq.orders`: `order` | `Order` |
| `cq.orders`, answers: `<offset>` of the order | `OrderOutcome`, which the evaluator writes |
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import msgspec

from grouping.model.ids import CqName, GroupId, StreamId, Subscriber

__all__ = ["ORDER", "CatalogKey", "ThrottleKey", "TickKey", "answer_key", "order_of", "place_key", "place_of"]

CatalogKind = Literal["stream", "table", "view", "part", "quota", "pause", "timed", "end", "secret", "commit"]
"""The kinds of records of `cq.catalog` except CQs."""
TickKind = Literal["cut", "cursor", "settled", "closed"]
"""The kinds of records of `cq.ticks`."""
ThrottleKind = Literal["reached", "mark", "interval"]
"""The kinds of records of `cq.throttles`."""

ORDER: Final = b"order"
"""The key of all orders; the topic is not compacted."""


class CatalogKey(NamedTuple):
    """The key of a record of `cq.catalog`."""

    kind: str
    """The first word of the key. The word may be unknown here, since a later version may have further kinds."""
    name: bytes
    """The rest of the key, after the first slash."""

    @classmethod
    def parse(cls, key: bytes | None) -> CatalogKey:
        """Read a record's key.

        Example:
            >>> CatalogKey.parse(CatalogKey.of("part", "s_1", "g_2")), CatalogKey.parse(CatalogKey.of("commit"))
            (CatalogKey(kind='part', name=b's_1/g_2'), CatalogKey(kind='commit', name=b''))
        """
        kind, _, name = (key or b"").partition(b"/")
        return cls(kind.decode("utf-8", "replace"), name)

    @property
    def text(self) -> str:
        """The rest of the key as text, for kinds with a single name."""
        return self.name.decode("utf-8", "surrogatepass")

    def read_cq(self) -> tuple[Subscriber, CqName]:
        """Return the subscriber and the folded name of a CQ.

        Example:
            >>> CatalogKey.parse(CatalogKey.cq("alice", "a/b")).read_cq()
            ('alice', 'a/b')
        """
        return _decode_cq(self.name)

    def read_pause(self) -> tuple[StreamId, GroupId]:
        """Return the stream and the group of a `pause` key."""
        stream_id, group_id = self.text.split("/")
        return StreamId(stream_id), GroupId(group_id)

    def read_part(self) -> tuple[str, str]:
        """Return the stream and the id of a `part` key."""
        stream_id, _, part_id = self.text.partition("/")
        return stream_id, part_id

    @staticmethod
    def cq(subscriber: str, folded: str) -> bytes:
        """Return the key of a CQ. The names are written as JSON, since a name may contain any character."""
        return b"cq/" + _encode_cq((subscriber, folded))

    @staticmethod
    def of(kind: CatalogKind, *names: str) -> bytes:
        """Return the key of a record of another kind. The names are the parts in angle brackets in the table above."""
        return "/".join((kind, *names)).encode("utf-8", "surrogatepass")


class TickKey(NamedTuple):
    """The key of a record of `cq.ticks`."""

    kind: str
    """The first word of the key. The word may be unknown here, since a later version may have further kinds."""
    name: str
    """The rest of the key: a cut's name, a cursor's incarnation, or the stream of a progress."""

    @classmethod
    def parse(cls, key: bytes | None) -> TickKey:
        """Read a record's key.

        Example:
            >>> TickKey.parse(TickKey.of("cursor", "d_1/1700"))
            TickKey(kind='cursor', name='d_1/1700')
        """
        kind, _, name = (key or b"").decode().partition("/")
        return cls(kind, name)

    @staticmethod
    def of(kind: TickKind, name: str) -> bytes:
        """Return the key of a record. The name is the part in angle brackets in the table above."""
        return f"{kind}/{name}".encode()


class ThrottleKey(NamedTuple):
    """The key of a record of `cq.throttles`."""

    kind: str
    """The first word of the key. The word may be unknown here, since a later version may have further kinds."""
    owner: str
    """The destination, or the partition of `cq.throttled`."""
    name: str
    """The rest of the key: a source partition, or the values of BY."""

    @classmethod
    def parse(cls, key: bytes | None) -> ThrottleKey:
        """Read a record's key.

        Example:
            >>> ThrottleKey.parse(ThrottleKey.of("mark", "d_1", "3/quotes"))
            ThrottleKey(kind='mark', owner='d_1', name='3/quotes')
        """
        kind, _, rest = (key or b"").decode("utf-8", "surrogatepass").partition("/")
        owner, _, name = rest.partition("/")
        return cls(kind, owner, name)

    @staticmethod
    def of(kind: ThrottleKind, owner: str, name: str = "") -> bytes:
        """Return the key of a record. The names are the parts in angle brackets in the table above."""
        return f"{kind}/{owner}/{name}".encode("utf-8", "surrogatepass")


def place_key(partition: int, number: int) -> bytes:
    """Return the key on `cq.positions` of one part of the checkpoint of a partition."""
    return f"{partition}/{number}".encode()


def place_of(key: bytes | None) -> tuple[int, int]:
    """Return the partition and the part's number from a checkpoint's key.

    Example:
        >>> place_of(place_key(3, 1))
        (3, 1)
    """
    partition, _, number = (key or b"").partition(b"/")
    return int(partition), int(number)


def answer_key(order: int) -> bytes:
    """Return the key of the answer to the order at an offset of `cq.orders`."""
    return str(order).encode()


def order_of(key: bytes) -> int:
    """Return the offset of the order from the key of its answer."""
    return int(key)


_encode_cq = msgspec.json.Encoder().encode
_decode_cq = msgspec.json.Decoder(tuple[Subscriber, CqName]).decode
