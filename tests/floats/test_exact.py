"""Exact scalar arithmetic against its definition, the hardware, MPFR and ml_dtypes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import gmpy2
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpsmt.errors import UsageError
from fpsmt.floats import (
    Context,
    Float,
    Format,
    Mode,
    Overflow,
    Subnormals,
    add,
    add_products,
    all_values,
    bfloat16,
    cast,
    context,
    div,
    equal,
    exactly,
    float4_e2m1fn,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float16,
    float32,
    float64,
    fma,
    from_ordinal,
    ieee,
    infinity,
    largest,
    less,
    less_equal,
    mul,
    nan,
    nearest,
    p3109,
    round_real,
    sqrt,
    sub,
    zero,
)
from tests.strategies import (
    EMBEDDED,
    HUGE,
    cancelling_rows,
    contexts,
    every_context,
    finite_floats,
    floats,
    formats,
    rows,
)


def same(x: Float, y: float) -> bool:
    """x is the Python float y, the sign of zero included."""
    return x.is_nan if y != y else float(x).hex() == float(y).hex()


# -- the definition ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", [float4_e2m1fn, ieee(2, 3), p3109(5, 3)], ids=str)
def test_finite_results_are_roundings_of_the_real_result(fmt: Format) -> None:
    # with zero handled apart, an operation is: compute with rationals, round once
    numbers = [x for x in all_values(fmt, finite=True) if not x.is_zero]
    for ctx in every_context(fmt):
        seen = {x: zero(fmt, x.negative) if ctx.subnormals.inputs and x.is_subnormal else x for x in numbers}
        for a, b in product(numbers, repeat=2):
            x, y = seen[a].fraction, seen[b].fraction
            if not x or not y:
                continue
            for operation, real in ((add, x + y), (sub, x - y), (mul, x * y), (div, x / y)):
                zero_sign = ctx.mode is Mode.RTN
                assert operation(ctx, a, b) == round_real(ctx, real, zero_sign), (ctx, operation, a, b)


@pytest.mark.parametrize("ctx", every_context(ieee(2, 3)), ids=str)
def test_root_is_the_rounding_of_the_real_root(ctx: Context) -> None:
    for a in all_values(ctx.format):
        if not a.is_finite or a.negative or a.is_zero or (ctx.subnormals.inputs and a.is_subnormal):
            continue
        scale = 2**40
        low = Fraction(math.isqrt(int(a.fraction * scale * scale)), scale)
        high = low if low * low == a.fraction else low + Fraction(1, scale)
        assert round_real(ctx, low) == round_real(ctx, high) or low == high
        assert sqrt(ctx, a) == round_real(ctx, (low + high) / 2)


@given(st.data(), contexts((*EMBEDDED, *HUGE)))
def test_fused_operations(data: st.DataObject, ctx: Context) -> None:
    gradual = Context(ctx.format, ctx.mode, ctx.overflow, Subnormals.GRADUAL)
    fmts = [data.draw(formats()) for _ in range(4)]
    a, b, c, d = (data.draw(finite_floats(f)) for f in fmts)
    down = ctx.mode is Mode.RTN
    x, y, z, w = (v.fraction for v in (a, b, c, d))
    if x * y + z != 0:
        assert fma(gradual, a, b, c) == round_real(gradual, x * y + z)
    elif x * y != 0:
        assert fma(gradual, a, b, c) == zero(ctx.format, down)
    if x * y + z * w != 0:
        assert add_products(gradual, a, b, c, d) == round_real(gradual, x * y + z * w)
    elif x * y != 0:
        assert add_products(gradual, a, b, c, d) == zero(ctx.format, down)
    one = nearest(fmts[0], 1)
    assert fma(ctx, one, b, c) == add(ctx, b, c)
    if c.format.has_signed_zero:
        assert add_products(ctx, a, b, c, one) == fma(ctx, a, b, c)


# -- special values ---------------------------------------------------------------------------------------

INF, NINF = infinity(float16), infinity(float16, True)
ZERO, NZERO = zero(float16), zero(float16, True)
ONE, NAN = exactly(float16, 1), nan(float16)


@pytest.mark.parametrize("mode", Mode)
def test_special_values(mode: Mode) -> None:
    ctx = context(float16, mode)
    cancel = zero(float16, mode is Mode.RTN)
    assert add(ctx, INF, NINF) == sub(ctx, INF, INF) == mul(ctx, INF, ZERO) == NAN
    assert div(ctx, ZERO, NZERO) == div(ctx, INF, NINF) == sqrt(ctx, -ONE) == sqrt(ctx, NINF) == NAN
    assert add(ctx, INF, ONE) == sub(ctx, ONE, NINF) == mul(ctx, NINF, -ONE) == div(ctx, -ONE, NZERO) == INF
    assert div(ctx, INF, NZERO) == div(ctx, ONE, NZERO) == NINF
    assert div(ctx, ONE, NINF) == mul(ctx, ZERO, -ONE) == div(ctx, NZERO, ONE) == sqrt(ctx, NZERO) == NZERO
    assert add(ctx, NZERO, NZERO) == sub(ctx, NZERO, ZERO) == NZERO and add(ctx, ZERO, ZERO) == ZERO
    assert add(ctx, ZERO, NZERO) == add(ctx, ONE, -ONE) == sub(ctx, ONE, ONE) == cancel
    assert fma(ctx, ONE, -ONE, ONE) == add_products(ctx, ONE, ONE, -ONE, ONE) == cancel
    assert fma(ctx, ZERO, -ONE, NZERO) == NZERO and fma(ctx, ZERO, ONE, NZERO) == cancel
    assert fma(ctx, INF, ZERO, NAN) == fma(ctx, INF, ONE, NINF) == add_products(ctx, INF, ONE, NINF, ONE) == NAN
    # an overflowing product is a finite number inside an fma
    assert fma(ctx, largest(float16), largest(float16), NINF) == NINF
    assert fma(ctx, largest(float16), exactly(float16, 2), largest(float16, True)) == largest(float16)
    for operation, count in ((add, 2), (sub, 2), (mul, 2), (div, 2), (fma, 3), (add_products, 4)):
        for place in range(count):
            arguments = [ONE] * count
            arguments[place] = NAN
            assert operation(ctx, *arguments) == NAN


def test_infinite_results_without_infinity() -> None:
    one, none = exactly(float8_e4m3fn, 1), zero(float8_e4m3fn, True)
    assert div(context("float8_e4m3fn:saturate"), one, none) == largest(float8_e4m3fn, True)
    assert div(context("float8_e4m3fn:nan"), one, none) == nan(float8_e4m3fn)
    assert cast(context("float8_e4m3fn:saturate"), NINF) == largest(float8_e4m3fn, True)
    assert cast(context("float8_e5m2:saturate"), NINF) == infinity(float8_e5m2, True)
    assert cast(context("float4_e2m1fn"), INF) == largest(float4_e2m1fn)


def test_single_zero() -> None:
    ctx = context("float8_e4m3fnuz:nan:RTN")
    one, none = exactly(float8_e4m3fnuz, 1), zero(float8_e4m3fnuz)
    assert add(ctx, one, -one) == mul(ctx, none, -one) == cast(ctx, NZERO) == sub(ctx, none, none) == none
    tiny = from_ordinal(float8_e4m3fnuz, -1)
    assert mul(context("float8_e4m3fnuz:nan"), tiny, from_ordinal(float8_e4m3fnuz, 1)) == none


@pytest.mark.parametrize(
    "call",
    [
        lambda ctx, x, o: div(ctx, o, o),
        lambda ctx, x, o: sqrt(ctx, -x),
        lambda ctx, x, o: cast(ctx, NAN),
        lambda ctx, x, o: add(ctx, INF, NINF),
        lambda ctx, x, o: mul(ctx, INF, o),
    ],
)
def test_nan_where_there_is_none(call: Callable[..., Float]) -> None:
    ctx = context(float4_e2m1fn)
    with pytest.raises(UsageError, match="the result is NaN, and float4_e2m1fn has none"):
        call(ctx, exactly(float4_e2m1fn, 1), zero(float4_e2m1fn))


@pytest.mark.parametrize("fmt", [float4_e2m1fn, ieee(2, 3), float8_e4m3fnuz], ids=str)
def test_comparisons_are_pythons(fmt: Format) -> None:
    line = list(all_values(fmt))
    for a, b in product(line[:: max(1, len(line) // 40)], line):
        x, y = float(a), float(b)
        assert (equal(a, b), less(a, b), less_equal(a, b)) == (x == y, x < y, x <= y)
    assert not less_equal(nan(float16), INF) and less(NINF, INF) and equal(ZERO, NZERO)


@given(st.data(), contexts())
def test_laws(data: st.DataObject, ctx: Context) -> None:
    a, b = data.draw(floats(ctx.format)), data.draw(floats(ctx.format))
    try:
        assert add(ctx, a, b) == add(ctx, b, a)
        assert mul(ctx, a, b) == mul(ctx, b, a)
    except UsageError:
        assert not ctx.format.has_nan
    if a.is_finite and b.is_finite and ctx.format.has_signed_zero:
        assert sub(ctx, a, b) == add(ctx, a, -b)
        mirror = {Mode.RTP: Mode.RTN, Mode.RTN: Mode.RTP}.get(ctx.mode, ctx.mode)
        assert mul(ctx.with_mode(mirror), -a, b) == -mul(ctx, a, b)


# -- other implementations --------------------------------------------------------------------------------

PAIRS = ((add, operator.add), (sub, operator.sub), (mul, operator.mul), (div, operator.truediv))
HARDWARE: dict[Format, Any] = {float16: np.float16, float32: np.float32, float64: np.float64}


@given(st.data(), formats(list(HARDWARE)))
def test_hardware(data: st.DataObject, fmt: Format) -> None:
    kind, ctx = HARDWARE[fmt], context(fmt)
    for a, b in data.draw(st.one_of(rows([fmt] * 2), cancelling_rows([fmt] * 2))):
        x, y = kind(float(a)), kind(float(b))
        with np.errstate(all="ignore"):
            for mine, theirs in PAIRS:
                assert same(mine(ctx, a, b), float(theirs(x, y))), (mine, a, b)
            assert same(sqrt(ctx, a), float(np.sqrt(x)))
            for target, narrower in HARDWARE.items():
                assert same(cast(context(target), a), float(x.astype(narrower)))


GMPY_ROUNDING = {
    Mode.RNE: gmpy2.RoundToNearest, Mode.RTP: gmpy2.RoundUp, Mode.RTN: gmpy2.RoundDown, Mode.RTZ: gmpy2.RoundToZero,
}  # fmt: skip


def mpfr(ctx: Context) -> gmpy2.context:
    """MPFR's arithmetic in the same format; it writes values as 0.1xxx·2^e and emulates subnormals."""
    fmt = ctx.format
    return gmpy2.context(
        precision=fmt.precision, emax=fmt.emax + 1, emin=fmt.emin - fmt.fraction_bits + 1, subnormalize=True,
        round=GMPY_ROUNDING[ctx.mode],
    )  # fmt: skip


