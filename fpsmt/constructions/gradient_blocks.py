"""ReLU blocks whose value and executed gradient are both known, as terms: indicators of a point, the gradient killer.

Source: arXiv 2605.01702 and its released blocks.  With the threshold blocks of `constructions.indicators`,

* 1[x ≤ z] is the block of 1[x ≥ −z] read at −x,
* 1[x = z] = ReLU(1[x ≥ z] ⊖ 1[x ≥ z⁺]), z⁺ the next float,
* the *gradient killer* is the identity on {0, 1}.  It adds and subtracts a_k = (2^k)⁺, k = p … emax, from left to
  right: from k = p + 1 on, each pair doubles a power of two by a tie to even, so that 1 becomes 2^(emax − p) with
  slope 1; the weight 2^(p − emax) brings the value back to 1, and every gradient that passes is multiplied by it.

`gradient` of a block is D^AD: each function below writes what `networks.gradient` computes for the network of these
layers, with σ′ correctly rounded, σ′(0) = 0.  Weights are float terms in the code of |z|, one formula for all z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

from fpsmt import floats
from fpsmt.constructions.indicators import Indicator, block_for, case_holds, domain_bound
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Format, exactly, from_ordinal, largest, nan, pow2
from fpsmt.terms import (
    Term,
    add,
    all_of,
    bits,
    bits_add,
    bits_sub,
    const,
    from_bits,
    is_nan,
    ite,
    le,
    lt,
    mul,
    neg,
    negation,
    relu,
    same,
    sub,
)

# -- reverse mode through the pieces ----------------------------------------------------------------------


def slope(x: Term) -> Term:
    """ReLU′ correctly rounded: 1 where x > 0, else 0; NaN at NaN."""
    fmt = x.format
    zero, one = const(Float(fmt, 0)), const(exactly(fmt, 1))
    step = ite(lt(zero, x), one, zero)
    return ite(is_nan(x), const(nan(fmt)), step) if fmt.has_nan else step


def through(ctx: Context, g: Term, x: Term) -> Term:
    """The gradient that a ReLU with input x returns for g: g ⊗ ReLU′(x)."""
    return mul(ctx, g, slope(x))


def first_gradient(ctx: Context, block: Indicator, x: Term, g: Term) -> Term:
    """What reverse mode returns to the input x of a threshold block for the gradient g at its output."""
    product = block.second(ctx, x)
    pre1, pre2 = sub(ctx, block.bias1, product), sub(ctx, block.bias2, product)
    last = sub(ctx, mul(ctx, block.scale, relu(pre1)), mul(ctx, block.scale, relu(pre2)))
    g = through(ctx, g, last)
    h1 = through(ctx, mul(ctx, g, block.scale), pre1)
    h2 = through(ctx, mul(ctx, g, neg(block.scale)), pre2)
    both = add(ctx, mul(ctx, h1, neg(block.slope)), mul(ctx, h2, neg(block.slope)))
    at_first = through(ctx, both, block.first(ctx, x))
    return mul(ctx, at_first, const(exactly(ctx.format, block.sign)))


def at_most_block(ctx: Context, sign: str, case: str, code: Term) -> Indicator:
    """1[x ≤ z] where |z| has this code: the block of 1[x ≥ −z] read at −x.  `sign` is that of −z."""
    block = block_for(ctx, sign, case, code)
    return replace(block, sign=-block.sign)


@dataclass(frozen=True)
class PointIndicator:
    """1[x = z] = ReLU(1[x ≥ z] ⊖ 1[x ≥ z⁺]) in four layers."""

    low: Indicator
    high: Indicator

    def output(self, ctx: Context, x: Term) -> Term:
        return relu(self.before(ctx, x))

    def before(self, ctx: Context, x: Term) -> Term:
        """The last layer before its activation."""
        return sub(ctx, self.low.output(ctx, x), self.high.output(ctx, x))

    def gradient(self, ctx: Context, x: Term, g: Term) -> Term:
        """D^AD to x for the gradient g at the output."""
        one = const(exactly(ctx.format, 1))
        g = through(ctx, g, self.before(ctx, x))
        low = first_gradient(ctx, self.low, x, mul(ctx, g, one))
        return add(ctx, low, first_gradient(ctx, self.high, x, mul(ctx, g, neg(one))))


def next_code(fmt: Format, sign: str, code: Term) -> Term:
    """The code of |z⁺| from that of |z|, where z⁺ has the sign of z."""
    one = bits(fmt.bits, 1)
    return bits_add(code, one) if sign == "positive" else bits_sub(code, one)


def point_indicator(ctx: Context, sign: str, case: str, code: Term) -> PointIndicator:
    """1[x = z] where |z| has this code and z⁺ belongs to the same case."""
    following = next_code(ctx.format, sign, code)
    return PointIndicator(block_for(ctx, sign, case, code), block_for(ctx, sign, case, following))


def in_domain(fmt: Format, x: Term) -> Term:
    """|x| ≤ M = 2^(emax − 2)."""
    bound = domain_bound(fmt)
    return all_of(le(const(-bound), x), le(x, const(bound)))


def point_here(fmt: Format, sign: str, case: str, code: Term, x: Term) -> Term:
    """z and z⁺ have this sign and case, z ≠ 0 where the sign is positive, and |x| ≤ M."""
    parts = [in_domain(fmt, x), case_holds(fmt, case, code), case_holds(fmt, case, next_code(fmt, sign, code))]
    if sign == "positive" and case == "subnormal":
        parts.append(negation(same(code, bits(fmt.bits, 0))))
    return all_of(*parts)


def value_of(fmt: Format, sign: str, code: Term) -> Term:
    """z from the code of its magnitude."""
    return from_bits(fmt, code) if sign == "positive" else neg(from_bits(fmt, code))


# -- boundaries between the cases ---------------------------------------------------------------------------


def boundaries(fmt: Format) -> list[Float]:
    """The z whose z⁺ belongs to another case: the last subnormal, the last float below 2, their mirrors, and 0."""
    least_normal, two = 1 << fmt.fraction_bits, exactly(fmt, 2).code
    return [from_ordinal(fmt, n) for n in (two - 1, least_normal - 1, 0, -least_normal, -two)]


def threshold_at(ctx: Context, z: Float) -> Indicator:
    """1[x ≥ z] for one z of [−M, M], with constant weights."""
    fmt = ctx.format
    code = abs(z.ordinal)
    least_normal, two = 1 << fmt.fraction_bits, exactly(fmt, 2).code
    if code > domain_bound(fmt).code:
        raise UsageError(f"{z} is outside the domain of the threshold blocks, ±{domain_bound(fmt)}")
    case = "subnormal" if code < least_normal else "low" if code < two else "high"
    sign = "positive" if z.ordinal > 0 else "nonpositive"
    return block_for(ctx, sign, case, bits(fmt.bits, code))


def indicator_at(ctx: Context, z: Float) -> PointIndicator:
    """1[x = z] for one z of [−M, M), with constant weights."""
    return PointIndicator(threshold_at(ctx, z), threshold_at(ctx, from_ordinal(ctx.format, z.ordinal + 1)))


# -- the gradient killer --------------------------------------------------------------------------------------


@cache
def ladder(fmt: Format) -> tuple[Float, ...]:
    """The numbers that the killer adds from left to right: a_k, −a_k for k = p … emax, a_k = (2^k)⁺."""
    steps = []
    for k in range(fmt.fraction_bits, fmt.emax + 1):
        up = exactly(fmt, pow2(k) + pow2(k - fmt.fraction_bits))
        steps += [up, -up]
    return tuple(steps)


def damping(fmt: Format) -> Fraction:
    """2^(p − emax): what one copy multiplies a gradient by."""
    return pow2(fmt.fraction_bits - fmt.emax)


def copies_needed(fmt: Format) -> int:
    """The least m with Ω·2^(m·(p − emax)) ≤ ω/2: so many killers send every finite gradient to 0.

    >>> from fpsmt.floats import bfloat16, float16, float32, float64
    >>> [copies_needed(fmt) for fmt in (float16, bfloat16, float32, float64)]
    [9, 3, 3, 3]
    """
    if damping(fmt) >= 1:
        raise UsageError(f"a gradient killer of {fmt} does not make gradients smaller: its emax is at most p")
    m, left = 0, fmt.largest
    while left > fmt.smallest / 2:
        m, left = m + 1, left * damping(fmt)
    return m


@cache
def last_killed(fmt: Format, copies: int) -> Float:
    """The largest y whose gradient this many killers send to 0.  Rounding is monotone, so that bisection finds it."""
    ctx, weight = floats.context(fmt), exactly(fmt, damping(fmt))

    def dies(ordinal: int) -> bool:
        y = from_ordinal(fmt, ordinal)
        for _ in range(copies):
            y = floats.mul(ctx, y, weight)
        return y.is_zero

    low, high = 0, largest(fmt).ordinal
    if dies(high):
        return largest(fmt)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if dies(middle) else (low, middle)
    return from_ordinal(fmt, low)


@dataclass(frozen=True)
class Killer:
    """Copies of the gradient killer, one after the other; 2·copies layers."""

    fmt: Format
    copies: int

    def states(self, ctx: Context, x: Term) -> list[tuple[Term, Term]]:
        """For each copy its two values before the activations: the ladder's, and the weighted one."""
        weight, found = const(exactly(self.fmt, damping(self.fmt))), []
        for _ in range(self.copies):
            up = x
            for step in ladder(self.fmt):
                up = add(ctx, up, const(step))
            down = mul(ctx, weight, relu(up))
            found.append((up, down))
            x = relu(down)
        return found

    def output(self, ctx: Context, x: Term) -> Term:
        states = self.states(ctx, x)
        return relu(states[-1][1]) if states else x

    def gradient(self, ctx: Context, x: Term, g: Term) -> Term:
        """D^AD to x for the gradient g at the output."""
        weight, one = const(exactly(self.fmt, damping(self.fmt))), const(exactly(self.fmt, 1))
        for up, down in reversed(self.states(ctx, x)):
            g = mul(ctx, through(ctx, g, down), weight)
            g = mul(ctx, through(ctx, g, up), one)
        return g


