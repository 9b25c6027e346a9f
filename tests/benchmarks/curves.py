"""Curves as a PNG, several panels side by side; nothing where matplotlib (the extra ``bench``) is not installed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Curve", "Panel", "draw"]

_ACROSS = 4


@dataclass(frozen=True, slots=True)
class Curve:
    """A measure at several places."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves over the same axes."""

    title: str
    axis: str
    curves: Sequence[Curve]
    unit: str


def draw(panels: Sequence[Panel], path: Path) -> None:
    """Draw the panels, the vertical axis logarithmic."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError:
        return
    mpl.use("agg")
    from matplotlib import pyplot

    down = -(-len(panels) // _ACROSS)
    figure, grid = pyplot.subplots(down, _ACROSS, figsize=(3.6 * _ACROSS, 2.9 * down), squeeze=False)
    for panel, axes in zip(panels, grid.flat, strict=False):
        for curve in panel.curves:
            axes.plot(curve.xs, curve.ys, marker="o", markersize=3, label=curve.name)
        axes.set_yscale("log")
        axes.set_title(panel.title, fontsize=8)
        axes.set_xlabel(panel.axis, fontsize=8)
        axes.set_ylabel(panel.unit, fontsize=8)
        axes.tick_params(labelsize=7)
        axes.legend(fontsize=7)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    pyplot.close(figure)
