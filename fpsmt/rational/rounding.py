"""Balls as rationals of few bits: how the constructions get exact coefficients."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from fpsmt.errors import InternalError
from fpsmt.rational.models import working

MOST_BITS = 1 << 17


def rounded(x: arb, bits: int) -> Fraction:
    """The midpoint with `bits` significant bits, rounded to nearest; the ball must be that accurate."""
    mantissa, exponent = (int(v) for v in x.mid().man_exp())
    extra = max(0, abs(mantissa).bit_length() - bits)
    half = (1 << extra) >> 1
    return Fraction((mantissa + half) >> extra) * Fraction(2) ** (exponent + extra)


def evaluated(make: Callable[[], list[arb]], bits: int) -> list[arb]:
    """Balls of at least `bits` accurate bits each: the computation is repeated with more precision until they are."""
    precision = bits + 32
    while precision <= MOST_BITS:
        with working(precision, 1):
            found = make()
            if all(x.is_finite() and x.rel_accuracy_bits() >= bits for x in found):
                return found
        precision *= 2
    raise InternalError(f"no balls with {bits} accurate bits at a precision of {precision // 2}")
