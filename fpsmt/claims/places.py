"""Allowed results as intervals of places on the line of floats: results as numbers.

A result as a number is a *place*: the ordinal of a float (both zeros are 0, ±inf come after ±Ω), or `NAN`, which is
beyond every ordinal.  An implementation is taken as a function of numbers: it gives the same number at both zeros, and
the zeros that it returns are one.  So what it may return at x is an interval of places, {NAN} where only NaN is
allowed; intervals intersect by their ends, and pairwise intersecting intervals have a common place (Helly).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Format, from_ordinal, nan, zero
from fpsmt.floats.vector import decode, embeds, ordinals
from fpsmt.functions import Implementation, allowed_arrays

NAN = 1 << 62
MAX_BITS = 16  #: of a format whose values are listed
Places = NDArray[np.int64]
Interval = tuple[int, int]


def listed(fmt: Format) -> bool:
    """The values of the format are listed, as float64 numbers."""
    return fmt.bits <= MAX_BITS and embeds(fmt)


def place_of(y: Float) -> int:
    """The place of a result."""
    return NAN if y.is_nan else y.ordinal


def value_at(fmt: Format, place: int) -> Float:
    """The result at a place, +0 for zero."""
    return nan(fmt) if place == NAN else from_ordinal(fmt, place)


def allowed_places(implementation: Implementation, ctx: Context, x: Float) -> Interval:
    """The least and the largest allowed place at the number x, by reference; low > high where none is allowed.

    >>> from fpsmt.floats import context, exactly, float16
    >>> from fpsmt.functions import implementation_named
    >>> low, high = allowed_places(implementation_named("sin:floats=2"), context("float16"), exactly(float16, 0))
    >>> low, high
    (-2, 2)
    """
    points = [zero(x.format), zero(x.format, True)] if x.is_zero else [x]
    ends = [[place_of(y) for y in implementation.allowed(ctx, point)] for point in points]
    return max(low for low, _ in ends), min(high for _, high in ends)


def allowed_place_arrays(implementation: Implementation, ctx: Context, x: ArrayLike) -> tuple[Places, Places]:
    """`allowed_places` for an array of carriers of ctx.format."""
    x = np.asarray(x, np.float64)
    low, high = _ends(implementation, ctx, x)
    at_zero = x == 0
    if at_zero.any():
        first, last = _ends(implementation, ctx, np.array([0.0, -0.0]))
        low[at_zero], high[at_zero] = first.max(), last.min()
    return low, high


def _ends(implementation: Implementation, ctx: Context, x: NDArray[Any]) -> tuple[Places, Places]:
    low, high = allowed_arrays(implementation, ctx, x)
    return _places(ctx.format, low), _places(ctx.format, high)


def _places(fmt: Format, y: NDArray[Any]) -> Places:
    nowhere = np.isnan(y)
    found: Places = ordinals(fmt, np.where(nowhere, 0.0, y)).astype(np.int64)
    found[nowhere] = NAN
    return found


@lru_cache(maxsize=64)
def allowed_by_index(implementation: Implementation, ctx: Context) -> tuple[Places, Places]:
    """`allowed_places` at every number of a format of at most 16 bits: at its place + `offset(fmt)`, and at NaN, last.

    Raises `UsageError` when nothing is allowed somewhere: a table with two numbers for the two zeros.
    """
    fmt = ctx.format
    shift = offset(fmt)
    low, high = np.full(2 * shift + 2, NAN, np.int64), np.full(2 * shift + 2, NAN, np.int64)
    codes = np.arange(1 << fmt.bits, dtype=np.uint64)
    x = decode(fmt, codes)
    numbers = ~np.isnan(x) & ~((x == 0) & np.signbit(x))
    index = ordinals(fmt, x[numbers]) + shift
    low[index], high[index] = allowed_place_arrays(implementation, ctx, x[numbers])
    if fmt.has_nan:  # a table or a program may give a number there
        low[-1], high[-1] = allowed_places(implementation, ctx, nan(fmt))
    if (low > high).any():
        where = value_at(fmt, int(np.argmax(low > high)) - shift)
        raise UsageError(f"{implementation.text} gives no number at {where}")
    low.setflags(write=False)
    high.setflags(write=False)
    return low, high


def offset(fmt: Format) -> int:
    """What turns places into indices ≥ 0."""
    return fmt.largest_code + fmt.has_infinity
