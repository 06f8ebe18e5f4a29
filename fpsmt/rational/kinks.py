"""Best rationals for |x| and ReLU on [−s, s], where an exchange on the interval itself fails.

If q is best for √t on [0, s²], of type (k, k), its error alternates 2k + 2 times, from t = 0 on; so that of q(x²) for
|x| alternates 4k + 3 times on [−s, s]: q(x²) is best of all types (m, n) with ⌊m/2⌋ = ⌊n/2⌋ = k, and (x + q(x²))/2 is
best for ReLU of the types (2k + 1, 2k) and (2k + 1, 2k + 1).  The extremes are crowded at 0.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from fpsmt.rational.formulas import Formula, named
from fpsmt.rational.models import working
from fpsmt.rational.polynomials import Interval, to_fmpq
from fpsmt.rational.rational import Rational
from fpsmt.rational.rounding import rounded

Kink = tuple[Formula, Interval, tuple[int, int]]


def as_root(target: Formula, interval: Interval, type: tuple[int, int]) -> Kink | None:
    """The root, interval and type that the problem comes down to, where it does."""
    low, high = interval
    m, k = type[0], type[1] // 2
    if -low != high or k < 1 or m // 2 != k or target not in (named("abs"), named("relu")):
        return None
    if target == named("relu") and m != 2 * k + 1:
        return None
    return named("sqrt"), (Fraction(0), high * high), (k, k)


def from_root(
    target: Formula, size: Fraction, root: Rational, points: tuple[Fraction, ...]
) -> tuple[Rational, tuple[Fraction, ...]]:
    """The rational on [−size, size] and its points of alternation, from those of the root."""
    r = root.compose(Rational((Fraction(0), Fraction(0), Fraction(1))))
    if target == named("relu"):
        r = (r + Rational((Fraction(0), Fraction(1)))).scaled(Fraction(1, 2))
    with working(200, 1):
        sides = [min(rounded(arb(to_fmpq(t)).sqrt(), 60), size) if t else t for t in points]
    return r, tuple(sorted({*sides, *(-x for x in sides)}))
