"""Certified ranges: of a real function on an interval, and of its correctly rounded version on all floats of one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import flint
from flint import arb

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import (
    Context,
    Float,
    Format,
    Mode,
    Overflow,
    Subnormals,
    from_ordinal,
    largest,
    pow2,
    round_real,
    zero,
)
from fpsmt.functions.function import Function, TurningPoint, ball_of, ends, evaluate
from fpsmt.functions.refine import far_out, read_input
from fpsmt.functions.rounding import correctly_rounded

SEVEN = Fraction(7)  #: longer than 2π
FAR = 4096  #: beyond this, tails replace balls in `enclose`
SMALL = 1 << 20  #: no end of an enclosure is nearer to 0 than 2^−SMALL, nor beyond about 2^SMALL
MANY_TURNS = 1024  #: over longer intervals `range_on` does not visit every turning point of a sine


def enclose(function: Function, low: Fraction, high: Fraction, bits: int = 80) -> tuple[Fraction, Fraction]:
    """Rationals a ≤ f(x) ≤ b for every real x in [low, high] (one-sided limits at jumps included).

    Tight to about `bits` bits: f is monotone between its turning points, so only the ends and the turning
    points are evaluated, those with balls.  Raises `UsageError` when low > high or when the interval leaves the
    domain or touches a pole.

    >>> from fpsmt.functions import cos, gelu
    >>> a, b = enclose(cos, Fraction(-1), Fraction(2))
    >>> float(a), b
    (-0.4161468365471424, Fraction(1, 1))
    >>> float(enclose(gelu, Fraction(-3), Fraction(0))[0])
    -0.16997120747990366
    """
    low, high = Fraction(low), Fraction(high)
    if low > high:
        raise UsageError(f"enclose {function.name}: the interval [{low}, {high}] is empty")
    if not function.defined_at(low):
        raise UsageError(
            f"enclose {function.name}: [{low}, {high}] is not inside the domain x "
            f"{'>' if function.pole else '≥'} {function.lowest}"
        )
    if function.period_phase is not None and high - low >= SEVEN:
        return Fraction(-1), Fraction(1)
    parts = [_at(function, x, x, bits) for x in {low, high}]
    for point in function.turning:
        parts += _at_turning(function, point, low, high, bits)
    parts += [_at(function, *p, bits) for p in periodic_turning(function, low, high, bits)]
    a, b = min(p[0] for p in parts), max(p[1] for p in parts)
    least, most = function.range
    return (a if least is None else max(a, least)), (b if most is None else min(b, most))


def _at_turning(
    function: Function, point: TurningPoint, low: Fraction, high: Fraction, bits: int
) -> list[tuple[Fraction, Fraction]]:
    a, b = point.enclosure(pow2(-bits))
    if b < low or a > high:
        return []
    return [_at(function, a, b, bits), *((limit, limit) for limit in point.limits)]


def _at(function: Function, low: Fraction, high: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """The ball over [low, high], exact where f is known to be rational, with precision raised to about `bits` bits."""
    if low == high:
        if (value := function.exact(low)) is not None:
            return value, value
        if (far := far_out(function, low, FAR)) is not None:
            return far.low, far.high
    working = bits + 20
    for _ in range(12):
        y = evaluate(function.ball, ball_of(low, high, working), working)
        if y.is_finite() and (low != high or y.rel_accuracy_bits() >= bits):
            break
        working *= 2
    if not y.is_finite():
        raise Unsupported(f"{function.name} on [{low}, {high}]: the ball has no finite bounds")
    return _pair(y, working)


def _pair(y: arb, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals around a finite ball; ends smaller than 2^−SMALL are moved outwards."""
    a, b = ends(y, bits)
    return _fraction(a, -1), _fraction(b, 1)


def _fraction(end: arb, side: int) -> Fraction:
    mantissa, exponent = (int(v) for v in end.man_exp())
    if mantissa.bit_length() + exponent < -SMALL:
        return side * pow2(-SMALL) if (mantissa > 0) == (side > 0) else Fraction(0)
    if exponent > SMALL:
        raise Unsupported(f"a value of size about 2^{exponent} is too large for an exact rational")
    return mantissa * pow2(exponent)


def periodic_turning(function: Function, low: Fraction, high: Fraction, bits: int) -> list[tuple[Fraction, Fraction]]:
    """Enclosures of the turning points (k + phase)·π that may lie in [low, high], for sine and cosine."""
    if function.period_phase is None:
        return []
    working = bits + 32 + max(abs(low), abs(high), Fraction(1)).__ceil__().bit_length()
    saved = flint.ctx.prec
    flint.ctx.prec = working
    try:
        pi = _pair(arb.pi(), working)
        # a superset of the k with low ≤ (k + phase)π ≤ high
        first = (min(low / p for p in pi) - function.period_phase).__floor__()
        last = (max(high / p for p in pi) - function.period_phase).__ceil__()
        found = []
        for k in range(first, last + 1):
            n = k + function.period_phase
            a, b = sorted(n * p for p in pi)
            if b >= low and a <= high:
                found.append((a, b))
        return found
    finally:
        flint.ctx.prec = saved


# -- floats -----------------------------------------------------------------------------------------------------


def place(x: Float) -> int:
    """Position on the line of floats with −0 just below +0: the order in which ranges are taken.  No NaN."""
    return x.ordinal if not x.negative else x.ordinal - 1


