"""Sparse ReLU networks have gradients that are given functions of the loss derivative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.gradient_functions import AllGradientFunctions, RepresentsGradientFunctions
from fpsmt.constructions.gradient_cells import Circuits
from fpsmt.constructions.gradient_traces import traces
from fpsmt.errors import EvidenceError, Unsupported, UsageError
from fpsmt.floats import Mode, Subnormals
from fpsmt.floats.vector import embeds
from fpsmt.kernel.kernel import Fails, Holds, Open, Outcome, rule
from fpsmt.kernel.trust import VECTOR

MAX_BITS = 16


@rule("traces of gradient functions")
def represents_functions(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Runs the forward pass at every input of the table, and there reverse mode for every finite loss derivative.

    By `constructions.gradient_traces`, as for tables of one loss derivative each.
    """
    if not isinstance(claim, RepresentsGradientFunctions):
        raise EvidenceError(f"traces of gradient functions do not speak about {claim.kind}")
    network, table = claim.network, claim.table
    if network.context.subnormals is not Subnormals.GRADUAL:
        return Open("with flushed subnormals a zero term is not neutral")
    try:
        found = traces(network, table.points, np.tile(table.upstream, (len(table), 1)), False)
    except Unsupported as reason:
        return Open(str(reason))
    if found.reason:
        return Open(f"{found.reason}, at x = {table.points[found.at]}")
    wrong = (found.output != table.values)[:, None] | (found.gradient != table.all_gradients)
    if wrong.any():
        point, place = np.argwhere(wrong)[0].tolist()
        return Fails({"point": point, "upstream": place - table.format.largest_code})
    checked = {"inputs_checked": len(table), "loss_derivatives": len(table.upstream), "layers": len(network.layers)}
    return Holds(checked, (VECTOR,))


@rule("every table of gradient functions")
def all_functions(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """The network of `constructions.gradient_functions` has the values and gradients of every f and g.

    Forward: every neuron n of a circuit is 1 at every input, because its sum adds w and then −w, w finite, from left to
    right, and at last 1; those of the lowest level read hat and t, of which at x only those of x are not 0, and equal
    (computed for all x and z, see "every table of values and gradients").  The output adds w and −w for each circuit,
    and then what holds the value, which is f(x) at x, and has no gradient: it meets y by a weight ±1, and at x the gate
    that it leads to is flat.

    Backwards: constants pass nothing on, and receive the negatives of what n's receive.  A circuit's n's receive sums
    from left to right of products of y, which are computed for every y₀ and every y > 0 and are finite; rounding to
    nearest is symmetric, so that −y brings the negatives, and 0 brings 0.  In the end a circuit has A at y = y₀ and ±0
    at all other y.  So hat of x receives A ⊗ ±w = g(x, y) from the circuit of |y|, from one of its two lowest neurons,
    and ±0 from all others; that is computed for every gap and every g.  From hat it passes unchanged to x.  t receives
    the negative, which ends at the flat b and c.  Layers beyond the least number pass y on by the weight 1.
    """
    if not isinstance(claim, AllGradientFunctions):
        raise EvidenceError(f"every table of gradient functions does not speak about {claim.kind}")
    ctx = claim.context
    if ctx.subnormals is not Subnormals.GRADUAL or ctx.mode is not Mode.RNE:
        return Open("the construction is for rounding to nearest even, without flushed subnormals")
    if ctx.format.bits > MAX_BITS:
        return Open(f"{ctx.format} has too many loss derivatives to run through every circuit")
    if not embeds(ctx.format):
        return Open(f"not every value of {ctx.format} is a float64")
    try:
        circuits = Circuits(ctx)
        if claim.layers < circuits.layers:
            return Open(f"{claim.layers} layers: the construction has {circuits.layers} or more")
        for what, fails in circuits.checks():
            if fails:
                return Open(f"{what}: {fails}")
    except (Unsupported, UsageError) as reason:
        return Open(str(reason))
    return Holds({"inputs": len(circuits.xs), "circuits": ctx.format.largest_code}, (VECTOR,))
