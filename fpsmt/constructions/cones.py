"""Which neurons of the last hidden layer are not zero at which inputs, for every order of every sum.

Trusted.  A neuron's *cone* is what it depends on.  In a representation cones are small, and a neuron is zero at nearly
every input; `last_hidden` finds the others without visiting them all:

* one coordinate: `lines`;
* several coordinates: neurons of one coordinate are evaluated at each of its values, and what combines them on the
  grid of these values, passing over the rest as soon as the result is zero whatever it is.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.constructions.hits import Hits, Program, Report, Search
from fpsmt.constructions.intervals import MOST_TERMS, nonzero_on_boxes, row
from fpsmt.constructions.lines import MOST_PLACES, Line
from fpsmt.constructions.sparse import Layer, SparseNetwork
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import Carriers, arithmetic

MOST_ROWS = 1 << 26  #: values of neurons of one coordinate that are kept
MOST_STATES = 1 << 22  #: of one coordinate that are kept at a time


class Lists:
    """A layer's rows as lists, which are quicker to read one at a time."""

    def __init__(self, layer: Layer) -> None:
        self.starts, self.columns = layer.starts.tolist(), layer.columns.tolist()
        self.weights, self.bias = layer.weights.tolist(), layer.bias.tolist()


@dataclass(frozen=True)
class Cone:
    """A program, and its inputs (layer, neuron) with layer −1 for the network's inputs."""

    inputs: list[tuple[int, int]]
    key: Any  #: the program as tuples

    @property
    def program(self) -> Program:
        starts, sources, weights, bias = self.key
        return (
            np.array(starts, np.int64), np.array(sources, np.int64), np.array(weights, float), np.array(bias, float),
            np.zeros(len(bias), np.bool_),
        )  # fmt: skip


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
    return Cone(inputs, (tuple(starts), tuple(sources), tuple(weights), tuple(bias)))


def _hash(array: Any) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).digest()


def _layer_hash(layer: Layer) -> tuple[bytes, ...]:
    return tuple(_hash(array) for array in (layer.starts, layer.columns, layer.weights, layer.bias))


_KNOWN: dict[Any, Hits] = {}  #: what was found last: many tables have the same hidden layers


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


@dataclass(frozen=True)
class States:
    """What the sources of one coordinate return: `values` of shape (states, 2 × sources), low and high in turn.

    `index` numbers the lists of sources, and at[i, v] is the state of list i at value v of the coordinate.
    """

    index: dict[Any, int]
    values: Carriers
    at: NDArray[np.int64]

    def places(self, states: Any) -> dict[int, dict[int, list[int]]]:
        """For each list of sources, the values of the coordinate with these states, by state."""
        out: dict[int, dict[int, list[int]]] = {}
        lists, values = np.nonzero(np.isin(self.at, np.unique(states)))
        for i, v, s in zip(lists.tolist(), values.tolist(), self.at[lists, values].tolist(), strict=True):
            out.setdefault(i, {}).setdefault(s, []).append(v)
        return out


def states_of(index: dict[Any, int], rows: Carriers) -> States:
    """From rows of shape (lists, 2 × sources, values)."""
    flat = np.ascontiguousarray(rows.transpose(0, 2, 1)).reshape(-1, rows.shape[1]) + 0.0
    values, at = np.unique(flat, axis=0, return_inverse=True)
    return States(index, values, at.reshape(rows.shape[0], rows.shape[2]))


