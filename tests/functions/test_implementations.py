"""Contracts against their definitions in exact rationals; text and JSON forms; vectors against scalars."""

from __future__ import annotations

import json
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Float, Format, context, exactly, float8_e4m3, float16, float32, float64, infinity, nan, ulp
from fpsmt.functions import (
    FUNCTIONS,
    Function,
    Implementation,
    Table,
    WithinUlps,
    allowed_arrays,
    allowed_tables,
    correctly_rounded,
    implementation_from_json,
    implementation_named,
    table,
)
from fpsmt.functions.enclosures import place
from tests.functions.reference import EVERY, in_one_binade, real_value


def finite_values(fmt: Format) -> list[Float]:
    from fpsmt.floats import all_values

    return list(all_values(fmt, finite=True))


def within(function: Function, x: Fraction, y: Fraction, distance: Fraction) -> bool:
    """|y − f(x)| ≤ distance, with as many bits as decide it."""
    bits = 300
    while True:
        low, high = real_value(function, x, bits)
        inside = {abs(y - low) <= distance, abs(y - high) <= distance}
        if len(inside) == 1:
            return inside.pop()
        bits *= 4
        assert bits < 2**22, "undecided"


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(EVERY)),
    st.integers(0, 255),
    st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(1), Fraction(23, 10), Fraction(6)]),
)
def test_ulps_are_the_definition(name: str, code: int, ulps: Fraction) -> None:
    ctx, function = context("float8_e4m3:saturate"), EVERY[name]
    x = Float(float8_e4m3, code)
    if not x.is_finite or not function.defined_at(x.fraction):
        return
    if name == "gelu_tanh'" and abs(x.fraction) > 100:
        return  # 1 + e^−200000 takes a reference of half a million bits, and its time
    real = in_one_binade(function, float8_e4m3, x.fraction)
    low, high = Implementation(function, WithinUlps(ulps)).allowed(ctx, x)
    nearest = correctly_rounded(function, ctx, x)
    step = ulp(float8_e4m3, real[0])
    want = {y for y in finite_values(float8_e4m3) if within(function, x.fraction, y.fraction, ulps * step)} | {nearest}
    got = {y for y in finite_values(float8_e4m3) if place(low) <= place(y) <= place(high)}
    if nearest in want and len(want) > 1 and want != got:
        want = {
            y
            for y in finite_values(float8_e4m3)
            if place(min(want, key=place)) <= place(y) <= place(max(want, key=place))
        }
    assert got == want


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["exp", "tanh", "sigmoid", "gelu", "sin", "erf"]), st.floats(-30, 30, width=32), st.integers(1, 12)
)
def test_float32_ulps_end_where_they_should(name: str, x: float, k: int) -> None:
    ctx, point = context(float32), exactly(float32, x)
    real = in_one_binade(FUNCTIONS[name], float32, point.fraction)
    low, high = implementation_named(f"{name}:ulps={k}").allowed(ctx, point)
    distance = k * ulp(float32, real[0])
    is_inside = {y: within(FUNCTIONS[name], point.fraction, y.fraction, distance) for y in (low, high)}
    assert all(is_inside.values())
    for y in (low.next_down, high.next_up):
        assert not within(FUNCTIONS[name], point.fraction, y.fraction, distance)


def test_floats_count_places() -> None:
    ctx, half = context(float32), exactly(float32, 0.5)
    implementation = implementation_named("tanh:floats=3")
    low, high = implementation.allowed(ctx, half)
    middle = correctly_rounded(FUNCTIONS["tanh"], ctx, half)
    assert (low.ordinal, high.ordinal) == (middle.ordinal - 3, middle.ordinal + 3)
    zero = implementation.allowed(ctx, exactly(float32, 0.0))
    assert [y.ordinal for y in zero] == [-3, 3]
    near_top = implementation_named("exp:floats=2").allowed(context(float16), exactly(float16, 11.09375))
    assert near_top == (Float(float16, 0x7BFE), infinity(float16))


def test_overflow_in_ulps() -> None:
    x = exactly(float16, 11.0859375)  # e^x = 65248, spacing 32
    low, high = implementation_named("exp:ulps=20").allowed(context(float16), x)
    assert low.is_finite and high.is_infinite
    assert implementation_named("exp:ulps=20").allowed(context("float16:saturate"), x)[1].fraction == 65504
    assert (
        implementation_named("exp:ulps=3").allowed(context(float16), exactly(float16, 20.0)) == (infinity(float16),) * 2
    )
    with pytest.raises(Unsupported, match="from far beyond"):
        implementation_named("exp:ulps=2000").allowed(context(float16), exactly(float16, 1000.0))


def test_special_inputs() -> None:
    ctx = context(float16)
    implementation = implementation_named("tanh:ulps=2")
    assert all(y.is_nan for y in implementation.allowed(ctx, nan(float16)))
    assert implementation.contains(ctx, nan(float16), nan(float16))
    assert not implementation.contains(ctx, exactly(float16, 0.5), nan(float16))
    low, high = implementation.allowed(ctx, infinity(float16))
    assert low.fraction < 1 < high.fraction
    assert implementation_named("exp:ulps=5").allowed(ctx, infinity(float16)) == (infinity(float16),) * 2
    assert all(y.is_nan for y in implementation_named("log:ulps=5").allowed(ctx, exactly(float16, -1.0)))
    both = implementation_named("tanh:ulps=1").allowed(ctx, exactly(float16, 0.0))
    assert [y.ordinal for y in both] == [-1, 1]


