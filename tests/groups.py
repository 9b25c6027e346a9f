"""Which tests go to one of several processes together, so that no server starts more often than needed."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

__all__ = ["CRASHES", "TestGroups", "group_of", "place_of"]

CRASHES = "tests/stack/crash/"
"""Tests that stop or disturb servers."""
_OWN = (
    f"{CRASHES}test_docker.py",
    f"{CRASHES}test_kept_folder.py",
)
"""Tests that start servers of their own."""
_SECOND = (
    "tests/stack/commands/",
    "tests/stack/digests/test_cuts.py",
    "tests/stack/digests/test_last_digests.py",
    "tests/stack/state/",
    CRASHES,
)
"""Of the tests on the shared servers those that go together; the others do. Both halves take about as long.

Much of that is waiting, for ticks and for roles that start anew: a third process has the tests without shared servers.
"""
_ORDER = ("second stack", "first stack", "own servers", "spark")
"""Groups by how long they take, the longest first; pure tests fill up the time that is left."""


def group_of(nodeid: str) -> str:
    """Return the group of a test: a file, or the servers that it shares with other files.

    Example:
        >>> group_of("tests/stack/queries/test_tables.py::test_a"), group_of("tests/unit/test_docs.py::test_b")
        ('first stack', 'tests/unit/test_docs.py')
    """
    place = nodeid.split("::", maxsplit=1)[0]
    if place.startswith("tests/spark/"):
        return "spark"
    if not place.startswith("tests/stack/") or place.startswith(_OWN):
        return place
    return "second stack" if place.startswith(_SECOND) else "first stack"


def place_of(nodeid: str) -> int:
    """Return when a test is handed out among several processes, the lowest first."""
    group = group_of(nodeid)
    kind = "own servers" if group.startswith(_OWN) else group
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)


class TestGroups(LoadScopeScheduling):
    """The scheduler of pytest-xdist that hands out groups.

    The marks of ``--dist loadgroup`` have no effect: that scheduler changes the tests' names, and pytest 9.2 reads them
    elsewhere.
    """

    __test__ = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
