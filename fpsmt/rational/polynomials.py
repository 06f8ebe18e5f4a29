"""Exact facts about rational polynomials: numbers of real roots, isolating intervals, signs on an interval.

Coefficients run from low to high.  Everything is rational arithmetic: no root is ever computed in floating point.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from flint import fmpq, fmpq_poly, fmpz

Interval = tuple[Fraction, Fraction]


def to_fmpq(x: Fraction | int) -> fmpq:
    return fmpq(x.numerator, x.denominator)


def to_fraction(x: fmpq | fmpz | int) -> Fraction:
    return Fraction(int(x)) if isinstance(x, fmpz | int) else Fraction(int(x.p), int(x.q))


def polynomial(coefficients: Iterable[Fraction | int]) -> fmpq_poly:
    return fmpq_poly([to_fmpq(c) for c in coefficients])


def coefficients(p: fmpq_poly) -> tuple[Fraction, ...]:
    return tuple(to_fraction(c) for c in p.coeffs()) or (Fraction(0),)


def sign_at(p: fmpq_poly, x: Fraction) -> int:
    value = p(to_fmpq(x))
    return int(value > 0) - int(value < 0)


def squarefree(p: fmpq_poly) -> fmpq_poly:
    """The polynomial with the same roots, each once."""
    if p.degree() < 2:
        return p
    return p // p.gcd(p.derivative())


@lru_cache(maxsize=256)
def _chain(coefficients: tuple[Fraction, ...]) -> tuple[fmpq_poly, ...]:
    """Sturm's chain, each member divided by its positive content."""
    p = polynomial(coefficients)
    chain = [_primitive(p), _primitive(p.derivative())]
    while chain[-1].degree() > 0:
        chain.append(_primitive(-(chain[-2] % chain[-1])))
        if chain[-1].degree() < 0:
            chain.pop()
            break
    return tuple(chain)


def _primitive(p: fmpq_poly) -> fmpq_poly:
    if p.degree() < 0:
        return p
    numerator = p.numer()
    return fmpq_poly(numerator) / abs(numerator.content())


def _changes(chain: tuple[fmpq_poly, ...], x: Fraction) -> int:
    signs = [s for s in (sign_at(p, x) for p in chain) if s]
    return sum(a != b for a, b in itertools.pairwise(signs))


def count_roots(p: fmpq_poly, low: Fraction, high: Fraction) -> int:
    """How many different real roots of p ≠ 0 lie in the closed interval [low, high] (Sturm's theorem).

    >>> count_roots(polynomial([0, -1, 0, 1]), Fraction(-1), Fraction(1, 2))
    2
    """
    if p.degree() < 0:
        raise ZeroDivisionError("the zero polynomial has no number of roots")
    if low > high or p.degree() == 0:
        return 0
    chain = _chain(coefficients(squarefree(p)))
    return _changes(chain, low) - _changes(chain, high) + (sign_at(p, low) == 0)


def isolate_roots(p: fmpq_poly, low: Fraction, high: Fraction, width: Fraction) -> list[Interval]:
    """Disjoint intervals of at most this width, ascending, each with exactly one real root of p ≠ 0; all roots of
    [low, high] are in them.  A root that is met exactly has an interval of width 0.

    >>> isolate_roots(polynomial([0, -1, 0, 1]), Fraction(-2), Fraction(2), Fraction(1, 4))[1]
    (Fraction(0, 1), Fraction(0, 1))
    """
    found: list[Interval] = []

    def visit(a: Fraction, b: Fraction) -> None:
        """Roots in the open interval (a, b)."""
        inside = count_roots(p, a, b) - (sign_at(p, a) == 0) - (b > a and sign_at(p, b) == 0)
        if inside <= 0:
            return
        if inside == 1 and b - a <= width and sign_at(p, a) and sign_at(p, b):
            found.append((a, b))
            return
        middle = (a + b) / 2
        visit(a, middle)
        if sign_at(p, middle) == 0:
            found.append((middle, middle))
        visit(middle, b)

    if sign_at(p, low) == 0:
        found.append((low, low))
    visit(low, high)
    if high > low and sign_at(p, high) == 0:
        found.append((high, high))
    return found


def root_bound(p: fmpq_poly) -> Fraction:
    """All real roots of p ≠ 0 are within ±bound (Cauchy)."""
    *rest, lead = coefficients(p)
    return 1 + max((abs(c / lead) for c in rest), default=Fraction(0))


def nonnegative_on(p: fmpq_poly, low: Fraction, high: Fraction) -> bool:
    """p(x) ≥ 0 for every real x of [low, high]: p has the right sign at one point and does not change it.

    p changes its sign exactly at its real roots of odd multiplicity; those of the square-free factors with odd
    exponent.  Between two neighbouring ones the sign is constant, so an interior point free of roots decides.

    >>> nonnegative_on(polynomial([1, -2, 1]), Fraction(0), Fraction(2))
    True
    """
    if p.degree() < 0:
        return True
    if sign_at(p, low) < 0 or sign_at(p, high) < 0:
        return False
    if low == high:
        return True
    odd = fmpq_poly([1])
    for factor, exponent in p.factor_squarefree()[1]:
        if exponent % 2:
            odd *= factor
    if count_roots(odd, low, high) - (sign_at(odd, low) == 0) - (sign_at(odd, high) == 0):
        return False
    # no change of sign inside; the sign is that of any point that is no root
    for k in range(1, p.degree() + 3):
        if sign := sign_at(p, low + (high - low) * k / (p.degree() + 3)):
            return sign > 0
    raise AssertionError("a polynomial has more roots than its degree")
