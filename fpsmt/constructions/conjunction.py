"""Detectors for activations that are exactly zero on a half-line: relu, sigmoid, gelu, swish, mish, softplus.

A *gate* for neighbours a < b is exactly 0 at a and below, and at least some θ > 0 at b and above; mirrored, it is 0 at
b and above.  With one affine map: I(W⊗x ⊕ B).  With two: I(S⊗I(W⊗x ⊕ B) ⊕ K), where the second map moves what the
first returns at a to the edge of the zeros.

The detector of a point adds its gates, two for each coordinate, with negative weights to a bias β: at the point all
gates are 0 and it returns I(β); anywhere else some gate is at least θ, every order gives at most β ⊖ s⊗θ, which is
chosen to lie where I is zero.  Three layers in all where one affine map makes a gate, else four.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fpsmt.constructions.ending import Detectors, returns
from fpsmt.constructions.shape import Shape, powers, remembered
from fpsmt.constructions.sparse import Rows
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import Carriers


@dataclass
class Gates:
    """For pairs of neighbours: parameters of the first map and of the second, if any, and the detector's weight."""

    w: Carriers
    b: Carriers
    s: Carriers
    k: Carriers
    strength: Carriers

    def take(self, other: Gates, where: Carriers, good: Carriers) -> None:
        for name in ("w", "b", "s", "k", "strength"):
            getattr(self, name)[where] = getattr(other, name)[good]


def conjunction(shape: Shape, points: Carriers, needed: NDArray[np.bool_]) -> Detectors:
    """Detectors of all points; unsupported where gates are not found."""
    edge = shape.zero_up_to
    if edge is None:
        raise Unsupported(f"{shape.implementation.text} is not zero on a half-line")
    edge = max(edge, -shape.largest)
    choices = returns(shape, _biases(shape, edge))
    if not choices:
        raise Unsupported("no bias gives a usable result")
    span = max(z for z, _ in choices) - edge
    columns = [np.unique(c) for c in points.T]
    reasons = []
    for maps in (1, 2):
        try:
            return _detectors(shape, points, columns, choices, edge, span, maps)
        except Unsupported as reason:
            reasons.append(str(reason))
    raise Unsupported(reasons[-1])


def _biases(shape: Shape, edge: float) -> Carriers:
    if not shape.listed:
        return np.array([1.0, 2.0])
    line = shape.line
    return line[(line > edge) & (np.abs(line) <= 64.0)]


def _detectors(
    shape: Shape, points: Carriers, columns: list[Carriers], choices: list[tuple[float, float]], edge: float,
    needed: float, maps: int,
) -> Detectors:  # fmt: skip
    first, second, top = Rows(), Rows(), Rows()
    gates: list[list[list[tuple[int, float]]]] = []  # by coordinate and value: (neuron, weight)
    for d, axis in enumerate(columns):
        size = float(np.abs(axis).max())
        here: list[list[tuple[int, float]]] = [[] for _ in axis]
        pairs = axis if len(axis) > 1 else np.array([axis[0], float(shape.neighbour(axis, 1)[0])])
        for side in (1.0, -1.0):
            low, high = (pairs[:-1], pairs[1:]) if side > 0 else (0.0 - pairs[:0:-1], 0.0 - pairs[-2::-1])
            key = (shape.key(low, high), edge, size, needed, maps)
            found = remembered(key, partial(_gates, shape, low, high, edge, size, needed, maps))
            if np.isnan(found.strength).any():
                bad = int(np.argmax(np.isnan(found.strength)))
                raise Unsupported(f"no gate with {maps} affine maps between {low[bad] * side} and {high[bad] * side}")
            for i in range(len(low)):
                u = first.add([(d, side * float(found.w[i]))], float(found.b[i]))
                if maps == 2:
                    u = second.add([(u, float(found.s[i]))], float(found.k[i]))
                at = i if side > 0 else len(low) - i
                if at < len(axis):
                    here[at].append((u, float(found.strength[i])))
        gates.append(here)
    index = np.stack([np.searchsorted(a, c) for a, c in zip(columns, points.T, strict=True)], axis=1)

    def detector(point: int, choice: int, again: bool) -> int:
        terms = [(u, -s) for d, i in enumerate(index[point].tolist()) for u, s in gates[d][i]]
        return top.add(sorted(terms), choices[choice][0], again)

    return Detectors.alike(
        [r for _, r in choices], detector, (first, second, top) if maps == 2 else (first, top), len(points)
    )


