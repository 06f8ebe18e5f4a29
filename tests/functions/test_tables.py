"""Whole tables of small formats against the slow definition, and float16 against MPFR."""

from __future__ import annotations

import bisect
from fractions import Fraction
from typing import Any

import gmpy2
import numpy as np
import pytest

from fpsmt.errors import UsageError
from fpsmt.floats import (
    FORMATS,
    Context,
    Float,
    Format,
    Mode,
    Overflow,
    all_values,
    context,
    float8_e4m3,
    float8_e5m2,
    float16,
    float64,
    ieee,
    pow2,
)
from fpsmt.floats.vector import decode
from fpsmt.functions import FUNCTIONS, correctly_rounded, correctly_rounded_array, function_named, table
from tests.functions.reference import EVERY, real_value

SMALL = [f for f in FORMATS.values() if f.bits <= 8]


def rounded_slowly(ctx: Context, positives: Any, value: tuple[Fraction, Fraction]) -> Float | None:
    """The finite result in RNE with saturation decided apart: from exact midpoints between neighbours."""
    numbers, middles = positives
    low, high = value
    negative = low < 0
    if negative:
        low, high = -high, -low
    places = {bisect.bisect_left(middles, y) for y in (low, high)}
    on_middle = low == high and low in middles
    if on_middle:
        i = middles.index(low)
        places = {i if i % 2 == 0 else i + 1}
    assert len(places) == 1, "300 bits do not decide"
    i = places.pop()
    if i == len(numbers):
        return None
    return Float(ctx.format, i | (ctx.format.sign_mask if negative and (i or ctx.format.has_signed_zero) else 0))


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_small_tables_are_the_slow_definition(fmt: Format) -> None:
    ctx = context(fmt, overflow=None if fmt.has_infinity else "saturate")
    numbers = [Float(fmt, code).fraction for code in range(fmt.largest_code + 1)]
    beyond = numbers[-1] + (numbers[-1] - numbers[-2])  # the value that would come next
    middles = [(a + b) / 2 for a, b in zip(numbers, [*numbers[1:], beyond])]
    for function in EVERY.values():
        if not fmt.has_nan and function.lowest is not None:
            with pytest.raises(UsageError, match="NaN"):
                table(function, ctx)
            continue
        got = table(function, ctx)
        for x in all_values(fmt, finite=True):
            if not function.defined_at(x.fraction):
                continue
            value = real_value(function, x.fraction)
            want = rounded_slowly(ctx, (numbers, middles), value)
            y = float(got[x.code])
            if want is None:
                end = np.inf if fmt.has_infinity else float(fmt.largest)
                assert y == (end if value[0] > 0 else -end), (function.name, x)
            elif value == (0, 0):
                assert y == 0
            else:
                assert (y, np.signbit(y)) == (float(want), np.signbit(float(want))), (function.name, x, want)


CONTEXTS = [
    context(float8_e4m3, mode, overflow, subnormals)
    for mode, overflow, subnormals in (
        ("RTP", "infinity", "gradual"), ("RTN", "saturate", "flush"), ("RTZ", "nan", "flush-outputs"),
        ("RNA", "infinity", "flush-inputs"),
    )
]  # fmt: skip


@pytest.mark.parametrize(
    "ctx", [*CONTEXTS, context("float8_e5m2fnuz:nan"), context("float8_e4m3fn:saturate:RTP")], ids=str
)
def test_tables_are_the_scalar_path_in_every_context(ctx: Context) -> None:
    for function in EVERY.values():
        got = table(function, ctx)
        for code in range(256):
            want = float(correctly_rounded(function, ctx, Float(ctx.format, code)))
            assert (want == got[code] and np.signbit(want) == np.signbit(got[code])) or (
                want != want and np.isnan(got[code])
            )


def by_mpfr(name: str, x: float, mode: Mode, precision: int, emin: int, emax: int) -> float:
    """MPFR's correctly rounded value with gradual underflow."""
    names = {
        Mode.RNE: gmpy2.RoundToNearest,
        Mode.RTP: gmpy2.RoundUp,
        Mode.RTN: gmpy2.RoundDown,
        Mode.RTZ: gmpy2.RoundToZero,
    }
    with gmpy2.context(
        precision=precision, round=names[mode], emin=emin - precision + 2, emax=emax + 1, subnormalize=True
    ):
        return float(getattr(gmpy2, name)(gmpy2.mpfr(x)))


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sqrt", "cosh", "sin", "cos"])
def test_every_float16_against_mpfr(name: str) -> None:
    ctx = context(float16)
    got = table(function_named(name), ctx)
    x = decode(float16, np.arange(1 << 16, dtype=np.uint64))
    step = 1 if name in ("exp", "tanh") else 7
    for code in range(0, 1 << 16, step):
        if np.isfinite(x[code]):
            want = by_mpfr(name, float(x[code]), Mode.RNE, 11, float16.emin, float16.emax)
            assert (want == got[code] and np.signbit(want) == np.signbit(got[code])) or (
                want != want and np.isnan(got[code])
            )


def test_monotone_pieces_hold_for_all_float16_neighbours() -> None:
    """Correct rounding keeps the direction of every piece, so a wrong piece shows in the table."""
    ctx = context(float16)
    codes = [*range(float16.largest_code | 0x8000, 0x8000, -1), *range(float16.largest_code + 1)]
    x = decode(float16, np.array(codes, dtype=np.uint64))
    for function in EVERY.values():
        if function.period_phase is not None:
            continue
        y = table(function, ctx)[codes]
        edges = [Fraction(-(10**6)), *(p.enclosure(pow2(-40))[0] for p in function.turning), Fraction(10**6)]
        assert len(function.directions) == len(edges) - 1
        for direction, a, b in zip(function.directions, edges, edges[1:]):
            inside = (x > float(a) + 1e-9) & (x < float(b) - 1e-9) & ~np.isnan(y)
            values = y[inside]
            with np.errstate(invalid="ignore"):
                steps = np.where(values[1:] == values[:-1], 0.0, values[1:] - values[:-1])
            assert (direction * steps >= 0).all() and (direction != 0 or (steps == 0).all()), function.name


def test_array_shapes_and_formats() -> None:
    x = np.array([[0.5, -1.0], [2.0, np.nan]])
    y = correctly_rounded_array(FUNCTIONS["relu"], context("bfloat16"), x)
    assert y.shape == (2, 2) and y[0].tolist() == [0.5, 0.0] and np.isnan(y[1, 1])
    assert correctly_rounded_array(FUNCTIONS["exp"], context(float64), [1.0]).tolist() == [
        float.fromhex("0x1.5bf0a8b145769p+1")
    ]
    wide = correctly_rounded_array(
        FUNCTIONS["exp"], context(ieee(15, 113)), np.array([Float(ieee(15, 113), 0)], dtype=object)
    )
    assert wide[0].fraction == 1
    mixed = correctly_rounded_array(FUNCTIONS["exp"], context("float32"), [0.5], float16)
    assert mixed.tolist() == [float(np.float32(1.6487212707001282))]
    assert Overflow.INFINITY is context(float8_e5m2).overflow


def test_errors_say_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"too many for a table.*correctly_rounded_array"):
        table(FUNCTIONS["exp"], context("float32"))
    with pytest.raises(UsageError, match="has none"):
        correctly_rounded_array(FUNCTIONS["log"], context("float4_e2m1fn"), [-1.0])
