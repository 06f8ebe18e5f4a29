"""log and tanh as rational networks whose errors fall doubly exponentially with their size.

* log: with q = 1/x, log x = (π/4)/AGM(θ₂(q⁴)², θ₃(q⁴)²), θ₂(q⁴) = 2q·Σ q^{4n(n+1)}, θ₃(q⁴) = 1 + 2·Σ q^{4n²}
  (Sasaki and Kanada).  x is made large by a power of two, so that few terms are enough.  The AGM of a and k·a, with
  k′ = 2√k/(1 + k), is a·Π (1 + kᵢ)/2; each square root is a composite Newton root (`roots`).
* tanh: Halley's method on atanh(t) = s, t ← t − (1 − t²)·A/(1 − t·A), A = atanh(t) − s, from t = s, for |s| ≤ 1/8; the
  error is cubed at each step, and only the last one needs log to full accuracy.

The numbers of terms and steps are chosen from a-priori estimates; what is certified is the result.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from fpsmt.rational.formulas import IDENTITY, Builder, Formula, rational
from fpsmt.rational.models import working
from fpsmt.rational.polynomials import to_fmpq
from fpsmt.rational.rational import Rational
from fpsmt.rational.roots import root, short, steps_for
from fpsmt.rational.rounding import evaluated, rounded
from fpsmt.rational.steps import HALF, halley_step

EIGHTH = Fraction(1, 8)
EDGE = EIGHTH + Fraction(1, 1 << 10)  #: beyond all values of the steps
HALLEY_START = Fraction(13, 20000)  #: more than |x − tanh x| on [−1/8, 1/8]
LOG_DOMAIN = ((1 - EDGE) / (1 + EDGE), (1 + EDGE) / (1 - EDGE))


def bits_of(error: Fraction) -> int:
    """b with 2^−b ≤ error."""
    return max(1, error.denominator.bit_length() - error.numerator.bit_length() + 1)


def add_log(build: Builder, at: int, low: Fraction, high: Fraction, error: Fraction) -> int:
    """log of a value in [low, high], 0 < low < high, within about `error`."""
    bits = bits_of(error) + 16
    work = bits + 32
    power = max(3, bits // 16 + 2)  # x = 2^power·y/low ≥ 2^power
    scale = short(Fraction(1 << power) / low, 64)
    least, most = scale * low, scale * high
    terms = 1
    while 4 * (terms + 1) ** 2 * power < work:
        terms += 1
    q = build.rational(Rational.make((1,), (0, scale)), at)
    fourth = build.rational(Rational.make((0, 0, 0, 0, 1)), q)
    # Σ q^{4n(n+1)} and 1 + 2Σ q^{4n²} in w = q⁴
    theta2, theta3 = [Fraction(0)] * (terms * (terms + 1) + 1), [Fraction(0)] * (terms * terms + 1)
    theta3[0] = Fraction(1)
    for n in range(terms + 1):
        theta2[n * (n + 1)] = Fraction(1)
        if n:
            theta3[n * n] = Fraction(2)
    ratio = build.quotient(
        build.rational(Rational(tuple(theta2)), fourth), build.rational(Rational(tuple(theta3)), fourth)
    )
    top = build.product(q, ratio)
    k = build.rational(Rational.make((0, 0, 4)), top)  # θ₂²/θ₃²
    factors = [build.rational(Rational(tuple(theta3)), fourth)]
    factors.append(factors[0])
    near = [_modulus(x, work) for x in (most, least)]
    low_k, high_k = near[0] * (1 - Fraction(1, 1 << 20)), near[1] * (1 + Fraction(1, 1 << 20))
    product = build.product(*factors)
    while True:
        product = build.product(product, build.affine(HALF, (HALF, k)))
        if 1 - low_k < error / 256:
            break
        k = _next_modulus(build, k, low_k, high_k, Fraction(1, 1 << bits), work)
        low_k, high_k = (_step(x, work) for x in (low_k, high_k))
        if (1 - low_k) ** 2 / 16 < Fraction(1, 1 << (bits + 8)):
            product = build.product(product, build.affine(HALF, (HALF, k)))
            break
    quarter, shift = evaluated(lambda: [arb.pi() / 4, arb(to_fmpq(scale)).log()], work)
    inverse = build.rational(Rational.make((rounded(quarter, work),), (0, 1)), product)
    return build.affine(-rounded(shift, work), (1, inverse))


def _modulus(x: Fraction, bits: int) -> Fraction:
    """About θ₂(q⁴)²/θ₃(q⁴)² at q = 1/x."""
    q = 1 / x
    above = sum((q ** (4 * n * (n + 1)) for n in range(4)), Fraction(0))
    below = 1 + 2 * sum((q ** (4 * n * n) for n in range(1, 4)), Fraction(0))
    return short(4 * (q * above / below) ** 2, bits)


def _step(k: Fraction, bits: int) -> Fraction:
    """About 2√k/(1 + k)."""
    with working(bits, 1):
        y = arb(to_fmpq(k))
        return min(rounded(2 * y.sqrt() / (1 + y), bits), Fraction(1))


def _next_modulus(build: Builder, k: int, low: Fraction, high: Fraction, error: Fraction, bits: int) -> int:
    """2√k/(1 + k) for a value k in [low, high] ⊂ (0, 1)."""
    with working(bits, 1):
        alpha = short(rounded((arb(to_fmpq(low)) / arb(to_fmpq(high))).sqrt(), 64), 48) * (1 - Fraction(1, 1 << 30))
        inverse = short(1 / high, bits)
        outer = rounded((1 / arb(to_fmpq(inverse))).sqrt(), bits)
    newton = root(2, alpha, max(1, steps_for(2, alpha, error)), bits)
    scaled = build.affine(0, (inverse, k))
    return build.quotient(build.affine(0, (2 * outer, build.include(newton.formula, scaled))), build.affine(1, (1, k)))


def log(low: Fraction, high: Fraction, error: Fraction) -> Formula:
    """log x on [low, high] within about `error`."""
    build = Builder()
    return build.formula(add_log(build, 0, low, high, error))


def halley_goals(error: Fraction, steps: int | None = None) -> list[Fraction]:
    """What each Halley step reaches, until it is `error` (or for so many steps).

    With |t − tanh x| ≤ e on ±1/8 a step reaches 0.4e³, if its logarithm is within 1/8 of that (``Halley step`` is the
    rule of the kernel with the proof).
    """
    goals: list[Fraction] = []
    reached = HALLEY_START
    while reached > error if steps is None else len(goals) < steps:
        reached = max(short(reached**3 * Fraction(2, 5), 16), error)
        goals.append(reached)
    return goals


def halley_log(goal: Fraction) -> Formula:
    """The logarithm for the step that reaches this goal."""
    return log(*LOG_DOMAIN, goal / 8)


def small_tanh(error: Fraction, steps: int | None = None) -> Formula:
    """tanh on [−1/8, 1/8] within about `error`, or by so many steps."""
    t = rational(IDENTITY)
    for goal in halley_goals(error, steps):
        t = halley_step(t, halley_log(goal))
    return t