def _strength(shape: Shape, theta: Carriers, needed: float) -> Carriers:
    """The least power of two s with s ⊗ θ ≥ needed; NaN where the largest is too weak."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        raw = np.ceil(np.log2(needed) - np.log2(theta))
    out = np.full(len(theta), np.nan)
    good = (theta > 0) & (raw <= shape.format.emax)
    out[good] = np.ldexp(1.0, np.maximum(raw[good], shape.format.emin).astype(int))
    good &= ~(shape.mul(np.where(good, out, 1.0), np.where(good, theta, 1.0)) < needed)
    return np.where(good, out, np.nan)


def _down_to(shape: Shape, product: Carriers, target: Carriers) -> Carriers:
    """A bias B with product ⊕ B ≤ target, as large as rounding gives."""
    b = shape.add(target, -product)
    for _ in range(2):
        b = np.where(shape.add(product, b) > target, shape.neighbour(b, -1), b)
    return b


def _gates(shape: Shape, low: Carriers, high: Carriers, edge: float, size: float, needed: float, maps: int) -> Gates:
    """Gates for all pairs, finite on the whole domain where that is possible; a strength of NaN where none was found.

    Tries parameters for the pairs that are left, from the steepest first map on; no first map twice for a pair.
    """
    n = len(low)
    found = Gates(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.full(n, np.nan))
    reach = np.maximum(np.abs(low), np.abs(high))
    for limit in (size, 0.0):
        before = np.zeros(n)
        for exponent in powers(shape):
            w = shape.scale(reach, exponent)
            if limit:
                w = np.minimum(w, np.ldexp(1.0, int(np.frexp(shape.largest / limit)[1]) - 1))
            left = np.flatnonzero(np.isnan(found.strength) & (w != before))
            before = w
            for level in (edge,) if maps == 1 else (edge, 0.0, -1.0, 1.0, -2.0, 2.0, -4.0):
                for s in (0.0,) if maps == 1 else _second_weights(shape):
                    if not len(left):
                        break
                    tried = _try(shape, w[left], low[left], high[left], edge, limit, level, s)
                    tried.strength = _strength(shape, tried.strength, needed)
                    good = ~np.isnan(tried.strength)
                    found.take(tried, left[good], good)
                    left = left[~good]
    return found


def _second_weights(shape: Shape) -> list[float]:
    emax = shape.format.emax
    return [float(np.ldexp(1.0, e)) for e in (emax, emax - 1, emax - 3, emax - 5) if e >= 0] + [shape.largest]


def _try(
    shape: Shape, w: Carriers, low: Carriers, high: Carriers, edge: float, size: float, level: float, s: float
) -> Gates:
    """Parameters of one kind, with θ in place of the strength; −inf where they make no gate."""
    at, above = shape.mul(w, low), shape.mul(w, high)
    ok = np.isfinite(at) & np.isfinite(above)
    at, above = np.where(ok, at, 0.0), np.where(ok, above, 0.0)
    b = _down_to(shape, at, np.full(len(at), level))
    ok &= np.isfinite(b)
    b = np.where(ok, b, 0.0)
    if size:
        ok &= np.isfinite(shape.add(shape.mul(w, size), b)) & np.isfinite(shape.add(shape.mul(w, -size), b))
    at, above = shape.add(at, b), shape.add(above, b)
    if s == 0.0:
        ok &= at <= edge
        return Gates(w, b, w, b, np.where(ok, shape.at_least(above), -np.inf))
    below, upper = shape.at_most(at), shape.at_least(above)
    ok &= (upper > below) & np.isfinite(below) & np.isfinite(upper)
    below, upper = np.where(ok, shape.mul(s, np.where(ok, below, 0.0)), 0.0), np.where(ok, upper, 0.0)
    ok &= np.isfinite(below)
    below = np.where(ok, below, 0.0)
    k = _down_to(shape, below, np.full(len(at), edge))
    ok &= np.isfinite(k)
    k = np.where(ok, k, 0.0)
    ok &= shape.add(below, k) <= edge
    theta = np.where(ok, shape.at_least(shape.add(shape.mul(s, upper), k)), -np.inf)
    return Gates(w, b, np.full(len(at), s), k, theta)
