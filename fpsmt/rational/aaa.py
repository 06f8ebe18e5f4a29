"""The AAA algorithm: a rational through some values of a function, by greedy interpolation.  Untrusted, in float64.

Y. Nakatsukasa, O. Sète, L. N. Trefethen, The AAA algorithm for rational approximation, 2018.  It needs no start and
no type, and often comes within a small factor of the best rational; it promises nothing, and may have poles between its
points.  The result is an exact rational (the barycentric form, expanded), whose error is certified afterwards.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import fmpq_poly

from fpsmt.errors import Unsupported, UsageError
from fpsmt.rational.formulas import Formula
from fpsmt.rational.polynomials import Interval, to_fmpq
from fpsmt.rational.rational import Rational

POINTS = 1000


def aaa(target: Formula, interval: Interval, degree: int, tolerance: float = 0.0) -> Rational:
    """A rational of type at most (degree, degree), or less when the error at the points is below the tolerance.

    >>> from fpsmt.rational import named
    >>> r = aaa(named("exp"), (Fraction(-1), Fraction(1)), 3)
    >>> r.type, abs(float(r(Fraction(1, 3))) - 1.395612) < 1e-5
    ((3, 3), True)
    """
    low, high = (Fraction(end) for end in interval)
    if low >= high or not 0 <= degree <= 60:
        raise UsageError("AAA needs LOW < HIGH and a degree of 0 to 60")
    places = (1 - np.cos(np.pi * np.arange(POINTS + 1) / POINTS)) / 2
    x = np.clip(float(low) + (float(high) - float(low)) * places, float(low), float(high))
    f = np.array([_value(target, Fraction(t)) for t in x.tolist()])
    if not np.isfinite(f).all():
        raise UsageError(f"{target} has no value at some points: change the interval")
    rest, chosen = np.ones(len(x), bool), []
    fit = np.full(len(x), f.mean())
    weights = np.ones(1)
    for _ in range(degree + 1):
        worst = int(np.argmax(np.abs(f - fit) * rest))
        chosen.append(worst)
        rest[worst] = False
        cauchy = 1 / (x[rest, None] - x[chosen])
        loewner = (f[rest, None] - f[chosen]) * cauchy
        weights = np.linalg.svd(loewner)[2][-1]
        fit = f.copy()
        with np.errstate(all="ignore"):
            fit[rest] = (cauchy @ (weights * f[chosen])) / (cauchy @ weights)
        if not np.isfinite(fit).all() or np.abs(f - fit).max() <= tolerance:
            break
    return _expanded(x[chosen], f[chosen], weights)


def _value(target: Formula, x: Fraction) -> float:
    y = target.ball(x, 64)
    return float(y.mid()) if y.is_finite() else float("nan")


def _expanded(z: np.ndarray, f: np.ndarray, w: np.ndarray) -> Rational:
    """Σ wⱼfⱼ/(x − zⱼ) over Σ wⱼ/(x − zⱼ), exactly."""
    p, q = fmpq_poly([0]), fmpq_poly([0])
    exact = [tuple(to_fmpq(Fraction(v)) for v in row) for row in np.stack([z, f, w], axis=1).tolist()]
    for j, (_, value, weight) in enumerate(exact):
        product = fmpq_poly([weight])
        for i, (other, _, _) in enumerate(exact):
            if i != j:
                product *= fmpq_poly([-other, 1])
        p, q = p + product * value, q + product
    if q.degree() < 0:
        raise Unsupported("AAA found no weights")
    return Rational.of(p, q)
