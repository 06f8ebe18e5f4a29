"""A quotient of two polynomials with rational coefficients: exact values, algebra, poles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from flint import fmpq_poly

from fpsmt.errors import UsageError
from fpsmt.rational.polynomials import (
    Interval,
    coefficients,
    count_roots,
    isolate_roots,
    polynomial,
    root_bound,
    to_fmpq,
    to_fraction,
)

Number = Fraction | int


@dataclass(frozen=True)
class Rational:
    """r(x) = Σ numerator[i]·xⁱ / Σ denominator[j]·xʲ, coefficients from low to high, as they were given.

    Trailing zeros are dropped; a common factor stays until `reduced`.  Equality compares coefficients.

    >>> r = Rational((0, 1), (1, 0, 1))
    >>> r(Fraction(1, 2)), str(r), r.type
    (Fraction(2, 5), 'x/(1 + x^2)', (1, 2))
    """

    numerator: tuple[Fraction, ...]
    denominator: tuple[Fraction, ...] = (Fraction(1),)

    def __post_init__(self) -> None:
        for name in ("numerator", "denominator"):
            exact = [Fraction(c) for c in getattr(self, name)]
            while len(exact) > 1 and exact[-1] == 0:
                exact.pop()
            object.__setattr__(self, name, tuple(exact) or (Fraction(0),))
        if self.denominator == (0,):
            raise UsageError("the denominator of a rational is not 0")

    @staticmethod
    def of(p: fmpq_poly, q: fmpq_poly | None = None) -> Rational:
        return Rational(coefficients(p), (Fraction(1),) if q is None else coefficients(q))

    @staticmethod
    def make(numerator: Sequence[Number], denominator: Sequence[Number] = (1,)) -> Rational:
        """From integers or fractions."""
        return Rational(tuple(map(Fraction, numerator)), tuple(map(Fraction, denominator)))

    @cached_property
    def p(self) -> fmpq_poly:
        return polynomial(self.numerator)

    @cached_property
    def q(self) -> fmpq_poly:
        return polynomial(self.denominator)

    @property
    def type(self) -> tuple[int, int]:
        """Degrees of numerator and denominator, as written; 0 for the zero polynomial."""
        return len(self.numerator) - 1, len(self.denominator) - 1

    @property
    def is_polynomial(self) -> bool:
        return len(self.denominator) == 1

    def __call__(self, x: Number) -> Fraction:
        """The exact value; a usage error at a zero of the denominator."""
        at = to_fmpq(x)
        below = self.q(at)
        if below == 0:
            raise UsageError(f"the denominator of {self} is 0 at x = {x}")
        return to_fraction(self.p(at) / below)

    # -- algebra --------------------------------------------------------------------------------------------

    def reduced(self) -> Rational:
        """The same function in lowest terms, with denominator(0) = 1, or leading coefficient 1 when x divides it.

        Removable singularities disappear.
        """
        if self.p.degree() < 0:
            return Rational((Fraction(0),))
        common = self.p.gcd(self.q)
        p, q = self.p // common, self.q // common
        scale = q[0] if q[0] != 0 else q[q.degree()]
        return Rational.of(p / scale, q / scale)

    def same_function(self, other: Rational) -> bool:
        """p₁q₂ = p₂q₁: the two agree wherever both are defined."""
        return bool(self.p * other.q == other.p * self.q)

    def __neg__(self) -> Rational:
        return Rational.of(-self.p, self.q)

    def __add__(self, other: Rational) -> Rational:
        return Rational.of(self.p * other.q + other.p * self.q, self.q * other.q)

    def __sub__(self, other: Rational) -> Rational:
        return self + (-other)

    def __mul__(self, other: Rational) -> Rational:
        return Rational.of(self.p * other.p, self.q * other.q)

    def __truediv__(self, other: Rational) -> Rational:
        return Rational.of(self.p * other.q, self.q * other.p)

    def scaled(self, factor: Number) -> Rational:
        """factor·r."""
        return Rational.of(self.p * to_fmpq(factor), self.q)

    def derivative(self) -> Rational:
        return Rational.of(self.p.derivative() * self.q - self.p * self.q.derivative(), self.q * self.q)

    def compose(self, inner: Rational) -> Rational:
        """self(inner(x)), expanded; the type is at most (deg·deg', deg·deg')."""
        degree = max(self.type)

        def homogeneous(c: tuple[Fraction, ...]) -> fmpq_poly:
            total = fmpq_poly([0])
            for i, a in enumerate(c):
                total += to_fmpq(a) * inner.p**i * inner.q ** (degree - i)
            return total

        return Rational.of(homogeneous(self.numerator), homogeneous(self.denominator))

    def partial_fractions(self) -> tuple[Rational, list[tuple[Rational, Rational, int]]]:
        """(s, [(u, v, k)]) with r = s + Σ u/vᵏ: s a polynomial, v irreducible over the rationals, deg u < deg v.

        >>> s, parts = Rational((0, 0, 0, 1), (-1, 0, 1)).partial_fractions()
        >>> str(s), sorted((str(u), str(v), k) for u, v, k in parts)
        ('x', [('1/2', '-1 + x', 1), ('1/2', '1 + x', 1)])
        """
        r = self.reduced()
        whole, rest = divmod(r.p, r.q)
        unit, factors = r.q.factor()
        parts: list[tuple[Rational, Rational, int]] = []
        rest = rest / unit
        for v, exponent in factors:
            power = v**exponent
            others = fmpq_poly([1])
            for w, k in factors:
                if w != v:
                    others *= w**k
            # rest/(power·others) has the part (rest·others⁻¹ mod power)/power
            _, inverse, _ = others.xgcd(power)
            digits = (rest * inverse) % power
            for k in range(exponent, 0, -1):
                digits, u = divmod(digits, v)
                if u.degree() >= 0:
                    parts.append((Rational.of(u), Rational.of(v), k))
        return Rational.of(whole), parts

    # -- poles ----------------------------------------------------------------------------------------------

    def count_poles(self, low: Number, high: Number) -> int:
        """How many different zeros the denominator has in [low, high], by Sturm's theorem; 0 is a proof of no pole.

        Of the reduced form, so that a removable singularity is no pole.
        """
        return count_roots(self.reduced().q, Fraction(low), Fraction(high))

    def poles(
        self, low: Number | None = None, high: Number | None = None, width: Number = Fraction(1, 1 << 20)
    ) -> list[Interval]:
        """Intervals of at most this width with one real pole each; all poles of [low, high] (default: all) are in them.

        >>> Rational((1,), (-2, 0, 1)).poles(0, 9, Fraction(1, 8))
        [(Fraction(45, 32), Fraction(189, 128))]
        """
        q = self.reduced().q
        far = root_bound(q)
        a, b = -far if low is None else Fraction(low), far if high is None else Fraction(high)
        return isolate_roots(q, a, b, Fraction(width))

    # -- text and files -------------------------------------------------------------------------------------

    def __str__(self) -> str:
        top = _text(self.numerator)
        if self.is_polynomial and self.denominator[0] == 1:
            return top
        below = _text(self.denominator)
        top = f"({top})" if " " in top else top
        return f"{top}/({below})" if " " in below else f"{top}/{below}"

    def to_json(self) -> dict[str, list[str]]:
        return {"numerator": [str(c) for c in self.numerator], "denominator": [str(c) for c in self.denominator]}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Rational:
        return Rational(read_exact(data["numerator"]), read_exact(data["denominator"]))


def read_exact(words: Sequence[str]) -> tuple[Fraction, ...]:
    """Exact numbers written as text: ``3``, ``-1/3``, ``0.25``."""
    if isinstance(words, str) or not all(isinstance(w, str) for w in words):
        raise UsageError("coefficients are a list of numbers written as text")
    return tuple(Fraction(w) for w in words)


def _text(c: tuple[Fraction, ...]) -> str:
    words: list[str] = []
    for power, a in enumerate(c):
        if a == 0 and len(c) > 1:
            continue
        size, x = abs(a), "" if power == 0 else "x" if power == 1 else f"x^{power}"
        body = x if x and size == 1 else f"{size}*{x}" if x else f"{size}"
        words.append((("-" if a < 0 else "") if not words else " - " if a < 0 else " + ") + body)
    return "".join(words) or "0"
