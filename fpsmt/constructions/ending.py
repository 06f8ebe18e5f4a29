"""The last layer: values as products of a weight with what a detector returns, found by rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.constructions.shape import Shape
from fpsmt.constructions.sparse import Layer, Rows
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import Carriers, round_array

MOST_PARTS = 10  #: products that are added to one value


def last_weights(shape: Shape, wanted: Carriers, returned: float) -> Carriers:
    """v with v ⊗ returned = wanted, NaN where there is none; ±inf by overflow."""
    out = np.full(len(wanted), np.nan)
    finite = np.isfinite(wanted)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        near = np.where(finite, wanted, 0.0) / returned
    near = round_array(shape.context, np.clip(near, -shape.largest, shape.largest))
    for by in (0, 1, -1):
        v = shape.neighbour(near, by)
        good = finite & np.isnan(out) & (shape.mul(v, returned) == wanted)
        out[good] = v[good]
    v = np.copysign(shape.largest, wanted) * np.sign(returned)
    good = ~finite & (shape.mul(v, returned) == wanted)
    out[good] = v[good]
    return out


def finish(
    shape: Shape, values: Carriers, choices: Sequence[float] | Sequence[Sequence[float]],
    detector: Callable[[int, int, bool], int], size: int, kinds: NDArray[np.int64] | None = None,
) -> Layer:  # fmt: skip
    """The last layer for values of shape (points, outputs): detector(point, choice, again) is made where needed.

    `choices` are what detectors may return, the preferred ones first: for all points, or for the points of each kind.
    ±inf is one product that overflows, or the sum of two largest values.  A value that is no product may be the sum of
    two equal ones, or of several (`_split`).  Unsupported when it is none of these.
    """
    lists: Any = [choices] if kinds is None else choices
    kinds = np.zeros(size, np.int64) if kinds is None else kinds
    rows = Rows()
    for o in range(values.shape[1]):
        terms: list[tuple[int, float]] = []
        for kind, returned in enumerate(lists):
            here = np.flatnonzero((kinds == kind) & (values[:, o] != 0.0))
            for point, parts in zip(here.tolist(), _products(shape, values[here, o], returned), strict=True):
                used: set[int] = set()
                for choice, weight in parts:
                    terms.append((detector(point, choice, choice in used), weight))
                    used.add(choice)
        rows.add(sorted(terms), 0.0, again=True)
    return rows.layer()


def _products(shape: Shape, wanted: Carriers, choices: Sequence[float]) -> list[list[tuple[int, float]]]:
    """(choice, weight) of the products of which each wanted value is the sum, in every order."""
    weight, choice = np.full(len(wanted), np.nan), np.full(len(wanted), -1)
    halves = np.zeros(len(wanted), bool)
    for twice in (False, True):
        for c, returned in enumerate(choices):
            left = np.isnan(weight) & (np.isfinite(wanted) | (not twice))
            if not left.any():
                break
            v = last_weights(shape, np.where(left, wanted, 0.0) / (2 if twice else 1), returned)
            good = left & ~np.isnan(v)
            weight[good], choice[good], halves[good] = v[good], c, twice
    out: list[list[tuple[int, float]]] = []
    for i, f in enumerate(wanted.tolist()):
        if choice[i] >= 0:
            out.append([(int(choice[i]), float(weight[i]))] * (1 + int(halves[i])))
        else:
            out.append(_split(shape, f, choices))
    return out


def _split(shape: Shape, wanted: float, choices: Sequence[float]) -> list[tuple[int, float]]:
    """Products of one sign, all multiples of a unit u, with |wanted| or the first value beyond Ω as their exact sum.

    That is at most 2^precision · u, so that all partial sums but an infinite one are exact, in every order.
    """
    fmt = shape.format
    if np.isinf(wanted):
        most = float(np.copysign(shape.largest, wanted) * np.sign(choices[0]))
        if np.isinf(shape.add(shape.mul(most, choices[0]), shape.mul(most, choices[0]))):
            return [(0, most)] * 2
    size = min(abs(wanted), shape.largest)
    unit = float(np.ldexp(1.0, max(int(np.frexp(size)[1]) - 1, fmt.emin) - fmt.fraction_bits))
    rest = size + (unit if np.isinf(wanted) else 0.0)
    parts: list[tuple[int, float]] = []
    while rest > 0.0 and len(parts) < MOST_PARTS:
        part = rest if rest <= shape.largest else np.inf
        for _ in range(MOST_PARTS):
            found = [(c, v) for c, r in enumerate(choices) if np.isfinite(v := _weight(shape, part, r))]
            if found:
                break
            part = (min(part, _largest(shape, choices) + unit) // unit - 1) * unit
        if not found or part <= 0.0:
            break
        parts.append((found[0][0], float(np.copysign(1.0, wanted) * found[0][1])))
        rest -= part
    if rest > 0.0:
        shown = ", ".join(f"{r:g}" for r in choices[:4])
        raise Unsupported(f"the value {wanted:g} is not the product of a weight with any of {shown}, …")
    return parts


def _largest(shape: Shape, choices: Sequence[float]) -> float:
    return max(float(shape.mul(shape.largest, abs(r))) for r in choices)


def _weight(shape: Shape, part: float, returned: float) -> float:
    """v with v ⊗ returned = part, a number; NaN when there is none."""
    if not part <= abs(returned) * shape.largest:
        return float("nan")
    return float(last_weights(shape, np.array([part]), returned)[0])


def returns(shape: Shape, inputs: Carriers, limit: int = 16) -> list[tuple[float, float]]:
    """(z, result) for some of the inputs z whose results are good factors: 1 and 2, then others in [½, 2)."""
    results = shape.apply(inputs)
    size = np.abs(results)
    found: list[tuple[float, float]] = []
    for exact in (1.0, 2.0, -1.0):
        here = np.flatnonzero(results == exact)
        if len(here):
            z = inputs[here[np.argmin(np.abs(inputs[here]))]]
            found.append((float(z), exact))
    fit = np.flatnonzero((size >= 0.5) & (size < 2.5) & np.isfinite(size))
    fit = fit[np.argsort(np.abs(size[fit] - 1.0), kind="stable")]
    seen = {r for _, r in found}
    for i in fit:
        if len(found) >= limit:
            break
        if float(results[i]) not in seen:
            seen.add(float(results[i]))
            found.append((float(inputs[i]), float(results[i])))
    return found
