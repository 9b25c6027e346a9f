"""Pages with results: `docs/numbers.md`, a table of `README.md`, and the last chaos runs in `docs/faults.md`.

In a row of the template, ``{name}`` stands for the figure of this name in the result of the command in the last cell.
The last cell but one has the goals, ``≥ 0.8`` or ``≤ 3 s``: a goal for each figure of the row, or a goal for all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.benchmarks.result import RESULTS, read_results

__all__ = ["chaos_line", "numbers_page", "readme_table", "write_pages"]

_DOCS = RESULTS.parent / "docs"
_TEMPLATE = Path(__file__).with_name("numbers.md")
_COMMAND = re.compile(r"\| `([^`|]+)` \|$")
_FIGURE = re.compile(r"\{([^{}]+)\}")
_GOAL = re.compile(r"([≥≤]) ([\d.,]+)")
_WHOLE, _TENTHS, _SMALL = 100, 10, 0.1
"""Ratios from these values on are shown without decimals, with one, and with two."""
_CHAOS = ("tests.chaos", "tests.cluster.chaos")

_Results = Mapping[str, Mapping[str, Any]]


def write_pages() -> None:
    """Write `docs/numbers.md`, the table of `README.md` and the line of `docs/faults.md` from the kept results."""
    results = read_results(RESULTS)
    (_DOCS / "numbers.md").write_text(numbers_page(results), "utf-8")
    _replace(_DOCS / "faults.md", "chaos", chaos_line(results))
    _replace(_DOCS.parent / "README.md", "numbers", readme_table(results))


def _replace(page: Path, marker: str, made: str) -> None:
    """Write a text between the two marks of a page."""
    before, mark, rest = page.read_text("utf-8").partition(f"<!-- {marker} -->\n")
    _, end, after = rest.partition(f"\n<!-- /{marker} -->")
    page.write_text(f"{before}{mark}{made}{end}{after}", "utf-8")


def numbers_page(results: _Results) -> str:
    """Return the page of numbers.

    Raises:
        KeyError: If a row of the template names a command without a result, or a figure missing in the result.
    """
    lines = _TEMPLATE.read_text("utf-8").splitlines()
    used = [results[found[1]] for line in lines if (found := _COMMAND.search(line)) and _FIGURE.search(line)]
    filled = [_row(line, results) if line.startswith("|") else line.format_map(_facts(used)) for line in lines]
    return "\n".join(filled) + "\n"


def readme_table(results: _Results) -> str:
    """Return the table of `README.md`; raises as `numbers_page` does."""
    lines = _TEMPLATE.with_name("headline.md").read_text("utf-8").splitlines()
    return "\n".join(_row(line, results) for line in lines)


def chaos_line(results: _Results) -> str:
    """Return a line about the last kept run of each kind of chaos."""
    lines = []
    for command, result in sorted(results.items()):
        if command.split()[0] in _CHAOS:
            counts = ", ".join(f"{value:,.0f} {name}" for name, (value, unit) in result["figures"].items() if not unit)
            times = [f"{name} {value:.1f} s" for name, (value, unit) in result["figures"].items() if unit == "s"]
            lines.append(
                f"`python -m {command}` ({_day(result)}, commit {result['commit']}): {'; '.join([counts, *times])}."
            )
    return " ".join(["**Last runs.**", *lines])


def _row(line: str, results: _Results) -> str:
    command = _COMMAND.search(line)
    if command is None or not _FIGURE.search(line):
        return line
    figures = results[command[1]]["figures"]
    cells = line.split(" | ")
    goals = [goal.strip() for goal in cells[-2].split(";")]
    wanted = iter(goals if len(goals) > 1 else goals * len(_FIGURE.findall(line)))
    return _FIGURE.sub(lambda found: _marked(*figures[found[1]], next(wanted)), line)


def _marked(value: float, unit: str, goal: str) -> str:
    """Return a figure as the page shows it, in bold where it misses its goal."""
    found, shown = _GOAL.search(goal), _shown(value, unit)
    if found is None:
        return shown
    bound = float(found[2].replace(",", ""))
    return shown if (value >= bound if found[1] == "≥" else value <= bound) else f"**{shown}**"


def _shown(value: float, unit: str) -> str:
    if value >= _WHOLE or value == int(value) and unit:
        return f"{value:,.0f}"
    if value >= _TENTHS or unit:
        return f"{value:.3g}"
    return f"{value:.2f}" if value >= _SMALL else f"{value:.1g}"


def _day(result: Mapping[str, Any]) -> str:
    return str(result["at"])[:10]


def _facts(used: list[Mapping[str, Any]]) -> dict[str, str]:
    """Return the facts for the head of the page: the days of the measurements, and the versions."""
    days = sorted(map(_day, used))
    facts = {"days": days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"}
    for name in used[0]["machine"]:
        facts[name] = " and ".join(sorted({str(result["machine"][name]) for result in used}))
    return facts