def test_zero_signs_under_a_distance() -> None:
    x = exactly(float16, -20.0)  # gelu is −5e−88 there
    for text, want in (("gelu:error=0", ["-0.0", "-0.0"]), ("gelu:ulps=0.5", ["-0.0", "0.0"])):
        assert [str(y) for y in implementation_named(text).allowed(context(float16), x)] == want


def test_clamp_and_pieces() -> None:
    ctx = context(float32)
    clamped = implementation_named("tanh:ulps=4:range=-1..1")
    assert clamped.allowed(ctx, exactly(float32, 30.0))[1].fraction == 1
    assert implementation_named("tanh:ulps=4").allowed(ctx, exactly(float32, 30.0))[1].fraction > 1
    pieces = implementation_named("sigmoid:ulps=3 on -1..18; ulps=306 on -6..-1; error=2^-22")
    widths = [place(b) - place(a) for a, b in (pieces.allowed(ctx, exactly(float32, v)) for v in (0.5, -1.0, -3.0))]
    assert widths[0] == widths[1] == 5 and widths[2] == 611
    low, high = pieces.allowed(ctx, exactly(float32, -17.0))
    assert low.fraction < 0 < high.fraction
    with pytest.raises(UsageError, match="no piece"):
        implementation_named("sigmoid:ulps=3 on 0..1").allowed(ctx, exactly(float32, -3.0))


def test_tables_as_contracts() -> None:
    ctx = context(float8_e4m3)
    from fpsmt.floats.vector import encode

    outputs = tuple(int(c) for c in encode(float8_e4m3, table(FUNCTIONS["tanh"], ctx)))
    implementation = Implementation(FUNCTIONS["tanh"], Table(float8_e4m3, float8_e4m3, outputs))
    low, high = allowed_tables(implementation, ctx)
    assert np.array_equal(low, high, equal_nan=True) and np.array_equal(
        low, table(FUNCTIONS["tanh"], ctx), equal_nan=True
    )
    assert implementation_from_json(json.loads(json.dumps(implementation.to_json()))) == implementation
    with pytest.raises(UsageError, match="says nothing about float16"):
        implementation.allowed(ctx, exactly(float16, 0.5))
    with pytest.raises(UsageError, match="one output for each"):
        Table(float8_e4m3, float8_e4m3, (0, 1))


TEXTS = [
    "tanh",
    "tanh:ulps=2",
    "tanh:floats=1",
    "tanh:ulps=2:monotone",
    "exp:ulps=9/2:any-value",
    "gelu:error=1/1024",
    "tanh:ulps=2:range=-1..1",
    "relu:range=..6",
    "sigmoid:ulps=3 on -1..18; rounded on ..-6; error=1/4194304",
    "leaky_relu(1/5):floats=2",
    "tanh':ulps=1",
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_and_json_round_trip(text: str) -> None:
    implementation = implementation_named(text)
    assert implementation.text == text
    assert implementation_named(implementation.text) == implementation
    assert implementation_from_json(json.loads(json.dumps(implementation.to_json()))) == implementation


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tanh:ulps=-1", "at least 0"),
        ("tanh:ulps=2:floats=1", "two contracts"),
        ("tanh:ulps=x", "cannot read"),
        ("foo:ulps=1", "unknown"),
        ("tanh:range=1..-1", "empty"),
        ("tanh:range=3", "LO..HI"),
        ("tanh:ulps=inf", "finite"),
        ("tanh:floats=1.5", "cannot read"),
    ],
)
def test_text_errors(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        implementation_named(text)


def test_json_errors() -> None:
    with pytest.raises(UsageError, match="missing"):
        implementation_from_json({"function": "tanh"})
    with pytest.raises(UsageError, match="unknown contract"):
        implementation_from_json(
            {"function": "tanh", "contract": {"kind": "magic"}, "single_valued": True, "monotone": False}
        )


VECTOR_TEXTS = [
    ":ulps=2",
    ":floats=1",
    ":ulps=23/10:range=-1..1",
    ":error=1/10",
    ":ulps=1 on ..-1; floats=3 on -1..1/2; ulps=3",
]


@pytest.mark.parametrize("spec", ["float16", "bfloat16:RTZ", "float8_e4m3:flush:RTP", "float8_e5m2fnuz:nan"])
@pytest.mark.parametrize("tail", VECTOR_TEXTS)
def test_vectors_are_the_scalar_path(spec: str, tail: str) -> None:
    ctx, chance = context(spec), random.Random(spec + tail)
    for name in ("tanh", "exp", "gelu", "log", "leaky_relu", "cos", "mish'", "selu"):
        implementation = implementation_named(name + tail)
        codes = [chance.randrange(1 << ctx.format.bits) for _ in range(25)] + [0, ctx.format.sign_mask]
        points = [Float(ctx.format, code) for code in codes]
        low, high = allowed_arrays(implementation, ctx, [float(x) for x in points])
        for x, a, b in zip(points, low, high):
            for want, got in zip(implementation.allowed(ctx, x), (a, b)):
                number = float(want)
                assert (number == got and np.signbit(number) == np.signbit(got)) or (want.is_nan and np.isnan(got)), (
                    name,
                    x,
                )


def test_wide_formats_go_through_the_scalar_path() -> None:
    low, high = allowed_arrays(implementation_named("exp:ulps=1"), context(float64), [1.0])
    assert low[0] < high[0] and np.nextafter(np.nextafter(low[0], 9), 9) >= high[0]
    with pytest.raises(UsageError, match="allowed_arrays"):
        allowed_tables(implementation_named("exp"), context(float32))
