"""Error bounds of piecewise rational functions by exact algebra: signs of polynomials on intervals.  Trusted.

Where target and approximation are both rational on a piece, f = a/b and g = c/d, |f − g| ≤ B says that a polynomial is
nowhere negative there: B²·(b·d)² − (a·d − c·b)² ≥ 0, and for relative errors B²·(a·d)² − (a·d − c·b)² ≥ 0.
This decides what enclosures cannot: a bound that is reached.
"""

from __future__ import annotations

from fractions import Fraction

from flint import fmpq_poly

from fpsmt.errors import UsageError
from fpsmt.rational.analytic import analytic
from fpsmt.rational.enclosures import Problem
from fpsmt.rational.formulas import Expanded
from fpsmt.rational.polynomials import count_roots, nonnegative_on, to_fmpq
from fpsmt.rational.rational import Rational


class _Piece(Expanded):
    """Quotients of polynomials, for formulas inside an interval where the functions of x are lines."""

    def __init__(self, low: Fraction, high: Fraction) -> None:
        self.low, self.high = low, high
        self.divisors: list[fmpq_poly] = []

    def divide(self, a: Rational, b: Rational) -> Rational:
        self.divisors.append(b.p)
        return super().divide(a, b)

    @property
    def is_defined(self) -> bool:
        """Nothing divides by 0 anywhere on the closed interval: numerators of divisors have no root there."""
        return all(p.degree() >= 0 and not count_roots(p, self.low, self.high) for p in self.divisors)

    def call(self, name: str, a: Rational, is_x: bool) -> Rational:
        line = analytic(name).line(self.low, self.high) if is_x else None
        if line is None:
            raise UsageError(f"{name} is not rational there")
        return Rational(line)


def degree_on_pieces(problem: Problem) -> int | None:
    """A bound on the degrees of the expanded error, or None when a piece is not known to be rational."""
    total = 0
    for formula in (problem.target, problem.approximation):
        degrees = [1]
        for step in formula.steps:
            name = getattr(step, "name", None)
            if name is not None:
                if step.reads != (0,) or any(line is None for line in analytic(name).lines) or not analytic(name).lines:
                    return None
                degrees.append(1)
                continue
            inner = sum(degrees[i] for i in step.reads)
            own = getattr(step, "rational", None)
            degrees.append(inner if own is None else inner * max(own.type))
        total += degrees[-1]
    return total


def within_exactly(problem: Problem, bound: Fraction) -> bool:
    """The bound holds on the whole domain; decided exactly.

    A usage error when a piece is not rational.  False also where something divides by 0.
    """
    for low, high in problem.pieces():
        ring = _Piece(low, high)
        x = Rational((Fraction(0), Fraction(1)))
        f, g = problem.target.over(ring, x), problem.approximation.over(ring, x)
        error = f - g
        if not ring.is_defined:
            return False
        scale = f.p * g.q if problem.relative else error.q
        square = to_fmpq(bound * bound)
        if bound < 0 or not nonnegative_on(square * scale * scale - error.p * error.p, low, high):
            return False
    return all(problem.fails_at(bound, cut) is False for cut in problem.cuts)
