"""The error analysis of programs against every float of small intervals."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from fpsmt.claims import MeetsContract
from fpsmt.engines import Options, decide
from fpsmt.errors import Unsupported
from fpsmt.floats import Float, context, exactly, float16, float32, from_ordinal, ulp
from fpsmt.floats.vector import from_ordinals
from fpsmt.functions import WithinUlps, enclose, function_named, implementation_named
from fpsmt.kernel import check_verdict, verdict_to_json
from fpsmt.terms import LIBRARY, program
from fpsmt.terms.program_errors import SERIES, distance, least_ulp

HALF = context("float16")
KNOWN = [name for name, entry in LIBRARY.items() if entry.function in SERIES]


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("options", [{}, {"fma": "any"}])
def test_bounds_hold_at_every_float(name: str, options: dict) -> None:
    """With the functions in it as far off as their contract allows."""
    entry = LIBRARY[name]
    function, use = function_named(entry.function), program(name, **options)
    term = use.compiled(HALF, float16).term
    rng, bounded = np.random.default_rng(len(name)), 0
    for start in rng.integers(0x0800, 0x4C00, 14).tolist():
        sign = -1 if rng.random() < 0.5 and function.lowest is None else 1
        places = sorted((sign * start, sign * (start + int(rng.integers(1, 12)))))
        low, high = (from_ordinal(float16, p) for p in places)
        try:
            far = distance(term, function, HALF, low, high)
        except Unsupported:
            return
        if far is None:
            continue
        bounded += 1
        least = least_ulp(function, float16, low, high)
        for place in range(places[0], places[1] + 1):
            x = from_ordinal(float16, place)
            ends = enclose(function, x.fraction, x.fraction, 120)
            assert least <= min(ulp(float16, end) for end in ends)
            for y in use.outcomes(HALF, x):
                assert y.is_finite and min(abs(y.fraction - end) for end in ends) <= far, (x, y)
    assert bounded >= 4


SLOPES = Fraction(0), Fraction(1, 2), Fraction(-3)


@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize("fma", ["never", "any"])
def test_offsets_hold_at_every_float(name: str, fma: Literal["never", "any"]) -> None:
    """Bounds of v − slope·x, also across 0 and across the thresholds of conditions."""
    use = program(name, fma)
    rng, bounded = np.random.default_rng(len(name)), 0
    for _ in range(6 if fma == "never" else 2):
        low, high = sorted(round(float(v)) / 8 for v in rng.integers(-40, 100 if fma == "never" else 40, 2))
        ends = exactly(float16, low), exactly(float16, high + 0.125)
        try:
            x = from_ordinals(float16, np.arange(ends[0].ordinal, ends[1].ordinal + 1, 3))
            x = np.append(x, [-0.0] * (0 in x))
            least, most = use.arrays(function_named("identity"), HALF, x, float16)
        except Unsupported:
            continue
        for slope in SLOPES:
            found = use.offsets(function_named("identity"), HALF, *ends, slope)
            if found is None:
                continue
            bounded += 1
            shift = float(slope) * x
            assert float(found[0]) <= (least - shift).min() and (most - shift).max() <= float(found[1])
    assert bounded >= 2


def test_offsets_are_useful() -> None:
    """A few ulps on short intervals; the shape of the function on long ones."""
    tanh = program("tanh_rational")
    a, b = tanh.offsets(function_named("tanh"), context("float32"), exactly(float32, -8), exactly(float32, 8))
    assert -Fraction(101, 100) < a < -1 and 1 < b < Fraction(101, 100)
    ends = exactly(float32, 1), from_ordinal(float32, exactly(float32, 1).ordinal + 3)
    a, b = tanh.offsets(function_named("tanh"), context("float32"), *ends)
    assert b - a < 12 * ulp(float32, Fraction(3, 4))
    a, b = tanh.offsets(function_named("tanh"), context("float32"), *ends, Fraction(1))
    assert -Fraction(1, 4) < a < b < -Fraction(7, 32)


def test_where_there_are_no_offsets() -> None:
    """An overflow, a pole, other contexts."""
    one, big = exactly(float16, 1), exactly(float16, 300)
    assert program("x*x").offsets(function_named("identity"), HALF, one, big) is None
    assert program("1/x").offsets(function_named("identity"), HALF, -one, one) is None
    assert program("x*x").offsets(function_named("identity"), context("float16:rtz"), one, one) is None
    assert program("x", within="float32").offsets(function_named("identity"), HALF, one, one) is None


def test_bounds_are_useful() -> None:
    """One and a bit of an ulp for a quotient, a sum and an exponential."""
    low, high = exactly(float32, 1.0), exactly(float32, 1.01171875)
    term = program("swish").compiled(context("float32"), float32).term
    far = distance(term, function_named("swish"), context("float32"), low, high)
    assert far is not None and far / least_ulp(function_named("swish"), float32, low, high) < Fraction(13, 10)


def claim(program_text: str, ulps: str, low: float, high: float) -> MeetsContract:
    use = implementation_named(f"{program_text.partition(' ')[0].partition('_')[0]}:program({program_text})")
    ends: list[Float] = [exactly(float32, v) for v in (low, high)]
    return MeetsContract(use, context("float32"), WithinUlps(Fraction(ulps)), float32, *ends)


def test_float32_programs_are_proved_and_refuted() -> None:
    verdict = decide(claim("gelu_erfc", "64", -3, 3), only="error analysis")
    assert verdict.name == "proved" and verdict.how == "error analysis"
    assert check_verdict(verdict_to_json(verdict)).name == "proved"
    inexact = decide(claim("swish | exp ulps=2 | fma any", "6", 1, 2), Options(timeout=30), only="error analysis")
    assert inexact.name == "proved"
    for engine in ("some inputs", None):
        assert decide(claim("gelu_erf", "64", -6, -4), only=engine).name == "refuted"
    assert decide(claim("swish", "1", 1, 2), Options(timeout=1), only="error analysis").name != "proved"


def test_a_contract_that_fails_in_one_place_is_not_proved() -> None:
    """The sigmoid of x below −88.7 is 0, and the interval around that place has few inputs."""
    wrong = claim("sigmoid", "1000", -89, -86)
    assert decide(wrong, only="error analysis").name == "refuted"
    assert decide(claim("sigmoid", "4", -80, -79), only="error analysis").name == "proved"


def test_an_error_beyond_every_float_is_not_below_what_is_unknown() -> None:
    """exp is above 2^5000 at 4096, where the program returns 0; and log has no values at −1."""
    ctx = context("bfloat16")
    ends = exactly(ctx.format, 2), exactly(ctx.format, 4096)
    error = program("x - x").error_on(function_named("exp"), ctx, *ends)
    assert error is None or error >= enclose(function_named("exp"), Fraction(4096), Fraction(4096))[0]
    assert program("x").error_on(function_named("log"), ctx, -ends[0], ends[0]) is None
    assert program("x").error_on(function_named("log"), ctx, ends[0], ends[0]) is not None
