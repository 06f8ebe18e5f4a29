"""The adversary of separation points: may an implementation avoid them on a run?  Decided exactly on arrays of
allowed sets.

The adversary wins on x₀, …, xₙ exactly when for some k it can answer c at x₀, …, x_k, x_{k+2}, x_{k+4}, … and d at
x_{k+1}, x_{k+3}, … (see `fpsmt.claims.separation`): when the sets A₀ ∩ … ∩ A_k ∩ A_{k+2} ∩ A_{k+4} ∩ … and A_{k+1} ∩
A_{k+3} ∩ … are not empty.  All of them are intervals, whose intersections are maxima of lower and minima of upper
ends: one pass forwards, one backwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fpsmt.claims.places import Places, allowed_place_arrays
from fpsmt.claims.separation import Pattern, Run
from fpsmt.errors import Unsupported
from fpsmt.floats.machine import jit
from fpsmt.floats.vector import from_ordinals

LONGEST = 1 << 32  #: floats of a run that are counted
MOST_HELD = 1 << 24  #: floats of a run whose allowed sets are held together
CHUNK = 1 << 18


def allowed_on(run: Run, low: int, high: int) -> tuple[Places, Places]:
    """Allowed places at the places low…high."""
    x = from_ordinals(run.context.format, np.arange(low, high + 1))
    return allowed_place_arrays(run.implementation, run.context, x)


def allowed(run: Run) -> tuple[Places, Places]:
    """Allowed places on the whole run."""
    if len(run) > MOST_HELD:
        raise Unsupported(f"a run of {len(run)} floats is longer than {MOST_HELD}: take a shorter one")
    low, high = run.low.ordinal, run.high.ordinal
    parts = [allowed_on(run, a, min(a + CHUNK - 1, high)) for a in range(low, high + 1, CHUNK)]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def points(run: Run) -> Iterator[tuple[int, int, Places]]:
    """(first place, last place, separation points of every implementation between them), part by part."""
    if len(run) > LONGEST:
        raise Unsupported(f"a run of {len(run)} floats is longer than {LONGEST}: take a shorter one")
    for a in range(run.low.ordinal + 1, run.high.ordinal, CHUNK):
        b = min(a + CHUNK, run.high.ordinal) - 1
        low, high = allowed_on(run, a - 1, b + 1)
        apart = [
            np.maximum(low[:-2], low[1 + s : len(low) - 1 + s]) > np.minimum(high[:-2], high[1 + s : len(low) - 1 + s])
            for s in (0, 1)
        ]
        yield a, b, a + np.flatnonzero(apart[0] & apart[1])


def ranges(places: Places) -> tuple[tuple[int, int], ...]:
    """Ascending places as ranges [first, last]."""
    if not len(places):
        return ()
    cuts = np.flatnonzero(np.diff(places) > 1)
    firsts = np.concatenate([places[:1], places[cuts + 1]])
    lasts = np.concatenate([places[cuts], places[-1:]])
    return tuple((int(a), int(b)) for a, b in zip(firsts, lasts))


@jit
def escape(low: Any, high: Any, a: int, b: int, scratch: Any) -> int:
    """The least k with which the adversary wins on a…b, or −1.  scratch: of shape (2, at least b − a + 3)."""
    n = b - a + 1
    least, most = -(1 << 63) + 1, (1 << 63) - 1
    for i in (n, n + 1):
        scratch[0, i], scratch[1, i] = least, most
    start = 0  # from here on both alternating sets are not empty
    for i in range(n - 1, -1, -1):
        scratch[0, i] = max(low[a + i], scratch[0, i + 2])
        scratch[1, i] = min(high[a + i], scratch[1, i + 2])
        if scratch[0, i] > scratch[1, i]:
            start = i
            break
    first_low, first_high = least, most
    for k in range(n):
        first_low, first_high = max(first_low, low[a + k]), min(first_high, high[a + k])
        if first_low > first_high:
            return -1
        if k >= start and max(first_low, scratch[0, k + 2]) <= min(first_high, scratch[1, k + 2]):
            return k
    return -1


def pattern(first: int, low: Places, high: Places) -> Pattern | None:
    """An implementation without a separation point on consecutive floats from the place `first` on, with these allowed
    places; None where there is none."""
    n = len(low)
    scratch = np.zeros((2, n + 2), np.int64)
    k = int(escape(low, high, 0, n - 1, scratch))
    if k < 0:
        return None
    head = max(int(low[: k + 1].max()), int(scratch[0, k + 2]) if k + 2 < n else int(low[k]))
    return Pattern(first + k, head, int(low[k + 1 :: 2].max()) if k + 1 < n else head)


@jit
def _windows(low: Any, high: Any, scratch: Any, found: Any) -> int:
    """Writes the least windows [a, b] in which the adversary loses to `found`; how many there are."""
    n, count, a, b = low.size, 0, 0, 1
    while a + 2 < n:
        # the first b with which the adversary loses from a on, by doubling and bisection; on [a, won] it does not
        won = max(b, a + 1)
        lost, step = won + 1, 1
        while True:
            lost = min(lost, n - 1)
            if escape(low, high, a, lost, scratch) < 0:
                break
            if lost == n - 1:
                return count
            won = lost
            lost, step = lost + step, 2 * step
        while lost - won > 1:
            middle = (lost + won) // 2
            if escape(low, high, a, middle, scratch) >= 0:
                won = middle
            else:
                lost = middle
        b = lost
        # the last start with which it still loses
        good, bad, step = a, b - 1, 1
        while good + step < bad and escape(low, high, good + step, b, scratch) < 0:
            good += step
            step *= 2
        bad = min(bad, good + step)
        while bad - good > 1:
            middle = (good + bad) // 2
            if escape(low, high, middle, b, scratch) < 0:
                good = middle
            else:
                bad = middle
        found[count, 0], found[count, 1] = good, b
        count += 1
        a = good + 1
    return count


def least_windows(low: Places, high: Places) -> Places:
    """All minimal windows [a, b] (indices) in which every implementation has a separation point, ascending."""
    n = len(low)
    found = np.zeros((max(n, 1), 2), np.int64)
    count = int(_windows(low, high, np.zeros((2, n + 2), np.int64), found)) if n > 2 else 0
    return found[:count]
