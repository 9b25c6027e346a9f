"""The pages of figures are what the generator makes of the kept results."""

from __future__ import annotations

import re

from tests.benchmarks.__main__ import argument_parser, command_of
from tests.benchmarks.numbers import chaos_line, numbers_page, readme_table
from tests.benchmarks.result import RESULTS, read_results
from tests.pages import ROOT, page


def test_the_numbers_are_those_of_the_results() -> None:
    """`docs/numbers.md`, of at most 80 lines, and `README.md` are what ``tests.benchmarks numbers`` writes."""
    made = numbers_page(read_results(RESULTS))
    assert made == page("numbers.md")
    assert len(made.splitlines()) <= 80
    table = (ROOT / "README.md").read_text("utf-8").partition("<!-- numbers -->\n")[2].partition("\n<!-- /")[0]
    assert readme_table(read_results(RESULTS)) == table


def test_the_last_chaos_runs_are_those_of_the_results() -> None:
    """The line of the last chaos runs in `docs/faults.md` is made from their results."""
    shown = page("faults.md").partition("<!-- chaos -->\n")[2].partition("\n<!-- /chaos -->")[0]
    assert chaos_line(read_results(RESULTS)) == shown
    assert shown.count("0 lost, 0 doubled") == 2


def test_commands_are_written_as_benchmarks_write_them() -> None:
    """A new run of a command on the page overwrites the result that the page shows."""
    commands = set(re.findall(r"\| `([^`|]+)` \|$", page("numbers.md"), re.MULTILINE))
    assert len(commands) > 20
    for command in commands:
        options = argument_parser().parse_args(command.split())
        assert command_of(options.names[0], options) == command


def test_a_missed_goal_is_in_bold() -> None:
    """A figure beyond its goal stands in bold, a figure within it does not."""
    results = read_results(RESULTS)
    for seconds, shown in ((2.9, " / 2.9;"), (3.1, " / **3.1**;")):
        results["recovery --times 3"]["figures"]["gateway killed: answers again, at most"] = [seconds, "s"]
        assert shown in numbers_page(results)
