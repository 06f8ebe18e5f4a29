"""Threshold indicators 1[x ≥ z] and 1[x ≤ z] as ReLU networks of three layers, for every positive z.

Source: the released blocks of "networks with automatic differentiation that hit values and gradients"
(arXiv 2605.01702).  There the weights are written with a_z, e_z, u₀, ũ₀, c_z, c̃, k.  The same numbers, shorter:

    g = ReLU(shift ⊖ x),  h₁ = ReLU(A⊗(shift⊖z⁻) ⊖ A⊗g),  h₂ = ReLU(A⊗(shift⊖z) ⊖ A⊗g),
    1[x ≥ z] = ReLU(S⊗h₁ ⊖ S⊗h₂)          with shift = (top of z's binade)⁻, S = 1 / (A·(z − z⁻)),

and, for 1[x ≤ z], g = ReLU(x ⊖ base), h₁ from A⊗(z⁺⊖base), h₂ from A⊗(z⊖base), base = 2^e_z,
S = 1 / (A·(z⁺ − z)).  A is the paper's power of two 2^(p−e_z+k).  Weights are float terms in z, so that one
formula states the network for all z at once.  Negative z follows by reflection x ↦ −x.

Where z⁻ is not (1 − u₀/2)·z although z is a power of two (the smallest normal and the subnormals) the published
ũ₀ halves a gap that is a whole one: bias₁ and S differ there, each pair being right with its own partner.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        g = relu(add(ctx, neg(x) if self.sign < 0 else x, self.shift))
        product = neg(mul(ctx, self.slope, g))
        h1, h2 = relu(add(ctx, product, self.bias1)), relu(add(ctx, product, self.bias2))
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


def _slope(fmt: Format, case: str, code: Term) -> tuple[Term, int | None]:
    """A = 2^(p−e_z+k), and the exponent of A·2^e_z (None when A is one constant)."""
    p, e0 = fmt.fraction_bits, (1 << (fmt.exponent_bits - 2)) - 1
    if case == "subnormal":
        return const(exactly(fmt, pow2(3 - e0 - fmt.emin))), None
    total = e0 if case == "high" else 3 - e0  # A·2^e_z = 2^(p+k)
    field = extract(code, fmt.bits - 2, p)
    # exponent field of 2^(total − e_z) is total + bias − (field − bias)
    slope_field = bits_sub(bits(fmt.exponent_bits, total + 2 * fmt.bias), field)
    return from_bits(fmt, concat(bits(1, 0), slope_field, bits(p, 0))), total


def _power_of_two(fmt: Format, exponent: int) -> Term:
    return const(exactly(fmt, pow2(exponent)))


def at_least(ctx: Context, case: str, code: Term) -> Indicator:
    """1[x ≥ z] for z > 0 with this code."""
    fmt = ctx.format
    p, width = fmt.fraction_bits, fmt.bits
    z, below = from_bits(fmt, code), from_bits(fmt, bits_sub(code, bits(width, 1)))
    slope, total = _slope(fmt, case, code)
    if case == "subnormal":
        shift = from_bits(fmt, _fill(code, p))  # all ones below the leading one
        assert slope.op == "const"
        scale = const(exactly(fmt, 1 / (slope.data.fraction * fmt.smallest)))
    else:
        assert total is not None
        shift = from_bits(fmt, concat(extract(code, width - 1, p), bits(p, (1 << p) - 1)))
        # z − z⁻ is half an ulp at a power of two, but a whole one at the smallest normal
        power = all_of(
            same(extract(code, p - 1, 0), bits(p, 0)),
            negation(same(code, bits(width, 1 << p))),
        )
        scale = ite(power, _power_of_two(fmt, p - total + 1), _power_of_two(fmt, p - total))
    bias1 = mul(ctx, slope, sub(ctx, shift, below))
    bias2 = mul(ctx, slope, sub(ctx, shift, z))
    return Indicator(-1, shift, slope, bias1, bias2, scale)


def at_most(ctx: Context, case: str, code: Term) -> Indicator:
    """1[x ≤ z] for z ≥ 0 with this code."""
    fmt = ctx.format
    p, width = fmt.fraction_bits, fmt.bits
    z, above = from_bits(fmt, code), from_bits(fmt, bits_add(code, bits(width, 1)))
    slope, total = _slope(fmt, case, code)
    if case == "subnormal":
        base = from_bits(fmt, _leading(code, p))
        assert slope.op == "const"
        scale = const(exactly(fmt, 1 / (slope.data.fraction * fmt.smallest)))
    else:
        assert total is not None
        base = from_bits(fmt, concat(extract(code, width - 1, p), bits(p, 0)))
        scale = _power_of_two(fmt, p - total)
    bias1 = mul(ctx, slope, sub(ctx, above, base))
    bias2 = mul(ctx, slope, sub(ctx, z, base))
    return Indicator(1, neg(base), slope, bias1, bias2, scale)


def _by_leading_bit(code: Term, p: int, value: dict[int, int], otherwise: int) -> Term:
    assert isinstance(code.sort, BitsSort)
    width = code.sort.width
    result = bits(width, otherwise)
    for place in range(p):
        result = ite(bits_less(code, bits(width, 1 << place)), result, bits(width, value[place]))
    return result


def _fill(code: Term, p: int) -> Term:
    """2^(j+1) − 1 for a subnormal code with its leading one at bit j."""
    return _by_leading_bit(code, p, {j: (2 << j) - 1 for j in range(p)}, 0)


def _leading(code: Term, p: int) -> Term:
    """2^j for a subnormal code with its leading one at bit j; 0 for 0."""
    return _by_leading_bit(code, p, {j: 1 << j for j in range(p)}, 0)


def is_indicator(ctx: Context, kind: str, case: str, code: Term, x: Term, block: Indicator | None = None) -> Term:
    """For z in the case and |x| ≤ M: the block's output is 1 where x ≥ z (or x ≤ z), else 0."""
    fmt = ctx.format
    build = {"at_least": at_least, "at_most": at_most}
    if kind not in build:
        raise UsageError(f"unknown indicator {kind!r}: write at_least or at_most")
    block = block or build[kind](ctx, case, code)
    z, bound = from_bits(fmt, code), domain_bound(fmt)
    here = all_of(case_holds(fmt, case, code), le(const(-bound), x), le(x, const(bound)))
    if kind == "at_least" and case == "subnormal":
        here = all_of(here, negation(same(code, bits(fmt.bits, 0))))
    truth = le(z, x) if kind == "at_least" else le(x, z)
    one, zero = const(exactly(fmt, 1)), const(exactly(fmt, 0))
    return implies(here, same(block.output(ctx, x), ite(truth, one, zero)))

