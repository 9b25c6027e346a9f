"""The names of a gateway on Kafka: topics, consumer groups, the transactional id.

All names begin with the gateway's prefix. Only this module makes and reads the names; subscribers learn the topics of
results from replies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

__all__ = ["COMMAND_PLACE_HEADER", "ClientNames", "TopicNames", "gateway_prefixes"]

COMMAND_PLACE_HEADER = "command_place"
"""The header of a reply with the place of its command on the topic of commands: ``<partition>/<offset>``."""

_OWNER = re.compile(r"\.([dg])_[0-9a-f]+")


@dataclass(frozen=True)
class TopicNames:
    """The topics of a gateway.

    Example:
        >>> TopicNames("dev.").commands, TopicNames("dev.").own_results("d_1")
        ('dev.commands', 'dev.results.d_1')
    """

    prefix: str

    @cached_property
    def commands(self) -> str:
        """Statements, keyed by subscriber. Clients write them, and the gateway reads them."""
        return f"{self.prefix}commands"

    @cached_property
    def replies(self) -> str:
        """Replies to commands, keyed by subscriber. The gateway writes them, and clients read them.

        The gateway reads a reply when a command is repeated, and when it recovers.
        """
        return f"{self.prefix}replies"

    @cached_property
    def results(self) -> str:
        """Results and ends of shared destinations. Evaluator and gateway write them, and subscribers read them."""
        return f"{self.prefix}results"

    def own_results(self, owner_id: str) -> str:
        """Return the topic of a dedicated destination, or of the virtual destinations of a group."""
        return f"{self.prefix}results.{owner_id}"

    def owner_kind(self, topic: str) -> Literal["destination", "group"] | None:
        """Return the kind of owner (destination or group) of a topic of results; None for other topics.

        Example:
            >>> names = TopicNames("cq.")
            >>> [names.owner_kind(topic) for topic in ("cq.results.g_1", "cq.results.d_1", "cq.results", "quotes")]
            ['group', 'destination', None, None]
            >>> names.owner_kind("cq.results.d_1.commands")  # a gateway with the prefix "cq.results.d_1." has it
        """
        found = _OWNER.fullmatch(topic.removeprefix(self.results)) if topic.startswith(self.results) else None
        if found is None:
            return None
        return "destination" if found[1] == "d" else "group"

    @cached_property
    def deadletters(self) -> str:
        """Records that cannot be decoded or evaluated. Evaluator and gateway write them, and operators read them."""
        return f"{self.prefix}deadletters"

    @cached_property
    def audit(self) -> str:
        """Statements of operators and changes of sources, with outcomes. The gateway writes, and auditors read them."""
        return f"{self.prefix}audit"

    @cached_property
    def catalog(self) -> str:
        """The catalog, compacted: sources, CQs, destinations, plans, ends, marks and secrets.

        The gateway writes the catalog, and rebuilds Redis from it.
        """
        return f"{self.prefix}catalog"

    @cached_property
    def pending(self) -> str:
        """Matches that wait for a tick. The evaluator writes them, and the gateway writes rolled records; both read."""
        return f"{self.prefix}pending"

    @cached_property
    def throttled(self) -> str:
        """Results of CQs with AT MOST. The evaluator writes them, and the gateway copies them to their destinations."""
        return f"{self.prefix}throttled"

    @cached_property
    def throttles(self) -> str:
        """The state of AT MOST, compacted. The gateway writes the state, and reads it when it starts."""
        return f"{self.prefix}throttles"

    @cached_property
    def ticks(self) -> str:
        """Cuts and cursors of digests, compacted. The gateway writes them, and reads them when it starts."""
        return f"{self.prefix}ticks"

    @cached_property
    def positions(self) -> str:
        """Positions of matches in `pending`, compacted. The gateway writes them, and reads them when it starts."""
        return f"{self.prefix}positions"

    @cached_property
    def orders(self) -> str:
        """Orders for digests by a Spark job, from the gateway to the evaluator, and the evaluator's answers."""
        return f"{self.prefix}orders"

    @cached_property
    def pins(self) -> str:
        """Offsets of tables that micro-batches see, compacted. The evaluator writes and reads them."""
        return f"{self.prefix}pins"

    @cached_property
    def warm_up(self) -> str:
        """Some events for the evaluator's warm-up at its start."""
        return f"{self.prefix}warm-up"

    def is_own(self, topic: str) -> bool:
        """Tell whether a topic has the gateway's prefix."""
        return topic.startswith(self.prefix)


@dataclass(frozen=True, slots=True)
class ClientNames:
    """The names of a gateway's processes: consumer groups, a transactional id, and a Spark application."""

    prefix: str

    @property
    def gateway(self) -> str:
        """The consumer group with the offsets up to which commands were read, and the transactional id."""
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
        """The group of the evaluator's readers of logs, such as stored matches, tables and pins; commits nothing."""
        return f"{self.prefix}evaluator-log"

    @property
    def evaluator_lane(self) -> str:
        """The group of the lane's readers of events; commits nothing."""
        return f"{self.prefix}lane"

    @property
    def evaluator(self) -> str:
        """The name of the Spark application."""
        return f"{self.prefix}evaluator"


def gateway_prefixes(topics: Set[str]) -> Iterator[str]:
    """Yield the prefixes of the gateways of a cluster: prefixes under which the main topics of a gateway exist.

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
