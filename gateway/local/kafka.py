"""The embedded Apache Kafka: broker and controller in one process, on the loopback address; its data is in a folder."""

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
    "log.dirs": "data",  # a relative path: an absolute path may have commas, and Kafka splits the value at commas
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
    # A broker that was killed can register again only after its last session has timed out, by default after 9 s.
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "500",
    # Records often have old times here, for example from a replayed file of quotes. So records are not deleted by age;
    # the size of a partition is limited instead. Topics of results have a retention of their own.
    "log.retention.ms": "-1",
    "log.retention.bytes": str(4 << 30),
    "log.segment.bytes": str(256 << 20),
    # By default, the controller writes an empty record twice a second, so that followers can measure their lag. This
    # controller has no followers.
    "metadata.max.idle.interval.ms": "0",
    # Indexes and buffers are small, since the heap is small and there may be hundreds of small topics.
    "log.index.size.max.bytes": str(1 << 20),
    "log.cleaner.dedupe.buffer.size": str(16 << 20),
    "num.network.threads": "2",
    "num.io.threads": "4",
}
"""The options that differ from Kafka's defaults, without the addresses."""

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
RULE an index without room on the disk ends the broker before it answers
CLASS org.apache.kafka.common.protocol.Errors
METHOD forException
AT ENTRY
IF $1 instanceof java.lang.InternalError
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
"""Rules for the Java agent Byteman. If the disk is full, they end the broker before it can write any further.

The first rule: an index is a sparse file that is mapped into memory. If the disk has no space for a page of the index,
the JVM throws InternalError. The batch is in the log by then, but Kafka has not moved the log's end. Without the rule,
Kafka continues and gives the next batch the same offsets. The recovery at the next start then finds the offsets twice
and empties the segment. In trials without the agent, this emptied the topic each time.

The second rule: in compiled code, the JVM throws InternalError some calls later, from any method of the thread. Without
the rule, Kafka continues and answers the client with an unknown error, though the batch is in the log.

The third rule: if the write of a batch fails, Kafka ends itself, but only a moment later. Without the rule, another
batch may be written after the incomplete batch, and the recovery removes both.

No option of the JVM or of Kafka prevents this.
"""

API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""A request that a broker answers at once. Its fields: the length, the key of ApiVersions, version 0, request number 1,
and no client name."""

STARTED = b"Kafka Server started"
"""Kafka's log line when the controller knows the broker. From then on, topics can be made."""


def kafka_program(folder: Path, log: Path, ports: tuple[int, int], java: Java, jars: Path) -> Program:
    """Return the program that runs Kafka.

    Args:
        folder: Kafka's folder. If the first start was interrupted, the next start deletes the data there.
        log: The file for Kafka's output.
        ports: The ports of the broker and of the controller.
        java: The Java to run Kafka with.
        jars: The folder of the broker's jars.
    """
    scratch = folder / "tmp"  # a killed broker leaves native libraries for compression here
    archive = archive_path(java, jars)
    # The JVM ignores an archive that does not fit. Its log messages about this are switched off.
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
    """Return the path of the archive of Kafka's classes (`kafka_classes.py`). Each Java has an archive of its own.

    Args:
        java: The Java that runs Kafka.
        jars: The folder of the broker's jars.
    """
    program = Path(java.command).resolve()
    of = hashlib.sha256(f"{program}:{program.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    return jars / f"classes-{of}.jsa"


def _properties(broker: int, controller: int) -> str:
    # The addresses of the quorum are in a file that is written at each start, since the controller's port may change.
    addresses = {
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller}",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{broker},CONTROLLER://{LOOPBACK}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{broker}",
    }
    return "".join(f"{name}={value}\n" for name, value in (PROPERTIES | addresses).items())


def _format(folder: Path, java: Sequence[str]) -> None:
    """Format the folder with a new cluster id. The file `formatted` is written last, as a sign that all is done."""
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
    """Return whether the broker answers a request. A connection is not enough, since a hanging broker accepts it."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1.0) as connection:
            connection.sendall(API_VERSIONS)
            return bool(connection.recv(64))
    except OSError:
        return False
