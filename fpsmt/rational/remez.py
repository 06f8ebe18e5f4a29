"""Best rational approximation by Remez' exchange, in high precision.  Nothing here is trusted.

The exchange proposes a rational and the points where its error alternates; `sup_norm` and the rule ``alternation`` say
how good they are.  At a reference x₀ < … < x_{m+n+1} it solves p(xᵢ) = (f(xᵢ) − (−1)ⁱ·w(xᵢ)·E)·q(xᵢ) for p, q and E,
with w = 1, or |f| for relative errors, then moves the reference to the extremes of the error.  Where this does not
converge (degenerate cases, bad starts), it says so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, arb_mat

from fpsmt.errors import Unsupported, UsageError
from fpsmt.rational.formulas import Formula, named
from fpsmt.rational.kinks import as_root, from_root
from fpsmt.rational.models import working
from fpsmt.rational.polynomials import Interval, count_roots, to_fmpq
from fpsmt.rational.rational import Rational
from fpsmt.rational.rounding import rounded

ROUNDS = 60
PATIENCE = 15  #: rounds in which the errors come no nearer to each other
#: What is tried in turn: a power that crowds the first reference at the lower end, and times the bits.
ATTEMPTS = ((1, 1), (1, 2), (1, 4), (2, 1), (4, 1))
DENSITY = 24  #: places between two points of the reference where the error is looked at


@dataclass(frozen=True)
class Minimax:
    """A rational of the type, the points where its error alternates, and about how large it is there."""

    rational: Rational
    points: tuple[Fraction, ...]
    levelled: Fraction  #: about the least size of the error at the points
    largest: Fraction  #: about the largest error that was met
    rounds: int


def minimax(
    target: Formula,
    interval: Interval,
    type: tuple[int, int],
    relative: bool = False,
    bits: int = 256,
    tolerance: float = 1e-6,
    report: Callable[[str], None] | None = None,
) -> Minimax:
    """A near-best rational of type (m, n) on the interval: the extremes of its error are level up to `tolerance`.

    Starts with so many `bits`, and takes more where these are too few.  `Unsupported` when the exchange does not
    converge; a usage error for types that are no degrees.

    >>> from fpsmt.rational import named
    >>> best = minimax(named("exp"), (Fraction(-1), Fraction(1)), (1, 1))
    >>> best.rational.type, round(float(best.largest), 6), len(best.points)
    ((1, 1), 0.02097, 4)
    """
    kink = None if relative else as_root(target, (Fraction(interval[0]), Fraction(interval[1])), type)
    if kink is not None:
        found = minimax(*kink, bits=bits, tolerance=tolerance, report=report)
        r, points = from_root(target, Fraction(interval[1]), found.rational, found.points)
        share = Fraction(1, 2) if target == named("relu") else Fraction(1)
        least = found.levelled * share * (1 - Fraction(1, 1 << 30))  # roots of the points are rounded
        return Minimax(r, points, least, found.largest * share, found.rounds)
    low, high = Fraction(interval[0]), Fraction(interval[1])
    if low >= high or min(type) < 0 or sum(type) > 200:
        raise UsageError("minimax needs LOW < HIGH and degrees M, N ≥ 0 with M + N ≤ 200")
    reasons = []
    for power, times in ATTEMPTS:
        try:
            with working(bits * times, 1):
                return _Exchange(target, low, high, type, relative, bits * times, tolerance, report).run(power)
        except Unsupported as reason:
            reasons.append(str(reason))
    raise Unsupported(f"no best rational of type {type} was found: {'; '.join(dict.fromkeys(reasons))}")


class _Exchange:
    def __init__(
        self,
        target: Formula,
        low: Fraction,
        high: Fraction,
        type: tuple[int, int],
        relative: bool,
        bits: int,
        tolerance: float,
        report: Callable[[str], None] | None,
    ) -> None:
        self.target, self.low, self.high, self.type, self.relative = target, low, high, type, relative
        self.bits, self.tolerance, self.report = bits, tolerance, report
        self.centre, self.half = (low + high) / 2, (high - low) / 2
        self.count = sum(type) + 2
        self.values: dict[Fraction, arb] = {}

    def f(self, x: Fraction) -> arb:
        if x not in self.values:
            value = self.target.ball(x, self.bits)
            if not value.is_finite():
                raise UsageError(f"{self.target} has no value at x = {x}: change the interval")
            self.values[x] = value.mid()
        return self.values[x]

    def weight(self, x: Fraction) -> arb:
        return abs(self.f(x)) if self.relative else arb(1)

    def run(self, power: int) -> Minimax:
        points = [self._start(k, power) for k in range(self.count)]
        nearest, since = arb("inf"), 0
        for rounds in range(1, ROUNDS + 1):
            r = self._solve(points)
            if count_roots(r.q, self.low, self.high):
                raise Unsupported(f"the exchange met a pole in round {rounds}")
            points, sizes = self._extremes(r, points)
            least, most = min(sizes), max(sizes)
            if self.report is not None:
                self.report(
                    f"round {rounds}: the error is between {least.str(4, radius=False)} and {most.str(4, radius=False)}"
                )
            if least > 0 and most <= least * (1 + self.tolerance):
                return Minimax(r, tuple(points), rounded(least, 64), rounded(most, 64), rounds)
            if least > 0 and most / least < nearest:
                nearest, since = most / least, rounds
            elif rounds - since > PATIENCE:
                break
        raise Unsupported(f"the errors are still between {least.str(4)} and {most.str(4)} after {rounds} rounds")

    def _start(self, k: int, power: int) -> Fraction:
        """Extremes of a Chebyshev polynomial, crowded towards the lower end."""
        place = Fraction((1 - math.cos(math.pi * k / (self.count - 1))) / 2).limit_denominator(1 << 30)
        return self.low + (self.high - self.low) * place**power

    def _solve(self, points: list[Fraction]) -> Rational:
        """The levelled rational on a reference that has no pole there.

        With Δᵢ = 1/Π_{j≠i}(sᵢ − sⱼ), Σ Δᵢ·u(sᵢ) = 0 for every polynomial u of degree ≤ m + n.  So p leaves the
        equations Σᵢ Δᵢsᵢᵃ(fᵢ − (−1)ⁱwᵢE)q(sᵢ) = 0, a = 0 … n: a pencil in the coefficients of q, of which the second
        matrix is definite since Δᵢ alternates.  At most one of its eigenvectors has one sign on the reference.
        """
        m, n = self.type
        s = [arb(to_fmpq((x - self.centre) / self.half)) for x in points]
        delta = [1 / math.prod((a - b for j, b in enumerate(s) if j != i), start=arb(1)) for i, a in enumerate(s)]
        levels = [self.weight(x) * (1 if i % 2 == 0 else -1) for i, x in enumerate(points)]
        powers = [[a**k for k in range(2 * n + 1)] for a in s]

        def matrix(values: list[arb]) -> arb_mat:
            moments = [sum((d * v * p[k] for d, v, p in zip(delta, values, powers)), arb(0)) for k in range(2 * n + 1)]
            return arb_mat([[moments[a + b] for b in range(n + 1)] for a in range(n + 1)]).mid()

        heights = [self.f(x) for x in points]
        try:
            pencil = matrix(levels).solve(matrix(heights)).mid()
            if n == 0:
                found = [(pencil[0, 0], [arb(1)])]
            else:
                values, vectors = pencil.eig(right=True, algorithm="approx")
                found = [(e.real, [vectors[k, i].real for k in range(n + 1)]) for i, e in enumerate(values)]
        except (ZeroDivisionError, ValueError):
            raise Unsupported("the equations of the exchange are singular") from None
        for value, vector in found:
            below = [sum((c.mid() * p[k] for k, c in enumerate(vector)), arb(0)).mid() for p in powers]
            if all(v > 0 for v in below) or all(v < 0 for v in below):
                error, q = value, vector
                break
        else:
            raise Unsupported("every levelled rational has a pole on the reference")
        above = [(self.f(x) - level * error.mid()) * v for x, level, v in zip(points, levels, below)]
        # p has degree m: any m + 1 of the points give it; take them spread out
        chosen = [round(k * (self.count - 1) / max(m, 1)) for k in range(m + 1)]
        vandermonde = arb_mat([[s[i] ** k for k in range(m + 1)] for i in chosen])
        top = vandermonde.solve(arb_mat([[above[i].mid()] for i in chosen]))
        scale = max((abs(c.mid()) for c in q), key=lambda c: float(c)) * (1 if below[0] > 0 else -1)
        p_exact = tuple(rounded(top[k, 0].mid() / scale, self.bits // 2) for k in range(m + 1))
        q_exact = tuple(rounded(c.mid() / scale, self.bits // 2) for c in q)
        return Rational(p_exact, q_exact).compose(Rational((-self.centre / self.half, 1 / self.half)))

    def error(self, r: Rational, x: Fraction) -> arb:
        at = to_fmpq(x)
        value = (self.f(x) - arb(r.p(at)) / arb(r.q(at))).mid()
        return (value / self.weight(x)).mid() if self.relative else value

    def _extremes(self, r: Rational, points: list[Fraction]) -> tuple[list[Fraction], list[arb]]:
        """The greatest errors of alternating sign, as many as the reference has."""
        ends = sorted({self.low, *points, self.high})
        places = [a + (b - a) * k / DENSITY for a, b in itertools.pairwise(ends) for k in range(DENSITY)]
        places = [self.low, *(min(max(_short(x), self.low), self.high) for x in places[1:]), self.high]
        found: list[tuple[Fraction, arb]] = []
        for x in places:
            e = self.error(r, x)
            if not e.is_finite():
                continue
            if not found or (e > 0) != (found[-1][1] > 0):
                found.append((x, e))
            elif abs(e) > abs(found[-1][1]):
                found[-1] = x, e
        found = [self._refine(r, x, e, places) for x, e in found]
        while len(found) > self.count:
            first, last = abs(found[0][1]), abs(found[-1][1])
            if len(found) == self.count + 1:
                found.pop(0 if first < last else -1)
            else:  # a neighbouring pair, so that signs still alternate
                k = min(range(len(found) - 1), key=lambda k: float(max(abs(found[k][1]), abs(found[k + 1][1]))))
                del found[k : k + 2]
        if len(found) < self.count:
            raise Unsupported(f"the error has only {len(found)} alternations of {self.count}")
        return [x for x, _ in found], [abs(e) for _, e in found]

    def _refine(self, r: Rational, x: Fraction, e: arb, places: list[Fraction]) -> tuple[Fraction, arb]:
        """The vertex of the parabola through three neighbouring places, twice."""
        k = places.index(x)
        if k in (0, len(places) - 1):
            return x, e
        step = min(x - places[k - 1], places[k + 1] - x)
        for _ in range(2):
            left, right = self.error(r, x - step), self.error(r, x + step)
            bend = left - 2 * e + right
            if bend == 0:
                break
            shift = (left - right) / (2 * bend)
            if not abs(shift) < 1:
                break
            y = min(max(_short(x + step * Fraction(float(shift.mid()))), self.low), self.high)
            there = self.error(r, y)
            if not abs(there) > abs(e):
                break
            x, e, step = y, there, step / 16
        return x, e


def _short(x: Fraction) -> Fraction:
    """About x, with few bits: points are written into files."""
    if x == 0:
        return x
    scale = Fraction(2) ** (60 - x.numerator.bit_length() + x.denominator.bit_length())
    return round(x * scale) / scale
