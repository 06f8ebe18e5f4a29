"""A slow second definition of correct rounding: a fixed ball of many bits, as exact rationals."""

from __future__ import annotations

from fractions import Fraction

import flint
from flint import arb, fmpq

from fpsmt.floats import Format, ulp
from fpsmt.functions.function import Function
from fpsmt.functions.registry import FUNCTIONS, function_named

#: Every function and every derivative once.
EVERY = {f.name: f for g in FUNCTIONS.values() for f in (g, g.derivative)}
assert function_named("tanh'") is EVERY["tanh'"]

BITS = 300


MOST = 60_000  #: numbers beyond 2^±MOST are taken as ±2^±MOST, which no small format tells apart


def ends(y: arb) -> tuple[Fraction, Fraction]:
    """The exact ends of a finite ball."""
    (m, e), (r, s) = ((int(n), int(k)) for n, k in (y.mid().man_exp(), y.rad().man_exp()))
    size = m.bit_length() + e
    if m and abs(size) > MOST:
        assert r.bit_length() + s < size
        extreme = Fraction(2) ** (MOST if size > 0 else -MOST)
        return (extreme, extreme) if m > 0 else (-extreme, -extreme)
    two = Fraction(2)
    middle, radius = m * two**e, (r * two**s if s > -12 * MOST else two ** (-12 * MOST) * (r != 0))
    return middle - radius, middle + radius


def ball(function: Function, x: Fraction, bits: int = BITS) -> arb:
    flint.ctx.prec, saved = bits, flint.ctx.prec
    try:
        return function.ball(arb(fmpq(x.numerator, x.denominator)))
    finally:
        flint.ctx.prec = saved


def real_value(function: Function, x: Fraction, bits: int = BITS) -> tuple[Fraction, Fraction]:
    """(value, value) where it is rational, else the ends of a ball."""
    value = function.exact(x)
    return (value, value) if value is not None else ends(ball(function, x, bits))


def in_one_binade(function: Function, fmt: Format, x: Fraction) -> tuple[Fraction, Fraction]:
    """The same with as many bits as it takes for both ends to have one ulp."""
    bits = BITS
    while True:
        low, high = real_value(function, x, bits)
        if ulp(fmt, low) == ulp(fmt, high):
            return low, high
        bits *= 4
        assert bits < 2**22, "undecided"
