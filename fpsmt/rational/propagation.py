"""How far a formula moves when its named functions are replaced by approximations: Lipschitz bookkeeping.  Trusted.

Let F be a formula, and G the same with some of its functions φ replaced by others, |φ − g| ≤ b on an interval J.  On an
interval of x, let each value v of F lie in a ball V, and the same value v′ of G within e of v.  Then, step by step,

* a sum Σ wᵢvᵢ + c moves by at most Σ |wᵢ|eᵢ;
* a product by |a|·e_b + |b|·e_a + e_a·e_b, since a′b′ − ab = a(b′ − b) + b(a′ − a) + (a′ − a)(b′ − b);
* a quotient by (e_a + |a/b|·e_b)/(|b| − e_b), since a′/b′ − a/b = ((a′ − a) − (a/b)(b′ − b))/b′, when e_b < |b|;
* a polynomial, and a function that is kept, by e·sup|φ′| over all points within e of V (mean value theorem);
* a function that is replaced by e·sup|φ′| + b, when all points within e of V lie in J: φ(v) − g(v′) =
  (φ(v) − φ(v′)) + (φ(v′) − g(v′)).

sup|φ′| of a continuous function with kinks is the greatest over its analytic pieces.  Balls may be wide, which costs
sharpness only; an interval is cut into equal parts for that.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, arb_poly, arb_series

from fpsmt.rational.analytic import Analytic, analytic
from fpsmt.rational.formulas import Formula
from fpsmt.rational.models import UNIT, working
from fpsmt.rational.polynomials import Interval, to_fmpq

ZERO = arb(0)


class NoBound(ArithmeticError):
    """Nothing follows at this width."""


@dataclass(frozen=True)
class Replacement:
    """|φ − g| ≤ bound on the domain."""

    domain: tuple[Interval, ...]
    bound: Fraction

    def covers(self, points: arb) -> bool:
        return any(points >= to_fmpq(a) and points <= to_fmpq(b) for a, b in self.domain)


@dataclass(frozen=True)
class Moved:
    """A ball around the value of F over an interval, and how far that of G is from it at most."""

    value: arb
    error: arb

    @property
    def both(self) -> arb:
        """A ball around the values of F and G and all points between them."""
        return self.value + UNIT * self.error


class Moves:
    """The ring; `replaced[k]` speaks of the k-th named function that is evaluated."""

    def __init__(self, replaced: Mapping[int, Replacement]) -> None:
        self.replaced, self.count = replaced, 0

    def _of(self, value: arb, error: arb) -> Moved:
        if not (value.is_finite() and error.is_finite()):
            raise NoBound
        return Moved(value, error.upper())

    def constant(self, c: Fraction) -> Moved:
        return Moved(arb(to_fmpq(c)), ZERO)

    def add(self, a: Moved, b: Moved) -> Moved:
        return self._of(a.value + b.value, a.error + b.error)

    def scale(self, c: Fraction, a: Moved) -> Moved:
        return self._of(a.value * to_fmpq(c), a.error * to_fmpq(abs(c)))

    def multiply(self, a: Moved, b: Moved) -> Moved:
        error = abs(a.value) * b.error + abs(b.value) * a.error + a.error * b.error
        return self._of(a.value * b.value, error)

    def divide(self, a: Moved, b: Moved) -> Moved:
        quotient, room = a.value / b.value, abs(b.value) - b.error
        if not (quotient.is_finite() and room > 0):
            raise NoBound
        return self._of(quotient, (a.error + abs(quotient) * b.error) / room)

    def polynomial(self, coefficients: tuple[Fraction, ...], a: Moved) -> Moved:
        p = arb_poly([to_fmpq(c) for c in coefficients])
        return self._of(p(a.value), abs(p.derivative()(a.both)) * a.error if a.error > 0 else ZERO)

    def call(self, name: str, a: Moved, is_x: bool) -> Moved:
        function, index = analytic(name), self.count
        self.count += 1
        error = steepest(function, a.both) * a.error if a.error > 0 else ZERO
        if (replacement := self.replaced.get(index)) is not None:
            if not replacement.covers(a.both):
                raise NoBound
            error = error + to_fmpq(replacement.bound)
        return self._of(function.ball(a.value), error)


def steepest(function: Analytic, points: arb) -> arb:
    """At least |φ′| on a ball, on every piece that may meet it; `NoBound` for jumps and unbounded derivatives."""
    if not function.continuous:
        raise NoBound
    most = ZERO
    for k, piece in enumerate(function.pieces):
        if k > 0 and points < to_fmpq(function.cuts[k - 1]):
            continue
        if k < len(function.cuts) and points > to_fmpq(function.cuts[k]):
            continue
        try:
            slope = piece(arb_series([points, arb(1)], 2))[1]
        except (ValueError, ZeroDivisionError):  # a ball that is divided by may hold 0
            raise NoBound from None
        if not slope.is_finite():
            raise NoBound
        most = arb.max(most, abs(slope).upper())
    return most


def parts_of(interval: Interval, parts: int) -> list[arb]:
    """Balls that cover an interval."""
    low, high = interval
    ends = [low + (high - low) * k / parts for k in range(parts + 1)]
    return [arb(to_fmpq(a)).union(arb(to_fmpq(b))) for a, b in itertools.pairwise(ends)]


def propagated(
    formula: Formula, replaced: Mapping[int, Replacement], domain: Sequence[Interval], parts: int, bits: int
) -> arb | None:
    """An upper bound of |F − G| on the domain, each interval cut into equal parts; None where nothing follows.

    >>> from fpsmt.rational.formulas import named
    >>> small = Replacement(((Fraction(-2), Fraction(2)),), Fraction(1, 1000))
    >>> moved = propagated(named("tanh"), {0: small}, [(Fraction(-1), Fraction(1))], 4, 64)
    >>> print(moved.str(3, radius=False))
    0.00100
    """
    most = ZERO
    with working(bits, 2):
        for interval in domain:
            for x in parts_of(interval, parts):
                try:
                    most = arb.max(most, formula.over(Moves(replaced), Moved(x, ZERO)).error)
                except NoBound:
                    return None
        return most.upper() if most.is_finite() else None
