"""Arithmetic on carriers for compiled code: numba functions of float64 numbers and of `parameters(context)`.

A *carrier* is a float64 that holds a value of a format embedded in float64.  The kernels ``add(a, b, k)``,
``sub(a, b, k)``, ``mul(a, b, k)``, ``fma(a, b, c, k)``, ``add_products(a, b, c, d, k)``, ``div(a, b, k)``,
``sqrt(a, k)`` and ``cast(a, k)`` are meant for loops under `fpsmt.floats.machine.jit`, and return what
`fpsmt.floats.exact` returns, bit for bit, in every rounding mode, overflow rule and subnormal rule:

* NaN operands and invalid operations give NaN, also in formats without one (there the exact path raises: a
  caller checks, as `fpsmt.floats.vector` does);
* ±inf, ±0 and subnormals as in `fpsmt.floats.exact`; a format with a single zero gives +0;
* operands that are not values of the operands' formats are not noticed, except that subnormals are judged
  by those formats.

Three ways to compute, chosen once in `parameters`:

*narrow*.  Condition: each operand's format has precision ≤ 26, the target's precision is ≤ 51, and all of
them have ω ≥ 2^−480 and Ω < 2^480.  Then the product of two operands is exact in float64 (52 bits, exponents
far inside its range); a sum of two products has an exact error by TwoSum (D. Knuth, TAOCP 2, 4.2.2), and a
quotient q and a root s exact remainders a − q·b and a − s² by fma, because all these are multiples of at
least 2^−1074 (the least is above 2^(−960−105)) and nothing reaches 2^1024.  From the nearest float64 and the
sign of the rest the result is rounded to odd at 53 bits, and that once to the target: a single rounding,
because 53 ≥ precision + 2 (S. Boldo and G. Melquiond, 2008).

*native*.  The target is IEEE binary64 itself with RNE, overflow to infinity and gradual underflow, and no
operand is flushed: the machine's own operations.

*wide*.  Everything else: `fpsmt.floats.wide`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats.formats import Format, ieee, pow2
from fpsmt.floats.machine import bits_of, from_bits, fused, jit
from fpsmt.floats.rounding import Context, Mode, Overflow
from fpsmt.floats.wide import (
    Parameters,
    infinite,
    round_up,
    signed_zero,
    to_odd,
    wide_cast,
    wide_product,
    wide_quotient,
    wide_root,
    wide_sum,
    with_overflow,
)

NARROW, NATIVE, WIDE = 0, 1, 2

_MODES = {Mode.RNE: 0, Mode.RNA: 1, Mode.RTP: 2, Mode.RTN: 3, Mode.RTZ: 4}
_BINARY64 = ieee(11, 53)
_MAGNITUDE = np.uint64((1 << 63) - 1)
_FRACTION = np.uint64((1 << 52) - 1)
_HIDDEN = np.uint64(1 << 52)
_ONE = np.uint64(1)


def embeds(fmt: Format) -> bool:
    """Every finite value of the format is a float64 (and a code fits 64 bits): its arrays are carriers.

    >>> from fpsmt.floats import bfloat16, ieee
    >>> embeds(bfloat16), embeds(ieee(15, 113))
    (True, False)
    """
    return fmt.bits <= 64 and fmt.precision <= 53 and fmt.emax <= 1023 and fmt.emin - fmt.fraction_bits >= -1074


def same_values(a: Format, b: Format) -> bool:
    """Two formats with the same values and subnormals, whatever their names and codes."""
    return (a.precision, a.emin, a.largest, a.has_infinity, a.has_nan, a.has_signed_zero) == (
        b.precision, b.emin, b.largest, b.has_infinity, b.has_nan, b.has_signed_zero
    )  # fmt: skip


def operand_formats(ctx: Context, operands: Format | Sequence[Format] | None) -> tuple[Format, ...]:
    """The formats of the four argument places: the context's own, one for all, or one each (the last repeats)."""
    if operands is None:
        given: tuple[Format, ...] = (ctx.format,)
    elif isinstance(operands, Format):
        given = (operands,)
    else:
        given = tuple(operands)
        if not 1 <= len(given) <= 4:
            raise UsageError(f"{len(given)} operand formats: give one for all operands, or one for each, at most 4")
    return given + (given[-1],) * (4 - len(given))


def parameters(ctx: Context, operands: Format | Sequence[Format] | None = None) -> Parameters:
    """The last argument of every kernel, for results rounded into ctx.

    `operands` are the formats of the arguments: None when they are in ctx.format, one format for all of
    them, or a sequence with one for each place (``(bfloat16, bfloat16, float32)`` for an fma that
    accumulates in float32; a shorter sequence repeats its last).  Raises `Unsupported` when one of the
    formats is not embedded in float64.
    """
    return _parameters(ctx, operand_formats(ctx, operands))


