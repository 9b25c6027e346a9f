"""The process in which the gateway evaluates single events.

The evaluation has a process of its own, since it may never end, or may take all memory. For these questions, only this
process loads the evaluator's libraries, such as Polars. The process starts at the first question, and ends with the
gateway.
"""

from __future__ import annotations

import resource
import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import psutil

from gateway.evaluation.outcome import EventOutcome, EventQuestion, RowsRefused
from gateway.model.held import NotYet
from grouping.model.errors import InternalError
from grouping.process.without_pandas import spare_pandas

__all__ = ["MOST_WAITING", "EvaluationProcess", "Evaluations", "TooCostly"]

_SECONDS = 1.0
"""The largest CPU time of a question, in seconds. The limit is short, since other questions wait meanwhile."""
_MOST_SECONDS = 10.0
"""The longest time from a question to its answer, in seconds. The time is longer than `_SECONDS`, since other processes
may use the cores meanwhile."""
_LOOK_SECONDS = 0.1
_START_SECONDS = 60.0
MOST_WAITING = 20
"""The largest number of open questions, including the question that is being evaluated."""
_MEMORY_BYTES = 2 << 30
_PAUSE_SECONDS = 60.0
"""How long a subscriber gets no answers after a question that cost too much, since other subscribers had to wait."""


class TooCostly(Exception):
    """The evaluation of an event takes too long or too much memory, or there are too many questions."""


class Evaluations:
    """Answers the questions of subscribers one after the other, in a thread, while the gateway continues."""

    def __init__(self) -> None:
        """Begin without a question."""
        self._process = EvaluationProcess()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="evaluation")
        self._pending: dict[str, tuple[str, Future[EventOutcome]]] = {}
        """Subscriber → its open question."""

    def outcome(self, question: EventQuestion, asker: str, name: str) -> EventOutcome:
        """Return the outcome of an event for a query.

        Args:
            question: The query and the event.
            asker: The subscriber, who can have one open question.
            name: Identifies the question among the subscriber's questions. The name must be the same when the question
                is asked again.

        Raises:
            NotYet: The event is being evaluated. The caller must ask again later.
            RowsRefused: A row does not fit its table.
            TooCostly: The evaluation of this event, or of the subscriber's last event, cost too much; or too many
                questions wait.
        """
        known, answer = self._pending.get(asker, ("", None))
        if answer is None or known != name:
            if len(self._pending) >= MOST_WAITING:
                self._pending = {key: each for key, each in self._pending.items() if not each[1].done()}
            if len(self._pending) >= MOST_WAITING:
                raise TooCostly(f"{MOST_WAITING} other events wait for their evaluation.")
            answer = self._thread.submit(self._process.outcome, question, asker)
            self._pending[asker] = (name, answer)
        if not answer.done():
            raise NotYet(answer.done)
        del self._pending[asker]
        return answer.result()

    def close(self) -> None:
        """End the process after its present question. Waiting questions get no answers."""
        self._thread.shutdown(cancel_futures=True)
        self._process.close()


class EvaluationProcess:
    """Evaluates one event after the other, each in bounded time and memory."""

    def __init__(self) -> None:
        """Begin without a process."""
        self._process: BaseProcess | None = None
        self._end: Connection | None = None
        self._paused: dict[str, float] = {}
        """Subscriber → until when it gets no answers, in monotonic seconds."""

    def outcome(self, question: EventQuestion, asker: str) -> EventOutcome:
        """Return the outcome of an event for a query.

        Args:
            question: The query and the event.
            asker: The subscriber.

        Raises:
            RowsRefused: A row does not fit its table.
            TooCostly: The evaluation of this event, or of the subscriber's last event, cost too much.
        """
        if time.monotonic() < self._paused.get(asker, 0.0):
            raise TooCostly(f"The subscriber's last event also cost too much, within the last {_PAUSE_SECONDS:g} s.")
        try:
            return self._answer_of(question)
        except TooCostly:
            self.close()
            now = time.monotonic()
            self._paused = {name: until for name, until in self._paused.items() if until > now}
            self._paused[asker] = now + _PAUSE_SECONDS
            raise

    def _answer_of(self, question: EventQuestion) -> EventOutcome:
        end = self._end or self._start()
        try:
            used, until = self._cpu_seconds(), time.monotonic() + _MOST_SECONDS
            end.send(question)
            while not end.poll(_LOOK_SECONDS):
                if self._cpu_seconds() - used >= _SECONDS or time.monotonic() > until:
                    raise TooCostly(f"The evaluation took more than {_SECONDS:g} s.")
            answer: EventOutcome | RowsRefused = end.recv()
        except (EOFError, OSError) as error:
            raise TooCostly("The evaluation took more memory than the limit.") from error
        if isinstance(answer, RowsRefused):
            raise answer
        return answer

    def _cpu_seconds(self) -> float:
        assert self._process is not None, "it was started"
        try:
            times = psutil.Process(self._process.pid).cpu_times()
        except psutil.NoSuchProcess as error:
            raise EOFError from error
        return times.user + times.system

    def close(self) -> None:
        """End the process, even during a question."""
        if self._process is not None and self._end is not None:
            self._process.kill()
            self._process.join()
            self._end.close()
        self._process = self._end = None

    def _start(self) -> Connection:
        context = get_context("spawn")
        self._end, theirs = context.Pipe()
        self._process = context.Process(target=_answer, args=(theirs,), daemon=True, name="cq-evaluation")
        self._process.start()
        theirs.close()
        if not self._end.poll(_START_SECONDS):
            self.close()
            raise InternalError("the process that evaluates events does not start")
        self._end.recv()
        return self._end


def _answer(end: Connection) -> None:
    """Answer questions until the gateway ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    spare_pandas()
    from gateway.evaluation.event import answered  # noqa: PLC0415 - loads Polars

    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
    end.send(None)
    while True:
        try:
            question = end.recv()
        except EOFError:
            return
        try:
            end.send(answered(question))
        except RowsRefused as refused:
            end.send(refused)
