"""Whether chosen outputs keep an implementation's promise to be monotone."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Float, pow2
from fpsmt.functions import Function, Implementation
from fpsmt.functions.function import TurningPoint

JUMP = 9  #: a direction that no run may have
FINEST = 1 << 14  #: bits to which a turning point is located before giving up


def check_monotone(use: Implementation, pairs: Iterable[tuple[Float, Float]]) -> None:
    """A usage error when outputs (x, y) go against the function's direction.

    Where every piece of the function between the least and the largest of some inputs rises or is constant, and
    at least one rises, their outputs must not fall as the input grows; and the other way round.  Both zeros are one
    input and one output; NaN inputs and outputs, and intervals with a jump of the function, are left out.

    This is what the promise says about the inputs that occur.  That the outputs can be continued to a monotone
    implementation at all other inputs is not checked.
    """
    f = use.function
    if f.period_phase is not None:
        raise Unsupported(f"{use.text}: monotone pieces of a periodic function are not supported; leave out monotone")
    used = sorted({(x, y) for x, y in pairs if not x.is_nan and not y.is_nan}, key=lambda p: _number(p[0]))
    for sign in (1, -1):
        run: list[tuple[Float, Float]] = []
        moves = False
        for pair in used:
            ways = _directions(f, run[-1][0], pair[0]) if run else set()
            if not ways <= {0, sign}:
                _check_run(use, run if moves else [], sign)
                run, moves = [], False
                ways = set()
            moves |= sign in ways
            run.append(pair)
        _check_run(use, run if moves else [], sign)


def _number(x: Float) -> Fraction | float:
    return float(x) if x.is_infinite else x.fraction


def _directions(f: Function, a: Float, b: Float) -> set[int]:
    """The directions of the pieces that meet (a, b), and `JUMP` for a jump in [a, b]."""
    if _number(a) == _number(b):
        return set()
    first = sum(_side(point, a) <= 0 for point in f.turning)
    last = sum(_side(point, b) < 0 for point in f.turning)
    jumps = any(point.limits and _side(point, a) >= 0 and _side(point, b) <= 0 for point in f.turning)
    return {*f.directions[first : last + 1], *([JUMP] if jumps else [])}


def _side(point: TurningPoint, x: Float) -> int:
    """−1, 0, +1: the turning point is below, at, or above x."""
    if x.is_infinite:
        return 1 if x.negative else -1
    value, bits = x.fraction, 64
    while bits <= FINEST:
        low, high = point.enclosure(pow2(-bits))
        if high < value:
            return -1
        if low > value:
            return 1
        if low == high:
            return 0
        bits *= 4
    raise Unsupported(f"cannot tell on which side of a turning point near {float(value)} an input lies")


def _check_run(use: Implementation, run: list[tuple[Float, Float]], sign: int) -> None:
    extreme: tuple[Float, Float] | None = None  # of the inputs so far, the one with the most advanced output
    for x, y in run:
        if extreme is not None and _number(extreme[0]) < _number(x) and sign * _compare(extreme[1], y) > 0:
            word = "fall" if sign > 0 else "rise"
            raise UsageError(
                f"{use.text} promises to be monotone, but its outputs {word} from {extreme[1]} at {extreme[0]} "
                f"to {y} at {x}"
            )
        if extreme is None or sign * _compare(y, extreme[1]) > 0:
            extreme = (x, y)


def _compare(a: Float, b: Float) -> int:
    x, y = _number(a), _number(b)
    return (x > y) - (x < y)
