"""Networks with given detectors take every value at every input: Theorem 5 of paper A, for one set of inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.universal import Universal
from fpsmt.constructions.cones import Hits, last_hidden
from fpsmt.constructions.ending import MOST_PARTS, weights_for
from fpsmt.constructions.shape import Shape
from fpsmt.constructions.sparse import SparseNetwork, network_from_data
from fpsmt.errors import EvidenceError, Unsupported
from fpsmt.floats import Context
from fpsmt.floats.vector import Carriers, are_numbers, arithmetic, values
from fpsmt.functions import Table
from fpsmt.kernel.kernel import Holds, Open, Outcome, rule
from fpsmt.kernel.rules.representation import not_neutral, spot_check
from fpsmt.kernel.trust import BALLS, VECTOR

MOST_RESULTS = 64  #: different results of detectors


@rule("representation of every function")
def universal(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Data: `detectors`, a network with an output for each x ∈ X: a sum of a few neurons of the last hidden layer.

    Let D(x) be these neurons.  Checked, for the layers below the last:

    1. `cones.last_hidden` bounds every neuron of the last hidden layer at every input, over all orders of the sums
       below it.  Each neuron of D(x) is, whatever the order, one finite number r ≠ 0 at x, and ±0 at all other
       inputs; it is in no other D(x′).
    2. For each list of results (r₁, …, rₖ) that some D(x) has, and every number y that the format has besides 0,
       finite weights wᵢ are found with which the sum of the wᵢ ⊗ rᵢ is y in every tree (`made`), by the vectorised
       arithmetic: one product; two, which have one tree since ⊕ commutes; or several of one sign that are multiples of
       a power of two u and have the exact sum T, T/u ≤ 2^precision.  The sums of fewer than all of them are then
       multiples of u below T in size, and floats if T is at most the first value Ω + u′ beyond Ω, u′ the distance of
       the largest floats; so they are exact, and the last operation rounds T.

    Let f: X → F ∪ {±inf}.  The last layer whose terms are, for each x with f(x) ≠ 0, the weights for y = f(x) on D(x),
    with bias 0, gives f: at x the products of all other terms are v ⊗ ±0 = ±0 for a finite v, and z ⊕ ±0 = z for every
    z ≠ 0 (subnormals are kept), ±inf among them.  So in every summation tree over all terms the products that are zero
    are neutral, up to the sign of a zero result, and what is left is a tree over the products of D(x), y = f(x) by 2.
    Where f(x) = 0 all products are ±0.  More outputs are more rows of the same kind, each
    with its own order.

    Dense: if no activation returns an infinity at any input, a further term of weight 0 adds 0 ⊗ y = ±0 for a finite
    y to its sum, in the hidden layers too, where zero sums of both signs are one place (`intervals`).
    """
    if not isinstance(claim, Universal):
        raise EvidenceError(f"representation of every function does not speak about {claim.kind}")
    network = network_from_data(data["detectors"])
    points, ctx = claim.points, claim.context
    if (network.context, network.implementation, network.inputs) != (ctx, claim.implementation, points.shape[1]):
        raise EvidenceError("the detectors are of another context, activation or number of inputs than the claim")
    if not 2 <= len(network.layers) <= claim.layers:
        raise EvidenceError(f"there are {len(network.layers)} layers: from 2 to {claim.layers} are needed")
    if ctx.format.bits > 16:
        return Open(f"{ctx.format} has too many values to make each of them")
    reason = not_neutral(ctx)
    if reason:
        return Open(reason)
    try:
        hits = last_hidden(network, points)
    except Unsupported as unsupported:
        return Open(str(unsupported))
    results = detected(network, points, hits)
    if isinstance(results, str):
        return Open(results)
    lists = np.unique(results, axis=0)
    if len(lists) > MOST_RESULTS:
        return Open(f"the detectors have {len(lists)} lists of results: at most {MOST_RESULTS}")
    line = values(ctx.format)
    line = np.unique(line[~np.isnan(line)] + 0.0)
    shape = Shape(ctx, claim.implementation)
    for each in lists:
        missed = unreachable(ctx, shape, line, each)
        if len(missed):
            return Open(f"{missed[0]} is not made of {', '.join(str(r) for r in each.tolist() if r)}")
    if claim.dense and not hits.bounded:
        return Open("an activation may return an infinity, which a term of weight 0 makes NaN")
    spot_check(network, points, hits, claim.hash)
    found = {
        "inputs": len(points), "values": len(line), "layers": len(network.layers), "neurons": network.neurons,
        "results": [[r for r in each if r] for each in lists.tolist()], "finite": hits.finite, "bounded": hits.bounded,
    }  # fmt: skip
    return Holds(found, (VECTOR,) if isinstance(claim.implementation.contract, Table) else (VECTOR, BALLS))


