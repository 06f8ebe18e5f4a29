"""Slopes: (g(x) − g(z))/(x − z) as Taylor models, for quotients of functions that vanish together.  Trusted.

A slope is carried beside the value through a formula: for a value model A of a(x), the number a(z) and a slope D with
a(x) = a(z) + (x − z)·D(x) for every x ≠ z of the interval,

* (a + b) has slope Dₐ + D_b; (a·b)(x) − a(z)b(z) = Dₐ·b(x) + a(z)·D_b, times (x − z);
* a/b has slope (Dₐ − (a/b)(z)·D_b)/b(x);
* φ(a) with Taylor coefficients φₖ at a(z) and u = a(x) − a(z): slope Dₐ·(Σ_{1≤k<n} φₖuᵏ⁻¹ + φₙ(ξ)uⁿ⁻¹).

Where f(z) = g(z) = 0 the quotient f(x)/g(x) is that of the slopes, for every x ≠ z.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb, arb_poly

from fpsmt.rational.analytic import analytic
from fpsmt.rational.models import Models, NoEnclosure, over_unit, taylor
from fpsmt.rational.polynomials import to_fmpq


@dataclass(frozen=True)
class Slope:
    value: arb_poly  #: a model of a(x)
    at: arb  #: a(z)
    slope: arb_poly  #: a model of (a(x) − a(z))/(x − z)


class Slopes:
    """The ring of values with slopes from the point z of the interval of some models."""

    def __init__(self, models: Models, z: Fraction) -> None:
        self.models = models
        self.z = z
        self.x = Slope(models.x, arb(to_fmpq(z)), arb_poly([1]))

    def constant(self, c: Fraction) -> Slope:
        return Slope(self.models.constant(c), arb(to_fmpq(c)), arb_poly([0]))

    def add(self, a: Slope, b: Slope) -> Slope:
        return Slope(a.value + b.value, a.at + b.at, a.slope + b.slope)

    def scale(self, c: Fraction, a: Slope) -> Slope:
        q = arb(to_fmpq(c))
        return Slope(a.value * q, a.at * q, a.slope * q)

    def multiply(self, a: Slope, b: Slope) -> Slope:
        m = self.models
        return Slope(m.multiply(a.value, b.value), a.at * b.at, m.multiply(a.slope, b.value) + b.slope * a.at)

    def divide(self, a: Slope, b: Slope) -> Slope:
        m, at = self.models, a.at / b.at
        if not at.is_finite():
            raise NoEnclosure("a denominator may be 0")
        return Slope(m.divide(a.value, b.value), at, m.divide(a.slope - b.slope * at, b.value))

    def polynomial(self, coefficients: tuple[Fraction, ...], a: Slope) -> Slope:
        total = self.constant(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = self.add(self.multiply(total, a), self.constant(c))
        return total

    def call(self, name: str, a: Slope, is_x: bool) -> Slope:
        m, function = self.models, analytic(name)
        piece = m.piece(function, a.value, is_x)
        if piece is None:
            raise NoEnclosure(f"{name} has a kink there")
        n = m.order
        u = a.value - a.at
        size = over_unit(u).abs_upper()
        coefficients = taylor(piece, a.at, size, n) if size.is_finite() else None
        if coefficients is None:
            raise NoEnclosure(f"{name} has no expansion there")
        inner = m.horner(coefficients[1:], u)
        return Slope(m.call(name, a.value, is_x), coefficients[0], m.multiply(a.slope, inner))
