"""Threshold indicators 1[x ≥ z] as ReLU networks of three layers, for every z.

Source: the released blocks of "networks with automatic differentiation that hit values and gradients"
(arXiv 2605.01702).  There the weights are written with a_z, e_z, u₀, ũ₀, c_z, c̃, k.  The same numbers, shorter:

    g = ReLU(shift ⊖ x),  h₁ = ReLU(A(shift − z⁻) ⊖ A⊗g),  h₂ = ReLU(A(shift − z) ⊖ A⊗g),
    1[x ≥ z] = ReLU(S⊗h₁ ⊖ S⊗h₂)          with shift = (top of z's binade)⁻, S = 1 / (A·(z − z⁻)),

and, for 1[x ≤ z], g = ReLU(x ⊖ base), biases A(z⁺ − base) and A(z − base), base = 2^e_z, S = 1 / (A·(z⁺ − z)).
A is the paper's power of two 2^(p−e_z+k).  Weights are float terms in z, so that one formula states the network
for all z at once.  Negative z follows by reflection x ↦ −x.

Where z⁻ is not (1 − u₀/2)·z although z is a power of two (the smallest normal and the subnormals) the published
ũ₀ halves a gap that is a whole one: bias₁ and S differ there, each pair being right with its own partner.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Format, exactly, pow2
from fpsmt.terms import (
    BitsSort,
    Term,
    add,
    all_of,
    bits,
    bits_add,
    bits_less,
    bits_sub,
    concat,
    const,
    extract,
    from_bits,
    implies,
    ite,
    le,
    mul,
    neg,
    negation,
    relu,
    same,
    sub,
)

CASES = ("high", "low", "subnormal")


@dataclass(frozen=True)
class Indicator:
    """The weights of one block, as terms in the code of z > 0 (or z ≥ 0 for `at_most` when subnormal).

    First layer: g = ReLU(sign·x ⊕ shift).  Second: hᵢ = ReLU(biasᵢ ⊖ A⊗g).  Third: ReLU(S⊗h₁ ⊖ S⊗h₂).
    """

    sign: int
    shift: Term
    slope: Term
    bias1: Term
    bias2: Term
    scale: Term

    def output(self, ctx: Context, x: Term) -> Term:
        """The network's output at x.  Every sum has two terms, so that every order is the same order."""
        return self.rest(ctx, self.second(ctx, x))

    def first(self, ctx: Context, x: Term) -> Term:
        """The first layer before its activation: sign·x ⊕ shift."""
        return add(ctx, neg(x) if self.sign < 0 else x, self.shift)

    def second(self, ctx: Context, x: Term) -> Term:
        """A ⊗ g."""
        return mul(ctx, self.slope, relu(self.first(ctx, x)))

    def rest(self, ctx: Context, product: Term) -> Term:
        """The output, given A ⊗ g."""
        h1, h2 = relu(sub(ctx, self.bias1, product)), relu(sub(ctx, self.bias2, product))
        return relu(sub(ctx, mul(ctx, self.scale, h1), mul(ctx, self.scale, h2)))


def domain_bound(fmt: Format) -> Float:
    """M = 2^(emax − 2): the paper's domain for ReLU is [−M, M]."""
    return exactly(fmt, pow2(fmt.emax - 2))


def case_holds(fmt: Format, case: str, code: Term) -> Term:
    """z's code belongs to the case: high (e_z > 0), low (emin ≤ e_z ≤ 0) or subnormal, and 0 ≤ z ≤ M.

    Zero counts as subnormal.
    """
    one_up = exactly(fmt, 2).code
    least_normal = 1 << fmt.fraction_bits
    width = fmt.bits
    below = {"high": domain_bound(fmt).code + 1, "low": one_up, "subnormal": least_normal}
    above = {"high": one_up, "low": least_normal, "subnormal": 0}
    if case not in CASES:
        raise UsageError(f"unknown case {case!r}: write one of {', '.join(CASES)}")
    return all_of(bits_less(code, bits(width, below[case])), negation(bits_less(code, bits(width, above[case]))))


def exponents(fmt: Format, case: str) -> int:
    """t with A·2^e_z = 2^t (the paper's p + k) in the normal cases; in the subnormal case A = 2^t itself."""
    e0 = (1 << (fmt.exponent_bits - 2)) - 1
    return {"high": e0, "low": 3 - e0, "subnormal": 3 - e0 - fmt.emin}[case]


def low_part(fmt: Format, code: Term) -> Term:
    """The fraction field alone: a subnormal's code."""
    return concat(bits(fmt.bits - fmt.fraction_bits, 0), extract(code, fmt.fraction_bits - 1, 0))


def slope_of(fmt: Format, t: int, code: Term) -> Term:
    """A = 2^(t − e_z) for normal z: its exponent field is t + 2·bias − the field of z."""
    p = fmt.fraction_bits
    field = bits_sub(bits(fmt.exponent_bits, t + 2 * fmt.bias), extract(code, fmt.bits - 2, p))
    return from_bits(fmt, concat(bits(1, 0), field, bits(p, 0)))


def scaled(fmt: Format, t: int, code: Term) -> Term:
    """A·z = a_z·2^t for normal z: z with its exponent replaced by t."""
    p = fmt.fraction_bits
    return from_bits(fmt, concat(bits(1, 0), bits(fmt.exponent_bits, t + fmt.bias), extract(code, p - 1, 0)))


