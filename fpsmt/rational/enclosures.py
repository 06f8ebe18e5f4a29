"""Upper bounds of an error on one interval, with proof.  Trusted.

The error of a formula g as an approximation of f is f − g, or (f − g)/f when it is relative.  All kinks of f that
depend on x alone are cuts of the domain (`cuts_of`), so that each piece of it is analytic inside.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import arb, arb_poly

from fpsmt.errors import FpsmtError, Unsupported, UsageError
from fpsmt.rational.analytic import analytic
from fpsmt.rational.formulas import Call, Formula
from fpsmt.rational.models import Models, NoEnclosure, supremum, working
from fpsmt.rational.polynomials import Interval, to_fmpq
from fpsmt.rational.slopes import Slopes


@dataclass(frozen=True)
class Problem:
    """How far is `approximation` from `target` on a union of closed intervals, absolutely or relative to the target?"""

    target: Formula
    approximation: Formula
    domain: tuple[Interval, ...]
    relative: bool = False

    def __post_init__(self) -> None:
        domain = tuple((Fraction(a), Fraction(b)) for a, b in self.domain)
        object.__setattr__(self, "domain", domain)
        if not domain or any(a > b for a, b in domain):
            raise UsageError("a domain is one or more intervals LOW ≤ HIGH")

    def pieces(self) -> list[Interval]:
        """The domain, cut where a function of x has a kink, and (relative errors) at zeros of the target."""
        cuts = {*self.cuts, *self.zeros}
        found = []
        for low, high in self.domain:
            inner = sorted(c for c in cuts if low < c < high)
            ends = [low, *inner, high]
            found += list(itertools.pairwise(ends))
        return found

    @cached_property
    def cuts(self) -> tuple[Fraction, ...]:
        """Points of the domain where a function of x has a kink or a jump."""
        found = {*cuts_of(self.target), *cuts_of(self.approximation)}
        return tuple(sorted(c for c in found if any(a <= c <= b for a, b in self.domain)))

    @cached_property
    def zeros(self) -> frozenset[Fraction]:
        """For a relative error: 0 and the ends of the domain, where target and approximation are both exactly 0.

        Not where a function of x jumps: expansions start from the limits there, which are other numbers.
        """
        if not self.relative:
            return frozenset()
        jumps = {*jumps_of(self.target), *jumps_of(self.approximation)}
        places = {x for a, b in self.domain for x in (a, b, Fraction(0)) if a <= x <= b} - jumps
        return frozenset(x for x in places if _exactly_zero(self.target, x) and _exactly_zero(self.approximation, x))

    def error(self, models: Models) -> arb_poly:
        """A model of the error on an interval that is inside a piece."""
        if self.relative:
            for zero in (models.low, models.high):
                if zero in self.zeros:
                    slopes = Slopes(models, zero)
                    f, g = (formula.over(slopes, slopes.x).slope for formula in (self.target, self.approximation))
                    return models.divide(f - g, f)
        f, g = (formula.over(models, models.x) for formula in (self.target, self.approximation))
        return models.divide(f - g, f) if self.relative else f - g

    def bound(self, low: Fraction, high: Fraction, order: int) -> tuple[arb, list[arb]]:
        """An upper bound of |error| on an interval inside a piece, and places s ∈ [−1, 1] where it may be reached;
        the bound is infinite when nothing can be said at this width.  Used inside `working`."""
        try:
            return supremum(self.error(Models(low, high, order)))
        except NoEnclosure:
            return arb("inf"), []

    def fails_at(self, bound: Fraction, x: Fraction, bits: int = 128, most: int = 1 << 14) -> bool | None:
        """|f(x) − g(x)| > bound (or > bound·|f(x)|) for certain; None when balls of `most` bits do not tell.

        Exactly, when both values are known to be rational.
        """
        try:
            f, g = self.target(x), self.approximation(x)
            return abs(f - g) > bound * (abs(f) if self.relative else 1)
        except Unsupported:
            pass
        while bits <= most:
            with working(bits, 1):
                f_ball, g_ball = self.target.ball(x, bits), self.approximation.ball(x, bits)
                margin = abs(f_ball - g_ball) - (abs(f_ball) if self.relative else arb(1)) * to_fmpq(bound)
            if margin > 0:
                return True
            if margin <= 0:
                return False
            bits *= 2
        return None

    def within(self, bound: Fraction, low: Fraction, high: Fraction, order: int) -> bool:
        """|f − g| ≤ bound, or ≤ bound·|f|, on this interval inside a piece: proved, or not known."""
        return bool(self.bound(low, high, order)[0] <= to_fmpq(bound))


def _exactly_zero(formula: Formula, x: Fraction) -> bool:
    try:
        return formula(x) == 0
    except FpsmtError:
        return False


def cuts_of(formula: Formula) -> tuple[Fraction, ...]:
    """Where functions of x alone have kinks or jumps."""
    calls = [step for step in formula.steps if isinstance(step, Call) and step.at == 0]
    return tuple(c for step in calls for c in analytic(step.name).cuts)


def jumps_of(formula: Formula) -> tuple[Fraction, ...]:
    """Cuts of functions of x alone that are not known to be continuous."""
    calls = [analytic(step.name) for step in formula.steps if isinstance(step, Call) and step.at == 0]
    return tuple(c for function in calls if not function.continuous for c in function.cuts)


def leaves(piece: Interval, tree: str) -> list[Interval]:
    """The intervals of a subdivision by halves, written in preorder: ``1`` is cut in the middle, ``0`` is kept.

    >>> leaves((Fraction(0), Fraction(1)), "100") == [(0, Fraction(1, 2)), (Fraction(1, 2), 1)]
    True
    """
    found: list[Interval] = []
    waiting = [piece]
    for mark in tree:
        if not waiting or mark not in "01":
            raise UsageError("a subdivision is a word of 0 and 1 in preorder")
        low, high = waiting.pop()
        if mark == "0":
            found.append((low, high))
        else:
            middle = (low + high) / 2
            waiting += [(middle, high), (low, middle)]
    if waiting:
        raise UsageError("a subdivision ends too early")
    return found


def check_subdivision(
    problem: Problem, bound: Fraction, trees: Sequence[str], order: int, bits: int
) -> Interval | None:
    """Verifies the bound on every leaf of a subdivision of each piece; the first leaf where it fails, or None."""
    pieces = problem.pieces()
    if len(trees) != len(pieces):
        raise UsageError(f"{len(pieces)} pieces need {len(pieces)} subdivisions, not {len(trees)}")
    for cut in problem.cuts:  # models speak of the limits there
        if problem.fails_at(bound, cut) is not False:
            return cut, cut
    with working(bits, order):
        for piece, tree in zip(pieces, trees):
            for low, high in leaves(piece, tree):
                if not problem.within(bound, low, high, order):
                    return low, high
    return None
