"""The compiled kernels: constants, polynomial, error bound, and results against the slow path."""

from __future__ import annotations

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from flint import arb

from fpsmt.floats import Format, Mode, bfloat16, context, float16, float32, pow2
from fpsmt.floats.vector import decode
from fpsmt.functions import correctly_rounded, correctly_rounded_array, function_named, kernels, table
from fpsmt.functions.arrays import _by_bounds, as_float
from fpsmt.functions.function import evaluate
from tests.functions.reference import EVERY, ball, ends

WIDEST = Fraction(35, 100)


def test_constants() -> None:
    low, high = ends(evaluate(lambda x: x.log(), arb(2), 200))
    total = Fraction(kernels.LN2_HIGH) + Fraction(kernels.LN2_LOW)
    assert max(abs(total - low), abs(total - high)) < pow2(-85)
    assert (Fraction(kernels.LN2_HIGH) * 2**32).denominator == 1
    reciprocal = 1 / low
    assert abs(Fraction(kernels.PER_LN2) - reciprocal) < pow2(-52)
    # k is off by at most the rounding of x/ln 2 ± 1/2, so |x − k·ln 2| stays below WIDEST
    assert (Fraction(1, 2) + 1300 * pow2(-50)) * high < WIDEST
    pi_low, _ = ends(evaluate(lambda x: 2 * (2 / arb.pi()).sqrt(), arb(0), 200))
    assert abs(Fraction(kernels.GELU_LINEAR) - pi_low) < pow2(-52)


def test_the_polynomial_is_taylors_with_a_tiny_remainder() -> None:
    for i, c in enumerate(reversed(kernels.COEFFICIENTS)):
        assert abs(Fraction(c) * factorial(i + 1) - 1) <= pow2(-53)
    count = len(kernels.COEFFICIENTS)
    r = Fraction(36, 100)
    remainder = r**count / factorial(count + 1) / (1 - r / (count + 2))
    least = sum((-r) ** i / factorial(i + 1) for i in range(count))
    assert remainder / least < pow2(-56)


@pytest.mark.parametrize("name", kernels.NAMES)
def test_values_are_within_the_bound(name: str) -> None:
    """Half the bound (the other half is for rounding y·(1 ± ERROR)), also beside the steps of the reduction."""
    rng = np.random.default_rng(7)
    points = np.concatenate(
        [
            rng.normal(size=150) * 4, rng.normal(size=60) * 2.0 ** rng.integers(-30, 7, size=60),
            (np.arange(-60, 60) + 0.5) * 0.6931471805599453, 2.0 ** np.arange(-40, 4), -(2.0 ** np.arange(-40, 4)),
        ]
    )  # fmt: skip
    points = points.astype(np.float32).astype(np.float64)
    if name == "sqrt":
        points = np.abs(points)
    number = kernels.NAMES.index(name)
    bound = kernels.ERROR_GELU if name == "gelu_tanh" else kernels.ERROR
    function = EVERY[name]
    for x in points.tolist():
        if x == 0 or (name == "gelu_tanh" and x < -15) or (name == "gaussian" and abs(x) > 24):
            continue
        got = Fraction(kernels.value(number, x))
        exact = function.exact(Fraction(x))
        low, high = (exact, exact) if exact is not None else ends(ball(function, Fraction(x), 200))
        assert max(abs(got - low), abs(got - high)) <= Fraction(bound) / 2 * min(abs(low), abs(high)), x


@pytest.mark.parametrize("name", kernels.NAMES)
def test_far_inputs_and_special_values(name: str) -> None:
    function, ctx = function_named(name), context(float32)
    points = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        3e38,
        -3e38,
        88.0,
        -88.0,
        103.5,
        -104.0,
        1e-45,
        -1e-45,
        16.0,
        -20.0,
        700.0,
        -700.0,
    ]
    x = np.array(points).astype(np.float32).astype(np.float64)
    got = correctly_rounded_array(function, ctx, x)
    for v, y in zip(x, got):
        want = float(correctly_rounded(function, ctx, as_float(float32, v)))
        assert (want == y and np.signbit(want) == np.signbit(y)) or (np.isnan(want) and np.isnan(y)), (v, want, y)


@pytest.mark.parametrize("fmt", [float16, bfloat16], ids=str)
@pytest.mark.parametrize("mode", [Mode.RNE, Mode.RTZ])
def test_tables_by_kernels_are_tables_by_balls(fmt: Format, mode: Mode) -> None:
    ctx = context(fmt, mode)
    codes = np.arange(0, 1 << 16, 5, dtype=np.uint64)
    for name in kernels.NAMES:
        by_balls = _by_bounds(EVERY[name], ctx, decode(fmt, codes), fmt)
        by_kernel = table(EVERY[name], ctx)[codes]
        assert np.array_equal(by_kernel, by_balls, equal_nan=True), name
        number = ~np.isnan(by_balls)
        assert np.array_equal(np.signbit(by_kernel[number]), np.signbit(by_balls[number])), name


def test_wide_formats_have_no_kernel() -> None:
    for spec in ("float64", "ieee(11,24)"):
        ctx = context(spec)
        assert kernels.rounded(function_named("exp"), ctx, np.array([1.0]), ctx.format) is None
    assert kernels.rounded(function_named("erf"), context(float32), np.array([1.0]), float32) is None