def number(fmt: Format, x: Fraction) -> Term:
    return const(exactly(fmt, x))


def at_least(ctx: Context, case: str, code: Term) -> Indicator:
    """1[x ≥ z] for z > 0 with this code."""
    fmt = ctx.format
    p, width, t = fmt.fraction_bits, fmt.bits, exponents(fmt, case)
    if case == "subnormal":
        slope, scale = number(fmt, pow2(t)), number(fmt, 1 / (pow2(t) * fmt.smallest))
        fill = fill_of(code, p)  # all ones below the leading one
        gap = low_part(fmt, bits_sub(fill, code))
        bias1 = mul(ctx, slope, from_bits(fmt, bits_add(gap, bits(width, 1))))
        bias2 = mul(ctx, slope, from_bits(fmt, gap))
        return Indicator(-1, from_bits(fmt, fill), slope, bias1, bias2, scale)
    shift = from_bits(fmt, concat(extract(code, width - 1, p), bits(p, (1 << p) - 1)))
    # z − z⁻ is half an ulp at a power of two, but a whole one at the smallest normal
    halved = all_of(same(extract(code, p - 1, 0), bits(p, 0)), negation(same(code, bits(width, 1 << p))))
    scale = ite(halved, number(fmt, pow2(p - t + 1)), number(fmt, pow2(p - t)))
    az = scaled(fmt, t, code)
    whole = sub(ctx, number(fmt, pow2(t + 1)), az)
    bias1 = ite(halved, number(fmt, (1 - pow2(-p - 1)) * pow2(t)), whole)
    bias2 = sub(ctx, number(fmt, (2 - pow2(-p)) * pow2(t)), az)
    return Indicator(-1, shift, slope_of(fmt, t, code), bias1, bias2, scale)


def at_most(ctx: Context, case: str, code: Term) -> Indicator:
    """1[x ≤ z] for z ≥ 0 with this code."""
    fmt = ctx.format
    p, width, t = fmt.fraction_bits, fmt.bits, exponents(fmt, case)
    if case == "subnormal":
        slope, scale = number(fmt, pow2(t)), number(fmt, 1 / (pow2(t) * fmt.smallest))
        leading = leading_of(code, p)
        gap = low_part(fmt, bits_sub(code, leading))
        bias1 = mul(ctx, slope, from_bits(fmt, bits_add(gap, bits(width, 1))))
        bias2 = mul(ctx, slope, from_bits(fmt, gap))
        return Indicator(1, neg(from_bits(fmt, leading)), slope, bias1, bias2, scale)
    base = from_bits(fmt, concat(extract(code, width - 1, p), bits(p, 0)))
    az = scaled(fmt, t, code)
    bias1 = sub(ctx, az, number(fmt, (1 - pow2(-p)) * pow2(t)))
    bias2 = sub(ctx, az, number(fmt, pow2(t)))
    return Indicator(1, neg(base), slope_of(fmt, t, code), bias1, bias2, number(fmt, pow2(p - t)))


def _by_leading_bit(code: Term, p: int, value: dict[int, int], otherwise: int) -> Term:
    assert isinstance(code.sort, BitsSort)
    width = code.sort.width
    result = bits(width, otherwise)
    for place in range(p):
        result = ite(bits_less(code, bits(width, 1 << place)), result, bits(width, value[place]))
    return result


def fill_of(code: Term, p: int) -> Term:
    """2^(j+1) − 1 for a subnormal code with its leading one at bit j."""
    return _by_leading_bit(code, p, {j: (2 << j) - 1 for j in range(p)}, 0)


def leading_of(code: Term, p: int) -> Term:
    """2^j for a subnormal code with its leading one at bit j; 0 for 0."""
    return _by_leading_bit(code, p, {j: 1 << j for j in range(p)}, 0)


SIGNS = ("positive", "nonpositive")


def block_for(ctx: Context, sign: str, case: str, code: Term) -> Indicator:
    """1[x ≥ z] where |z| has this code: directly for z > 0, by reflection (x ≥ −|z| ⇔ −x ≤ |z|) for z ≤ 0."""
    if sign not in SIGNS:
        raise UsageError(f"unknown sign {sign!r}: write one of {', '.join(SIGNS)}")
    if sign == "positive":
        return at_least(ctx, case, code)
    block = at_most(ctx, case, code)
    return replace(block, sign=-block.sign)


def is_indicator(ctx: Context, sign: str, case: str, code: Term, x: Term, block: Indicator | None = None) -> Term:
    """For z of this sign whose magnitude is in the case, and |x| ≤ M: the output is 1 where x ≥ z, else 0.

    `block` replaces the paper's weights by others.
    """
    fmt = ctx.format
    block = block or block_for(ctx, sign, case, code)
    magnitude, bound = from_bits(fmt, code), domain_bound(fmt)
    here = all_of(case_holds(fmt, case, code), le(const(-bound), x), le(x, const(bound)))
    if sign == "positive" and case == "subnormal":
        here = all_of(here, negation(same(code, bits(fmt.bits, 0))))
    truth = le(magnitude if sign == "positive" else neg(magnitude), x)
    one, zero = const(exactly(fmt, 1)), const(exactly(fmt, 0))
    return implies(here, same(block.output(ctx, x), ite(truth, one, zero)))
