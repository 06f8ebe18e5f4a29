"""Rationals as functions of `fpsmt.functions`: ``rational(0,15,0,1;0,6)`` is (15x + x³)/(1 + 6x²).

The numbers before and after the semicolon are a₀, a₁, … and b₁, b₂, …; ``rational_A(…)`` has 1 + Σ |bⱼ||x|ʲ below.
With their records (exact values at every rational, turning points by Sturm's theorem) such functions are rounded, have
contracts and stand in networks like any other.  Without real poles only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

from flint import arb, arb_poly, arb_series, fmpq_poly

from fpsmt.errors import UsageError
from fpsmt.floats import read_number
from fpsmt.functions import Function, function_named
from fpsmt.functions.function import Limit, TurningPoint
from fpsmt.functions.registry import FAMILIES
from fpsmt.rational.polynomials import Interval, isolate_roots, root_bound, sign_at, to_fmpq
from fpsmt.rational.rational import Rational
from fpsmt.rational.trainable import Trainable

WORDS = {"unsafe": "rational", "A": "rational_A"}
WIDTH = Fraction(1, 1 << 40)


def name_of(r: Trainable) -> str:
    """The name that `function_named` reads.

    >>> name_of(Trainable("A", (Fraction(0), Fraction(1)), (Fraction(1, 2),)))
    'rational_A(0,1;1/2)'
    """
    if r.version not in WORDS:
        raise UsageError(f"form {r.version} is no function by name: forms unsafe and A are")
    return f"{WORDS[r.version]}({','.join(map(str, r.a))};{','.join(map(str, r.b))})"


def rational_function(r: Trainable) -> Function:
    """The rational as a function: real poles are a usage error.

    >>> f = rational_function(Trainable("A", (Fraction(0), Fraction(1)), (Fraction(-2),)))
    >>> f.exact(Fraction(-3)), f.derivative.exact(Fraction(0)), f.at_plus_infinity
    (Fraction(-3, 7), Fraction(1, 1), Fraction(1, 2))
    """
    return function_named(name_of(r))


def trainable_named(name: str) -> Trainable:
    """The rational of a function's name."""
    for version, word in WORDS.items():
        if name.startswith(word + "(") and name.endswith(")"):
            return _read(version, name[len(word) + 1 : -1])
    raise UsageError(f"{name!r} is not the name of a rational: write rational(a0,…;b1,…) or rational_A(…)")


def _read(version: str, text: str) -> Trainable:
    parts = text.split(";")
    if len(parts) > 2:
        raise UsageError(f"rational({text}): one semicolon stands between numerator and denominator")
    numbers = [[read_number(word) for word in part.split(",") if word.strip()] for part in parts]
    for x in (x for part in numbers for x in part):
        if isinstance(x, float) and x != 0:
            raise UsageError(f"rational({text}): {x} is not a finite number")
    a, b = ([Fraction(x) for x in part] for part in (*numbers, [])[:2])
    return Trainable(version, tuple(a), tuple(b))


@cache
def _functions(version: str, text: str) -> tuple[Function, Function]:
    r = _read(version, text)
    name = name_of(r)
    if text != name[len(WORDS[version]) + 1 : -1]:
        return FAMILIES[WORDS[version]](name[len(WORDS[version]) + 1 : -1])
    left, right = (r.left, r.right) if version == "A" else (unsafe(r), unsafe(r))
    for side, low, high in ((left, None, Fraction(0)), (right, Fraction(0), None)):
        far = root_bound(side.q)
        if side.count_poles(-far if low is None else low, far if high is None else high):
            raise UsageError(f"{name} has a real pole: it is no function on the whole line")
    formula = str(left) if left.same_function(right) else f"{left} for x < 0, {right} for x ≥ 0"
    slopes = left.derivative().reduced(), right.derivative().reduced()
    function = _record(name, formula, left, right, name + "'")
    return function, _record(name + "'", "its derivative", *slopes, None)


def unsafe(r: Trainable) -> Rational:
    """Σ aᵢxⁱ/(1 + Σ bⱼxʲ)."""
    return Rational(r.a, (Fraction(1), *r.b))


