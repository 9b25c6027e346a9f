"""Three brokers of a Kafka cluster, each a process, to be killed, stopped and started again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from gateway.local.jars import KAFKA, ensure_jars, show_progress
from gateway.local.java import find_java
from gateway.local.kafka import LOGGING, PROPERTIES, STARTED
from gateway.local.program import free_ports
from grouping.settings.settings import Settings
from tests.cluster.hosts import LOCAL, Host

__all__ = ["COUNT", "Brokers", "three_brokers"]

COUNT = 3
_SECONDS = 300.0
_SAFE = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    # A killed broker is out after three seconds, in place of nine.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


@dataclass(slots=True)
class Brokers:
    """The cluster, while it runs."""

    folder: Path
    java: list[str]
    hosts: Sequence[Host]
    ports: list[int]
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(f"{host.address}:{port}" for host, port in zip(self.hosts, self.ports, strict=True))

    def start(self, number: int) -> None:
        """Start a broker, the first time or again; `await_whole` tells when it is there."""
        place = self.folder / str(number)
        with (place / "kafka.log").open("ab") as log:
            command = self.hosts[number].command(*self.java, "kafka.Kafka", "server.properties")
            self.running[number] = subprocess.Popen(command, cwd=place, stdout=log, stderr=subprocess.STDOUT)

    def kill(self, number: int) -> None:
        """End a broker at once."""
        process = self.running.pop(number)
        process.kill()
        process.wait()

    def stop(self, number: int) -> None:
        """Ask a broker to stop: it hands its partitions over first."""
        process = self.running.pop(number)
        process.terminate()
        process.wait(_SECONDS)

    def await_started(self) -> None:
        """Return when each broker has logged its start."""
        deadline = time.monotonic() + _SECONDS
        for number, process in self.running.items():
            log = self.folder / str(number) / "kafka.log"
            while STARTED not in log.read_bytes():
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)

    def await_whole(self) -> None:
        """Return when every partition has all of its copies in step."""
        deadline = time.monotonic() + _SECONDS
        while self._behind():
            assert time.monotonic() < deadline, self._behind()
            time.sleep(0.2)

    def _behind(self) -> list[str]:
        try:
            topics = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0}).list_topics(timeout=10).topics
        except KafkaException as error:
            return [str(error)]
        parts = [(name, part) for name, topic in topics.items() for part in topic.partitions.values()]
        return [f"{name}/{part.id}" for name, part in parts if len(part.isrs) < len(part.replicas)]


@contextmanager
def three_brokers(folder: Path, hosts: Sequence[Host] = (LOCAL,) * COUNT) -> Iterator[Brokers]:
    """Start them, one on each host, and end them with the block."""
    jars = ensure_jars(KAFKA, Settings().jars, show_progress)
    java = [find_java().command, "-Dlog4j2.configurationFile=log4j2.properties", "-Xmx256m", "-cp", str(jars / "*")]
    ports = free_ports(2 * COUNT)
    brokers = Brokers(folder, java, hosts, ports[:COUNT])
    controllers = [f"{host.address}:{port}" for host, port in zip(hosts, ports[COUNT:], strict=True)]
    for number in range(COUNT):
        place = folder / str(number)
        place.mkdir(parents=True)
        (place / "log4j2.properties").write_text(LOGGING)
        (place / "server.properties").write_text(_properties(number, brokers, controllers))
        form = ["kafka.tools.StorageTool", "format", "-t", "three-brokers-test-01", "-c", "server.properties"]
        subprocess.run([*java, *form], cwd=place, check=True, capture_output=True)
    with ExitStack() as closing:
        for number in range(COUNT):
            brokers.start(number)
        closing.callback(lambda: [brokers.kill(number) for number in list(brokers.running)])
        brokers.await_started()
        yield brokers


def _properties(number: int, brokers: Brokers, controllers: list[str]) -> str:
    own = f"PLAINTEXT://{brokers.hosts[number].address}:{brokers.ports[number]}"
    properties = {
        "node.id": str(number + 1),
        "controller.quorum.voters": ",".join(f"{voter}@{each}" for voter, each in enumerate(controllers, 1)),
        "listeners": f"{own},CONTROLLER://{controllers[number]}",
        "advertised.listeners": own,
    }
    return "".join(f"{name}={value}\n" for name, value in (PROPERTIES | _SAFE | properties).items())
