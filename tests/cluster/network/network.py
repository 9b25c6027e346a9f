"""A network of hosts on this machine: namespaces with addresses of their own, linked by a switch that we make."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

import pytest

from tests.cluster.hosts import Host

__all__ = ["network", "require_namespaces"]


def require_namespaces() -> None:
    """Skip the test if no network can be made; fail if CQ_REQUIRE_NETNS=1 requires one."""
    reason = "" if os.geteuid() == 0 else "only root may make network namespaces"
    if not shutil.which("ip"):
        reason = "network namespaces need `ip` (iproute2)"
    if reason and os.environ.get("CQ_REQUIRE_NETNS") == "1":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


@contextmanager
def network(names: Sequence[str], number: int = 77) -> Iterator[list[Host]]:
    """Make hosts with routes to each other and this machine, and to nobody else, until the end of the block.

    Args:
        names: The hosts', ten letters at most.
        number: The network's number, to have several networks at the same time.
    """
    subnet, switch = f"10.213.{number}", f"cq{number}-switch"
    with ExitStack() as closing:
        # Once the switch is gone, packets to a host must not leave this machine.
        _made(closing, f"route add blackhole {subnet}.0/24 metric 9999", f"route del blackhole {subnet}.0/24")
        _made(closing, f"link add {switch} type bridge", f"link del {switch}")
        _ip(f"address add {subnet}.1/24 dev {switch}", f"link set {switch} up")
        yield [_host(closing, switch, f"cq{number}-{name}", f"{subnet}.{each}") for each, name in enumerate(names, 2)]


def _host(closing: ExitStack, switch: str, name: str, address: str) -> Host:
    host = Host(address, name, name)
    inside = f"-n {host.namespace}"
    _made(closing, f"netns add {host.namespace}", f"netns del {host.namespace}")
    closing.callback(_kill_all, host)
    _made(closing, f"link add {host.link} type veth peer name eth0 netns {host.namespace}", f"link del {host.link}")
    _ip(
        f"link set {host.link} master {switch} up",
        f"{inside} address add {address}/24 dev eth0",
        f"{inside} link set eth0 up",
        f"{inside} link set lo up",
    )
    return host


def _kill_all(host: Host) -> None:
    """Kill processes that still run there: a namespace lives as long as its processes."""
    found = subprocess.run(["ip", "netns", "pids", host.namespace], check=True, capture_output=True, text=True)
    for pid in map(int, found.stdout.split()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _made(closing: ExitStack, make: str, undo: str) -> None:
    subprocess.run(["ip", *undo.split()], check=False, capture_output=True)  # left over from a killed run
    _ip(make)
    closing.callback(_ip, undo)


def _ip(*commands: str) -> None:
    for command in commands:
        subprocess.run(["ip", *command.split()], check=True)
