"""Which neurons of the last hidden layer are not zero at which inputs, for every order of every sum.

Trusted.  A neuron's *cone* is what it depends on.  In a representation cones are small, and a neuron is zero at nearly
every input; `last_hidden` finds the others without visiting them all:

* one coordinate: the sorted inputs are divided until a piece is settled (`intervals.nonzero`).  Where all first-layer
  sums of the cone multiply the input by the same weight W, the neuron is a function of t = W ⊗ x, and where they have
  the same bias B too, a function of t = W ⊗ x ⊕ B.  Cones that agree above t are that same function, which is then
  examined once, for every t of the format (not where t may be NaN).  As t is monotone in x, the inputs with t in an
  interval are consecutive;
* several coordinates: neurons of one coordinate are evaluated at each of its values, and what combines them on the
  grid of these values, passing over the rest as soon as the result is zero whatever it is.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.constructions.intervals import (
    INFINITE,
    MAX_TABLE_BITS,
    MOST_TERMS,
    OPEN,
    Ranges,
    evaluate,
    nonzero,
    nonzero_on_boxes,
    ranges,
    reached,
    row,
)
from fpsmt.constructions.sparse import Layer, SparseNetwork
from fpsmt.errors import Unsupported
from fpsmt.floats import Overflow
from fpsmt.floats.compiled import parameters
from fpsmt.floats.vector import Carriers, from_ordinals

Report = Callable[[str], None]
Program = tuple[Any, Any, Any, Any, Any]
MOST_PLACES = 1 << 20  #: at which one neuron may be different from zero
MOST_ROWS = 1 << 26  #: values of neurons of one coordinate that are kept
MOST_KEPT = 1 << 18  #: examined cones that are remembered


@dataclass(frozen=True)
class Hits:
    """`neuron[h]` is in low[h] … high[h] at `point[h]`, sorted by point; everywhere else neurons are zero.

    `finite`: no activation receives or returns an infinity.
    """

    neuron: NDArray[np.int64]
    point: NDArray[np.int64]
    low: Carriers
    high: Carriers
    finite: bool
    cones: int  #: that were different


class _Lists:
    """A layer's rows as lists, which are quicker to read one at a time."""

    def __init__(self, layer: Layer) -> None:
        self.starts, self.columns = layer.starts.tolist(), layer.columns.tolist()
        self.weights, self.bias = layer.weights.tolist(), layer.bias.tolist()


@dataclass(frozen=True)
class Cone:
    """A program by its key, and its inputs (layer, neuron), with layer −1 for the network's inputs."""

    inputs: list[tuple[int, int]]
    key: Any  #: of the program: starts, sources, weights, biases
    weight: float  #: the common weight of the first layer, 0 when it is not taken out
    bias: float  #: the common bias, which is taken out with the weight; 0 when they differ

    @cached_property
    def program(self) -> Program:
        starts, sources, weights, bias = self.key
        plain = np.zeros(len(bias), np.bool_)
        return np.array(starts, np.int64), np.array(sources, np.int64), np.array(weights), np.array(bias), plain


def cone_of(lists: list[_Lists], layer: int, neuron: int, known: Any = None, common: bool = False) -> Cone:
    """The cone of a hidden neuron down to the inputs, or to the neurons for which known(layer, neuron) holds."""
    needed: list[list[int]] = [[] for _ in range(layer + 1)]
    needed[layer] = [neuron]
    inputs: list[tuple[int, int]] = []
    for level in range(layer, -1, -1):
        below: set[int] = set()
        kept = []
        for i in sorted(set(needed[level])):
            if known is not None and known(level, i):
                inputs.append((level, i))
                continue
            kept.append(i)
            here = lists[level]
            below.update(here.columns[here.starts[i] : here.starts[i + 1]])
        needed[level] = kept
        if level:
            needed[level - 1] = list(below)
        else:
            inputs += [(-1, k) for k in sorted(below)]
    weight, common_bias = _common(lists[0], needed[0]) if common else (0.0, 0.0)
    place = {source: i for i, source in enumerate(inputs)}
    starts, sources, weights, bias = [0], [], [], []
    for level in range(layer + 1):
        here = lists[level]
        for i in needed[level]:
            for t in range(here.starts[i], here.starts[i + 1]):
                sources.append(place[level - 1, here.columns[t]])
                weights.append(1.0 if level == 0 and weight else here.weights[t])
            starts.append(len(sources))
            taken = level == 0 and common_bias != 0.0 and starts[-1] > starts[-2]
            bias.append(0.0 if taken else here.bias[i])
            place[level, i] = len(inputs) + len(bias) - 1
    key = (tuple(starts), tuple(sources), tuple(weights), tuple(bias))
    return Cone(inputs, key, weight, common_bias)


