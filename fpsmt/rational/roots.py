"""Composite rational approximation of p-th roots: Newton steps with the optimal scaling.

On [α₀ᵖ, 1]: f₀ = 1, μ(α) = ((α − αᵖ)/((p − 1)(1 − α)))^{1/p},

    f_{k+1} = ((p − 1)·μₖ·fₖ + x/(μₖ^{p−1}·fₖ^{p−1}))/p,      α_{k+1} = p·αₖ/((p − 1)·μₖ + μₖ^{1−p}·αₖᵖ),

and (2αₖ/(1 + αₖ))·fₖ has the largest relative error (1 − αₖ)/(1 + αₖ), which squares at each step.  p = 2 is the
optimally scaled Newton square root.  The constants are rounded to rationals.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from fpsmt.errors import UsageError
from fpsmt.rational.formulas import Formula, constant, rational
from fpsmt.rational.polynomials import to_fmpq
from fpsmt.rational.rational import Rational
from fpsmt.rational.rounding import evaluated, rounded
from fpsmt.rational.steps import root_step, scaled

BITS = 160


@dataclass(frozen=True)
class Root:
    """The p-th root on [low, 1] by so many steps; `error` is the largest relative error before rounding."""

    formula: Formula
    p: int
    low: Fraction
    error: arb


def _scalings(p: int, alpha: Fraction, steps: int, bits: int) -> tuple[list[arb], arb, arb]:
    """μ₀ … , the last factor 2α/(1 + α), and the error (1 − α)/(1 + α)."""

    def make() -> list[arb]:
        # 1 − α is carried apart, for α near 1
        a = arb(to_fmpq(alpha))
        gap, found = 1 - a, []
        for _ in range(steps):
            mu = (a * sum((a**i for i in range(p - 1)), arb(0)) / (p - 1)).root(p)  # (α − αᵖ)/(1 − α) = α + … + α^{p−1}
            found.append(mu)
            below = (p - 1) * mu + mu ** (1 - p) * a**p
            gap = (below - p * a) / below
            a = p * a / below
        return [*found, 2 * a / (1 + a), gap / (1 + a)]

    *mu, last, error = evaluated(make, bits)
    return mu, last, error


def steps_for(p: int, alpha: Fraction, error: Fraction) -> int:
    """The least number of steps with a relative error of at most `error`."""
    steps = 0
    while not _scalings(p, alpha, steps, 32)[2] <= to_fmpq(error):
        steps += 1
    return steps


def root(p: int, alpha: Fraction, steps: int, bits: int = BITS) -> Root:
    """The p-th root of x on [alphaᵖ, 1].

    >>> [root(10, Fraction(1, 2), k).error.str(2, radius=False) for k in range(5)]
    ['0.33', '0.18', '0.066', '0.0096', '0.00021']
    """
    if p < 2 or not 0 < alpha < 1 or steps < 0:
        raise UsageError("a composite root needs p ≥ 2, 0 < α < 1 and a number of steps ≥ 0")
    values, last, error = root_values(p, alpha, steps, bits)
    return Root(scaled(values[-1], last) if steps else constant(last), p, alpha**p, error)


def root_values(p: int, alpha: Fraction, steps: int, bits: int = BITS) -> tuple[list[Formula], Fraction, arb]:
    """f₁ … as formulas, the factor of the last one, and the error."""
    mu, last, error = _scalings(p, alpha, steps, bits)
    values: list[Formula] = []
    for scale in mu:
        m, q = rounded(scale, bits), Fraction(1, p)
        a, b = short((p - 1) * m * q, bits), short(q / m ** (p - 1), bits)
        values.append(root_step(values[-1], p, a, b) if values else rational(Rational((a, b))))
    return values, rounded(last, bits), error


def short(x: Fraction, bits: int) -> Fraction:
    """The rational with `bits` significant bits next to x."""
    shift = bits - x.numerator.bit_length() + x.denominator.bit_length()
    scale = Fraction(2) ** shift
    return round(x * scale) / scale