@lru_cache(maxsize=1024)
def _parameters(ctx: Context, operands: tuple[Format, ...]) -> Parameters:
    fmt = ctx.format
    for each in (fmt, *operands):
        if not embeds(each):
            raise Unsupported(
                f"{each} has values that are not float64 values: compiled arithmetic cannot hold them; "
                "use fpsmt.floats.vector.arithmetic, which falls back to exact scalars"
            )
    native = (
        same_values(fmt, _BINARY64)
        and ctx.mode is Mode.RNE
        and ctx.overflow is Overflow.INFINITY
        and not ctx.subnormals.inputs
        and not ctx.subnormals.outputs
    )
    small_target = fmt.precision <= 51 and _in_range(fmt)
    narrow = small_target and all(f.precision <= 26 and _in_range(f) for f in operands)
    size = float(fmt.largest)
    above, below = _overflowed(ctx, size)
    if fmt.has_infinity:
        limit = math.inf
    else:
        limit = math.nan if ctx.overflow is Overflow.NAN else size
    tiny = [
        float(f.smallest_normal) * (1.0 if f.has_signed_zero else -1.0) if ctx.subnormals.inputs else 0.0
        for f in operands
    ]
    return Parameters(
        path=NATIVE if native else NARROW if narrow else WIDE,
        cast_path=NATIVE if native else NARROW if small_target else WIDE,
        mode=_MODES[ctx.mode],
        precision=fmt.precision,
        emin=fmt.emin,
        flush=int(ctx.subnormals.outputs),
        signed_zero=int(fmt.has_signed_zero),
        negates_zero=int(operands[1].has_signed_zero),
        quantum=float(fmt.smallest),
        normal=float(fmt.smallest_normal),
        largest=size,
        infinite=limit,
        above=above,
        below=below,
        tiny0=tiny[0],
        tiny1=tiny[1],
        tiny2=tiny[2],
        tiny3=tiny[3],
    )


def _in_range(fmt: Format) -> bool:
    return fmt.smallest >= pow2(-480) and fmt.largest < Fraction(2) ** 480


def _overflowed(ctx: Context, size: float) -> tuple[float, float]:
    """What finite results above Ω and below −Ω become."""
    if ctx.overflow is Overflow.NAN:
        return math.nan, math.nan
    if ctx.overflow is Overflow.SATURATE or ctx.mode is Mode.RTZ:
        return size, -size
    above = size if ctx.mode is Mode.RTN else math.inf
    below = -size if ctx.mode is Mode.RTP else -math.inf
    return above, below


# -- pieces -----------------------------------------------------------------------------------------------


@jit
def _read(x: float, tiny: float) -> float:
    """The operand as the context sees it."""
    if abs(x) < abs(tiny):
        return math.copysign(0.0, x) if tiny > 0.0 else 0.0
    return x


@jit
def _negative(x: float) -> bool:
    """The sign bit."""
    return (bits_of(x) >> np.uint64(63)) != np.uint64(0)


@jit
def _special(x: float, k: Any) -> float:
    """The result for a NaN or infinite exact value."""
    return math.nan if math.isnan(x) else infinite(k, x < 0.0)


@jit
def _zero_sum(x: float, y: float, k: Any) -> float:
    """The zero that the exact sum of x and y is."""
    negative = _negative(x)
    return signed_zero(k, negative if negative == _negative(y) else k.mode == 3)


@jit
def _narrow(x: float, k: Any) -> float:
    """x, finite and rounded to odd (or exact), rounded into a narrow context; x = 0 keeps its sign."""
    code = bits_of(x)
    magnitude = code & _MAGNITUDE
    negative = code != magnitude
    dropped = 53 - k.precision
    rounded = magnitude + round_up(k, negative, magnitude, dropped)
    size = from_bits((rounded >> np.uint64(dropped)) << np.uint64(dropped))
    if abs(x) >= k.normal:
        return with_overflow(k, negative, size)
    if magnitude == np.uint64(0) or (k.flush == 1 and size < k.normal):
        return signed_zero(k, negative)
    dropped += k.emin + 1023 - np.int64(magnitude >> np.uint64(52))
    n = (magnitude & _FRACTION) | _HIDDEN
    if dropped > 54:  # less than half of ω, whatever the bits
        n, dropped = _ONE, 54
    n = (n + round_up(k, negative, n, dropped)) >> np.uint64(dropped)
    if n == np.uint64(0):
        return signed_zero(k, negative)
    return with_overflow(k, negative, np.float64(n) * k.quantum)


@jit
def _narrow_sum(x: float, y: float, k: Any) -> float:
    """x + y of finite numbers in the range where TwoSum is exact."""
    s = x + y
    if s == 0.0:
        return _zero_sum(x, y, k)
    t = s - x
    return _narrow(to_odd(s, (x - (s - t)) + (y - t)), k)


# -- kernels ----------------------------------------------------------------------------------------------


@jit
def cast(a: float, k: Any) -> float:
    """a rounded into the context; a may be any value of the first operand format."""
    a = _read(a, k.tiny0)
    if not math.isfinite(a):
        return _special(a, k)
    if k.cast_path == 0:
        return _narrow(a, k)
    if k.cast_path == 1:
        return a
    return wide_cast(k, a) if a != 0.0 else signed_zero(k, _negative(a))