def _common(first: _Lists, rows: list[int]) -> tuple[float, float]:
    """The weight and the bias that all sums of the first layer have, sums of nothing apart: 0 for what is not common.

    A sum of several terms has no weight in common with any.
    """
    weights: set[float] = set()
    biases: set[float] = set()
    for i in rows:
        a, b = first.starts[i], first.starts[i + 1]
        if b - a > 1:
            return 0.0, 0.0
        if b > a:
            weights.add(first.weights[a])
            biases.add(first.bias[i])
    if len(weights) != 1:
        return 0.0, 0.0
    return weights.pop(), biases.pop() if len(biases) == 1 else 0.0


def _hash(array: Any) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).digest()


_EXAMINED: OrderedDict[Any, Any] = OrderedDict()


def _examined(key: Any, work: Callable[[], Any]) -> Any:
    """What was found for the same cone, activation and axis before: 100 tables share one set of detectors."""
    if key in _EXAMINED:
        _EXAMINED.move_to_end(key)
        return _EXAMINED[key]
    result = work()
    _EXAMINED[key] = result
    if len(_EXAMINED) > MOST_KEPT:
        _EXAMINED.popitem(last=False)
    return result


def last_hidden(network: SparseNetwork, points: Carriers, report: Report | None = None) -> Hits:
    """The neurons of the last hidden layer that are not zero, at distinct points of shape (n, inputs).

    Zeros among the inputs count as both zeros.  Unsupported: sums of more than `MOST_TERMS` terms, wide formats with
    activations other than relu and identity, neurons that are not zero at too many points.
    """
    lists = [_Lists(layer) for layer in network.layers[:-1]]
    for layer in network.layers[:-1]:
        if int(np.diff(layer.starts).max()) > MOST_TERMS:
            raise Unsupported(f"a hidden sum has more than {MOST_TERMS} terms")
    search = _Line if network.inputs == 1 else _Grid
    return search(network, np.asarray(points, float) + 0.0, lists, report or (lambda line: None)).run()


class _Search:
    def __init__(self, network: SparseNetwork, points: Carriers, lists: list[_Lists], report: Report) -> None:
        self.network, self.points, self.lists, self.report = network, points, lists, report
        self.f: Ranges = ranges(network)
        self.k = parameters(network.context)
        self.top = len(lists) - 1
        use = network.implementation
        self.where = (use, network.context)
        self.neuron: list[Any] = []
        self.point: list[Any] = []
        self.low: list[Any] = []
        self.high: list[Any] = []

    def run(self) -> Hits:
        size = self.network.layers[-2].size
        for j in range(size):
            self.visit(j)
            if j % 512 == 0:
                self.report(f"neuron {j} of {size}")
        joined = [np.concatenate([np.empty(0), *parts]) for parts in (self.neuron, self.point, self.low, self.high)]
        neuron, point = joined[0].astype(np.int64), joined[1].astype(np.int64)
        order = np.lexsort((neuron, point))
        return Hits(neuron[order], point[order], joined[2][order], joined[3][order], self.finite(), self.cones)

    cones = 0

    def visit(self, j: int) -> None:
        raise NotImplementedError

    def add(self, j: int, points: Any, low: Any, high: Any) -> None:
        for place, value in ((self.neuron, j), (self.low, low), (self.high, high)):
            place.append(np.full(1, value) if len(points) == 1 else np.broadcast_to(value, len(points)))
        self.point.append(points)

    def finite(self) -> bool:
        """All hidden neurons on the box of all inputs at once."""
        layers, base = self.network.layers[:-1], 0
        q = self.network.inputs
        starts, sources, weights, bias = [np.zeros(1, np.int64)], [], [], []
        for layer in layers:
            starts.append(layer.starts[1:] + starts[-1][-1])
            sources.append(layer.columns + base)
            weights.append(layer.weights)
            bias.append(layer.bias)
            base = q + sum(map(len, bias)) - layer.size
        program = (*map(np.concatenate, (starts, sources, weights, bias)), np.zeros(sum(map(len, bias)), np.bool_))
        lo, hi = np.empty(q + len(program[3])), np.empty(q + len(program[3]))
        lo[:q], hi[:q] = self.points.min(axis=0), self.points.max(axis=0)
        room = np.empty(1 << MOST_TERMS), np.empty(1 << MOST_TERMS)
        return not evaluate(program, q, lo, hi, self.f, self.k, *room) & (OPEN | INFINITE)


