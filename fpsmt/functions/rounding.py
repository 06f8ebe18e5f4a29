"""Correctly rounded values of the functions, one at a time."""

from __future__ import annotations

from fpsmt.floats import Context, Float, round_real
from fpsmt.functions.function import Function
from fpsmt.functions.refine import (
    decide,
    limit_sign,
    read_input,
    refinements,
    round_bounds,
    special_value,
    zero_negative,
)


def correctly_rounded(function: Function, ctx: Context, x: Float) -> Float:
    """f(x) rounded once into the context; x may have any format.

    *Decision*: exact cases by algebra; else balls of doubling precision, sharpened by the strict inequalities and
    tails of the function's record, until both ends round to the same value.

    *Special inputs*: NaN gives NaN; ±inf gives the limit, NaN when there is none; outside the domain NaN; a pole
    gives its infinity (by the context's rule where the format has none).  A zero limit at ±inf has the sign of the
    side it is approached from: gelu(−inf) = −0.  Zeros: see `Function`.  Subnormal inputs and results, and overflow,
    follow the context; a subnormal is judged by the format of x.

    Raises `UsageError` when the result is NaN and the format has none.

    >>> from fpsmt.floats import Mode, context, exactly, float64
    >>> from fpsmt.functions import exp, tanh
    >>> ctx = context("float64")
    >>> correctly_rounded(exp, ctx, exactly(float64, 1.0)).hex
    '0x1.5bf0a8b145769p+1'
    >>> correctly_rounded(tanh, ctx.with_mode(Mode.RTZ), exactly(float64, 2.0**-1074)).decimal
    '0.0'
    >>> correctly_rounded(exp, ctx, exactly(float64, 1e308)).decimal
    'inf'
    """
    x = read_input(ctx, x)
    special = special_value(function, ctx, x)
    if isinstance(special, Float):
        return special
    if special is not None:
        return round_real(ctx, special, limit_sign(function, x))
    negative = zero_negative(function, x)
    return decide(refinements(function, x.fraction, ctx.format), lambda b: round_bounds(ctx, b, negative))
