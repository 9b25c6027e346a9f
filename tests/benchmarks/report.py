"""The findings of a benchmark: printed as a table, kept as a result, drawn as bars."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.result import write_result

__all__ = ["Figure", "Report"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure, and its target."""

    name: str
    value: float
    unit: str = ""
    target: str = ""


@dataclass(slots=True)
class Report:
    """The figures of one benchmark."""

    command: str
    """The name of the benchmark, and all options without their default."""
    figures: list[Figure] = field(default_factory=list)

    def add(self, name: str, value: float, unit: str = "", target: str = "") -> None:
        """Add a figure."""
        self.figures.append(Figure(name, value, unit, target))

    def write(self, folder: Path) -> None:
        """Print the figures, and keep them in the folder."""
        print(f"\n{self.command}")
        width = max(len(figure.name) for figure in self.figures)
        for figure in self.figures:
            target = f"   (target {figure.target})" if figure.target else ""
            print(f"  {figure.name:<{width}}  {figure.value:>12,.3f} {figure.unit}{target}")
        name = re.sub(r"\W+", "-", self.command)
        write_result(
            folder / f"{name}.json", self.command, {figure.name: (figure.value, figure.unit) for figure in self.figures}
        )

    def bars(self, folder: Path, unit: str) -> None:
        """Draw the figures of one unit as a PNG; nothing where matplotlib (the extra ``bench``) is not installed."""
        try:
            import matplotlib as mpl
        except ModuleNotFoundError:
            return
        mpl.use("agg")
        from matplotlib import pyplot

        chosen: Sequence[Figure] = [figure for figure in self.figures if figure.unit == unit]
        figure, axes = pyplot.subplots(figsize=(8, 0.5 * len(chosen) + 1))
        axes.barh([each.name for each in chosen], [each.value for each in chosen])
        axes.invert_yaxis()
        axes.set_xlabel(unit)
        figure.tight_layout()
        figure.savefig(folder / f"{self.command.split()[0]}.png", dpi=120)
        pyplot.close(figure)
