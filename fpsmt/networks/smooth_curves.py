"""Lines below and above any function with a derivative on the reals, from certified values and slopes on a grid.

**On a grid.**  Let f have derivative in [d, D] between p and q = p + h (one-sided limits at kinks included), and let c
be the chord through (p, f(p)) and (q, f(q)), of slope m.  e = f − c is 0 at both ends with slopes in [d − m, D − m], so
for t = z − p it is at least max(−(m − d)t, −(D − m)(h − t)), whose least value −(m − d)(D − m)h/(D − d) is at least
−(D − d)h/4; likewise e ≤ (D − d)h/4.  With the same for every interval between points p₀ < … < pₙ, f(z) − a·z on
[p₀, pₙ] is at least the least f(pⱼ) − a·pⱼ less the largest (D − d)h/4: a chord less a·z is least at an end of it.

**Points.**  Those of the grid, of which every 2^L-th is taken so that few are, and the two ends of [low, high].  At an
end inside an interval of the grid f is the chord there up to (D − d)h/4.  The slopes a are those of lines through two
of the points: any slope is right, and the one is taken whose line is best in the middle.

**Results.**  |I(z) − f(z)| ≤ r·|f(z)| + e by the contract: u and η of a rounding when it is correct; within K ulps
2^(1−p)·K and K·ω, or those if they are more; within n floats of the rounded value, where n·2^(1−p) ≤ 1/8: u +
(n + 1)·2^(2−p) and (n + 1)·ω, because the gap next to a float y is at most 2^(1−p)|y| or ω, and no value met is above
1.5 |f| + ω; an absolute error, as it is.  A clamp to bounds that are values of the format and hold for f only brings I
nearer.

**Arithmetic.**  In float64 each line costs fewer than 32 roundings of numbers of at most S = |a|·max|z| + max|f| + …;
2^−44·S is taken off, which also pays for slopes a(1 + θ) with |θ| ≤ 2^−53.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Mode, Overflow, Subnormals, float32, pow2, round_real
from fpsmt.floats.machine import jit
from fpsmt.functions import (
    Clamped,
    Contract,
    CorrectlyRounded,
    Function,
    WithinError,
    WithinFloats,
    WithinUlps,
    enclose,
)
from fpsmt.functions.arrays import float64_bounds
from fpsmt.networks.curves import Lines
from fpsmt.networks.growth import float_up

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

FINE = 7  #: the grid has steps of 2^−FINE …
NEAR = 8  #: … up to here,
FARTHER = 16  #: then this many in each doubling,
FAR = 16  #: for this many doublings, or as far as f is known
POINTS = 12  #: taken of the grid, about


class Grid(NamedTuple):
    """Points, bounds of f there, and, for every level L from `start[L]` on, bounds of the slope between every 2^L-th
    points."""

    points: Array
    low: Array
    high: Array
    start: Indices
    least: Array
    most: Array


@lru_cache(maxsize=64)
def grid_of(function: Function) -> Grid:
    """`Unsupported` for functions that are not continuous on the reals, or have no derivative with a few turning
    points."""
    if function.lowest is not None or function.jumps or function.derivative_name is None:
        raise Unsupported(f"linear bounds need a function with a derivative everywhere, not {function.name}")
    slope = function.derivative
    if slope.period_phase is not None:
        raise Unsupported(f"linear bounds do not know {function.name}, whose slope turns without end")
    inner = np.arange(NEAR << FINE) / 2.0**FINE
    outer = (NEAR * 2.0 ** np.arange(FAR)[:, None] * (1 + np.arange(FARTHER) / FARTHER)).reshape(-1)
    right = np.concatenate([inner, outer])
    points = np.concatenate([-right[:0:-1], right])
    low, high = _at(function, points)
    ends = _at(slope, points)
    # the derivative is monotone between its turning points
    least, most = np.minimum(ends[0][:-1], ends[0][1:]), np.maximum(ends[1][:-1], ends[1][1:])
    for turn in slope.turning:
        meets = (points[:-1] <= float_up(turn.high)) & (points[1:] >= -float_up(-turn.low))
        for k in np.flatnonzero(meets):
            least[k], most[k] = _floats(*enclose(slope, Fraction(points[k]), Fraction(points[k + 1])))
    known = np.isfinite(low) & np.isfinite(high)
    zero = len(inner) + len(outer) - 1
    first = zero - int(known[: zero + 1][::-1].argmin() or zero + 1) + 1
    last = zero + int(known[zero:].argmin() or len(known) - zero)
    points, low, high = points[first:last], low[first:last], high[first:last]
    levels = [(least[first : last - 1], most[first : last - 1])]
    while len(levels[-1][0]) > 1:
        pairs = np.arange(0, len(levels[-1][0]), 2)
        levels.append((np.minimum.reduceat(levels[-1][0], pairs), np.maximum.reduceat(levels[-1][1], pairs)))
    start = np.cumsum([0, *(len(one) for one, _ in levels)])
    return Grid(points, low, high, start, *(np.concatenate(each) for each in zip(*levels, strict=True)))


def _at(function: Function, points: Array) -> tuple[Array, Array]:
    """Bounds of f in float64; ±∞ where there are none."""
    found = float64_bounds(function, points, float32)
    low, high = found.low.copy(), found.high.copy()
    for k in np.flatnonzero(~(high - low <= 2.0**-40 * np.maximum(np.abs(low), 2.0**-40))):
        try:
            low[k], high[k] = _floats(*enclose(function, Fraction(points[k]), Fraction(points[k])))
        except (Unsupported, UsageError):
            low[k], high[k] = -np.inf, np.inf
    return low, high


def _floats(low: Fraction, high: Fraction) -> tuple[float, float]:
    return -float_up(-low), float_up(high)


class Smooth:
    """The lines of one function under one contract in one context, or of what is within an absolute error of it."""

    def __init__(self, function: Function, contract: Contract | Fraction, ctx: Context) -> None:
        self.grid = grid_of(function)
        errors = (Fraction(0), contract) if isinstance(contract, Fraction) else error_of(function, contract, ctx)
        self.relative, self.absolute = (float_up(part) for part in errors)
        self.largest = float(ctx.format.largest)

    def lines(self, low: Array, high: Array) -> Lines:
        """As `Curve.lines`."""
        shape, found = low.shape, np.empty((6, low.size))
        sides = np.ascontiguousarray(low).reshape(-1), np.ascontiguousarray(high).reshape(-1)
        _lines(*sides, *self.grid, self.relative, self.absolute, self.largest, found)
        return Lines(*(part.reshape(shape) for part in found))

    def near(self, z: Array) -> tuple[Array, Array]:
        """About the values and the slopes."""
        at = np.clip(np.searchsorted(self.grid.points, z) - 1, 0, len(self.grid.points) - 2)
        return np.interp(z, self.grid.points, self.grid.low), (self.grid.least[at] + self.grid.most[at]) / 2


def error_of(function: Function, contract: Contract, ctx: Context) -> tuple[Fraction, Fraction]:
    """(r, e) with |I(z) − f(z)| ≤ r·|f(z)| + e where nothing overflows; `Unsupported` for other contracts."""
    nearest, fmt = ctx.mode.nearest, ctx.format
    unit, step = pow2(1 - fmt.precision), fmt.smallest
    half = Fraction(1, 2) if nearest else Fraction(1)
    if ctx.subnormals is Subnormals.GRADUAL:
        if isinstance(contract, CorrectlyRounded):
            return half * unit, half * step
        if isinstance(contract, WithinUlps):
            return max(half, contract.ulps) * unit, max(half, contract.ulps) * step
        if isinstance(contract, WithinFloats) and contract.count * unit <= Fraction(1, 8):
            return half * unit + 2 * (contract.count + 1) * unit, (contract.count + 1) * step
        if isinstance(contract, WithinError):
            return half * unit, max(contract.error, half * step)
        if isinstance(contract, Clamped) and _holds(function, contract, ctx):
            return error_of(function, contract.inner, ctx)
    raise Unsupported(f"linear bounds do not know {contract.text or 'correct rounding'} of {function.name} in {ctx}")


def _holds(function: Function, contract: Clamped, ctx: Context) -> bool:
    """Whether the clamp is to values of the format that are bounds of the function."""
    plain = Context(ctx.format, Mode.RTZ, Overflow.SATURATE, Subnormals.GRADUAL)
    for bound, end, side in zip((contract.low, contract.high), function.range, (1, -1), strict=True):
        if bound is None:
            continue
        if end is None or side * bound > side * end or round_real(plain, bound).fraction != bound:
            return False
    return True


@jit
def _interval(points: Array, x: float) -> int:
    """The k with points[k] ≤ x < points[k + 1]; the last interval at the last point."""
    low, high = 0, len(points) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if points[middle] <= x:
            low = middle
        else:
            high = middle
    return low


@jit
def _lines(
    bottoms: Array, tops: Array, points: Array, low: Array, high: Array, start: Indices, least: Array, most: Array,
    relative: float, absolute: float, largest: float, out: Array,
) -> None:  # fmt: skip
    size = 3 * POINTS + 8
    at, under, over = np.zeros(size), np.zeros(size), np.zeros(size)
    for place in range(len(bottoms)):
        l, u = bottoms[place], tops[place]
        out[:, place] = 0.0
        out[4, place], out[5, place] = -np.inf, np.inf
        if not (points[0] <= l <= u <= points[-1]):
            continue
        first, last = _interval(points, l), _interval(points, u)
        last += points[last] < u or last == first
        level = 0
        while (last - first) >> level > POINTS:
            level += 1
        stride = 1 << level
        count, gap = 0, 0.0
        at[0], under[0], over[0] = l, 0.0, 0.0
        count = 1
        i = ((first >> level) + 1) << level
        while i < last and points[i] < u:
            if points[i] > l:
                at[count], under[count], over[count] = points[i], low[i], high[i]
                count += 1
            i += stride
        at[count] = u
        count += 1
        biggest = 0.0
        for j in (0, count - 1):  # the ends, by the chords of the finest level
            cell = first if j == 0 else last - 1
            p, q = points[cell], points[cell + 1]
            bend = (most[cell] - least[cell]) * (q - p) / 4
            share = (at[j] - p) / (q - p)
            under[j] = low[cell] + (low[cell + 1] - low[cell]) * share - bend
            over[j] = high[cell] + (high[cell + 1] - high[cell]) * share + bend
            biggest = max(biggest, abs(low[cell]), abs(low[cell + 1]), abs(high[cell]), abs(high[cell + 1]))
        for j in range(count - 1):
            cell = start[level] + _interval(points, at[j]) // stride
            gap = max(gap, (most[cell] - least[cell]) * (at[j + 1] - at[j]) / 4)
        bottom, top = np.inf, -np.inf
        for j in range(count):
            bottom, top = min(bottom, under[j]), max(top, over[j])
            biggest = max(biggest, abs(under[j]), abs(over[j]))
        extent = max(abs(l), abs(u))
        slack = 2.0**-44 * (biggest + gap) + 2.0**-1000
        bottom, top = bottom - gap - slack, top + gap + slack
        error = (relative * max(abs(bottom), abs(top)) + absolute) * (1 + 2.0**-40)
        bottom, top = bottom - error - slack, top + error + slack
        middle = (l + u) / 2
        out[1, place], out[3, place] = bottom, top  # slopes of 0
        best, worst = bottom, top
        for j in range(count):
            for i in range(j):
                if not at[i] < at[j]:
                    continue
                for side in (0, 1):
                    value = under if side == 0 else over
                    if at[i] > middle or at[j] < middle:
                        continue
                    a = (value[j] - value[i]) / (at[j] - at[i])
                    if not abs(a) < 2.0**100:
                        continue
                    end = np.inf
                    for m in range(count):
                        end = min(end, under[m] - a * at[m]) if side == 0 else min(end, a * at[m] - over[m])
                    end -= gap + error + slack + 2.0**-44 * abs(a) * extent
                    if side == 0 and end + a * middle > best:
                        best = end + a * middle
                        out[0, place], out[1, place] = a, end
                    elif side == 1 and a * middle - end < worst:
                        worst = a * middle - end
                        out[2, place], out[3, place] = a, -end
        if max(abs(bottom), abs(top)) <= largest:
            out[4, place], out[5, place] = bottom, top
