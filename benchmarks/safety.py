"""Safety of a network on a box: branch and bound for every execution, against the same over the reals."""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np

from benchmarks.measure import Row, Rows, benchmark, compare, seconds
from fpsmt.claims import Polytope, Property, Query, Safe
from fpsmt.engines import Options
from fpsmt.engines.safety import splitting
from fpsmt.engines.splitting import Progress
from fpsmt.engines.unsafe_executions import Hunt
from fpsmt.kernel import apply
from fpsmt.networks import Network, parse_execution
from fpsmt.networks.relaxation import Array, Relaxation

SIZES = (5, 50, 50, 50, 50, 5)


class Reals(Relaxation):
    """The same linear bounds without roundings, of the network or of its own arithmetic."""

    def _sum_error(self, k: int, size: Array) -> Any:
        return np.zeros((len(size), self.steps[k].size)), size, np.ones(len(size), dtype=bool)

    def _enlarged(self, k: int, error: Array, inputs: Array) -> Array:
        return np.zeros_like(error)


def _claim() -> Safe:
    rng = np.random.default_rng(3)
    layers: list[Any] = []
    for n, m in pairwise(SIZES):
        w = (rng.normal(size=(m, n)) * 1.2 / np.sqrt(n)).astype(np.float32)
        layers += [(w, (rng.normal(size=m) * 0.1).astype(np.float32)), "relu"]
    network = Network.sequential("float32", SIZES[0], layers[:-1])
    unsafe = Polytope.of([({0: -1, 1: 1}, Fraction(-1, 2), False)])
    box = tuple((Fraction(-1, 8), Fraction(1, 8)) for _ in range(SIZES[0]))
    return Safe(network, parse_execution("any fma=any"), Property((Query(box, (unsafe,)),)))


def _search(claim: Safe, relaxation: Relaxation) -> tuple[list[str], Progress]:
    run = splitting(claim, relaxation, Hunt(claim, relaxation, Random(0)), Options(jobs=1))
    found = run.run(time.monotonic() + 600)
    if not isinstance(found, list):
        raise RuntimeError(f"not proved: {found}")
    return found, run.done


@benchmark("safety")
def safety() -> Rows:
    """A property of a random network of 4 × 50 units in float32, any order and any fma."""
    claim = _claim()
    every, real = (kind(claim.network, claim.executions) for kind in (Relaxation, Reals))
    trees, done = _search(claim, every)
    peer = compare("the same over the reals", lambda: seconds(_search, claim, real))
    yield Row(f"safe in every execution: {done.boxes} boxes", seconds(_search, claim, every), peer=peer)
    data = {"trees": trees}
    yield Row("verifying its tree of splits", seconds(apply, "splits of the inputs", claim, data))
