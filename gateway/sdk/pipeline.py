"""The pipeline: sends many commands in their order, without waiting for each reply; for both clients."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from gateway.sdk import statements
from gateway.sdk.errors import CommandRejection, PartialRejection, TransportError, Unavailable
from gateway.sdk.exchange import MOST_UNDER_WAY, Exchange
from gateway.sdk.operations import describing
from gateway.sdk.outbox import CommandUnderWay
from gateway.sdk.results import ContinuousQuery, Reply

__all__ = ["Inquiry", "Item", "Outcome", "Pipeline", "ReplyProgress", "Rejected", "Tally", "checked", "counted"]

log = logging.getLogger(__name__)

Item = str | tuple[str, str]
"""A statement, or a CQ's name and its SELECT."""

Outcome = Reply | CommandRejection
"""The outcome of a command: its reply, or its rejection as a value."""

ReplyProgress = Callable[[int], None]
"""Called now and then with the number of answered commands."""

Rejected = Callable[[int, CommandRejection], None]
"""Called with the index of a rejected item, from 0, and the rejection."""

_CHUNK = 500
_KEPT = 1000
_AGAIN_SECONDS = 1.0
"""How long after a failed question to the gateway the question is sent again."""
_STEP = 0.1
"""How long a single wait for replies lasts, in seconds: other threads of the client must get their turn."""


@dataclass(slots=True)
class Tally:
    """The numbers of accepted and rejected commands."""

    accepted: int = 0
    rejected: int = 0
    rejections: dict[int, CommandRejection] = field(default_factory=dict)
    """Index of an item, from 0 → its rejection, for the first thousand rejections."""


class Pipeline:
    """Sends commands while earlier ones wait for their replies, and hands over the outcomes in order.

    The client calls `advance` until all items are answered, and `Exchange.step` between these calls. The pipeline keeps
    no answered items.
    """

    def __init__(
        self,
        exchange: Exchange,
        items: Iterable[Item],
        take: Callable[[Outcome], None],
        *,
        timeout: float,
        progress: ReplyProgress | None,
    ) -> None:
        """Begin without commands under way.

        Args:
            exchange: Sends the commands.
            items: The commands. Items are consumed only as commands are submitted.
            take: Called with each outcome, in the order of the items.
            timeout: Seconds from the submission of a command until its reply must have come.
            progress: Called now and then with the number of outcomes.
        """
        self._exchange = exchange
        self._texts: Iterator[str] = (item if isinstance(item, str) else statements.create_cq(*item) for item in items)
        self._take = take
        self._timeout = timeout
        self._progress = progress
        self._waiting: deque[CommandUnderWay] = deque()
        self._answered = 0
        self._exhausted = False

    def advance(self) -> bool:
        """Hand over known outcomes, and submit items up to `MOST_UNDER_WAY`; return whether all items are answered.

        Raises:
            TransportError: A command's outcome is not known. Later commands may still be carried out.
        """
        before = self._answered
        while self._waiting and self._waiting[0].done:
            self._take(self._waiting.popleft().outcome())
            self._answered += 1
        if self._progress is not None and self._answered > before:
            self._progress(self._answered)
        while not self._exhausted and len(self._waiting) < MOST_UNDER_WAY:
            texts = list(islice(self._texts, _CHUNK))
            self._exhausted = not texts
            self._waiting.extend(self._exchange.submit(texts, timeout=self._timeout))
        return self._exhausted and not self._waiting


class Inquiry:
    """A question to the gateway about the subscriber's own CQs. A subscription reads on while replies are missing."""

    def __init__(
        self,
        exchange: Exchange,
        names: Sequence[str],
        *,
        timeout: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Begin without sending a command.

        Args:
            exchange: Sends the commands.
            names: The names of the CQs.
            timeout: Seconds until a command without a reply is given up, and the gateway is asked again.
            clock: Returns the present, in seconds of a monotonic clock.
            sleep: Waits for a number of seconds.
        """
        self._exchange = exchange
        self._sleep = sleep
        self._not_before = 0.0
        """The gateway is not asked again before this time."""
        self._names = names
        self._timeout = timeout
        self._clock = clock
        self._begin()

    def _begin(self) -> None:
        self._outcomes: list[Outcome] = []
        texts, take = describing(self._names), self._outcomes.append
        self._pipeline = Pipeline(self._exchange, texts, take, timeout=self._timeout, progress=None)

    def answers(self, seconds: float) -> Mapping[str, ContinuousQuery | None] | None:
        """Return name → CQ, waiting at most `seconds` for the replies; None while replies are missing.

        The CQ is None if the gateway does not know the name. A CQ whose DESCRIBE is rejected for another reason is left
        out.

        Raises:
            ClientClosed: The client was closed.
        """
        until = self._clock() + seconds
        if (rest := self._not_before - self._clock()) > 0:
            self._sleep(min(rest, seconds))
            if rest > seconds:
                return None
        try:
            while not self._pipeline.advance():
                left = max(0.0, until - self._clock())
                self._exchange.step(min(_STEP, left))
                if not left and not self._pipeline.advance():
                    return None
            for outcome in self._outcomes:
                if isinstance(outcome, Unavailable):
                    raise outcome
        except (TransportError, Unavailable) as error:
            log.info("CQs are not described", extra={"error": str(error)})
            self._not_before = self._clock() + _AGAIN_SECONDS
            self._begin()
            return None
        return {
            name: outcome.query if isinstance(outcome, Reply) else None
            for name, outcome in zip(self._names, self._outcomes, strict=True)
            if isinstance(outcome, Reply) or outcome.code == "unknown-cq"
        }


def counted(tally: Tally, rejected: Rejected | None) -> Callable[[Outcome], None]:
    """Return a function that counts outcomes into a tally and reports rejections."""

    def take(outcome: Outcome) -> None:
        if not isinstance(outcome, CommandRejection):
            tally.accepted += 1
            return
        place = tally.accepted + tally.rejected
        tally.rejected += 1
        if tally.rejected <= _KEPT:
            tally.rejections[place] = outcome
        if rejected is not None:
            rejected(place, outcome)

    return take


def checked(outcomes: list[Outcome], check: bool) -> list[Outcome]:
    """Return the outcomes unchanged.

    Raises:
        PartialRejection: `check` is set and some commands were rejected. The error has all outcomes.
    """
    if check and any(isinstance(outcome, CommandRejection) for outcome in outcomes):
        raise PartialRejection(outcomes)
    return outcomes