class _Grid(Search):
    """Several inputs."""

    def __init__(self, network: SparseNetwork, points: Carriers, report: Report) -> None:
        super().__init__(network, points, report)
        self.lists = [Lists(layer) for layer in network.layers[:-1]]
        self.top = len(self.lists) - 1
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
        self.known: dict[tuple[int, int, float], Any] = {}
        self.vector = arithmetic(network.context)
        self.places = np.empty((MOST_PLACES, len(self.counts)), np.int64)
        self.ends = np.empty((MOST_PLACES, 2))

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

    def run(self) -> Hits:
        """Neurons that are one program of products of neurons of one coordinate are examined together."""
        size = self.network.layers[-2].size
        groups: dict[Any, tuple[list[int], list[Any]]] = {}
        counts = range(len(self.counts))
        for j in range(size):
            if self.coordinate[self.top][j] == -1:
                raise Unsupported(f"neuron {j} of the last hidden layer is a constant")
            cone = cone_of(
                self.lists, self.top, j, lambda level, i: level < self.top and self.coordinate[level][i] >= 0
            )
            key, sources = self.products(cone)
            owner = tuple(i if level < 0 else int(self.coordinate[level][i]) for level, i, _ in sources)
            parts = tuple(tuple(s for s, k in zip(sources, owner, strict=True) if k == here) for here in counts)
            neurons, all_parts = groups.setdefault((key, owner), ([], []))
            neurons.append(j)
            all_parts.append(parts)
            if j % 512 == 0:
                self.report(f"neuron {j} of {size}")
        self.cones = len(groups)
        for (key, owner), (neurons, all_parts) in groups.items():
            step = max(1, MOST_STATES // int(self.counts.max()))  # so many neurons have at most MOST_STATES states
            if max(len({parts[k] for parts in all_parts}) for k in counts) <= step:
                step = len(neurons)
            for start in range(0, len(neurons), step):
                part = slice(start, start + step)
                self.group(Cone([], key), owner, neurons[part], all_parts[part])
        joined = [np.concatenate([np.empty(0), *parts]) for parts in (self.neuron, self.point, self.low, self.high)]
        return self.hits(joined[0].astype(np.int64), joined[1].astype(np.int64), joined[2], joined[3])

    def products(self, cone: Cone) -> tuple[Any, list[tuple[int, int, float]]]:
        """The program of a cone whose inputs are products weight ⊗ neuron, and these; what may be NaN is left as is."""
        starts, sources, weights, bias = cone.key
        q, new, left = len(cone.inputs), [], []
        found: dict[tuple[int, int, float], int] = {}
        for s, w in zip(sources, weights, strict=True):
            if s < q:
                level, i = cone.inputs[s]
                taken = self.weighted(level, i, w) is not None
                new.append(found.setdefault((level, i, w if taken else 1.0), len(found)))
                left.append(1.0 if taken else w)
            else:
                new.append(s)
                left.append(w)
        moved = len(found) - q
        new = [n if s < q else n + moved for s, n in zip(sources, new, strict=True)]
        return (starts, tuple(new), tuple(left), bias), list(found)

    def weighted(self, level: int, i: int, w: float) -> Any:
        """Lows and highs of w ⊗ a neuron of one coordinate at its values; None where it may be NaN."""
        if (level, i, w) not in self.known:
            k, low, high, _, _ = self.row(level, i)
            n = int(self.counts[k])
            ends = [self.vector.mul(w, side[:n]) for side in ((low, high) if w > 0 else (high, low))]
            bad = w == 0.0 or any(np.isnan(end).any() for end in ends)
            self.known[level, i, w] = None if bad else ends
        return self.known[level, i, w]

    def group(self, cone: Cone, owner: tuple[int, ...], neurons: list[int], sources: list[list[Any]]) -> None:
        """Adds the hits of neurons that are the same program of sources[n][k], neurons of coordinate k.

        A *state* of coordinate k is what its sources may return at one of its values.  The program is examined once for
        all combinations of states that occur; a neuron is not zero where its states are such a combination.
        """
        tables: list[States] = []
        for k, n in enumerate(self.counts.tolist()):
            different = list(dict.fromkeys(parts[k] for parts in sources))
            rows = [np.stack([end for s in part for end in self.weighted(*s)] or [np.zeros(n)]) for part in different]
            tables.append(states_of({part: i for i, part in enumerate(different)}, np.stack(rows)))
        found = self.combinations(cone.program, owner, tables)
        by_first: dict[int, list[int]] = {}
        for h, state in enumerate(found[0][:, 0].tolist()):
            by_first.setdefault(state, []).append(h)
        places, ends = found[0].tolist(), found[1]
        where = [t.places(found[0][:, k]) for k, t in enumerate(tables)]
        strides = self.strides.tolist()
        neuron, keys, which = [], [], []
        for j, parts in zip(neurons, sources, strict=True):
            mine = [w.get(t.index[part], {}) for w, t, part in zip(where, tables, parts, strict=True)]
            for state in mine[0]:
                for h in by_first[state]:
                    for point in product(*(here.get(s, ()) for here, s in zip(mine, places[h], strict=True))):
                        neuron.append(j)
                        keys.append(sum(i * s for i, s in zip(point, strides, strict=True)))
                        which.append(h)
            if len(keys) > MOST_PLACES << 4:
                raise Unsupported("the neurons of the last hidden layer are not zero at too many places")
        if keys:
            at = np.searchsorted(self.keys, keys)
            at[at == len(self.keys)] = 0
            listed = np.flatnonzero(self.keys[at] == keys)  # the grid may have more points than the table
            chosen = np.array(which)[listed]
            self.neuron.append(np.array(neuron)[listed])
            self.point.append(self.by_key[at[listed]])
            self.low.append(ends[chosen, 0])
            self.high.append(ends[chosen, 1])

    def combinations(self, program: Program, owner: tuple[int, ...], tables: list[States]) -> Any:
        """The combinations of states at which a program is not zero, and its least and largest value there."""
        counts = np.array([len(t.values) for t in tables])
        low, high = np.zeros((len(owner), counts.max())), np.zeros((len(owner), counts.max()))
        taken = [0] * len(tables)
        for s, k in enumerate(owner):
            low[s, : counts[k]] = tables[k].values[:, 2 * taken[k]]
            high[s, : counts[k]] = tables[k].values[:, 2 * taken[k] + 1]
            taken[k] += 1
        whole = np.array([(low[s, : counts[k]].min(), high[s, : counts[k]].max()) for s, k in enumerate(owner)])
        count = nonzero_on_boxes(
            program, np.array(owner), low, high, whole[:, 0], whole[:, 1], counts, self.f, self.k, self.places,
            self.ends,
        )  # fmt: skip
        if count < 0:
            raise Unsupported(f"neurons of the last hidden layer are not zero in more than {MOST_PLACES} places")
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
