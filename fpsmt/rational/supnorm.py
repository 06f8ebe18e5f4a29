"""The supremum of |f − g|, between two bounds with proof: branch and bound on Taylor models.

The upper bound is proved by a subdivision that `enclosures.check_subdivision` verifies in one pass; the lower bound by
a rational point, where a ball is enough.  Nothing is sampled: every interval that is left has a bound of its own.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import flint
from flint import arb

from fpsmt.rational.enclosures import Problem
from fpsmt.rational.models import working
from fpsmt.rational.polynomials import Interval, to_fmpq

GAP = Fraction(1, 1000)
MOST_LEAVES = 1 << 17


@dataclass(frozen=True)
class SupNormBounds:
    """`low` ≤ sup |error| ≤ `high`; |error| ≥ low at the point `at`; `trees` prove high (see `enclosures.leaves`).

    `high` is None when nothing was proved on some interval, which `open` names.
    """

    problem: Problem
    low: Fraction
    high: Fraction | None
    at: Fraction
    trees: tuple[str, ...]
    order: int
    bits: int
    boxes: int
    open: Interval | None = None

    @property
    def leaves(self) -> int:
        return sum(tree.count("0") for tree in self.trees)


def upper_fraction(x: arb) -> Fraction:
    """The exact value of the upper end, with about 30 bits, rounded up."""
    mantissa, exponent = x.upper().man_exp()
    return _round(int(mantissa), int(exponent), 1)


def lower_fraction(x: arb) -> Fraction:
    mantissa, exponent = x.lower().man_exp()
    return _round(int(mantissa), int(exponent), -1)


def _round(mantissa: int, exponent: int, side: int, bits: int = 64) -> Fraction:
    extra = max(0, mantissa.bit_length() - bits)
    cut = -((-mantissa) >> extra) if side > 0 else mantissa >> extra
    return cut * Fraction(2) ** (exponent + extra)


def error_at(problem: Problem, x: Fraction, bits: int) -> arb:
    """A ball around |error| at a point, with about `bits` good bits where possible; precision grows until then."""
    work = bits + 32
    while True:
        f, g = problem.target.ball(x, work), problem.approximation.ball(x, work)
        saved = flint.ctx.prec
        flint.ctx.prec = work
        try:
            error = abs(f - g) / abs(f) if problem.relative else abs(f - g)
        finally:
            flint.ctx.prec = saved
        if error.is_finite() and error.rel_accuracy_bits() >= bits:
            return error
        if work > 64 * bits + 4096:
            return error
        work *= 2


def _size(problem: Problem, pieces: list[Interval]) -> int:
    """How small the error is, in bits, from a few points; a guess."""
    sizes = [0]
    for low, high in pieces:
        for k in (3, 7, 11, 14):
            error = error_at(problem, low + (high - low) * k / 17, 8)
            if error.is_finite() and error > 0:
                sizes.append(math.floor(-log2(error.lower())))
    return max(0, min(sizes[1:], default=0))


def log2(x: arb) -> float:
    """About log₂ of an exact positive number, which may be far outside the range of floats."""
    mantissa, exponent = (int(v) for v in x.man_exp())
    extra = max(0, mantissa.bit_length() - 53)
    return math.log2(mantissa >> extra) + extra + exponent


def sup_norm(
    problem: Problem,
    gap: Fraction = GAP,
    *,
    goal: Fraction | None = None,
    order: int | None = None,
    bits: int | None = None,
    seconds: float = 60.0,
    most: int = MOST_LEAVES,
    report: Callable[[str], None] | None = None,
) -> SupNormBounds:
    """Bounds with high ≤ low·(1 + gap), or as near as `seconds` and `most` boxes allow; the result says how near.

    With a `goal` the search stops as soon as it is decided: every box within the goal, or a point beyond it.
    `order` and `bits` are chosen from the size of the error when not given.
    """
    start = time.monotonic()
    pieces = problem.pieces()
    size = _size(problem, pieces)
    if goal is not None and goal > 0:  # f and g may be equal
        size = max(size, goal.denominator.bit_length() - goal.numerator.bit_length())
    if bits is None:
        bits = 96 + 2 * size
    if order is None:
        order = max(6, 6 + size // 4)
    low, at = Fraction(-1), pieces[0][0]
    boxes = 0
    heap: list[tuple[float, int, int, str, Interval, arb]] = []  # by piece and path, greatest bound first
    kept: dict[tuple[int, str], arb] = {}

    def key(bound: arb) -> float:
        """The greatest bound first."""
        if not bound.is_finite():
            return -math.inf
        return -log2(bound) if bound > 0 else math.inf

    def visit(index: int, path: str, interval: Interval) -> None:
        nonlocal low, at, boxes
        boxes += 1
        bound, places = problem.bound(*interval, order)
        a, b = interval
        for s in places:
            mantissa, exponent = s.man_exp()
            place = _round(int(mantissa), int(exponent), 1, 24)
            x = (a + b) / 2 + (b - a) / 2 * max(Fraction(-1), min(Fraction(1), place))
            if bound.is_finite() and low >= 0 and bound <= to_fmpq(low):
                break
            if x in problem.zeros:
                x += ((a + b) / 2 - x) / (1 << 20)  # the quotient has a limit there, but no value
            error = error_at(problem, x, 40)
            if error.is_finite() and (reached := lower_fraction(error)) > low:
                low, at = reached, x
        heapq.heappush(heap, (key(bound), boxes, index, path, interval, bound))

    def enough(bound: arb) -> bool:
        if goal is not None and bound <= to_fmpq(goal):
            return True
        if goal is None and low <= 0:  # f and g may be equal
            return bool(bound <= arb(2) ** (-bits // 2))
        return goal is None and bool(bound <= to_fmpq(low * (1 + gap)))

    at_cuts: list[tuple[Fraction, arb]] = []
    for cut in problem.cuts:
        error = arb(0) if cut in problem.zeros else error_at(problem, cut, 40)
        at_cuts.append((cut, error))
        if error.is_finite() and (reached := lower_fraction(error)) > low:
            low, at = reached, cut
    with working(bits, order):
        for index, piece in enumerate(pieces):
            visit(index, "", piece)
        while heap:
            bound, index, path, interval = heap[0][5], heap[0][2], heap[0][3], heap[0][4]
            if enough(bound):
                break
            if goal is not None and low > goal:
                break
            if boxes >= most or time.monotonic() - start > seconds:
                break
            heapq.heappop(heap)
            middle = (interval[0] + interval[1]) / 2
            visit(index, path + "0", (interval[0], middle))
            visit(index, path + "1", (middle, interval[1]))
            if report is not None and boxes % 2000 < 2:
                report(f"{boxes} boxes")
        for _, _, index, path, _, bound in heap:
            kept[index, path] = bound
        worst = heap[0]
    hole: Interval | None = None
    high: Fraction | None = None
    if not worst[5].is_finite():
        hole = worst[4]
    elif lost := [cut for cut, error in at_cuts if not error.is_finite()]:
        hole = lost[0], lost[0]
    else:
        high = max(upper_fraction(bound) for bound in (worst[5], *(error for _, error in at_cuts)))
    trees = tuple(_tree({path for i, path in kept if i == index}) for index in range(len(pieces)))
    return SupNormBounds(problem, max(low, Fraction(0)), high, at, trees, order, bits, boxes, hole)


def _tree(paths: set[str]) -> str:
    """The preorder word of the binary tree with these leaves."""
    marks: list[str] = []
    waiting = [""]
    while waiting:
        path = waiting.pop()
        if path in paths:
            marks.append("0")
        else:
            marks.append("1")
            waiting += [path + "1", path + "0"]
    return "".join(marks)
