"""A plot of counts by binade, where matplotlib is installed."""

from __future__ import annotations

from collections.abc import Mapping

from fpsmt.errors import Unsupported, UsageError


def draw(counts: Mapping[tuple[int, int], int], title: str, path: str) -> None:
    """Writes an SVG with one bar for each binade (sign, exponent), negative ones on the left."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise Unsupported("a plot needs matplotlib: pip install 'fpsmt[plot]', or leave --plot out") from None
    figure = Figure(figsize=(9, 3.5))
    axes = figure.subplots(1, 2, sharey=True)
    for side, at in ((-1, axes[0]), (1, axes[1])):
        points = sorted((e, n) for (sign, e), n in counts.items() if sign == side)
        at.bar([e for e, _ in points], [n for _, n in points], width=0.9)
        at.set_xlabel(f"exponent of {'negative' if side < 0 else 'positive'} inputs")
    axes[0].invert_xaxis()
    axes[0].set_ylabel("count")
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    try:
        figure.savefig(path, format="svg")
    except OSError as error:
        raise UsageError(f"--plot {path} cannot be written: {error.strerror or error}") from None