def as_mpfr(x: Float) -> gmpy2.mpfr:
    with gmpy2.context(precision=300, emax=2**20, emin=-(2**20)):
        return gmpy2.mpfr(x.decimal) if not x.is_finite or x.is_zero else gmpy2.mpfr(gmpy2.mpq(x.fraction))


def agrees(x: Float, y: gmpy2.mpfr) -> bool:
    if not x.is_finite or not gmpy2.is_finite(y):
        return (x.is_nan and gmpy2.is_nan(y)) or (
            x.is_infinite and gmpy2.is_infinite(y) and x.negative == gmpy2.is_signed(y)
        )
    numerator, denominator = y.as_integer_ratio()
    return x.fraction == Fraction(int(numerator), int(denominator)) and x.negative == gmpy2.is_signed(y)


IEEE_STYLE = [f for f in (*EMBEDDED, *HUGE) if f == ieee(f.exponent_bits, f.precision, f.name)]


@given(st.data(), formats(IEEE_STYLE), st.sampled_from(list(GMPY_ROUNDING)))
def test_mpfr(data: st.DataObject, fmt: Format, mode: Mode) -> None:
    ctx = Context(fmt, mode, Overflow.INFINITY, Subnormals.GRADUAL)
    theirs = mpfr(ctx)
    for a, b, c, d in data.draw(st.one_of(rows([fmt] * 4, 5), cancelling_rows([fmt] * 4, 5))):
        x, y, z, w = (as_mpfr(v) for v in (a, b, c, d))
        assert agrees(add(ctx, a, b), theirs.add(x, y))
        assert agrees(sub(ctx, a, b), theirs.sub(x, y))
        assert agrees(mul(ctx, a, b), theirs.mul(x, y))
        assert agrees(div(ctx, a, b), theirs.div(x, y))
        assert agrees(sqrt(ctx, a), theirs.sqrt(x))
        assert agrees(fma(ctx, a, b, c), theirs.fma(x, y, z))
        assert agrees(add_products(ctx, a, b, c, d), theirs.fmma(x, y, z, w))


