"""The trainable forms of rational activations, as they are stored in arrays, and as exact rationals.

With a = (a₀, …, aₘ) and b = (b₁, …, bₙ):

* ``unsafe``: Σ aᵢxⁱ / (1 + Σ bⱼxʲ), which may have real poles;
* ``A``: Σ aᵢxⁱ / (1 + Σ |bⱼ|·|x|ʲ), no real poles: one rational for x ≥ 0 and one for x ≤ 0;
* ``B``: Σ aᵢxⁱ / (1 + |Σ bⱼxʲ|), no real poles: the sign of the inner polynomial decides, between its roots.

Parameters are floats and are taken exactly.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fpsmt.errors import UsageError
from fpsmt.rational.polynomials import Interval, isolate_roots, polynomial, sign_at
from fpsmt.rational.rational import Rational

VERSIONS = ("A", "B", "unsafe")


@dataclass(frozen=True)
class Trainable:
    """Parameters of a rational activation.

    >>> r = Trainable("A", (Fraction(0), Fraction(1)), (Fraction(-2),))
    >>> r(Fraction(3)), r(Fraction(-3)), str(r.right), str(r.left)
    (Fraction(3, 7), Fraction(-3, 7), 'x/(1 + 2*x)', 'x/(1 - 2*x)')
    """

    version: str
    a: tuple[Fraction, ...]
    b: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if self.version not in VERSIONS:
            known = ", ".join(VERSIONS)
            raise UsageError(f"the version of a trainable rational is one of {known}, not {self.version!r}")
        if not self.a:
            raise UsageError("a trainable rational has at least one numerator coefficient")
        for name in ("a", "b"):
            object.__setattr__(self, name, tuple(Fraction(c) for c in getattr(self, name)))

    @staticmethod
    def of(version: str, a: Any, b: Any) -> Trainable:
        """From arrays of floats of shapes (m + 1,) and (n,), taken exactly; a usage error for NaN or infinities."""
        return Trainable(version, _exact(a, "numerator"), _exact(b, "denominator"))

    @property
    def type(self) -> tuple[int, int]:
        return len(self.a) - 1, len(self.b)

    def arrays(self, dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray]:
        """Parameters rounded to nearest: shapes (m + 1,) and (n,)."""
        return np.array([float(c) for c in self.a], dtype), np.array([float(c) for c in self.b], dtype)

    def _over(self, denominator: Sequence[Fraction]) -> Rational:
        return Rational(self.a, (Fraction(1), *denominator))

    @property
    def right(self) -> Rational:
        """Version A on x ≥ 0."""
        return self._over([abs(c) for c in self.b])

    @property
    def left(self) -> Rational:
        """Version A on x ≤ 0."""
        return self._over([abs(c) * (-1) ** j for j, c in enumerate(self.b, 1)])

    def pieces(
        self, low: Fraction, high: Fraction, width: Fraction = Fraction(1, 1 << 60)
    ) -> list[tuple[Interval, Rational | None]]:
        """[low, high] cut into intervals, each with the rational that the activation is there.

        Version B has its cuts at roots of the inner polynomial, which may be irrational: those lie in intervals of at
        most `width` where the rational is None (the activation is there between the two neighbours).
        """
        if self.version == "unsafe":
            return [((low, high), self._over(self.b))]
        if self.version == "A":
            if low < 0 < high:
                return [((low, Fraction(0)), self.left), ((Fraction(0), high), self.right)]
            return [((low, high), self.right if low >= 0 else self.left)]
        inner = polynomial((Fraction(0), *self.b))
        roots = [] if inner.degree() < 0 else isolate_roots(inner, low, high, width)
        found: list[tuple[Interval, Rational | None]] = []
        ends = [(low, low), *[r for r in roots if r != (low, low) and r != (high, high)], (high, high)]
        for (_, a), (b, c) in itertools.pairwise(ends):
            side = sign_at(inner, (a + b) / 2)
            found.append(((a, b), self._over([side * x for x in self.b])))
            if b < c:
                found.append(((b, c), None))
        return found

    def __call__(self, x: Fraction) -> Fraction:
        """The exact value; a usage error at a pole of the unsafe form."""
        if self.version == "A":
            return (self.right if x >= 0 else self.left)(x)
        if self.version == "B":
            below = 1 + abs(sum((c * x**j for j, c in enumerate(self.b, 1)), Fraction(0)))
            return sum((c * x**i for i, c in enumerate(self.a)), Fraction(0)) / below
        return self._over(self.b)(x)

    def affine_input(self, scale: Fraction, shift: Fraction) -> Trainable:
        """The same type with r(scale·x + shift) for every x: an affine layer before it is absorbed.

        For the unsafe form only: Σ bⱼ(scale·x + shift)ʲ has a constant term, which is divided out (a usage error when
        the denominator is 0 at the shift), and the absolute values of the other forms are not of one sign.
        """
        if self.version != "unsafe":
            raise UsageError("an affine input is absorbed by the unsafe form only")
        r = self._over(self.b).compose(Rational((shift, scale)))
        constant = r.denominator[0]
        if constant == 0:
            raise UsageError(f"the denominator is 0 at the shift {shift}")
        pad = len(self.a), len(self.b) + 1
        top = [*r.numerator, *[Fraction(0)] * pad[0]][: pad[0]]
        below = [*r.denominator, *[Fraction(0)] * pad[1]][: pad[1]]
        return Trainable("unsafe", tuple(c / constant for c in top), tuple(c / constant for c in below[1:]))


def _exact(values: Any, what: str) -> tuple[Fraction, ...]:
    array = np.asarray(values, np.float64).ravel()
    if not np.isfinite(array).all():
        raise UsageError(f"the {what} has a coefficient that is not finite")
    return tuple(Fraction(float(v)) for v in array)
