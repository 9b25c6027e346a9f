"""The page of faults names existing tests."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs" / "faults.md"
_NAMED = re.compile(r"`((?:tests/unit/)?test_\w+\.py)(?:::(\w+))?`")


def test_every_named_test_is_there() -> None:
    """Each row of the page names a test file, and perhaps a test in the file; both exist."""
    named = _NAMED.findall(_PAGE.read_text())
    assert len(named) > 40
    for file, test in named:
        places, name = (("unit",), file.removeprefix("tests/unit/")) if "/" in file else (("stack", "cluster"), file)
        [path] = (path for place in places for path in (_ROOT / "tests" / place).rglob(name))
        assert not test or f"def {test}(" in path.read_text(), f"{file} has no {test}"
