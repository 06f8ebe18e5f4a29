"""Whether chosen outputs keep an implementation's promise to be monotone."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Float, floor_log2, pow2
from fpsmt.functions import (
    Clamped,
    Contract,
    CorrectlyRounded,
    Function,
    Implementation,
    WithinError,
    WithinFloats,
    WithinUlps,
    correctly_rounded,
)
from fpsmt.functions.function import TurningPoint

JUMP = 9  #: a direction that no run may have
FINEST = 1 << 14  #: bits to which a turning point is located before giving up


def check_monotone(use: Implementation, pairs: Iterable[tuple[Float, Float]]) -> None:
    """A usage error when outputs (x, y) go against the function's direction.

    Where every piece of the function between the least and the largest of some inputs rises or is constant, and
    at least one rises, their outputs must not fall as the input grows; and the other way round.  Both zeros are one
    input and one output; NaN inputs and outputs, and intervals with a jump of the function, are left out.

    This is what the promise says about the inputs that occur; `check_continuable` is about the others.
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


def check_continuable(use: Implementation, ctx: Context, pairs: Iterable[tuple[Float, Float]]) -> None:
    """`Unsupported` unless some monotone implementation that meets the contract has these outputs.

    The pairs have passed `check_monotone`.  Let f° be the default output (the correctly rounded value, clamped), which
    is monotone and allowed everywhere.  Between two chosen inputs take f° clipped to their outputs: that is monotone,
    and allowed when each chosen output y at x is at least the lower ends of what is allowed before x and at most the
    upper ends after x (on a rising piece; falling ones are mirrored).  Those ends are monotone, so that this holds
    by itself, for contracts that count floats or an absolute error.  Of K ulps, the end towards zero steps back where
    |f| passes a power of two 2^e and the ulp doubles, so that there y has to be within K of the smaller ulps of 2^e.
    """
    for x, y in pairs:
        if y != use.default(ctx, x) and not _continuable(use.contract, use.function, ctx, x, y):
            raise Unsupported(
                f"whether a monotone implementation can give {y} at {x} and meet {use.text} everywhere is not known"
            )


def _continuable(contract: Contract, function: Function, ctx: Context, x: Float, y: Float) -> bool:
    if isinstance(contract, CorrectlyRounded | WithinFloats | WithinError):
        return True
    if isinstance(contract, Clamped):
        strictly = (contract.low is None or contract.low < y.fraction) and (
            contract.high is None or y.fraction < contract.high
        ) if y.is_finite else False  # fmt: skip
        plain = isinstance(contract.inner, CorrectlyRounded | WithinFloats | WithinError)
        return plain or (strictly and _continuable(contract.inner, function, ctx, x, y))
    if not isinstance(contract, WithinUlps):
        return False
    fmt, usual = ctx.format, correctly_rounded(function, ctx, x)
    if not (usual.is_finite and y.is_finite) or abs(usual).magnitude == fmt.largest_code:
        return False
    if contract.ulps >= pow2(fmt.fraction_bits) or usual.is_zero:
        return False
    edge = pow2(floor_log2(abs(usual.fraction)))
    size = y.fraction if not usual.negative else -y.fraction
    if size >= edge or edge <= fmt.smallest_normal:
        return True
    return edge - size <= contract.ulps * edge / 2 / pow2(fmt.fraction_bits)


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
