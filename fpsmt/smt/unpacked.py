"""Exact operations on unpacked floats, as bit-vector circuits, and one rounding at the end.

An unpacked value is ±0, ±inf, NaN, or ±s·2^(e − w + 1) with s a w-bit significand (its top bit weighs 2^e).
Sums, quotients and roots whose exact value is too long are *jammed*: everything below the last kept bit is
or-ed into that bit.  Rounding to a precision at least two bits shorter then gives what the exact value gives,
because rounding boundaries are even multiples of the last kept bit and the jammed value lies on the same side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fpsmt.floats import Context, Format, Mode, Overflow
from fpsmt.smt import nodes as n
from fpsmt.smt.nodes import FALSE, Node


@dataclass(frozen=True)
class Exponent:
    """base + bits (unsigned), at most base + span."""

    base: int
    bits: Node
    span: int

    def at(self, base: int, width: int) -> Node:
        """The offset from a lower base, in this width."""
        return n.add(n.widen(self.bits, width), n.number(width, self.base - base))


def _exponent(base: int, bits: Node, span: int) -> Exponent:
    width = max(1, span.bit_length())
    return Exponent(base, n.extract(bits, width - 1, 0) if bits.width > width else n.widen(bits, width), span)


@dataclass(frozen=True)
class Unpacked:
    """A float in parts; the flags win over the significand, NaN over infinity over zero."""

    nan: Node
    infinite: Node
    zero: Node
    negative: Node
    exponent: Exponent
    significand: Node


def unpack(fmt: Format, code: Node, flush: bool, normal: bool) -> Unpacked:
    """The parts of a code (NaN canonical).  `normal`: the significand's top bit is set unless zero."""
    fb, eb = fmt.fraction_bits, fmt.exponent_bits
    magnitude = n.extract(code, fmt.bits - 2, 0)
    field, fraction = n.extract(magnitude, eb + fb - 1, fb), n.extract(magnitude, fb - 1, 0)
    tiny = n.equal(field, n.number(eb, 0))
    bits = n.ite(tiny, n.number(eb, 0), n.sub(field, n.number(eb, 1)))
    value = Unpacked(
        is_nan(fmt, code),
        is_infinite(fmt, code),
        n.both(tiny if flush else n.equal(magnitude, n.number(fmt.bits - 1, 0)), n.no(is_nan(fmt, code))),
        n.bit(code, fmt.bits - 1),
        _exponent(fmt.emin, bits, (1 << eb) - 2),
        n.concat(n.as_bit(n.no(tiny)), fraction),
    )
    if flush:
        negative = value.negative if fmt.has_signed_zero else n.both(value.negative, n.no(tiny))
        significand = n.ite(tiny, n.number(fmt.precision, 0), value.significand)
        return replace(value, negative=negative, significand=significand)
    return normalised(value) if normal else value


def is_nan(fmt: Format, code: Node) -> Node:
    """Whether a canonical code is NaN."""
    return FALSE if fmt.nan_code is None else n.equal(code, n.number(fmt.bits, fmt.nan_code))


def is_infinite(fmt: Format, code: Node) -> Node:
    if fmt.infinity_code is None:
        return FALSE
    return n.equal(n.extract(code, fmt.bits - 2, 0), n.number(fmt.bits - 1, fmt.infinity_code))


def any_nan_code(fmt: Format, code: Node) -> Node:
    """Whether any code, canonical or not, is one of the format's NaNs."""
    if fmt.nan == "none":
        return FALSE
    if fmt.nan == "negative-zero":
        return n.equal(code, n.number(fmt.bits, fmt.sign_mask))
    top = n.number(fmt.bits - 1, fmt.largest_code + fmt.has_infinity)
    return n.less(top, n.extract(code, fmt.bits - 2, 0))


# -- shifting -------------------------------------------------------------------------------------------


