"""Public reports about gradients, with their exact answers: conventions at kinks, underflow, NaN from a formula."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from fpsmt import floats
from fpsmt import terms as t
from fpsmt.floats import Format, bfloat16, context, exactly, float16, float32, float64, from_ordinal, infinity, nearest
from fpsmt.functions import implementation_named
from fpsmt.networks import Activation, Affine, Elementwise, Input, Network, gradient, rule_named, run

F32 = context("float32")


def slope(net: Network, x: object, rule: str = "correctly-rounded") -> Fraction:
    """The gradient at x from the loss derivative 1."""
    fmt = net.input.format
    point = x if isinstance(x, floats.Float) else exactly(fmt, x)
    return gradient(run(net, [point]), [exactly(fmt, 1)], rules=rule_named(rule)).gradient[0].fraction


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("value", ["0", "1/2", "1", "1/4"])
def test_the_identity_with_relus_has_twice_the_slope_at_the_kink(value: str, zero: float) -> None:
    """relu(x) − relu(−x) at 0, pytorch PR#76898: 1 is returned by the convention ½ alone."""
    net = Network.sequential("float32", 1, [([[1], [-1]], None), "relu", ([[1, -1]], None)])
    assert slope(net, zero, f"correctly-rounded:kinks={value}") == 2 * Fraction(value)


@pytest.mark.parametrize(
    ("rules", "rule", "result"),
    [
        ("float32", "correctly-rounded:kinks=1/2", 1),
        ("float32:flush", "correctly-rounded:kinks=1/2", Fraction(1, 2)),
        ("float32:flush", "framework", 0),
        ("float32:flush", "correctly-rounded", 0),
    ],
)
def test_maximum_of_a_subnormal_and_zero(rules: str, rule: str, result: Fraction) -> None:
    """jax#37821: subnormals are ties where they are read as 0."""
    net = Network.sequential(rules, 1, ["relu"])
    for tiny in (from_ordinal(float32, 1), exactly(float32, Fraction(2) ** -126).next_down):
        assert slope(net, tiny, rule) == result
    assert slope(net, Fraction(2) ** -126, rule) == 1


@pytest.mark.parametrize(("value", "expected"), [("0", -1), ("1/2", 0), ("1", 1)])
def test_absolute_value_at_zero(value: str, expected: int) -> None:
    """autodiff#130: |x| as 2·relu(x) − x; −1 and 1 are the ends of the subdifferential, 0 its least element."""
    net = Network(
        (
            Input(name="x", context=F32, size=1),
            Activation(name="relu", context=F32, source="x", implementation=implementation_named("relu")),
            Affine(name="twice", context=F32, source="relu", weights=[[2]]),
            Elementwise(name="y", context=F32, operation="sub", left="twice", right="x"),
        ),
        ("y",),
    )
    assert [slope(net, x, f"correctly-rounded:kinks={value}") for x in (-3, 0.0, 3)] == [-1, expected, 1]


def test_the_share_of_a_maximum_among_70000_equals() -> None:
    """tinygrad#12296: 1/70000 is a float16, and its denominator is not."""
    f16 = context("float16")
    one, count = exactly(float16, 1), floats.cast(f16, exactly(float32, 70000))
    assert count == infinity(float16) and floats.div(f16, one, count).is_zero
    share = floats.cast(f16, floats.div(F32, exactly(float32, 1), exactly(float32, 70000)))
    assert share.fraction == Fraction(1.430511474609375e-05) and share.is_subnormal


@pytest.mark.parametrize(
    ("constant", "value"), [("1e-8", 0.0), ("1e-7", 1.1920929e-07), ("1e-6", 1.0132790e-06), ("1e-12", 0.0)]
)
def test_small_constants_of_optimizers_in_float16(constant: str, value: float) -> None:
    """optax#1754: a step g ⊘ (√v ⊕ ε) of a zero gradient is NaN exactly where ε rounds to 0; constants ≤ 2⁻²⁵ do."""
    f16, nothing = context("float16"), exactly(float16, 0)
    eps = nearest(float16, Fraction(constant))
    assert eps.fraction == 0 if value == 0 else math.isclose(float(eps.fraction), value, rel_tol=1e-7)
    assert floats.div(f16, nothing, floats.add(f16, nothing, eps)).is_nan == eps.is_zero
    edge = Fraction(2) ** -25
    assert nearest(float16, edge).is_zero and not nearest(float16, edge * (1 + Fraction(1, 10**6))).is_zero


def _angle(fmt: Format, squares: int) -> list[floats.Float]:
    """(−y, x)/(x² + y²), with the denominator squared and its root taken when `squares` is 2."""
    ctx = context(fmt)
    x, y = (nearest(fmt, Fraction(v)) for v in ("5.6843e-14", "1e-13"))
    below = floats.add(ctx, floats.mul(ctx, x, x), floats.mul(ctx, y, y))
    if squares == 1:
        return [floats.div(ctx, -y, below), floats.div(ctx, x, below)]
    above = [floats.mul(ctx, v, below) for v in (-y, x)]
    return [floats.div(ctx, v, floats.mul(ctx, below, below)) for v in above]


def test_the_gradient_of_an_angle() -> None:
    """pytorch#98276: |z|² is fine in float32, |z|⁴ underflows and divides 0 by 0."""
    exact = _angle(float64, 1)
    for got, full, expected in zip(_angle(float32, 1), exact, (-7.5579e12, 4.2962e12)):
        assert math.isclose(float(got.fraction), float(full.fraction), rel_tol=1e-6)
        assert math.isclose(float(got.fraction), expected, rel_tol=1e-4)
    assert all(v.is_infinite or v.is_nan for v in _angle(float32, 2))
    assert all(v.is_finite for v in _angle(float64, 2))


@pytest.mark.parametrize("fmt", [bfloat16, float16, float32])
def test_a_finite_gradient_where_the_value_is_nan(fmt: Format) -> None:
    """pytorch#94509: 1/√(x² − 1), the slope of arcosh, is 2.1822 at −1.1, outside the domain x ≥ 1."""
    ctx, x, one = context(fmt), t.var("x", fmt), t.const(exactly(fmt, 1))
    inside = t.sub(ctx, t.mul(ctx, x, x), one)
    formula = t.div(ctx, one, t.sqrt(ctx, inside))
    at = {"x": nearest(fmt, Fraction("-1.1"))}
    slope = float(t.evaluate(formula, at).fraction)
    assert math.isclose(slope, 1 / math.sqrt(0.21), rel_tol=2.0 ** (5 - fmt.precision))
    value = t.apply(implementation_named("log"), ctx, t.add(ctx, x, t.sqrt(ctx, inside)))
    assert t.evaluate(value, at).is_nan