class _Line(_Search):
    """One input."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.order = np.argsort(self.points[:, 0], kind="stable")
        self.axis = self.points[self.order, 0]
        self.mirrored = np.ascontiguousarray(-self.axis[::-1]) + 0.0
        fmt, top = self.network.format, self.f.top
        self.everything: Any = None
        numbers = self.network.context.overflow is not Overflow.NAN  # W ⊗ x is one of everything
        if numbers and fmt.bits <= MAX_TABLE_BITS and 8 * len(self.axis) >= 2 * top:
            self.everything = from_ordinals(fmt, np.arange(-top, top + 1))
        self.found = np.empty((MOST_PLACES, 4))
        self.axis_key = _hash(self.axis)
        self.mine: dict[Any, Any] = {}  # as _examined, with keys that are quicker to hash

    def visit(self, j: int) -> None:
        cone = cone_of(self.lists, self.top, j, common=self.everything is not None)
        axis = self.everything if cone.weight else self.axis
        if not cone.inputs:
            raise Unsupported(f"neuron {j} of the last hidden layer is a constant")
        here = (cone.key, cone.weight != 0.0)
        if here not in self.mine:
            key = (*self.where, cone.key, b"" if cone.weight else self.axis_key)
            self.mine[here] = _examined(key, lambda: self.search(cone.program, axis))
            self.cones += 1
        found = self.mine[here]
        for a, b, low, high in self.reached(cone, found) if cone.weight else found.tolist():
            self.add(j, self.order[int(a) : int(b) + 1], low, high)

    def search(self, program: Program, axis: Any) -> Any:
        count = nonzero(program, axis, self.f, self.k, self.found)
        if count < 0:
            raise Unsupported(f"a neuron of the last hidden layer is not zero in more than {MOST_PLACES} places")
        return self.found[:count].copy()

    def reached(self, cone: Cone, found: Any) -> Iterator[tuple[int, int, float, float]]:
        """The same rows by places of the axis, where these are inputs: `found` speaks of t = W ⊗ x ⊕ B."""
        w, out = cone.weight, np.empty((len(found), 3), np.int64)
        axis = self.axis if w > 0 else self.mirrored
        count = reached(axis, abs(w), cone.bias, found, self.everything, self.k, out)
        for i, a, b in out[:count].tolist():
            a, b = (a, b) if w > 0 else (len(axis) - 1 - b, len(axis) - 1 - a)
            yield a, b, found[i, 2], found[i, 3]


class _Grid(_Search):
    """Several inputs."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.values = [np.unique(column) for column in self.points.T]
        self.counts = np.array([len(v) for v in self.values])
        index = np.stack([np.searchsorted(v, c) for v, c in zip(self.values, self.points.T, strict=True)], axis=1)
        self.strides = np.array([int(np.prod(self.counts[k + 1 :])) for k in range(len(self.counts))], np.int64)
        if float(np.prod(self.counts.astype(float))) >= 2.0**62:
            raise Unsupported("the coordinates have too many values together")
        keys = index @ self.strides
        self.by_key = np.argsort(keys)
        self.keys = keys[self.by_key]
        self.coordinate = self.dependencies()
        self.rows: dict[tuple[int, int], Any] = {}
        self.kept = 0
        self.places = np.empty((MOST_PLACES, len(self.counts)), np.int64)
        self.ends = np.empty((MOST_PLACES, 2))
        self.seen: set[Any] = set()

    def dependencies(self) -> list[Any]:
        """For each hidden neuron the one coordinate that it depends on; −1 for none, −2 for several."""
        below = np.arange(self.network.inputs)
        out = []
        for layer in self.network.layers[:-1]:
            owner = np.repeat(np.arange(layer.size), np.diff(layer.starts))
            read = below[layer.columns]
            least, most = np.full(layer.size, 1 << 30), np.full(layer.size, -1)
            counted = read != -1
            np.minimum.at(least, owner[counted], np.where(read[counted] < 0, -(1 << 30), read[counted]))
            np.maximum.at(most, owner[counted], np.where(read[counted] < 0, 1 << 30, read[counted]))
            below = np.where(most == -1, -1, np.where(least == most, least, -2))
            out.append(below)
        return out

    def visit(self, j: int) -> None:
        if self.coordinate[self.top][j] == -1:
            raise Unsupported(f"neuron {j} of the last hidden layer is a constant")
        cone = cone_of(self.lists, self.top, j, lambda level, i: level < self.top and self.coordinate[level][i] >= 0)
        rows = [self.row(level, i) for level, i in cone.inputs]
        key = (*self.where, cone.key, tuple(r[4] for r in rows), tuple(self.counts.tolist()))
        if key not in self.seen:
            self.seen.add(key)
            self.cones += 1
        places, ends = _examined(key, lambda: self.search(cone.program, rows))
        keys = places @ self.strides
        at = np.searchsorted(self.keys, keys)
        at[at == len(self.keys)] = 0
        listed = self.keys[at] == keys  # the grid may have more points than the table
        self.add(j, self.by_key[at[listed]], ends[listed, 0], ends[listed, 1])

    def search(self, program: Program, rows: list[Any]) -> Any:
        count = nonzero_on_boxes(
            program, np.array([r[0] for r in rows]), np.array([r[1] for r in rows]), np.array([r[2] for r in rows]),
            np.array([r[3][0] for r in rows]), np.array([r[3][1] for r in rows]), self.counts, self.f, self.k,
            self.places, self.ends,
        )  # fmt: skip
        if count < 0:
            raise Unsupported(f"a neuron of the last hidden layer is not zero in more than {MOST_PLACES} places")
        return self.places[:count].copy(), self.ends[:count].copy()

    def row(self, level: int, i: int) -> Any:
        """(coordinate, lows, highs, whole range, key) of a neuron of one coordinate, padded to the longest."""
        if (level, i) not in self.rows:
            k = i if level < 0 else int(self.coordinate[level][i])
            axis = self.values[k]
            low, high = np.zeros(self.counts.max()), np.zeros(self.counts.max())
            if level < 0:
                low[: len(axis)] = high[: len(axis)] = axis
            else:
                program = cone_of(self.lists, level, i).program
                row(program, axis, self.f, self.k, low, high)
            a, b = low[: len(axis)], high[: len(axis)]
            if np.isnan(a).any() or np.isnan(b).any():
                raise Unsupported(f"neuron {i} of layer {level + 1} may be NaN")
            self.kept += 2 * len(low)
            if self.kept > MOST_ROWS:
                raise Unsupported("the neurons of one coordinate have too many values to keep")
            self.rows[level, i] = (k, low, high, (a.min(), b.max()), (k, _hash(a), _hash(b)))
        return self.rows[level, i]
