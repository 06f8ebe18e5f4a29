"""Allowed results of an implementation for whole arrays: what `Implementation.allowed` gives on every element."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Format, Mode, Overflow, Subnormals, context, float64, round_real
from fpsmt.floats.vector import decode, embeds, encode, from_ordinals, ordinals, round_array
from fpsmt.functions.arrays import Bounds64, as_float, correctly_rounded_array, float64_bounds, plain, roomy
from fpsmt.functions.function import Function
from fpsmt.functions.implementations import (
    Clamped,
    Contract,
    CorrectlyRounded,
    Implementation,
    Piecewise,
    Table,
    WithinError,
    WithinFloats,
    WithinUlps,
)

Array = NDArray[Any]


def allowed_arrays(
    implementation: Implementation, ctx: Context, x: ArrayLike, fmt: Format | None = None
) -> tuple[Array, Array]:
    """(low, high): the least and the largest allowed result at each element; NaN in both where only NaN is allowed.

    x: carriers of `fmt` (ctx.format when None); the results are carriers of ctx.format of the same shape.
    """
    fmt = fmt or ctx.format
    given = np.asarray(x)
    flat = given.reshape(-1)
    low, high = _allowed(implementation.contract, implementation.function, ctx, flat, fmt)
    return low.reshape(given.shape), high.reshape(given.shape)


def allowed_tables(implementation: Implementation, ctx: Context, fmt: Format | None = None) -> tuple[Array, Array]:
    """(low, high) indexed by the codes of `fmt` (ctx.format when None), a format of at most 16 bits.

    >>> from fpsmt.floats import context
    >>> from fpsmt.functions import implementation_named
    >>> low, high = allowed_tables(implementation_named("tanh:floats=1"), context("float8_e4m3"))
    >>> low[0x38], high[0x38]
    (np.float64(0.6875), np.float64(0.8125))
    """
    fmt = fmt or ctx.format
    if fmt.bits > 16:
        raise UsageError(f"{fmt} has 2^{fmt.bits} codes, too many for a table (at most 2^16): use allowed_arrays")
    return allowed_arrays(implementation, ctx, decode(fmt, np.arange(1 << fmt.bits, dtype=np.uint64)), fmt)


def tabulated(implementation: Implementation, ctx: Context) -> Implementation:
    """The implementation's result at every code, as a table; its least one where it leaves a choice.

    For formats of at most 16 bits.

    >>> from fpsmt.floats import context, exactly, float8_e4m3
    >>> from fpsmt.functions import implementation_named
    >>> table = tabulated(implementation_named("tanh"), context("float8_e4m3"))
    >>> print(table.text, table.allowed(context("float8_e4m3"), exactly(float8_e4m3, 1))[0])
    tanh:table(float8_e4m3→float8_e4m3) 0.75
    """
    return as_table(implementation.function, ctx.format, allowed_tables(implementation, ctx)[0])


def as_table(function: Function, fmt: Format, results: Array) -> Implementation:
    """The function with these results at the codes of the format."""
    return Implementation(function, Table(fmt, fmt, tuple(encode(fmt, results).astype(int).tolist())))


def only_table(implementation: Implementation, ctx: Context, fmt: Format | None = None) -> Array:
    """The results by code of an implementation that has one result at every input: correctly rounded, a table, a
    program of correctly rounded functions; a usage error with the first input where several are allowed.

    `fmt` (ctx.format when None) has at most 16 bits.

    >>> from fpsmt.floats import context
    >>> from fpsmt.functions import implementation_named
    >>> only_table(implementation_named("tanh"), context("float8_e4m3"))[0x38]
    np.float64(0.75)
    """
    fmt = fmt or ctx.format
    low, high = allowed_tables(implementation, ctx, fmt)
    codes = [encode(ctx.format, y) for y in (low, high)]
    if (codes[0] != codes[1]).any():
        code = int(np.argmax(codes[0] != codes[1]))
        ends = implementation.allowed(ctx, Float(fmt, code))
        raise UsageError(f"{implementation.text} allows {ends[0]} … {ends[1]} at {Float(fmt, code)}: it is no table")
    return low


def _allowed(contract: Contract, function: Function, ctx: Context, x: Array, fmt: Format) -> tuple[Array, Array]:
    fast = embeds(fmt) and embeds(ctx.format) and roomy(ctx.format) and roomy(fmt)
    match contract:
        case CorrectlyRounded():
            y = correctly_rounded_array(function, ctx, x, fmt)
            return y, y.copy()
        case WithinUlps() | WithinError() if fast:
            return _distance(contract, function, ctx, x, fmt)
        case WithinFloats() if fast:
            return _floats(contract, function, ctx, x, fmt)
        case Clamped():
            low, high = _allowed(contract.inner, function, ctx, x, fmt)
            return _clamped(contract, ctx, low), _clamped(contract, ctx, high)
        case Table() if fast and fmt == contract.input and ctx.format == contract.output:
            y = decode(ctx.format, np.array(contract.outputs, dtype=np.uint64))[encode(fmt, x)]
            return y, y.copy()
        case Piecewise() if fast:
            return _piecewise(contract, function, ctx, x, fmt)
    found = contract.arrays(function, ctx, x, fmt)
    return found if found is not None else _by_scalars(contract, function, ctx, x, fmt)


def _by_scalars(contract: Contract, function: Function, ctx: Context, x: Array, fmt: Format) -> tuple[Array, Array]:
    kind: Any = np.float64 if embeds(ctx.format) else object
    low, high = np.empty(x.shape, dtype=kind), np.empty(x.shape, dtype=kind)
    for i in range(x.size):
        ends = contract.allowed(function, ctx, as_float(fmt, x[i]))
        low[i], high[i] = (float(y) if kind is np.float64 else y for y in ends)
    return low, high


def _settle(
    contract: Contract, function: Function, ctx: Context, x: Array, fmt: Format, low: Array, high: Array, left: Array
) -> None:
    """The scalar path for what is left, once for each different input."""
    places = np.flatnonzero(left)
    if places.size:
        codes, inverse = np.unique(encode(fmt, x[places]), return_inverse=True)
        ends = [contract.allowed(function, ctx, Float(fmt, int(code))) for code in codes]
        low[places] = np.array([float(a) for a, _ in ends])[inverse.reshape(-1)]
        high[places] = np.array([float(b) for _, b in ends])[inverse.reshape(-1)]


def _clamped(contract: Clamped, ctx: Context, y: Array) -> Array:
    if y.dtype == object:
        return np.array([contract._clamp(ctx, each) for each in y], dtype=object)
    y = y.copy()
    plain_rules = replace(ctx, subnormals=Subnormals.GRADUAL)
    # the value that a bound is clamped to is the first one on its inner side, so comparing with it is the same
    if contract.low is not None:
        least = float(round_real(plain_rules.with_mode(Mode.RTP), contract.low))
        y[y < least] = least
    if contract.high is not None:
        most = float(round_real(plain_rules.with_mode(Mode.RTN), contract.high))
        y[y > most] = most
    return y


def _piecewise(contract: Piecewise, function: Function, ctx: Context, x: Array, fmt: Format) -> tuple[Array, Array]:
    low, high = np.full(x.shape, np.nan), np.full(x.shape, np.nan)
    left = np.ones(x.shape, dtype=bool)
    for piece in contract.pieces:
        on = left & ~np.isnan(x)
        if piece.low is not None:
            on &= x >= float(round_real(context(float64, Mode.RTP), piece.low))
        if piece.high is not None:
            on &= x <= float(round_real(context(float64, Mode.RTN), piece.high))
        if piece.low is not None and piece.high is not None:
            on &= np.isfinite(x)
        if on.any():
            low[on], high[on] = _allowed(piece.contract, function, ctx, x[on], fmt)
        left &= ~on
    _settle(contract, function, ctx, x, fmt, low, high, left)
    return low, high


def _floats(contract: WithinFloats, function: Function, ctx: Context, x: Array, fmt: Format) -> tuple[Array, Array]:
    y = correctly_rounded_array(function, ctx, x, fmt)
    low, high = y.copy(), y.copy()
    if contract.count == 0:
        return low, high
    top = ctx.format.largest_code + (ctx.overflow is Overflow.INFINITY)
    x = _read(ctx, x, fmt)
    ordinary = np.isfinite(x) & ~np.isnan(y)
    if ctx.overflow is not Overflow.INFINITY:
        ordinary &= np.isfinite(y)
    if function.lowest is not None and function.pole:
        ordinary &= x != float(function.lowest)
    places = ordinals(ctx.format, y[ordinary])
    reach = min(contract.count, 2 * top)
    low[ordinary] = from_ordinals(ctx.format, np.maximum(places - reach, -top))
    high[ordinary] = from_ordinals(ctx.format, np.minimum(places + reach, top))
    low[ordinary & (low == 0)] = -0.0 if ctx.format.has_signed_zero else 0.0
    _settle(contract, function, ctx, x, fmt, low, high, ~ordinary & ~np.isnan(y))
    return low, high


def _distance(
    contract: WithinUlps | WithinError, function: Function, ctx: Context, x: Array, fmt: Format
) -> tuple[Array, Array]:
    nearest = correctly_rounded_array(function, ctx, x, fmt)
    bounds = float64_bounds(function, _read(ctx, x, fmt), ctx.format)
    left = np.isnan(bounds.low)
    below, above = np.where(left, 1.0, bounds.low), np.where(left, 1.0, bounds.high)
    fmt_out = ctx.format
    ulps = isinstance(contract, WithinUlps)
    unit = contract.ulps if isinstance(contract, WithinUlps) else contract.error
    # from here out the result is an overflow, unless the distance reaches back from there
    far = fmt_out.emax + fmt_out.fraction_bits + 8
    reaches_back = unit >= (2**fmt_out.fraction_bits - 1 if ulps else fmt_out.largest)
    if far > 900 or reaches_back or unit > 2**60 or (unit and unit < Fraction(1, 2**300)):
        return _by_scalars(contract, function, ctx, x, fmt)
    below, above = (np.clip(y, -(2.0**far), 2.0**far) for y in (below, above))
    if ulps:
        exponents = [_exponent(fmt_out, y) for y in bounds_inside(bounds, below, above)]
        left |= exponents[0] != exponents[1]
        scale = np.ldexp(1.0, exponents[0] - fmt_out.fraction_bits)
    else:
        scale = np.ones(x.shape)
    near = float(unit)
    least = near if Fraction(near) <= unit else np.nextafter(near, 0.0)
    most = near if Fraction(near) >= unit else np.nextafter(near, np.inf)
    ends = []
    for side in (-1, 1):
        inner, outer = (least, most) if side > 0 else (most, least)
        a = _farthest(ctx, _sum_down(below, side * scale * inner, bounds.low_open), side)
        b = _farthest(ctx, -_sum_down(-above, -side * scale * outer, bounds.high_open), side)
        left |= (a != b) | (np.signbit(a) != np.signbit(b))
        ends.append(a)
    zero = (ends[0] == 0) & (nearest == 0)
    low = np.where(ends[0] < nearest, ends[0], nearest)
    low = np.where(zero, np.where(np.signbit(ends[0]) | np.signbit(nearest), -0.0, 0.0), low)
    zero = (ends[1] == 0) & (nearest == 0)
    high = np.where(ends[1] > nearest, ends[1], nearest)
    high = np.where(zero, np.where(np.signbit(ends[1]) & np.signbit(nearest), -0.0, 0.0), high)
    low[np.isnan(nearest)] = high[np.isnan(nearest)] = np.nan
    _settle(contract, function, ctx, x, fmt, low, high, left & ~np.isnan(nearest))
    return low, high


def _read(ctx: Context, x: Array, fmt: Format) -> Array:
    """The inputs as the context sees them."""
    if not ctx.subnormals.inputs:
        return x
    return np.where(np.abs(x) < float(fmt.smallest_normal), np.copysign(0.0, x), x)


def bounds_inside(bounds: Bounds64, below: Array, above: Array) -> tuple[Array, Array]:
    """Both ends, strict ones moved one float64 inwards, for judging the binade."""
    return Bounds64(below, above, bounds.low_open, bounds.high_open).inside()


def _exponent(fmt: Format, y: Array) -> Array:
    """max(⌊log₂|y|⌋, emin), emin at 0."""
    return np.where(y == 0, fmt.emin, np.maximum(np.frexp(np.abs(y))[1] - 1, fmt.emin))


def _sum_down(a: Array, b: Array, strict: Array) -> Array:
    """For any y ≥ a (y > a where strict): a float64 that y + b is not below, as near as can be told.

    TwoSum gives the exact error of a + b; nothing overflows here.  An exact sum of a strict end is moved one
    float64 up, past which no value of a roomy format can have been skipped.
    """
    s = a + b
    t = s - a
    rest = (a - (s - t)) + (b - t)
    return np.where(rest < 0, np.nextafter(s, -np.inf), np.where((rest == 0) & strict, np.nextafter(s, np.inf), s))


def _farthest(ctx: Context, limit: Array, side: int) -> Array:
    """`implementations.farthest` on float64 limits."""
    fmt = ctx.format
    rule = Overflow.INFINITY if ctx.overflow is Overflow.INFINITY else Overflow.SATURATE
    inner = Context(fmt, Mode.RTN if side > 0 else Mode.RTP, rule, Subnormals.GRADUAL)
    y = round_array(inner, limit)
    beyond = side * limit > float(fmt.largest)
    if beyond.any():
        outer = round_array(plain(ctx), limit[beyond])
        y[beyond] = np.where(np.isnan(outer), side * float(fmt.largest), outer)
    zero = y == 0
    y[zero] = side * 0.0 if fmt.has_signed_zero else 0.0
    if ctx.subnormals.outputs:
        tiny = ~zero & (np.abs(y) < float(fmt.smallest_normal))
        y[tiny] = np.copysign(0.0, y[tiny]) if fmt.has_signed_zero else 0.0
    return y