def test_subnormals_round_once_in_mpfr_too() -> None:
    # the emulation rounds again at the end of the range but knows the direction of the first rounding
    ctx = context(float8_e5m2)
    third = div(ctx, from_ordinal(float8_e5m2, 5), exactly(float8_e5m2, 3))
    assert agrees(third, mpfr(ctx).div(as_mpfr(from_ordinal(float8_e5m2, 5)), gmpy2.mpfr(3)))


@given(st.data())
def test_bfloat16_as_in_ml_dtypes(data: st.DataObject) -> None:
    # ml_dtypes computes in float32 and rounds again: harmless because 24 ≥ 2·8 + 2, except for products and
    # quotients in float32's own subnormal range, which are left out
    ctx = context(bfloat16)
    for a, b in data.draw(st.one_of(rows([bfloat16] * 2), cancelling_rows([bfloat16] * 2))):
        x, y = ml_dtypes.bfloat16(float(a)), ml_dtypes.bfloat16(float(b))
        with np.errstate(all="ignore"):
            assert same(add(ctx, a, b), float(x + y))
            assert same(sub(ctx, a, b), float(x - y))
            for mine, theirs in ((mul, operator.mul), (div, operator.truediv)):
                result = mine(ctx, a, b)
                if not result.is_finite or abs(result.fraction) > bfloat16.smallest_normal:
                    assert same(result, float(theirs(x, y)))
