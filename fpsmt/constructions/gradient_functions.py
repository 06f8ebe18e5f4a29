"""ReLU networks of one input whose gradient is any odd function of the loss derivative: Theorem 3.2 of arXiv 2605.01702.

The paper needs L ≥ 2^(E+1) + 2M + 9 layers; these have twelve, in any format.  Reverse mode through neurons that are
always active is a linear program with roundings, and its input is the loss derivative y.  For each float y₀ > 0 a
*circuit* returns sign(y)·A where |y| = y₀ and 0 for every other y, from three effects of rounding:

* threshold: u = y ⊗ … ⊗ w is 0 below y₀, because less than or half of ω rounds to 0, and ω at y₀.  u⁺ is that of the
  next float;
* absorption: (K ⊗ u⁺ ⊕ u) ⊖ K ⊗ u⁺ is u where u⁺ = 0, that is at y₀ alone, and 0 where u is too small beside K ⊗ u⁺;
* for the least y₀, where K ⊗ u⁺ would overflow at y = Ω, large y are taken away first: y ⊖ (y ⊗ 2^−k) ⊗ 2^k is y below
  2^(k−1)·ω, and 0 from 2^k·2^emin on; what is left between is absorbed in the same way.

Weights do not matter to the forward pass: each neuron of a circuit is ReLU(w ⊗ n ⊖ w ⊗ 1 ⊕ … ⊕ 1) = 1, with a constant
beside every n.  The lowest neurons of the circuits read hat and t of each point (`gradient_tables`) in the same way,
ReLU(… w ⊗ hat ⊖ w ⊗ t … ⊕ 1) with w = g(x, y₀) / A; so at x the gradient of x is g(x, y₀) for y = ±y₀.  Sums run from
left to right.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fpsmt.constructions.gradient_tables import Builder, layer_of, rows_of, targets
from fpsmt.constructions.sparse import Layer, SparseNetwork
from fpsmt.errors import Unsupported
from fpsmt.floats import Context, Format, pow2
from fpsmt.floats.vector import Carriers, arithmetic, from_ordinals
from fpsmt.functions import implementation_named

LAYERS = 12
LEVELS = LAYERS - 3  #: of a circuit, from the loss derivative on; the layers 1, 2 and the last are not part of it

Node = tuple[tuple[int, float], ...]  #: (place in the level above, weight), added from left to right
Level = tuple[Node, ...]


def positive(fmt: Format) -> Carriers:
    """Every finite float above 0, ascending."""
    return from_ordinals(fmt, np.arange(1, fmt.largest_code + 1))


def scales(fmt: Format) -> tuple[float, float]:
    """The two numbers A that circuits return: 1, and the largest gap between floats of the domain."""
    return 1.0, float(pow2(max(fmt.emax - 3 - fmt.fraction_bits, 0)))


def run_circuit(ctx: Context, circuit: Sequence[Level], y: Carriers) -> list[Carriers]:
    """What reverse mode brings to the nodes of each level: the first level reads y itself."""
    vector = arithmetic(ctx)
    above, found = np.asarray(y, float)[None, :], []
    for level in circuit:
        rows = []
        for node in level:
            total = np.zeros(above.shape[1])
            for k, (i, w) in enumerate(node):
                p = vector.mul(above[i], w)
                total = vector.add(total, p) if k else p
            rows.append(total)
        above = np.array(rows)
        found.append(above)
    return found


def threshold(ctx: Context, place: int, scaled: bool) -> tuple[float, float, float]:
    """(a, b, c) with ((y ⊗ a) ⊗ b) ⊗ c = 0 below the float y₀ of this ordinal, and ω at y₀.

    Rounding is monotone, so that the float below y₀ speaks for all below.  a·b brings y₀ near 2^emin; a = 1 and b < 2
    unless `scaled`.
    """
    fmt, vector = ctx.format, arithmetic(ctx)
    p, omega = fmt.fraction_bits, float(fmt.smallest)
    pair = from_ordinals(fmt, np.array([place - 1, place]))
    down = max(int(np.frexp(pair[1])[1]) - 1 - fmt.emin, 0) if scaled else 0
    a, factor = float(pow2(-(down // 2))), float(pow2(down // 2 - down))
    start, fractions = vector.mul(pair, a), 1.0 + np.arange(1 << p) / (1 << p)
    for b in fractions * factor:
        low, high = vector.mul(start, b)
        size = int(np.frexp(high)[1]) - 1
        for shift in (0, -1):
            c = fractions * float(pow2(fmt.emin - p - 1 - size + shift))
            good = (vector.mul(low, c) == 0.0) & (vector.mul(high, c) == omega)
            if good.any():
                return a, float(b), float(c[np.argmax(good)])
    raise Unsupported(f"no weights are 0 below {pair[1]} and ω there in {fmt}")


def circuit(ctx: Context, place: int) -> tuple[Level, ...]:
    """The circuit of the float y₀ of this ordinal; its last level has a node for each of `scales`."""
    fmt = ctx.format
    p, last = fmt.fraction_bits, place == fmt.largest_code
    small = place < 4 << p  # y₀ < 2^(p + 3)·ω
    a, b, c = threshold(ctx, place, not small)
    levels: list[Level]
    if last:
        levels = [(((0, 1.0),),)] * 3 + [(((0, a),),), (((0, b),),), (((0, c),),), (((0, 1.0),),)]
    else:
        a2, b2, c2 = threshold(ctx, place + 1, not small)
        k = float(pow2(p + 3))
        if small:
            levels = [*without_large(fmt), (((0, b2),), ((0, b),))]
        else:
            levels = [(((0, 1.0),),)] * 3 + [(((0, a2),), ((0, a),)), (((0, b2),), ((1, b),))]
        levels += [(((0, c2),), ((1, c),), ((0, c2),)), (((0, k), (1, 1.0), (2, -k)),)]
    up = float(pow2(fmt.emax))
    return (*levels, (((0, up),),), tuple(((0, scale / (up * float(fmt.smallest))),) for scale in scales(fmt)))


def without_large(fmt: Format) -> list[Level]:
    """Four levels: y where y ≤ 2^(p + 3)·ω, and 0 above.

    Q = y ⊖ (y ⊗ 2^−k) ⊗ 2^k, k = p + 4, is y there, 0 from 2^k·2^emin on, and at most 2^(k−1)·ω between, where
    v = y ⊗ 2^−k is at least ω and at most 2^p·ω: so v ⊖ (v ⊗ 2^−k′) ⊗ 2^k′ with k′ = p + 1 is v, and absorbs Q.
    """
    p = fmt.fraction_bits
    k, k2, total = float(pow2(p + 4)), float(pow2(p + 1)), 2 * p + 4
    part = float(pow2(max(total - fmt.emax, 0)))
    strong = float(pow2(total)) / part
    v: Node = ((1, part), (2, -part * k2))
    return [
        (((0, 1.0),), ((0, 1 / k),)),
        (((0, 1.0), (1, -k)), ((1, 1.0),), ((1, 1 / k2),)),
        (v, ((0, 1.0),), v),
        (((0, strong), (1, 1.0), (2, -strong)),),
    ]
