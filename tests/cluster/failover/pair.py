"""Two servers of Valkey, of which one follows the other, and a Sentinel that promotes it; processes on loopback."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import redis
from redis.exceptions import RedisError

from gateway.local.program import LOOPBACK, free_port
from gateway.local.valkey import CONFIGURATION, valkey_binary

__all__ = ["Pair", "watched_pair"]

_NAME = "cq-pair"
_SECONDS = 60.0


@dataclass(slots=True)
class Pair:
    """The servers, while they run."""

    folder: Path
    ports: list[int]
    sentinel: int
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, str]:
        """What gateway and evaluator are told."""
        return {
            "CQ_REDIS_URL": f"redis://{LOOPBACK}:{self.ports[0]}/0",
            "CQ_REDIS_SENTINELS": f"{LOOPBACK}:{self.sentinel}",
            "CQ_REDIS_SENTINEL_NAME": _NAME,
        }

    def start(self, port: int) -> None:
        """Start a server, or the Sentinel; a server that was the primary becomes a follower when Sentinel sees it."""
        place = self.folder / str(port)
        options = ("--sentinel",) if port == self.sentinel else ()
        with (place / "log").open("ab") as log:
            command = [valkey_binary(), "valkey.conf", *options]
            self.running[port] = subprocess.Popen(command, cwd=place, stdout=log, stderr=subprocess.STDOUT)

    def kill(self, port: int) -> None:
        """End a process at once."""
        process = self.running.pop(port)
        process.kill()
        process.wait()

    def primary(self) -> int:
        """Return the port of the server that Sentinel calls the primary."""
        with redis.Redis(LOOPBACK, self.sentinel) as client:
            _, port = client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", _NAME)
        return int(port)

    def await_followed(self) -> None:
        """Return when the primary has a follower that has all that it has."""
        deadline = time.monotonic() + _SECONDS
        while not self._followed():
            assert time.monotonic() < deadline, "no server follows the primary"
            time.sleep(0.1)

    def _followed(self) -> bool:
        try:
            with redis.Redis(LOOPBACK, self.sentinel) as client:
                [follower] = client.execute_command("SENTINEL", "REPLICAS", _NAME)
            with redis.Redis(LOOPBACK, self.primary()) as client:
                told = client.info("replication")
        except (RedisError, ValueError):
            return False
        fields = dict(zip(follower[::2], follower[1::2], strict=True)) if isinstance(follower, list) else follower
        flags = fields.get(b"flags") or fields.get("flags")
        return told.get("slave0", {}).get("state") == "online" and str(flags).find("down") < 0


@contextmanager
def watched_pair(folder: Path) -> Iterator[Pair]:
    """Start them, and end them with the block."""
    pair = Pair(folder, [free_port(), free_port()], free_port())
    primary, follower = pair.ports
    texts = {
        primary: f"{CONFIGURATION}port {primary}\n",
        follower: f"{CONFIGURATION}port {follower}\nreplicaof {LOOPBACK} {primary}\n",
        pair.sentinel: f"bind {LOOPBACK}\nport {pair.sentinel}\nsentinel monitor {_NAME} {LOOPBACK} {primary} 1\n"
        f"sentinel down-after-milliseconds {_NAME} 1000\nsentinel failover-timeout {_NAME} 5000\n",
    }
    with ExitStack() as closing:
        closing.callback(lambda: [pair.kill(port) for port in list(pair.running)])
        for port, text in texts.items():
            (folder / str(port)).mkdir(parents=True)
            (folder / str(port) / "valkey.conf").write_text(text)
            pair.start(port)
        pair.await_followed()
        yield pair
