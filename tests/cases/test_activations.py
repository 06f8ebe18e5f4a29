"""Public reports about activations: the numbers in them, by programs and contracts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fpsmt.claims import AllowedOutput, ForAll
from fpsmt.engines import Options, decide
from fpsmt.engines.audit import audit
from fpsmt.engines.audit_errors import error_at
from fpsmt.engines.audit_subjects import of_program
from fpsmt.floats import (
    Float,
    Format,
    bfloat16,
    context,
    exactly,
    float16,
    float32,
    float64,
    infinity,
    largest,
    nan,
    nearest,
    ulp,
    zero,
)
from fpsmt.floats.vector import from_ordinals
from fpsmt.functions import (
    FUNCTIONS,
    Implementation,
    allowed_arrays,
    correctly_rounded,
    enclose,
    erf,
    gelu,
    implementation_named,
    log1p,
    relu,
    swish,
    tanh,
)
from fpsmt.terms import eq, implies, is_finite, program, var
from fpsmt.terms.program_text import compile_program
from fpsmt.terms.programs_library import LIBRARY

SINGLE, HALF = context("float32"), context("float16")


def at(name: str, ctx_name: str, x: float | Float, fma: str = "never") -> Float:
    """The result of a program whose functions are correctly rounded."""
    ctx = context(ctx_name)
    point = x if isinstance(x, Float) else nearest(ctx.format, Fraction(x))
    (only,) = program(name, fma).outcomes(ctx, point)  # type: ignore[arg-type]
    return only


def every(low: float, high: float) -> np.ndarray:
    """Every float32 value of [low, high]."""
    ends = [exactly(float32, v).ordinal for v in (low, high)]
    return from_ordinals(float32, np.arange(ends[0], ends[1] + 1))


# -- tensorflow#23054, tensorflow#55390: tanh above 1 -----------------------------------------------------------


@pytest.mark.parametrize(
    "name, fma, count, first, last",
    [
        ("tanh_rational", "always", 57437, 8.127431, 8.999997),
        ("tanh_rational", "never", 26503, 8.052297, 8.999964),
        ("tanh_rational_clamped", "always", 0, None, None),
        ("tanh_rational_clamped", "never", 0, None, None),
    ],
)
def test_the_shared_rational_tanh_exceeds_1(
    name: str, fma: str, count: int, first: float | None, last: float | None
) -> None:
    x = every(8.0, 9.0625)  # beyond 9 the input is clamped: one value; before 8 nothing is above 1
    y = allowed_arrays(Implementation(tanh, program(name, fma)), SINGLE, x)[0]  # type: ignore[arg-type]
    above = x[y > 1]
    assert len(above) == count
    assert y[-1] == y[x == 9]
    if first is not None:
        assert above[0] == pytest.approx(first, abs=1e-6) and above[-1] == pytest.approx(last, abs=1e-6)
        assert y.max() == 1 + 2.0**-22 == np.float32(1.0000002)


def test_the_largest_error_of_the_rational_tanh_is_5_to_6_ulps() -> None:
    """Where nothing underflows: below 2^−100 the product x·P(x²) is subnormal, and the error reaches 102 ulps."""
    subject = of_program(program("tanh_rational", "always"), tanh, SINGLE)
    found = audit(subject, tanh, exactly(float32, 2.0**-100), exactly(float32, 9.0), sample=30_000)
    assert not found.exhaustive and 3 < found.error.low <= found.error.high < 6
    tiny = audit(subject, tanh, exactly(float32, 0.0), exactly(float32, 2.0**-140), exhaustive=True)
    assert tiny.exhaustive and 102 <= tiny.error.low <= tiny.error.high <= 103
    dense = audit(
        subject, tanh, exactly(float32, 8.375), exactly(float32, 8.5), exhaustive=True
    )  # fmt: skip
    assert dense.exhaustive and dense.tally.under.count == 0 and dense.at is not None
    assert dense.error.low > 5 and dense.error.high < 6 and dense.at.hex == "0x1.0f37ap+3"


def test_values_of_the_original_report() -> None:
    """Above 1 at two of the points 8.8, 8.81, … 8.99, which are summed in float32 (with fma)."""
    grid = np.arange(8.8, 9, 0.01, dtype=np.float32).astype(np.float64)
    y = allowed_arrays(Implementation(tanh, program("tanh_rational", "always")), SINGLE, grid)[0]
    assert (y > 1).sum() == 2 and y.max() == 1 + 2.0**-23


# -- ncnn#6978: the same in float16 -----------------------------------------------------------------------------


def test_the_rational_in_float16() -> None:
    assert at("tanh_rational", "float16", 9).decimal == "1.0439453125"
    assert at("tanh_rational", "float16", 4).decimal == "1.001953125"
    x = from_ordinals(float16, np.arange(exactly(float16, 64).ordinal))
    y = allowed_arrays(Implementation(tanh, program("tanh_rational")), HALF, x)[0]
    assert x[np.argmax(y > 1)] == pytest.approx(3.531, abs=5e-4)
    coefficients = (5.12229709037114e-08, -8.60467152213735e-11, 2.00018790482477e-13, -2.76076847742355e-16)
    rounded = [nearest(float16, Fraction(c)) for c in coefficients]
    assert rounded[0].fraction == Fraction(1, 2**24) and all(c.is_zero for c in rounded[1:])


def test_a_bound_in_float32_does_not_carry_over_to_float16() -> None:
    """The real rational is within 4e-8 of tanh, the program in float32 within 6 ulps above 2^−100: in float16 102."""
    found = audit(of_program(program("tanh_rational"), tanh, HALF), tanh)
    assert found.exhaustive and Fraction(10199, 100) < found.error.low <= found.error.high < Fraction(10201, 100)
    one = nearest(float16, 1)
    above = AllowedOutput(Implementation(tanh, program("tanh_rational")), HALF, nearest(float16, 9), one)
    assert decide(above).name == "refuted"
    assert at("tanh_rational", "float16", 9) == nearest(float16, Fraction("1.044"))


@pytest.mark.parametrize("x, y", [(-100, "2.197"), (-1500, "32.97")])
def test_gelu_with_the_rational_in_float16_does_not_vanish(x: int, y: str) -> None:
    """0.5x(1 + tanh(…)), the tanh −1.044 in the tail, where the function is below every float16."""
    argument = "u = 0.79788456080286535588*(x + 0.044715*x*x*x); y = clamp(u, -9, 9); "
    *body, quotient = LIBRARY["tanh_rational"].body.split("; ")[1:]
    text = argument + "; ".join([*body, f"t = {quotient}", "0.5*x*(1 + t)"])
    assert at(text, "float16", x) == nearest(float16, Fraction(y))
    assert correctly_rounded(FUNCTIONS["gelu_tanh"], HALF, exactly(float16, x)).is_zero


# -- pytorch#187806: the tail of the exact GELU -----------------------------------------------------------------


@pytest.mark.parametrize(
    "x, result", [(-4, -0.00012671947), (-5, -1.4901161e-06), (-5.5, -1.6391277e-07), (-6, -0.0), (-8, -0.0)]
)
def test_gelu_by_erf_in_the_tail(x: float, result: float) -> None:
    y = at("gelu_erf", "float32", x)
    assert float(y) == np.float32(result) and y.negative


def test_gelu_by_erf_loses_more_than_half_whatever_its_erf() -> None:
    x = exactly(float32, -5.5)
    low, high = enclose(gelu, x.fraction, x.fraction)
    wrong, right = at("gelu_erf", "float32", x).fraction, at("gelu_erfc", "float32", x).fraction
    assert abs(wrong - low) / abs(high) > Fraction(569, 1000)
    assert abs(right - low) / abs(high) < Fraction(1, 10**5)
    assert at("gelu_erf", "float32", infinity(float32, negative=True)).is_nan


# -- jax#39707, jax#14717 ---------------------------------------------------------------------------------------


def test_log1p_of_float64() -> None:
    x = nearest(float64, Fraction("-0.4141892"))
    right = correctly_rounded(log1p, context("float64"), x)
    assert right.hex == "-0x1.11cbdaa6f412fp-1"
    off = exactly(float64, right.fraction - 129 * ulp(float64, right.fraction))
    found = error_at(log1p, context("float64"), x, off)
    assert 128 < found.low <= found.high < 130
    assert error_at(log1p, context("float64"), x, exactly(float64, float(np.log1p(float(x))))).high < 1


def test_erf_above_1_is_not_within_two_ulps() -> None:
    x = nearest(float32, Fraction("3.9004288"))
    right = correctly_rounded(erf, SINGLE, x)
    assert right == nearest(float32, Fraction("0.99999994"))
    above = nearest(float32, Fraction("1.0000001"))
    found = error_at(erf, SINGLE, x, above)
    assert found.low < Fraction("2.59") and found.high > Fraction("2.58")  # in units of 2^-24, the ulp below 1
    claim = AllowedOutput(implementation_named("erf:ulps=2"), SINGLE, x, above)
    assert decide(claim).name == "refuted"
    assert decide(AllowedOutput(implementation_named("erf:ulps=3"), SINGLE, x, above)).name == "proved"
    assert decide(AllowedOutput(implementation_named("erf:ulps=3:range=-1..1"), SINGLE, x, above)).name == "refuted"


# -- tinygrad#18028: relu6 as a difference ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "fmt, large, value", [(float16, 8192, 8), (float16, 32768, 0), (bfloat16, 1024, 8), (bfloat16, 4096, 0),
                          (float32, 2**26, 8), (float32, 2**28, 0)]
)  # fmt: skip
def test_relu6_as_a_difference(fmt: Format, large: int, value: int) -> None:
    assert at("relu6_difference", fmt.name, large).fraction == value
    assert at("relu6", fmt.name, large).fraction == 6


@pytest.mark.parametrize("fmt, smallest, count", [(float16, 4104, 4094), (bfloat16, 520, 15230)])
def test_the_smallest_input_at_which_the_forms_differ(fmt: Format, smallest: int, count: int) -> None:
    x = from_ordinals(fmt, np.arange(largest(fmt).ordinal + 1))
    forms = [program(name) for name in ("relu6_difference", "relu6")]
    first, second = (allowed_arrays(Implementation(relu, form), context(fmt), x)[0] for form in forms)
    apart = x[first != second]
    assert len(apart) == count and apart[0] == smallest
    assert at("relu6_difference", fmt.name, smallest).fraction != 6
    assert at("relu6_difference", fmt.name, exactly(fmt, smallest).next_down).fraction == 6


@pytest.mark.parametrize("fmt", [float16, bfloat16], ids=str)
def test_two_forms_of_relu6_are_not_one(fmt: Format) -> None:
    ctx, x = context(fmt), var("x", fmt)
    forms = [compile_program(program(n).body, ctx, "never", {}, x).term for n in ("relu6_difference", "relu6")]
    verdict = decide(ForAll("x finite ⇒ relu(x)⊖relu(x⊖6) = min(max(x, 0), 6)", implies(is_finite(x), eq(*forms))))
    assert verdict.name == "refuted"


# -- pytorch#185770, pytorch#7999: infinities and NaN -----------------------------------------------------------


def test_limits_of_gelu_and_silu() -> None:
    minus = infinity(float32, negative=True)
    assert at("gelu_erf", "float32", minus).is_nan and at("silu", "float32", minus).is_nan
    assert at("swish", "float32", minus).is_nan
    assert at("gelu_erf", "float32", infinity(float32)).is_infinite
    for function in (gelu, swish):
        assert correctly_rounded(function, SINGLE, minus).is_zero
        found = error_at(function, SINGLE, minus, nan(float32))
        assert found.mismatch == "nan"


def test_relu_of_nan() -> None:
    assert at("relu_select", "float32", nan(float32)) == zero(float32)
    assert at("relu_propagate", "float32", nan(float32)).is_nan
    assert at("relu_propagate", "float32", zero(float32, negative=True)) == zero(float32, negative=True)
    results = {at(name, "float32", nan(float32)).is_nan for name in ("relu_select", "relu_propagate")}
    assert results == {True, False}
    found = audit(of_program(program("relu_select"), relu, HALF), relu)
    assert found.tally.nan.count == 1 and found.contract is None


# -- numpy#14048, numpy#23351: errors of vector code ------------------------------------------------------------


@pytest.mark.parametrize(
    "x, y", [(0xC1902CB6, 0x327FFFAF), (0xC27C4E3B, 0x11FFFFC5), (0xC2CA6625, 0x00000008), (0xC2B4E953, 0x0005A826)]
)
def test_exp_of_numpy_pr_14048(x: int, y: int) -> None:
    point = Float(float32, x)
    assert correctly_rounded(FUNCTIONS["exp"], SINGLE, point) == Float(float32, y)
    for off in (3, 4):
        claim = AllowedOutput(implementation_named("exp:ulps=3"), SINGLE, point, Float(float32, y + off))
        assert decide(claim, Options()).name == ("proved" if error_of(point, y + off) <= 3 else "refuted")


def error_of(x: Float, code: int) -> Fraction:
    return error_at(FUNCTIONS["exp"], SINGLE, x, Float(float32, code)).high
