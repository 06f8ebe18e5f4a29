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

MOST_PARTS = 10  #: products that are added to one value


@dataclass(frozen=True)
class Detectors:
    """Detectors of points, made where they are asked for (see the package).

    `returns`: what they may return, the preferred results first, for each kind of points; `kinds`: the kind of each
    point.  make(point, choice, again) is the neuron's index in the last of `rows`, the hidden layers.
    """

    returns: Sequence[Sequence[float]]
    make: Callable[[int, int, bool], int]
    rows: tuple[Rows, ...]
    kinds: NDArray[np.int64]

    @staticmethod
    def alike(
        returns: Sequence[float], make: Callable[[int, int, bool], int], rows: tuple[Rows, ...], size: int
    ) -> Detectors:
        """Of `size` points of one kind."""
        return Detectors([returns], make, rows, np.zeros(size, np.int64))

    def hidden(self) -> tuple[Layer, ...]:
        """The layers with the detectors that were made."""
        return tuple(rows.layer() for rows in self.rows)


def network_layers(shape: Shape, detectors: Detectors, values: Carriers) -> tuple[Layer, ...]:
    """All layers of a network with values of shape (points, outputs), with the detectors that these values need.

    Unsupported where a value is not made of what the detectors return.
    """
    rows = Rows()
    for o in range(values.shape[1]):
        terms: list[tuple[int, float]] = []
        for kind, returned in enumerate(detectors.returns):
            here = np.flatnonzero((detectors.kinds == kind) & (values[:, o] != 0.0))
            for point, parts in zip(here.tolist(), products(shape, values[here, o], returned), strict=True):
                used: set[int] = set()
                for choice, weight in parts:
                    terms.append((detectors.make(point, choice, choice in used), weight))
                    used.add(choice)
        rows.add(sorted(terms), 0.0, again=True)
    last = rows.layer()
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


def products(shape: Shape, wanted: Carriers, choices: Sequence[float]) -> list[list[tuple[int, float]]]:
    """(choice, weight) of the products weight ⊗ choices[choice] whose sum is the wanted value, in every order.

    One product, else a sum of two (`pair_weights`), else of several (`split_weights`); Unsupported where none is found.
    """
    out: list[list[tuple[int, float]]] = [[] for _ in wanted]
    left = np.arange(len(wanted))
    for ways in (_single, _pair, split_weights):
        for c, returned in enumerate(choices):
            if len(left):
                weights = ways(shape, wanted[left], returned)
                found = ~np.isnan(weights).any(axis=1)
                for i, row in zip(left[found].tolist(), weights[found].tolist(), strict=True):
                    out[i] = [(c, v) for v in row if v]
                left = left[~found]
    if len(left):
        shown = ", ".join(f"{r:g}" for r in choices[:4])
        raise Unsupported(f"{wanted[left[0]]:g} is not a sum of products of a weight with any of {shown}, …")
    return out


def _single(shape: Shape, wanted: Carriers, returned: float) -> Carriers:
    return last_weights(shape, wanted, returned)[:, None]


def _pair(shape: Shape, wanted: Carriers, returned: float) -> Carriers:
    return np.stack(pair_weights(shape, wanted, returned), axis=1)


def split_weights(shape: Shape, wanted: Carriers, returned: float) -> Carriers:
    """Weights of shape (values, most) of products of one sign, multiples of a unit u, with an exact sum: the wanted
    value, or the first one beyond Ω.  Rows of NaN where none are found.

    The sum is at most 2^precision · u, so that all partial sums but an infinite one are exact, in every order.
    """
    fmt = shape.format
    size = np.minimum(np.abs(wanted), shape.largest)
    unit = np.ldexp(1.0, np.maximum(np.frexp(size)[1] - 1, fmt.emin) - fmt.fraction_bits)
    rest = size + np.where(np.isinf(wanted), unit, 0.0)
    most = np.floor(float(shape.mul(shape.largest, abs(returned))) / unit) * unit
    out = np.zeros((len(wanted), MOST_PARTS))
    for part in range(MOST_PARTS):
        term = np.minimum(rest, most)
        v = last_weights(shape, term, returned)
        for _ in range(MOST_PARTS):
            term = np.where(np.isnan(v), np.maximum(term - unit, 0.0), term)
            v = np.where(np.isnan(v), last_weights(shape, term, returned), v)
        out[:, part] = np.where(np.isnan(v), 0.0, np.sign(wanted) * v)
        rest = rest - np.where(np.isnan(v), 0.0, term)
    out[rest != 0.0] = np.nan
    return out