# -- blocks for one point ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ValueBlock:
    """f₁: v·1[x = z] with gradient 0, the indicator through a killer, then the weight v."""

    indicator: PointIndicator
    killer: Killer
    value: Term

    def output(self, ctx: Context, x: Term) -> Term:
        return mul(ctx, self.value, self.killer.output(ctx, self.indicator.output(ctx, x)))

    def gradient(self, ctx: Context, x: Term, y: Term) -> Term:
        """D^AD for the loss derivative y."""
        inner = self.killer.gradient(ctx, self.indicator.output(ctx, x), mul(ctx, y, self.value))
        return self.indicator.gradient(ctx, x, inner)


@dataclass(frozen=True)
class SlopeBlock:
    """ReLU(w ⊗ ReLU(u ⊗ 1[x = z])), u the inverse of the indicator's slope: its gradient at z is y ⊗ w."""

    indicator: PointIndicator
    unit: Term
    weight: Term

    def inner(self, ctx: Context, x: Term) -> Term:
        """u ⊗ 1[x = z]."""
        return mul(ctx, self.unit, self.indicator.output(ctx, x))

    def output(self, ctx: Context, x: Term) -> Term:
        return relu(mul(ctx, self.weight, relu(self.inner(ctx, x))))

    def at_indicator(self, ctx: Context, x: Term, y: Term) -> Term:
        """The gradient that reaches the indicator's output for y at the block's."""
        outer = mul(ctx, self.weight, relu(self.inner(ctx, x)))
        g = mul(ctx, through(ctx, y, outer), self.weight)
        return mul(ctx, through(ctx, g, self.inner(ctx, x)), self.unit)

    def gradient(self, ctx: Context, x: Term, y: Term) -> Term:
        """D^AD for the gradient y at the block's output."""
        return self.indicator.gradient(ctx, x, self.at_indicator(ctx, x, y))


def total(ctx: Context, parts: Sequence[Term]) -> Term:
    """The sum from left to right."""
    first, *rest = parts
    for part in rest:
        first = add(ctx, first, part)
    return first
