"""Sparse ReLU networks have the values and gradients of a table; every table of the domain has such a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.gradient_representation import AllGradientTables, GradientTable, RepresentsGradients
from fpsmt.claims.gradient_vectors import VectorGradients
from fpsmt.constructions.gradient_cells import Cells
from fpsmt.constructions.gradient_flat_cells import FlatCells
from fpsmt.constructions.gradient_passes import both_passes
from fpsmt.constructions.gradient_traces import traces
from fpsmt.constructions.gradient_wide import WideCells
from fpsmt.constructions.sparse import SparseNetwork
from fpsmt.errors import EvidenceError, Unsupported, UsageError
from fpsmt.floats import Mode, Subnormals
from fpsmt.floats.vector import embeds
from fpsmt.kernel.kernel import Fails, Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS, VECTOR

LISTED_BITS = 16  #: formats whose domains are listed


@rule("traces of values and gradients")
def represents_gradients(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Runs both passes at every input of the table, through the neurons that are not zero or not at their default.

    `constructions.gradient_traces` computes N(x) and D^AD(N, x; h(x)), and says why the neurons and gradients that it
    passes over are zero.  Products of zeros are neutral, so that the sums that are left run in the claim's order; with
    any order, a sum of more than two terms that are not zero has one result in all its orders, or nothing is said.
    Results are compared with the table as numbers.
    """
    if not isinstance(claim, RepresentsGradients):
        raise EvidenceError(f"traces of values and gradients do not speak about {claim.kind}")
    network, table = claim.network, claim.table
    if network.context.subnormals is not Subnormals.GRADUAL:
        return Open("with flushed subnormals a zero term is not neutral")
    try:
        found = traces(network, table.points, table.upstream, claim.sums == "any")
    except Unsupported as reason:
        return Open(str(reason))
    if found.reason:
        if claim.replay({"point": found.at}).violates:
            return Fails({"point": found.at})
        return Open(f"{found.reason}, at x = {table.points[found.at]}")
    wrong = (found.output != table.values) | (found.gradient != table.gradients)
    if wrong.any():
        return Fails({"point": int(np.argmax(wrong))})
    return Holds({"inputs_checked": len(table), "neurons": network.neurons, "layers": len(network.layers)}, (VECTOR,))


