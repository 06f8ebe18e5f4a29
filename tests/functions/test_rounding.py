"""Correct rounding of single values: against MPFR, in all modes, at extreme inputs, at exact cases."""

from __future__ import annotations

import math
from fractions import Fraction

import gmpy2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.errors import UsageError
from fpsmt.floats import Float, Mode, context, exactly, float16, float32, float64, from_ordinal, ieee, nan, round_real
from fpsmt.functions import FUNCTIONS, correctly_rounded, function_named
from tests.functions.reference import EVERY, ball, ends
from tests.functions.test_tables import by_mpfr

MPFR = ["exp", "log", "sin", "cos", "tanh", "erf", "sqrt", "cosh"]
MODES = [Mode.RNE, Mode.RTP, Mode.RTN, Mode.RTZ]


def same(a: float, b: float) -> bool:
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(MPFR), st.floats(width=32), st.sampled_from(MODES))
def test_float32_against_mpfr(name: str, x: float, mode: Mode) -> None:
    if math.isinf(x):
        return
    got = float(correctly_rounded(FUNCTIONS[name], context(float32, mode), exactly(float32, x)))
    assert same(got, by_mpfr(name, x, mode, 24, float32.emin, float32.emax))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(MPFR), st.floats(), st.sampled_from(MODES))
def test_float64_against_mpfr(name: str, x: float, mode: Mode) -> None:
    if math.isinf(x) or (name in ("sin", "cos") and abs(x) > 2.0**900):
        return
    got = float(correctly_rounded(FUNCTIONS[name], context(float64, mode), exactly(float64, x)))
    assert same(got, by_mpfr(name, x, mode, 53, float64.emin, float64.emax))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(EVERY)), st.floats(min_value=-20, max_value=20, width=32))
def test_the_five_modes_agree_with_each_other(name: str, x: float) -> None:
    function, point = EVERY[name], exactly(float32, x)
    if not function.defined_at(point.fraction):
        return
    y = {mode: correctly_rounded(function, context(float32, mode), point) for mode in Mode}
    down, up = y[Mode.RTN], y[Mode.RTP]
    assert all(v in (down, up) for v in y.values())
    exact = function.exact(point.fraction)
    low, high = (exact, exact) if exact is not None else ends(ball(function, point.fraction, 4000))
    if up.is_finite and down.is_finite:
        assert down.fraction <= low and high <= up.fraction
        assert up.ordinal - down.ordinal <= 1
        assert abs(y[Mode.RNE].fraction - low) <= (up.fraction - down.fraction) / 2 + (high - low)
        toward_zero = down if low > 0 else up
        assert y[Mode.RTZ].fraction == toward_zero.fraction


EXTREMES = [2.0**-1074, 2.0**-1022, 2.0**-60, 1.0, 40.0, 745.0, 1e5, 1e100, 1.7976931348623157e308]


@pytest.mark.parametrize("name", sorted(EVERY))
def test_extreme_float64_inputs_are_decided(name: str) -> None:
    """Every mode and both signs; the directed results enclose, neighbours or equal, and respect the range."""
    function = EVERY[name]
    for x in (s * v for v in EXTREMES for s in (1, -1)):
        point = exactly(float64, x)
        if not function.defined_at(point.fraction):
            assert correctly_rounded(function, context(float64), point).is_finite is False
            continue
        down = correctly_rounded(function, context(float64, "RTN"), point)
        up = correctly_rounded(function, context(float64, "RTP"), point)
        near = correctly_rounded(function, context(float64), point)
        assert near in (down, up) and 0 <= up.ordinal - down.ordinal <= 1
        exact = function.exact(point.fraction)
        if exact is not None:
            assert abs(up.fraction - exact) <= abs(up.fraction - down.fraction) if up.is_finite else True
        else:
            assert up.ordinal - down.ordinal == 1, "an irrational value is never a float"


@pytest.mark.parametrize(
    ("name", "x", "mode", "want"),
    [
        ("tanh", 2.0**-1074, "RTZ", 0.0),
        ("tanh", 2.0**-1074, "RTP", 2.0**-1074),
        ("tanh", 1e308, "RTZ", 1 - 2.0**-53),
        ("tanh", 1e308, "RNE", 1.0),
        ("exp", 1e308, "RTZ", 1.7976931348623157e308),
        ("exp", 1e308, "RNE", math.inf),
        ("exp", -1e308, "RTP", 2.0**-1074),
        ("exp", -1e308, "RNE", 0.0),
        ("sigmoid", -1e308, "RTP", 2.0**-1074),
        ("sigmoid", 1e308, "RTN", 1 - 2.0**-53),
        ("exp", 2.0**-1074, "RTP", 1 + 2.0**-52),
        ("cos", 2.0**-1074, "RTZ", 1 - 2.0**-53),
        ("cosh", 2.0**-1074, "RTP", 1 + 2.0**-52),
        ("gelu", 2.0**-1074, "RNE", 2.0**-1074),
        ("gelu", -(2.0**-1074), "RNE", -0.0),
        ("gelu", -1e308, "RNE", -0.0),
        ("gelu", -1e308, "RTN", -(2.0**-1074)),
        ("gelu", 1e308, "RTZ", 9.999999999999998e307),
        ("softplus", 1e308, "RTP", 1.0000000000000002e308),
        ("elu", -1e308, "RTP", -1 + 2.0**-53),
        ("mish", -1e308, "RTZ", -0.0),
        ("log", 2.0**-1074, "RNE", -744.4400719213812),
        ("sqrt1p_square", 1e308, "RTP", 1.0000000000000002e308),
        ("gelu'", 745.0, "RTP", 1 + 2.0**-52),
        ("swish'", -1e5, "RTN", -(2.0**-1074)),
        ("gaussian'", 1e200, "RTN", -(2.0**-1074)),
    ],
)
def test_known_extremes(name: str, x: float, mode: str, want: float) -> None:
    got = correctly_rounded(function_named(name), context(float64, mode), exactly(float64, x))
    assert same(float(got), want), got


