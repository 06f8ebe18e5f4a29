"""How far results are from a real function, in ulps: certified bounds for whole arrays, and an enclosure at one input.

The error of a result y at x is |y − f(x)| / ulp(f(x)), with the ulp of the real number f(x) (`fpsmt.floats.ulp`); an
infinite y stands for every real that overflows to it, so that its error is the distance from there.  These are the
units of the contract ``ulps=K``: it allows y exactly when the error is at most K, or when y is correctly rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import flint
import numpy as np
from flint import arb
from numpy.typing import NDArray

from fpsmt.errors import InternalError
from fpsmt.floats import Context, Float, Format, Mode, Overflow, pow2, ulp
from fpsmt.floats.machine import bits_of, from_bits, jit
from fpsmt.floats.vector import to_floats
from fpsmt.functions import Function, correctly_rounded, kernels
from fpsmt.functions.arrays import float64_bounds, roomy
from fpsmt.functions.refine import Bounds, breakpoint_quantum, nudged, read_input, refinements, special_value

Array = NDArray[Any]
TIGHT = pow2(-30)  #: width of an enclosure of an error in ulps, relative to its size (or to one ulp)


@dataclass(frozen=True)
class Error:
    """low ≤ error in ulps ≤ high, |y − f(x)| ≤ absolute.

    `mismatch` is ``nan`` where exactly one of the result and the correctly rounded one is NaN, ``infinite`` where
    exactly one of them is infinite, or the two are infinities of different signs.
    """

    low: Fraction
    high: Fraction
    absolute: Fraction
    mismatch: str = ""


NONE = Fraction(0)


def error_at(function: Function, ctx: Context, x: Float, y: Float) -> Error:
    """The error of one result, enclosed by balls of growing precision; exact where f(x) is a known rational."""
    nearest = correctly_rounded(function, ctx, x)
    if y.is_nan or nearest.is_nan:
        return Error(NONE, NONE, NONE, "" if y.is_nan and nearest.is_nan else "nan")
    different = y.is_infinite != nearest.is_infinite or (y.is_infinite and y.negative != nearest.negative)
    mismatch = "infinite" if different else ""
    x, fmt = read_input(ctx, x), ctx.format
    special = special_value(function, ctx, x)
    if isinstance(special, Float):  # an exact infinity, or what the format has for it
        return Error(NONE, NONE, NONE, "" if y == nearest else "infinite")
    if special is not None:
        return _of_bounds(ctx, y, Bounds(special, special), mismatch)
    for b in refinements(function, x.fraction, fmt):
        if b.beyond:  # |f| exceeds every value by so much that the distance is f itself, to 2^−60
            if y.negative == (b.beyond < 0) and stands_for(ctx, y.negative)[0] == abs(float(y)):
                return Error(NONE, NONE, NONE, mismatch)
            return Error(pow2(fmt.precision - 1) - 1, pow2(fmt.precision) + 1, abs(b.low) + abs(b.high), mismatch)
        found = _of_bounds(ctx, y, b, mismatch)
        units = _units(fmt, b)
        if y.is_infinite and stands_for(ctx, y.negative)[1] is None:  # an infinity where nothing overflows to one
            return found
        if b.exact or (units[0] == units[1] and found.high - found.low <= TIGHT * max(Fraction(1), found.low)):
            return found
    raise InternalError(f"the error of {function.name} at {x} is not enclosed")  # refinements raise before


def _units(fmt: Format, b: Bounds) -> tuple[Fraction, Fraction]:
    """The ulps at the ends; at a strict end, such as the 1 of tanh x < 1, those of the reals next to it inside."""
    q = breakpoint_quantum(fmt)
    ends = nudged(b.low, 1 if b.low_open else 0, q), nudged(b.high, -1 if b.high_open else 0, q)
    return ulp(fmt, ends[0]), ulp(fmt, ends[1])


def _of_bounds(ctx: Context, y: Float, b: Bounds, mismatch: str) -> Error:
    fmt = ctx.format
    units = [*_units(fmt, b), *([ulp(fmt, NONE)] * (b.low < 0 < b.high))]
    size, edge = stands_for(ctx, y.negative)
    if abs(float(y)) == size and edge is not None:
        low, high = (-b.high, -b.low) if y.negative else (b.low, b.high)
        distances = [max(NONE, edge - low), max(NONE, edge - high)]
        inside = False
    elif y.is_infinite:
        return Error(NONE, pow2(fmt.precision) + 1, fmt.largest * 4, "infinite")
    else:
        distances = [abs(y.fraction - b.low), abs(y.fraction - b.high)]
        inside = b.low <= y.fraction <= b.high
    near = NONE if inside else min(distances)
    return Error(near / max(units), max(distances) / min(units), max(distances), mismatch)


@lru_cache(maxsize=64)
def stands_for(ctx: Context, negative: bool) -> tuple[float, Fraction | None]:
    """(size of a result, edge): the result of this sign and size stands for every real of at least the size `edge`.

    ±inf where the context overflows to infinity, ±Ω where it saturates; None where there is no such result.
    """
    fmt = ctx.format
    if ctx.overflow is Overflow.SATURATE:
        return float(fmt.largest), fmt.largest
    stops = (Mode.RTZ, Mode.RTP if negative else Mode.RTN)
    if ctx.overflow is Overflow.NAN or ctx.mode in stops:
        return np.inf, None
    return np.inf, fmt.largest + (ulp(fmt, fmt.largest) / 2 if ctx.mode.nearest else 0)


# -- arrays -----------------------------------------------------------------------------------------------------

LARGEST = float(np.finfo(np.float64).max)
SMALL = 2.0**-690  #: a kernel's value beyond its range differs from the function's by less


@jit
def _kernel_bounds(which: int, error: float, x: Any, low: Any, high: Any) -> None:
    for i in range(x.size):
        v = x[i]
        if v != 0.0 and abs(v) <= LARGEST:
            y = kernels.value(which, v)
            a, b = y * (1.0 - error), y * (1.0 + error)
            low[i] = min(a, b) - SMALL
            high[i] = max(a, b) + SMALL
        else:
            low[i] = high[i] = np.nan


@jit
def _errors(
    y: Any, low: Any, high: Any, emin: int, fraction_bits: int, edge: float, down: Any, up: Any, far: Any
) -> None:
    """`error_bounds` where ±inf stands for what is beyond ±edge."""
    top = 4.0 * edge
    for i in range(y.size):
        a, b, v = min(max(low[i], -top), top), min(max(high[i], -top), top), y[i]
        if a != a or v != v:
            down[i] = up[i] = far[i] = np.nan
            continue
        first, last = max(exponent_of(a), emin), max(exponent_of(b), emin)
        least, most = min(first, last), max(first, last)
        if a < 0.0 < b:
            least = emin
        inside = a <= v <= b
        near, distance = abs(v - a), abs(v - b)
        if abs(v) == np.inf:
            near = max(0.0, edge - a) if v > 0.0 else max(0.0, b + edge)
            distance = max(0.0, edge - b) if v > 0.0 else max(0.0, a + edge)
        worst, best = max(near, distance), min(near, distance)
        if inside:
            best = 0.0
        if min(abs(a), abs(b)) >= 2.0 * edge and (a > 0.0) == (b > 0.0):
            right = abs(v) == np.inf and (v > 0.0) == (a > 0.0)
            down[i], up[i], far[i] = 0.0, 0.0 if right else 2.0 ** (fraction_bits + 2), 0.0 if right else np.inf
            continue
        far[i] = next_from(worst, 1)
        up[i] = far[i] * 2.0 ** (fraction_bits - least)
        down[i] = next_from(best, -1) * 2.0 ** (fraction_bits - most)


@jit
def exponent_of(v: float) -> int:
    """⌊log₂|v|⌋ of a normal float64; less than −1022 for smaller ones."""
    return np.int64((bits_of(v) >> np.uint64(52)) & np.uint64(0x7FF)) - 1023  # type: ignore[return-value]


@jit
def next_from(v: float, side: int) -> float:
    """The next float64 above (side 1) or below (side −1) a number ≥ 0; 0 stays 0."""
    if v == 0.0 or v == np.inf:
        return v
    return from_bits(bits_of(v) + np.uint64(1)) if side > 0 else from_bits(bits_of(v) - np.uint64(1))


def fast(function: Function, fmt: Format, ctx: Context) -> bool:
    """Bounds of this function come from compiled code."""
    narrow = all(f.precision <= 26 and f.emax <= 127 and f.emin >= -300 for f in (fmt, ctx.format))
    return function.name in kernels.NAMES and narrow


def bounds(function: Function, ctx: Context, fmt: Format, x: Array) -> tuple[Array, Array]:
    """low ≤ f(x) ≤ high in float64 at finite inputs in the domain; NaN elsewhere, and where nothing is known.

    Compiled code with a proved error (`fpsmt.functions.kernels`; beyond ±600, where it gives the value at ±600, f is
    nearer than 2^−690 to it, or both are beyond the format), else balls.
    """
    low, high = np.full(x.shape, np.nan), np.full(x.shape, np.nan)
    if not (roomy(fmt) and roomy(ctx.format)):
        return low, high
    if not fast(function, fmt, ctx):
        found = float64_bounds(function, x, ctx.format)
        return found.low, found.high
    error = kernels.ERROR_GELU if function.name == "gelu_tanh" else kernels.ERROR
    _kernel_bounds(kernels.NAMES.index(function.name), error, x, low, high)
    if function.lowest is not None:
        outside = x <= float(function.lowest)
        low[outside] = high[outside] = np.nan
    return low, high


def error_bounds(ctx: Context, y: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """(low, high, absolute): certified bounds of the errors in ulps of results y, and of |y − f| from above.

    Where f has no bounds, or y is NaN, all are NaN.  A difference of two float64 numbers is rounded once, so that the
    next float64 bounds it; ulps are powers of two.
    """
    fmt = ctx.format
    if ctx.overflow is Overflow.INFINITY and ctx.mode is Mode.RNE:
        down, up, far = (np.empty(y.shape) for _ in range(3))
        edge = stands_for(ctx, False)[1]
        assert edge is not None
        _errors(y, low, high, fmt.emin, fmt.fraction_bits, float(edge), down, up, far)
        return down, up, far
    top = float(fmt.largest) * 4.0  # beyond this f overflows in every way
    low, high = np.clip(low, -top, top), np.clip(high, -top, top)
    exponents = [np.where(v == 0, fmt.emin, np.maximum(np.frexp(np.abs(v))[1] - 1, fmt.emin)) for v in (low, high)]
    least, most = np.minimum(*exponents), np.maximum(*exponents)
    least = np.where((low < 0) & (high > 0), fmt.emin, least)
    target_low, target_high = y, y
    right = np.zeros(y.shape, dtype=bool)
    for negative in (False, True):
        size, edge = stands_for(ctx, negative)
        on = (np.abs(y) == size) & (np.signbit(y) == negative)
        if edge is not None and on.any():  # the nearest real that y stands for
            reach = -float(edge) if negative else float(edge)
            ends = [(np.minimum if negative else np.maximum)(v, reach) for v in (low, high)]
            target_low, target_high = np.where(on, ends[0], target_low), np.where(on, ends[1], target_high)
            right |= on & ((high < 0) if negative else (low > 0))
    distances = np.abs(target_low - low), np.abs(target_high - high)
    far, near = np.maximum(*distances), np.minimum(*distances)
    near = np.where((low <= y) & (y <= high) | np.isinf(near), 0.0, near)
    far, near = np.where(far > 0, np.nextafter(far, np.inf), far), np.where(near > 0, np.nextafter(near, 0.0), near)
    up = np.ldexp(far, fmt.fraction_bits - least)
    down = np.ldexp(near, fmt.fraction_bits - most)
    beyond = (np.abs(low) >= top / 2) & (np.abs(high) >= top / 2) & (np.sign(low) == np.sign(high))
    up = np.where(beyond, np.where(right, 0.0, 2.0**fmt.precision + 1), up)
    return np.where(beyond, 0.0, down), up, np.where(beyond & right, 0.0, np.where(beyond, np.inf, far))


BALL_BITS = 200


def ball_bounds(function: Function, ctx: Context, x: Array, y: Array) -> tuple[Array, Array, Array]:
    """`error_bounds` from balls of 200 bits, one input after the other, for finite results; NaN where those do not do.

    The error is computed in balls and its ends are rounded outwards.
    """
    fmt, (down, up, far) = ctx.format, (np.full(x.shape, np.nan) for _ in range(3))
    top, saved = float(fmt.largest), flint.ctx.prec
    flint.ctx.prec = BALL_BITS
    try:
        for i, (at, result) in enumerate(zip(x.tolist(), y.tolist())):
            if not (np.isfinite(at) and np.isfinite(result)) or at == 0:
                continue
            value = function.ball(arb(at))
            if not value.is_finite() or value.rel_accuracy_bits() < 150 or not abs(value) < top:
                continue
            exponents = {max(_exponent(end), fmt.emin) for end in (value.abs_lower(), value.abs_upper())}
            distance = abs(arb(result) - value)
            if len(exponents) == 1:
                errors = distance * arb(2) ** (fmt.fraction_bits - exponents.pop())
                far[i], up[i] = (np.nextafter(float(v.upper()), np.inf) for v in (distance, errors))
                down[i] = max(0.0, np.nextafter(float(errors.abs_lower()), -np.inf))
    finally:
        flint.ctx.prec = saved
    return down, up, far


def _exponent(v: arb) -> int:
    """⌊log₂ v⌋ of a positive dyadic."""
    mantissa, exponent = v.man_exp()
    return int(mantissa).bit_length() + int(exponent) - 1


def exact_bounds(function: Function, ctx: Context, fmt: Format, x: Array, y: Array) -> list[Error]:
    """The errors by balls, one input after the other."""
    return [error_at(function, ctx, *pair) for pair in zip(to_floats(fmt, x), to_floats(ctx.format, y))]


def above(q: Fraction) -> float:
    if q > Fraction(2) ** 1000:
        return np.inf
    v = float(q)
    return v if Fraction(v) >= q else float(np.nextafter(v, np.inf))


def below(q: Fraction) -> float:
    v = float(q)
    return v if Fraction(v) <= q else float(np.nextafter(v, -np.inf))
