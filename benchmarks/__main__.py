"""``python -m benchmarks [NAME…]``: one table of work, seconds, target, peer and ratio."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time

# they register themselves
from benchmarks import (  # noqa: F401
    acasxu,
    arithmetic,
    distinguish,
    indicators,
    rationals,
    represent,
    safety,
    separation,
    sums,
)
from benchmarks.measure import BENCHMARKS, Row

COLUMNS = ("work", "time", "target", "", "peer", "time", "ratio")
WIDTHS = (52, 10, 10, 4, 32, 10, 9)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures speed, against peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all, or some of {', '.join(BENCHMARKS)}")
    names = parser.parse_args().names or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}: choose from {', '.join(BENCHMARKS)}")
    print(_machine())
    print(_line(COLUMNS))
    start, failed, missed = time.monotonic(), 0, 0
    for name in names:
        try:
            for row in BENCHMARKS[name]():
                print(_show(row), flush=True)
                missed += row.target is not None and row.seconds > row.target
        except Exception as error:
            failed += 1
            print(f"{name} failed: {type(error).__name__}: {error}", flush=True)
    print(f"{time.monotonic() - start:.0f} s; targets missed: {missed}; benchmarks failed: {failed}")
    return 1 if failed else 0


def _machine() -> str:
    from fpsmt.smt import available

    solvers = ", ".join(f"{name} {version}" for name, version in available().items())
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {solvers}"


def _show(row: Row) -> str:
    target = mark = ""
    if row.target is not None:
        target, mark = "≤ " + duration(row.target), "ok" if row.seconds <= row.target else "MISS"
    peer = taken = ratio = ""
    if row.peer is not None:
        peer = row.peer[0]
        if isinstance(row.peer[1], str):
            taken = f"— ({row.peer[1]})"
        else:
            taken = duration(row.peer[1])
            ratio = f"{row.peer[1] / row.seconds:.2g}×"
    return _line((row.work, duration(row.seconds), target, mark, peer, taken, ratio))


def duration(seconds: float) -> str:
    """A time with three digits and a unit.

    >>> duration(12.345), duration(0.0123), duration(2.5e-8)
    ('12.3 s', '12.3 ms', '25 ns')
    """
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _line(cells: tuple[str, ...]) -> str:
    return " ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()


if __name__ == "__main__":
    sys.exit(main())
