"""Integer arithmetic for contexts that float64 operations cannot serve: compiled kernels on 128-bit pairs.

An exact intermediate result is kept as sign, 128-bit significand (two uint64) and exponent, *rounded to odd*:
when bits fell off the end, the last bit kept is one.  Rounding to odd at 62 bits or more and then once to a
precision of at most 53 bits gives what a single rounding of the exact number gives (two bits more than the
target suffice; S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums", 2008).

Operands are any finite nonzero float64, so the kernels serve every format whose values are float64 values,
with every rounding mode, overflow rule and subnormal rule.  NaN, infinities and zeros are the callers'.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fpsmt.floats.machine import bits_of, from_bits, fused, jit, leading_zeros

_ONE = np.uint64(1)
_FRACTION = np.uint64((1 << 52) - 1)
_HIDDEN = np.uint64(1 << 52)
_LOW32 = np.uint64(0xFFFFFFFF)

Word = Any  #: a uint64


class Parameters(NamedTuple):
    """A rounding context and the formats of the operands, as numbers that compiled code reads.

    Integers and floats only, always in these places: one compilation serves every context.
    """

    path: int  #: which kernels compute add, mul, fma, …: 0 narrow, 1 native float64, 2 wide
    cast_path: int  #: the same for casts
    mode: int  #: RNE, RNA, RTP, RTN, RTZ as 0 … 4
    precision: int
    emin: int
    flush: int  #: 1 when subnormal results become zeros
    signed_zero: int  #: 0 when the format has a single zero
    negates_zero: int  #: 0 when the format of the second operand has a single zero
    quantum: float  #: ω, the distance of subnormals
    normal: float  #: the smallest normal value
    largest: float  #: Ω
    infinite: float  #: size of an exactly infinite result (NaN when it is NaN)
    above: float  #: a finite result above Ω
    below: float  #: a finite result below −Ω
    tiny0: float  #: operands of smaller size are read as zeros; negative when their format has a single zero
    tiny1: float
    tiny2: float
    tiny3: float


@jit
def round_up(k: Any, negative: bool, n: Word, dropped: int) -> Word:
    """What to add to the magnitude n before cutting off its last `dropped` ≥ 1 bits."""
    mode = k.mode
    half = _ONE << np.uint64(dropped - 1)
    if mode == 0:
        return (half - _ONE) + ((n >> np.uint64(dropped)) & _ONE)
    if mode == 1:
        return half
    if mode == 4 or (mode == 2) == negative:
        return np.uint64(0)
    return half + (half - _ONE)


@jit
def signed_zero(k: Any, negative: bool) -> float:
    """The zero of this sign, or the only zero."""
    return -0.0 if negative and k.signed_zero == 1 else 0.0


@jit
def with_overflow(k: Any, negative: bool, size: float) -> float:
    """±size, rounded already, under the overflow rule."""
    if size > k.largest:
        return k.below if negative else k.above
    return -size if negative else size


@jit
def infinite(k: Any, negative: bool) -> float:
    """An exactly infinite result."""
    return -k.infinite if negative else k.infinite


@jit
def split(x: float) -> tuple[Word, int]:
    """(m, e) with |x| = m·2^e and 2^52 ≤ m < 2^53, for finite nonzero x."""
    code = bits_of(x) & np.uint64(0x7FFFFFFFFFFFFFFF)
    field: Any = np.int64(code >> np.uint64(52))
    if field == 0:
        shift = leading_zeros(code) - 11
        return code << np.uint64(shift), -1074 - shift
    return (code & _FRACTION) | _HIDDEN, field - 1075


@jit
def product(a: Word, b: Word) -> tuple[Word, Word]:
    """(high, low) of the 128-bit product of two uint64."""
    a1, a0 = a >> np.uint64(32), a & _LOW32
    b1, b0 = b >> np.uint64(32), b & _LOW32
    middle = a1 * b0 + ((a0 * b0) >> np.uint64(32))
    cross = a0 * b1 + (middle & _LOW32)
    high = a1 * b1 + (middle >> np.uint64(32)) + (cross >> np.uint64(32))
    return high, a * b


@jit
def shift_right(high: Word, low: Word, distance: int) -> tuple[Word, Word]:
    """128-bit shift, rounded to odd; distance ≥ 0."""
    if distance == 0:
        return high, low
    if distance >= 128:
        return np.uint64(0), _ONE if (high | low) != np.uint64(0) else np.uint64(0)
    d = np.uint64(distance & 63)
    lost = np.uint64(0)
    if distance >= 64:
        lost = low
        low, high = high, np.uint64(0)
    if d != np.uint64(0):
        lost |= low << (np.uint64(64) - d)
        low = (low >> d) | (high << (np.uint64(64) - d))
        high = high >> d
    if lost != np.uint64(0):
        low |= _ONE
    return high, low


@jit
def finish(k: Any, negative: bool, high: Word, low: Word, exponent: int) -> float:
    """±(high·2^64 + low)·2^exponent, nonzero and rounded to odd, rounded into the context."""
    if high == np.uint64(0):
        high, low = low, np.uint64(0)
        exponent -= 64
    shift = leading_zeros(high)
    if shift > 0:
        high = (high << np.uint64(shift)) | (low >> np.uint64(64 - shift))
        low = low << np.uint64(shift)
        exponent -= shift
    # 62 bits leave room for the carry
    n = high >> np.uint64(2)
    if (high & np.uint64(3)) | low:
        n |= _ONE
    exponent += 66
    leading = exponent + 61
    dropped = 62 - k.precision
    if leading < k.emin:
        if k.flush == 1:
            carried = (n + round_up(k, negative, n, dropped)) >> np.uint64(62)
            if leading < k.emin - 1 or carried == np.uint64(0):
                return signed_zero(k, negative)
        dropped += k.emin - leading
        if dropped > 63:
            n, exponent, dropped = _ONE, exponent + dropped - 63, 63
    n = (n + round_up(k, negative, n, dropped)) >> np.uint64(dropped)
    if n == np.uint64(0):
        return signed_zero(k, negative)
    return with_overflow(k, negative, math.ldexp(np.float64(n), exponent + dropped))


@jit
def wide_cast(k: Any, x: float) -> float:
    """A finite nonzero x rounded into the context."""
    m, e = split(x)
    return finish(k, x < 0, np.uint64(0), m, e)


@jit
def wide_product(k: Any, a: float, b: float) -> float:
    """a·b of finite nonzero numbers."""
    m1, e1 = split(a)
    m2, e2 = split(b)
    high, low = product(m1, m2)
    return finish(k, (a < 0) != (b < 0), high, low, e1 + e2)


@jit
def significand(a: float, b: float) -> tuple[Word, Word, int]:
    """(high, low, e) of |a·b|, nonzero, with the leading one at bit 126."""
    m1, e1 = split(a)
    m2, e2 = split(b)
    # 53 + 62 bits: the product has its leading one at bit 125 or 126, exactly
    high, low = product(m1 << np.uint64(10), m2 << np.uint64(11))
    if high >> np.uint64(62) == np.uint64(0):
        return (high << _ONE) | (low >> np.uint64(63)), low << _ONE, e1 + e2 - 22
    return high, low, e1 + e2 - 21


@jit
def wide_sum(k: Any, a: float, b: float, c: float, d: float) -> float:
    """a·b + c·d of finite nonzero numbers, rounded once; an exact zero as the mode says.

    Both products have their leading one at bit 126 and at least 20 zeros at the end.  The smaller exponent's
    is shifted right and rounded to odd; adding an even integer keeps a number rounded to odd.  When bits are
    lost the exponents differ by 21 or more, so at most one leading bit cancels and over 120 remain.
    """
    high, low, e = significand(a, b)
    high2, low2, e2 = significand(c, d)
    negative, negative2 = (a < 0) != (b < 0), (c < 0) != (d < 0)
    if e < e2 or (e == e2 and (high < high2 or (high == high2 and low < low2))):
        high, low, e, negative, high2, low2, e2, negative2 = high2, low2, e2, negative2, high, low, e, negative
    high2, low2 = shift_right(high2, low2, e - e2)
    if negative == negative2:
        total = low + low2
        high = high + high2 + (_ONE if total < low else np.uint64(0))
    else:
        total = low - low2
        high = high - high2 - (_ONE if low < low2 else np.uint64(0))
    if high == np.uint64(0) and total == np.uint64(0):
        return signed_zero(k, k.mode == 3)
    return finish(k, negative, high, total, e)


@jit
def wide_quotient(k: Any, a: float, b: float) -> float:
    """a/b of finite nonzero numbers: 61 quotient bits by long division, ten at a time, and the remainder."""
    m1, e1 = split(a)
    m2, e2 = split(b)
    quotient, rest = m1 // m2, m1 % m2
    for _ in range(6):
        rest = rest << np.uint64(10)
        quotient = (quotient << np.uint64(10)) | (rest // m2)
        rest = rest % m2
    if rest != np.uint64(0):
        quotient |= _ONE
    return finish(k, (a < 0) != (b < 0), np.uint64(0), quotient, e1 - e2 - 60)


@jit
def wide_root(k: Any, a: float) -> float:
    """√a of a finite positive number.

    The significand is scaled into [1, 4); the float64 root s is within half an ulp, a root is never a midpoint
    (its square would need an odd number of extra bits), and the sign of the exact remainder a − s² says on
    which side the root lies: 4s, 4s + 1 or 4s − 1 quarter ulps is the root rounded to odd at 55 bits.
    """
    m, e = split(a)
    scaled = np.float64(m) * 2.0**-52
    e += 52
    if e & 1:
        scaled *= 2.0
        e -= 1
    root = math.sqrt(scaled)
    rest = fused(-root, root, scaled)
    n, place = split(root)
    n = n << np.uint64(2)
    if rest > 0:
        n += _ONE
    elif rest < 0:
        n -= _ONE
    return finish(k, False, np.uint64(0), n, place - 2 + e // 2)


@jit
def to_odd(rounded: float, rest: float) -> float:
    """The number rounded + rest, rounded to odd, given its float64 rounding to nearest and the exact rest."""
    code = bits_of(rounded)
    if rest == 0.0 or code & _ONE:
        return rounded
    return from_bits(code + _ONE) if (rest > 0) == (rounded > 0) else from_bits(code - _ONE)