@pytest.mark.parametrize(
    ("name", "x", "want"),
    [
        ("sqrt1p_square", 0.75, 1.25),
        ("sqrt1p_square'", 0.75, 0.6),
        ("sqrt", 2.25, 1.5),
        ("sqrt'", 0.25, 1.0),
        ("log", 1.0, 0.0),
        ("tanh", -0.0, -0.0),
        ("relu", -0.0, 0.0),
        ("relu", -3.0, 0.0),
        ("cos'", 0.0, -0.0),
        ("sqrt", -0.0, -0.0),
        ("log", -0.0, -math.inf),
        ("sqrt", -1.0, math.nan),
        ("log", -1.0, math.nan),
        ("sin", math.inf, math.nan),
        ("elu'", 0.0, 1.0),
        ("relu'", 0.0, 0.0),
        ("step", 0.0, 1.0),
        ("step'", 0.0, 0.0),
        ("gelu'", 0.0, 0.5),
        ("swish'", 0.0, 0.5),
        ("sigmoid'", 0.0, 0.25),
        ("tanh'", 0.0, 1.0),
        ("mish'", 0.0, 0.6),
        ("gelu", -math.inf, -0.0),
        ("tanh", math.inf, 1.0),
        ("leaky_relu", -1.0, -0.01),
        ("softplus", -math.inf, 0.0),
        ("selu'", 0.0, 1.0507009873554805),
        ("leaky_relu'", 0.0, 0.01),
        ("log'", -0.0, math.inf),
        ("identity", -0.0, -0.0),
    ],
)
def test_exact_and_special_values(name: str, x: float, want: float) -> None:
    assert same(float(correctly_rounded(function_named(name), context(float64), exactly(float64, x))), want)


def test_nan_stays_nan_everywhere() -> None:
    for function in EVERY.values():
        assert correctly_rounded(function, context(float16), nan(float16)).is_nan


def test_rounding_into_another_format_happens_once() -> None:
    """A float64 whose tanh is just beside a float16 midpoint: rounding through float32 would go wrong."""
    middle = Fraction(1, 2) + Fraction(1, 2**12)
    with gmpy2.context(precision=300):
        x = float(gmpy2.atanh(gmpy2.mpq(middle.numerator, middle.denominator)))
    for point in (x, math.nextafter(x, 1), math.nextafter(x, 0)):
        low, _ = ends(ball(FUNCTIONS["tanh"], Fraction(point)))
        got = correctly_rounded(FUNCTIONS["tanh"], context(float16), exactly(float64, point))
        assert got == round_real(context(float16), low)


def test_wide_exponents_terminate() -> None:
    quad = ieee(15, 113)
    tiny, huge = from_ordinal(quad, 1), from_ordinal(quad, quad.largest_code)
    assert correctly_rounded(FUNCTIONS["tanh"], context(quad), tiny) == tiny
    assert correctly_rounded(FUNCTIONS["sigmoid"], context(quad), huge).fraction == 1
    assert correctly_rounded(FUNCTIONS["exp"], context(quad), huge).is_infinite


def test_overflow_and_subnormal_rules() -> None:
    x = exactly(float16, 20.0)
    assert correctly_rounded(FUNCTIONS["exp"], context("float16:saturate"), x).fraction == 65504
    assert correctly_rounded(FUNCTIONS["exp"], context("float16:nan"), x).is_nan
    low = exactly(float16, -10.0)  # e^-10 = 4.54e-5 is subnormal
    assert correctly_rounded(FUNCTIONS["exp"], context("float16:flush"), low) == Float(float16, 0)
    assert correctly_rounded(FUNCTIONS["tanh"], context("float16:flush-inputs"), -from_ordinal(float16, 5)) == Float(
        float16, 0x8000
    )


def test_registry_errors_list_the_names() -> None:
    with pytest.raises(UsageError, match=r"unknown function 'tahn'.*tanh.*leaky_relu\(SLOPE\)"):
        function_named("tahn")
    with pytest.raises(UsageError, match="0 ≤ slope < 1"):
        function_named("leaky_relu(2)")
    with pytest.raises(UsageError, match="no derivative"):
        _ = FUNCTIONS["sin"].derivative.derivative.derivative
    assert function_named("leaky_relu(1/100)") is FUNCTIONS["leaky_relu"]
