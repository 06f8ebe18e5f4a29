"""A plot of counts by binade, where matplotlib is installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fpsmt.display.figures import new_figure, write_figure


def draw(counts: Mapping[tuple[int, int], int], title: str, path: str) -> None:
    """Writes an SVG with one bar for each binade (sign, exponent), negative ones on the left."""
    figure = new_figure(9, 3.5)
    axes = figure.subplots(1, 2, sharey=True)
    for side, at in ((-1, axes[0]), (1, axes[1])):
        points = sorted((e, n) for (sign, e), n in counts.items() if sign == side)
        at.bar([e for e, _ in points], [n for _, n in points], width=0.9)
        at.set_xlabel(f"exponent of {'negative' if side < 0 else 'positive'} inputs")
    axes[0].invert_xaxis()
    axes[0].set_ylabel("count")
    figure.suptitle(title, fontsize=9)
    write_figure(figure, Path(path))
