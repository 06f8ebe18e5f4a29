"""Rounding by its definition, on sorted lists of values: slow, and independent of the package's rounding."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from fpsmt.floats import Float, Format, Mode, Overflow, pow2
from fpsmt.floats.rounding import Context


@dataclass(frozen=True)
class Grid:
    """The non-negative numbers of a format, continued above Ω as if the exponent went on."""

    numbers: tuple[Fraction, ...]
    format: Format


@lru_cache
def grid(fmt: Format, subnormals: bool = True) -> Grid:
    fb = fmt.fraction_bits
    numbers = {Fraction(0)}
    if subnormals:
        numbers |= {k * fmt.smallest for k in range(1, 1 << fb)}
        low = fmt.emin
    else:  # as if the exponent went on below as well
        low = fmt.emin - 2 * fmt.precision - 8
    for exponent in range(low, fmt.emax + 3):
        numbers |= {k * pow2(exponent - fb) for k in range(1 << fb, 2 << fb)}
    return Grid(tuple(sorted(numbers)), fmt)


def _pick(mode: Mode, negative: bool, x: Fraction, numbers: tuple[Fraction, ...]) -> Fraction:
    """|x| rounded to one of the numbers, for the sign given."""
    i = bisect_left(numbers, x)
    if i < len(numbers) and numbers[i] == x:
        return x
    below, above = numbers[i - 1], numbers[i]
    if mode is Mode.RTZ:
        return below
    if mode in (Mode.RTP, Mode.RTN):
        return above if (mode is Mode.RTP) != negative else below
    if x - below != above - x:
        return below if x - below < above - x else above
    if mode is Mode.RNA:
        return above
    return _even(below, above)


def _even(below: Fraction, above: Fraction) -> Fraction:
    """The neighbour whose significand is even: the one divisible by the higher power of two."""

    def trailing(x: Fraction) -> Fraction:
        return pow2(10**4) if x == 0 else Fraction(x.numerator & -x.numerator, x.denominator)

    return below if trailing(below) > trailing(above) else above


def rounded(ctx: Context, x: Fraction) -> tuple[str, bool, Fraction | None]:
    """(kind, negative, size) of nonzero x rounded into ctx; kind is finite, inf or nan.  |x| < 4Ω."""
    fmt, negative = ctx.format, x < 0
    if ctx.subnormals.outputs and abs(x) < fmt.smallest_normal:
        numbers = grid(fmt, subnormals=False).numbers
        if abs(x) < numbers[1] or _pick(ctx.mode, negative, abs(x), numbers) < fmt.smallest_normal:
            return "finite", negative, Fraction(0)
    size = _pick(ctx.mode, negative, abs(x), grid(fmt).numbers)
    if size <= fmt.largest:
        return "finite", negative, size
    if ctx.overflow is Overflow.NAN:
        return "nan", False, None
    if ctx.overflow is Overflow.SATURATE:
        return "finite", negative, fmt.largest
    inward = ctx.mode is Mode.RTZ or (ctx.mode is Mode.RTN and not negative) or (ctx.mode is Mode.RTP and negative)
    return ("finite", negative, fmt.largest) if inward else ("inf", negative, None)


def matches(result: Float, kind: str, negative: bool, size: Fraction | None) -> bool:
    """The result is what `rounded` says, signs of zero included."""
    if kind == "nan":
        return result.is_nan
    if kind == "inf":
        return result.is_infinite and result.negative == negative
    if not result.is_finite or abs(result.fraction) != size:
        return False
    return result.negative == (negative and (size != 0 or result.format.has_signed_zero))