@jit
def _sum(a: float, b: float, k: Any) -> float:
    if k.path == 1:
        return a + b
    if not (math.isfinite(a) and math.isfinite(b)):
        return _special(a + b, k)
    if k.path == 0:
        return _narrow_sum(a, b, k)
    if a == 0.0:
        return wide_cast(k, b) if b != 0.0 else _zero_sum(a, b, k)
    return wide_sum(k, a, 1.0, b, 1.0) if b != 0.0 else wide_cast(k, a)


@jit
def add(a: float, b: float, k: Any) -> float:
    """a ⊕ b."""
    return _sum(_read(a, k.tiny0), _read(b, k.tiny1), k)


@jit
def sub(a: float, b: float, k: Any) -> float:
    """a ⊖ b = a ⊕ −b, where −0 is 0 if b's format has a single zero."""
    b = _read(b, k.tiny1)
    return _sum(_read(a, k.tiny0), -b if b != 0.0 or k.negates_zero == 1 else 0.0, k)


@jit
def mul(a: float, b: float, k: Any) -> float:
    """a ⊗ b."""
    a = _read(a, k.tiny0)
    b = _read(b, k.tiny1)
    p = a * b
    if k.path == 1:
        return p
    if k.path == 0:
        return _narrow(p, k) if math.isfinite(p) else _special(p, k)
    if not (math.isfinite(a) and math.isfinite(b)):
        return _special(p, k)
    if a == 0.0 or b == 0.0:
        return signed_zero(k, _negative(p))
    return wide_product(k, a, b)


@jit
def fma(a: float, b: float, c: float, k: Any) -> float:
    """a·b + c rounded once."""
    a = _read(a, k.tiny0)
    b = _read(b, k.tiny1)
    c = _read(c, k.tiny2)
    if k.path == 1:
        return fused(a, b, c)
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return _special(fused(a, b, c), k)
    p = a * b
    if k.path == 0:
        return _narrow_sum(p, c, k)
    if a == 0.0 or b == 0.0:
        return wide_cast(k, c) if c != 0.0 else _zero_sum(p, c, k)
    return wide_sum(k, a, b, c, 1.0) if c != 0.0 else wide_product(k, a, b)


@jit
def add_products(a: float, b: float, c: float, d: float, k: Any) -> float:
    """a·b + c·d rounded once."""
    a = _read(a, k.tiny0)
    b = _read(b, k.tiny1)
    c = _read(c, k.tiny2)
    d = _read(d, k.tiny3)
    first = math.isfinite(a) and math.isfinite(b)
    second = math.isfinite(c) and math.isfinite(d)
    p = a * b
    q = c * d
    if not (first and second):
        return _special((0.0 if first else p) + (0.0 if second else q), k)
    if k.path == 0:
        return _narrow_sum(p, q, k)
    if a == 0.0 or b == 0.0:
        return wide_product(k, c, d) if c != 0.0 and d != 0.0 else _zero_sum(p, q, k)
    return wide_sum(k, a, b, c, d) if c != 0.0 and d != 0.0 else wide_product(k, a, b)


@jit
def div(a: float, b: float, k: Any) -> float:
    """a ⊘ b; a nonzero number by zero is an exact infinity."""
    a = _read(a, k.tiny0)
    b = _read(b, k.tiny1)
    q = a / b
    if k.path == 1:
        return q
    if not (math.isfinite(a) and math.isfinite(b)) or a == 0.0 or b == 0.0:
        return signed_zero(k, _negative(q)) if q == 0.0 else _special(q, k)
    if k.path == 0:
        rest = fused(-q, b, a)
        return _narrow(to_odd(q, rest if b > 0.0 else -rest), k)
    return wide_quotient(k, a, b)


@jit
def sqrt(a: float, k: Any) -> float:
    """√a; NaN for a negative number, −0 for −0."""
    a = _read(a, k.tiny0)
    if k.path == 1:
        return math.sqrt(a) if a >= 0.0 else a if a == 0.0 else math.nan
    if a == 0.0:
        return signed_zero(k, _negative(a))
    if not a > 0.0:
        return math.nan
    if math.isinf(a):
        return infinite(k, False)
    if k.path == 0:
        s = math.sqrt(a)
        return _narrow(to_odd(s, fused(-s, s, a)), k)
    return wide_root(k, a)


@jit
def ordinal(x: float, emin: int, fraction_bits: int, top: int) -> int:
    """The place of a value of a format on its line of floats: 0 for both zeros, ±top for ±inf.  Not for NaN."""
    size = abs(x)
    place: Any = top
    if not math.isinf(size):
        bits = bits_of(size)
        exponent = np.int64(bits >> np.uint64(52)) - 1023
        if exponent < emin:
            place = np.int64(math.ldexp(size, fraction_bits - emin))
        else:
            rest = np.int64((bits & np.uint64((1 << 52) - 1)) >> np.uint64(52 - fraction_bits))
            place = ((exponent - emin + 1) << fraction_bits) + rest
    return -place if x < 0.0 else place
