"""The error curve of an approximation, between the bounds that are certified."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from fpsmt.errors import UsageError

if TYPE_CHECKING:
    from fpsmt.rational import SupNormBounds

POINTS = 400


def draw_error(name: str, bounds: SupNormBounds, path: Path) -> None:
    """f − r, or (f − r)/f, in balls at many points; the two lines are the proved bound."""
    from fpsmt.display.figures import new_figure, write_figure

    problem = bounds.problem
    if bounds.high is None or bounds.high > sys.float_info.max:
        raise UsageError("there is no certified band to draw")
    bits = 64 + max(0, -Fraction(bounds.high).numerator.bit_length() + Fraction(bounds.high).denominator.bit_length())
    figure = new_figure(6.5, 4)
    axes = figure.add_subplot()
    for low, high in problem.domain:
        x = [low + (high - low) * k / POINTS for k in range(POINTS + 1)]
        pairs = [(problem.target.ball(t, bits), problem.approximation.ball(t, bits)) for t in x]
        errors = [(f - g) / f if problem.relative else f - g for f, g in pairs]
        known = [(float(t), float(e.mid())) for t, e in zip(x, errors, strict=True) if e.is_finite()]
        axes.plot(*zip(*known, strict=True), lw=1)
    for side in (-1, 1):
        axes.axhline(side * float(bounds.high), color="k", ls="--", lw=0.8)
    axes.set_xlabel("x")
    axes.set_title(f"{'relative ' * problem.relative}error of the approximation of {name}, and its certified band")
    write_figure(figure, path)
