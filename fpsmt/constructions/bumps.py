"""Detectors found from an activation's table, whatever its shape: elu, selu, tanh, sin, noisy implementations.

For an input x* and a steep weight W let z = W⊗x ⊖ W⊗x*: exactly 0 at x*, at least t in size at the other inputs.  A
*bump* is a function of z, or of the z of all coordinates, that is exactly 0 except at 0:

* a *peak* P(z), whose value at 0 is small beside all others: a⊗I(z), or −a⊗I(z) ⊖ a⊗I(−z); of several coordinates, the
  sum of these.  With one more layer, I(±S⊗I(z)) takes the place of I(±z);
* h± = I(P ⊕ b±): away from 0 the peak absorbs b₊ and b₋ alike (or the activation returns the same), whatever the
  activation is there; at 0 the two differ;
* I(A⊗h₊ ⊖ A⊗h₋ ⊕ z₀) = I(z₀) = 0 where h₊ = h₋.

All constants are found by trying, on every value of z between the least and the greatest size that occur.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from fpsmt.constructions.ending import Detectors, returns
from fpsmt.constructions.shape import Shape, remembered
from fpsmt.constructions.sparse import Rows
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import Carriers, round_array

FEW = 40  #: values of z on which constants are tried first, small ones and others
MOST_SUMS = 1 << 22  #: of the peaks of several coordinates
MOST_TERMS_TRIED = 5  #: of a peak, in every order
MOST_RESULTS = 16  #: that a detector is made to return
NEAR = 2  #: floats around a factor that are tried
MOST_POWERS, MOST_INNER = 64, 16  #: weights of a peak, and of its inner layer, that are tried
ENOUGH = 12  #: bumps without the result 1 or 2 to choose from
MOST_ZEROS = 8  #: places where the activation is 0 that are tried


Terms = list[Carriers]


@dataclass(frozen=True)
class Peak:
    """`even`: −a⊗I(z) ⊖ a⊗I(−z), else a⊗I(z), for the weight a of each coordinate; `inner`: S, 0 for no inner layer;
    `centred`: what I returns at 0 is subtracted."""

    even: bool
    inner: float
    weights: tuple[float, ...]
    centred: bool


@dataclass(frozen=True)
class Bump:
    """A peak, b₊ and b₋, z₀, and (A, what the bump returns at 0)."""

    peak: Peak
    plus: float
    minus: float
    zero: float
    choices: list[tuple[float, float]]


@dataclass(frozen=True)
class Slopes:
    """W for each value of a coordinate, the least |z| at another value, and the greatest |z|."""

    w: Carriers
    least: float
    greatest: float


def bumps(shape: Shape, points: Carriers, needed: NDArray[np.bool_], maps: int = 4) -> Detectors:
    """Detectors of all points, for networks of 4 or 5 affine maps; unsupported where no bump is found."""
    if not shape.listed:
        raise Unsupported(f"{shape.format} has too many values to compare sums at all of them")
    columns = [np.unique(c) for c in points.T]
    key = (shape.key(*columns), "bumps", maps)
    slopes, bump = remembered(key, partial(_found, shape, columns, maps))
    return _detectors(shape, points, columns, slopes, bump)


def deep_bumps(shape: Shape, points: Carriers, needed: NDArray[np.bool_]) -> Detectors:
    """Five affine maps."""
    return bumps(shape, points, needed, 5)


def _found(shape: Shape, columns: list[Carriers], maps: int) -> tuple[list[Slopes], Bump]:
    zeros = zeros_of(shape)
    if not zeros:
        raise Unsupported(f"{shape.implementation.text} is never 0, which a detector must be")
    aims = useful_results(shape)
    usable: list[tuple[list[Slopes], Bump]] = []
    numbers = np.isfinite(shape.outputs[shape.top :]) & np.isfinite(shape.outputs[shape.top :: -1])
    limit = shape.line[shape.top + int(np.argmin(np.append(numbers, False))) - 1] if numbers[0] else 0.0
    for bound in (np.inf, shape.largest, float(limit)):
        slopes = [_slopes(shape, axis, bound) for axis in columns]
        if any(s.least == 0.0 for s in slopes):
            continue
        whole = [_places(shape, s) for s in slopes]
        some = [_some(z, FEW // len(columns) ** 2) for z in whole]
        for peak in _peaks(shape, len(slopes), maps):
            guess = _bump(shape, peak, _values(shape, _terms(shape, peak, some)), zeros, aims)
            if guess is None:
                continue
            terms = _terms(shape, peak, whole)
            bump = _bump(shape, peak, _values(shape, terms), zeros, aims)
            if bump is None or not _every_order(shape, terms, bump):
                continue
            if any(abs(r) in (1.0, 2.0) for _, r in bump.choices):  # nearly every value is then a product
                return slopes, bump
            usable.append((slopes, bump))
            if len(usable) == ENOUGH:
                break
    if usable:
        return max(usable, key=lambda found: len(found[1].choices))
    raise Unsupported(f"{shape.implementation.text}: no bump of {maps} affine maps was found")


def _places(shape: Shape, s: Slopes) -> Carriers:
    """0, then the other values that z may take."""
    size = np.abs(shape.line)
    return np.concatenate([[0.0], shape.line[(size >= max(s.least, shape.smallest)) & (size <= s.greatest)]])


def _some(z: Carriers, few: int) -> Carriers:
    """0, some of the smallest, and some others."""
    order = 1 + np.argsort(np.abs(z[1:]), kind="stable")
    return z[np.concatenate([[0], order[:few], order[few :: max(1, len(order) // few)], order[-2:]])]


def zeros_of(shape: Shape) -> list[float]:
    """Some z with I(z) = 0, the first ones of small size."""
    if float(shape.apply(0.0)) == 0.0 == float(shape.apply(-0.0)):
        return [0.0]
    z = shape.line[(shape.outputs == 0.0) & np.isfinite(shape.line) & (shape.line != 0.0)]
    return z[np.argsort(np.abs(z), kind="stable")][:MOST_ZEROS].tolist()


def _slopes(shape: Shape, axis: Carriers, bound: float) -> Slopes:
    """The steepest weights with finite W⊗x* and |z| ≤ bound at every value of the axis."""
    fmt = shape.format
    w = shape.scale(axis, fmt.emax)
    for _ in range(2 * (fmt.emax - fmt.emin)):
        centre = shape.mul(w, axis)
        ends = [shape.add(shape.mul(w, end), -centre) for end in (axis[0], axis[-1])]
        far = ~((np.abs(ends[0]) <= bound) & (np.abs(ends[1]) <= bound)) & (w > shape.smallest)
        if not far.any():
            break
        w = np.where(far, w / 2, w)
    centre = shape.mul(w, axis)
    least = [np.abs(shape.add(shape.mul(w[:-1], axis[1:]), -centre[:-1]))] if len(axis) > 1 else []
    least += [np.abs(shape.add(shape.mul(w[1:], axis[:-1]), -centre[1:]))] if len(axis) > 1 else []
    ends = [np.abs(shape.add(shape.mul(w, end), -centre)) for end in (axis[0], axis[-1])]
    greatest = float(np.max(ends))
    return Slopes(w, float(np.min(least)) if least else greatest, greatest)


def _peaks(shape: Shape, coordinates: int, maps: int) -> Iterator[Peak]:
    powers = np.ldexp(1.0, np.arange(shape.format.emin, shape.format.emax + 1)).tolist()
    powers = powers[:: max(1, len(powers) // MOST_POWERS)]
    for inner in [0.0] if maps == 4 else powers[:: max(1, len(powers) // MOST_INNER)][::-1]:
        for centred in (False, True) if float(shape.apply(0.0)) else (False,):
            for even in (False, True):
                for a in powers:
                    for ratio in (1.0,) if even or coordinates == 1 else (2.0, 4.0, 8.0):
                        if a * ratio ** (coordinates - 1) <= shape.largest:
                            yield Peak(even, inner, tuple(a * ratio**k for k in range(coordinates)), centred)


def _terms(shape: Shape, peak: Peak, zs: list[Carriers]) -> list[Terms]:
    """The products that a peak adds for each coordinate, at its places z."""
    out = []
    with np.errstate(invalid="ignore"):
        for z, a in zip(zs, peak.weights, strict=True):
            here, there = shape.apply(z), shape.apply(-z)
            if peak.inner:
                moved = shape.mul(peak.inner, here)
                if peak.centred:
                    moved = shape.add(moved, -shape.mul(peak.inner, here[0]))
                here, there = shape.apply(moved), shape.apply(-moved)
            terms = [shape.mul(-a, here), shape.mul(-a, there)] if peak.even else [shape.mul(a, here)]
            if peak.centred:
                terms.append(np.full(len(here), float(shape.mul(2 * a if peak.even else -a, here[0]))))
            out.append(terms)
    return out


def _values(shape: Shape, terms: list[Terms]) -> tuple[float, Carriers] | None:
    """P, summed coordinate by coordinate, at 0 and at other places; None where 0 does not stand out, or with NaN."""
    with np.errstate(invalid="ignore"):
        sums = [reduce(shape.add, part) for part in terms]
        for p in sums:
            if np.isnan(p).any() or (len(p) > 1 and np.abs(p[1:]).min() <= 4 * abs(p[0])):
                return None
        total = _joined(sums)
        if total is None:
            return None
        others = np.unique(reduce(shape.add, total)[1:])
    at = float(reduce(shape.add, [p[:1] for p in sums])[0])
    return None if np.isnan(others).any() or not len(others) else (at, others)


def _joined(parts: list[Carriers]) -> list[Carriers] | None:
    """All combinations of one value of each part, the first values together first; None when there are too many."""
    each = [np.concatenate([p[:1], np.unique(p[1:])]) for p in parts]
    if np.prod([float(len(p)) for p in each]) > MOST_SUMS:
        return None
    return [g.ravel() for g in np.meshgrid(*each, indexing="ij")]


def _every_order(shape: Shape, terms: list[Terms], bump: Bump) -> bool:
    """h₊ and h₋ do not depend on the order of the terms, and are equal but at the target."""
    single = [p for part in terms for p in part]
    if len(single) <= 2:
        return True
    rows = [np.unique(np.stack([p[1:] for p in part]), axis=1) for part in terms]
    rows = [np.concatenate([np.stack([p[:1] for p in part]), r], axis=1) for part, r in zip(terms, rows)]
    index = _joined([np.arange(r.shape[1], dtype=float) for r in rows])
    if index is None or len(single) > MOST_TERMS_TRIED or len(index[0]) > MOST_SUMS // 8:
        return False
    joint = [p for r, i in zip(rows, index) for p in r[:, i.astype(np.int64)]]
    results: dict[int, list[Carriers]] = {1 << t: [p] for t, p in enumerate(joint)}
    for whole in range(1, 1 << len(joint)):
        if whole not in results:
            splits = [p for p in range(1, whole) if p & whole == p and p < whole ^ p]
            with np.errstate(invalid="ignore"):
                results[whole] = [
                    shape.add(x, y) for p in splits for x in results[p] for y in results[whole ^ p]
                ]  # fmt: skip
    first = None
    for p in results[(1 << len(joint)) - 1]:
        one, other = shape.apply(shape.add(p, bump.plus)), shape.apply(shape.add(p, bump.minus))
        ends = np.append(one, other[:1])  # of h₊ everywhere, and of h₋ at the target
        if not (one[1:] == other[1:]).all() or (first is not None and not (ends == first).all()):
            return False
        first = ends
    return True


def _bump(
    shape: Shape, peak: Peak, found: tuple[float, Carriers] | None, zeros: list[float], aims: tuple[Carriers, Carriers]
) -> Bump | None:
    """Constants for a peak that is `at` at 0 and takes the values `others` elsewhere."""
    fmt = shape.format
    if found is None:
        return None
    at, others = found
    size = float(np.abs(others).min())
    if size == np.inf or size <= 4 * abs(at):
        return None
    top = int(np.frexp(size)[1]) - 1
    for exponent in range(min(top + 1, fmt.emax), max(top - fmt.fraction_bits - 4, fmt.emin - fmt.fraction_bits), -1):
        b = float(np.ldexp(1.0, exponent))
        for plus, minus in ((b, -b), (b, 0.0), (-b, 0.0)):
            ends = shape.apply(shape.add(at, [plus, minus]))
            if not np.isfinite(ends).all() or ends[0] == ends[1]:
                continue
            reach = _same(shape, others, plus, minus)
            if reach is None:
                continue
            for zero in zeros:
                choices = factors_and_results(shape, aims, ends, max(reach, float(np.abs(ends).max())), zero)
                if choices:
                    return Bump(peak, plus, minus, zero, choices)
    return None


def _same(shape: Shape, p: Carriers, plus: float, minus: float) -> float | None:
    """The greatest |h| where h₊ = h₋ are finite for all values of P, else None."""
    one, other = shape.apply(shape.add(p, plus)), shape.apply(shape.add(p, minus))
    if not (one == other).all() or not np.isfinite(one).all():
        return None
    return float(np.abs(one).max())


def factors_and_results(
    shape: Shape, aims: tuple[Carriers, Carriers], ends: Carriers, reach: float, zero: float
) -> list[tuple[float, float]]:
    """(A, result) with A⊗h finite for |h| ≤ reach, results near 1 first: A is tried near what real numbers say.

    `aims`: inputs that the last activation may get, and its results (`useful_results`).
    """
    wanted, results = aims
    if not abs(float(ends[0] - ends[1])) * shape.largest >= np.abs(wanted - zero).min() / 2:
        return []
    with np.errstate(over="ignore"):
        near = (wanted - zero) / float(ends[0] - ends[1])
    near = round_array(shape.context, np.clip(near, -shape.largest, shape.largest))
    factors = shape.neighbour(near[:, None], np.arange(-NEAR, NEAR + 1)[None, :])
    finite = np.isfinite(shape.mul(factors, max(reach, 1.0))) & (factors != 0.0)
    factors = np.where(finite, factors, 1.0)
    back = shape.add(shape.add(shape.mul(factors, ends[0]), -shape.mul(factors, ends[1])), zero)
    good = finite & (shape.apply(np.where(np.isfinite(back), back, 0.0)) == results[:, None]) & np.isfinite(back)
    found: dict[float, float] = {}
    for i, k in np.argwhere(good).tolist():
        found.setdefault(float(results[i]), float(factors[i, k]))
    return [(a, r) for r, a in found.items()]


def useful_results(shape: Shape) -> tuple[Carriers, Carriers]:
    """Inputs whose results are good factors, and these, the nearest to 1 first; several inputs for ±1."""
    line = shape.line[np.isfinite(shape.line)]
    pairs = returns(shape, line, MOST_RESULTS)
    out = shape.apply(line)
    ones = line[np.abs(out) == 1.0]
    ones = ones[np.argsort(np.abs(ones), kind="stable")][:: max(1, len(ones) // MOST_RESULTS)]
    wanted = np.concatenate([ones, [z for z, _ in pairs]])
    return wanted, shape.apply(wanted)


def _detectors(
    shape: Shape, points: Carriers, columns: list[Carriers], slopes: list[Slopes], bump: Bump
) -> Detectors:
    first, inner, pair, top = Rows(), Rows(), Rows(), Rows()
    peak = bump.peak
    index = np.stack([np.searchsorted(a, c) for a, c in zip(columns, points.T, strict=True)], axis=1)

    def terms(d: int, i: int) -> list[tuple[int, float]]:
        """Of the peak of one coordinate."""
        w, x, a = float(slopes[d].w[i]), columns[d][i], peak.weights[d]
        b = -float(shape.mul(w, x)) + 0.0
        feature = first.add([(d, w)], b)
        constant = first.add([], 0.0) if peak.centred else -1
        if peak.inner:
            def moved(s: float) -> int:
                return inner.add([(feature, s), *([(constant, -s)] if peak.centred else [])])

            both = [moved(peak.inner), *([moved(-peak.inner)] if peak.even else [])]
            constant = inner.add([], 0.0) if peak.centred else -1
        else:
            both = [feature, *([first.add([(d, -w)], -b)] if peak.even else [])]
        found = [(u, -a if peak.even else a) for u in both]
        return found + ([(constant, 2 * a if peak.even else -a)] if peak.centred else [])

    known = [[terms(d, i) for i in range(len(axis))] for d, axis in enumerate(columns)]

    def detector(point: int, choice: int, again: bool) -> int:
        joint: dict[int, float] = {}
        for d, i in enumerate(index[point].tolist()):
            for u, a in known[d][i]:
                joint[u] = joint.get(u, 0.0) + a
        p = sorted(joint.items())
        h = [pair.add(p, b) for b in (bump.plus, bump.minus)]
        a = bump.choices[choice][0]
        return top.add(sorted([(h[0], a), (h[1], -a)]), bump.zero, again)

    rows = (first, inner, pair, top) if peak.inner else (first, pair, top)
    return Detectors.alike([r for _, r in bump.choices], detector, rows, len(points))
