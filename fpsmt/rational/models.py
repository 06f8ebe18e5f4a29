"""Taylor models: a function on an interval as a polynomial with ball coefficients.  Trusted.

On [low, high], with centre c and half-width h, write x = c + h·s with s ∈ [−1, 1].  A model of g is a polynomial
Σ Cₖsᵏ with balls Cₖ such that *for every s ∈ [−1, 1] there are numbers cₖ ∈ Cₖ with g(c + h·s) = Σ cₖsᵏ*; the numbers
may be others for another s.  This is closed under what balls can do, point by point:

* sums, products and polynomials with balls, because ball arithmetic is correct for each choice of numbers;
* cutting after sⁿ⁻¹: the rest is a number within the ball of the rest over s ∈ [−1, 1], and joins C₀;
* 1/a: for any polynomial b, 1/a = b/(1 − δ) with δ = 1 − ab; when |δ| ≤ d < 1 everywhere, 1/(1 − δ) = 1 + θ with
  |θ| ≤ d/(1 − d), so b·(1 ± θ) is a model.  b need not be verified: it only has to make d small;
* φ(a) for φ analytic on a ball around the range of a: with a = m + u, m a number, φ(a) = Σ_{k<n} φₖ(m)uᵏ + φₙ(ξ)uⁿ for
  some ξ between m and a (Lagrange), where φₖ are Taylor coefficients; power series over balls give both.

Where Taylor's theorem gives nothing (a kink, a jump, √ at 0) a function is a constant ball around its range.

A function of x itself that has a cut at an end of the interval is modelled with its one-sided limit there: what a model
says of x = low or x = high holds for that limit, not for the value at the cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import flint
from flint import arb, arb_poly, arb_series

from fpsmt.errors import FpsmtError
from fpsmt.rational.analytic import Analytic, Series, analytic
from fpsmt.rational.polynomials import to_fmpq

UNIT = arb(0, 1)  #: the ball [−1, 1]


class NoEnclosure(ArithmeticError):
    """A model does not exist at this width, order and precision; a narrower interval may have one."""


@contextmanager
def working(bits: int, order: int) -> Iterator[None]:
    """python-flint at this precision, with power series up to this length."""
    saved = flint.ctx.prec, flint.ctx.cap
    flint.ctx.prec, flint.ctx.cap = bits, order + 2
    try:
        yield
    finally:
        flint.ctx.prec, flint.ctx.cap = saved


def over_unit(p: arb_poly) -> arb:
    """A ball around all values for s ∈ [−1, 1]."""
    return p(UNIT)


def taylor(piece: Series, at: arb, size: arb, n: int) -> list[arb] | None:
    """φ₀, …, φₙ₋₁ at a point, and φₙ over all points within `size` of it; None when one of them has no bounds."""
    try:
        near = piece(arb_series([at, arb(1)], n))
        far = piece(arb_series([at + UNIT * size, arb(1)], n + 1))
    except (ValueError, ZeroDivisionError):  # a ball that is divided by may hold 0
        return None
    if near.prec < n or far.prec < n + 1:
        return None
    found = [near[k] for k in range(n)] + [far[n]]
    return found if all(c.is_finite() for c in found) else None


class Models:
    """The ring of models on [low, high] with `order` coefficients; used inside `working`."""

    def __init__(self, low: Fraction, high: Fraction, order: int) -> None:
        self.low, self.high, self.order = low, high, order
        self.x = arb_poly([arb(to_fmpq((low + high) / 2)), arb(to_fmpq((high - low) / 2))])

    def cut(self, p: arb_poly) -> arb_poly:
        """At most `order` coefficients."""
        if p.length() <= self.order:
            return p
        rest = p.right_shift(self.order)
        return p.truncate(self.order) + over_unit(rest) * UNIT

    def constant(self, c: Fraction) -> arb_poly:
        return arb_poly([arb(to_fmpq(c))])

    def add(self, a: arb_poly, b: arb_poly) -> arb_poly:
        return a + b

    def scale(self, c: Fraction, a: arb_poly) -> arb_poly:
        return a * arb(to_fmpq(c))

    def multiply(self, a: arb_poly, b: arb_poly) -> arb_poly:
        return self.cut(a * b)

    def polynomial(self, coefficients: tuple[Fraction, ...], a: arb_poly) -> arb_poly:
        if a.length() <= 2:
            return self.cut(arb_poly([to_fmpq(c) for c in coefficients])(a))
        return self.horner([to_fmpq(c) for c in coefficients], a)

    def horner(self, coefficients: list[Any], a: arb_poly) -> arb_poly:
        """Σ coefficients[k]·aᵏ."""
        total = arb_poly([coefficients[-1]])
        for c in reversed(coefficients[:-1]):
            total = self.cut(total * a) + c
        return total

    def inverse(self, a: arb_poly) -> arb_poly:
        """1/a; `NoEnclosure` when a may vanish, or varies too much for its order."""
        first = a[0]
        if not first.is_finite() or first.contains(0):
            raise NoEnclosure("a denominator may be 0")
        guess = 1 / arb_series([c.mid() for c in a.coeffs()], self.order)
        b = arb_poly([c.mid() for c in guess.coeffs()])
        d = over_unit(1 - a * b).abs_upper()
        if not d < 1:
            raise NoEnclosure("a denominator varies too much")
        return b * (1 + UNIT * (d / (1 - d)))

    def divide(self, a: arb_poly, b: arb_poly) -> arb_poly:
        if b.length() == 1:
            if not b[0].is_finite() or b[0].contains(0):
                raise NoEnclosure("a denominator may be 0")
            return a * (1 / b[0])
        return self.cut(a * self.inverse(b))

    def call(self, name: str, a: arb_poly, is_x: bool) -> arb_poly:
        function = analytic(name)
        piece = self.piece(function, a, is_x)
        if piece is not None:
            found = self._taylor(piece, a)
            if found is not None:
                return found
        return self._range(function, a, is_x)

    def piece(self, function: Analytic, a: arb_poly, is_x: bool) -> Series | None:
        """The formula for all values of a; for x itself, for all but the cuts at the ends of the interval."""
        if is_x:
            return function.piece(self.low, self.high)
        if not function.cuts:
            return function.pieces[0]
        values = over_unit(a)
        for k, formula in enumerate(function.pieces):
            above = k == 0 or bool(values > to_fmpq(function.cuts[k - 1]))
            if above and (k == len(function.cuts) or bool(values < to_fmpq(function.cuts[k]))):
                return formula
        return None

    def _taylor(self, piece: Series, a: arb_poly) -> arb_poly | None:
        n, middle = self.order, a[0].mid()
        u = a - middle
        size = over_unit(u).abs_upper()
        if not size.is_finite():
            return None
        coefficients = taylor(piece, middle, size, n)
        if coefficients is None:
            return None
        if u.length() <= 2:
            return self.cut(arb_poly(coefficients)(u))
        return self.horner(coefficients, u)

    def _range(self, function: Analytic, a: arb_poly, is_x: bool) -> arb_poly:
        if is_x:
            try:
                low, high = function.range(self.low, self.high, flint.ctx.prec)
            except FpsmtError as error:
                raise NoEnclosure(str(error)) from None
            value = arb(to_fmpq(low)).union(arb(to_fmpq(high)))
        else:
            value = function.ball(over_unit(a))
        if not value.is_finite():
            raise NoEnclosure(f"{function.name} has no finite bounds there")
        return arb_poly([value])


def supremum(p: arb_poly) -> tuple[arb, list[arb]]:
    """An upper bound of |g| over s ∈ [−1, 1] for a model p of g, and places s where |g| may be greatest.

    For each choice of numbers, |Σ cₖsᵏ| ≤ |c₀ + c₁s + c₂s²| + Σ_{k≥3} |cₖ|.  A quadratic takes its extremes at ±1 or
    at its vertex s = −c₁/(2c₂), with value c₀ − c₁²/(4c₂), when |c₁| ≤ 2|c₂|.  When c₂ may be 0 while the vertex
    may be inside, the vertex differs from c₀ by c₁²/(4|c₂|) ≤ |c₂|.
    """
    c0, c1, c2 = p[0], p[1], p[2]
    rest = over_unit(p.right_shift(3)).abs_upper() if p.length() > 3 else arb(0)
    places = [arb(-1), arb(1)]
    best = [(c0 + c1 + c2).abs_upper(), (c0 - c1 + c2).abs_upper()]
    if not abs(c1) > 2 * abs(c2):
        if c2.contains(0):
            best.append((c0.abs_upper() + c2.abs_upper()).upper())
            places.append(arb(0))
        else:
            best.append((c0 - c1 * c1 / (4 * c2)).abs_upper())
            places.append((-c1 / (2 * c2)).mid())
    most = best[0]
    for value in best[1:]:
        if not value <= most:
            most = value
    return (most + rest).upper(), places