def weights_for(shape: Shape, wanted: Carriers, returned: float) -> Carriers:
    """Weights of shape (values, copies) of equal detectors whose products add up to the wanted values in every order.

    0: the term is left out; a row of NaN: none are found.
    """
    pairs = _pair(shape, wanted, returned)
    missed = np.isnan(pairs).any(axis=1)
    out = np.zeros((len(wanted), MOST_PARTS if missed.any() else 2))
    out[:, :2] = pairs
    if missed.any():
        out[missed] = split_weights(shape, wanted[missed], returned)
    return out[:, : max(1, int((out != 0.0).sum(axis=1).max()))]


@dataclass(frozen=True)
class Shared:
    """Detectors for any values: `hidden` layers, and for each point some equal neurons.

    Those of point i are the first of neurons[i], −1 where there are no more; they return returned[i] there.
    """

    hidden: tuple[Layer, ...]
    neurons: NDArray[np.int64]
    returned: Carriers

    def one_hot(self) -> Layer:
        """A last layer with an output for each point, the sum of its detectors."""
        counts = (self.neurons >= 0).sum(axis=1)
        columns = np.sort(np.where(self.neurons < 0, np.iinfo(np.int64).max, self.neurons), axis=1)
        columns = columns[np.arange(columns.shape[1]) < counts[:, None]]
        return Layer(np.concatenate([[0], np.cumsum(counts)]), columns, np.ones(len(columns)), np.zeros(len(counts)))


def shared_detectors(shape: Shape, detectors: Detectors) -> Shared:
    """As many detectors of each point as are needed to make every value of the format of what they return."""
    wanted = shape.line if shape.listed else np.array([shape.smallest, shape.largest, np.inf])
    wanted = wanted[wanted != 0.0]
    n = len(detectors.kinds)
    neurons, returned = np.full((n, MOST_PARTS), -1), np.zeros(n)
    for kind, possible in enumerate(detectors.returns):
        choice, copies = _fewest(shape, wanted, possible)
        for i in np.flatnonzero(detectors.kinds == kind).tolist():
            neurons[i, :copies] = [detectors.make(i, choice, again > 0) for again in range(copies)]
            returned[i] = possible[choice]
    return Shared(detectors.hidden(), neurons[:, (neurons >= 0).any(axis=0)], returned)


def _fewest(shape: Shape, wanted: Carriers, possible: Sequence[float]) -> tuple[int, int]:
    """The result of detectors of which the fewest make every wanted value, and their number."""
    extremes = wanted[np.unique([np.argmin(wanted), np.argmax(wanted), np.argmin(np.abs(wanted))])]
    few = [weights_for(shape, extremes, r).shape[1] for r in possible]
    for c in sorted(range(len(possible)), key=lambda c: max(2, few[c])):
        weights = weights_for(shape, wanted, possible[c])
        if not np.isnan(weights).any():
            return c, max(2, weights.shape[1])
    shown = ", ".join(f"{r:g}" for r in possible[:4])
    raise Unsupported(f"not every value is the sum of products of a weight with any of {shown}, …")


def last_rows(shape: Shape, shared: Shared, values: Carriers) -> Layer:
    """A last layer for values of shape (points, outputs) on shared detectors; Unsupported where a value is not made."""
    some, place = (shape.line, shape.place(values)) if shape.listed else np.unique(values, return_inverse=True)
    kinds, kind = np.unique(shared.returned, return_inverse=True)
    copies = shared.neurons.shape[1]
    weights = np.full((len(kinds), len(some), copies), np.nan)
    for k, r in enumerate(kinds.tolist()):
        found = weights_for(shape, some, r)[:, :copies]
        weights[k] = 0.0
        weights[k, :, : found.shape[1]] = found
    neurons = shared.neurons.reshape(-1)
    order = np.argsort(neurons)
    starts, columns, listed = [0], [], []
    for at in place.reshape(values.shape).T:
        rows = weights[kind, at]
        bad = (np.isnan(rows) | ((rows != 0.0) & (shared.neurons < 0))).any(axis=1)
        if bad.any():
            i = int(np.argmax(bad))
            raise Unsupported(f"{some[at[i]]:g} is not the sum of products of a weight with {shared.returned[i]:g}")
        row = rows.reshape(-1)[order]
        used = row != 0.0
        columns.append(neurons[order][used])
        listed.append(row[used])
        starts.append(starts[-1] + int(used.sum()))
    return Layer(np.array(starts), np.concatenate(columns), np.concatenate(listed), np.zeros(values.shape[1]))


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
