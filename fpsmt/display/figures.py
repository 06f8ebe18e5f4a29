"""Pictures by matplotlib, where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fpsmt.errors import Unsupported, UsageError


def new_figure(width: float, height: float) -> Any:
    """A figure of this size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise Unsupported("a plot needs matplotlib: pip install 'fpsmt[plot]', or leave --plot out") from None
    return Figure(figsize=(width, height))


def write_figure(figure: Any, path: Path) -> None:
    """Writes SVG, PNG, … by the ending."""
    figure.tight_layout()
    try:
        figure.savefig(path)
    except OSError as error:
        raise UsageError(f"--plot {path} cannot be written: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"--plot {path} cannot be written: {error}") from None
