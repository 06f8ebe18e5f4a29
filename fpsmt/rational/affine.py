"""An affine map before a trainable rational: when its coefficients absorb it, and when they cannot.  Trusted.

r(γu + θ; a, b) = r(u; a′, b′) for every u: with γ ≠ 0

* the unsafe form absorbs every map with Q(θ) ≠ 0: P(γu + θ) and Q(γu + θ) are polynomials of the same degrees, divided
  by Q(θ) (`Trainable.affine_input`);
* forms A and B absorb γ alone: |bⱼ|·|γu|ʲ = |bⱼγʲ|·|u|ʲ, and Σ bⱼ(γu)ʲ = Σ (bⱼγʲ)uʲ;
* a shift moves their kinks.  `cannot_absorb` shows for one parameter that no a′, b′ of any degrees exist.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Literal

from fpsmt.rational.polynomials import count_roots, to_fraction
from fpsmt.rational.rational import Rational
from fpsmt.rational.trainable import Trainable

Map = Literal["affine", "scale"]


def polynomial_text(names: list[str], at: str) -> str:
    """Σ names[i]·atⁱ."""
    return " + ".join(f"{name}*({at})**{i}" for i, name in enumerate(names)) or "0"


def parameters(type: tuple[int, int]) -> tuple[list[str], list[str]]:
    """Names a0 …, b1 …."""
    return [f"a{i}" for i in range(type[0] + 1)], [f"b{j}" for j in range(1, type[1] + 1)]


def unsafe_text(a: list[str], b: list[str], at: str) -> str:
    """r(at; a, b) of the unsafe form."""
    return f"({polynomial_text(a, at)})/({polynomial_text(['1', *b], at)})"


def shifted_parameters(type: tuple[int, int], scale: str, shift: str) -> tuple[list[str], list[str]]:
    """a′, b′ of the unsafe form for the input scale·u + shift, as expressions."""
    a, b = parameters(type)
    constant = polynomial_text(["1", *b], shift)

    def moved(names: list[str], k: int) -> str:
        terms = [f"{comb(i, k)}*({names[i]})*({scale})**{k}*({shift})**{i - k}" for i in range(k, len(names))]
        return f"(({' + '.join(terms)})/({constant}))"

    return [moved(a, k) for k in range(len(a))], [moved(["1", *b], k) for k in range(1, len(b) + 1)]


def cannot_absorb(r: Trainable, scale: Fraction, shift: Fraction) -> str | None:
    """Why h(u) = r(scale·u + shift) is r(u; a′, b′) for no a′, b′ of any degrees, or None when that is not known.

    h must have a kink at a point z ≠ 0: two different rationals N/D on the two sides.

    * Form A is one rational on u > 0 and one on u < 0, without a kink at z.
    * Form B is P/(1 + σq) beside z, with P and q polynomials, q(0) = 0 and a sign σ on each side.  One sign would make
      one rational; with opposite signs 1/h₊ + 1/h₋ = 2/P, so that P = 2h₊h₋/(h₊ + h₋) and q = ±(P/h₊ − 1) are
      known: they must be polynomials with q(0) = 0.
    """
    if r.version not in ("A", "B") or scale == 0:
        return None
    inner = Rational((shift, scale))
    for z, low, high in _kinks(r, scale, shift):
        if z == 0 or low.same_function(high):
            continue
        if r.version == "A":
            return f"r({scale}u + {shift}) has a kink at u = {z}; form A has none but at 0"
        left, right = low.compose(inner).reduced(), high.compose(inner).reduced()
        total = left + right
        if total.p.degree() < 0:
            return f"the two sides of u = {z} add up to 0"
        p = (left * right).scaled(2) / total
        q = (p / right - Rational((Fraction(1),))).reduced()
        p = p.reduced()
        if not p.is_polynomial:
            return f"beside u = {z} the numerator would be {p}, which is no polynomial"
        if not q.is_polynomial:
            return f"beside u = {z} the inner polynomial would be {q}, which is none"
        if q(0) != 0:
            return f"beside u = {z} the inner polynomial would be ±({q}), which is not 0 at 0"
    return None


def _kinks(r: Trainable, scale: Fraction, shift: Fraction) -> list[tuple[Fraction, Rational, Rational]]:
    """Rational points u where r(scale·u + shift) may have a kink, with r on the low and the high side of x there."""
    if r.version == "A":
        z = -shift / scale
        return [(z, r.left, r.right)]
    below = Rational((Fraction(0), *r.b))
    if below.p.degree() < 1:
        return []
    found = []
    for x in _rational_roots(below):
        near = Fraction(1, 1 << 40)
        signs = [1 if below(x + side * near) > 0 else -1 for side in (-1, 1)]
        if all(count_roots(below.p, min(x, x + s * near), max(x, x + s * near)) == 1 for s in (-1, 1)):
            sides = [Rational(r.a, (Fraction(1), *(sign * c for c in r.b))) for sign in signs]
            found.append(((x - shift) / scale, sides[0], sides[1]))
    return found


def _rational_roots(p: Rational) -> list[Fraction]:
    linear = [factor for factor, _ in p.p.factor()[1] if factor.degree() == 1]
    return [to_fraction(-factor[0] / factor[1]) for factor in linear]
