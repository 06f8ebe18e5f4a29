"""Zolotarev's best rational approximation of the sign on [−1, −ℓ] ∪ [ℓ, 1], and |x| and ReLU from it.

For odd k = 2r + 1 the best odd rational of type (k, k − 1) is

    Z(x) = C·x·Π_{j=1}^{r} (x² + c_{2j})/(x² + c_{2j−1}),  cᵢ = ℓ²·sn²(iK′/k; ℓ′)/cn²(iK′/k; ℓ′),  ℓ′ = √(1 − ℓ²),

and its values on [ℓ, 1] alternate k + 1 times between 1 − E and 1 + E, from 1 − E at ℓ to 1 + E at 1.  Floating point
loses ℓ² in 1 − ℓ²; here sn/cn = (θ₃/θ₄)·θ₁(i/(2k))/θ₂(i/(2k)) with the lattice ratio τ = i·K/K′, K = π/(2·AGM(1, ℓ′)),
K′ = π/(2·AGM(1, ℓ)): balls, with as much precision as they need.

Composition: Z_{kn}(x; ℓ) = Z_n(Z_k(x; ℓ)/(1 + E); (1 − E)/(1 + E)).  So 3ʲ is reached by j maps of type (3, 2).

Coefficients are rounded to rationals: the result is near-best, and its true error is what `sup_norm` certifies.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import acb, arb, fmpq, fmpq_poly

from fpsmt.errors import UsageError
from fpsmt.rational.formulas import Builder, Formula
from fpsmt.rational.models import working
from fpsmt.rational.polynomials import to_fmpq
from fpsmt.rational.rational import Rational
from fpsmt.rational.rounding import evaluated, rounded
from fpsmt.rational.steps import relu_step
from fpsmt.rational.supnorm import upper_fraction

BITS = 128


def zolotarev_balls(k: int, ell: Fraction, bits: int) -> tuple[list[arb], arb, arb, arb]:
    """(c₁, …, c_{k−1}), C, E and (1 − E)/(1 + E) as balls of at least `bits` accurate bits."""
    if k < 1 or k % 2 == 0:
        raise UsageError(f"the degree of Zolotarev's sign is odd, not {k}")
    if not 0 < ell < 1:
        raise UsageError(f"0 < ℓ < 1 is needed, not {ell}")

    def make() -> list[arb]:
        l = arb(to_fmpq(ell))
        own, other = (arb(1).agm(x) for x in ((1 - l * l).sqrt(), l))  # K/K′ = AGM(1, ℓ)/AGM(1, ℓ′)
        tau = acb(0, other / own)
        _, _, t3, t4 = (t.real for t in acb.modular_theta(acb(0), tau))
        found = []
        for i in range(1, k):
            t1, t2, _, _ = (t.real for t in acb.modular_theta(acb(arb(fmpq(i, 2 * k))), tau))
            found.append((l * (t3 / t4) * (t1 / t2)) ** 2)
        low, high = (_raw(found, x) for x in (l, arb(1)))
        return [*found, 2 / (low + high), (high - low) / (high + low), low / high]

    *c, scale, error, after = evaluated(make, bits)
    return c, scale, error, after


def _raw(c: list[arb], x: arb) -> arb:
    """x·Π (x² + c_{2j})/(x² + c_{2j−1})."""
    product = x
    for odd, even in zip(c[::2], c[1::2], strict=True):
        product *= (x * x + even) / (x * x + odd)
    return product


@dataclass(frozen=True)
class Sign:
    """A near-best sign of type (degree, degree − 1) on ±[ells[0], 1]: |sign − r| ≤ about error."""

    maps: tuple[Rational, ...]  #: applied one after the other
    ells: tuple[Fraction, ...]  #: each map is near-best on [ell, 1], and maps it into the next such interval
    degree: int
    error: arb

    @property
    def formula(self) -> Formula:
        build, value = Builder(), 0
        for r in self.maps:
            value = build.rational(r, value)
        return build.formula(value)


def sign_bound(approximation: Sign) -> Fraction:
    """The error, with a little room for the rounding of the coefficients."""
    return upper_fraction(approximation.error * (1 + arb(2) ** -60))


def zolotarev(k: int, ell: Fraction, bits: int = BITS) -> Rational:
    """Zolotarev's sign of type (k, k − 1) as one rational, coefficients rounded to `bits` bits.

    >>> r = zolotarev(3, Fraction(1, 10), 40)
    >>> r.type, round(float(r(1)), 6), round(float(r(Fraction(1, 10))), 6)
    ((3, 2), 1.072007, 0.927993)
    """
    c, scale, _, _ = zolotarev_balls(k, ell, bits)
    exact = [to_fmpq(rounded(x, bits)) for x in c]
    p, q = fmpq_poly([0, to_fmpq(rounded(scale, bits))]), fmpq_poly([1])
    for odd, even in zip(exact[::2], exact[1::2], strict=True):
        p *= fmpq_poly([even, 0, 1])
        q *= fmpq_poly([odd, 0, 1])
    return Rational.of(p, q)


def sign(k: int, ell: Fraction, bits: int = BITS) -> Sign:
    """The sign by one rational of type (k, k − 1)."""
    _, _, error, _ = zolotarev_balls(k, ell, bits)
    return Sign((zolotarev(k, ell, bits),), (ell,), k, error)


def composed_sign(maps: int, ell: Fraction, bits: int = BITS, k: int = 3) -> Sign:
    """The sign by `maps` rationals of type (k, k − 1), of degree kᵐᵃᵖˢ altogether."""
    found: list[Rational] = []
    ells, place, error = [], Fraction(ell), arb(0)
    for n in range(maps):
        ells.append(place)
        _, _, error, after = zolotarev_balls(k, place, bits)
        r = zolotarev(k, place, bits)
        if n < maps - 1:  # into [(1 − E)/(1 + E), 1], the next domain
            with working(bits, 1):
                scale = rounded(1 / (1 + error), bits) * (1 - Fraction(1, 1 << (bits - 12)))
            r, place = r.scaled(scale), rounded(after, bits) * (1 - Fraction(1, 1 << (bits - 16)))
        found.append(r)
    return Sign(tuple(found), tuple(ells), k**maps, error)


def balanced_ell(k: int, bits: int = BITS) -> Fraction:
    """ℓ = 4·exp(−π√(k/2)), where |x| has about the same error inside and outside of [−ℓ, ℓ].

    >>> f"{float(balanced_ell(9)):.6g}"
    '0.00510247'
    """
    (ell,) = evaluated(lambda: [4 * (-arb.pi() * (arb(k) / 2).sqrt()).exp()], bits)
    return rounded(ell, bits)


def maps_for(error: Fraction) -> int:
    """How many maps of type (3, 2) make ReLU: the least j with 2·exp(−π√(3ʲ/2)) ≤ error.

    That is j ≥ log₃((2/π²)·ln²(2/error)).

    >>> [maps_for(Fraction(1, 10**n)) for n in (3, 8, 16, 100)]
    [3, 4, 6, 9]
    """
    j = 0
    while True:
        (bound,) = evaluated(lambda j=j: [2 * (-arb.pi() * (arb(3**j) / 2).sqrt()).exp()], 64)  # type: ignore[misc]
        if bound <= to_fmpq(error):
            return j
        j += 1


def absolute_value(r: Sign) -> Formula:
    """x·r(x), which is ≥ 0 and within max(ℓ, error of r) of |x| on [−1, 1]."""
    build = Builder()
    return build.formula(build.product(0, build.include(r.formula, 0)))


def relu(r: Sign) -> Formula:
    """(x + x·r(x))/2, within half of the error of |x|."""
    return relu_step(r.formula)
