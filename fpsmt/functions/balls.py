"""Ball formulas of the functions: arb → arb, at python-flint's current precision.

Each formula is a composition of arb operations, so the image of a ball contains the image of every point of it.
They are written so that thin balls keep their relative accuracy far from zero (1/(1 + e^−x), erfc, expm1, log1p).
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb, fmpq


def square(x: arb) -> arb:
    """x², never below 0."""
    return (x * x).nonnegative_part()


def split(x: arb, below: Callable[[arb], arb], above: Callable[[arb], arb]) -> arb:
    """below(x) for x < 0, above(x) for x ≥ 0; the union when the ball meets both."""
    if x >= 0:
        return above(x)
    if x < 0:
        return below(x)
    return below(-((-x).nonnegative_part())).union(above(x.nonnegative_part()))


def constant(value: int) -> Callable[[arb], arb]:
    return lambda x: arb(value)


def identity(x: arb) -> arb:
    return x


def negated_sine(x: arb) -> arb:
    return -x.sin()


def sigmoid(x: arb) -> arb:
    return 1 / (1 + (-x).exp())


def sigmoid_slope(x: arb) -> arb:
    return sigmoid(x) * sigmoid(-x)


def softplus(x: arb) -> arb:
    return x.exp().log1p()


def logsigmoid(x: arb) -> arb:
    return -(-x).exp().log1p()


def logsigmoid_slope(x: arb) -> arb:
    return sigmoid(-x)


def tanh_slope(x: arb) -> arb:
    e = (-2 * abs(x)).exp()
    return 4 * e / square(1 + e)


def elu(x: arb) -> arb:
    return split(x, arb.expm1, identity)


def normal_cdf(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2


def normal_pdf(x: arb) -> arb:
    return (-square(x) / 2).exp() / (2 * arb.pi()).sqrt()


def gelu(x: arb) -> arb:
    return x * normal_cdf(x)


def gelu_slope(x: arb) -> arb:
    return normal_cdf(x) + x * normal_pdf(x)


def two_minus_square(x: arb) -> arb:
    return 2 - x * x


def half_minus_square(x: arb) -> arb:
    return arb(0.5) - x * x


CUBIC = fmpq(44715, 1000000)  #: the coefficient 0.044715 of the tanh form of GELU


def _inner(x: arb) -> tuple[arb, arb, arb]:
    """v = 2√(2/π)(x + 0.044715x³), v′, v″."""
    a = 2 * (2 / arb.pi()).sqrt()
    return a * (x + CUBIC * x**3), a * (1 + 3 * CUBIC * square(x)), 6 * a * CUBIC * x


def gelu_tanh(x: arb) -> arb:
    return x * sigmoid(_inner(x)[0])


def gelu_tanh_slope(x: arb) -> arb:
    v, dv, _ = _inner(x)
    return sigmoid(v) + x * dv * sigmoid_slope(v)


def gelu_tanh_slope_sign(x: arb) -> arb:
    """gelu_tanh′ divided by the positive sigmoid(v)."""
    v, dv, _ = _inner(x)
    return 1 + x * dv * sigmoid(-v)


def gelu_tanh_curvature_sign(x: arb) -> arb:
    """gelu_tanh″ divided by the positive sigmoid′(v)."""
    v, dv, ddv = _inner(x)
    return 2 * dv + x * ddv - x * square(dv) * (v / 2).tanh()


def swish(x: arb) -> arb:
    return x * sigmoid(x)


def swish_slope(x: arb) -> arb:
    s = sigmoid(x)
    return s + x * s * sigmoid(-x)


def swish_slope_sign(x: arb) -> arb:
    """swish′ divided by the positive sigmoid(x)²·e^−x."""
    return 1 + x + x.exp()


def swish_curvature_sign(x: arb) -> arb:
    """swish″ divided by the positive sigmoid′."""
    return 2 - x * (x / 2).tanh()


def mish(x: arb) -> arb:
    e = x.exp()
    return x / (1 + 2 / (e * (e + 2)))


def mish_slope(x: arb) -> arb:
    def negative(x: arb) -> arb:  # in e = e^x, so that nothing overflows
        e = x.exp()
        d = e * (e + 2) + 2
        return e * (e + 2) / d + 4 * x * e * (e + 1) / square(d)

    def positive(x: arb) -> arb:  # in q = e^−x
        q = (-x).exp()
        d = 1 + 2 * q + 2 * square(q)
        return (1 + 2 * q) / d + 4 * x * square(q) * (1 + q) / square(d)

    return split(x, negative, positive)


def mish_slope_sign(x: arb) -> arb:
    """mish′ times a positive factor: (e^x + 2)(e^2x + 2e^x + 2) + 4x(e^x + 1)."""
    e = x.exp()
    return (e + 2) * (e * (e + 2) + 2) + 4 * x * (e + 1)


def mish_curvature_sign(x: arb) -> arb:
    """mish″ times a positive factor."""
    e = x.exp()
    return 2 * (e + 1) * (e * (e + 2) + 2) + x * (((-2 * e - 3) * e + 2) * e + 2)


def reciprocal(x: arb) -> arb:
    return 1 / x


def shifted_reciprocal(x: arb) -> arb:
    return 1 / (1 + x)


def sqrt_slope(x: arb) -> arb:
    return 1 / (2 * x.sqrt())


def sqrt1p_square(x: arb) -> arb:
    return (1 + square(x)).sqrt()


def sqrt1p_square_slope(x: arb) -> arb:
    return x / sqrt1p_square(x)


def erf_slope(x: arb) -> arb:
    return 2 * gaussian(x) / arb.pi().sqrt()


def erfc_slope(x: arb) -> arb:
    return -erf_slope(x)


def gaussian(x: arb) -> arb:
    return (-square(x)).exp()


def gaussian_slope(x: arb) -> arb:
    return -2 * x * gaussian(x)
