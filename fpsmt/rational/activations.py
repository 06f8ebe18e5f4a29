"""Activations as rational networks, on [−size, size], from log, tanh, exp (`elementary`) and ReLU (`zolotarev`).

Smooth activations need a network whose size is polylogarithmic in log(1/error); so do the broken ones, through |x|.
GELU in its erf form is the exception: erf is entire and has no addition theorem, and is a polynomial of degree
O(log(1/error)) here.  Errors are absolute and aimed at; `sup_norm` certifies what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from fpsmt.errors import UsageError
from fpsmt.functions.definitions import LEAKY_SLOPE, SELU_ALPHA, SELU_SCALE
from fpsmt.rational.elementary import EIGHTH, HALF, add_exp, add_log, add_tanh, bits_of
from fpsmt.rational.formulas import Builder, Formula
from fpsmt.rational.models import working
from fpsmt.rational.polynomials import to_fmpq
from fpsmt.rational.rational import Rational
from fpsmt.rational.rounding import evaluated, rounded
from fpsmt.rational.zolotarev import balanced_ell, composed_sign, maps_for

Make = Callable[[Builder, Fraction, Fraction], int]


def _tanh(build: Builder, size: Fraction, error: Fraction) -> int:
    return add_tanh(build, 0, size, error)


def _add_sigmoid(build: Builder, at: int, size: Fraction, error: Fraction) -> int:
    half = build.affine(0, (HALF, at))
    return build.affine(HALF, (HALF, add_tanh(build, half, size / 2, error)))


def _sigmoid(build: Builder, size: Fraction, error: Fraction) -> int:
    return _add_sigmoid(build, 0, size, error)


def _swish(build: Builder, size: Fraction, error: Fraction) -> int:
    return build.product(0, _add_sigmoid(build, 0, size, error / max(size, Fraction(1))))


def _gelu_tanh(build: Builder, size: Fraction, error: Fraction) -> int:
    bits, cubic = bits_of(error) + 32, Fraction(44715, 10**6)
    (scale,) = (rounded(x, bits) for x in evaluated(lambda: [(2 / arb.pi()).sqrt()], bits))
    inner = build.rational(Rational.make((0, scale, 0, scale * cubic)), 0)
    gate = add_tanh(build, inner, scale * (size + cubic * size**3), error / max(size, Fraction(1)))
    return build.product(0, build.affine(HALF, (HALF, gate)))


def _gelu(build: Builder, size: Fraction, error: Fraction) -> int:
    """x/2 + x²·Σ (−1)ⁿx²ⁿ/(√(2π)·2ⁿ·n!·(2n + 1)): the terms fall once n > size²/2."""
    bits = bits_of(error) + 32
    scale = rounded(evaluated(lambda: [1 / (2 * arb.pi()).sqrt()], bits)[0], bits)
    terms, c, n, square = [Fraction(0), HALF], scale, 0, size * size
    while True:
        terms += [c / (2 * n + 1), Fraction(0)]
        if n > square and abs(c) * square ** (n + 1) < error / 4:
            return build.rational(Rational(tuple(terms)), 0)
        n += 1
        c = -c / (2 * n)


def _softplus(build: Builder, size: Fraction, error: Fraction) -> int:
    """log(1 + eˣ)."""
    with working(64, 1):
        most = rounded(arb(to_fmpq(size)).exp() + 1, 16) + 1
    e = add_exp(build, 0, size, error / 4)
    return add_log(build, build.affine(1, (1, e)), 1 - EIGHTH, most + EIGHTH, error / 4)


def _logsigmoid(build: Builder, size: Fraction, error: Fraction) -> int:
    inner = Builder()
    softplus = inner.formula(_softplus(inner, size, error))
    return build.affine(0, (-1, build.include(softplus, build.affine(0, (-1, 0)))))


def _mish(build: Builder, size: Fraction, error: Fraction) -> int:
    """x·n/(n + 2) with n = eˣ(eˣ + 2)."""
    e = add_exp(build, 0, size, error / (4 * max(size, Fraction(1))))
    return build.product(0, build.rational(Rational.make((0, 2, 1), (2, 2, 1)), e))


def _add_relu(build: Builder, at: int, size: Fraction, error: Fraction) -> int:
    maps = max(1, maps_for(error / size))
    bits = 2 * bits_of(error / size) + 64
    sign = composed_sign(maps, balanced_ell(3**maps, bits), bits)
    small = build.affine(0, (1 / size, at))
    product = build.product(at, build.include(sign.formula, small))
    return build.affine(0, (HALF, at), (HALF, product))


def _relu(build: Builder, size: Fraction, error: Fraction) -> int:
    return _add_relu(build, 0, size, error)


def _leaky_relu(build: Builder, size: Fraction, error: Fraction) -> int:
    return build.affine(0, (LEAKY_SLOPE, 0), (1 - LEAKY_SLOPE, _add_relu(build, 0, size, error)))


def _abs(build: Builder, size: Fraction, error: Fraction) -> int:
    return build.affine(0, (2, _add_relu(build, 0, size, error / 2)), (-1, 0))


def _exponential(scale: Fraction, alpha: Fraction) -> Make:
    """scale·(x for x ≥ 0, α(eˣ − 1) below): scale·(R(x) + alpha·(exp(−R(−x)) − 1)), R = ReLU; R(−x) = R(x) − x."""

    def make(build: Builder, size: Fraction, error: Fraction) -> int:
        part = error / (4 * scale * max(alpha, Fraction(1)))
        right = _add_relu(build, 0, size, part)
        below = build.affine(0, (1, 0), (-1, right))  # −R(−x)
        e = add_exp(build, below, size + part, part)
        return build.affine(-scale * alpha, (scale, right), (scale * alpha, e))

    return make


def _identity(build: Builder, size: Fraction, error: Fraction) -> int:
    return 0


NETWORKS: dict[str, Make] = {
    "abs": _abs,
    "celu": _exponential(Fraction(1), Fraction(1)),
    "elu": _exponential(Fraction(1), Fraction(1)),
    "exp": lambda build, size, error: add_exp(build, 0, size, error),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "identity": _identity,
    "leaky_relu": _leaky_relu,
    "logsigmoid": _logsigmoid,
    "mish": _mish,
    "relu": _relu,
    "selu": _exponential(SELU_SCALE, SELU_ALPHA),
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "swish": _swish,
    "tanh": _tanh,
}


def network(name: str, size: Fraction, error: Fraction) -> Formula:
    """A rational network for the named function on [−size, size] with an absolute error of about `error`, mostly less.

    >>> net = network("tanh", Fraction(1), Fraction(1, 10**8))
    >>> net.is_rational, round(float(net.ball(Fraction(1, 2), 64)), 7)
    (True, 0.4621172)
    """
    if name not in NETWORKS:
        raise UsageError(f"no construction for {name!r}: there is one for {', '.join(NETWORKS)}")
    if size <= 0 or not 0 < error < 1:
        raise UsageError("the size is positive and the error lies between 0 and 1")
    build = Builder()
    return build.formula(NETWORKS[name](build, Fraction(size), Fraction(error)))