@rule("both passes at every input")
def both_passes_everywhere(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Runs both passes from left to right through every neuron, at every input of the table; any activation.

    `constructions.gradient_passes` is reverse mode on arrays.  Results are compared with the table as numbers; a result
    that is NaN is not a number of the table.
    """
    if not isinstance(claim, RepresentsGradients):
        raise EvidenceError(f"both passes at every input do not speak about {claim.kind}")
    if claim.sums != "left-to-right":
        return Open("both passes are run from left to right, and the claim is about every order")
    return passes_compared(claim.network, claim.table)


def passes_compared(network: SparseNetwork, table: GradientTable | VectorGradients) -> Outcome:
    """Both passes at every input of a table, of one number or several."""
    try:
        output, gradient = both_passes(network, table.points, table.upstream)
    except Unsupported as reason:
        return Open(str(reason))
    same = (gradient == table.gradients).reshape(len(table), -1).all(axis=1)
    wrong = ~((output == table.values) & same)
    if wrong.any():
        return Fails({"point": int(np.argmax(wrong))})
    return Holds({"inputs_checked": len(table), "layers": len(network.layers)}, (VECTOR, BALLS))


@rule("every table of values and gradients")
def all_gradient_tables(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """The network of `constructions.gradient_tables` has the values and gradients of every table over X.

    Layers 1 and 2 do not depend on the table.  For every z of X their neurons are computed at every x of X: at x = z,
    hat and t are γ, b and c are flat, a is not; at x ≠ z, hat and t are 0.  From layer 3 on the neurons of z read only
    those of z and constants.  So at x the neurons of z ≠ x have the values that they have for hat = t = 0, with which
    those of the last hidden layer are 0: they add ±0 to the output, and return ±0.  What is left is the cell of x
    itself.  It depends on γ, v = f(x), h = h(x), g = g(x), and is computed for every value that these can take:

    * s = 1 for t = γ and 0 for t = 0, for every γ; gates B ⊖ B ⊗ 1 = 0, which are flat;
    * β ⊕ c = v for every v, and the neurons of β and |c| are 0 with their gates on;
    * A ⊗ w₃ = |g| with w₃ ⊗ γ finite for every γ and g, and (|h| ⊗ w₅) ⊗ w₄ = A for every A that occurs and every
      h ≠ 0: A depends on γ and g alone, so that these two cover all (γ, g, h).  The mode of rounding is symmetric, so
      that signs go with the products, and a gradient passes the layers 2 and 1 by the weights 1 and ±1, unchanged.

    Backwards at x: the other things that a gradient meets are constants, which pass nothing on, and flat neurons: c, b,
    gates.  It reaches these by weights of size 1, or multiplied by what also reaches an n; so it is finite there, and
    ends as ±0.  t passes g on to b and c only.  For every order: sums have at most two terms that are not zero beside
    the bias, but the one of layer 5, w₅ − w₅ − B, whose trees are all at most −B/2 because w₅ ≤ B/4.  Layers beyond
    the least number are identities of numbers that are not negative.

    Formats of more than 16 bits: what is not run through there is proved in `constructions.gradient_wide`.
    """
    if not isinstance(claim, AllGradientTables):
        raise EvidenceError(f"every table of values and gradients does not speak about {claim.kind}")
    if claim.activation != "relu":
        return Open(f"the construction is for relu, and the claim about {claim.activation}")
    ctx = claim.context
    if ctx.subnormals is not Subnormals.GRADUAL or ctx.mode is not Mode.RNE:
        return Open("the construction is for rounding to nearest even, without flushed subnormals")
    if not embeds(ctx.format):
        return Open(f"not every value of {ctx.format} is a float64")
    try:
        cells = (WideCells if ctx.format.bits > LISTED_BITS else Cells)(ctx, claim.sums == "any")
        if claim.layers < cells.layers:
            return Open(f"{claim.layers} layers: the construction has {cells.layers} or more")
        for what, fails in cells.checks():
            if fails:
                return Open(f"{what}: {fails}")
    except (Unsupported, UsageError) as reason:  # a NaN, where the format has none or no place for it
        return Open(str(reason))
    return Holds({"inputs": cells.points, "gaps": len(cells.gaps), "least layers": cells.layers}, (VECTOR,))


@rule("every table by flat neurons")
def all_tables_by_flat_neurons(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """The network of `constructions.gradient_flat`, with weights that allow |h| = H, has every table over X.

    Write s = σ′(0), low = σ(−∞), and flat for σ = low and σ′ = 0, as up to some float.  Sums run from left to right.

    *Forwards.*  For z of X the sums of f₊ and f₋ are monotone in x, because ⊗ and ⊕ are; they are computed at z and its
    neighbours, and σ is bounded on half-lines, so that at every x ≠ z one of b and c is at least `on`, and the other is
    low and flat; at x = z both are.  Gates follow in the same way.  Beside z then

    * the last n and k are flat, whatever the n below is: bounded as σ is; or, where σ is not bounded, 0, because n and
      k of layer 3 are both low there: `on` exceeds what w₃ makes of a′, which is bounded, as σ is from below;
    * every m is 0: flat with low = 0, or σ(0) where both neurons below it are low, or σ(y ⊖ B ⊗ 1) = 0.

    At z: a, a′ and n are σ(0), as each sum is exactly 0; the last n and k are σ(y₀) alike.  So at every x the terms
    u ⊗ n ⊖ u ⊗ k of the output, which are neighbours, cancel to 0, one pair after the other, and Σ w ⊗ m over x's own m
    is f(x), which is computed for every value; other m add ±0, which is neutral.  ±∞ occur in layer 1, and in b, c and
    gates beside their points, only one in a sum, so that nothing is NaN.

    *Backwards at x.*  Of z ≠ x: the last n and k are flat and receive finite numbers, so that they pass on ±0; so do
    the m, or what they pass is finite and arrives at flat neurons.  Below, finite weights and slopes make ±0 of it.  Of
    x itself: k, m and n pass finite numbers to gates, b and c, which are flat there.  What is left is the path

        (((h ⊗ u ⊗ σ′(y₀)) ⊗ w₅ …) ⊗ s ⊗ w₄) ⊗ s = A,   (A ⊗ w₃) ⊗ s (⊗ τ ⊗ s) ⊗ V = |g|, or half of it twice,

    computed for every h and every A that occurs, and for every g; A depends on g alone, so that all pairs are covered.
    Rounding to nearest is symmetric: signs go with the products.  x receives this and ±0.
    """
    if not isinstance(claim, AllGradientTables):
        raise EvidenceError(f"every table by flat neurons does not speak about {claim.kind}")
    if claim.sums != "left-to-right":
        return Open("sums of the construction run from left to right, and the claim is about every order")
    if not embeds(claim.context.format):
        return Open(f"not every value of {claim.context.format} is a float64")
    try:
        cells = FlatCells(claim.context, claim.activation, claim.layers, claim.largest_input, claim.largest_upstream)
        if cells.pads < 0:
            return Open(f"{claim.layers} layers: the construction has {claim.layers - cells.pads} or more")
        for what, fails in cells.checks():
            if fails:
                return Open(f"{what}: {fails}")
    except Unsupported as reason:
        return Open(str(reason))
    return Holds({"inputs": len(cells.xs), "values": len(cells.numbers), "layers": claim.layers}, (VECTOR, BALLS))