def range_on(function: Function, ctx: Context, low: Float, high: Float) -> tuple[Float, Float]:
    """The least and the largest of ⌈f(x)⌋ over all floats x of [low, high], exactly; −0 counts as below +0.

    (For sine and cosine over more than 1024: the bounds ⌈−1⌋ and ⌈1⌋, which need not be reached.)  low and high
    are values of one format; −0 ≤ +0 in the choice of inputs too.  Rounding is monotone, so the floats at the ends
    and on both sides of each turning point are enough.  Raises `UsageError` when the interval is empty or leaves
    the domain, `Unsupported` when overflow gives NaN (no order) or an infinite input has no limit.

    >>> from fpsmt.floats import context, exactly, float64
    >>> from fpsmt.functions import cosh
    >>> w = exactly(float64, 2.0**-52)
    >>> [str(y) for y in range_on(cosh, context("float64"), -w, w)]
    ['1.0', '1.0']
    """
    _check(function, low, high)
    if function.lowest is not None and _outside(function, low):
        raise UsageError(f"{function.name}: [{low}, {high}] leaves the domain x ≥ {function.lowest}")
    if _many_turns(function, low, high) and not (low.is_infinite or high.is_infinite):
        return round_real(ctx, -1), round_real(ctx, 1)
    values = _candidates(function, ctx, low, high)
    if any(y.is_nan for y in values):
        raise Unsupported(
            f"{function.name} on [{low}, {high}] in {ctx}: NaN among the results (overflow to NaN, or no limit at ±inf)"
        )
    return min(values, key=place), max(values, key=place)


def constant_on(function: Function, ctx: Context, low: Float, high: Float) -> Float | None:
    """The one value that ⌈f(x)⌋ takes on every float x of [low, high], or None when it takes several
    (or, for sine and cosine over more than 1024, when this is not examined).

    Certified from the extremes of the real function, not by sampling: the interval may hold any number of floats.
    NaN when every x is outside the domain.  None also when overflow gives NaN for some x.

    >>> from fpsmt.floats import context, exactly, float64
    >>> from fpsmt.functions import gaussian, tanh
    >>> ctx, w = context("float64"), exactly(float64, 2.0**-52)
    >>> str(constant_on(gaussian, ctx, -w, w)), constant_on(tanh, ctx, -w, w)
    ('1.0', None)
    """
    _check(function, low, high)
    low, high = read_input(ctx, low), read_input(ctx, high)  # −ω is −0, perhaps where the domain ends
    if function.lowest is not None and not high.is_nan and _outside(function, high):
        return correctly_rounded(function, ctx, high)
    if function.lowest is not None and _outside(function, low):
        return None
    if _many_turns(function, low, high):
        return None
    values = set(_candidates(function, ctx, low, high))
    only = values.pop()
    if values:
        return None
    if only.is_nan and ctx.overflow is Overflow.NAN:
        return None  # overflowing ends say nothing about what lies between
    return only


def _many_turns(function: Function, low: Float, high: Float) -> bool:
    return function.period_phase is not None and _finite(high) - _finite(low) >= MANY_TURNS


def _outside(function: Function, x: Float) -> bool:
    assert function.lowest is not None
    return x.negative if x.is_infinite else x.fraction < function.lowest


def _check(function: Function, low: Float, high: Float) -> None:
    if low.format != high.format:
        raise UsageError(f"the ends of the interval have two formats: {low.format} and {high.format}")
    if low.is_nan or high.is_nan or place(low) > place(high):
        raise UsageError(f"{function.name}: the interval [{low}, {high}] of {low.format} is empty")


def _candidates(function: Function, ctx: Context, low: Float, high: Float) -> list[Float]:
    """⌈f⌋ at floats of [low, high] among which its least and largest values over the interval are."""
    fmt = low.format
    inputs = {low, high, zero(fmt, True), zero(fmt)}
    for point in function.turning:
        inputs |= _beside(fmt, lambda bits, point=point: [point.enclosure(pow2(-bits))])  # type: ignore[misc]
    if function.period_phase is not None:
        a, b = _finite(low), _finite(high)
        inputs |= _beside(fmt, lambda bits: periodic_turning(function, a, b, bits))
    if ctx.subnormals.inputs:
        edge = from_ordinal(fmt, 1 << fmt.fraction_bits)
        inputs |= {edge, -edge, edge.next_down, -edge.next_down}
    return [correctly_rounded(function, ctx, x) for x in inputs if place(low) <= place(x) <= place(high)]


def _finite(x: Float) -> Fraction:
    if x.is_infinite:
        return -x.format.largest if x.negative else x.format.largest
    return x.fraction


def _beside(fmt: Format, enclosures: Callable[[int], list[tuple[Fraction, Fraction]]]) -> set[Float]:
    """The floats next to some points on both sides (and the points themselves when they are floats)."""
    bits = fmt.precision + 8
    while True:
        pairs = [(_floor(fmt, a), _floor(fmt, b)) for a, b in enclosures(bits)]
        if all(below == above for below, above in pairs):
            break
        bits *= 2
    near = set()
    for below, _ in pairs:
        for step in (-1, 0, 1):
            if abs(below.ordinal + step) <= fmt.largest_code + fmt.has_infinity:
                near.add(from_ordinal(fmt, below.ordinal + step))
    return near


def _floor(fmt: Format, x: Fraction) -> Float:
    """The largest float ≤ x, −Ω at least."""
    if x < -fmt.largest:
        return largest(fmt, True)
    overflow = Overflow.INFINITY if fmt.has_infinity else Overflow.SATURATE
    return round_real(Context(fmt, Mode.RTN, overflow, Subnormals.GRADUAL), x)
