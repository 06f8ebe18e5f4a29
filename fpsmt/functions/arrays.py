"""Correctly rounded values of whole arrays and tables.

Each value gets certified float64 bounds low ≤ f(x) ≤ high (`float64_bounds`); where both round to one value that is
the answer (rounding is monotone), elsewhere the scalar path decides.  Bounds come from
compiled kernels (`kernels`), tails, balls.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray

from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Format, Subnormals
from fpsmt.floats.vector import decode, embeds, encode, round_array
from fpsmt.functions import kernels
from fpsmt.functions.function import Function, StrictBound
from fpsmt.functions.refine import residual, tail_start
from fpsmt.functions.rounding import correctly_rounded

Array = NDArray[Any]
BALL_BITS = 80  #: working precision of the balls behind float64 bounds
LARGEST = float(np.finfo(np.float64).max)


def correctly_rounded_array(function: Function, ctx: Context, x: ArrayLike, fmt: Format | None = None) -> Array:
    """f rounded once into the context, elementwise: what `correctly_rounded` gives on every element.

    x: carriers of `fmt` (ctx.format when None), any shape; the result has the same shape, carriers of ctx.format.
    Special values as in `correctly_rounded`.  Raises `UsageError` when a result is NaN and the format has none.

    >>> from fpsmt.floats import context
    >>> from fpsmt.functions import tanh
    >>> correctly_rounded_array(tanh, context("float16"), [-0.0, 0.5, 9.0, float("nan")]).tolist()
    [-0.0, 0.462158203125, 1.0, nan]
    """
    fmt = fmt or ctx.format
    given = np.asarray(x) if not embeds(fmt) else np.asarray(x, dtype=np.float64)
    if not (embeds(fmt) and embeds(ctx.format) and roomy(ctx.format) and roomy(fmt)):
        return _by_scalars(function, ctx, given, fmt)
    flat = np.ascontiguousarray(given).reshape(-1)
    if ctx.subnormals.inputs:
        tiny = (np.abs(flat) < float(fmt.smallest_normal)) & (flat != 0)
        flat = np.where(tiny, np.copysign(0.0, flat), flat)
    direct = kernels.rounded(function, plain(ctx), flat, fmt)
    if direct is None:
        out = _by_bounds(function, ctx, flat, fmt)
    else:
        out, undecided = direct
        if undecided.any():
            out[undecided] = _by_bounds(function, ctx, flat[undecided], fmt)
    if not ctx.format.has_nan and np.isnan(out).any():
        raise UsageError(f"a result of {function.name} is NaN, and {ctx.format} has none")
    return out.reshape(given.shape)


def _by_bounds(function: Function, ctx: Context, x: Array, fmt: Format) -> Array:
    """By certified float64 bounds, and by the scalar path where they do not decide."""
    out, undecided = round_between(plain(ctx), *float64_bounds(function, x, ctx.format).inside())
    nowhere = np.isnan(x)
    if function.lowest is not None:
        nowhere |= x < float(function.lowest)
    undecided &= ~nowhere
    undecided |= (out == 0) & (x == 0)  # the sign of an exact zero follows the input
    out[(out == 0) & ~undecided & exact_zero(function, x)] = 0.0
    _settle(function, ctx, x, fmt, out, undecided)
    return out


def round_between(ctx: Context, low: Array, high: Array) -> tuple[Array, Array]:
    """(values, undecided): what both bounds round to, and where they differ, in value or sign, or are missing."""
    out, other = np.full(low.shape, np.nan), np.full(low.shape, np.nan)
    known = ~np.isnan(low)
    out[known], other[known] = round_array(ctx, low[known]), round_array(ctx, high[known])
    same = (out == other) & (np.signbit(out) == np.signbit(other)) | (np.isnan(out) & np.isnan(other))
    return out, ~(known & same)


def exact_zero(function: Function, x: Array) -> Array:
    """Where f is exactly 0 on a line, away from 0: such results are +0."""
    zero = np.zeros(x.shape, dtype=bool)
    for line in function.lines:
        if line.slope == 0 and line.offset == 0:
            low = -np.inf if line.low is None else float(line.low)
            high = np.inf if line.high is None else float(line.high)
            zero |= (low <= x) & (x <= high)
    return zero & (x != 0)


def plain(ctx: Context) -> Context:
    """The context for rounding bounds: they are no inputs, so nothing of them is flushed."""
    rule = Subnormals.FLUSH_OUTPUTS if ctx.subnormals.outputs else Subnormals.GRADUAL
    return replace(ctx, subnormals=rule)


def roomy(fmt: Format) -> bool:
    """So much coarser than float64 that float64 bounds decide nearly everything, and its limits never matter."""
    return fmt.precision <= 40 and fmt.emin - fmt.precision > -1000 and fmt.emax < 1000


def _by_scalars(function: Function, ctx: Context, x: Array, fmt: Format) -> Array:
    out = np.empty(x.shape, dtype=np.float64 if embeds(ctx.format) else object)
    for index in np.ndindex(x.shape):
        y = correctly_rounded(function, ctx, as_float(fmt, x[index]))
        out[index] = float(y) if embeds(ctx.format) else y
    return out


def as_float(fmt: Format, x: Any) -> Float:
    """One element of an array of carriers."""
    return x if isinstance(x, Float) else Float(fmt, int(encode(fmt, np.array([x]))[0]))


def _settle(function: Function, ctx: Context, x: Array, fmt: Format, out: Array, undecided: Array) -> None:
    """The scalar path for what the bounds left open, once for each different input."""
    places = np.flatnonzero(undecided)
    if not places.size:
        return
    codes, inverse = np.unique(encode(fmt, x[places]), return_inverse=True)
    known = np.array([float(correctly_rounded(function, ctx, Float(fmt, int(code)))) for code in codes])
    out[places] = known[inverse.reshape(-1)]


# -- certified float64 bounds -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bounds64:
    """low ≤ f(x) ≤ high in float64, elementwise; strict where `low_open`, `high_open`; NaN: no bounds.

    Sizes beyond float64 are replaced by its largest number, which no rounding into a `roomy` format can notice.
    """

    low: Array
    high: Array
    low_open: Array
    high_open: Array

    def inside(self) -> tuple[Array, Array]:
        """Bounds with strict ends moved one float64 inwards.

        A strict end has at most 40 bits (it is a line's value), so its neighbour in float64 has more than the
        breakpoints of any roomy format, none of which lies between the two: the moved end rounds as all that does.
        """
        with np.errstate(over="ignore"):  # a strict end at the largest float64: its neighbour is not taken
            return self._inside()

    def _inside(self) -> tuple[Array, Array]:
        low = np.where(self.low_open, np.nextafter(self.low, np.inf), self.low)
        high = np.where(self.high_open, np.nextafter(self.high, -np.inf), self.high)
        return np.minimum(low, np.maximum(high, self.low)), np.maximum(high, np.minimum(low, self.high))


def float64_bounds(function: Function, x: Array, fmt: Format) -> Bounds64:
    """Bounds of f on a flat float64 array of values of a roomy format, for decisions about a roomy `fmt`.

    NaN, infinities, poles and points outside the domain have no bounds.
    """
    low, high = np.full(x.shape, np.nan), np.full(x.shape, np.nan)
    low_open, high_open = np.zeros(x.shape, dtype=bool), np.zeros(x.shape, dtype=bool)
    left = np.isfinite(x)
    if function.lowest is not None:
        lowest = float(function.lowest)
        left &= (x > lowest) if function.pole else (x >= lowest)
    for line in function.lines:
        on = left.copy()
        if line.low is not None:
            on &= x >= float(line.low)
        if line.high is not None:
            on &= x <= float(line.high)
        low[on], high[on] = _on_line(line.slope, line.offset, x[on])
        left &= ~on
    start = tail_start(fmt)
    for side, tail in ((-1, function.left_tail), (1, function.right_tail)):
        if tail is not None and _one_term(tail.slope, tail.offset):
            far = left & (side * x > start)
            c = float(tail.slope) * x[far] + float(tail.offset)
            rest = max(float(residual(function, tail, side * start)), 2.0**-1000)
            beyond = np.nextafter(c + tail.side * rest, tail.side * np.inf)
            low[far], high[far] = np.minimum(c, beyond), np.maximum(c, beyond)
            (low_open if tail.side > 0 else high_open)[far] = True
            left &= ~far
    for side, growth in ((-1, function.grows[0]), (1, function.grows[1])):
        if growth:
            far = left & (side * x > start)
            low[far] = high[far] = growth * LARGEST
            left &= ~far
    points = x[left]
    if points.size:
        part = _by_balls(function, points)
        for bound in function.bounds:
            _sharpen(bound, points, part)
        low[left], high[left], low_open[left], high_open[left] = part.low, part.high, part.low_open, part.high_open
    return Bounds64(low, high, low_open, high_open)


def _one_term(slope: Fraction, offset: Fraction) -> bool:
    """slope·x + offset is exact in float64 for x of at most 40 bits, and has at most 40 bits."""
    return (slope == 0 or offset == 0) and all(
        q == 0 or (q.numerator & (q.numerator - 1) == 0 and q.denominator & (q.denominator - 1) == 0)
        for q in (abs(slope), abs(offset))
    )


def _on_line(slope: Fraction, offset: Fraction, x: Array) -> tuple[Array, Array]:
    if _one_term(slope, offset) or (slope == 0 and Fraction(float(offset)) == offset):
        y = float(slope) * x + float(offset)
        return y, y
    # one rounding in each constant and in each operation: within 4 half-steps of the larger term
    y = float(slope) * x + float(offset)
    slack = 4 * np.spacing(np.abs(float(slope) * x) + abs(float(offset)))
    return y - slack, y + slack


def _sharpen(bound: StrictBound, x: Array, part: Bounds64) -> None:
    """Takes a strict inequality into the bounds, where it is the better one."""
    if not _one_term(bound.slope, bound.offset):
        return
    on = np.ones(x.shape, dtype=bool)
    if bound.low is not None:
        on &= x > float(bound.low)
    if bound.high is not None:
        on &= x < float(bound.high)
    c = float(bound.slope) * x + float(bound.offset)
    if bound.side > 0:
        on &= c >= part.low
        part.low[on], part.low_open[on] = c[on], True
    else:
        on &= c <= part.high
        part.high[on], part.high_open[on] = c[on], True


def _by_balls(function: Function, x: Array) -> Bounds64:
    """Bounds from balls: a float64 within two steps of a midpoint whose radius is below 2^−60 of it.

    Conversion of the midpoint is off by less than one step whatever its rounding, the radius adds less than 2^−7
    of a step; two steps cover both.
    """
    ball, saved = function.ball, flint.ctx.prec
    flint.ctx.prec = BALL_BITS
    try:
        balls = [ball(arb(v)) for v in x.tolist()]
        middle = np.array([float(y) for y in balls])
        good = np.array([y.rel_accuracy_bits() for y in balls]) >= 62
    finally:
        flint.ctx.prec = saved
    good &= ~np.isnan(middle)
    low = np.nextafter(np.nextafter(middle, -np.inf), -np.inf)
    high = np.nextafter(np.nextafter(middle, np.inf), np.inf)
    low = np.where(good, np.clip(low, -LARGEST, LARGEST), -LARGEST)
    high = np.where(good, np.clip(high, -LARGEST, LARGEST), LARGEST)
    return Bounds64(low, high, np.zeros(x.shape, dtype=bool), np.zeros(x.shape, dtype=bool))


# -- tables -----------------------------------------------------------------------------------------------------

_TABLES: OrderedDict[tuple[Function, Context, Format], Array] = OrderedDict()
MOST_TABLES = 256


def table(function: Function, ctx: Context, fmt: Format | None = None) -> Array:
    """f rounded into the context at every code of `fmt` (ctx.format when None), indexed by code; read-only, kept.

    For formats of at most 16 bits; NaN codes give NaN.

    >>> from fpsmt.floats import context
    >>> from fpsmt.functions import relu
    >>> table(relu, context("float4_e2m1fn")).tolist()[:4]
    [0.0, 0.5, 1.0, 1.5]
    """
    fmt = fmt or ctx.format
    key = (function, ctx, fmt)
    if key in _TABLES:
        _TABLES.move_to_end(key)
        return _TABLES[key]
    if fmt.bits > 16:
        raise UsageError(
            f"{fmt} has 2^{fmt.bits} codes, too many for a table (at most 2^16): use correctly_rounded_array"
        )
    result = correctly_rounded_array(function, ctx, decode(fmt, np.arange(1 << fmt.bits, dtype=np.uint64)), fmt)
    result.setflags(write=False)
    _TABLES[key] = result
    if len(_TABLES) > MOST_TABLES:
        _TABLES.popitem(last=False)
    return result

