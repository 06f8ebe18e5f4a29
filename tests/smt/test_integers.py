"""The encoding of float formulas as integers against every value; it declines whenever something may round."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import terms as t
from fpsmt.errors import Unsupported
from fpsmt.floats import (
    Context,
    Float,
    Mode,
    Overflow,
    Subnormals,
    context,
    exactly,
    float8_e4m3fn,
    float16,
    float32,
    ieee,
    pow2,
    zero,
)
from fpsmt.smt.integers import integer_script
from fpsmt.terms.arrays import evaluate_arrays
from fpsmt.terms.terms import BitsSort

CONTEXTS = [
    context(float16),
    Context(float16, Mode.RTP, Overflow.SATURATE, Subnormals.GRADUAL),
    context(ieee(4, 6)),
    context(float8_e4m3fn, overflow="saturate"),
    context(float32),
]


def satisfiable(condition: t.Term) -> bool:
    solver = z3.Solver()
    solver.from_string(integer_script(condition).replace("(check-sat)", ""))
    answer = solver.check()
    assert answer != z3.unknown
    return answer == z3.sat


def holds_somewhere(condition: t.Term) -> bool:
    """By every value of the bits."""
    names = t.variables(condition)
    grids = np.meshgrid(*(np.arange(1 << v.sort.width, dtype=np.uint64) for v in names), indexing="ij")
    return bool(np.any(evaluate_arrays(condition, {v.data: g.reshape(-1) for v, g in zip(names, grids)})))


@st.composite
def fixed_point(draw: st.DrawFn) -> t.Term:
    """Comparisons of sums, products with constants, and choices of numbers given by a few bits."""
    ctx = draw(st.sampled_from(CONTEXTS))
    fmt = ctx.format
    names = [t.var(f"v{k}", BitsSort(draw(st.integers(1, 4)))) for k in range(draw(st.integers(1, 3)))]
    numbers: list[t.Term] = []
    for v in names:
        pad = fmt.bits - v.sort.width
        field = draw(st.sampled_from([0, 0, 1, 2, fmt.bias, fmt.bias + 1]))
        numbers.append(t.from_bits(fmt, t.concat(t.bits(pad, field << max(fmt.fraction_bits - v.sort.width, 0)), v)))
    conditions: list[t.Term] = []
    for _ in range(draw(st.integers(1, 6))):
        a, b = (draw(st.sampled_from(numbers)) for _ in range(2))
        scale = t.const(exactly(fmt, pow2(draw(st.integers(0, 2))) * draw(st.sampled_from([1, -1]))))
        offset = t.const(exactly(fmt, Fraction(draw(st.integers(-4, 4))) * draw(st.sampled_from([1, fmt.smallest]))))
        kind = draw(st.integers(0, 6))
        if kind == 6:
            conditions.append(draw(st.sampled_from([t.lt, t.le, t.eq]))(a, b))
            numbers.append(t.ite(draw(st.sampled_from(conditions)), a, b))
        else:
            sums = [t.add(ctx, a, b), t.sub(ctx, a, b), t.add(ctx, a, offset)]
            numbers.append([*sums, t.mul(ctx, scale, a), t.relu(a), t.neg(a)][kind])
    a, b = numbers[-1], draw(st.sampled_from(numbers))
    compare = draw(st.sampled_from([t.lt, t.le, t.eq, t.same]))
    final = compare(a, b) if compare is not t.same else t.same(a, t.const(exactly(fmt, 1)))
    conditions.append(draw(st.sampled_from([final, t.negation(final)])))
    return draw(st.sampled_from([t.all_of, t.any_of]))(*conditions[-3:])


ENCODED: list[int] = []


@given(fixed_point())
@settings(max_examples=300)
def test_random_formulas(condition: t.Term) -> None:
    try:
        found = satisfiable(condition)
    except Unsupported:
        return
    ENCODED.append(1)
    if t.variables(condition):
        assert found == holds_somewhere(condition)


def test_enough_random_formulas_were_encoded() -> None:
    if not ENCODED:
        pytest.skip("runs after test_random_formulas")
    assert len(ENCODED) >= 60


def number(width: int, fmt=float16, name: str = "v") -> t.Term:
    return t.from_bits(fmt, t.concat(t.bits(fmt.bits - width, 0), t.var(name, BitsSort(width))))


HALF, FLUSH = context(float16), context("float16:flush")
ONE, ZERO = t.const(exactly(float16, 1)), t.const(zero(float16))
WHOLE = t.from_bits(float16, t.var("x", BitsSort(16)))
DECLINED = {
    "a product of two variables": t.lt(t.mul(HALF, number(4), number(4, name="w")), ONE),
    "a sum that may round": t.lt(t.add(HALF, ONE, number(4)), ONE),
    "a sum that may overflow": t.lt(t.add(HALF, *(2 * [t.const(exactly(float16, 65504))])), ONE),
    "a product below the subnormals": t.lt(t.mul(HALF, t.const(exactly(float16, pow2(-1))), number(4)), ONE),
    "flushing": t.lt(t.add(FLUSH, number(4), number(4)), ONE),
    "codes of several binades": t.lt(number(12), ONE),
    "codes with signs": t.lt(WHOLE, ONE),
    "the signs of zeros": t.same(number(4), number(4, name="w")),
    "the same zero": t.same(number(4), ZERO),
    "a sign test": t.is_negative(number(4)),
    "a zero test": t.is_zero(number(4)),
    "a division": t.lt(t.div(HALF, number(4), ONE), ONE),
    "a variable float": t.lt(t.var("y", float16), ONE),
    "bits that may wrap": t.bits_less(t.bits_add(t.var("a", BitsSort(3)), t.var("b", BitsSort(3))), t.bits(3, 1)),
    "bits below zero": t.bits_less(t.bits_sub(t.var("a", BitsSort(3)), t.bits(3, 1)), t.bits(3, 1)),
    "infinity": t.lt(number(4), t.const(Float(float16, 0x7C00))),
    "NaN": t.lt(number(4), t.const(Float(float16, 0x7E00))),
    "an absolute value": t.lt(t.absolute(number(4)), ONE),
    "a fused operation": t.lt(t.fma(HALF, ONE, ONE, number(4)), ONE),
}


@pytest.mark.parametrize("what", DECLINED)
def test_declined(what: str) -> None:
    with pytest.raises(Unsupported):
        integer_script(DECLINED[what])


@pytest.mark.parametrize("width", [10, 11])
def test_the_last_formula_that_does_not_round(width: int) -> None:
    """n·ω + m·ω with n, m < 2^10 is exact in float16, and 2^11 quanta are still a value."""
    a, b = number(width), number(width, name="w")
    total = t.add(HALF, a, b)
    condition = t.lt(total, a)
    if width == 10:
        assert not satisfiable(condition)
        assert satisfiable(t.eq(total, t.const(exactly(float16, 2046 * float16.smallest))))
        assert not satisfiable(t.lt(t.const(exactly(float16, 2046 * float16.smallest)), total))
    else:
        with pytest.raises(Unsupported, match="may round"):
            integer_script(condition)


def test_the_bound_of_a_relu_is_used() -> None:
    """max(0, x) is never negative, so that 2^11 quanta suffice for the sum of two."""
    x = t.sub(HALF, number(10), number(10, name="w"))
    assert not satisfiable(t.lt(t.relu(x), ZERO))
    assert satisfiable(t.lt(x, ZERO))
    other = t.ite(t.lt(ZERO, x), t.neg(x), ZERO)
    assert satisfiable(t.lt(other, ZERO))


def test_values_at_the_edges_of_binades() -> None:
    """Codes 2^p … 2^(p+1) of the first normal binades, ends included, are the numbers they stand for."""
    for fmt in (float16, ieee(4, 6), float8_e4m3fn):
        p = fmt.fraction_bits
        for field, width in itertools.product((0, 1, 2, fmt.bias), (1, 2, p)):
            v = t.var("v", BitsSort(width))
            low = field << p
            value = t.from_bits(fmt, t.bits_add(t.concat(t.bits(fmt.bits - width, 0), v), t.bits(fmt.bits, low)))
            for code in (low, low + (1 << width) - 1):
                point = t.const(Float(fmt, code))
                assert satisfiable(t.eq(value, point))
                beyond = t.lt(value, point) if code == low else t.lt(point, value)
                assert not satisfiable(beyond)
