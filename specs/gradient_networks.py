"""Paper B (arXiv 2605.01702), Theorem 3.1 at some points: networks with given values and executed gradients.

For every x of the domain [−M, M], M = 2^(emax − 2), and the sums of both passes from left to right.
"""

from fpsmt.claims import ForAll, cases, spec
from fpsmt.constructions.gradient_blocks import in_domain, point_indicator
from fpsmt.constructions.gradient_networks import LEFT_TO_RIGHT, Block, Point, indicator_layers, joined, network_of
from fpsmt.constructions.indicators import CASES, SIGNS, case_holds
from fpsmt.floats import Format, context, exactly, float8_e5m2, float16, from_ordinal, largest, nan
from fpsmt.smt.unrolling import unroll, unroll_gradient
from fpsmt.terms import (
    BitsSort,
    ChoiceSort,
    Term,
    all_of,
    bits,
    bits_add,
    bits_sub,
    choose,
    const,
    eq,
    implies,
    ite,
    neg,
    same,
    var,
)

SOURCE = "arXiv 2605.01702"


def points(fmt: Format) -> list[Point]:
    """3; −4, a power of two; the last float below 2: at the last two the released f₂ has no gradient."""
    below_two = from_ordinal(fmt, exactly(fmt, 2).ordinal - 1)
    table = [(3.0, -2.5, 0.25, 1.0), (-4.0, 96.0, -7.0, 2.0), (float(below_two), 0.5, -0.25, -1.0)]
    return [Point(*(exactly(fmt, v) for v in row)) for row in table]


def looked_up(x: Term, fmt: Format, column: str, otherwise: float) -> Term:
    """The entry of the table at x."""
    found = const(exactly(fmt, otherwise))
    for point in points(fmt):
        found = ite(eq(x, const(point.at)), const(getattr(point, column)), found)
    return found


@spec(
    "B-values-and-gradients-at-points",
    source=f"{SOURCE}, Theorem 3.1 for three points",
    cases=cases(fmt=[float8_e5m2]) + cases(fmt=[float16], quick=False),
)
def values_and_gradients(fmt: Format) -> ForAll:
    """f₂ # f₁ has the three values, and the three gradients for the upstream gradients 1, 2, −1; else 0 and ±0."""
    net, x = network_of(context(fmt), points(fmt)), var("x", fmt)
    run = unroll(net, [x], LEFT_TO_RIGHT)
    back = unroll_gradient(run, [looked_up(x, fmt, "upstream", 1)], LEFT_TO_RIGHT)
    value = eq(run.output[0], looked_up(x, fmt, "value", 0))
    slope = eq(back.gradient[0], looked_up(x, fmt, "gradient", 0))
    statement = f"|x| ≤ M ⇒ value and D^AD of the network are those of the table in {fmt}"
    return ForAll(statement, implies(in_domain(fmt, x), all_of(value, slope)))


@spec(
    "B-indicator-is-a-network",
    source=f"{SOURCE}, released indicator of a point",
    cases=cases(fmt=[float8_e5m2], sign=SIGNS, case=CASES, quick=False),
)
def indicator_is_a_network(fmt: Format, sign: str, case: str) -> ForAll:
    """The formulas of `specs.gradient_blocks` for 1[x = z] and its gradient are those of this network, bit for bit.

    The network has the weights as terms in z, unrolled in both passes; for all z and x, and six upstream gradients.
    """
    ctx, code, x = context(fmt), var("z", BitsSort(fmt.bits)), var("x", fmt)
    upstream = [exactly(fmt, v) for v in (1, -3, 0)] + [largest(fmt), nan(fmt), from_ordinal(fmt, -1)]
    y = choose(var("which y", ChoiceSort(len(upstream))), [const(v) for v in upstream])
    point = point_indicator(ctx, sign, case, code)
    one = exactly(fmt, 1)
    shape = joined(ctx, [Block((*indicator_layers(ctx, one, False), (({0: one}, None),)))])
    zero = const(exactly(fmt, 0))
    low, high = point.low, point.high
    signs = [[const(exactly(fmt, each.sign))] for each in (low, high)]
    a, b = neg(low.slope), neg(high.slope)
    weights = {
        "affine1": signs,
        "affine2": [[a, zero], [a, zero], [zero, b], [zero, b]],
        "affine3": [[low.scale, neg(low.scale), zero, zero], [zero, zero, high.scale, neg(high.scale)]],
    }
    biases = {"affine1": [low.shift, high.shift], "affine2": [low.bias1, low.bias2, high.bias1, high.bias2]}
    run = unroll(shape, [x], LEFT_TO_RIGHT, weights=weights, biases=biases)
    back = unroll_gradient(run, [y], LEFT_TO_RIGHT)
    following = bits_add(code, bits(fmt.bits, 1)) if sign == "positive" else bits_sub(code, bits(fmt.bits, 1))
    here = all_of(case_holds(fmt, case, code), case_holds(fmt, case, following))
    both = all_of(same(run.output[0], point.output(ctx, x)), same(back.gradient[0], point.gradient(ctx, x, y)))
    return ForAll(f"|z|, |z⁺| {case}, z {sign} ⇒ network and formula agree in {fmt}", implies(here, both))
