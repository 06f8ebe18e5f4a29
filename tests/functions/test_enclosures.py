"""Enclosures contain what they must; ranges over floats are exact; the records of the functions are right."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import (
    Context,
    Float,
    Format,
    all_values,
    bfloat16,
    context,
    exactly,
    float8_e4m3,
    float16,
    float32,
    float64,
    infinity,
    nan,
    pow2,
)
from fpsmt.functions import FUNCTIONS, constant_on, correctly_rounded, enclose, function_named, range_on
from fpsmt.functions.enclosures import place
from fpsmt.functions.function import Ball, Function, ball_of, evaluate
from tests.functions.reference import EVERY, ball, ends

rationals = st.fractions(min_value=-12, max_value=12, max_denominator=2**30)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(EVERY)), rationals, rationals, st.fractions(0, 1, max_denominator=64))
def test_enclosures_contain_600_bit_values(name: str, a: Fraction, b: Fraction, t: Fraction) -> None:
    function = EVERY[name]
    low, high = min(a, b), max(a, b)
    if not function.defined_at(low):
        with pytest.raises(UsageError, match="domain"):
            enclose(function, low, high)
        return
    least, most = enclose(function, low, high)
    exact = function.exact(low + t * (high - low))
    x, y = (exact, exact) if exact is not None else ends(ball(function, low + t * (high - low), 600))
    assert least <= x and y <= most
    wide = evaluate(function.ball, ball_of(low, high, 64), 64)
    if wide.is_finite():
        assert ends(wide)[0] <= x and y <= ends(wide)[1]


@pytest.mark.parametrize(
    "x", [Fraction(3893924827815215, 1125899906842624), Fraction(1381846513289487, 70368744177664)]
)
def test_points_where_mpmath_intervals_fail(x: Fraction) -> None:
    low, high = enclose(FUNCTIONS["exp"], x, x, 53)
    a, b = ends(ball(FUNCTIONS["exp"], x, 600))
    assert low <= a and b <= high and high - low < low / 2**50


@pytest.mark.parametrize("name", sorted(EVERY))
def test_enclosures_are_tight(name: str) -> None:
    """The ends of [0.3, 2.5] (or an extremum inside) are attained, up to 2^−60."""
    function = EVERY[name]
    a, b = Fraction(3, 10), Fraction(5, 2)
    least, most = enclose(function, a, b)
    samples = [ball(function, a + (b - a) * Fraction(i, 400)) for i in range(401)]
    assert least >= min(ends(y)[0] for y in samples) - Fraction(1, 1000)
    assert most <= max(ends(y)[1] for y in samples) + Fraction(1, 1000)


def test_extrema_are_the_known_ones() -> None:
    for name, least in (("gelu", -0.16997120747990366), ("swish", -0.2784645427610738), ("mish", -0.30884341301725043)):
        low, _ = enclose(FUNCTIONS[name], Fraction(-5), Fraction(1))
        assert float(low) == least
        assert enclose(FUNCTIONS[name], Fraction(-5), Fraction(1), 300)[0] >= low
    assert enclose(FUNCTIONS["sin"], Fraction(1), Fraction(2))[1] == 1
    assert enclose(FUNCTIONS["cos"], Fraction(10**30), Fraction(10**30) + 8) == (-1, 1)


def test_unbounded_and_far_intervals() -> None:
    low, high = enclose(FUNCTIONS["sigmoid"], Fraction(-(10**400)), Fraction(10**400))
    assert low == 0 and high == 1
    with pytest.raises(Unsupported, match="too large"):
        enclose(FUNCTIONS["exp"], Fraction(0), Fraction(10**9))
    with pytest.raises(UsageError, match="empty"):
        enclose(FUNCTIONS["exp"], Fraction(1), Fraction(0))


# -- the records: derivatives, turning points, tails, strict bounds -------------------------------------------------


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_difference_quotients_lie_in_the_derivative(name: str) -> None:
    """Mean value theorem on small intervals away from kinks: (f(b) − f(a))/(b − a) ∈ f′([a, b])."""
    function = FUNCTIONS[name]
    starts = [Fraction(n, 8) for n in range(-80, 80, 5) if function.lowest is None or n > 0]
    for a in starts:
        b = a + Fraction(1, 2**20)
        if a <= 0 <= b and name in ("step", "relu", "leaky_relu", "selu"):
            continue
        fa, fb = ball(function, a), ball(function, b)
        low, high = ends((fb - fa) * 2**20)
        least, most = enclose(function.derivative, a, b)
        assert least <= high and low <= most, (name, a)
        assert most - least < max(Fraction(1), abs(most)) / 100


def sign_on(function: Ball, low: Fraction, high: Fraction, depth: int = 0) -> int | None:
    """The certified sign of a function over [low, high] by subdivision."""
    y = evaluate(function, ball_of(low, high, 64), 64)
    if y > 0:
        return 1
    if y < 0:
        return -1
    if depth == 40:
        return None
    middle = (low + high) / 2
    left = sign_on(function, low, middle, depth + 1)
    return left if left is not None and left == sign_on(function, middle, high, depth + 1) else None


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "swish", "mish"])
def test_the_minimum_is_the_only_one(name: str) -> None:
    """The derivative is negative before and positive after the bracket, out to ±20, and rises inside it."""
    function = FUNCTIONS[name]
    (point,) = function.turning
    slope = point.sign if name != "gelu" else function.derivative.ball
    assert slope is not None
    assert sign_on(slope, Fraction(-20), point.low) == -1
    assert sign_on(slope, point.high, Fraction(20)) == 1
    curved = function.derivative.turning
    assert curved[0].high < point.low and point.high < curved[1].low  # between them the derivative rises


@pytest.mark.parametrize("name", ["gelu'", "gelu_tanh'", "swish'", "mish'", "gaussian'"])
def test_the_turning_points_of_derivatives_are_all(name: str) -> None:
    """The sign function of the second derivative outside the brackets, out to ±20, and its monotone change inside."""
    first, second = EVERY[name].turning
    sign = first.sign
    assert sign is not None and sign is second.sign
    assert sign_on(sign, Fraction(-20), first.low) == -1
    assert sign_on(sign, first.high, second.low) == 1
    assert sign_on(sign, second.high, Fraction(20)) == -1
    for point in (first, second):
        step = (point.high - point.low) / 16
        values = [ends(evaluate(sign, ball_of(x, x, 80), 80)) for x in (point.low + i * step for i in range(17))]
        increasing = point is first
        assert all((b[0] > a[1]) if increasing else (b[1] < a[0]) for a, b in itertools.pairwise(values))


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(EVERY)), st.fractions(min_value=-80, max_value=80, max_denominator=2**20))
def test_strict_bounds_and_tails_hold(name: str, x: Fraction) -> None:
    function = EVERY[name]
    if function.exact(x) is not None or not function.defined_at(x):
        return
    low, high = ends(ball(function, x, 20000 if abs(x) > 20 else 2000))
    for bound in function.bounds:
        if bound.applies(x):
            line = bound.slope * x + bound.offset
            assert low > line if bound.side > 0 else high < line
    tail = function.right_tail if x > 64 else function.left_tail if x < -64 else None
    if tail is not None:
        line = tail.slope * x + tail.offset
        assert low > line if tail.side > 0 else high < line
        further = ends(ball(function, x * 2, 20000))
        assert abs(further[0] - tail.slope * 2 * x - tail.offset) < abs(low - line)
    for end, beyond in zip(function.range, (low, high)):
        assert end is None or (end < beyond) == (end is function.range[0])


def test_parity_is_true() -> None:
    for function in EVERY.values():
        for x in (Fraction(1, 3), Fraction(5, 2)):
            if function.parity != "none":
                minus = ball(function, -x)
                assert minus.overlaps(ball(function, x) if function.parity == "even" else -ball(function, x))


def test_records_pickle_and_print() -> None:
    for function in EVERY.values():
        assert pickle.loads(pickle.dumps(function)) is function
        assert function.name in repr(function)
    sloped = function_named("leaky_relu(0.25)")
    assert pickle.loads(pickle.dumps(sloped)) is sloped
    assert sloped(arb(-4)) == -1


# -- floats -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", [float16, bfloat16, float32, float64], ids=str)
@pytest.mark.parametrize("name", ["cos", "sqrt1p_square", "cosh", "gaussian"])
def test_flat_at_zero(fmt: Format, name: str) -> None:
    w = exactly(fmt, pow2(2 - fmt.precision))
    one = constant_on(FUNCTIONS[name], context(fmt), -w, w)
    assert one is not None and one.fraction == 1


def brute(function: Function, ctx: Context, low: Float, high: Float) -> list[Float]:
    line = [x for x in all_values(ctx.format) if not x.is_nan and place(low) <= place(x) <= place(high)]
    return [correctly_rounded(function, ctx, x) for x in line]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(EVERY)), st.integers(0, 255), st.integers(0, 255),
    st.sampled_from(["", ":RTZ", ":RTP:flush", ":saturate:RTN", ":flush-inputs"]),
)  # fmt: skip
def test_ranges_are_the_brute_force_ones(name: str, a: int, b: int, rules: str) -> None:
    ctx, function = context("float8_e4m3" + rules), EVERY[name]
    x, y = Float(float8_e4m3, a), Float(float8_e4m3, b)
    if x.is_nan or y.is_nan:
        return
    low, high = sorted((x, y), key=place)
    values = brute(function, ctx, low, high)
    if any(v.is_nan for v in values):
        with pytest.raises((UsageError, Unsupported)):
            range_on(function, ctx, low, high)
    else:
        assert range_on(function, ctx, low, high) == (min(values, key=place), max(values, key=place))
    only = set(values)
    assert constant_on(function, ctx, low, high) == (only.pop() if len(only) == 1 else None)


def test_constant_on_tails_of_float64() -> None:
    ctx, far, huge = context(float64), exactly(float64, 40.0), exactly(float64, 1e308)
    assert constant_on(FUNCTIONS["tanh"], ctx, far, huge) == exactly(float64, 1.0)
    assert constant_on(FUNCTIONS["tanh"], context("float64:RTZ"), far, infinity(float64)) is None
    assert constant_on(FUNCTIONS["cos"], ctx, -huge, huge) is None
    assert [str(v) for v in range_on(FUNCTIONS["cos"], ctx, -huge, huge)] == ["-1.0", "1.0"]
    assert constant_on(FUNCTIONS["exp"], context("float64:nan"), exactly(float64, 800.0), huge) is None


def test_range_errors() -> None:
    ctx, one = context(float16), exactly(float16, 1.0)
    with pytest.raises(UsageError, match="empty"):
        range_on(FUNCTIONS["exp"], ctx, one, -one)
    with pytest.raises(UsageError, match="empty"):
        range_on(FUNCTIONS["exp"], ctx, nan(float16), one)
    with pytest.raises(UsageError, match="domain"):
        range_on(FUNCTIONS["log"], ctx, -one, one)
    with pytest.raises(UsageError, match="two formats"):
        range_on(FUNCTIONS["exp"], ctx, exactly(float32, 0.0), one)
    assert np.isnan(float(constant_on(FUNCTIONS["log"], ctx, -one, -one)))  # type: ignore[arg-type]


@pytest.mark.parametrize("ctx", ["ieee(3,2):flush", "ieee(3,2):flush-inputs", "ieee(3,2)"])
@pytest.mark.parametrize("name", ["sqrt", "log"])
def test_one_value_where_subnormals_are_zeros(name: str, ctx: str) -> None:
    """−ω may be read as −0, which is in the domain of the square root, and the floats below it are not."""
    where, function = context(ctx), FUNCTIONS[name]
    line = sorted((x for x in all_values(where.format) if not x.is_nan), key=place)
    for i, low in enumerate(line):
        for j in range(i, len(line)):
            found = {correctly_rounded(function, where, x) for x in line[i : j + 1]}
            assert constant_on(function, where, low, line[j]) in (None, *(found if len(found) == 1 else ()))
