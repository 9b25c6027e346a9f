"""An embedded Apache Kafka: broker and controller in one process, on loopback, with its data in one folder."""

from __future__ import annotations

import base64
import hashlib
import shutil
import socket
import struct
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path

from gateway.local.jars import KAFKA, read_lock
from gateway.local.java import Java
from gateway.local.program import LOOPBACK, Program
from grouping.model.errors import OperationalError

__all__ = ["archive_path", "kafka_program"]

HEAP = "512m"

PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "log.dirs": "data",  # the path is relative, since Kafka would split it at its commas
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # A broker that was killed is let in again when its own last session is over: 9 s by Kafka's default.
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "500",
    # Old record times are usual here (for example in a replayed file of quotes), so records are not deleted by age;
    # topics of results have their own retention. The size of a partition is bounded instead.
    "log.retention.ms": "-1",
    "log.retention.bytes": str(4 << 30),
    "log.segment.bytes": str(256 << 20),
    # By default, the controller writes an empty record twice a second, by which its followers would measure their lag.
    "metadata.max.idle.interval.ms": "0",
    # Hundreds of small topics share one modest heap.
    "log.index.size.max.bytes": str(1 << 20),
    "log.cleaner.dedupe.buffer.size": str(16 << 20),
    "num.network.threads": "2",
    "num.io.threads": "4",
}
"""The options that differ from Kafka's defaults, addresses aside."""

LOGGING = """status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %m (%c)%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
"""

END_WITHOUT_ROOM = """RULE an index without room on the disk ends the broker
CLASS org.apache.kafka.storage.internals.log.LocalLog
METHOD maybeHandleIOException
AT EXCEPTION EXIT
IF $^ instanceof java.lang.InternalError
DO System.err.println("Kafka ends itself: there is no room on the disk for an index");
   Runtime.getRuntime().halt(1)
ENDRULE
RULE half a batch ends the broker
CLASS org.apache.kafka.storage.internals.log.LocalLog
METHOD append
AT EXCEPTION EXIT
IF $^ instanceof java.io.IOException
DO System.err.println("Kafka ends itself: a batch could not be written, " + $^);
   Runtime.getRuntime().halt(1)
ENDRULE
"""
"""Rules for the Java agent Byteman: on a full disk they end the broker before it can write on.

An index is a sparse file that is mapped into memory. If the disk has no room for a page, the JVM throws InternalError;
by then the batch is in the log, but the log's end has not moved. Without the rules, Kafka goes on: the next batch has
the same offsets, and the recovery at the next start finds offsets twice and empties the segment. If the write of a
batch fails, Kafka ends by itself, but a moment later; meanwhile another batch may follow the half batch, and the
recovery cuts off both. No option of the JVM or of Kafka prevents this. In trials without the agent, an index that lost
its pages emptied the topic each time.
"""

API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""The request that every broker answers at once: its length, ApiVersions, version 0, number 1, no client name."""

STARTED = b"Kafka Server started"
"""Logged when the controller knows the broker, so that topics can be made."""


def kafka_program(folder: Path, log: Path, ports: tuple[int, int], java: Java, jars: Path) -> Program:
    """Return the program that runs Kafka.

    Args:
        folder: Kafka's folder; after an interrupted first start it is made anew.
        log: The file for Kafka's output.
        ports: The ports of the broker and of the controller.
        java: The Java to run Kafka with.
        jars: The folder of the broker's jars.
    """
    scratch = folder / "tmp"  # the compression libraries leave their native parts there if the broker is killed
    archive = archive_path(java, jars)
    # The log of class-data sharing is off, since the JVM passes over an archive that does not fit.
    shared = (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off") if archive.is_file() else ()
    run = (java.command, f"-Djava.io.tmpdir={scratch}", "-Dlog4j2.configurationFile=log4j2.properties", *shared)
    classpath = ("-cp", str(jars / "*"))
    agent = jars / next(jar.file for jar in read_lock(KAFKA) if jar.module == "byteman")

    def prepare() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        (folder / "server.properties").write_text(_properties(*ports), "utf-8")
        (folder / "log4j2.properties").write_text(LOGGING, "utf-8")
        (folder / "end_without_room.btm").write_text(END_WITHOUT_ROOM, "utf-8")
        if not (folder / "formatted").exists():
            _format(folder, (*run, "-Xmx128m", *classpath))

    def ready(since: int) -> bool:
        return _has(log, STARTED, since)

    def heard() -> bool:
        return _answers(ports[0])

    memory = (f"-Xms{HEAP}", f"-Xmx{HEAP}", "-XX:+ExitOnOutOfMemoryError")
    guard = f"-javaagent:{agent}=script:end_without_room.btm"
    command = (*run, *memory, guard, *classpath, "kafka.Kafka", "server.properties")
    return Program("kafka", command, folder, log, ready, prepare, heard=heard, stop_seconds=30.0)


def archive_path(java: Java, jars: Path) -> Path:
    """Return where the archive of Kafka's classes is kept (`kafka_classes.py`); each Java has its own archive.

    Args:
        java: The Java that runs Kafka.
        jars: The folder of the broker's jars.
    """
    program = Path(java.command).resolve()
    of = hashlib.sha256(f"{program}:{program.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    return jars / f"classes-{of}.jsa"


def _properties(broker: int, controller: int) -> str:
    # The quorum is static, and written anew at each start, since the controller's port may change.
    addresses = {
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller}",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{broker},CONTROLLER://{LOOPBACK}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{broker}",
    }
    return "".join(f"{name}={value}\n" for name, value in (PROPERTIES | addresses).items())


def _format(folder: Path, java: Sequence[str]) -> None:
    """Give the folder its cluster id; a mark file is written last, so that an interrupted format does not count."""
    shutil.rmtree(folder / "data", ignore_errors=True)
    cluster = "c" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]  # the id must not begin with a dash
    command = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", "server.properties"]
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise OperationalError(f"Kafka cannot use the folder {folder}: {reason}", hint="Use another data folder.")
    (folder / "formatted").touch()


def _has(log: Path, words: bytes, since: int) -> bool:
    try:
        with log.open("rb") as file:
            file.seek(since)
            return words in file.read()
    except FileNotFoundError:
        return False


def _answers(port: int) -> bool:
    """Return whether the broker answers a request; a hanging broker still accepts connections."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1.0) as connection:
            connection.sendall(API_VERSIONS)
            return bool(connection.recv(64))
    except OSError:
        return False