def detected(network: SparseNetwork, points: Carriers, hits: Hits) -> Carriers | str:
    """What the detectors of each point return, of shape (n, most), 0 for those that are missing; or why not."""
    last, n = network.layers[-1], len(points)
    counts = np.diff(last.starts)
    if len(counts) != n or not ((counts >= 1) & (counts <= MOST_PARTS)).all():
        return f"there are not one to {MOST_PARTS} detectors for each input"
    if len(np.unique(last.columns)) != len(last.columns):
        return "a neuron is a detector of two inputs"
    owner = np.full(network.layers[-2].size, -1)
    owner[last.columns] = np.repeat(np.arange(n), counts)
    place = np.zeros(len(owner), np.int64)
    place[last.columns] = np.arange(len(last.columns)) - np.repeat(last.starts[:-1], counts)
    mine = owner[hits.neuron] >= 0
    neuron, point, low, high = hits.neuron[mine], hits.point[mine], hits.low[mine], hits.high[mine]
    other = owner[neuron] != point
    if other.any():
        j, x = int(neuron[np.argmax(other)]), points[point[np.argmax(other)]].tolist()
        return f"the detector of {points[owner[j]].tolist()}, neuron {j}, is not zero at {x}"
    fixed = (low == high) & np.isfinite(low) & (low != 0.0)
    if not fixed.all():
        bad = int(np.argmin(fixed))
        return f"a detector of {points[point[bad]].tolist()} is from {low[bad]} to {high[bad]} there"
    results = np.zeros((n, int(counts.max())))
    results[point, place[neuron]] = low
    missing = (results != 0.0).sum(axis=1) != counts
    if missing.any():
        return f"a detector of {points[int(np.argmax(missing))].tolist()} is zero there"
    return results


def unreachable(ctx: Context, shape: Shape, line: Carriers, results: Carriers) -> Carriers:
    """The numbers of `line` for which no weights are found whose products with the results have it as their sum.

    A result 0 is a detector that is missing.  Weights are proposed for the first result, and checked for all.
    """
    wanted = line[line != 0.0]
    weights = np.zeros((len(wanted), len(results)))
    found = weights_for(shape, wanted, float(results[0]))[:, : len(results)]
    weights[:, : found.shape[1]] = found
    return wanted[~made(ctx, wanted, weights, results)]


def made(ctx: Context, wanted: Carriers, weights: Carriers, results: Carriers) -> NDArray[np.bool_]:
    """Where finite weights of shape (values, results) give the wanted value, not 0, in every order.

    A weight 0 is a term left out; a result 0 allows no other.
    """
    fmt, vector = ctx.format, arithmetic(ctx)
    known = are_numbers(fmt, weights)
    good = (known & ((weights == 0.0) | (results != 0.0))).all(axis=1)
    products = vector.mul(np.where(known, weights, 0.0), results)
    count = (weights != 0.0).sum(axis=1)
    # one or two terms: the others are 0, and z ⊕ 0 = z
    order = np.argsort(weights == 0.0, axis=1, kind="stable")
    first = np.take_along_axis(products, order[:, :1], axis=1)[:, 0]
    second = np.take_along_axis(products, order[:, 1:2], axis=1).sum(axis=1)  # 0 where there is no second column
    clash = np.isinf(first) & np.isinf(second) & (first != second)
    pair = np.where(count == 1, first, vector.add(first, np.where(clash, 0.0, second)))
    few = (count >= 1) & (count <= 2) & ~clash & (pair == wanted)
    # several terms: in units of u, the distance of floats about the wanted value, in its direction
    sign, largest, gap = np.sign(wanted), float(fmt.largest), float(np.ldexp(1.0, fmt.emax - fmt.fraction_bits))
    unit = np.ldexp(1.0, np.maximum(np.frexp(np.minimum(np.abs(wanted), largest))[1] - 1, fmt.emin) - fmt.fraction_bits)
    steps = np.where(np.isfinite(products), products, 0.0) / unit[:, None] * sign[:, None]
    whole = (steps == np.floor(steps)) & ((steps > 0.0) | (weights == 0.0)) & (steps <= 2.0**fmt.precision)
    total = np.where(whole, steps, 0.0).sum(axis=1)
    rounded = np.where(total * unit <= largest, sign * total * unit, vector.add(sign * largest, sign * gap))
    beyond = (unit == gap) & (total * unit == largest + gap)
    exact = (total <= 2.0**fmt.precision) & ((total * unit <= largest) | beyond)
    several = (count > 2) & whole.all(axis=1) & np.isfinite(products).all(axis=1) & exact & (rounded == wanted)
    return good & (few | several)