def normalised(x: Unpacked) -> Unpacked:
    """The same value with the significand's top bit set (a zero significand stays zero)."""
    s = x.significand
    width = s.width
    span = width - 1
    total = x.exponent.span + span
    out = max(1, total.bit_length())
    e = n.add(n.widen(x.exponent.bits, out), n.number(out, span))
    for k in reversed(range(max(1, span.bit_length()))):
        step = 1 << k
        if step >= width:
            continue
        empty = n.equal(n.extract(s, width - 1, width - step), n.number(step, 0))
        s = n.ite(empty, n.pad(n.extract(s, width - step - 1, 0), width), s)
        e = n.ite(empty, n.sub(e, n.number(out, step)), e)
    return replace(x, exponent=Exponent(x.exponent.base - span, e, total), significand=s)


def shift_right_jam(s: Node, amount: Node) -> Node:
    """s >> amount with everything shifted out or-ed into the last bit."""
    width = s.width
    sticky = FALSE
    for k in range(amount.width):
        step = 1 << k
        moved = n.bit(amount, k)
        if step >= width:
            high = n.nonzero(n.extract(amount, amount.width - 1, k))
            sticky = n.either(sticky, n.both(high, n.nonzero(s)))
            s = n.ite(high, n.number(width, 0), s)
            break
        sticky = n.either(sticky, n.both(moved, n.nonzero(n.extract(s, step - 1, 0))))
        s = n.ite(moved, n.widen(n.extract(s, width - 1, step), width), s)
    return n.bits_or(s, n.widen(n.as_bit(sticky), width))


def _jam(s: Node, width: int) -> Node:
    """The top `width` bits with the rest or-ed into the last; zeros appended if s is shorter."""
    if s.width <= width:
        return n.pad(s, width)
    rest = n.nonzero(n.extract(s, s.width - width - 1, 0))
    top = n.extract(s, s.width - 1, s.width - width)
    return n.bits_or(top, n.widen(n.as_bit(rest), width))


# -- exact operations -----------------------------------------------------------------------------------


def multiply(x: Unpacked, y: Unpacked) -> Unpacked:
    """The exact product of normal parts; its significand is normal."""
    width = x.significand.width + y.significand.width
    product = n.mul(n.widen(x.significand, width), n.widen(y.significand, width))
    top = n.bit(product, width - 1)
    span = x.exponent.span + y.exponent.span + 1
    out = max(1, span.bit_length())
    e = n.add(n.widen(x.exponent.bits, out), n.widen(y.exponent.bits, out))
    return Unpacked(
        n.either(x.nan, y.nan, n.both(x.infinite, y.zero), n.both(x.zero, y.infinite)),
        n.either(x.infinite, y.infinite),
        n.either(x.zero, y.zero),
        n.differ(x.negative, y.negative),
        Exponent(x.exponent.base + y.exponent.base, n.add(e, n.widen(n.as_bit(top), out)), span),
        n.ite(top, product, n.pad(n.extract(product, width - 2, 0), width)),
    )


def sum_of(x: Unpacked, y: Unpacked, precision: int, mode: Mode) -> Unpacked:
    """x + y, exact or jammed for rounding to `precision`.

    Both normal, or both of one format and not normalised (a significand without its top bit then has the
    smallest exponent there is, so nothing it is added to is shifted past it).
    """
    width = max(x.significand.width, y.significand.width, precision + 2) + 1
    base = min(x.exponent.base, y.exponent.base)
    span = max(x.exponent.base + x.exponent.span, y.exponent.base + y.exponent.span) - base
    size = max(1, span.bit_length())
    ex, ey = x.exponent.at(base, size), y.exponent.at(base, size)
    y_leads = n.both(n.no(y.zero), n.either(x.zero, n.less(ex, ey)))
    sx, sy = n.pad(x.significand, width), n.pad(y.significand, width)
    nothing = n.number(width, 0)
    sx, sy = n.ite(x.zero, nothing, sx), n.ite(y.zero, nothing, sy)
    lead, follow = n.ite(y_leads, sy, sx), n.ite(y_leads, sx, sy)
    e_lead, e_follow = n.ite(y_leads, ey, ex), n.ite(y_leads, ex, ey)
    follow = shift_right_jam(follow, n.sub(e_lead, e_follow))
    opposite = n.differ(x.negative, y.negative)
    wide = width + 1
    a, b = n.widen(lead, wide), n.widen(follow, wide)
    total = n.ite(opposite, n.sub(a, b), n.add(a, b))
    crossed = n.both(opposite, n.less(lead, follow))
    total = n.ite(crossed, n.negate(total), total)
    lead_negative = n.ite(y_leads, y.negative, x.negative)
    zero = n.equal(total, n.number(wide, 0))
    zero_negative = n.ite(opposite, n.truth(mode is Mode.RTN), x.negative)
    infinite = n.either(x.infinite, y.infinite)
    negative = n.ite(
        infinite,
        n.ite(x.infinite, x.negative, y.negative),
        n.ite(zero, zero_negative, n.differ(lead_negative, crossed)),
    )
    return Unpacked(
        n.either(x.nan, y.nan, n.both(x.infinite, y.infinite, opposite)),
        infinite,
        zero,
        negative,
        Exponent(base + 1, e_lead, span),
        total,
    )


