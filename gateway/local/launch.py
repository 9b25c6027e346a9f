"""The launch of `cq up`: which servers it starts, their ports, and the environment of the roles."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from gateway.local.jars import KAFKA, SPARK, ensure_jars, show_progress
from gateway.local.java import Java, find_java
from gateway.local.kafka import kafka_program
from gateway.local.program import LOOPBACK, Program, free_ports, port_is_free
from gateway.local.run_folder import RunFolder, write_json
from gateway.local.status_file import StatusWatch, recovery_line
from gateway.local.valkey import valkey_program
from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings

__all__ = ["Launch", "Ports", "masked", "role_environment", "role_program"]

_PASSWORD_OPTION = re.compile(r"((?:^|&)password=)[^&]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Launch:
    """The programs that `cq up` starts: the servers that are not given, and the roles."""

    settings: Settings

    kafka: str | None = None
    """The bootstrap servers of a given Kafka; None to start the embedded Kafka."""

    redis: str | None = None
    """The URL of a given Redis, which may contain a password; None to start the embedded Valkey."""

    kafka_port: int = 0
    """The port of the embedded Kafka; with 0, the port of the last start if it is free, else any free port."""

    redis_port: int = 0
    """The port of the embedded Valkey; 0 as for `kafka_port`."""

    def __repr__(self) -> str:
        """Show the launch without the password."""
        return f"Launch(data={self.settings.data}, kafka={self.kafka}, redis={masked(self.redis or '')})"

    def fetch(self) -> tuple[Java, Path | None, Path]:
        """Find Java, and fetch missing jars.

        Returns:
            The Java, the folder of the broker's jars (None if Kafka is given), and the folder of Spark's jars.

        Raises:
            OperationalError: No supported Java is installed, or a jar cannot be fetched.
        """
        java = find_java()
        broker = None if self.kafka else ensure_jars(KAFKA, self.settings.jars, show_progress)
        return java, broker, ensure_jars(SPARK, self.settings.jars, show_progress)

    def stages(self, run: RunFolder) -> tuple[list[list[Program]], dict[str, str]]:
        """Return the stages of programs, in the order of their start, and the addresses of the servers.

        Raises:
            OperationalError: A port is taken, a given server does not answer, or a server cannot be prepared.
        """
        java, broker_jars, spark_jars = self.fetch()
        ports = Ports(run)
        servers = []
        bootstrap, redis_url = self.kafka, self.redis
        if bootstrap is None:
            assert broker_jars is not None
            kafka_ports = ports.take("kafka", self.kafka_port), ports.take("controller", 0)
            servers.append(kafka_program(run.data / "kafka", run.log("kafka"), kafka_ports, java, broker_jars))
            bootstrap = f"{LOOPBACK}:{kafka_ports[0]}"
        else:
            _require(bootstrap.split(","), f'no Kafka answers at "{bootstrap}"', "--kafka HOST:PORT")
        if redis_url is None:
            port = ports.take("redis", self.redis_port)
            servers.append(valkey_program(run.data / "redis", run.log("redis"), port))
            redis_url = f"redis://{LOOPBACK}:{port}/0"
        else:
            where, watched = urlsplit(redis_url), self.settings.redis.sentinels
            addresses = watched.split(",") if watched else [f"{where.hostname}:{where.port or 6379}"]
            _require(addresses, f'no Redis answers at "{watched or masked(redis_url)}"', "--redis URL")
        ports.keep()
        environment = role_environment(bootstrap, redis_url, run.data)
        environment |= {"JAVA_HOME": str(java.home), "CQ_EVALUATOR_JARS": str(spark_jars)}
        environment["PYSPARK_PYTHON"] = sys.executable
        roles = [role_program(name, run, environment) for name in _MODULES]
        return [servers, roles], {"bootstrap": bootstrap, "redis_url": masked(redis_url)}


_MODULES = {"gateway": ("gateway.cli", "gateway"), "evaluator": ("spark_jobs.runtime.driver.job",)}
"""For each role, the module to run and the arguments of this module. The evaluator is not started by `cq evaluator`,
which would take a second at each restart to look for Java and jars again."""


def role_environment(bootstrap: str, redis_url: str, data: Path | str) -> dict[str, str]:
    """Return the environment of the gateway and the evaluator, with the same variables as in `docker/compose.yaml`."""
    return {"CQ_KAFKA_BOOTSTRAP": bootstrap, "CQ_REDIS_URL": redis_url, "CQ_DATA": str(data)}


def role_program(name: str, run: RunFolder, environment: Mapping[str, str]) -> Program:
    """Return the program of the gateway or the evaluator, whose state is read from the role's status file."""
    status = run.status(name)

    def ready(since: int) -> bool:
        return run.read(status).get("state") == "ready"

    def progress() -> str:
        return recovery_line(run.read(status))

    command = (sys.executable, "-m", *_MODULES[name])
    variables = {**environment, "CQ_STATUS_FILE": str(status)}
    heard = StatusWatch(status).heard
    log = run.log(name)
    return Program(
        name, command, run.data, log, ready, environment=variables, heard=heard, progress=progress, status=status
    )


def masked(url: str) -> str:
    """Return a URL without its password.

    Example:
        >>> masked("redis://default:hush@cache:6379/0")
        'redis://default:***@cache:6379/0'
        >>> masked("redis://cache:6379/0?password=hush&timeout=5")
        'redis://cache:6379/0?password=***&timeout=5'
    """
    parts = urlsplit(url)
    query = _PASSWORD_OPTION.sub(r"\1***", parts.query)
    if parts.password is None:
        return urlunsplit(parts._replace(query=query))
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username or ''}:***@{host}", query=query))


class Ports:
    """Chooses free ports: the ports of the last start if possible, so that clients can keep the addresses."""

    def __init__(self, run: RunFolder) -> None:
        """Read the ports of the last start."""
        self._path = run.data / "run" / "ports.json"
        self._before: dict[str, int] = {
            name: port for name, port in run.read(self._path).items() if isinstance(port, int) and 0 < port < 1 << 16
        }
        self._given: dict[str, int] = {}

    def take(self, name: str, wanted: int) -> int:
        """Return a free port for a server: the wanted port, or the port of the last start, or any port.

        Two servers never get the same port, even though they do not listen yet.

        Raises:
            OperationalError: The wanted port is taken.
        """
        port = wanted or self._before.get(name, 0)
        if not (port and self._is_free(port)):
            if wanted:
                raise OperationalError(
                    f"port {wanted} for {name} is taken",
                    hint=f"Stop what listens there, or give another: --{name}-port N (0 for any).",
                )
            port = next(filter(self._is_free, free_ports(len(self._given) + 1)))
        self._given[name] = port
        return port

    def keep(self) -> None:
        """Store the ports for the next start."""
        write_json(self._path, self._before | self._given)

    def _is_free(self, port: int) -> bool:
        return port not in self._given.values() and port_is_free(port)


def _require(addresses: list[str], message: str, option: str) -> None:
    """Check that a server listens at one of the addresses.

    Raises:
        OperationalError: No server listens there.
    """
    for address in addresses:
        host, _, port = address.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()
        except (OSError, ValueError):
            continue
        return
    raise OperationalError(message, hint=f"Start it, or give another address: {option}.")
