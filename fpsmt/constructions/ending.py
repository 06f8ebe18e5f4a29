"""The last layer: values as products of a weight with what a detector returns, found by rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fpsmt.constructions.shape import Shape
from fpsmt.constructions.sparse import Layer, Rows
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import Carriers, round_array


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
    shape: Shape, values: Carriers, choices: Sequence[float], detector: Callable[[int, int, bool], int], size: int
) -> Layer:
    """The last layer for values of shape (points, outputs): detector(point, choice, again) is made where needed.

    `choices` are what detectors may return, the preferred ones first.  ±inf is one product that overflows, or the
    sum of two largest values; a value that is no product may be the sum of two equal ones.  Unsupported when it is not.
    """
    rows = Rows()
    for o in range(values.shape[1]):
        wanted = values[:, o]
        weight = np.where(wanted == 0.0, 0.0, np.nan)
        choice = np.full(len(wanted), -1)
        for c, returned in enumerate(choices):
            left = np.isnan(weight)
            if not left.any():
                break
            v = last_weights(shape, wanted, returned)
            good = left & ~np.isnan(v)
            weight[good], choice[good] = v[good], c
        half = np.isnan(weight) & np.isfinite(wanted)
        for c, returned in enumerate(choices):
            left = half & np.isnan(weight)
            v = last_weights(shape, np.where(left, wanted, 0.0) / 2, returned) if left.any() else weight
            good = left & ~np.isnan(v)
            weight[good], choice[good] = v[good], c
        terms: list[tuple[int, float]] = []
        for i in np.flatnonzero(wanted != 0.0).tolist():
            if choice[i] >= 0:
                for copy in (False, True) if half[i] else (False,):
                    terms.append((detector(i, int(choice[i]), copy), float(weight[i])))
            elif np.isinf(wanted[i]):
                most = float(np.copysign(shape.largest, wanted[i]) * np.sign(choices[0]))
                terms += [(detector(i, 0, False), most), (detector(i, 0, True), most)]
            else:
                shown = ", ".join(f"{r:g}" for r in choices[:4])
                raise Unsupported(f"the value {wanted[i]:g} is not the product of a weight with any of {shown}, …")
        rows.add(sorted(terms), 0.0, again=True)
    return rows.layer()


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
