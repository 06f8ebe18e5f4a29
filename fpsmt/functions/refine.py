"""Ever tighter certified bounds of one value f(x): balls, strict inequalities, tails.  All decisions rest on these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb

from fpsmt.errors import Unsupported
from fpsmt.floats import Context, Float, Format, cast, float64, infinity, nan, pow2, round_real, zero
from fpsmt.functions.function import TAIL_START, Function, StrictBound, Tail, ball_of, ends, evaluate

MOST_BITS = 1 << 22  #: beyond this precision a value is given up as undecided


@dataclass(frozen=True, slots=True)
class Bounds:
    """low ≤ y ≤ high, strict at an open end.  `beyond` = ±1: y is farther out than any rounding needs to know."""

    low: Fraction
    high: Fraction
    low_open: bool = False
    high_open: bool = False
    beyond: int = 0

    @property
    def exact(self) -> bool:
        return self.low == self.high

    def shifted(self, by: Fraction) -> Bounds:
        return Bounds(self.low + by, self.high + by, self.low_open, self.high_open, self.beyond)


def nudged(c: Fraction, side: int, quantum: Fraction) -> Fraction:
    """A number on this side of c so close that no multiple of `quantum` lies between (c excluded).

    With c = a/d and quantum = g/e, two different numbers of these kinds are at least 1/(d·e) apart.
    """
    return c + Fraction(side, 4 * c.denominator * quantum.denominator) if side else c


def breakpoint_quantum(fmt: Format) -> Fraction:
    """Every place where any rounding into the format changes is a multiple of this: ω/4.

    Values are multiples of ω and midpoints of ω/2; tininess after rounding (flushed outputs) is judged on a
    grid of half that spacing just below the smallest normal value, with midpoints ω/4.
    """
    return fmt.smallest / 4


def round_bounds(ctx: Context, b: Bounds, zero_negative: bool = False) -> tuple[Float, Float]:
    """The values that the two ends round to; y rounds to something between (rounding is monotone).

    An exact zero takes the sign given.
    """
    q = breakpoint_quantum(ctx.format)
    low = round_real(ctx, nudged(b.low, 1 if b.low_open else 0, q), zero_negative)
    if b.exact:
        return low, low
    return low, round_real(ctx, nudged(b.high, -1 if b.high_open else 0, q), zero_negative)


def refinements(function: Function, x: Fraction, fmt: Format) -> Iterator[Bounds]:
    """Bounds of f(x), x in the domain and no pole, for deciding questions about values of `fmt`.

    One exact `Bounds` when f(x) is a known rational, else an endless-looking sequence with doubling precision;
    `Unsupported` after `MOST_BITS`.  Sizes beyond 2^(emax + precision + 64) or below 2^(emin − precision − 64) are
    not resolved further, which no rounding into `fmt` can notice.
    """
    value = function.exact(x)
    if value is not None:
        yield Bounds(value, value)
        return
    strict = [b for b in function.bounds if b.applies(x)]
    bits, start = fmt.precision + 30, tail_start(fmt)
    while bits <= MOST_BITS:
        yield _sharpen(_by_ball(function, x, fmt, bits, start), strict, x)
        bits, start = 2 * bits, 2 * start
    raise Unsupported(
        f"{function.name}({x}): {MOST_BITS} bits do not decide it in {fmt}; the value may be exactly on a boundary"
    )


def tail_start(fmt: Format) -> int:
    """Where tails and exponential growth replace direct evaluation: e^−start is far below ω and e^start above Ω."""
    return max(TAIL_START, 2 * (abs(fmt.emin) + abs(fmt.emax)) + 4 * fmt.precision + 64)


def _sharpen(b: Bounds, strict: list[StrictBound], x: Fraction) -> Bounds:
    low, high, low_open, high_open = b.low, b.high, b.low_open, b.high_open
    for bound in strict:
        c = bound.slope * x + bound.offset
        if bound.side > 0 and c >= low:
            low, low_open = c, True
        elif bound.side < 0 and c <= high:
            high, high_open = c, True
    return Bounds(low, high, low_open, high_open, b.beyond)


def _by_ball(function: Function, x: Fraction, fmt: Format, bits: int, start: int) -> Bounds:
    if abs(x) > start:
        side = 1 if x > 0 else -1
        if (far := far_out(function, x, start)) is not None:
            return far
        growth = function.grows[side > 0]
        if growth:  # monotone, so farther out than the value at ±start
            edge = Fraction(side * start)
            inner = bounds_of_ball(evaluate(function.ball, ball_of(edge, edge, bits), bits), fmt, bits)
            huge = _huge(fmt)
            if growth > 0:
                return Bounds(inner.low, huge, beyond=1 if inner.low >= huge else 0)
            return Bounds(-huge, inner.high, beyond=-1 if inner.high <= -huge else 0)
    return bounds_of_ball(evaluate(function.ball, ball_of(x, x, bits), bits), fmt, bits)


def far_out(function: Function, x: Fraction, start: int) -> Bounds | None:
    """Bounds from the tail on the side of x when |x| > start ≥ 64, else None."""
    tail = function.right_tail if x > 0 else function.left_tail
    if tail is None or abs(x) <= start:
        return None
    start = start if x > 0 else -start
    line = tail.slope * x + tail.offset
    rest = residual(function, tail, start)
    if tail.side > 0:
        return Bounds(line, line + rest, True, False)
    return Bounds(line - rest, line, False, True)


@lru_cache(maxsize=4096)
def residual(function: Function, tail: Tail, start: int) -> Fraction:
    """An upper bound of |f(x) − line| for every x beyond `start`, a power of two."""
    point = Fraction(start)
    line = tail.slope * point + tail.offset
    bits = 4 * abs(start)
    y = evaluate(function.ball, ball_of(point, point, bits), bits)
    rest = evaluate(lambda v: abs(v - ball_of(line, line, bits)), y, bits)
    mantissa, exponent = (int(v) for v in ends(rest, 64)[1].man_exp())
    return pow2(max(mantissa.bit_length() + exponent, -bits))


def _huge(fmt: Format) -> Fraction:
    return pow2(fmt.emax + fmt.precision + 64)


def bounds_of_ball(y: arb, fmt: Format, bits: int) -> Bounds:
    """The ends of a ball as rationals, clipped to the sizes that matter for `fmt`."""
    huge = _huge(fmt)
    if not y.is_finite():
        return Bounds(-huge, huge)
    lower, upper = ends(y, bits)
    low, low_beyond, low_open = _end(lower, fmt, -1)
    high, high_beyond, high_open = _end(upper, fmt, 1)
    beyond = low_beyond if low_beyond == high_beyond else 0
    return Bounds(low, high, low_open, high_open, beyond)


def _end(end: arb, fmt: Format, side: int) -> tuple[Fraction, int, bool]:
    """A dyadic end as a rational: huge ones clipped, with the sign of the excess; tiny ones moved outwards.

    A tiny end that points away from zero becomes 2^least, one that points to zero becomes zero as a strict end.
    """
    mantissa, exponent = (int(v) for v in end.man_exp())
    if mantissa == 0:
        return Fraction(0), 0, False
    sign = 1 if mantissa > 0 else -1
    size = mantissa.bit_length() + exponent  # 2^(size−1) ≤ |end| < 2^size
    if size > fmt.emax + fmt.precision + 65:
        return sign * _huge(fmt), sign, False
    least = fmt.emin - fmt.precision - 64
    if size < least:
        return (sign * pow2(least), 0, False) if sign == side else (Fraction(0), 0, True)
    return mantissa * pow2(exponent), 0, False


# -- inputs that are not points of the domain ---------------------------------------------------------------


def read_input(ctx: Context, x: Float) -> Float:
    """x as the context sees it: a subnormal is a zero under an input-flushing rule."""
    return zero(x.format, x.negative) if ctx.subnormals.inputs and x.is_subnormal else x


def special_value(function: Function, ctx: Context, x: Float) -> Fraction | Float | None:
    """At NaN, ±inf, a pole or outside the domain: the result, or the rational limit; None elsewhere."""
    if x.is_nan:
        return cast(ctx, nan(float64))
    if x.is_infinite:
        limit = function.at_minus_infinity if x.negative else function.at_plus_infinity
        if isinstance(limit, Fraction):
            return limit
        return cast(ctx, nan(float64) if limit != limit else infinity(float64, limit < 0))
    point = x.fraction
    if function.lowest is not None and point <= function.lowest:
        if point < function.lowest:
            return cast(ctx, nan(float64))
        if function.pole:
            return cast(ctx, infinity(float64, function.pole < 0))
    return None


def limit_sign(function: Function, x: Float) -> bool:
    """The sign bit of a zero limit at ±inf: from the side of the tail, negative when it comes from below."""
    tail = function.left_tail if x.negative else function.right_tail
    return tail is not None and tail.slope == 0 and tail.offset == 0 and tail.side < 0


def zero_negative(function: Function, x: Float) -> bool:
    """The sign bit of an exact zero result at x."""
    if not x.is_zero or function.zero_sign == "positive":
        return False
    return x.negative == (function.zero_sign == "keep")


def decide(bounds: Iterator[Bounds], read: Callable[[Bounds], tuple[Float, Float]]) -> Float:
    """The value that both ends agree on, at the first precision where they do."""
    for b in bounds:
        low, high = read(b)
        if low == high:
            return low
    raise AssertionError("refinements ended without an exact value")  # pragma: no cover
