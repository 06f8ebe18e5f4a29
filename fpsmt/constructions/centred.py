"""Detectors for activations with I(0) = 0 that are constant at both ends, such as tanh.

Layer 1: φ = I(W⊗x ⊖ W⊗x*) is 0 exactly at the value x* of a coordinate and at least δ in size at the others.
Layer 2: h± = I(Σ a⊗φ ⊕ ±κ), one term for each coordinate, with weights a so steep that the sum is 0 only where every φ
is, and elsewhere so large that I is at the same end for +κ and −κ.  Layer 3: I(A⊗h₊ ⊖ A⊗h₋) is I(0) = 0 away from the
point.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from fpsmt.constructions.ending import Detectors
from fpsmt.constructions.shape import Shape, powers, remembered
from fpsmt.constructions.sparse import Rows
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import Carriers


def centred(shape: Shape, points: Carriers, needed: NDArray[np.bool_]) -> Detectors:
    """Detectors of all points; unsupported where the activation or the domain does not allow it."""
    name = shape.implementation.text
    if shape.ends is None or float(shape.apply(0.0)) != 0.0 or float(shape.apply(-0.0)) != 0.0:
        raise Unsupported(f"{name} is not 0 at 0 and constant at both ends")
    edge, low, high = shape.ends
    factors = np.ldexp(1.0, np.arange(shape.format.emin, shape.format.emax))
    back = shape.add(shape.mul(factors, high), -shape.mul(factors, low))
    choices = _choices(shape, factors, back)
    first, second, top = Rows(), Rows(), Rows()
    steepness = 2.5 * edge  # leaves room for the rounding of sums
    parts: list[tuple[list[int], list[float]]] = []
    for d in range(points.shape[1]):
        axis = np.unique(points[:, d])
        w, b, size = remembered((shape.key(axis), "centred"), partial(_features, shape, axis))
        weight = np.ldexp(1.0, np.ceil(np.log2(steepness) - np.log2(size)).astype(int))
        if not (weight <= shape.largest).all():
            bad = int(np.argmax(weight))
            raise Unsupported(f"{name} does not move away from 0 fast enough beside {axis[bad]}")
        weight = np.maximum(weight, shape.smallest)
        neurons = [first.add([(d, float(w[i]))], float(b[i])) for i in range(len(axis))]
        parts.append((neurons, weight.tolist()))
        steepness += 1.25 * float(weight.max()) * max(abs(low), abs(high))
    index = np.stack([np.searchsorted(np.unique(c), c) for c in points.T], axis=1)

    def detector(point: int, choice: int, again: bool) -> int:
        terms = [(parts[d][0][i], parts[d][1][i]) for d, i in enumerate(index[point].tolist())]
        above, below = second.add(terms, edge), second.add(terms, -edge)
        a = choices[choice][0]
        return top.add([(above, a), (below, -a)], 0.0, again)

    return Detectors.alike([r for _, r in choices], detector, (first, second, top), len(points))


def _choices(shape: Shape, factors: Carriers, back: Carriers) -> list[tuple[float, float]]:
    """(A, what the detector returns), the results nearest to 1 first."""
    found: dict[float, float] = {}
    for a, r in zip(factors.tolist(), shape.apply(np.where(np.isfinite(back), back, 0.0)).tolist(), strict=True):
        if 0.5 <= abs(r) < 2.5:
            found.setdefault(r, a)
    if not found:
        raise Unsupported("no factor of the third layer gives a usable result")
    return sorted(((a, r) for r, a in found.items()), key=lambda pair: abs(abs(pair[1]) - 1.0))


def _features(shape: Shape, axis: Carriers) -> tuple[Carriers, Carriers, Carriers]:
    """W, the bias −(W⊗x*), and the least size of φ at the other values, for each value of a coordinate."""
    n = len(axis)
    w, size = np.zeros(n), np.zeros(n)
    before, after = np.full(n, -np.inf), np.full(n, np.inf)
    before[1:], after[:-1] = axis[:-1], axis[1:]
    span = float(np.abs(axis).max())
    for limit in (span, 0.0):
        for exponent in powers(shape):
            steep = shape.scale(axis, exponent)
            centre = shape.mul(steep, axis)
            good = np.isfinite(centre)
            if limit:
                good &= np.isfinite(shape.mul(steep, 2.0 * limit if 2.0 * limit <= shape.largest else limit))
            centre = np.where(good, centre, 0.0)
            up = shape.at_least(shape.add(shape.mul(steep, after), -centre))
            down = shape.at_most(shape.add(shape.mul(steep, before), -centre))
            reach = np.where(good, np.minimum(up, -down), 0.0)
            better = reach > size if limit else (reach > size) & (size < 2.0**-8)
            w[better], size[better] = steep[better], reach[better]
    if not (size > 0).all():
        raise Unsupported(f"no map sends {axis[int(np.argmin(size))]} alone to 0")
    return w, -shape.mul(w, axis) + 0.0, size
