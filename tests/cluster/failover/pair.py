"""Two servers of Valkey, a primary and its follower, and Sentinels that promote the follower."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import redis
from redis.exceptions import RedisError

from gateway.local.program import free_ports
from gateway.local.valkey import CONFIGURATION, valkey_binary
from tests.cluster.hosts import LOCAL, Host

__all__ = ["Pair", "watched_pair"]

_NAME = "cq-pair"
_SECONDS = 180.0
_LOOK_SECONDS = 5.0
"""How long a server may take to answer a look at it."""


@dataclass(slots=True)
class Pair:
    """The servers, while they run."""

    folder: Path
    servers: dict[int, Host]
    """By port, the host of each."""
    sentinels: dict[int, Host]
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, str]:
        """Settings for gateway and evaluator."""
        return {
            "CQ_REDIS_URL": self.url(next(iter(self.servers))),
            "CQ_REDIS_SENTINELS": ",".join(f"{host.address}:{port}" for port, host in self.sentinels.items()),
            "CQ_REDIS_SENTINEL_NAME": _NAME,
        }

    def url(self, port: int) -> str:
        """Return the address of a server."""
        return f"redis://{self.servers[port].address}:{port}/0"

    def start(self, port: int) -> None:
        """Start a server, or a Sentinel; Sentinels make a former primary a follower when they see it."""
        place = self.folder / str(port)
        options = ("--sentinel",) if port in self.sentinels else ()
        with (place / "log").open("ab") as log:
            command = (self.servers | self.sentinels)[port].command(valkey_binary(), "valkey.conf", *options)
            self.running[port] = subprocess.Popen(command, cwd=place, stdout=log, stderr=subprocess.STDOUT)

    def kill(self, port: int) -> None:
        """End a process at once."""
        process = self.running.pop(port)
        process.kill()
        process.wait()

    def primary(self) -> int:
        """Return the port of the server that most Sentinels call the primary."""
        [(port, _)] = Counter(map(self._called_primary, self.sentinels)).most_common(1)
        return port

    def await_followed(self) -> None:
        """Return when the primary has a follower with all its data."""
        deadline = time.monotonic() + _SECONDS
        while not self._followed():
            assert time.monotonic() < deadline, "no server follows the primary"
            time.sleep(0.1)

    def _called_primary(self, sentinel: int) -> int:
        with redis.Redis(self.sentinels[sentinel].address, sentinel, socket_timeout=_LOOK_SECONDS) as client:
            _, port = client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", _NAME)
        return int(port)

    def _followed(self) -> bool:
        try:
            primary = self.primary()
            with redis.Redis.from_url(self.url(primary), socket_timeout=_LOOK_SECONDS) as client:
                info = client.info("replication")
            whole = [self._is_followed(port) for port in self.sentinels]
        except (RedisError, ValueError):
            return False
        return info.get("slave0", {}).get("state") == "online" and all(whole)

    def _is_followed(self, sentinel: int) -> bool:
        """Tell whether a Sentinel sees the follower, and all the others."""
        with redis.Redis(self.sentinels[sentinel].address, sentinel, socket_timeout=_LOOK_SECONDS) as client:
            [follower] = client.execute_command("SENTINEL", "REPLICAS", _NAME)
            others = client.execute_command("SENTINEL", "SENTINELS", _NAME)
        fields = dict(zip(follower[::2], follower[1::2], strict=True)) if isinstance(follower, list) else follower
        flags = fields.get(b"flags") or fields.get("flags")
        return str(flags).find("down") < 0 and len(others) == len(self.sentinels) - 1


@contextmanager
def watched_pair(
    folder: Path, hosts: Sequence[Host] = (LOCAL,) * 2, sentinels: Sequence[Host] = (LOCAL,)
) -> Iterator[Pair]:
    """Start them on hosts, and end them with the block."""
    ports = iter(free_ports(len(hosts) + len(sentinels)))
    pair = Pair(folder, {next(ports): host for host in hosts}, {next(ports): host for host in sentinels})
    primary, follower = pair.servers
    watched = f"{_NAME} {hosts[0].address} {primary} {len(sentinels) // 2 + 1}"
    texts = {port: f"{CONFIGURATION}{_at(host, port)}" for port, host in pair.servers.items()}
    texts[follower] += f"replicaof {hosts[0].address} {primary}\n"
    for port, host in pair.sentinels.items():
        texts[port] = (
            f"{_at(host, port)}sentinel monitor {watched}\nsentinel down-after-milliseconds {_NAME} 1000\n"
            f"sentinel failover-timeout {_NAME} 5000\n"
        )
    with ExitStack() as closing:
        closing.callback(lambda: [pair.kill(port) for port in list(pair.running)])
        for port, text in texts.items():
            (folder / str(port)).mkdir(parents=True)
            (folder / str(port) / "valkey.conf").write_text(text)
            pair.start(port)
        pair.await_followed()
        yield pair


def _at(host: Host, port: int) -> str:
    """Say where a server listens; the last line of two that say the same counts."""
    return f"bind {host.address}\nport {port}\nprotected-mode no\n"
