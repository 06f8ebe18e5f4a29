r"""The functions and their derivatives, one record each.

**Which values are rational.**  The ball loop of `rounding` ends at x exactly when f(x) is not a rounding
breakpoint (a dyadic rational), or is known exactly.  `Function.exact` returns the value at each rational x where
it is rational; elsewhere it is irrational, because

* e^x is transcendental for algebraic x ≠ 0 (Hermite–Lindemann), hence so is every non-constant rational function of
  e^x with rational coefficients: exp, tanh, sigmoid, cosh, expm1 (also ELU, SELU, CELU), swish, mish, gaussian (at
  −x²), and the derivatives of these, also after multiplication by x ≠ 0 or addition of rationals;
  sin x and cos x likewise (e^{ix}), log x for x ≠ 1 (else x = e^{log x} would be transcendental), so log(1 + x) too;
* softplus: log(1 + e^x) = q rational gives e^q − e^x = 1, against the linear independence of e^0, e^x, e^q for
  distinct exponents (Lindemann–Weierstrass); q = x or q = 0 is impossible at once and x = 0 gives log 2.
  Logsigmoid is −softplus(−x);
* √q is rational for a quotient q in lowest terms exactly when numerator and denominator are squares: √x,
  √(1 + x²) (at 3/4 it is 5/4), 1/(2√x), x/√(1 + x²) are tested exactly;
* erf, erfc, the erf form of GELU, their derivatives at x ≠ 0, and the tanh form of GELU and its derivative, involve
  both e^{…} or ∫e^{−t²} and √π, which no theorem covers.  If such a value were a breakpoint, the loop would end with an
  `Unsupported` error, never with a wrong value; for formats of 16 bits the table shows that none is.

**Kinks and jumps** (part of the record): step(0) = 1 and step′ = 0; relu′(0) = 0; leaky_relu′(0) = slope;
elu′(0) = celu′(0) = 1; selu′(0) = scale (the limit from the right).  log′ = 1/x and √′ have a pole at both zeros, +inf.

**Constants** are the exact decimals written here, not their float32 or float64 roundings.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from flint import arb

from fpsmt.functions import balls
from fpsmt.functions.function import Ball, Function, Line, StrictBound, Tail, TurningPoint

SELU_SCALE = Fraction("1.0507009873554804934193349852946")
SELU_ALPHA = Fraction("1.6732632423543772848170429916717")
LEAKY_SLOPE = Fraction(1, 100)

ZERO, ONE, HALF = Fraction(0), Fraction(1), Fraction(1, 2)
ORIGIN = TurningPoint(ZERO, ZERO)
INF = math.inf


def _at_zero(value: Fraction | int) -> dict[str, Any]:
    return {"rational": lambda x: Fraction(value) if x == 0 else None}


Number = Fraction | int


def _below(slope: Number, offset: Number, low: int | None = None, high: int | None = None) -> StrictBound:
    return _bound(slope, offset, low, high, -1)


def _above(slope: Number, offset: Number, low: int | None = None, high: int | None = None) -> StrictBound:
    return _bound(slope, offset, low, high, 1)


def _bound(slope: Number, offset: Number, low: int | None, high: int | None, side: int) -> StrictBound:
    a, b = (None if end is None else Fraction(end) for end in (low, high))
    return StrictBound(a, b, Fraction(slope), Fraction(offset), 1 if side > 0 else -1)


def _tail(slope: Fraction | int, offset: Fraction | int, side: int) -> Tail:
    return Tail(Fraction(slope), Fraction(offset), 1 if side > 0 else -1)


def _root(sign: Ball, low: str, high: str) -> TurningPoint:
    return TurningPoint(Fraction(low), Fraction(high), sign)


def _jump(left: Fraction | int, right: Fraction | int) -> TurningPoint:
    return TurningPoint(ZERO, ZERO, limits=(Fraction(left), Fraction(right)))


def square_root(x: Fraction) -> Fraction | None:
    """√x when it is rational."""
    if x < 0:
        return None
    p, q = math.isqrt(x.numerator), math.isqrt(x.denominator)
    return Fraction(p, q) if p * p == x.numerator and q * q == x.denominator else None


def _hypotenuse(x: Fraction) -> Fraction | None:
    return square_root(1 + x * x)


def _hypotenuse_slope(x: Fraction) -> Fraction | None:
    root = square_root(1 + x * x)
    return None if root is None else x / root


def _sqrt_slope(x: Fraction) -> Fraction | None:
    root = square_root(x) if x > 0 else None
    return None if root is None else 1 / (2 * root)


def _two_lines(left: Fraction | int, right: Fraction | int) -> tuple[Line, Line]:
    return (Line(None, ZERO, Fraction(left), ZERO), Line(ZERO, None, Fraction(right), ZERO))


def leaky_relu(slope: Fraction, name: str) -> tuple[Function, Function]:
    """x for x > 0, slope·x else, 0 ≤ slope < 1 rational; and its derivative (slope at 0)."""

    def ball(x: arb) -> arb:
        return balls.split(x, lambda y: y * slope.numerator / slope.denominator, balls.identity)

    def ball_slope(x: arb) -> arb:
        low = arb(slope.numerator) / slope.denominator
        return arb(1) if x > 0 else low if x <= 0 else low.union(arb(1))

    function = Function(
        name, f"x for x > 0, else {slope}·x", ball, (1,),
        -INF if slope else ZERO, INF, name + "'", lines=_two_lines(slope, 1), zero_sign="keep",
    )  # fmt: skip
    derivative = Function(
        name + "'", f"1 for x > 0, else {slope}", ball_slope, (0, 0), slope, ONE, None,
        turning=(_jump(slope, 1),), lines=(Line(None, ZERO, ZERO, slope), Line(ZERO, None, ZERO, ONE)),
        range=(min(slope, ONE), ONE),
    )  # fmt: skip
    return function, derivative


def _elu_family(name: str, scale: Fraction, alpha: Fraction, formula: str) -> tuple[Function, Function]:
    low = scale * alpha

    def times(y: arb, q: Fraction) -> arb:
        return y if q == 1 else y * q.numerator / q.denominator

    def ball(x: arb) -> arb:
        return balls.split(x, lambda y: times(y.expm1(), low), lambda y: times(y, scale))

    def ball_slope(x: arb) -> arb:
        return balls.split(x, lambda y: times(y.exp(), low), lambda y: times(arb(1), scale))

    right = Line(ZERO, None, scale, ZERO)
    function = Function(
        name, formula, ball, (1,), -low, INF, name + "'", lines=(right,), zero_sign="keep",
        bounds=(_above(0, -low, high=0), _below(0, 0, high=0), _above(low, 0, high=0)),
        left_tail=_tail(0, -low, 1), range=(-low, None),
    )  # fmt: skip
    derivative = Function(
        name + "'", f"{'' if scale == 1 else 'scale·'}1 for x ≥ 0, else {'' if low == 1 else 'scale·alpha·'}exp(x)",
        ball_slope, (1, 0), ZERO, scale, None,
        turning=(ORIGIN if low == scale else _jump(low, scale),),
        lines=(Line(ZERO, None, ZERO, scale),),
        bounds=(_above(0, 0, high=0), _below(0, low, high=0), _above(low, low, high=0)),
        left_tail=_tail(0, 0, 1), range=(ZERO, max(low, scale)),
    )  # fmt: skip
    return function, derivative


def elu(scale: Fraction, alpha: Fraction, name: str) -> tuple[Function, Function]:
    """scale·x for x ≥ 0, scale·alpha·(exp(x) − 1) else, for positive constants; and its derivative (scale at 0)."""
    return _elu_family(name, scale, alpha, f"{scale}·(x for x ≥ 0, else {alpha}·(exp(x) − 1))")


def _constant(name: str, value: int) -> Function:
    v = Fraction(value)
    return Function(
        name, str(value), balls.constant(value), (0,), v, v, None, lines=(Line(None, None, ZERO, v),), range=(v, v)
    )


def _step_ball(x: arb) -> arb:
    return arb(1) if x >= 0 else arb(0) if x < 0 else arb(0).union(arb(1))


def _piecewise() -> list[Function]:
    relu, relu_slope = leaky_relu(ZERO, "relu")
    relu = Function(
        "relu", "max(x, 0)", relu.ball, (0, 1), ZERO, INF, "relu'", turning=(ORIGIN,), lines=relu.lines,
        range=(ZERO, None),
    )  # fmt: skip
    step = Function(
        "step", "1 for x ≥ 0, else 0", _step_ball, (0, 0), ZERO, ONE, "step'", turning=(_jump(0, 1),),
        lines=(Line(ZERO, None, ZERO, ONE), Line(None, ZERO, ZERO, ZERO)), range=(ZERO, ONE),
    )  # fmt: skip
    identity = Function(
        "identity", "x", balls.identity, (1,), -INF, INF, "identity'", parity="odd",
        lines=(Line(None, None, ONE, ZERO),), zero_sign="keep",
    )  # fmt: skip
    return [
        identity, _constant("identity'", 1), step, _constant("step'", 0), relu, relu_slope,
        *leaky_relu(LEAKY_SLOPE, "leaky_relu"),
        *_elu_family("elu", ONE, ONE, "x for x ≥ 0, else exp(x) − 1"),
        *_elu_family("selu", SELU_SCALE, SELU_ALPHA, "scale·(x for x ≥ 0, else alpha·(exp(x) − 1))"),
        *_elu_family("celu", ONE, ONE, "x for x ≥ 0, else exp(x) − 1  (alpha = 1)"),
    ]  # fmt: skip


def _sigmoids() -> list[Function]:
    quarter = Fraction(1, 4)
    return [
        Function(
            "sigmoid", "1/(1 + exp(−x))", balls.sigmoid, (1,), ZERO, ONE, "sigmoid'", **_at_zero(HALF),
            bounds=(
                _above(0, 0), _below(0, 1), _above(0, HALF, low=0), _below(0, HALF, high=0),
                _below(quarter, HALF, low=0), _above(quarter, HALF, high=0),
            ),
            left_tail=_tail(0, 0, 1), right_tail=_tail(0, 1, -1), range=(ZERO, ONE),
        ),
        Function(
            "sigmoid'", "sigmoid(x)·sigmoid(−x)", balls.sigmoid_slope, (1, -1), ZERO, ZERO, None, turning=(ORIGIN,),
            parity="even", **_at_zero(quarter),
            bounds=(_above(0, 0), _below(0, quarter, low=0), _below(0, quarter, high=0)),
            left_tail=_tail(0, 0, 1), right_tail=_tail(0, 0, 1), range=(ZERO, quarter),
        ),
        Function(
            "logsigmoid", "−log(1 + exp(−x))", balls.logsigmoid, (1,), -INF, ZERO, "logsigmoid'",
            bounds=(_below(0, 0), _below(1, 0)),
            left_tail=_tail(1, 0, -1), right_tail=_tail(0, 0, -1), range=(None, ZERO),
        ),
        Function(
            "logsigmoid'", "sigmoid(−x)", balls.logsigmoid_slope, (-1,), ONE, ZERO, None, **_at_zero(HALF),
            bounds=(_above(0, 0), _below(0, 1), _below(0, HALF, low=0), _above(0, HALF, high=0)),
            left_tail=_tail(0, 1, -1), right_tail=_tail(0, 0, 1), range=(ZERO, ONE),
        ),
        Function(
            "tanh", "tanh(x)", arb.tanh, (1,), -ONE, ONE, "tanh'", parity="odd", **_at_zero(0), zero_sign="keep",
            bounds=(
                _below(1, 0, low=0), _above(1, 0, high=0), _below(0, 1), _above(0, -1),
                _above(0, 0, low=0), _below(0, 0, high=0),
            ),
            left_tail=_tail(0, -1, 1), right_tail=_tail(0, 1, -1), range=(-ONE, ONE),
        ),
        Function(
            "tanh'", "1 − tanh(x)²", balls.tanh_slope, (1, -1), ZERO, ZERO, None, turning=(ORIGIN,), parity="even",
            **_at_zero(1), bounds=(_above(0, 0), _below(0, 1, low=0), _below(0, 1, high=0)),
            left_tail=_tail(0, 0, 1), right_tail=_tail(0, 0, 1), range=(ZERO, ONE),
        ),
        Function(
            "softplus", "log(1 + exp(x))", balls.softplus, (1,), ZERO, INF, "sigmoid",
            bounds=(_above(0, 0), _above(1, 0)),
            left_tail=_tail(0, 0, 1), right_tail=_tail(1, 0, 1), range=(ZERO, None),
        ),
    ]  # fmt: skip


def _gated(name: str, formula: str, ball: Ball, least: TurningPoint, half: bool) -> Function:
    """x·g(x) with g rising from 0 to 1: gelu, gelu_tanh, swish, mish; g(0) = 1/2 except for mish."""
    bounds = [_below(0, 0, high=0), _above(0, 0, low=0), _below(1, 0, low=0), _above(1, 0, high=0)]
    if half:
        bounds += [_above(HALF, 0, low=0), _above(HALF, 0, high=0)]
    return Function(
        name, formula, ball, (-1, 1), ZERO, INF, name + "'", turning=(least,), **_at_zero(0), zero_sign="keep",
        bounds=tuple(bounds), left_tail=_tail(0, 0, -1), right_tail=_tail(1, 0, -1),
    )  # fmt: skip


def _gated_slope(name: str, formula: str, ball: Ball, value: Fraction, turning: tuple[TurningPoint, ...]) -> Function:
    """The derivative of x·g(x): falls below 0, rises above 1, falls to 1."""
    # monotone beyond the outer turning points, which lie within (−3, 3)
    bounds = [_above(0, 1, low=3), _below(0, 0, high=-3)]
    if value == HALF:
        bounds += [_above(0, HALF, low=0), _below(0, HALF, high=0)]
    return Function(
        name, formula, ball, (-1, 1, -1), ZERO, ONE, None, turning=turning, **_at_zero(value), bounds=tuple(bounds),
        left_tail=_tail(0, 0, -1), right_tail=_tail(0, 1, 1),
    )  # fmt: skip


def _gated_units() -> list[Function]:
    def pair(sign: Ball, low: str, high: str) -> tuple[TurningPoint, TurningPoint]:
        return _root(sign, "-" + high, "-" + low), _root(sign, low, high)

    curved = balls.mish_curvature_sign
    return [
        _gated("gelu", "x·Φ(x) = x·(1 + erf(x/√2))/2", balls.gelu, _root(balls.gelu_slope, "-0.76", "-0.75"), True),
        _gated_slope("gelu'", "Φ(x) + x·φ(x)", balls.gelu_slope, HALF, pair(balls.two_minus_square, "1.41", "1.42")),
        _gated(
            "gelu_tanh", "x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))/2", balls.gelu_tanh,
            _root(balls.gelu_tanh_slope_sign, "-0.76", "-0.75"), True,
        ),
        _gated_slope(
            "gelu_tanh'", "derivative of x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))/2", balls.gelu_tanh_slope, HALF,
            pair(balls.gelu_tanh_curvature_sign, "1.3", "1.5"),
        ),
        _gated("swish", "x·sigmoid(x)", balls.swish, _root(balls.swish_slope_sign, "-1.28", "-1.27"), True),
        _gated_slope(
            "swish'", "sigmoid(x) + x·sigmoid(x)·sigmoid(−x)", balls.swish_slope, HALF,
            pair(balls.swish_curvature_sign, "2.3", "2.4"),
        ),
        _gated("mish", "x·tanh(log(1 + exp(x)))", balls.mish, _root(balls.mish_slope_sign, "-1.2", "-1.19"), False),
        _gated_slope(
            "mish'", "derivative of x·tanh(log(1 + exp(x)))", balls.mish_slope, Fraction(3, 5),
            (_root(curved, "-2.3", "-2.2"), _root(curved, "1.4", "1.5")),
        ),
    ]  # fmt: skip


def _elementary() -> list[Function]:
    no, unit = math.nan, (-ONE, ONE)
    even_one: dict[str, Any] = {"turning": (ORIGIN,), "parity": "even", **_at_zero(1)}
    above_one = (_above(0, 1, low=0), _above(0, 1, high=0))
    below_one = (_below(0, 1, low=0), _below(0, 1, high=0))
    inner = (
        _root(balls.half_minus_square, "-0.71", "-0.7"), _root(balls.half_minus_square, "0.7", "0.71"),
    )  # fmt: skip
    return [
        Function(
            "sin", "sin(x)", arb.sin, (), no, no, "cos", parity="odd", **_at_zero(0), zero_sign="keep",
            bounds=(_below(1, 0, low=0), _above(1, 0, high=0), _below(0, 1), _above(0, -1)), range=unit,
            period_phase=HALF,
        ),
        Function(
            "cos", "cos(x)", arb.cos, (), no, no, "cos'", parity="even", **_at_zero(1), range=unit,
            bounds=(*below_one, _above(0, -1)), period_phase=ZERO,
        ),
        Function(
            "cos'", "−sin(x)", balls.negated_sine, (), no, no, None, parity="odd", **_at_zero(0), zero_sign="flip",
            bounds=(_above(-1, 0, low=0), _below(-1, 0, high=0), _below(0, 1), _above(0, -1)), range=unit,
            period_phase=HALF,
        ),
        Function(
            "exp", "exp(x)", arb.exp, (1,), ZERO, INF, "exp", **_at_zero(1), left_tail=_tail(0, 0, 1),
            bounds=(_above(0, 0), _above(0, 1, low=0), _below(0, 1, high=0), _above(1, 1, low=0), _above(1, 1, high=0)),
            grows=(0, 1), range=(ZERO, None),
        ),
        Function(
            "log", "log(x)", arb.log, (1,), no, INF, "log'", rational=lambda x: ZERO if x == 1 else None,
            bounds=(_below(1, -1, low=0, high=1), _below(1, -1, low=1)), lowest=ZERO, pole=-1,
        ),
        Function(
            "expm1", "exp(x) − 1", arb.expm1, (1,), -ONE, INF, "exp", **_at_zero(0), zero_sign="keep",
            bounds=(_above(1, 0, low=0), _above(1, 0, high=0), _above(0, -1), _below(0, 0, high=0)),
            left_tail=_tail(0, -1, 1), grows=(0, 1), range=(-ONE, None),
        ),
        Function(
            "log1p", "log(1 + x)", arb.log1p, (1,), no, INF, "log1p'", **_at_zero(0), zero_sign="keep",
            bounds=(_below(1, 0, low=0), _below(1, 0, low=-1, high=0), _above(0, 0, low=0)), lowest=-ONE, pole=-1,
        ),
        Function(
            "log1p'", "1/(1 + x)", balls.shifted_reciprocal, (-1,), no, ZERO, None,
            rational=lambda x: 1 / (1 + x) if x > -1 else None, lowest=-ONE, pole=1, range=(ZERO, None),
        ),
        Function(
            "log'", "1/x", balls.reciprocal, (-1,), no, ZERO, None, rational=lambda x: 1 / x if x > 0 else None,
            lowest=ZERO, pole=1, range=(ZERO, None),
        ),
        Function(
            "erf", "erf(x)", arb.erf, (1,), -ONE, ONE, "erf'", parity="odd", **_at_zero(0), zero_sign="keep",
            bounds=(_below(0, 1), _above(0, -1), _above(0, 0, low=0), _below(0, 0, high=0)),
            left_tail=_tail(0, -1, 1), right_tail=_tail(0, 1, -1), range=unit,
        ),
        Function(
            "erfc", "1 − erf(x)", arb.erfc, (-1,), Fraction(2), ZERO, "erfc'", **_at_zero(1),
            bounds=(_above(0, 0), _below(0, 2), _below(0, 1, low=0), _above(0, 1, high=0)),
            left_tail=_tail(0, 2, -1), right_tail=_tail(0, 0, 1), range=(ZERO, Fraction(2)),
        ),
        Function(
            "erfc'", "−2·exp(−x²)/√π", balls.erfc_slope, (-1, 1), ZERO, ZERO, None, turning=(ORIGIN,), parity="even",
            bounds=(_below(0, 0),), left_tail=_tail(0, 0, -1), right_tail=_tail(0, 0, -1), range=(None, ZERO),
        ),
        Function(
            "erf'", "2·exp(−x²)/√π", balls.erf_slope, (1, -1), ZERO, ZERO, None, turning=(ORIGIN,), parity="even",
            bounds=(_above(0, 0),), left_tail=_tail(0, 0, 1), right_tail=_tail(0, 0, 1), range=(ZERO, None),
        ),
        Function(
            "sqrt", "√x", arb.sqrt, (1,), no, INF, "sqrt'", rational=square_root, zero_sign="keep", lowest=ZERO,
            range=(ZERO, None),
        ),
        Function(
            "sqrt'", "1/(2√x)", balls.sqrt_slope, (-1,), no, ZERO, None, rational=_sqrt_slope, lowest=ZERO, pole=1,
            range=(ZERO, None),
        ),
        Function(
            "sqrt1p_square", "√(1 + x²)", balls.sqrt1p_square, (-1, 1), INF, INF, "sqrt1p_square'",
            turning=(ORIGIN,), parity="even", rational=_hypotenuse,
            bounds=(*above_one, _above(1, 0), _above(-1, 0)), range=(ONE, None),
        ),
        Function(
            "sqrt1p_square'", "x/√(1 + x²)", balls.sqrt1p_square_slope, (1,), -ONE, ONE, None, parity="odd",
            rational=_hypotenuse_slope, zero_sign="keep", range=unit,
            bounds=(_below(0, 1), _above(0, -1), _below(1, 0, low=0), _above(1, 0, high=0)),
        ),
        Function(
            "cosh", "cosh(x)", arb.cosh, (-1, 1), INF, INF, "cosh'", **even_one, bounds=above_one, grows=(1, 1),
            range=(ONE, None),
        ),
        Function(
            "cosh'", "sinh(x)", arb.sinh, (1,), -INF, INF, None, parity="odd", **_at_zero(0), zero_sign="keep",
            bounds=(_above(1, 0, low=0), _below(1, 0, high=0)), grows=(-1, 1),
        ),
        Function(
            "gaussian", "exp(−x²)", balls.gaussian, (1, -1), ZERO, ZERO, "gaussian'", **even_one,
            bounds=(*below_one, _above(0, 0)), left_tail=_tail(0, 0, 1), right_tail=_tail(0, 0, 1), range=(ZERO, ONE),
        ),
        Function(
            "gaussian'", "−2x·exp(−x²)", balls.gaussian_slope, (1, -1, 1), ZERO, ZERO, None, turning=inner,
            parity="odd", **_at_zero(0), zero_sign="flip",
            bounds=(_above(-2, 0, low=0), _below(-2, 0, high=0), _below(0, 0, low=0), _above(0, 0, high=0)),
            left_tail=_tail(0, 0, 1), right_tail=_tail(0, 0, -1),
        ),
    ]  # fmt: skip


def all_functions() -> list[Function]:
    """Every function and every derivative, each once."""
    return [*_piecewise(), *_sigmoids(), *_gated_units(), *_elementary()]
