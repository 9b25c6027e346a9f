"""The exchange of commands and replies: connects the outbox to Kafka, for the sync and for the asyncio client."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gateway.sdk.errors import ClientClosed, TransportError
from gateway.sdk.inbox import Inbox
from gateway.sdk.outbox import CommandUnderWay, Outbox
from gateway.sdk.sender import Sender
from gateway.sdk.signing import TOKEN_HEADER, SigningKey
from gateway.sdk.trace_context import trace_headers
from schemas.partition import partition_of
from schemas.topic_names import COMMAND_PLACE_HEADER, TopicNames

__all__ = ["MOST_UNDER_WAY", "Exchange"]

MOST_UNDER_WAY = 20_000
"""The largest number of commands of a pipeline that wait for replies: enough to keep the gateway busy, while the
client's memory stays bounded."""


class Exchange:
    """A subscriber's commands and replies over one producer and one consumer.

    The consumer reads only the subscriber's own partition of `cq.replies`. Reading begins at the end that the partition
    has before the first command is sent. Several threads may call `submit` and `step`, since a lock lets in only one
    thread at a time. A step takes in the replies to the commands of all threads.
    """

    def __init__(
        self,
        bootstrap: str,
        subscriber: str,
        *,
        prefix: str,
        extra: Mapping[str, str],
        clock: Callable[[], float],
        signing_key: SigningKey | None = None,
    ) -> None:
        topics = TopicNames(prefix)
        self._topic, self._replies = topics.commands, topics.replies
        self._subscriber, self._key = subscriber, subscriber.encode()
        self._signing_key = signing_key
        self._outbox = Outbox(subscriber, clock=clock)
        # A delivery report calls the outbox. The driver delivers reports only within `serve`, when the lock is held.
        self._sender = Sender(bootstrap, extra)
        self._inbox = Inbox(bootstrap, extra)
        self._lock = threading.Lock()
        self._listening = False
        self._closed = False

    def listen(self, seconds: float) -> None:
        """Begin to read replies, unless reading has begun; wait at most `seconds` for Kafka. `submit` calls this too.

        Raises:
            TransportError: Kafka cannot be reached, or the gateway's topics do not exist.
        """
        with self._lock:
            self._listen(seconds)

    def submit(self, texts: Sequence[str], *, timeout: float, command_id: str | None = None) -> list[CommandUnderWay]:
        """Queue statements in their order; `step` sends them.

        Args:
            texts: The statements.
            timeout: Seconds until a command without a reply is given up.
            command_id: The id of an earlier command to send again, if there is a single statement. By default each
                statement gets a new id.

        Raises:
            TransportError: Kafka cannot be reached, or the gateway's topics do not exist.
            ClientClosed: The client was closed.
        """
        with self._lock:
            self._listen(timeout)
            submit, headers = self._outbox.submit, trace_headers()
            return [submit(text, timeout=timeout, command_id=command_id, headers=headers) for text in texts]

    def step(self, seconds: float) -> None:
        """Send queued commands, and take in replies; wait at most `seconds` for a reply.

        Raises:
            TransportError: Kafka refuses the read.
            ClientClosed: The client was closed.
        """
        with self._lock:
            self._check_open()
            self._outbox.tick()
            self._send()
            self._sender.serve(0)
            for value, headers in self._inbox.replies(seconds if len(self._outbox) else 0, self._key):
                self._outbox.answer(value, headers.get(COMMAND_PLACE_HEADER))

    def close(self) -> None:
        """Close both connections; commands without a reply may still be carried out."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._inbox.close()
                self._sender.close()

    def _listen(self, seconds: float) -> None:
        self._check_open()
        if not self._listening:
            partition = partition_of(self._key, self._sender.partitions(self._replies, seconds))
            where = (self._replies, partition)
            self._inbox.assign({where: self._inbox.end(*where, seconds)})
            self._listening = True

    def _send(self) -> None:
        for pending in self._outbox.unsent():
            delivered, headers = partial(self._outbox.note_delivery, pending), self._headers(pending)
            try:
                queued = self._sender.send(self._topic, pending.record, delivered, key=self._key, headers=headers)
            except TransportError as exc:
                self._outbox.refuse(pending, exc)
                continue
            if not queued:
                return
            pending.sendings += 1

    def _headers(self, pending: CommandUnderWay) -> Mapping[str, bytes]:
        """Return the headers of a command for one sending. Each sending needs a new token, since tokens expire."""
        if self._signing_key is None:
            return pending.headers
        token = self._signing_key.token(self._topic, self._subscriber, pending.command_id, pending.text)
        return {**pending.headers, TOKEN_HEADER: token}

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("the client was closed")
