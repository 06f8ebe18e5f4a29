"""``fpsmt approximate --law``: a table of sizes and errors, and a plot."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpsmt.commands.common import PROVED, UNKNOWN, Saver, short_hash, time_limit
from fpsmt.errors import UsageError

if TYPE_CHECKING:
    from fpsmt.engines.size_law import Size

HEAD = ["error", "parameters", "steps", "depth", "log10 degree", "proved", "polynomial", "ReLU units"]


def size_law(name: str, size: Fraction, timeout: float, plot: str | None, saver: Saver) -> int:
    """Prints the table; exit code 3 when a row is not proved in time."""
    from fpsmt.display.progress import Progress
    from fpsmt.display.tables import text_table
    from fpsmt.engines import Options
    from fpsmt.engines.size_law import exponent, sizes
    from fpsmt.kernel import verdict_to_json
    from fpsmt.rational import number_text
    from fpsmt.rational.activations import NETWORKS

    if name not in NETWORKS:
        raise UsageError(f"no construction for {name!r}: there is one for {', '.join(NETWORKS)}")
    start = time.monotonic()
    with time_limit(2 * timeout + 60), Progress(f"sizes for {name}") as progress:
        rows = sizes(name, size, options=Options(timeout=timeout, progress=progress.update))
    slope, proved = exponent(rows), sum(row.proof is not None for row in rows)
    result: dict[str, Any] = {
        "exponent": slope.hex(),
        "rows": [
            {"error": f"1e-{row.digits}", "parameters": row.parameters, "steps": row.steps, "depth": row.depth,
             "degree": str(row.degree), "polynomial": row.polynomial, "relu_units": row.relu,
             "proved": row.proof is not None}
            for row in rows
        ],
    }  # fmt: skip
    last = next((row.proof for row in reversed(rows) if row.proof is not None), None)
    claim = {"text": f"sizes of rational networks for {name} on ±{number_text(size)}", "hash": short_hash(name)}
    base = {"claim": claim, "verdict": "unknown", "evidence": None} if last is None else verdict_to_json(last)
    data = {"command": "approximate", **base, "result": result, "seconds": round(time.monotonic() - start, 4)}
    saver.report(data)
    lines = text_table(HEAD, [_cells(row) for row in rows])
    saver.printer(
        f"approximate law exponent {slope:.2f} points {len(rows)} proved {proved}",
        f"parameters of rational networks for {name} on ±{number_text(size)} grow as log(log(1/error))^{slope:.2f}",
        *lines,
        "polynomial: about the least degree; ReLU units: fewer are not enough, whatever the depth",
    )
    saver.save(short_hash(f"law {name} {size}"), data)
    if plot is not None:
        _draw(name, rows, Path(plot))
    return PROVED if proved == len(rows) else UNKNOWN


def _cells(row: Size) -> list[str]:
    polynomial = "-" if row.polynomial is None else str(row.polynomial)
    degree = f"{len(str(row.degree)) - 1 if row.degree > 10**15 else math.log10(max(row.degree, 1)):.3g}"
    proved = "-" if row.proof is None else "yes"
    shape = [str(n) for n in (row.parameters, row.steps, row.depth)]
    return [f"1e-{row.digits}", *shape, degree, proved, polynomial, str(row.relu) if row.relu else "-"]


def _draw(name: str, rows: list[Size], path: Path) -> None:
    from fpsmt.display.figures import new_figure, write_figure

    figure = new_figure(6.5, 4)
    axes = figure.add_subplot()
    x = [row.digits for row in rows]
    axes.loglog(x, [row.parameters for row in rows], "o-", label="rational network, parameters")
    known = [(row.digits, row.polynomial) for row in rows if row.polynomial]
    if known:
        axes.loglog(*zip(*known), "s--", label="polynomial, degree (about)")
    bent = [(row.digits, row.relu) for row in rows if row.relu]
    if bent:
        axes.loglog(*zip(*bent), "^:", label="ReLU network, at least so many units")
    done = [row for row in rows if row.proof is not None]
    axes.loglog([r.digits for r in done], [r.parameters for r in done], "ko", fillstyle="none", ms=11, label="proved")
    axes.set_xlabel("correct digits")
    axes.set_ylabel("size")
    axes.set_title(f"{name}: size and error")
    axes.legend()
    write_figure(figure, path)
