"""A gateway's command loop over Kafka, compared with its expected state."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Producer

from gateway.kafka import LogReader
from gateway.model.stored_form import decode_cq
from gateway.state.table_upkeep import TableUpkeep
from schemas.codec import Reply, decode_reply
from tests.ground import Ground
from tests.stack.digests.desk import NOW
from tests.timer_desk import Desk

__all__ = ["Office"]


class Office:
    """A desk that takes commands from Kafka, with the CQs that it is expected to have."""

    def __init__(self, ground: Ground) -> None:
        self.desk = Desk(ground.settings, NOW)
        self.settings = ground.settings
        self.live: set[str] = set()
        self.sent = 0
        config = {"bootstrap.servers": ground.settings.kafka.bootstrap, "partitioner": "murmur2_random"}
        self.producer = Producer(config)

    def send(self, text: str, command_id: str = "", subscriber: str = "bench") -> None:
        """Send a command and have it carried out."""
        self.send_all([text], command_id, subscriber)

    def send_all(self, texts: Sequence[str], command_id: str = "", subscriber: str = "bench") -> None:
        """Send commands and have all of them carried out."""
        for text in texts:
            self.sent += not command_id
            fields = {"command_id": command_id or str(self.sent), "subscriber": subscriber, "text": text}
            self.producer.produce(self.settings.topics.commands, json.dumps(fields), b"bench")
        self.producer.flush()
        read = 0
        while read < len(texts):
            records = self.desk.consumer.read(1000, 10.0)
            self.desk.carry_out(records)
            self.desk.working.begin()
            read += len(records)

    def create(self, name: str, number: int) -> None:
        self.send(f"CREATE CQ {name} AS SELECT k FROM t WHERE k = {number} DO PUBLISH SHARED")
        self.live.add(name)

    def drop(self, name: str, *, by_command: bool) -> None:
        """Drop a CQ by a command, or, as EXPIRE does, by a commit without a command."""
        if by_command:
            self.send(f"DROP CQ {name}")
        else:
            self.desk.drop(name)
            self.desk.commits.finish()
        self.live.discard(name)

    def recover(self) -> None:
        """Recover as a gateway does at its start."""
        self.desk.recover()
        self.desk.working.begin()

    def replies(self) -> list[Reply]:
        """Return all replies so far, in their order."""
        reader = LogReader(self.settings)
        found = list(reader.since(self.settings.topics.replies, dict.fromkeys(range(4), 0)))
        reader.close()
        return [decode_reply(message.value) for message in found]

    def state(self) -> dict[str, Any]:
        """Return CQs, destinations and ends as Redis holds them, without versions and numbers."""
        working, connection = self.desk.working, self.desk.working.connection
        redis, keys = connection.redis, connection.keys
        cqs = {name.decode(): decode_cq(body) for name, body in redis.hgetall(keys.cqs("bench")).items()}
        rows = TableUpkeep(self.settings, working).distinct_rows("s_bench")
        memberships = redis.hkeys(keys.destinations)
        return {"cqs": cqs, "rows": rows, "holders": sorted(memberships), "parts": working.inventory.dependencies}

    def check(self) -> None:
        """Compare Redis with the accepted CQs, and with its content after it was filled again."""
        state = self.state()
        assert self.live == set(state["cqs"])
        self.desk.recovery.run(self.desk.now_ms, rebuild=True)
        assert state == self.state()
        assert {1} >= set(Counter(reply.command_id for reply in self.replies()).values())
