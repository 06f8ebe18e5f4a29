"""Paper B (arXiv 2605.01702) where it fails: small formats, the depths of eight bits, loss derivatives that are 0,
inputs beyond the domain, and gradients that are not odd in the loss derivative.

A case that is expected to be refuted has its least counterexample beside it, as a case that is proved.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from fpsmt.claims import (
    AllGradientTables,
    Case,
    ForAll,
    GradientFunctions,
    Identity,
    RepresentsGradientFunctions,
    cases,
    spec,
)
from fpsmt.constructions.gradient_blocks import Killer
from fpsmt.constructions.gradient_functions import function_network, positive
from fpsmt.constructions.indicators import SIGNS, block_for, exponents, is_indicator
from fpsmt.floats import (
    Format,
    bfloat16,
    context,
    exactly,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    float64,
    ieee,
    pow2,
)
from fpsmt.networks import Network
from fpsmt.smt.unrolling import unroll, unroll_gradient
from fpsmt.terms import (
    BitsSort,
    Term,
    absolute,
    add,
    all_of,
    any_of,
    bits,
    bits_add,
    bits_less,
    bits_sub,
    concat,
    const,
    div,
    eq,
    extract,
    from_bits,
    implies,
    is_finite,
    is_nan,
    is_zero,
    ite,
    le,
    lt,
    mul,
    neg,
    negation,
    relu,
    same,
    sub,
    var,
)

SOURCE = "arXiv 2605.01702"
EIGHT_BITS = [float8_e4m3, float8_e5m2]
ALL = [*EIGHT_BITS, float16, bfloat16, float32, float64]


def number(fmt: Format, value: float | Fraction) -> Term:
    return const(exactly(fmt, Fraction(value)))


# -- formats with few exponents -----------------------------------------------------------------------------

FEW = f"{SOURCE}, released blocks, in formats below its six exponent bits"


@spec(
    "B-indicator-of-small-points",
    source=FEW,
    cases=[
        *cases(fmt=[ieee(4, 2), ieee(4, 3), ieee(4, 4), ieee(5, 3)], sign=SIGNS, first=[True]),
        *cases("refuted", fmt=[ieee(3, 2), ieee(3, 3), ieee(3, 4)], sign=SIGNS, first=[True]),
        *cases(fmt=[ieee(3, 2), ieee(3, 3), ieee(3, 4)], sign=SIGNS, first=[False]),
    ],
)
def indicator_of_small_points(fmt: Format, sign: str, first: bool) -> ForAll:
    """1[x ≥ z] for normal |z| below 2, with A = 2^(t − e_z) rounded into the format.

    False with three exponent bits, but only in the first binade (true without it): there A is 2^(emax + 1), thus ∞.
    """
    ctx, code, x = context(fmt), var("z", BitsSort(fmt.bits)), from_bits(fmt, var("x", BitsSort(fmt.bits)))
    p = fmt.fraction_bits
    power = from_bits(fmt, concat(extract(code, fmt.bits - 1, p), bits(p, 0)))
    slope = div(ctx, number(fmt, pow2(exponents(fmt, "low"))), power)
    block = replace(block_for(ctx, sign, "low", code), slope=slope)
    claim = is_indicator(ctx, sign, "low", code, x, block)
    if not first:
        claim = implies(negation(bits_less(code, bits(fmt.bits, 2 << p))), claim)
    where = f"|z| normal below 2{'' if first else ', not in the first binade'}"
    return ForAll(f"{where}, z {sign}, |x| ≤ M ⇒ network(x; z) = 1[x ≥ z] in {fmt}", claim)


@spec(
    "B-three-killers",
    source=f"{SOURCE}, f₁ of the released code, which has three gradient killers",
    cases=[
        *cases(fmt=[float8_e5m2, ieee(5, 4), ieee(6, 8), bfloat16, float32, float64]),
        *cases("refuted", fmt=[ieee(4, 3), float8_e4m3, ieee(5, 5), float16, ieee(6, 9)]),
    ],
)
def three_killers(fmt: Format) -> ForAll:
    """Every finite gradient comes back as ±0 through three killers: true just where emax ≥ 4p + 1, p fraction bits.

    So six exponent bits do not suffice: in ieee(6, 9), 16 bits, some gradients survive.  `B-killer-threshold` and
    `constructions.gradient_blocks.last_killed` say which.
    """
    y = var("y", fmt)
    back = Killer(fmt, 3).gradient(context(fmt), number(fmt, 1), y)
    return ForAll(f"y finite ⇒ the gradient of three killers at 1 is ±0 in {fmt}", implies(is_finite(y), is_zero(back)))


@spec(
    "B-killer-of-one-fraction-bit",
    source=FEW,
    cases=[*cases("refuted", fmt=[ieee(3, 2), ieee(4, 2), ieee(5, 2)]), *cases(fmt=[ieee(3, 3), ieee(4, 3)])],
)
def killer_of_one_fraction_bit(fmt: Format) -> ForAll:
    """A gradient killer sends 1 to 1.  False with one fraction bit: 1 ⊕ 3 is 4, and no 1 comes out again."""
    one = number(fmt, 1)
    return ForAll(f"the killer at 1 is 1 in {fmt}", same(Killer(fmt, 1).output(context(fmt), one), one))


@spec(
    "B-depth-of-eight-bits",
    source=f"{SOURCE}, appendix C: for four exponent bits once one layer more than 7, once 10 or more",
    cases=cases(fmt=[float8_e4m3], layers=[7, 8, 10]) + cases(fmt=[ieee(4, 3), ieee(4, 5)], layers=[6]),
)
def depth_of_eight_bits(fmt: Format, layers: int) -> AllGradientTables:
    """Every table has a ReLU network of so many layers, sums from left to right: both hold, and 6 is less."""
    return AllGradientTables(context(fmt), layers, "left-to-right")


# -- inputs beyond the domain -------------------------------------------------------------------------------


@spec(
    "B-detector-beyond-the-domain",
    source=f"{SOURCE}, M = 2^(emax − 2); the detectors are those of `constructions.gradient_tables`",
    cases=[
        *cases(fmt=EIGHT_BITS, reach=[0, 1]),
        *cases("refuted", fmt=[*EIGHT_BITS, float16, float32], reach=[2]),
    ],
)
def detector_beyond_the_domain(fmt: Format, reach: int) -> ForAll:
    """hat = ReLU(ReLU(x ⊖ z⁻) ⊖ ReLU(2x ⊖ 2z)) is z − z⁻ at x = z, else 0, for |z|, |x| ≤ 2^reach·M.

    z is no negative power of two, which is read as −z.  In eight bits twice the paper's M will do, although 2x − 2z may
    be infinite there.  Beyond it x − z⁻ may be infinite too, and ∞ − ∞ is no number.
    """
    ctx, code, x = context(fmt), var("z", BitsSort(fmt.bits)), var("x", fmt)
    z, nothing, two = from_bits(fmt, code), number(fmt, 0), number(fmt, 2)
    magnitude = concat(bits(1, 0), extract(code, fmt.bits - 2, 0))
    below = ite(
        lt(nothing, z),
        from_bits(fmt, bits_sub(code, bits(fmt.bits, 1))),
        neg(from_bits(fmt, bits_add(magnitude, bits(fmt.bits, 1)))),
    )
    largest = min(pow2(fmt.emax - 2 + reach), fmt.largest)
    power = all_of(lt(z, nothing), same(extract(code, fmt.fraction_bits - 1, 0), bits(fmt.fraction_bits, 0)))
    inside = all_of(*(le(absolute(v), number(fmt, largest)) for v in (z, x)), negation(power))
    hat = relu(sub(ctx, relu(sub(ctx, x, below)), relu(sub(ctx, mul(ctx, two, x), mul(ctx, two, z)))))
    return ForAll(
        f"|z|, |x| ≤ {float(largest):g} ⇒ the detector of z is z − z⁻ at x = z, else 0, in {fmt}",
        implies(inside, eq(hat, ite(eq(x, z), sub(ctx, z, below), nothing))),
    )


# -- loss derivatives that are 0 ----------------------------------------------------------------------------

ZERO = f"{SOURCE}, Lemma 4.4 (y ≠ 0) and Lemma B.8, which has no such condition"


@spec("B-nothing-from-nothing", source=ZERO, cases=cases(fmt=ALL, step=["product", "sum"]))
def nothing_from_nothing(fmt: Format, step: str) -> ForAll:
    """0 times any float, and a sum of two numbers that are 0 or NaN, is 0 or NaN.

    Reverse mode is made of such products and sums, whatever the network, its depth and the order: for the loss
    derivative 0 it returns 0 or NaN.
    """
    ctx, a, b = context(fmt), var("a", fmt), var("b", fmt)
    nothing = [any_of(is_zero(v), is_nan(v)) for v in (a, b)]
    if step == "product":
        return ForAll("a ∈ {±0, NaN} ⇒ a ⊗ b ∈ {±0, NaN}", implies(nothing[0], _nothing(mul(ctx, a, b))))
    return ForAll("a, b ∈ {±0, NaN} ⇒ a ⊕ b ∈ {±0, NaN}", implies(all_of(*nothing), _nothing(add(ctx, a, b))))


def _nothing(x: Term) -> Term:
    return any_of(is_zero(x), is_nan(x))


@spec(
    "B-any-gradient-from-a-loss-derivative",
    source=ZERO,
    cases=[
        *cases(fmt=[*EIGHT_BITS, ieee(5, 4)], with_zero=[False]),
        *cases("refuted", fmt=[*EIGHT_BITS, float16, float32], with_zero=[True]),
    ],
)
def any_gradient_from_a_loss_derivative(fmt: Format, with_zero: bool) -> ForAll:
    """For normal y some weights u, v of three have ((y ⊗ u) ⊗ v) ⊗ g = g, for every finite g; for y = 0 and g = ω not.

    u makes the significand q of y ⊗ u at most 1.5; v is 1 ⊘ q or a neighbour.  By `B-nothing-from-nothing` no weights
    at all will do for y = 0.
    """
    ctx, code, g = context(fmt), var("y", BitsSort(fmt.bits)), var("g", fmt)
    p, y, one = fmt.fraction_bits, from_bits(fmt, code), number(fmt, 1)
    field = concat(bits(1, 0), extract(code, fmt.bits - 2, p), bits(p, 0))
    scaled = div(ctx, y, from_bits(fmt, field))
    unit = div(ctx, one, from_bits(fmt, field))
    u = ite(lt(number(fmt, 1.5), absolute(scaled)), mul(ctx, number(fmt, 0.75), unit), unit)
    q = mul(ctx, y, u)
    v = div(ctx, one, q)
    tried = [add(ctx, v, number(fmt, steps * pow2(-p - 1))) for steps in (-1, 0, 1)]
    found = any_of(*(eq(mul(ctx, mul(ctx, q, w), g), g) for w in tried))
    least, most = number(fmt, pow2(fmt.emin)), number(fmt, pow2(fmt.emax - 2))
    normal = all_of(le(least, absolute(y)), le(absolute(y), most))
    here = any_of(is_zero(y), normal) if with_zero else normal
    zero = " or 0" if with_zero else ""
    claim = implies(all_of(here, is_finite(g)), found)
    return ForAll(f"y normal{zero}, |y| ≤ M, g finite ⇒ ∃ u, v: ((y ⊗ u) ⊗ v) ⊗ g = g in {fmt}", claim)


# -- gradients that are not odd -------------------------------------------------------------------------------

ODD = f"{SOURCE}, Theorem 3.2 asks for g(x, −y) = −g(x, y)"


@spec(
    "B-steps-are-odd",
    source=ODD,
    cases=[
        *cases(ctx=[str(context(fmt)) for fmt in ALL], step=["product", "sum"]),
        *cases("refuted", ctx=["float8_e5m2:rtp", "float16:rtp"], step=["product", "sum"]),
    ],
)
def steps_are_odd(ctx: str, step: str) -> ForAll:
    """(−a) ⊗ w = −(a ⊗ w) and (−a) ⊕ (−b) = −(a ⊕ b) as numbers, or both sides are NaN.

    Reverse mode at one x is made of such steps, with weights that do not depend on the loss derivative y: so its
    gradient is odd in y, in every network and every order.  With directed rounding it is not.
    """
    where = context(ctx)
    a, b = var("a", where.format), var("b", where.format)
    operation, other = (mul, b) if step == "product" else (add, neg(b))
    left, right = operation(where, neg(a), other), neg(operation(where, a, b))
    symbol = "(−a) ⊗ b = −(a ⊗ b)" if step == "product" else "(−a) ⊕ (−b) = −(a ⊕ b)"
    return ForAll(f"{symbol} in {where}", any_of(eq(left, right), all_of(is_nan(left), is_nan(right))))


def two_units(fmt: Format) -> Network:
    """1 – 2 – 1 units with biases; the weights are variables where it is used."""
    return Network.sequential(fmt.name, 1, [([[1], [1]], [0, 0]), "relu", ([[1, 1]], [0])])


@spec(
    "B-same-gradient-twice",
    source=ODD,
    cases=[
        *cases(fmt=[float8_e5m2, float16, float32], other=[-1]),
        *cases("refuted", fmt=[float8_e5m2, float16, float32], other=[2]),
    ],
)
def same_gradient_twice(fmt: Format, other: int) -> ForAll:
    """No weights of two ReLU units have one gradient, not 0, for the loss derivatives 1 and −1: g is not even.

    For 1 and 2 some weights do, which no network in real numbers can: there gradients are multiples of y.
    """
    net, x = two_units(fmt), var("x", fmt)
    w = [var(f"w{k}", fmt) for k in range(4)]
    offsets = [var(f"b{k}", fmt) for k in range(2)]
    weights = {"affine1": [[w[0]], [w[1]]], "affine2": [[w[2], w[3]]]}
    run = unroll(net, [x], weights=weights, biases={"affine1": offsets})
    one, two = (unroll_gradient(run, [number(fmt, y)], prefix=f"{y}.").gradient[0] for y in (1, other))
    wanted = all_of(run.valid, eq(one, two), negation(is_zero(one)), *map(is_finite, [*w, *offsets, x, one]))
    return ForAll(f"no weights have one gradient for y = 1 and y = {other} in {fmt}", negation(wanted))


# -- gradients that no network in real numbers has ------------------------------------------------------------

REAL = f"{SOURCE}, gradients that no network in real numbers has; the argument is the chain rule"


@spec("B-real-gradients-are-proportional", source=REAL, cases=[Case({})])
def real_gradients_are_proportional() -> Identity:
    """In real numbers ∇(φ∘f)(x) = φ′(f(x))·∇f(x): for two losses, with y and z for φ′, the gradients are as y to z."""
    return Identity("(y*s)*z", "(z*s)*y", "g = y·s and h = z·s ⇒ g·z = h·y, s = ∇f(x)")


@spec("B-gradients-that-are-not-proportional", source=REAL, cases=cases(fmt=[float8_e4m3]))
def gradients_that_are_not_proportional(fmt: Format) -> RepresentsGradientFunctions:
    """A network whose gradient at −4, 0 and 3 is 1 for every loss derivative y > 0, from ω to Ω, and −1 for y < 0.

    For y = 1 and y = 2 a network in real numbers has the gradients s and 2s.
    """
    points, levels = np.array([-4.0, 0.0, 3.0]), np.array([96.0, 0.0, -2.5])
    table = GradientFunctions(fmt, points, levels, np.ones((3, len(positive(fmt)))))
    network = function_network(context(fmt), table.points, table.values, table.gradients)
    return RepresentsGradientFunctions(network, table)


@spec(
    "B-gradient-of-the-identity",
    source=REAL,
    cases=[
        *cases("refuted", fmt=[*EIGHT_BITS, float16, float32], below=[False]),
        *cases(fmt=[*EIGHT_BITS, float16, float32, float64], below=[True]),
    ],
)
def gradient_of_the_identity(fmt: Format, below: bool) -> ForAll:
    """relu(2^k·x)·2^−k, k = emax, is relu(x) in real numbers, with the slope 1 at x = 1; executed, y comes back as y.

    False: 2^−k ⊗ y is rounded among the subnormals, and exactly the |y| up to 2^−p come back as 0.
    """
    y, one, k = var("y", fmt), number(fmt, 1), fmt.emax
    net = Network.sequential(fmt.name, 1, [([[float(pow2(k))]], None), "relu", ([[float(pow2(-k))]], None)])
    back = unroll_gradient(unroll(net, [one]), [y]).gradient[0]
    if not below:
        return ForAll(f"y finite ⇒ the gradient at 1 is y in {fmt}", implies(is_finite(y), eq(back, y)))
    limit = le(absolute(y), number(fmt, pow2(-fmt.fraction_bits)))
    vanishes = all_of(implies(limit, is_zero(back)), implies(is_zero(back), limit))
    return ForAll(f"y finite ⇒ (the gradient is 0 ⇔ |y| ≤ 2^−p) in {fmt}", implies(is_finite(y), vanishes))