def divide(x: Unpacked, y: Unpacked, precision: int) -> Unpacked:
    """x / y of normal parts, jammed for rounding to `precision`."""
    px, py = x.significand.width, y.significand.width
    shift = max(0, precision + 2 + py - px)
    width = max(px + shift, py)
    numerator = n.widen(n.pad(x.significand, px + shift), width)
    denominator = n.widen(y.significand, width)
    top = px + shift - py  # x's significand · 2^shift / y's lies strictly between 2^(top−1) and 2^(top+1)
    q, r = n.quotient(numerator, denominator), n.remainder(numerator, denominator)
    span = x.exponent.span + y.exponent.span
    out = max(1, span.bit_length())
    e = n.add(n.widen(x.exponent.bits, out), n.sub(n.number(out, y.exponent.span), n.widen(y.exponent.bits, out)))
    return Unpacked(
        n.either(x.nan, y.nan, n.both(x.zero, y.zero), n.both(x.infinite, y.infinite)),
        n.either(x.infinite, y.zero),
        n.either(x.zero, y.infinite),
        n.differ(x.negative, y.negative),
        Exponent(x.exponent.base - y.exponent.base - y.exponent.span, e, span),
        n.concat(n.extract(q, top, 0), n.as_bit(n.nonzero(r))),
    )


