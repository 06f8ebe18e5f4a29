"""Detectors by absorption for bounded activations that are 0 at 0 and nowhere else, such as sin.

Layer 1: φ = I(W⊗x ⊖ W⊗x*) is 0 exactly at x*, and between δ and M in size at the other inputs.
Layer 2: h± = I(A⊗φ ⊕ ±κ).  The constant κ is absorbed by A⊗φ unless φ = 0, so that h₊ = h₋ but at x*.
Layer 3: I(s⊗h₊ ⊖ s⊗h₋), which is I(0) = 0 unless h₊ ≠ h₋.

Everything stays finite where A⊗M and s⊗M are.  With A and s near Ω/M the detector returns about I(δ·Ω²·2^(1−p)/M²),
which is 1 in most formats; in float16 it is near 1/8 for inputs beside which other inputs are ω away, and large values
are sums of several products.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpsmt.constructions.ending import Detectors
from fpsmt.constructions.shape import Shape, remembered
from fpsmt.constructions.sparse import Rows
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import Carriers, from_ordinals, ordinals

MOST_FACTORS = 8  #: tried for A, from the largest down
MOST_CHOICES = 12  #: of results of a detector


@dataclass(frozen=True)
class Kind:
    """Parameters A, κ for the inputs with δ at least some bound; (s, what the detector returns), the best first."""

    a: float
    kappa: float
    choices: list[tuple[float, float]]


def absorption(shape: Shape, points: Carriers, needed: NDArray[np.bool_]) -> Detectors:
    """Detectors of all points, of one input, for four layers; unsupported where the activation or the format does not
    allow it."""
    name = shape.implementation.text
    if points.shape[1] != 1:
        raise Unsupported("this construction is for one input")
    if not shape.listed:
        raise Unsupported(f"{shape.format} has too many values to compare the activation at all of them")
    inner = shape.outputs[np.isfinite(shape.line)]
    most = float(np.abs(inner).max())
    if not np.isfinite(most) or most > 8.0 or float(shape.apply(0.0)) != 0.0 or float(shape.apply(-0.0)) != 0.0:
        raise Unsupported(f"{name} is not bounded by a small number and 0 at 0")
    axis = points[:, 0]
    weight, level, kinds = remembered((shape.key(axis), "absorption"), lambda: _prepare(shape, axis, most))
    first, second, top = Rows(), Rows(), Rows()

    def detector(point: int, choice: int, again: bool) -> int:
        kind = kinds[level[point]]
        w = float(weight[point])
        u = first.add([(0, w)], float(-shape.mul(w, axis[point])) + 0.0)
        above, below = (second.add([(u, kind.a)], k) for k in (kind.kappa, -kind.kappa))
        s = kind.choices[choice][0]
        return top.add([(above, s), (below, -s)], 0.0, again)

    return Detectors([[r for _, r in kind.choices] for kind in kinds], detector, (first, second, top), level)


def _prepare(shape: Shape, axis: Carriers, most: float) -> tuple[Carriers, Carriers, list[Kind]]:
    """W and the kind of parameters of each input, and the kinds, by powers of two of δ."""
    fmt = shape.format
    weight, size = _features(shape, axis)
    if not (size > 0).all():
        raise Unsupported(
            f"{shape.implementation.text} in {fmt}: no map sends {axis[int(np.argmin(size))]} alone to 0 "
            f"({int((size == 0).sum())} of {len(axis)} inputs are left)"
        )
    enough = 8.0 * most * most / shape.largest * 2.0**fmt.precision / shape.largest  # larger δ change nothing
    size = np.minimum(size, max(enough, shape.smallest))
    levels, level = np.unique(np.ldexp(1.0, np.frexp(size)[1] - 1), return_inverse=True)
    kinds: list[Kind] = []
    for bound in levels.tolist():
        kind = _kind(shape, bound, most)
        if kind is None:
            count = int((size < 2 * bound).sum())
            raise Unsupported(
                f"{shape.implementation.text} in {fmt}: no constant is absorbed beside {bound:g} and still seen after "
                f"the largest factors ({count} of {len(axis)} inputs are left)"
            )
        kinds.append(kind)
    return weight, level, kinds


def _features(shape: Shape, axis: Carriers) -> tuple[Carriers, Carriers]:
    """W, and a bound δ ≤ 1 below |I(W⊗x ⊖ W⊗x*)| at the other inputs; 0 where there is none.

    W is among the powers of two at most 1 for which all sums are finite, the largest of those of the largest δ.
    """
    fmt, n, span = shape.format, len(axis), float(np.abs(axis).max())
    order = np.argsort(axis)
    sizes = np.where(np.isfinite(shape.line), np.abs(shape.outputs), np.inf)
    above, below = np.minimum.accumulate(sizes[::-1])[::-1], np.minimum.accumulate(sizes)  # the least there, and beyond
    weight, size = np.zeros(n), np.zeros(n)
    for w in (1.0, 0.5, 0.25, 0.125):
        t = shape.mul(w, axis)
        delta = np.ones(n)
        up = shape.add(t[order[1:]], -t[order[:-1]])  # from an input to the next
        delta[order[:-1]] = above[ordinals(fmt, up) + shape.top]
        delta[order[1:]] = np.minimum(delta[order[1:]], below[ordinals(fmt, -up) + shape.top])
        delta = np.where(np.isfinite(shape.add(np.abs(t), w * span)), np.minimum(delta, 1.0), 0.0)
        better = delta > size
        weight[better], size[better] = w, delta[better]
    return weight, size


def _kind(shape: Shape, bound: float, most: float) -> Kind | None:
    """Parameters for results φ with bound ≤ |φ| ≤ most, or 0."""
    fmt = shape.format
    ends = ordinals(fmt, [bound, min(8 * bound, most)])  # what is absorbed there is absorbed above
    phi = from_ordinals(fmt, np.arange(int(ends[0]), int(ends[1]) + 1))
    factors = shape.line[(shape.line > 0) & np.isfinite(shape.mul(shape.line, max(most, 1.0)))]
    found = [(_absorbed(shape, shape.mul(a, phi)), a) for a in factors[-MOST_FACTORS:].tolist()]
    kappa, a = max(found)
    if kappa == 0.0:
        return None
    ends = shape.apply([kappa, -kappa])
    results = shape.apply(shape.add(shape.mul(factors, ends[0]), -shape.mul(factors, ends[1])))
    sizes = np.abs(results)
    sizes = np.where(sizes <= 2.0, sizes, 0.0)
    near = np.flatnonzero((sizes > 0.0) & (sizes >= min(float(sizes.max()), 1.0) / 2))
    near = near[np.argsort(-np.minimum(sizes[near], 1.0) - (np.frexp(sizes[near])[0] == 0.5), kind="stable")]
    choices: dict[float, float] = {}
    for i in near.tolist():
        choices.setdefault(float(results[i]), float(factors[i]))
        if len(choices) == MOST_CHOICES:
            break
    return Kind(a, kappa, [(s, r) for r, s in choices.items()]) if choices else None


def _absorbed(shape: Shape, z: Carriers) -> float:
    """The largest κ with z ⊕ ±κ = z and −z ⊕ ±κ = −z for all of z; 0 when there is none."""
    z = np.concatenate([z, -z])
    low, high = 0, int(ordinals(shape.format, float(np.abs(z).min())))
    while low < high:
        middle = (low + high + 1) // 2
        kappa = float(from_ordinals(shape.format, middle))
        if (shape.add(z, kappa) == z).all() and (shape.add(z, -kappa) == z).all():
            low = middle
        else:
            high = middle - 1
    return float(from_ordinals(shape.format, low))
