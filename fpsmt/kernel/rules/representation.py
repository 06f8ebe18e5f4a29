"""A sparse network represents a table for every order of its sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.representation import Reference, Represents, schedules_to_json
from fpsmt.constructions.cones import Hits, last_hidden
from fpsmt.constructions.intervals import all_trees
from fpsmt.constructions.sparse import SparseNetwork
from fpsmt.errors import EvidenceError, InternalError, Unsupported
from fpsmt.floats import Context, Overflow, Subnormals
from fpsmt.floats.compiled import parameters
from fpsmt.floats.vector import Carriers, arithmetic, to_floats
from fpsmt.functions import Table
from fpsmt.kernel.kernel import Fails, Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS, VECTOR
from fpsmt.networks import ANY, Tree, tree_to_json

SPOT_CHECKS = 3  #: inputs at which the compiled values are compared with the reference
OTHER_NEURONS = 20  #: of the last hidden layer that are compared there besides the ones that are not zero
MOST_PRODUCTS = 10  #: of the last layer that are not zero at one input
TRIES = 200  #: random schedules in the search for a counterexample


@rule("representation by indicators")
def representation(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """At each input of the table the network returns the table's value in every order of every sum.

    1. `cones.last_hidden` bounds every neuron of the last hidden layer at every input, over all orders of the sums
       below it, and says where it is not ±0.  Each sum is free to run in its own order.
    2. In the last layer, v ⊗ ±0 = ±0 for a finite weight v, and z ⊕ ±0 = z for z ≠ 0 in every rounding mode, because z
       is a float (subnormals are kept).  So in every summation tree the products that are zero are neutral, up to the
       sign of a zero result, and the sum is that of the others in a tree over them: one product is the sum; two have
       one tree; for more, the least and the largest result over all trees come from the subsets of the products.
       The bias is added last.
    3. The least and the largest result are compared with the table as numbers.

    At a few inputs the values are computed again by the reference arithmetic.  Inputs with zeros stand for both
    zeros: w ⊗ ±0 = ±0, and step 1 takes zeros of both signs as one.
    """
    if not isinstance(claim, Represents):
        raise EvidenceError(f"representation by indicators does not speak about {claim.kind}")
    network, table = claim.network, claim.table
    reason = not_neutral(network.context)
    if reason:
        return Open(reason)
    if len(network.layers) < 2:
        return Open("the network has no hidden layer")
    if (network.layers[-1].weights == 0.0).any():
        return Open("a weight of the last layer is zero: leave the term out")
    try:
        hits = last_hidden(network, table.points)
    except Unsupported as reason:
        return Open(str(reason))
    try:
        low, high = outputs(claim, hits)
    except Unsupported as reason:
        return Open(str(reason))
    wrong = ~((low == table.values) & (high == table.values))
    if wrong.any():
        return _wrong(claim, low, high, wrong)
    spot_check(network, table.points, hits, claim.hash)
    tabled = isinstance(network.implementation.contract, Table)
    found = {
        "inputs_checked": len(table), "neurons": network.layers[-2].size, "different_cones": hits.cones,
        "finite": hits.finite,
    }  # fmt: skip
    return Holds(found, (VECTOR,) if tabled else (VECTOR, BALLS))


def not_neutral(ctx: Context) -> str:
    """Why zero terms are not neutral, or operations not monotone, in the context; empty when they are."""
    if ctx.subnormals is not Subnormals.GRADUAL:
        return "with flushed subnormals a zero term is not neutral"
    if ctx.overflow is Overflow.NAN and ctx.format.has_infinity:
        return "where infinities are values and overflow is NaN, operations are not monotone"
    return ""


def outputs(claim: Represents, hits: Hits) -> tuple[Carriers, Carriers]:
    """The least and the largest value of each output at each input, over all orders; NaN where no bound is known."""
    network, last = claim.network, claim.network.layers[-1]
    low = np.zeros(claim.table.values.shape)
    high = np.zeros(claim.table.values.shape)
    vector = arithmetic(network.context)
    for o in range(last.size):
        here = slice(last.starts[o], last.starts[o + 1])
        weight = np.zeros(network.layers[-2].size)
        weight[last.columns[here]] = last.weights[here]
        used = weight[hits.neuron] != 0.0
        w, point = weight[hits.neuron[used]], hits.point[used]
        a, b = vector.mul(w, hits.low[used]), vector.mul(w, hits.high[used])
        least, most = np.minimum(a, b), np.maximum(a, b)
        count = np.bincount(point, minlength=len(low))
        one = count[point] == 1
        low[point[one], o], high[point[one], o] = least[one], most[one]
        two = np.flatnonzero((count[point] == 2) & (np.diff(point, prepend=-1) != 0))
        low[point[two], o] = vector.add(least[two], least[two + 1])
        high[point[two], o] = vector.add(most[two], most[two + 1])
        infinite = np.isinf(least) | np.isinf(most)
        several = (least != most) & infinite
        unsure = two[(several[two] & infinite[two + 1]) | (infinite[two] & several[two + 1])]
        low[point[unsure], o] = np.nan
        ends = np.concatenate([[0], np.cumsum(count)])
        for x in np.flatnonzero(count > 2):
            mine = slice(ends[x], ends[x + 1])
            low[x, o], high[x, o] = _all_orders(network.context, least[mine], most[mine])
        if last.bias[o] != 0.0:
            low[:, o], high[:, o] = vector.add(low[:, o], last.bias[o]), vector.add(high[:, o], last.bias[o])
    return low, high


def _all_orders(ctx: Context, least: NDArray[Any], most: NDArray[Any]) -> tuple[float, float]:
    """Extremes of the sum of finite terms over all trees (`intervals.all_trees`); NaN twice where a part may be
    infinite, or NaN by overflow."""
    m = len(least)
    if m > MOST_PRODUCTS:
        raise Unsupported(f"{m} products of the last layer are not zero at one input: at most {MOST_PRODUCTS}")
    low, high, single = np.zeros(1 << m), np.zeros(1 << m), 1 << np.arange(m)
    low[single], high[single] = least, most
    known = np.isfinite(least).all() and np.isfinite(most).all() and all_trees(m, parameters(ctx), low, high)
    if not (known and np.isfinite(low[:-1]).all() and np.isfinite(high[:-1]).all()):
        return float("nan"), float("nan")
    return float(low[-1]), float(high[-1])


def _wrong(claim: Represents, low: Carriers, high: Carriers, wrong: NDArray[np.bool_]) -> Outcome:
    """A counterexample among the inputs that are not settled: the usual order, then random ones."""
    order_free = np.argwhere(wrong & (low == high))
    for point, output in [*order_free[:1].tolist(), *np.argwhere(wrong)[:3].tolist()]:
        for schedules in _schedules(claim):
            counterexample = {
                "point": point, "output": output, "schedules": schedules_to_json(schedules, tree_to_json)
            }  # fmt: skip
            if claim.replay(counterexample).violates:
                return Fails(counterexample)
            if low[point, output] == high[point, output]:
                raise InternalError("the compiled value of a network differs from the reference")
    point, output = np.argwhere(wrong)[0].tolist()
    x = claim.table.points[point].tolist()
    return Open(f"at x = {x} output {output} is not settled: from {low[point, output]} to {high[point, output]}")


def _schedules(claim: Represents) -> Iterator[dict[tuple[int, int], Tree]]:
    """None chosen; then random trees for the sums of three or more terms, as long as these are few."""
    yield {}
    sums = [
        (place, i, layer.starts[i + 1] - layer.starts[i])
        for place, layer in enumerate(claim.network.layers[:-1])
        for i in np.flatnonzero(np.diff(layer.starts) > 2).tolist()
    ]
    if not 0 < len(sums) <= 1000:
        return
    rng = Random(0)
    for _ in range(TRIES):
        yield {(place, i): ANY.random_tree(int(n), rng) for place, i, n in sums}


def spot_check(network: SparseNetwork, points: Carriers, hits: Hits, seed: str) -> None:
    """The neurons that are not zero, and some others, by the reference arithmetic at some inputs."""
    rng, last = Random(seed), len(network.layers) - 2
    for point in rng.sample(range(len(points)), min(SPOT_CHECKS, len(points))):
        mine = hits.point == point
        wanted = {int(j): (a, b) for j, a, b in zip(hits.neuron[mine], hits.low[mine], hits.high[mine], strict=True)}
        for j in rng.sample(range(network.layers[last].size), min(OTHER_NEURONS, network.layers[last].size)):
            wanted.setdefault(j, (0.0, 0.0))
        reference = Reference(network, to_floats(network.format, points[point]))
        for j, (a, b) in wanted.items():
            if np.isnan(a) or np.isnan(b):  # no bound is known, and no output needs one
                continue
            y = float(reference.value(last, j))
            if not a <= y <= b:
                raise InternalError(f"neuron {j} is {y!r} by the reference at {points[point]}")
