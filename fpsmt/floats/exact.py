"""Exact scalar arithmetic: the result as an exact number, then rounded once.  The reference for everything else.

Every operation takes values of any formats and rounds into a `Context`.  Shared rules:

* NaN operands give NaN; ∞ − ∞, 0 × ∞, 0 / 0, ∞ / ∞ and √ of a negative number give NaN.  In a format
  without NaN these are usage errors.
* An exact zero sum of opposite signs is +0, in RTN −0; a product or quotient has the product of the signs;
  a nonzero result that underflows keeps its sign; √−0 = −0.  Formats with a single zero lose the sign.
* Overflow and subnormal rules are the context's.

All integers, no floating point.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from fpsmt.errors import UsageError
from fpsmt.floats.formats import Format
from fpsmt.floats.rounding import Context, Mode, Overflow
from fpsmt.floats.values import Float, infinity, largest, nan, shown_number, zero


def round_ratio(ctx: Context, negative: bool, numerator: int, denominator: int) -> Float:
    """±numerator/denominator (positive integers) rounded once into ctx."""
    fmt = ctx.format
    fb = fmt.fraction_bits
    exponent = numerator.bit_length() - denominator.bit_length()
    if _less(numerator, denominator, exponent):
        exponent -= 1
    n, quantum = _to_quantum(ctx.mode, negative, numerator, denominator, max(exponent, fmt.emin) - fb)
    if exponent < fmt.emin and ctx.subnormals.outputs:
        unbounded, q = _to_quantum(ctx.mode, negative, numerator, denominator, exponent - fb)
        if unbounded.bit_length() + q <= fmt.emin:
            return zero(fmt, negative)
    if n == 0:
        return zero(fmt, negative)
    if n >> (fb + 1):  # rounding reached the next binade
        n, quantum = n >> 1, quantum + 1
    field = 0 if not n >> fb else quantum + fb + fmt.bias
    magnitude = (field << fb) + (n & ((1 << fb) - 1))
    if magnitude > fmt.largest_code:
        return _overflowed(ctx, negative)
    return Float(fmt, magnitude | (fmt.sign_mask if negative else 0))


def _less(numerator: int, denominator: int, exponent: int) -> bool:
    """numerator/denominator < 2^exponent."""
    if exponent >= 0:
        return numerator < denominator << exponent
    return numerator << -exponent < denominator


def _to_quantum(mode: Mode, negative: bool, numerator: int, denominator: int, q: int) -> tuple[int, int]:
    """(n, q): the multiple n·2^q that numerator/denominator rounds to."""
    if q >= 0:
        n, rest = divmod(numerator, denominator << q)
        denominator <<= q
    else:
        n, rest = divmod(numerator << -q, denominator)
    if rest:
        twice = 2 * rest
        if mode is Mode.RNE:
            up = twice > denominator or (twice == denominator and n & 1)
        elif mode is Mode.RNA:
            up = twice >= denominator
        else:
            up = mode is (Mode.RTN if negative else Mode.RTP)
        n += bool(up)
    return n, q


def _overflowed(ctx: Context, negative: bool) -> Float:
    fmt = ctx.format
    if ctx.overflow is Overflow.NAN:
        return nan(fmt)
    stops_short = ctx.mode is Mode.RTZ or ctx.mode is (Mode.RTP if negative else Mode.RTN)
    if ctx.overflow is Overflow.SATURATE or stops_short:
        return largest(fmt, negative)
    return infinity(fmt, negative)


def _infinite(ctx: Context, negative: bool) -> Float:
    """An exactly infinite result."""
    fmt = ctx.format
    if fmt.has_infinity:
        return infinity(fmt, negative)
    return nan(fmt) if ctx.overflow is Overflow.NAN else largest(fmt, negative)


def _nan(ctx: Context) -> Float:
    if not ctx.format.has_nan:
        raise UsageError(f"the result is NaN, and {ctx.format} has none")
    return nan(ctx.format)


def round_real(ctx: Context, x: Fraction | int, negative_zero: bool = False) -> Float:
    """A real number rounded once into ctx; zero takes the sign asked for."""
    x = Fraction(x)
    if x == 0:
        return zero(ctx.format, negative_zero)
    return round_ratio(ctx, x < 0, abs(x.numerator), x.denominator)


def _dyadic(ctx: Context, m: int, e: int, zero_negative: bool) -> Float:
    """m·2^e rounded once; an exact zero takes the sign given."""
    if m == 0:
        return zero(ctx.format, zero_negative)
    return round_ratio(ctx, m < 0, abs(m) << max(e, 0), 1 << max(-e, 0))


def _read(ctx: Context, x: Float) -> Float:
    """The operand as the context sees it: subnormals are zeros under an input-flushing rule."""
    if ctx.subnormals.inputs and x.is_subnormal:
        return zero(x.format, x.negative)
    return x


def cast(ctx: Context, x: Float) -> Float:
    """x in another format (or the same one), rounded once."""
    x = _read(ctx, x)
    if x.is_nan:
        return _nan(ctx)
    if x.is_infinite:
        return _infinite(ctx, x.negative)
    return _dyadic(ctx, *x.dyadic, x.negative)


def add(ctx: Context, a: Float, b: Float) -> Float:
    """a ⊕ b."""
    a, b = _read(ctx, a), _read(ctx, b)
    if a.is_nan or b.is_nan:
        return _nan(ctx)
    if a.is_infinite or b.is_infinite:
        if a.is_infinite and b.is_infinite and a.negative != b.negative:
            return _nan(ctx)
        return _infinite(ctx, (a if a.is_infinite else b).negative)
    return _sum(ctx, a.dyadic, a.negative, b.dyadic, b.negative)


def _sum(ctx: Context, x: tuple[int, int], x_negative: bool, y: tuple[int, int], y_negative: bool) -> Float:
    """x + y of dyadics (m, e), with the sign bits of zero operands."""
    (m1, e1), (m2, e2) = x, y
    e = min(e1, e2)
    m = (m1 << (e1 - e)) + (m2 << (e2 - e))
    both = x_negative if x_negative == y_negative else ctx.mode is Mode.RTN
    return _dyadic(ctx, m, e, both)


def sub(ctx: Context, a: Float, b: Float) -> Float:
    """a ⊖ b.  In a format with a single zero −b of zero is that zero."""
    return add(ctx, a, -b)


def mul(ctx: Context, a: Float, b: Float) -> Float:
    """a ⊗ b."""
    a, b = _read(ctx, a), _read(ctx, b)
    negative = a.negative != b.negative
    if a.is_nan or b.is_nan:
        return _nan(ctx)
    if a.is_infinite or b.is_infinite:
        return _nan(ctx) if a.is_zero or b.is_zero else _infinite(ctx, negative)
    (m1, e1), (m2, e2) = a.dyadic, b.dyadic
    return _dyadic(ctx, m1 * m2, e1 + e2, negative)


def fma(ctx: Context, a: Float, b: Float, c: Float) -> Float:
    """a·b + c rounded once."""
    a, b, c = _read(ctx, a), _read(ctx, b), _read(ctx, c)
    negative = a.negative != b.negative
    if a.is_nan or b.is_nan or c.is_nan:
        return _nan(ctx)
    if a.is_infinite or b.is_infinite:
        if a.is_zero or b.is_zero or (c.is_infinite and c.negative != negative):
            return _nan(ctx)
        return _infinite(ctx, negative)
    if c.is_infinite:
        return _infinite(ctx, c.negative)
    (m1, e1), (m2, e2) = a.dyadic, b.dyadic
    return _sum(ctx, (m1 * m2, e1 + e2), negative, c.dyadic, c.negative)


def add_products(ctx: Context, a: Float, b: Float, c: Float, d: Float) -> Float:
    """a·b + c·d rounded once: a node that adds two exact products."""
    a, b, c, d = (_read(ctx, x) for x in (a, b, c, d))
    if any(x.is_nan for x in (a, b, c, d)):
        return _nan(ctx)
    left, right = a.negative != b.negative, c.negative != d.negative
    infinite = []
    for x, y, negative in ((a, b, left), (c, d, right)):
        if x.is_infinite or y.is_infinite:
            if x.is_zero or y.is_zero:
                return _nan(ctx)
            infinite.append(negative)
    if infinite:
        return _nan(ctx) if len(set(infinite)) == 2 else _infinite(ctx, infinite[0])
    (m1, e1), (m2, e2), (m3, e3), (m4, e4) = a.dyadic, b.dyadic, c.dyadic, d.dyadic
    return _sum(ctx, (m1 * m2, e1 + e2), left, (m3 * m4, e3 + e4), right)


def div(ctx: Context, a: Float, b: Float) -> Float:
    """a ⊘ b; a nonzero number by zero is an exact infinity."""
    a, b = _read(ctx, a), _read(ctx, b)
    negative = a.negative != b.negative
    if a.is_nan or b.is_nan or (a.is_zero and b.is_zero) or (a.is_infinite and b.is_infinite):
        return _nan(ctx)
    if a.is_infinite or b.is_zero:
        return _infinite(ctx, negative)
    if b.is_infinite or a.is_zero:
        return zero(ctx.format, negative)
    (m1, e1), (m2, e2) = a.dyadic, b.dyadic
    e = e1 - e2
    return round_ratio(ctx, negative, abs(m1) << max(e, 0), abs(m2) << max(-e, 0))


def sqrt(ctx: Context, a: Float) -> Float:
    """√a."""
    a = _read(ctx, a)
    if a.is_nan or (a.negative and not a.is_zero):
        return _nan(ctx)
    if a.is_infinite:
        return _infinite(ctx, False)
    if a.is_zero:
        return zero(ctx.format, a.negative)
    m, e = a.dyadic
    extra = ctx.format.precision + 2  # root bits beyond the precision, so that a sticky bit decides every case
    shift = max(0, 2 * extra - m.bit_length())
    shift += (e - shift) & 1
    m, e = m << shift, (e - shift) // 2
    root = isqrt(m)
    # 2·root + (inexact) over 2: an exact root or a value strictly between two of them, never a tie
    odd = 2 * root + (root * root != m)
    e -= 1
    return round_ratio(ctx, False, odd << max(e, 0), 1 << max(-e, 0))


# -- comparisons: IEEE 754, NaN is unordered, the zeros are equal ------------------------------------------


def _key(x: Float) -> Fraction | float:
    if x.is_infinite:
        return float("-inf") if x.negative else float("inf")
    return x.fraction


def equal(a: Float, b: Float) -> bool:
    """IEEE ``==``: False with NaN, True for the two zeros."""
    return not (a.is_nan or b.is_nan) and _key(a) == _key(b)


def less(a: Float, b: Float) -> bool:
    """IEEE ``<``."""
    return not (a.is_nan or b.is_nan) and _key(a) < _key(b)


def less_equal(a: Float, b: Float) -> bool:
    """IEEE ``<=``."""
    return not (a.is_nan or b.is_nan) and _key(a) <= _key(b)


def nearest(fmt: Format, x: Fraction | int | float) -> Float:
    """x rounded to nearest even in this format, saturating nothing: for reading numbers that users write.

    Python NaN, ±inf and −0.0 keep their meaning; a number beyond the format's range is a usage error.
    """
    from fpsmt.floats.rounding import Subnormals
    from fpsmt.floats.values import exactly

    if isinstance(x, float) and (x != x or x in (float("inf"), float("-inf")) or x == 0):
        return exactly(fmt, x)
    ctx = Context(fmt, Mode.RNE, Overflow.INFINITY if fmt.has_infinity else Overflow.SATURATE, Subnormals.GRADUAL)
    result = round_real(ctx, Fraction(x))
    if result.is_infinite or (not fmt.has_infinity and abs(Fraction(x)) > fmt.largest and result.fraction != x):
        raise UsageError(f"{shown_number(x)} is beyond the range of {fmt}, whose largest value is {largest(fmt)}")
    return result
