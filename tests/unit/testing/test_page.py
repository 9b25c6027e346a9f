"""The page about testing queries: its programs run and print the output shown below them."""

from __future__ import annotations

import pytest

from tests.pages import blocks


def test_programs_print_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Each program of the page, in order, runs and prints the output shown below it."""
    printed = ""
    for block in blocks("testing.md"):
        if block.language == "python":
            program = compile(block.text, str(block), "exec", dont_inherit=True)
            exec(program, {"__name__": "__main__"})  # noqa: S102
            printed = capsys.readouterr().out
        elif block.title == "output":
            assert block.text == printed, str(block)
