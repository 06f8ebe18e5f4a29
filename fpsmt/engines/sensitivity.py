"""Where the spread of a network's outputs comes from, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

import numpy as np
from numpy.typing import NDArray

from fpsmt.networks.batch import run_batch
from fpsmt.networks.bounds import enclosures
from fpsmt.networks.executions import Execution
from fpsmt.networks.interpreter import Executions, execution_of
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Affine
from fpsmt.networks.orders import LEFT_TO_RIGHT

Array = NDArray[np.float64]

DRAWS = 8  #: random schedules that are run for each layer


@dataclass(frozen=True)
class Alone:
    """What one layer does when the sums of all others run from left to right without fma.

    `enclosed`: the largest width of an output's bounds.  `seen`: the largest spread of an output among runs under the
    default and some random schedules of the layer (the same for all inputs): a sample, never a bound.
    """

    node: str
    terms: int
    enclosed: float
    seen: float


def layers_alone(network: Network, inputs: Array, executions: Executions, seed: int = 0) -> list[Alone]:
    """One line for each affine node, over inputs (batch, size); infinite where bounds or outputs are."""
    out = network.output.name
    found: list[Alone] = []
    for node in network.of_kind(Affine):
        how: dict[str, Execution] = {
            other.name: execution_of(executions, other.name) if other is node else _fixed(executions, other.name)
            for other in network.of_kind(Affine)
        }
        low, high = enclosures(network, inputs, executions=how)[out]
        with np.errstate(invalid="ignore"):
            width = float(np.max(np.where(np.isfinite(low + high), high - low, np.inf)))
        terms = max(len(node.columns(i)) for i in range(len(node.weights)))
        found.append(Alone(node.name, terms, width, _seen(network, node, inputs, how, Random(seed))))
    return found


def _fixed(executions: Executions, name: str) -> Execution:
    """The same accumulator and products, from left to right, no fma, the bias last."""
    return replace(execution_of(executions, name), order=LEFT_TO_RIGHT, fma="never", bias="last")


def _seen(network: Network, node: Affine, inputs: Array, how: Mapping[str, Execution], rng: Random) -> float:
    rows = [(i, len(node.columns(i))) for i in range(len(node.weights))]
    runs = []
    for draw in range(DRAWS + 1):
        trees = {n: how[node.name].random_schedule(n, rng, node.bias is not None) for n in {n for _, n in rows}}
        schedules = {(node.name, i): trees[n] for i, n in rows} if draw else {}
        runs.append(run_batch(network, inputs, how, schedules)[network.output.name])
    values = np.stack(runs)
    with np.errstate(invalid="ignore"):
        spread = values.max(axis=0) - values.min(axis=0)
    return float(np.max(np.where(np.isfinite(spread), spread, np.inf)))
