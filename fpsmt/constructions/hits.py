"""What is found about the last hidden layer, and what the searches for it have in common.  Trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.constructions.intervals import INFINITE, MOST_TERMS, OPEN, RETURNED, Ranges, evaluate, ranges
from fpsmt.constructions.sparse import SparseNetwork
from fpsmt.floats.compiled import parameters
from fpsmt.floats.vector import Carriers

Report = Callable[[str], None]
Program = tuple[Any, Any, Any, Any, Any]


@dataclass(frozen=True)
class Hits:
    """`neuron[h]` is in low[h] … high[h] at `point[h]`, sorted by point; everywhere else neurons are zero.

    `finite`: no activation receives or returns an infinity; `bounded`: none returns one.
    """

    neuron: NDArray[np.int64]
    point: NDArray[np.int64]
    low: Carriers
    high: Carriers
    finite: bool
    bounded: bool
    cones: int  #: that were different


class Search:
    """One search over a network's last hidden layer; `run` says what it found."""

    cones = 0

    def __init__(self, network: SparseNetwork, points: Carriers, report: Report) -> None:
        self.network, self.points, self.report = network, points, report
        self.f: Ranges = ranges(network)
        self.k = parameters(network.context)
        self.whole = whole_program(network)

    def hits(self, neuron: Any, point: Any, low: Any, high: Any) -> Hits:
        order = np.lexsort((neuron, point))
        flags = self.flags()
        finite, bounded = not flags & (OPEN | INFINITE | RETURNED), not flags & (OPEN | RETURNED)
        found = [array[order] for array in (neuron, point, low, high)]
        for array in found:
            array.setflags(write=False)  # kept for others
        return Hits(found[0], found[1], found[2], found[3], finite, bounded, self.cones)

    def flags(self) -> int:
        """Of all hidden neurons, on the box of all inputs at once."""
        q, size = self.network.inputs, self.network.inputs + len(self.whole[3])
        lo, hi = np.empty(size), np.empty(size)
        lo[:q], hi[:q] = self.points.min(axis=0), self.points.max(axis=0)
        room = np.empty(1 << MOST_TERMS), np.empty(1 << MOST_TERMS)
        return int(evaluate(self.whole, q, lo, hi, self.f, self.k, *room))


def whole_program(network: SparseNetwork) -> Program:
    """All hidden neurons, layer by layer, after the network's inputs."""
    q, base = network.inputs, 0
    starts, sources, weights, bias = [np.zeros(1, np.int64)], [], [], []
    for layer in network.layers[:-1]:
        starts.append(layer.starts[1:] + starts[-1][-1])
        sources.append(layer.columns + base)
        weights.append(layer.weights)
        bias.append(layer.bias)
        base = q + sum(map(len, bias)) - layer.size
    parts = [np.concatenate(part) for part in (starts, sources, weights, bias)]
    return parts[0], parts[1], parts[2], parts[3], np.zeros(len(parts[3]), np.bool_)
