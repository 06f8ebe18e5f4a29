"""Rounding a real number once, against the definition and against cases whose answers are public."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpsmt.errors import UsageError
from fpsmt.floats import (
    FORMATS,
    Context,
    Format,
    Mode,
    Overflow,
    Subnormals,
    all_values,
    bfloat16,
    cast,
    context,
    float4_e2m1fn,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    from_ordinal,
    ieee,
    nearest,
    p3109,
    pow2,
    round_real,
    zero,
)
from fpsmt.floats.vector import round_array, to_floats
from tests.floats.oracle import matches, rounded
from tests.strategies import EMBEDDED, HUGE, contexts, every_context, reals_near

TINY = [
    float4_e2m1fn, ieee(2, 2), ieee(2, 3), ieee(3, 2), p3109(5, 3), p3109(5, 2, False), FORMATS["float6_e3m2fn"],
    Format("finite_e2m2", 2, 3, 1, 0xE, False, "above"), FORMATS["float6_e2m3fn"],
]  # fmt: skip


def decisions(fmt: Format) -> list[Fraction]:
    """Every value, every midpoint, points beside both, below ω and above Ω, of both signs."""
    numbers = [from_ordinal(fmt, i).fraction for i in range(fmt.largest_code + 1)]
    numbers += [fmt.largest + k * from_ordinal(fmt, fmt.largest_code).ulp for k in (1, 2, 3)]
    beside = fmt.smallest / 1000
    points = {Fraction(1, 10**9) * fmt.smallest, fmt.smallest / 4}
    for below, above in pairwise(numbers):
        for point in (below, (below + above) / 2, (3 * below + above) / 4):
            points |= {point - beside, point, point + beside}
    # for flushing: values between the largest subnormal and the smallest normal that round up with more precision
    points |= {fmt.smallest_normal - fmt.smallest * Fraction(1, k) for k in (2, 3, 4, 5, 8, 9)}
    positive = [x for x in points if x > 0]
    return positive + [-x for x in positive]


@pytest.mark.parametrize("fmt", TINY, ids=str)
def test_definition_in_every_context(fmt: Format) -> None:
    points = decisions(fmt)
    for ctx in every_context(fmt):
        for x in points:
            assert matches(round_real(ctx, x), *rounded(ctx, x)), (ctx, x)


@given(st.data(), contexts([f for f in EMBEDDED if f.bits <= 8]))
def test_definition(data: st.DataObject, ctx: Context) -> None:
    x = data.draw(reals_near(ctx.format))
    if x != 0:
        assert matches(round_real(ctx, x), *rounded(ctx, x))


@given(st.data(), contexts((*EMBEDDED, *HUGE)))
def test_laws_of_rounding(data: st.DataObject, ctx: Context) -> None:
    fmt = ctx.format
    x = data.draw(reals_near(fmt))
    if abs(x) > fmt.largest or x == 0:
        return
    gradual = Context(fmt, Mode.RNE, ctx.overflow, Subnormals.GRADUAL)
    down, up, near = (round_real(gradual.with_mode(m), x) for m in (Mode.RTN, Mode.RTP, Mode.RNE))
    assert down.fraction <= x <= up.fraction
    assert (down.fraction == up.fraction) == (near.fraction == x)
    assert near.fraction in (down.fraction, up.fraction)
    assert abs(near.fraction - x) == min(x - down.fraction, up.fraction - x)
    towards_zero = round_real(gradual.with_mode(Mode.RTZ), x)
    assert towards_zero == (down if x > 0 else up)
    # symmetry, and rounding twice into the same format changes nothing
    mirror = {Mode.RTP: Mode.RTN, Mode.RTN: Mode.RTP}.get(ctx.mode, ctx.mode)
    result = round_real(ctx, x)
    assert round_real(ctx.with_mode(mirror), -x) == -result
    assert ctx.subnormals.inputs or cast(ctx, result) == result


@pytest.mark.parametrize(
    "spec, x, expected",
    [
        # the end of float8_e4m3fn: 464 is the tie between 448 and the missing 480, and 448 is the even one
        ("float8_e4m3fn:nan", 448, "448.0"), ("float8_e4m3fn:nan", 449, "448.0"), ("float8_e4m3fn:nan", 464, "448.0"),
        ("float8_e4m3fn:nan", 464 + pow2(-60), "nan"), ("float8_e4m3fn:nan", 465, "nan"),
        ("float8_e4m3fn:saturate", 465, "448.0"), ("float8_e4m3fn:saturate", -(10**9), "-448.0"),
        ("float8_e4m3fn:nan:RTZ", 479, "448.0"), ("float8_e4m3fn:nan:RTZ", 480, "nan"),
        ("float8_e4m3fn:nan:RNA", 464, "nan"),
        ("float8_e5m2", 61439, "57344.0"), ("float8_e5m2", 61440, "inf"), ("float8_e5m2:saturate", 61440, "57344.0"),
        ("float8_e5m2", -61440, "-inf"), ("float8_e5m2:RTZ", 10**9, "57344.0"), ("float8_e5m2:RTP", 57345, "inf"),
        ("float8_e5m2:RTN", 10**9, "57344.0"), ("float8_e5m2:RTP", -(10**9), "-57344.0"),
        ("float8_e4m3fnuz:nan", Fraction(24799, 100), "240.0"), ("float8_e4m3fnuz:nan", 248, "nan"),
        ("float16", Fraction(6551999, 100), "65504.0"), ("float16", 65520, "inf"), ("float16", -65520, "-inf"),
        ("float16:nan", 65520, "nan"), ("float16:nan:RTZ", 65519, "65504.0"), ("float16:saturate", 10**6, "65504.0"),
        ("float4_e2m1fn", 7, "6.0"), ("float4_e2m1fn", 5, "4.0"), ("float4_e2m1fn", Fraction(1, 4), "0.0"),
        ("float4_e2m1fn", Fraction(-1, 4), "-0.0"), ("float4_e2m1fn:RNA", Fraction(1, 4), "0.5"),
        ("float8_e4m3fn:nan", Fraction(3, 1024), "0.00390625"), ("float8_e4m3fnuz:nan", Fraction(-1, 10**6), "0.0"),
        ("bfloat16", 16842753, "16908288.0"), ("float16:RTZ", Fraction(-1, 10**9), "-0.0"),
        ("ieee(2,3)", 7, "inf"), ("ieee(2,3)", Fraction(37, 10), "3.5"), ("ieee(2,3)", Fraction(15, 4), "inf"),
    ],
)  # fmt: skip
def test_known_cases(spec: str, x: int | Fraction, expected: str) -> None:
    assert str(round_real(context(spec), x)) == expected


def test_rounding_twice_is_another_number() -> None:
    # 2^24 + 2^16 + 1 is just above a bfloat16 midpoint; float32 drops the 1 and leaves the tie
    direct = nearest(bfloat16, 16842753)
    via = cast(context(bfloat16), nearest(float32, 16842753))
    assert (direct.fraction, via.fraction) == (16908288, 16777216)
    assert round_array(context(bfloat16), [16842753.0]).tolist() == [16908288.0]


def test_double_rounding_is_found_at_every_midpoint() -> None:
    # 2^k + (2^(k−7))/2 + 1 for the k where float32 cannot hold the 1: the same trap in each binade
    ctx = context(bfloat16)
    for k in range(24, 120):
        for sign in (1, -1):
            for fraction in range(0, 128, 2):
                x = sign * ((128 + fraction) * 2 ** (k - 7) + 2 ** (k - 8) + 1)
                direct = round_real(ctx, x)
                assert direct.fraction == sign * (129 + fraction) * 2 ** (k - 7)
                assert cast(ctx, nearest(float32, x)).fraction == sign * (128 + fraction) * 2 ** (k - 7)


def test_flushing() -> None:
    ftz = context("float16:flush-outputs")
    tiny = float16.smallest_normal
    assert round_real(ftz, tiny - pow2(-24)) == zero(float16)
    assert round_real(ftz, -(tiny - pow2(-24))) == zero(float16, True)
    # tininess after rounding: rounds up to the smallest normal with 11 bits, so it is not flushed
    assert round_real(ftz, tiny - pow2(-27)).fraction == tiny
    # 11 bits hold 2^−14 − 2^−25 itself, so this is tiny although gradual underflow rounds it to a normal value
    assert round_real(ftz, tiny - pow2(-25)) == zero(float16)
    assert round_real(context("float16"), tiny - pow2(-25)).fraction == tiny
    daz = context("float16:flush-inputs")
    assert cast(daz, from_ordinal(float16, -1)) == zero(float16, True)
    # what is subnormal is a matter of the operand's format
    assert cast(context("float32:flush-inputs"), from_ordinal(float16, 1)) == zero(float32)
    assert cast(daz, nearest(float32, pow2(-24))) == from_ordinal(float16, 1)


@pytest.mark.parametrize("name", [n for n in FORMATS if n not in ("float64", "float32", "float16", "tfloat32")])
def test_casts_as_in_ml_dtypes(name: str) -> None:
    # ml_dtypes overflows to inf where there is one, else to NaN, and saturates in the fp4 and fp6 formats; there
    # it also turns NaN into −0 without a word, which is excluded here
    fmt = FORMATS[name]
    rule = "infinity" if fmt.has_infinity else "nan" if fmt.has_nan else "saturate"
    ctx = context(fmt, overflow=rule)
    rng = np.random.default_rng(2)
    near = np.array([float(x) for x in all_values(fmt, finite=True)])[:: 1 if fmt.bits <= 8 else 97]
    points = np.concatenate([near, (near[:-1] + near[1:]) / 2, near[-1:] * [1.01, 1.04, 1.07, 1.3], [np.inf, -np.inf]])
    points = np.concatenate([points, rng.normal(size=500) * near[-1], rng.normal(size=500) * float(fmt.smallest) * 8])
    with np.errstate(over="ignore"):
        points = points.astype(np.float32)
    points = np.concatenate([points, np.nextafter(points, np.float32(0)), np.nextafter(points, np.float32(np.inf))])
    with np.errstate(all="ignore"):
        theirs = points.astype(getattr(ml_dtypes, name)).astype(np.float64)
    mine = round_array(ctx, points.astype(np.float64))
    np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(np.signbit(mine)[~np.isnan(mine)], np.signbit(theirs)[~np.isnan(theirs)])
    scalar = [round_real(ctx, Fraction(x)) for x in points[np.isfinite(points) & (points != 0)].tolist()]
    assert scalar == to_floats(fmt, mine[np.isfinite(points) & (points != 0)])


@pytest.mark.parametrize("ctx", [c for f in (*TINY, float16) for c in every_context(f)], ids=str)
def test_context_text_reads_back(ctx: Context) -> None:
    if ctx.format.name in FORMATS:
        assert context(str(ctx)) == ctx
    assert context(ctx) == ctx and context(ctx.format, ctx.mode, ctx.overflow, ctx.subnormals) == ctx


def test_contexts_that_users_write() -> None:
    ctx = Context(float8_e4m3fn, Mode.RTZ, Overflow.SATURATE, Subnormals.FLUSH)
    assert context("float8_e4m3fn:rtz:saturate:flush") == context("float8_e4m3fn:flush:saturate:RTZ") == ctx
    assert context("float8_e4m3fn:nan", mode="RTZ").overflow is Overflow.NAN
    assert context(context("float16:RTZ"), mode=Mode.RNE) == context("float16")
    assert context(" ieee(5, 11):RTP ").mode is Mode.RTP
    assert context("float4_e2m1fn").overflow is Overflow.SATURATE


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: context("fp8:RNE"), "unknown format 'fp8'"),
        (lambda: context("float16:RNE:RTZ"), "names two rules of one kind: 'RTZ' is the second"),
        (lambda: context("float16:nan:saturate"), "names two rules of one kind: 'saturate' is the second"),
        (lambda: context("float16:up"), "unknown rounding rule 'up': write one of RNE, RNA, RTP, RTN, RTZ, infinity"),
        (lambda: context("float16:"), "unknown rounding rule ''"),
        (lambda: context("float16", mode="nearest"), "unknown mode rule 'nearest': write one of RNE"),
        (lambda: context("float16", overflow="RTZ"), "unknown overflow rule 'RTZ'"),
        (lambda: context("float8_e4m3fn"), "float8_e4m3fn has no infinity: say overflow 'saturate' or 'nan'"),
        (lambda: context("float8_e4m3fn:infinity"), "has no infinity"),
        (lambda: context("float4_e2m1fn:nan"), "has no NaN: overflow can only be 'saturate'"),
        (lambda: context("float4_e2m1fn:infinity"), "has no infinity: overflow can only be 'saturate'"),
    ],
)
def test_errors(call, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError) as caught:
        call()
    assert words in str(caught.value)


def test_float8_e5m2_keeps_infinity_under_every_rule() -> None:
    for ctx in every_context(float8_e5m2):
        assert round_array(ctx, [np.inf, -np.inf]).tolist() == [np.inf, -np.inf]
