"""Makes an archive of the Java classes that the embedded Kafka loads, so that Kafka starts faster.

The JVM maps the archive into memory instead of reading the classes from jars (application class-data sharing, JEP 350).
This saves a third of the CPU time of Kafka's start. ``python -m gateway.local.kafka_classes`` makes the archive in the
folder of the jars, once for each Java. Without an archive, or with an archive of other jars, the JVM starts as usual.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gateway.local.jars import KAFKA, ensure_jars, show_progress
from gateway.local.java import Java, find_java
from gateway.local.kafka import archive_path, kafka_program
from gateway.local.program import free_ports
from grouping.model.errors import OperationalError
from grouping.settings.given_settings import given_settings

__all__ = ["main", "make_archive"]

_START_SECONDS = 120.0
_DUMP_SECONDS = 300.0


def make_archive(java: Java, jars: Path) -> Path:
    """Start and stop a Kafka, so that the JVM writes an archive of Kafka's classes; return the archive's path.

    This Kafka runs without the Java agent, since a JVM with an agent writes no archive. A JVM with an agent can use the
    archive.

    Args:
        java: The Java that will run Kafka.
        jars: The folder of the broker's jars.

    Raises:
        OperationalError: Kafka did not start, or wrote no archive.
    """
    path = archive_path(java, jars)
    if path.is_file():
        return path
    broker, controller = free_ports(2)
    with tempfile.TemporaryDirectory(dir=jars, prefix=".classes-") as name:
        folder = Path(name)
        made, log = folder / path.name, folder / "kafka.log"
        program = kafka_program(folder / "kafka", log, (broker, controller), java, jars)
        program.prepare()
        run, *arguments = (each for each in program.command if not each.startswith("-javaagent:"))
        command = [run, f"-XX:ArchiveClassesAtExit={made}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off", *arguments]
        with log.open("wb") as out:
            kafka = subprocess.Popen(command, cwd=program.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not program.ready(0) and kafka.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            kafka.terminate()
            kafka.wait(_DUMP_SECONDS)
        finally:
            kafka.kill()
            kafka.wait()
        if not made.is_file():
            raise OperationalError(
                "Kafka left no archive of its classes", detail=log.read_text(errors="replace")[-500:]
            )
        made.replace(path)
    return path


def main() -> None:
    """Make the archive. A failure is only printed, since Kafka also starts without an archive."""
    try:
        print(make_archive(find_java(), ensure_jars(KAFKA, given_settings().jars, show_progress)))
    except (OperationalError, OSError, subprocess.SubprocessError) as error:
        print(f"no archive of Kafka's classes: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
