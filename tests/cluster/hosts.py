"""Hosts for a test's servers: this machine's loopback, or a host of a network made by the test."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from gateway.local.program import LOOPBACK

__all__ = ["LOCAL", "Host"]


@dataclass(frozen=True, slots=True)
class Host:
    """A place with an address."""

    address: str
    namespace: str = ""
    """The network namespace of the host, empty for this machine."""
    link: str = ""
    """The end of its link that lies at the switch."""

    def command(self, *command: str) -> list[str]:
        """Return a command as it is run there."""
        return [*(("ip", "netns", "exec", self.namespace) if self.namespace else ()), *command]

    def cut(self) -> None:
        """Take the host's link away: its peers hear nothing any more, not even a closed connection."""
        self._set("down")

    def mend(self) -> None:
        """Give it its link back."""
        self._set("up")

    def _set(self, state: str) -> None:
        subprocess.run(["ip", "link", "set", self.link, state], check=True)


LOCAL = Host(LOOPBACK)
