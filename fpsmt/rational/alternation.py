"""Alternation: what shows that no rational of a type is better than a bound.  Trusted (rule ``alternation``)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

from fpsmt.errors import Unsupported
from fpsmt.rational.formulas import Formula
from fpsmt.rational.models import working
from fpsmt.rational.polynomials import Interval, count_roots, to_fmpq

MOST_BITS = 1 << 16


def defect(r: tuple[int, int], zero: bool, type: tuple[int, int]) -> int:
    """d = min(m − deg p, n − deg q) for p/q in lowest terms; the zero polynomial has degree −∞."""
    below = type[1] - r[1]
    return below if zero else min(type[0] - r[0], below)


def error_sign(target: Formula, r: Formula, x: Fraction, bound: Fraction, relative: bool) -> int:
    """±1, the sign of f(x) − r(x), when this is certainly at least the bound in size (times |f(x)|); else 0."""
    try:
        f = target(x)
        error = f - r(x)
        least = bound * (abs(f) if relative else 1)
        return 0 if least <= 0 or abs(error) < least else 1 if error > 0 else -1
    except Unsupported:
        pass
    bits = 128
    while bits <= MOST_BITS:
        with working(bits, 1):
            f_ball = target.ball(x, bits)
            error_ball = f_ball - r.ball(x, bits)
            least_ball = to_fmpq(bound) * (abs(f_ball) if relative else 1)
            if least_ball > 0 and abs(error_ball) >= least_ball:
                return 1 if error_ball > 0 else -1
            if least_ball <= 0 or abs(error_ball) < least_ball:
                return 0
        bits *= 2
    return 0


def check_alternation(
    target: Formula,
    r: Formula,
    domain: Sequence[Interval],
    type: tuple[int, int],
    bound: Fraction,
    relative: bool,
    points: Sequence[Fraction],
) -> str:
    """Empty when the points show that every rational of the type has an error of at least the bound; else what is
    missing.  The proof is in the rule ``alternation``."""
    if len(domain) != 1:
        return "alternation needs one interval"
    if bound <= 0:
        return "the bound is not positive"
    ((low, high),) = domain
    if list(points) != sorted(set(points)) or not points or points[0] < low or points[-1] > high:
        return "the points are not ascending within the interval"
    p_over_q = r.expand()
    zero = p_over_q.numerator == (0,)
    if p_over_q.type[0] > type[0] or p_over_q.type[1] > type[1]:
        return f"the rational has type {p_over_q.type}, which is not within {type}"
    if count_roots(p_over_q.q, points[0], points[-1]):
        return "the rational has a pole between the points"
    needed = sum(type) + 2 - defect(p_over_q.type, zero, type)
    if len(points) < needed:
        return f"{len(points)} points are given and {needed} are needed"
    signs = [error_sign(target, r, x, bound, relative) for x in points]
    if 0 in signs:
        return f"at x = {points[signs.index(0)]} the error is not certainly as large as the bound"
    if any(a == b for a, b in itertools.pairwise(signs)):
        return "the error does not alternate"
    return ""
