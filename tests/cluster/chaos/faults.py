"""The possible faults of a cluster: members killed, stopped for longer than leases last, and cut off."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import psutil

from grouping.store.lease import LIFETIME_MS
from tests.chaos.faults import Fault, Ground
from tests.cluster.chaos.platform import Platform
from tests.cluster.hosts import Host as Place
from tests.kafka_client import wait_until

__all__ = ["CUTS", "FAULTS", "faults_of"]

_BEYOND_SECONDS = 3.0
"""How much longer than a lease a member is stopped or cut off."""
_GATEWAY_SECONDS, _EVALUATOR_SECONDS = (LIFETIME_MS[role] / 1000 + _BEYOND_SECONDS for role in ("gateway", "evaluator"))
_SERVER_SECONDS = 8.0
"""The same of a broker (its session lasts 3 s) and of Redis (its Sentinels wait for a second)."""
_EXECUTOR_SECONDS = 15.0
"""The same of an executor, which Spark's driver gives up after ten seconds."""
_AWAY_SECONDS = 3.0
"""How long a killed server stays away."""

PlatformFault = Callable[[Platform, Ground], None]


def _kill_executor(platform: Platform, ground: Ground) -> None:
    _executor(platform, ground).kill()


def _kill_worker(platform: Platform, ground: Ground) -> None:
    """Kill one of Spark's workers; its executors see to their own end, and another worker comes."""
    number = ground.rng.randrange(len(platform.spark.workers))
    platform.spark.workers[number].kill()
    time.sleep(_AWAY_SECONDS)
    platform.spark.start_worker(number)


def _kill_broker(platform: Platform, ground: Ground) -> None:
    number = _broker(ground)
    platform.brokers.kill(number)
    time.sleep(_AWAY_SECONDS)
    platform.brokers.start(number)


def _kill_gateway(platform: Platform, _: Ground) -> None:
    platform.active_gateway()[0].kill()


def _kill_driver(platform: Platform, _: Ground) -> None:
    platform.send("evaluator", signal.SIGKILL)


def _kill_primary(platform: Platform, _: Ground) -> None:
    before = platform.pair.primary()
    platform.pair.kill(before)
    wait_until(lambda: time.sleep(0.1) or platform.pair.primary() != before, "promotion of the follower")
    platform.pair.start(before)


def _stop_executor(platform: Platform, ground: Ground) -> None:
    _stop(_EXECUTOR_SECONDS, _executor(platform, ground))


def _stop_broker(platform: Platform, ground: Ground) -> None:
    _stop(_SERVER_SECONDS, psutil.Process(platform.brokers.running[_broker(ground)].pid))


def _stop_gateway(platform: Platform, _: Ground) -> None:
    _stop(_GATEWAY_SECONDS, platform.active_gateway()[0])


def _stop_driver(platform: Platform, _: Ground) -> None:
    """Stop the driver and its JVM, but no executor: executors go on with their tasks."""
    _stop(_EVALUATOR_SECONDS, *platform.family("evaluator"), *platform.family("jvm"))


def _stop_primary(platform: Platform, _: Ground) -> None:
    _stop(_SERVER_SECONDS, psutil.Process(platform.pair.running[platform.pair.primary()].pid))


def _cut_executor(platform: Platform, ground: Ground) -> None:
    _cut(_EXECUTOR_SECONDS, ground.rng.choice(platform.spark.hosts))


def _cut_broker(platform: Platform, ground: Ground) -> None:
    _cut(_SERVER_SECONDS, platform.brokers.hosts[_broker(ground)])


def _cut_gateway(platform: Platform, _: Ground) -> None:
    """Cut the active gateway off, and the evaluator's driver too if it runs beside the gateway."""
    place = platform.active_gateway()[1]
    _cut(_EVALUATOR_SECONDS if place == platform.site else _GATEWAY_SECONDS, place)


def _cut_driver(platform: Platform, _: Ground) -> None:
    _cut(_EVALUATOR_SECONDS, platform.site)


def _cut_primary(platform: Platform, _: Ground) -> None:
    """Cut the primary off, and its neighbouring Sentinel, which knows no other primary until it hears the others."""
    _cut(_SERVER_SECONDS, platform.pair.servers[platform.pair.primary()])


_KILLS_AND_STOPS: dict[str, PlatformFault] = {
    "kill-executor": _kill_executor,
    "kill-worker": _kill_worker,
    "kill-broker": _kill_broker,
    "kill-gateway": _kill_gateway,
    "kill-driver": _kill_driver,
    "kill-primary": _kill_primary,
    "stop-executor": _stop_executor,
    "stop-broker": _stop_broker,
    "stop-gateway": _stop_gateway,
    "stop-driver": _stop_driver,
    "stop-primary": _stop_primary,
}
CUTS: dict[str, PlatformFault] = {
    "cut-executor": _cut_executor,
    "cut-broker": _cut_broker,
    "cut-gateway": _cut_gateway,
    "cut-driver": _cut_driver,
    "cut-primary": _cut_primary,
}
"""Faults that need hosts with links of their own."""
FAULTS = _KILLS_AND_STOPS | CUTS


def faults_of(platform: Platform) -> dict[str, Fault]:
    """Return each fault as it is done to a platform."""
    return {name: partial(fault, platform) for name, fault in FAULTS.items()}


def _executor(platform: Platform, ground: Ground) -> psutil.Process:
    wait_until(lambda: time.sleep(0.1) or platform.spark.executors(), "executor")
    return ground.rng.choice(platform.spark.executors())


def _broker(ground: Ground) -> int:
    return ground.rng.randrange(3)


def _stop(seconds: float, *processes: psutil.Process) -> None:
    with _stopped(processes):
        time.sleep(seconds)


@contextmanager
def _stopped(processes: tuple[psutil.Process, ...]) -> Iterator[None]:
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            if process.is_running():  # its keeper may have killed it meanwhile
                process.send_signal(signal.SIGCONT)


def _cut(seconds: float, place: Place) -> None:
    place.cut()
    try:
        time.sleep(seconds)
    finally:
        place.mend()