def square_root(x: Unpacked, precision: int) -> Unpacked:
    """√x of normal parts by restoring digits, jammed for rounding to `precision`; √−0 = −0."""
    if x.exponent.base % 2:
        span = x.exponent.span + 1
        width = span.bit_length()
        bits = n.add(n.widen(x.exponent.bits, width), n.number(width, 1))
        x = replace(x, exponent=Exponent(x.exponent.base - 1, bits, span))
    px = x.significand.width
    half = max(precision + 1, -(-(px - 1) // 2))  # the radicand lies in [2^(2·half), 2^(2·half + 2))
    radicand = n.widen(n.pad(x.significand, 2 * half + 1), 2 * half + 2)
    odd = n.bit(x.exponent.bits, 0)
    radicand = n.ite(odd, n.pad(n.extract(radicand, 2 * half, 0), 2 * half + 2), radicand)
    root, rest = n.number(half + 1, 0), n.number(half + 3, 0)
    for k in reversed(range(half + 1)):
        rest = n.concat(n.extract(rest, half, 0), n.extract(radicand, 2 * k + 1, 2 * k))
        trial = n.concat(n.extract(root, half, 0), n.number(2, 1))
        fits = n.less_equal(trial, rest)
        rest = n.ite(fits, n.sub(rest, trial), rest)
        root = n.concat(n.extract(root, half - 1, 0), n.as_bit(fits))
    bits = x.exponent.bits
    bits = n.extract(bits, bits.width - 1, 1) if bits.width > 1 else n.number(1, 0)
    return Unpacked(
        n.either(x.nan, n.both(x.negative, n.no(x.zero))),
        n.both(x.infinite, n.no(x.negative)),
        x.zero,
        n.both(x.negative, x.zero),
        Exponent(x.exponent.base // 2, bits, x.exponent.span // 2),
        n.concat(root, n.as_bit(n.nonzero(rest))),
    )


# -- rounding -------------------------------------------------------------------------------------------


def _increments(mode: Mode, negative: Node, s: Node) -> Node:
    """Whether p kept bits, followed by a round and a sticky bit, round up in magnitude."""
    half, low, last = n.bit(s, 1), n.bit(s, 0), n.bit(s, 2)
    if mode is Mode.RNE:
        return n.both(half, n.either(low, last))
    if mode is Mode.RNA:
        return half
    if mode is Mode.RTZ:
        return FALSE
    inexact = n.either(half, low)
    return n.both(inexact, negative if mode is Mode.RTN else n.no(negative))


def pack(ctx: Context, x: Unpacked, normal: bool = False) -> tuple[Node, Node]:
    """(code, undefined): x rounded once into ctx, and when the result is NaN in a format that has none."""
    fmt = ctx.format
    p, fb = fmt.precision, fmt.fraction_bits
    if not normal:
        x = normalised(x)
    s = _jam(x.significand, p + 2)
    base, span = x.exponent.base, x.exponent.span
    e = x.exponent.bits
    low = fmt.emin - base  # the offset of emin
    flushed = FALSE
    if low <= 0:
        above_span = span - low
        size = max(1, above_span.bit_length())
        above = n.add(n.widen(e, size), n.number(size, -low))
        shifted = s
    else:
        size = max(1, span.bit_length(), low.bit_length())
        wide = n.widen(e, size)
        tiny = n.less(wide, n.number(size, low))
        above_span = max(span - low, 0)
        above = n.ite(tiny, n.number(size, 0), n.sub(wide, n.number(size, low)))
        shifted = shift_right_jam(s, n.ite(tiny, n.sub(n.number(size, low), wide), n.number(size, 0)))
        if ctx.subnormals.outputs:
            all_ones = n.equal(n.extract(s, p + 1, 2), n.number(p, -1))
            reaches = n.both(n.equal(wide, n.number(size, low - 1)), all_ones, _increments(ctx.mode, x.negative, s))
            flushed = n.both(tiny, n.no(reaches))
    kept = n.extract(shifted, p + 1, 2)
    up = _increments(ctx.mode, x.negative, shifted)
    width = max(((above_span << fb) + (1 << p)).bit_length(), fmt.bits - 1)
    above = n.extract(above, width - 1, 0) if above.width > width else n.widen(above, width)
    magnitude = n.add(
        n.shift_left(above, n.number(width, fb)),
        n.add(n.widen(kept, width), n.widen(n.as_bit(up), width)),
    )
    beyond = n.less(n.number(width, fmt.largest_code), magnitude)
    magnitude = n.extract(magnitude, fmt.bits - 2, 0)
    return _specials(ctx, x, magnitude, beyond, flushed)


def _specials(ctx: Context, x: Unpacked, magnitude: Node, beyond: Node, flushed: Node) -> tuple[Node, Node]:
    fmt = ctx.format
    width = fmt.bits - 1
    largest = n.number(width, fmt.largest_code)
    infinity = None if fmt.infinity_code is None else n.number(width, fmt.infinity_code)
    nan = x.nan
    overflow = n.both(beyond, n.no(x.zero), n.no(x.infinite))
    if ctx.overflow is Overflow.NAN:
        nan = n.either(nan, overflow)
        over = largest
    elif ctx.overflow is Overflow.SATURATE or infinity is None or ctx.mode is Mode.RTZ:
        over = largest
    elif ctx.mode is Mode.RTP:
        over = n.ite(x.negative, largest, infinity)
    elif ctx.mode is Mode.RTN:
        over = n.ite(x.negative, infinity, largest)
    else:
        over = infinity
    if infinity is None and ctx.overflow is Overflow.NAN:
        nan = n.either(nan, x.infinite)
    result = n.ite(beyond, over, magnitude)
    result = n.ite(n.either(x.zero, flushed), n.number(width, 0), result)
    result = n.ite(x.infinite, largest if infinity is None else infinity, result)
    negative = x.negative
    if not fmt.has_signed_zero:
        negative = n.both(negative, n.nonzero(result))
    code = n.concat(n.as_bit(negative), result)
    if fmt.nan_code is None:
        return code, nan
    return n.ite(nan, n.number(fmt.bits, fmt.nan_code), code), FALSE
