"""The assignment of tests to processes, so no server starts more often than needed."""

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
_THIRD = (
    "tests/stack/harmed/",
    "tests/stack/lanes/test_lane.py",
    "tests/stack/queries/test_exactness.py",
    "tests/stack/queries/test_fan_out.py",
    "tests/stack/queries/test_joins.py",
    "tests/stack/queries/test_metrics.py",
    "tests/stack/queries/test_scenarios.py",
    "tests/stack/queries/test_table_log.py",
    "tests/stack/queries/test_tables.py",
    "tests/stack/state/test_large_records.py",
    "tests/stack/state/test_recovery.py",
    "tests/stack/state/test_rivals.py",
    "tests/stack/state/test_segments.py",
    "tests/stack/state/test_standby.py",
    f"{CRASHES}test_crash_big_ticks.py",
    f"{CRASHES}test_crash_groups.py",
    f"{CRASHES}test_crash_timers.py",
    f"{CRASHES}test_up.py",
)
_SECOND = (
    "tests/stack/commands/",
    "tests/stack/digests/test_cuts.py",
    "tests/stack/digests/test_last_digests.py",
    "tests/stack/state/",
    CRASHES,
)
"""The tests on shared servers make three groups that take about as long, each on servers of its own: these two, and
the rest. Servers wait most of the time, for ticks and for roles that start anew."""
_PURE = "pure"
_ORDER = ("second stack", "first stack", "third stack", "own servers", "spark", _PURE)
"""Groups in the order in which they are handed out; each pure file is a group of its own."""


def group_of(nodeid: str) -> str:
    """Return the group of a test: a file, or the servers shared with other files.

    Example:
        >>> group_of("tests/stack/queries/test_nested.py::test_a"), group_of("tests/unit/test_docs.py::test_b")
        ('first stack', 'tests/unit/test_docs.py')
    """
    place = nodeid.split("::", maxsplit=1)[0]
    if place.startswith("tests/spark/"):
        return "spark"
    if not place.startswith("tests/stack/") or place.startswith(_OWN):
        return place
    if place.startswith(_THIRD):
        return "third stack"
    return "second stack" if place.startswith(_SECOND) else "first stack"


def place_of(nodeid: str) -> int:
    """Return when a test is handed out among several processes, the lowest first.

    Example:
        >>> place_of("tests/stack/queries/test_joins.py::test_c") < place_of("tests/unit/test_docs.py::test_b")
        True
    """
    group = group_of(nodeid)
    kind = "own servers" if group.startswith(_OWN) else group
    return _ORDER.index(kind if kind in _ORDER else _PURE)


class TestGroups(LoadScopeScheduling):
    """The scheduler of pytest-xdist that hands out groups.

    The marks of ``--dist loadgroup`` have no effect: that scheduler changes the tests' names, and pytest 9.2 reads them
    elsewhere.
    """

    __test__ = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
