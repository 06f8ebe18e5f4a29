"""Detectors by rounding alone, for the identity.

Units: p is the precision, u a power of two times ω, and the numbers T, C, B, G are multiples of u.  For t = W⊗x let

    P = (t ⊕ B) ⊖ (t ⊕ C),    Q = (t ⊕ B) ⊖ (t ⊕ (C − 1)),    B = G · (a number near 3 · 2^(p−2)).

The spacing of floats at B is G.  So P is B less what t ⊕ C is when it is rounded to a multiple of G: the multiples of G
in t ⊕ B cancel, which also makes all ties round the same way, downwards where B/G is even and upwards where it is odd.
P ≠ Q only where a tie, an odd multiple of G/2, separates t ⊕ (C − 1) from t ⊕ C:

* T even, from 4 to 2^p (for u > ω: from 2^(p−1) + 4): G = 2^(p+1), ties downwards, C = 2^p + 2 − T.  At t = T the sums
  are 2^p + 2 and, by rounding to even, 2^p.  Ties are 2^(p+1) apart, and sums up to 2^p in size have spacing 1 or less,
  so that no other t of the spacing of T is found.
* T even, from 2^p to 2^(p+1): G = 2^(p+2), ties upwards, C = 2^(p+1) − 1 − T: the same at twice the spacing.

Where t has a larger spacing, C and C − 1 are rounded alike unless one of them is half that spacing, and then rounding
to even leaves both sums on the same side of a tie, unless C is 2^p or 2^(p−1).  Far away both are absorbed, and P = Q.
As |P| is at most about 2B, the difference can be scaled to 1 in the next layer.  Whether a window is right is not taken
from here: it is computed for every t of the format.

Four layers: W is such that W⊗x = T·u only at x*.  There is none for 0, ω, 2ω and 3ω.  Five layers: the first is
y = V⊗x ⊕ (τ − V⊗x*), which is τ only at x*, so that one window serves all inputs of one exponent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fpsmt.constructions.ending import Detectors
from fpsmt.constructions.shape import Shape, remembered
from fpsmt.constructions.sparse import Rows
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import Carriers, are_numbers, round_array

TARGETS = 40  #: of one unit


@dataclass(frozen=True)
class Window:
    """The constants B, C, C − 1 and the spacing G; nothing but the target is found among |t| < `reach`."""

    b: float
    c: float
    below: float
    gap: float
    reach: float


@lru_cache(maxsize=8192)
def window(shape: Shape, target: int, unit: float) -> Window | None:
    """The window at target · unit; none where a constant is not a value of the format or the target is not found."""
    p, line = shape.format.precision, shape.line[np.isfinite(shape.line)]
    small = target < 2**p
    tie = 2**p if small else 2 ** (p + 1)
    c = tie - target + (2 if small else -1)
    centre = 2 * tie * (3 * 2**p // 8 * 2 if small else 3 * 2**p // 4 | 1)
    numbers = np.array([centre, c, c - 1, 2 * tie, target]) * unit
    if c < 1 or numbers.max() > shape.largest or not are_numbers(shape.format, numbers).all():
        return None
    with np.errstate(invalid="ignore"):
        high = shape.add(line, numbers[0])
        one, other = (shape.add(high, -shape.add(line, z)) for z in (numbers[1], numbers[2]))
        differ = ~(one == other) | ~np.isfinite(one)
    at = int(np.searchsorted(line, numbers[4]))
    if not differ[at] or other[at] - one[at] != numbers[3]:
        return None
    differ[at] = False
    b, c, below, gap = numbers[:4].tolist()
    return Window(b, c, below, gap, float(np.abs(line[differ]).min(initial=np.inf)))


@dataclass
class Chosen:
    """For each input the weight W, T and u; W = 0 where there is none."""

    weight: Carriers
    target: Carriers
    unit: Carriers


def identity_windows(shape: Shape, points: Carriers, needed: NDArray[np.bool_]) -> Detectors:
    """Detectors for four layers, for the identity and one input."""
    axis = _one_input(shape, points)
    if (needed & (np.abs(axis) < 4 * shape.smallest)).any():
        raise Unsupported("four layers single out no input below 4ω in size")
    chosen = remembered((shape.key(axis), "windows"), lambda: choose(shape, axis))
    left = needed & (chosen.weight == 0)
    if left.any():
        raise Unsupported(
            f"four layers do not single out {axis[int(np.argmax(left))]} ({int(left.sum())} of {len(axis)} inputs are "
            "left)"
        )
    return _detectors(shape, axis, chosen, None)


def shifted_windows(shape: Shape, points: Carriers, needed: NDArray[np.bool_]) -> Detectors:
    """Detectors for five layers, for the identity and one input."""
    axis = _one_input(shape, points)
    return _detectors(shape, axis, *remembered((shape.key(axis), "shifted"), lambda: shifted(shape, axis)))


def _one_input(shape: Shape, points: Carriers) -> Carriers:
    if points.shape[1] != 1:
        raise Unsupported("this construction is for one input")
    if not shape.listed:
        raise Unsupported(f"{shape.format} has too many values to compare windows at all of them")
    axis = points[:, 0]
    if not np.array_equal(shape.apply(axis), axis):
        raise Unsupported(f"{shape.implementation.text} is not the identity on the inputs")
    return axis


def _detectors(
    shape: Shape, axis: Carriers, chosen: Chosen, shifts: tuple[Carriers, Carriers] | None
) -> Detectors:
    zeroth, first, second, top = Rows(), Rows(), Rows(), Rows()

    def detector(point: int, choice: int, again: bool) -> int:
        found = window(shape, int(chosen.target[point]), float(chosen.unit[point]))
        assert found is not None
        source = 0 if shifts is None else zeroth.add([(0, float(shifts[0][point]))], float(shifts[1][point]))
        high, *pair = (first.add([(source, float(chosen.weight[point]))], k) for k in (found.b, found.c, found.below))
        one, other = (second.add([(high, 1.0), (z, -1.0)]) for z in pair)
        a = (1.0, 2.0)[choice] / found.gap
        return top.add(sorted([(one, -a), (other, a)]), 0.0, again)

    rows = (first, second, top) if shifts is None else (zeroth, first, second, top)
    return Detectors.alike([1.0, 2.0], detector, rows, len(axis))


def targets(precision: int) -> list[int]:
    """T at which windows are right for every unit: the largest below 2^p, then those from there on, for small p."""
    most = 2**precision
    return [*range(most - 2, max(most // 2 + 2, most - 2 * TARGETS), -2), *range(3 * most // 2, 2 * most, 2)[:TARGETS]]


def choose(shape: Shape, axis: Carriers) -> Chosen:
    """A weight and a window for every input that is not too near to 0."""
    n, p, smallest = len(axis), shape.format.precision, shape.smallest
    out = Chosen(np.zeros(n), np.zeros(n, np.int64), np.zeros(n))
    for sign in (1.0, -1.0):
        order = np.argsort(sign * axis, kind="stable")
        line = sign * axis[order]
        multiple = np.where((line > 0) & (line < 2**p * smallest), line / smallest, 0.0).astype(np.int64)
        for less in (0, 2, 4):  # below 2^p · ω: the next smaller even multiples of ω
            _take(shape, line, order, sign, multiple // 2 * 2 - less, np.full(n, smallest), out)
        far = line >= 2**p * smallest
        for target in targets(p):
            # the least unit for which the weight is not subnormal
            least = np.where(far, np.ldexp(line, shape.format.emin) / (target * smallest), 1.0)
            unit = np.ldexp(smallest, np.maximum(np.ceil(np.log2(least)), 0.0).astype(np.int64))
            _take(shape, line, order, sign, np.where(far, target, 0), unit, out)
    return out


def _take(
    shape: Shape, line: Carriers, order: Carriers, sign: float, target: Carriers, unit: Carriers, out: Chosen
) -> None:
    """Enters the weights W at most 1 with W⊗x = target · unit for one x of an ascending line, and windows there."""
    left = (out.weight[order] == 0) & (target >= 4) & (target * unit <= np.minimum(line, shape.largest))
    aim, span = np.where(left, target * unit, 0.0), float(np.abs(line).max())
    near = round_array(shape.context, np.divide(aim, line, out=np.zeros(len(line)), where=left))
    before, after = np.roll(line, 1), np.roll(line, -1)
    before[0], after[-1] = -shape.largest, shape.largest
    for by in (0, 1, -1):
        w = shape.neighbour(near, by)
        good = left & (w > 0) & (w <= 1.0)
        w = np.where(good, w, 0.0)
        good &= shape.mul(w, line) == aim
        good &= ((shape.mul(w, before) != aim) | (before == line)) & ((shape.mul(w, after) != aim) | (after == line))
        for i in np.flatnonzero(good).tolist():
            found = window(shape, int(target[i]), float(unit[i]))
            if found is not None and w[i] * span < found.reach:
                at = order[i]
                out.weight[at], out.target[at], out.unit[at] = sign * w[i], target[i], unit[i]
                left[i] = False


def shifted(shape: Shape, axis: Carriers) -> tuple[Chosen, tuple[Carriers, Carriers]]:
    """The windows, and V and τ − V⊗x* for each input: |V| a power of two, V⊗x* a multiple of u up to 2^p."""
    fmt, n = shape.format, len(axis)
    below = shape.neighbour(np.maximum(np.abs(axis), 2 * shape.smallest), -1)  # a power of two ends the binade below it
    e = np.maximum(np.frexp(below)[1] - 1, fmt.emin)
    v = np.ldexp(1.0, np.maximum(fmt.emin - e, fmt.emin - fmt.fraction_bits))
    unit = v * np.ldexp(shape.smallest, e - fmt.emin)
    out, span = Chosen(np.ones(n), np.zeros(n, np.int64), np.zeros(n)), float(np.abs(axis).max())
    for value in np.unique(unit).tolist():
        here = unit == value
        reach = float(v[here].max()) * span + value * 2**fmt.precision
        most = 2**fmt.precision
        if value == shape.smallest:
            tried = [(t, value) for t in range(most - 2, 2, -2)]
        else:
            tried = [(t, value) if t < most else (t, value / 2) for t in targets(fmt.precision)]
        for t, u in tried:
            found = window(shape, t, u)
            if found is not None and min(reach, shape.largest) < found.reach:
                out.target[here], out.unit[here] = t, u
                break
        else:
            raise Unsupported(f"{fmt}: no window among the multiples of {value:g} ({int(here.sum())} of {n} inputs)")
    v = np.where(axis < 0, -v, v)  # V⊗x* ≥ 0
    return out, (v, shape.add(out.target * out.unit, -shape.mul(v, axis)) + 0.0)
