"""Detectors, and the last layer: values as products of a weight with what a detector returns, found by rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpsmt.constructions.shape import Shape
from fpsmt.constructions.sparse import Layer, Rows
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import Carriers, round_array


@dataclass(frozen=True)
class Detectors:
    """Detectors of points, made where they are asked for (see the package).

    `returns`: what they may return, the preferred results first; make(point, choice, again) is the neuron's index in
    the last of `rows`, the hidden layers.
    """

    returns: Sequence[float]
    make: Callable[[int, int, bool], int]
    rows: tuple[Rows, ...]

    def hidden(self) -> tuple[Layer, ...]:
        """The layers with the detectors that were made."""
        return tuple(rows.layer() for rows in self.rows)


def network_layers(shape: Shape, detectors: Detectors, values: Carriers) -> tuple[Layer, ...]:
    """All layers of a network with values of shape (points, outputs), with the detectors that these values need."""
    last = _finish(shape, values, detectors.returns, detectors.make)
    return (*detectors.hidden(), last)


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


def pair_weights(shape: Shape, wanted: Carriers, returned: float) -> tuple[Carriers, Carriers]:
    """(v, w) with (v ⊗ returned) ⊕ (w ⊗ returned) = wanted; w is 0 where one product is enough; NaN if none is found.

    The second product makes up for what rounding the first one missed; ±inf is the sum of two largest products.
    """
    first, second = last_weights(shape, wanted, returned), np.zeros(len(wanted))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        near = round_array(shape.context, np.clip(wanted / returned, -shape.largest, shape.largest))
    for by in (0, 1, -1, 2, -2):
        left = np.isnan(first)
        if not left.any():
            break
        v, y = shape.neighbour(near[left], by), wanted[left]
        product = shape.mul(v, returned)
        with np.errstate(invalid="ignore", over="ignore"):
            rest = np.nan_to_num(np.where(np.isinf(y), v, (y - product) / returned))
        w = round_array(shape.context, np.clip(rest, -shape.largest, shape.largest))
        good = shape.add(product, shape.mul(w, returned)) == y
        where = np.flatnonzero(left)[good]
        first[where], second[where] = v[good], w[good]
    second[np.isnan(first)] = np.nan
    return first, second


def _finish(
    shape: Shape, values: Carriers, choices: Sequence[float], detector: Callable[[int, int, bool], int]
) -> Layer:
    """The last layer for values of shape (points, outputs): detector(point, choice, again) is made where needed.

    `choices` are what detectors may return, the preferred ones first.  A value that is no product of one of them is a
    sum of two (`pair_weights`).  Unsupported when it is not.
    """
    rows = Rows()
    for o in range(values.shape[1]):
        wanted = values[:, o]
        weight = np.where(wanted == 0.0, 0.0, np.nan)
        again = np.zeros(len(wanted))
        choice = np.zeros(len(wanted), int)
        for products in (1, 2):
            for c, returned in enumerate(choices):
                left = np.flatnonzero(np.isnan(weight))
                if not len(left):
                    break
                if products == 1:
                    weight[left] = last_weights(shape, wanted[left], returned)
                else:
                    weight[left], again[left] = pair_weights(shape, wanted[left], returned)
                choice[left] = c
        if np.isnan(weight).any():
            shown = ", ".join(f"{r:g}" for r in choices[:4])
            missed = wanted[int(np.argmax(np.isnan(weight)))]
            raise Unsupported(f"the value {missed:g} is not the sum of two products of a weight with any of {shown}, …")
        terms: list[tuple[int, float]] = []
        for i in np.flatnonzero(wanted != 0.0).tolist():
            terms.append((detector(i, int(choice[i]), False), float(weight[i])))
            if again[i]:
                terms.append((detector(i, int(choice[i]), True), float(again[i])))
        rows.add(sorted(terms), 0.0, again=True)
    return rows.layer()


@dataclass(frozen=True)
class Shared:
    """Detectors for any values: `hidden` layers, and for each point the two neurons that return `returned` there."""

    hidden: tuple[Layer, ...]
    neurons: NDArray[np.int64]
    returned: float

    def one_hot(self) -> Layer:
        """A last layer with an output for each point, the sum of its detectors."""
        n = len(self.neurons)
        return Layer(np.arange(0, 2 * n + 1, 2), np.sort(self.neurons).reshape(-1), np.ones(2 * n), np.zeros(n))


def shared_detectors(shape: Shape, detectors: Detectors, size: int) -> Shared:
    """Two detectors of each of `size` points, with a result from which every value of the format can be made."""
    wanted = shape.line if shape.listed else np.array([shape.smallest, shape.largest, np.inf])
    usable = [not np.isnan(pair_weights(shape, wanted, r)[0]).any() for r in detectors.returns]
    if not any(usable):
        shown = ", ".join(f"{r:g}" for r in detectors.returns[:4])
        raise Unsupported(f"not every value is the sum of two products of a weight with any of {shown}, …")
    choice = usable.index(True)
    neurons = [[detectors.make(i, choice, again) for again in (False, True)] for i in range(size)]
    return Shared(detectors.hidden(), np.array(neurons), detectors.returns[choice])


def last_rows(shape: Shape, shared: Shared, values: Carriers) -> Layer:
    """A last layer for values of shape (points, outputs) on shared detectors; Unsupported where a value is not made."""
    some, place = (shape.line, shape.place(values)) if shape.listed else np.unique(values, return_inverse=True)
    first, second = pair_weights(shape, some, shared.returned)
    neurons = shared.neurons.reshape(-1)
    order = np.argsort(neurons)
    starts, columns, weights = [0], [], []
    for at in place.reshape(values.shape).T:
        if np.isnan(first[at]).any():
            missed = some[at[int(np.argmax(np.isnan(first[at])))]]
            raise Unsupported(f"{missed:g} is not the sum of two products of a weight with {shared.returned:g}")
        row = np.stack([first[at], second[at]], axis=1).reshape(-1)[order]
        used = row != 0.0
        columns.append(neurons[order][used])
        weights.append(row[used])
        starts.append(starts[-1] + int(used.sum()))
    return Layer(np.array(starts), np.concatenate(columns), np.concatenate(weights), np.zeros(values.shape[1]))


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
