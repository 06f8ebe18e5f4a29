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
    most = np.copysign(shape.largest, wanted) * np.sign(choices[0])
    product = shape.mul(most, choices[0])
    twice_most = np.isnan(weight) & np.isinf(wanted) & np.isinf(shape.add(product, product))
    weight[twice_most], choice[twice_most], halves[twice_most] = most[twice_most], 0, True
    counts = (1 + halves).tolist()
    out = [[(c, w)] * n for c, w, n in zip(choice.tolist(), weight.tolist(), counts, strict=True)]
    left = np.flatnonzero(np.isnan(weight))
    for i, parts in zip(left.tolist(), _split(shape, wanted[left], choices), strict=True):
        out[i] = parts
    return out


def _split(shape: Shape, wanted: Carriers, choices: Sequence[float]) -> list[list[tuple[int, float]]]:
    """Products of one sign, all multiples of a unit u, with |wanted| or the first value beyond Ω as their exact sum.

    That is at most 2^precision · u, so that all partial sums but an infinite one are exact, in every order.
    """
    fmt = shape.format
    size = np.minimum(np.abs(wanted), shape.largest)
    unit = np.ldexp(1.0, np.maximum(np.frexp(size)[1] - 1, fmt.emin) - fmt.fraction_bits)
    rest = size + np.where(np.isinf(wanted), unit, 0.0)
    largest = max(float(shape.mul(shape.largest, abs(r))) for r in choices)
    out: list[list[tuple[int, float]]] = [[] for _ in wanted]
    for _ in range(MOST_PARTS):
        part = np.minimum(rest, np.floor(largest / unit) * unit)
        choice, weight = np.full(len(rest), -1), np.zeros(len(rest))
        for _ in range(MOST_PARTS):
            for c, r in enumerate(choices):
                left = (choice < 0) & (part > 0)
                if left.any():
                    v = last_weights(shape, np.where(left, part, 0.0), r)
                    good = left & ~np.isnan(v)
                    choice[good], weight[good] = c, v[good]
            part = np.where(choice < 0, np.maximum(part - unit, 0.0), part)
        weight = np.copysign(1.0, wanted) * weight
        for i in np.flatnonzero(choice >= 0).tolist():
            out[i].append((int(choice[i]), float(weight[i])))
        rest -= np.where(choice >= 0, part, 0.0)
    if (rest > 0.0).any():
        shown = ", ".join(f"{r:g}" for r in choices[:4])
        some = float(wanted[int(np.argmax(rest > 0.0))])
        raise Unsupported(f"the value {some:g} is not the product of a weight with any of {shown}, …")
    return out


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
