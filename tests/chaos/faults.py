"""The possible faults: processes killed or stopped, Redis set back, a full disk, a clock that jumps, a topic lost."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import NewPartitions

from tests.chaos.host import ROLES
from tests.chaos.many_streams import ManyStreams
from tests.kafka_client import wait_until
from tests.stack.lab import Lab, Source
from tests.stack.tracebacks import FULL_DISK, KAFKA_AWAY, WORKER_DEATH

__all__ = ["FAULTS", "STREAM_FAULTS", "TRACES", "Fault", "Ground"]


class Ground:
    """The target of faults."""

    def __init__(
        self,
        host: Any,
        lab: Lab,
        source: Source,
        rng: random.Random,
        tell: Callable[[str], None],
        many: ManyStreams | None = None,
    ) -> None:
        self.host = host
        """A `Host`, or whatever else a run's own faults are done to."""
        self.lab = lab
        self.source = source
        self.rng = rng
        self.tell = tell
        self.many = many
        """The streams beside the source, if there are any."""


Fault = Callable[[Ground], None]
"""Does the fault, and returns when it is over; broken parts may still be on their way up."""


def _kill(*roles: str) -> Fault:
    def kill(ground: Ground) -> None:
        for role in roles:
            ground.host.send(role, signal.SIGKILL)

    return kill


def _stop(*choices: str) -> Fault:
    def stop(ground: Ground) -> None:
        what, seconds = ground.rng.choice(choices), ground.rng.choice((2, 12, 18, 32))
        ground.tell(f"{what} is stopped for {seconds} s")
        stopped = ground.host.send(what, signal.SIGSTOP)
        time.sleep(seconds)
        for process in stopped:
            if process.is_running():
                process.send_signal(signal.SIGCONT)

    return stop


def _wipe(ground: Ground) -> None:
    """Take Redis away with its files."""
    shutil.rmtree(ground.host.data / "redis" / "appendonlydir", ignore_errors=True)
    ground.host.send("redis", signal.SIGKILL)


def _set_back(ground: Ground) -> None:
    """Let Redis come back as it was some seconds ago."""
    kept = ground.host.data / "redis" / "appendonlydir"
    copy, old = kept.with_name("copy"), kept.with_name("old")
    if not kept.exists():
        ground.tell("skipped: Redis has just lost its files")
        return
    shutil.copytree(kept, copy)
    time.sleep(ground.rng.choice((0.5, 3.0, 8.0)))
    kept.rename(old)
    copy.rename(kept)
    ground.host.send("redis", signal.SIGKILL)
    shutil.rmtree(old)


def _fill_disk(ground: Ground) -> None:
    """Leave no byte on the data folder's disk for a while."""
    if not ground.host.small_disk:
        ground.tell("skipped: the data folder is on no small disk of its own, which only root may mount")
        return
    filler = ground.host.data.parent / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            while file.write(bytes(1 << 20)):
                pass
    except OSError:
        time.sleep(ground.rng.choice((3, 8, 15)))
    filler.unlink()


def _move_clock(ground: Ground) -> None:
    """Let the roles' clock jump there, and back again."""
    assert ground.host.clock is not None
    seconds = ground.rng.choice((-20.0, -3.0, 3.0, 20.0))
    ground.tell(f"the clock goes to {seconds:+} s")
    ground.host.clock.write_text(str(seconds))
    time.sleep(ground.rng.choice((3, 8)))
    ground.host.clock.write_text("0")


def _add_partition(ground: Ground) -> None:
    source, client = ground.source, ground.lab.client
    wanted = source.partitions + 1
    if wanted > 6:
        ground.tell("skipped: there are six partitions already")
        return

    def added() -> bool:
        time.sleep(0.1)
        try:
            known = client.partitions(source.topic, 5)
            if known < wanted:
                client.admin.create_partitions([NewPartitions(source.topic, wanted)])[source.topic].result(5)
        except KafkaException:  # Kafka is away, or has just added the partition
            ground.host.revive()
            return False
        return known == wanted

    wait_until(added, f"partition {wanted} of {source.topic}", 300)  # everything may have to start first
    source.partitions = wanted


def _remake_topic(ground: Ground) -> None:
    if ground.many is None:
        ground.tell("skipped: there are no other streams")
    else:
        ground.many.remake_topic(ground.rng)


def _kill_by_record(ground: Ground) -> None:
    if ground.many is None:
        ground.tell("skipped: there are no other streams")
    else:
        ground.many.kill_worker()


FAULTS: dict[str, Fault] = {
    "kill-gateway": _kill("gateway"),
    "kill-driver": _kill("evaluator"),
    "kill-jvm": _kill("jvm"),
    "kill-workers": _kill("workers"),
    "kill-redis": _kill("redis"),
    "kill-kafka": _kill("kafka"),
    "kill-supervisor": _kill("supervisor"),
    "kill-roles": _kill(*ROLES),
    "kill-all": _kill(*ROLES, "supervisor"),
    "stop": _stop(*ROLES, "jvm", "workers"),
    "stop-supervisor": _stop("supervisor"),
    "wipe-redis": _wipe,
    "set-back-redis": _set_back,
    "fill-disk": _fill_disk,
    "move-clock": _move_clock,
    "add-partition": _add_partition,
    "remake-topic": _remake_topic,
    "kill-by-record": _kill_by_record,
}

STREAM_FAULTS = ("remake-topic", "kill-by-record")
"""Faults of one stream, which the other streams may notice for a moment at most."""

TRACES = (FULL_DISK, KAFKA_AWAY, WORKER_DEATH)
"""Regular expressions of the stack traces that faults may cause."""