def _record(name: str, formula: str, left: Rational, right: Rational, derivative: str | None) -> Function:
    """left for x < 0, right for x ≥ 0."""
    sides = {-1: left, 1: right}
    one = left.same_function(right)

    def exact(x: Fraction) -> Fraction:
        return sides[-1 if x < 0 else 1](x)

    def ball(x: arb) -> arb:
        if x >= 0 or one:
            return _value(right, x)
        return _value(left, x) if x < 0 else _value(left, x).union(_value(right, x))

    def series(x: arb_series) -> arb_series:
        if not (one or x[0] > 0 or x[0] < 0):
            raise ValueError("a kink")
        return _series(right if one or x[0] > 0 else left, x)

    points, directions = _turns(left, right)
    limits = [_limit(side, sign) for sign, side in sides.items()]
    slope = right.derivative()(0) if exact(Fraction(0)) == 0 else Fraction(0)
    sign = "keep" if slope > 0 else "flip" if slope < 0 else "positive"
    return Function(
        name, formula, ball, directions, limits[0], limits[1], derivative, turning=points, rational=exact,
        zero_sign=sign, series=series,  # type: ignore[arg-type]
    )  # fmt: skip


def _arb(p: fmpq_poly) -> arb_poly:
    return arb_poly(p.coeffs() or [0])


def _value(r: Rational, x: arb) -> arb:
    return _arb(r.p)(x) / _arb(r.q)(x)


def _series(r: Rational, x: arb_series) -> arb_series:
    def at(c: Sequence[Fraction]) -> arb_series:
        total = x * 0
        for a in reversed(c):
            total = total * x + arb(to_fmpq(a))
        return total

    below = at(r.denominator) if len(r.denominator) > 1 else arb(to_fmpq(r.denominator[0]))
    return at(r.numerator) / below


def _limit(r: Rational, side: int) -> Limit:
    """At side·∞."""
    p, q = r.p, r.q
    if p.degree() < q.degree() or p.degree() < 0:
        return Fraction(0)
    lead = Fraction(int(p[p.degree()].p), int(p[p.degree()].q)) / Fraction(int(q[q.degree()].p), int(q[q.degree()].q))
    if p.degree() == q.degree():
        return lead
    return math.copysign(math.inf, lead * side ** ((p.degree() - q.degree()) % 2))


def _turns(left: Rational, right: Rational) -> tuple[tuple[TurningPoint, ...], tuple[int, ...]]:
    """Where the direction changes, and the directions between those points (0 where constant)."""
    marks: list[tuple[Fraction, Fraction, Callable[[arb], arb] | None]] = []
    slopes: dict[int, fmpq_poly] = {}
    for side, r in ((-1, left), (1, right)):
        p = slopes[side] = (r.derivative().reduced()).p if r.derivative().p.degree() >= 0 else fmpq_poly([0])
        if p.degree() < 1:
            continue
        far = root_bound(p)
        for low, high in _odd_roots(p, *((-far, Fraction(0)) if side < 0 else (Fraction(0), far))):
            if (low, high) != (0, 0):
                marks.append((low, high, None if low == high else lambda x, p=p: _arb(p)(x)))  # type: ignore
    jump = left(0) != right(0)
    marks.append((Fraction(0), Fraction(0), None))
    marks.sort(key=lambda mark: (mark[0], mark[1]))
    points, directions = [], [_direction(slopes, left, right, None, marks[0])]
    for k, (low, high, sign) in enumerate(marks):
        after = _direction(slopes, left, right, marks[k], marks[k + 1] if k + 1 < len(marks) else None)
        is_jump = jump and low == high == 0
        if after != directions[-1] or is_jump:
            points.append(TurningPoint(low, high, sign, (left(0), right(0)) if is_jump else ()))
            directions.append(after)
    return tuple(points), tuple(directions)


def _odd_roots(p: fmpq_poly, low: Fraction, high: Fraction) -> list[Interval]:
    """Roots where p changes its sign."""
    odd = fmpq_poly([1])
    for factor, exponent in p.factor_squarefree()[1]:
        if exponent % 2:
            odd *= factor
    return isolate_roots(odd, low, high, WIDTH) if odd.degree() > 0 else []


Mark = tuple[Fraction, Fraction, Callable[[arb], arb] | None]


def _direction(
    slopes: dict[int, fmpq_poly], left: Rational, right: Rational, before: Mark | None, after: Mark | None
) -> int:
    """The sign of the derivative between two neighbouring marks, all changes of its sign being marks."""
    low = after[0] - 1 if before is None and after is not None else before[1] if before is not None else Fraction(-1)
    high = low + 1 if after is None else after[0]
    r = left if high <= 0 else right
    p = slopes[-1 if high <= 0 else 1]
    if p.degree() < 0:
        return 0
    for k in range(1, p.degree() + 3):
        x = low + (high - low) * k / (p.degree() + 3)
        if sign := sign_at(p, x) * sign_at(r.derivative().reduced().q, x):
            return sign
    raise AssertionError("a polynomial has more roots than its degree")


def _family(version: str) -> Callable[[str], tuple[Function, Function]]:
    return lambda text: _functions(version, text.replace(" ", ""))


for _version, _word in WORDS.items():
    FAMILIES[_word] = _family(_version)
