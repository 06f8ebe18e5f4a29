"""The largest error in each binade of the inputs: as text, and as a picture where matplotlib is installed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from fpsmt.display.figures import new_figure, write_figure
from fpsmt.floats import Format, nearest, pow2

ROWS = 16
WIDTH = 40


def binade_low(fmt: Format, key: int) -> Fraction:
    """The value nearest to zero of a binade; its key is the exponent field, −1 − field below zero."""
    field = key if key >= 0 else -key - 1
    size = pow2(field - fmt.bias) if field else fmt.smallest
    return size if key >= 0 else -size


def error_lines(fmt: Format, binades: Mapping[int, Sequence[float]]) -> list[str]:
    """A bar for each group of binades, ascending; lengths are logarithmic, from half an ulp.

    >>> from fpsmt.floats import float16
    >>> print("\\n".join(error_lines(float16, {15: [0.5, 0.0, 8.0], 16: [2.0, 0.0, 8.0]})))
      from x = 1.0  0.5 ulps
      from x = 2.0  2 ulps    ########################################
    """
    keys = sorted(binades)
    if not keys:
        return []
    per = -(-len(keys) // ROWS)
    groups = [keys[i : i + per] for i in range(0, len(keys), per)]
    worst = [max(binades[k][0] for k in group) for group in groups]
    top = max(_height(w) for w in worst)
    starts = [f"from x = {nearest(fmt, binade_low(fmt, g[0])).decimal}" for g in groups]
    numbers = [f"{w:.4g} ulps" if w >= 0.001 else "<0.001 ulps" for w in worst]
    widths = max(map(len, starts)), max(map(len, numbers))
    bars = ["#" * round(WIDTH * _height(w) / top) if top else "" for w in worst]
    return [f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {bar}".rstrip() for a, b, bar in zip(starts, numbers, bars)]


def _height(ulps: float) -> float:
    return math.log2(max(ulps, 0.5)) + 1 if math.isfinite(ulps) else 64.0


def save_plot(path: Path, title: str, fmt: Format, binades: Mapping[int, Sequence[float]]) -> None:
    """A picture (SVG, PNG, by the ending) of the largest error in ulps over the line of inputs."""
    keys = sorted(binades)
    figure = new_figure(9, 4)
    axes = figure.subplots()
    axes.step(range(len(keys)), [binades[k][0] for k in keys], where="mid")
    axes.set_yscale("log")
    ticks = list(range(0, len(keys), max(1, len(keys) // 8)))
    axes.set_xticks(ticks, [nearest(fmt, binade_low(fmt, keys[t])).decimal for t in ticks], rotation=30)
    axes.set_xlabel("input (by binade)")
    axes.set_ylabel("largest error in ulps")
    axes.set_title(title)
    write_figure(figure, path)
