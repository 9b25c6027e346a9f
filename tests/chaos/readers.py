"""The subscribers' side: every CQ followed through the SDK, now and then left and resumed by its cursor."""

from __future__ import annotations

import json
import random
import time
from collections import Counter

import msgspec

from gateway.sdk import Client, ContinuousQuery, Digest, Match, Subscription, connect
from tests.chaos.lives import AT_ONCE, Cq
from tests.kafka_client import Reply
from tests.oracle import Position, row_of
from tests.stack.lab import Lab

__all__ = ["Readers"]

_OPEN_EVERY = 2.0
"""Seconds between two openings of a subscription, for all CQs that were accepted meanwhile."""


class Readers:
    """Follows CQs, and the raw records of their destinations. For one thread at a time."""

    def __init__(self, lab: Lab, bootstrap: str, rng: random.Random) -> None:
        self._lab = lab
        self._rng = rng
        self._clients: dict[str, Client] = {}
        self._bootstrap = bootstrap
        self._new: list[tuple[Cq, ContinuousQuery]] = []
        self._followed: list[tuple[Client, dict[str, Cq], Subscription]] = []
        self._open_at = 0.0

    def accepted(self, cq: Cq, reply: Reply) -> None:
        """Begin to follow a CQ soon."""
        asked = {**reply.result, "created_at": reply.fields["replied_at"]}
        self._new.append((cq, msgspec.convert(asked, ContinuousQuery)))
        if cq.mode != "virtual":
            self._lab.results.follow(reply.result["destination"])

    def step(self) -> None:
        """Take the results that have come, and the raw records."""
        self.follow()
        self._lab.results.poll()

    def follow(self) -> None:
        """Take the results that have come."""
        if self._new and time.monotonic() >= self._open_at:
            self._open()
        if self._followed and self._rng.random() < 0.1:
            self._resume(self._rng.randrange(len(self._followed)))
        for _, cqs, subscription in self._followed:
            subscription.fetch(0.01)
            while (result := subscription.take()) is not None:
                self._take(cqs[result.cq], result)
        for ended in [one for one in self._followed if one[2].ended]:
            ended[2].close()
            self._followed.remove(ended)

    def close(self) -> None:
        """Leave."""
        for _, _, subscription in self._followed:
            subscription.close()
        for client in self._clients.values():
            client.close()

    def _open(self) -> None:
        """Follow the new CQs, with a subscription per subscriber."""
        new, self._new = self._new, []
        self._open_at = time.monotonic() + _OPEN_EVERY
        for subscriber in {cq.subscriber for cq, _ in new}:
            if subscriber not in self._clients:
                self._clients[subscriber] = connect(self._bootstrap, subscriber, timeout=120.0)
            own = [(cq, asked) for cq, asked in new if cq.subscriber == subscriber]
            subscription = self._clients[subscriber].subscribe(*(asked for _, asked in own))
            self._followed.append((self._clients[subscriber], {cq.name: cq for cq, _ in own}, subscription))

    def _resume(self, number: int) -> None:
        """Leave a subscription, and go on by its cursor."""
        client, cqs, subscription = self._followed[number]
        cursor = subscription.cursor
        subscription.close()
        self._followed[number] = (client, cqs, client.subscribe(cursor=cursor))

    def _take(self, cq: Cq, result: Match | Digest) -> None:
        if isinstance(result, Match):
            position = Position(result.partition, result.offset)
            cq.got[position] += 1
            if cq.mode == "virtual":
                cq.rows[position] = row_of(cq.query, json.dumps(dict(result.row)).encode())
            return
        if cq.mode == "counted":
            _take_counts(cq, result)
            return
        assert result.count == len(result.rows), f"{result} of {cq.name} is not whole"
        cq.digested.update(row["id"] for row in result.rows if row["id"] is not None)  # the fence's events have NULL


def _take_counts(cq: Cq, digest: Digest) -> None:
    """Take a digest whose rows tell by digits how often each event of a dozen was counted."""
    for row in digest.rows:
        if row["dozen"] is None:  # the fence's events
            continue
        counts = Counter({row["dozen"] * AT_ONCE + at: row["digits"] >> 4 * at & 15 for at in range(AT_ONCE)})
        assert counts.total() == row["n"], f"{row} of {cq.name}'s {digest} contradicts itself"
        cq.digested += counts
