"""The names under which a gateway's processes meet on Kafka: topics, consumer groups, the transactional id.

All begin with the gateway's prefix. This module alone makes them and reads them; where results are, subscribers are
told by replies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

__all__ = ["COMMAND_PLACE_HEADER", "ClientNames", "TopicNames", "gateway_prefixes"]

COMMAND_PLACE_HEADER = "command_place"
"""Header of a reply: the place of the record on the topic of commands that it answers, ``<partition>/<offset>``."""

_OWNER = re.compile(r"\.([dg])_[0-9a-f]+")


@dataclass(frozen=True)
class TopicNames:
    """The topics of one gateway.

    Example:
        >>> TopicNames("dev.").commands, TopicNames("dev.").own_results("d_1")
        ('dev.commands', 'dev.results.d_1')
    """

    prefix: str

    @cached_property
    def commands(self) -> str:
        """Statements, by subscriber; clients write, the gateway reads."""
        return f"{self.prefix}commands"

    @cached_property
    def replies(self) -> str:
        """Replies to commands, by subscriber; the gateway writes, clients read."""
        return f"{self.prefix}replies"

    @cached_property
    def results(self) -> str:
        """Matches, digests and ends of shared destinations; evaluator and gateway write, subscribers read."""
        return f"{self.prefix}results"

    def own_results(self, owner_id: str) -> str:
        """Return the topic of one dedicated destination, or of the virtual destinations of one group."""
        return f"{self.prefix}results.{owner_id}"

    def owner_kind(self, topic: str) -> Literal["destination", "group"] | None:
        """Return the kind of owner whose results alone are on a topic; None for other topics.

        Example:
            >>> names = TopicNames("cq.")
            >>> [names.owner_kind(topic) for topic in ("cq.results.g_1", "cq.results.d_1", "cq.results", "quotes")]
            ['group', 'destination', None, None]
            >>> names.owner_kind("cq.results.d_1.commands")  # of another gateway, by its prefix
        """
        found = _OWNER.fullmatch(topic.removeprefix(self.results)) if topic.startswith(self.results) else None
        if found is None:
            return None
        return "destination" if found[1] == "d" else "group"

    @cached_property
    def deadletters(self) -> str:
        """Commands and events that cannot be read; evaluator and gateway write, operators read."""
        return f"{self.prefix}deadletters"

    @cached_property
    def audit(self) -> str:
        """Statements of operators with their outcomes; the gateway writes, whoever supervises operators reads."""
        return f"{self.prefix}audit"

    @cached_property
    def catalog(self) -> str:
        """The catalog, compacted: CQs, streams, plans, ends; the gateway writes it, and reads it on start."""
        return f"{self.prefix}catalog"

    @cached_property
    def pending(self) -> str:
        """Matches that wait for a tick; the evaluator writes, gateway and digest jobs read."""
        return f"{self.prefix}pending"

    @cached_property
    def ticks(self) -> str:
        """How far digests are written, compacted; the gateway's timers write, and read it on start."""
        return f"{self.prefix}ticks"

    @cached_property
    def positions(self) -> str:
        """Where in `pending` matches lie, compacted; the gateway's timers write, and read it on start."""
        return f"{self.prefix}positions"

    @cached_property
    def orders(self) -> str:
        """Digests that a Spark job makes, and its answers; gateway and evaluator write to each other."""
        return f"{self.prefix}orders"

    @cached_property
    def pins(self) -> str:
        """Offsets of tables that micro-batches see, compacted; workers write and read."""
        return f"{self.prefix}pins"

    @cached_property
    def warm_up(self) -> str:
        """Some events that the evaluator gives itself when it starts."""
        return f"{self.prefix}warm-up"

    def is_own(self, topic: str) -> bool:
        """Tell whether a topic is one of the gateway's, whatever it is for."""
        return topic.startswith(self.prefix)


@dataclass(frozen=True, slots=True)
class ClientNames:
    """The names of a gateway's processes at Kafka: consumer groups, and a transactional id."""

    prefix: str

    @property
    def gateway(self) -> str:
        """The group that reads commands, whose offsets tell how far they were read; and the transactional id."""
        return f"{self.prefix}gateway"

    @property
    def gateway_log(self) -> str:
        """The group of the gateway's readers of whole logs; commits nothing."""
        return f"{self.prefix}gateway-log"

    @property
    def gateway_tail(self) -> str:
        """The group of the gateway's readers of new records; commits nothing."""
        return f"{self.prefix}gateway-tail"

    @property
    def gateway_places(self) -> str:
        """The group of the gateway's readers of single records; commits nothing."""
        return f"{self.prefix}gateway-places"

    @property
    def evaluator_log(self) -> str:
        """The group of the workers' readers of stored matches; commits nothing."""
        return f"{self.prefix}evaluator-log"

    @property
    def evaluator_lane(self) -> str:
        """The group of the lane's readers of events; commits nothing."""
        return f"{self.prefix}lane"

    @property
    def evaluator(self) -> str:
        """The Spark application."""
        return f"{self.prefix}evaluator"


def gateway_prefixes(topics: Set[str]) -> Iterator[str]:
    """Yield the prefixes of the gateways of a cluster: under each stand topics that every gateway has.

    Example:
        >>> list(gateway_prefixes({"a.commands", "a.replies", "a.catalog", "a.pending", "shop.commands"}))
        ['a.']
    """
    for topic in topics:
        prefix = topic.removesuffix(TopicNames("").commands)
        if prefix and prefix != topic and topics >= _signs(TopicNames(prefix)):
            yield prefix


def _signs(names: TopicNames) -> Set[str]:
    return {names.commands, names.replies, names.catalog, names.pending}
