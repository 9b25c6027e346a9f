"""The findings of a benchmark: printed as a table, kept as JSON, drawn as bars."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

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

    benchmark: str
    figures: list[Figure] = field(default_factory=list)

    def add(self, name: str, value: float, unit: str = "", target: str = "") -> None:
        """Add a figure."""
        self.figures.append(Figure(name, value, unit, target))

    def write(self, folder: Path, options: dict[str, object]) -> None:
        """Print the figures, and keep them in the folder with the facts of their measurement."""
        print(f"\n{self.benchmark}")
        width = max(len(figure.name) for figure in self.figures)
        for figure in self.figures:
            target = f"   (target {figure.target})" if figure.target else ""
            print(f"  {figure.name:<{width}}  {figure.value:>12,.3f} {figure.unit}{target}")
        folder.mkdir(parents=True, exist_ok=True)
        body = {
            "benchmark": self.benchmark,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": _commit(),
            "machine": {"cores": os.cpu_count(), "load": os.getloadavg()[0], "python": platform.python_version()},
            "options": {name: str(value) for name, value in options.items()},
            "figures": [asdict(figure) for figure in self.figures],
        }
        (folder / f"{self.benchmark}.json").write_text(json.dumps(body, indent=2) + "\n")

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
        figure.savefig(folder / f"{self.benchmark}.png", dpi=120)
        pyplot.close(figure)


def _commit() -> str:
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return asked.stdout.strip()
