"""Which neurons of the last hidden layer are not zero at which inputs, for every order of every sum.

Trusted.  A neuron's *cone* is what it depends on.  In a representation cones are small, and a neuron is zero at nearly
every input; `last_hidden` finds the others without visiting them all:

* one coordinate: `lines`;
* several coordinates: neurons of one coordinate are evaluated at each of its values, and what combines them on the
  grid of these values, passing over the rest as soon as the result is zero whatever it is.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fpsmt.constructions.hits import Hits, Program, Report, Search
from fpsmt.constructions.intervals import MOST_TERMS, nonzero_on_boxes, row
from fpsmt.constructions.lines import MOST_PLACES, Line
from fpsmt.constructions.sparse import Layer, SparseNetwork
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import Carriers

MOST_ROWS = 1 << 26  #: values of neurons of one coordinate that are kept
MOST_KEPT = 1 << 18  #: examined cones that are remembered


class Lists:
    """A layer's rows as lists, which are quicker to read one at a time."""

    def __init__(self, layer: Layer) -> None:
        self.starts, self.columns = layer.starts.tolist(), layer.columns.tolist()
        self.weights, self.bias = layer.weights.tolist(), layer.bias.tolist()


@dataclass(frozen=True)
class Cone:
    """A program, its inputs (layer, neuron) with layer −1 for the network's inputs, and a key of the program."""

    program: Program
    inputs: list[tuple[int, int]]
    key: Any


def cone_of(lists: list[Lists], layer: int, neuron: int, known: Any = None) -> Cone:
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
    place = {source: i for i, source in enumerate(inputs)}
    starts, sources, weights, bias = [0], [], [], []
    for level in range(layer + 1):
        here = lists[level]
        for i in needed[level]:
            for t in range(here.starts[i], here.starts[i + 1]):
                sources.append(place[level - 1, here.columns[t]])
                weights.append(here.weights[t])
            starts.append(len(sources))
            bias.append(here.bias[i])
            place[level, i] = len(inputs) + len(bias) - 1
    program = (
        np.array(starts, np.int64), np.array(sources, np.int64), np.array(weights, float), np.array(bias, float),
        np.zeros(len(bias), np.bool_),
    )  # fmt: skip
    return Cone(program, inputs, (tuple(starts), tuple(sources), tuple(weights), tuple(bias)))


def _hash(array: Any) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).digest()


def _layer_hash(layer: Layer) -> tuple[bytes, ...]:
    return tuple(_hash(array) for array in (layer.starts, layer.columns, layer.weights, layer.bias))


_KNOWN: dict[Any, Hits] = {}  #: what was found last: many tables have the same hidden layers
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

    Of the network only the hidden layers matter.  Zeros among the inputs count as both zeros.  Unsupported: sums of
    more than `MOST_TERMS` terms, wide formats with activations other than relu and identity, neurons that are not zero
    at too many points.
    """
    for layer in network.layers[:-1]:
        if int(np.diff(layer.starts).max()) > MOST_TERMS:
            raise Unsupported(f"a hidden sum has more than {MOST_TERMS} terms")
    points = np.asarray(points, float) + 0.0
    key = (network.context, network.implementation, points.shape, _hash(points), *map(_layer_hash, network.layers[:-1]))
    if key not in _KNOWN:
        search = Line if network.inputs == 1 else _Grid
        found = search(network, points, report or (lambda line: None)).run()
        _KNOWN.clear()
        _KNOWN[key] = found
    return _KNOWN[key]


class _Grid(Search):
    """Several inputs."""

    def __init__(self, network: SparseNetwork, points: Carriers, report: Report) -> None:
        super().__init__(network, points, report)
        self.lists = [Lists(layer) for layer in network.layers[:-1]]
        self.top = len(self.lists) - 1
        self.where = (network.implementation, network.context)
        self.neuron: list[Any] = []
        self.point: list[Any] = []
        self.low: list[Any] = []
        self.high: list[Any] = []
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

    def run(self) -> Hits:
        size = self.network.layers[-2].size
        for j in range(size):
            self.visit(j)
            if j % 512 == 0:
                self.report(f"neuron {j} of {size}")
        joined = [np.concatenate([np.empty(0), *parts]) for parts in (self.neuron, self.point, self.low, self.high)]
        return self.hits(joined[0].astype(np.int64), joined[1].astype(np.int64), joined[2], joined[3])

    def add(self, j: int, points: Any, low: Any, high: Any) -> None:
        self.neuron.append(np.full(len(points), j))
        self.point.append(points)
        self.low.append(low)
        self.high.append(high)

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
