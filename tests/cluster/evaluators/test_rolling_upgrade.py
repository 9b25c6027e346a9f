"""Both roles are replaced while they work, as in a rolling upgrade: an oracle gives the expected results."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.chaos.faults import Ground
from tests.chaos.rounds import Chaos
from tests.cluster.evaluators.site import Role, Site, site
from tests.ground import goal_seconds

_SETTINGS = {
    "CQ_STANDBY": "true",
    "CQ_RESULTS_DEDICATED_LIMIT": "100",
    "CQ_RESULTS_LINGER_SECONDS": "8",
    "CQ_COMMANDS_REMEMBER_DAYS": "1",
}
_GOAL_SECONDS = {"gateway": 5.0, "evaluator": 15.0}
"""From the moment in which a role is told to stop until its successor works, in addition to the time of its start."""


class _Upgrade:
    """The roles of a site; each can be replaced by a successor started beside it."""

    def __init__(self, running: Site, folder: Path) -> None:
        self.data = folder
        self.bootstrap = running.bootstrap
        self.redis_url = running.ground.settings.redis.url.get_secret_value()
        self.seconds: dict[str, float] = {}
        """By role, how long nobody was active."""
        self.start_seconds: dict[str, float] = {}
        """By role, how long its successor took until it stood by."""
        self._site = running
        self._roles = {"gateway": running.gateway, "evaluator": running.evaluator("evaluator-1")}
        self._ended: list[psutil.Process] = []

    def of_gateway(self, _: Ground) -> None:
        """Replace the gateway."""
        self._replace("gateway", self._site.another_gateway("gateway-2"))

    def of_evaluator(self, _: Ground) -> None:
        """Replace the evaluator."""
        self._replace("evaluator", self._site.evaluator("evaluator-2"))

    def _replace(self, role: str, successor: Role) -> None:
        began = time.monotonic()
        successor.wait_for("standby")
        self.start_seconds[role] = time.monotonic() - began
        before = self._roles[role]
        self._ended += before.family()
        asked_at = time.monotonic()
        before.stop()
        successor.wait_for("ready")
        self.seconds[role] = time.monotonic() - asked_at
        self._roles[role] = successor

    def await_ready(self) -> None:
        """Return when both roles work."""
        for role in self._roles.values():
            role.wait_for("ready")

    def strays(self) -> list[psutil.Process]:
        """Return remaining processes of replaced roles."""
        return [process for process in self._ended if process.is_running()]


@pytest.fixture
def upgrade(tmp_path: Path) -> Iterator[_Upgrade]:
    """Servers with both roles, whose checkpoints lie where each evaluator reaches them."""
    with site(tmp_path, CQ_EVALUATOR_CHECKPOINTS=(tmp_path / "checkpoints").as_uri(), **_SETTINGS) as running:
        upgrade = _Upgrade(running, tmp_path)
        upgrade.await_ready()
        yield upgrade


@pytest.mark.timeout(1800)  # a busy machine takes minutes for Spark's two starts
def test_roles_are_replaced_without_a_loss(upgrade: _Upgrade) -> None:
    """The evaluator, then the gateway, amid events, commands, ticks and readers: 0 lost, 0 doubled, a reply each.

    Each successor stands by when its predecessor is told to stop; nothing is left of the predecessor.
    """
    faults = {"replace-evaluator": upgrade.of_evaluator, "replace-gateway": upgrade.of_gateway}
    chaos = Chaos(upgrade, 16, print, faults, pause=0.4)
    chaos.round([*faults])
    assert chaos.tally.results > 100, chaos.tally.line()
    chaos.finish()
    for role, goal in _GOAL_SECONDS.items():
        assert upgrade.seconds[role] < goal_seconds(goal) + upgrade.start_seconds[role], role
