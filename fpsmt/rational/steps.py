"""Shapes of rational networks that rules of the kernel speak about.  Trusted to be the formulas that they say."""

from __future__ import annotations

from fractions import Fraction

from fpsmt.rational.formulas import Apply, Builder, Formula
from fpsmt.rational.rational import Rational

HALF = Fraction(1, 2)


def halley_step(t: Formula, log: Formula) -> Formula:
    """t − (1 − t²)·A/(1 − t·A), A = ½·log((1 + t)/(1 − t)) − x: Halley's step for atanh(t) = x from the value t(x).

    >>> from fpsmt.rational.formulas import named, rational
    >>> step = halley_step(rational(Rational((0, 1))), named("log"))
    >>> step.calls, round(float(step.ball(Fraction(1, 10), 64)), 9)  # tanh 0.1 = 0.099667994624956
    (('log',), 0.099667995)
    """
    build = Builder()
    at = build.include(t, 0)
    ratio = build.rational(Rational.make((1, 1), (1, -1)), at)
    a = build.affine(0, (HALF, build.include(log, ratio)), (-1, 0))
    slope = build.rational(Rational.make((1, 0, -1)), at)
    below = build.affine(1, (-1, build.product(at, a)))
    return build.formula(build.affine(0, (1, at), (-1, build.quotient(build.product(slope, a), below))))


def root_step(f: Formula, p: int, a: Fraction, b: Fraction) -> Formula:
    """a·f + b·x/f^{p−1}: a scaled Newton step for the p-th root of x from the value f(x)."""
    build = Builder()
    at = build.include(f, 0)
    power = at if p == 2 else build.rational(Rational((*[Fraction(0)] * (p - 1), Fraction(1))), at)
    return build.formula(build.affine(0, (a, at), (b, build.quotient(0, power))))


def scaled(f: Formula, c: Fraction) -> Formula:
    """c·f."""
    build = Builder()
    return build.formula(build.affine(0, (c, build.include(f, 0))))


def relu_step(sign: Formula, size: Fraction = Fraction(1)) -> Formula:
    """(x + x·r(x/size))/2 for a sign r."""
    build = Builder()
    small = 0 if size == 1 else build.affine(0, (1 / Fraction(size), 0))
    product = build.product(0, build.include(sign, small))
    return build.formula(build.affine(0, (HALF, 0), (HALF, product)))


def is_odd_chain(formula: Formula) -> bool:
    """A composition of rationals p/q, one after the other, each with p odd and q even: an odd function."""
    for k, step in enumerate(formula.steps):
        if not isinstance(step, Apply) or step.at != k:
            return False
        if any(step.rational.numerator[0::2]) or any(step.rational.denominator[1::2]):
            return False
    return True
