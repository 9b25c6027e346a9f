"""An embedded Kafka and Valkey for benchmarks and for tests without a gateway process, removed afterwards."""

from __future__ import annotations

import gc
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from gateway.local.launch import Launch
from gateway.local.program import Program
from gateway.local.run_folder import RunFolder
from gateway.local.watchdog import SupervisorWatchdog
from grouping.settings.settings import Settings
from tests.kafka_client import wait_until

__all__ = ["Ground", "goal_seconds", "open_ground"]

_READY_SECONDS = 300.0
"""How long a program may take to start: on a busy machine Spark takes minutes."""


def goal_seconds(goal: float) -> float:
    """Return a time limit under the present load, from the goal on an idle machine."""
    return goal * max(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0)


@dataclass(frozen=True, slots=True)
class Ground:
    """Running servers, and the settings by which all reach them."""

    settings: Settings

    def make_topic(self, name: str, partitions: int, **config: str) -> None:
        """Make a topic, its options with underscores for dots; return when the broker knows of it, a moment later."""
        admin = AdminClient({"bootstrap.servers": self.settings.kafka.bootstrap})
        options = {option.replace("_", "."): value for option, value in config.items()}
        admin.create_topics([NewTopic(name, partitions, 1, config=options)])[name].result()
        wait_until(lambda: _leaders(admin, name) == partitions, f"leaders of {name}")

    def delete_topic(self, name: str) -> None:
        """Delete a topic, so that its disk space is free for the next round; return when it is not listed any more."""
        admin = AdminClient({"bootstrap.servers": self.settings.kafka.bootstrap})
        admin.delete_topics([name])[name].result()
        wait_until(lambda: name not in admin.list_topics(timeout=30).topics, f"end of {name}")

    def delete_own_topics(self) -> None:
        """Delete every topic under the prefix, once the clients that are left of them have ended."""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ResourceWarning
            )  # a cycle's sockets may go before the pool that closes them
            gc.collect()
        admin = AdminClient({"bootstrap.servers": self.settings.kafka.bootstrap})
        names = [name for name in admin.list_topics(timeout=30).topics if name.startswith(self.settings.prefix)]
        for deleted in admin.delete_topics(names).values() if names else ():
            with suppress(KafkaException):  # a topic deleted by the test may still be listed
                deleted.result()


def _leaders(admin: AdminClient, topic: str) -> int:
    """Return how many partitions of a topic have a leader."""
    return sum(part.leader >= 0 for part in admin.list_topics(topic, timeout=30).topics[topic].partitions.values())


@contextmanager
def open_ground(*, evaluator: bool = False, kafka: str | None = None) -> Iterator[Ground]:
    """Start the servers, and the evaluator if it is wanted; end them and remove their data when the block is left.

    They end with this process too, should it be killed.

    Args:
        evaluator: Whether it is wanted.
        kafka: The address of a running broker; without it a broker is started.
    """
    with tempfile.TemporaryDirectory(prefix="cq-bench-", ignore_cleanup_errors=True) as folder:
        base = Settings(data=Path(folder))
        run = RunFolder(base.data)
        run.prepare()
        stages, where = Launch(base, kafka=kafka).stages(run)
        jars = stages[1][0].environment["CQ_EVALUATOR_JARS"]
        settings = Settings.model_validate(
            base.model_dump()
            | {
                "kafka": {"bootstrap": where["bootstrap"]},
                "redis": {"url": where["redis_url"]},
                "evaluator": base.evaluator.model_dump() | {"jars": jars},
            }
        )
        started: list[subprocess.Popen[bytes]] = []
        watchdog = SupervisorWatchdog()
        role: subprocess.Popen[bytes] | None = None
        try:
            for program in stages[0]:
                started.append(_start(program))
                watchdog.tell([process.pid for process in started])
            if evaluator:
                program = stages[1][1]
                role = _start(replace(program, ready=partial(_is_up, run, program)))
                watchdog.tell([process.pid for process in (*started, role)])
            yield Ground(settings)
        finally:
            if role is not None:
                role.terminate()  # and with it its JVM, in order
                role.wait()
            gc.collect()  # remaining connections end with their owners, not with a broker that is gone
            for process in started:
                process.kill()
                process.wait()
            watchdog.tell([])
            watchdog.close()


def _is_up(run: RunFolder, program: Program, _since: int) -> bool:
    """Tell whether the evaluator serves; without a gateway its tables are never confirmed, but it makes digests."""
    assert program.status is not None
    return run.read(program.status).get("state") in ("ready", "waiting")


def _start(program: Program) -> subprocess.Popen[bytes]:
    program.prepare()
    with program.log.open("ab") as out:
        process = subprocess.Popen(
            program.command, cwd=program.folder, env=os.environ | program.environment,
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    deadline = time.monotonic() + _READY_SECONDS
    while not program.ready(0):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait()
            raise RuntimeError(f"{program.role} did not start:\n{program.log.read_text()[-2000:]}")
        time.sleep(0.05)
    return process
