"""The tree stays one in which things are found: small rooms, small files, and tests that use what is public."""

from __future__ import annotations

import re
from collections import Counter

from tests.pages import ROOT

_FOLDERS = ("gateway", "grouping", "schemas", "spark_jobs", "tests")
_FILES = sorted(path for folder in _FOLDERS for path in (ROOT / folder).rglob("*.py"))
_MOST_FILES, _MOST_LINES = 20, 350
_PATCHED = re.compile(r"""setattr\(\s*(?:[\w.]+,\s*["']_|["'][\w.]+\._)[a-zA-Z]""")
"""A private name that is set from outside; reading one is seen by the linter."""


def test_no_room_is_too_large() -> None:
    """A room has 20 files at most, besides its mark of a package."""
    rooms = Counter(path.parent for path in _FILES if path.name != "__init__.py")
    large = {str(room.relative_to(ROOT)): count for room, count in rooms.items() if count > _MOST_FILES}
    assert not large, large


def test_no_file_is_too_long() -> None:
    """A file has 350 lines at most."""
    lines = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in _FILES}
    long = {name: count for name, count in lines.items() if count > _MOST_LINES}
    assert not long, long


def test_no_test_sets_a_private_name() -> None:
    """What a test sets otherwise, such as a limit, has a public name."""
    setting = [
        f"{path.relative_to(ROOT)}: {found}" for path in _FILES for found in _PATCHED.findall(path.read_text("utf-8"))
    ]
    assert not setting, setting
