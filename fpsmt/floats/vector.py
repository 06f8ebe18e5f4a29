"""Arithmetic and conversions on arrays of values: the vectorised twin of `fpsmt.floats.exact`.

Arrays are *carriers*: float64 numpy arrays whose elements are values of a format embedded in float64; NaN is
NaN (whatever its sign and payload) and zeros keep their sign.  For a format that is not embedded (such as
``ieee(15,113)``) the same functions take and return object arrays of `Float` and loop over the exact scalars:
correct, and slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpsmt.errors import UsageError
from fpsmt.floats import compiled, exact
from fpsmt.floats.compiled import embeds, operand_formats, parameters
from fpsmt.floats.formats import Format, float64
from fpsmt.floats.machine import jit
from fpsmt.floats.rounding import Context, Mode, Overflow, Subnormals
from fpsmt.floats.values import Float, all_values, exactly, from_ordinal, nan

__all__ = [
    "Arithmetic", "arithmetic", "decode", "embeds", "encode", "from_ordinals", "ordinals", "round_array",
    "to_carrier", "to_floats", "values",
]  # fmt: skip

Carriers = NDArray[Any]  #: float64, or objects (`Float`) for a format that is not embedded in float64


# -- loops ------------------------------------------------------------------------------------------------


@jit
def _cast(a: Any, k: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = compiled.cast(a[i], k)


@jit
def _sqrt(a: Any, k: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = compiled.sqrt(a[i], k)


@jit
def _add(a: Any, b: Any, k: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = compiled.add(a[i], b[i], k)


@jit
def _sub(a: Any, b: Any, k: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = compiled.sub(a[i], b[i], k)


@jit
def _mul(a: Any, b: Any, k: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = compiled.mul(a[i], b[i], k)


@jit
def _div(a: Any, b: Any, k: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = compiled.div(a[i], b[i], k)


@jit
def _fma(a: Any, b: Any, c: Any, k: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = compiled.fma(a[i], b[i], c[i], k)


@jit
def _add_products(a: Any, b: Any, c: Any, d: Any, k: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = compiled.add_products(a[i], b[i], c[i], d[i], k)


# -- arithmetic -------------------------------------------------------------------------------------------


class Arithmetic:
    """The operations of one context on carriers, elementwise with numpy's broadcasting; made by `arithmetic`.

    Results are carriers of `context.format`, bit for bit those of `fpsmt.floats.exact` (its rules for NaN,
    infinities, zeros, overflow and subnormals apply).  Elements must be values of `operands`, the formats
    of the argument places; that is not checked.  Raises `UsageError` when a result is NaN and the format
    has none.
    """

    def __init__(self, context: Context, operands: tuple[Format, ...]) -> None:
        self.context = context
        self.operands = operands
        self.embedded = embeds(context.format) and all(embeds(f) for f in operands)
        self.parameters = parameters(context, operands) if self.embedded else None

    def cast(self, a: ArrayLike) -> Carriers:
        """Values of the operand format rounded into the context."""
        return self._run(_cast, exact.cast, a)

    def add(self, a: ArrayLike, b: ArrayLike) -> Carriers:
        """a ⊕ b.

        >>> from fpsmt.floats import context
        >>> arithmetic(context("float16")).add([65504.0, 2048.0], [16.0, 1.0]).tolist()
        [inf, 2048.0]
        """
        return self._run(_add, exact.add, a, b)

    def sub(self, a: ArrayLike, b: ArrayLike) -> Carriers:
        """a ⊖ b."""
        return self._run(_sub, exact.sub, a, b)

    def mul(self, a: ArrayLike, b: ArrayLike) -> Carriers:
        """a ⊗ b."""
        return self._run(_mul, exact.mul, a, b)

    def fma(self, a: ArrayLike, b: ArrayLike, c: ArrayLike) -> Carriers:
        """a·b + c rounded once."""
        return self._run(_fma, exact.fma, a, b, c)

    def add_products(self, a: ArrayLike, b: ArrayLike, c: ArrayLike, d: ArrayLike) -> Carriers:
        """a·b + c·d rounded once."""
        return self._run(_add_products, exact.add_products, a, b, c, d)

    def div(self, a: ArrayLike, b: ArrayLike) -> Carriers:
        """a ⊘ b."""
        return self._run(_div, exact.div, a, b)

    def sqrt(self, a: ArrayLike) -> Carriers:
        """√a."""
        return self._run(_sqrt, exact.sqrt, a)

    def _run(self, loop: Any, scalar: Callable[..., Float], *arguments: ArrayLike) -> Carriers:
        if not self.embedded:
            return self._by_scalars(scalar, *arguments)
        carriers = [_carrier(a) for a in arguments]
        shape = np.broadcast_shapes(*(a.shape for a in carriers))
        arrays = [a if a.shape == shape else np.array(np.broadcast_to(a, shape), order="C") for a in carriers]
        out = np.empty(arrays[0].size)
        loop(*(np.ascontiguousarray(a).reshape(-1) for a in arrays), self.parameters, out)
        if not self.context.format.has_nan and np.isnan(out).any():
            raise UsageError(f"a result is NaN, and {self.context.format} has none")
        return out.reshape(shape)

    def _by_scalars(self, scalar: Callable[..., Float], *arguments: ArrayLike) -> Carriers:
        arrays = np.broadcast_arrays(*(_objects(f, a) for f, a in zip(self.operands, arguments)))
        out = np.empty(arrays[0].shape, dtype=object)
        for index in np.ndindex(out.shape):
            out[index] = scalar(self.context, *(a[index] for a in arrays))
        return out

    def __repr__(self) -> str:
        return f"arithmetic({self.context}, {', '.join(dict.fromkeys(map(str, self.operands)))})"


def load_kernels() -> None:
    """Compiles the loops, or loads them from the cache: worth doing once before starting worker processes."""
    one = np.ones(1)
    vector = arithmetic(Context(float64, Mode.RNE, Overflow.INFINITY, Subnormals.GRADUAL))
    for operation, arity in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3), ("cast", 1)):
        getattr(vector, operation)(*[one] * arity)


def arithmetic(ctx: Context, operands: Format | Sequence[Format] | None = None) -> Arithmetic:
    """The vector operations of a context (cached).

    `operands`: the formats of the arguments; None when they are in ctx.format, one for all of them, or one
    for each place (a shorter sequence repeats its last).  Widths may be mixed freely, e.g. bfloat16 factors
    and a float32 accumulator; every result is rounded once.

    >>> from fpsmt.floats import bfloat16, context, float32
    >>> mixed = arithmetic(context("float32"), (bfloat16, bfloat16, float32))
    >>> mixed.fma([1.0078125], [1.0078125], [2.0**-23]).tolist()
    [1.0156861543655396]
    """
    return _arithmetic(ctx, operand_formats(ctx, operands))


@lru_cache(maxsize=1024)
def _arithmetic(ctx: Context, operands: tuple[Format, ...]) -> Arithmetic:
    return Arithmetic(ctx, operands)


def round_array(ctx: Context, x: ArrayLike) -> Carriers:
    """Arbitrary float64 numbers rounded into the context: a cast from float64.

    >>> from fpsmt.floats import context
    >>> round_array(context("float8_e4m3fn:nan"), [464.0, 465.0, 0.3]).tolist()
    [448.0, nan, 0.3125]
    """
    return arithmetic(ctx, float64).cast(x)


# -- codes ------------------------------------------------------------------------------------------------


def encode(fmt: Format, carriers: ArrayLike) -> NDArray[Any]:
    """Codes (uint64) of an array of values; NaN gets the one code `fmt.nan_code`, −0 is 0 in a format with one zero.

    Raises `UsageError` when an element is not a value of the format.  Formats of more than 64 bits give an
    object array of ints.
    """
    if not embeds(fmt):
        return _each(carriers, lambda x: _of_format(fmt, x).code, np.uint64 if fmt.bits <= 64 else object)
    x = _carrier(carriers)
    size = np.abs(x)
    finite = np.isfinite(x)
    _, exponent = np.frexp(np.where(finite, size, 0.0))
    exponent = np.maximum(exponent.astype(np.int64) - 1, fmt.emin)
    n = np.ldexp(np.where(finite, size, 0.0), fmt.fraction_bits - exponent)
    fits = finite & (size <= float(fmt.largest)) & (n == np.floor(n))
    n = np.where(fits, n, 0.0).astype(np.uint64)
    fb = np.uint64(fmt.fraction_bits)
    field = np.where(n >> fb != 0, exponent + fmt.bias, 0).astype(np.uint64)
    codes = (field << fb) | (n & np.uint64((1 << fmt.fraction_bits) - 1))
    if fmt.infinity_code is not None:
        infinite = np.isinf(x)
        codes = np.where(infinite, np.uint64(fmt.infinity_code), codes)
        fits |= infinite
    sign = np.signbit(x) & ((codes != 0) | fmt.has_signed_zero)
    codes = np.where(sign, codes | np.uint64(fmt.sign_mask), codes)
    if fmt.nan_code is not None:
        codes = np.where(np.isnan(x), np.uint64(fmt.nan_code), codes)
        fits |= np.isnan(x)
    if not fits.all():
        place = int(np.argmin(fits.reshape(-1)))
        raise UsageError(f"{x.reshape(-1)[place]!r} (element {place}) is not a value of {fmt}: round it first")
    return codes


def decode(fmt: Format, codes: ArrayLike) -> Carriers:
    """The values of an array of codes; every NaN code is NaN.  Raises `UsageError` on a number that is no code.

    >>> from fpsmt.floats import float8_e5m2
    >>> decode(float8_e5m2, [0, 0x80, 1, 0x3C, 0x7C, 0x7D]).tolist()
    [0.0, -0.0, 1.52587890625e-05, 1.0, inf, nan]
    """
    if not embeds(fmt):
        return _each(codes, lambda code: Float(fmt, int(code)), object)
    given = np.asarray(codes)
    if given.dtype.kind not in "iu" and given.size:
        raise UsageError(f"codes are integers, not {given.dtype}")
    bad = (given < 0) | (given > (1 << fmt.bits) - 1)
    if bad.any():
        raise UsageError(f"{given[bad].flat[0]:#x} is not a code of {fmt}: it has {fmt.bits} bits")
    code = given.astype(np.uint64)
    magnitude = code & np.uint64(fmt.sign_mask - 1)
    fb = np.uint64(fmt.fraction_bits)
    field = magnitude >> fb
    n = (magnitude & np.uint64((1 << fmt.fraction_bits) - 1)) + np.where(field > 0, np.uint64(1) << fb, np.uint64(0))
    exponent = np.maximum(field, np.uint64(1)).astype(np.int64) - fmt.bias - fmt.fraction_bits
    finite = magnitude <= np.uint64(fmt.largest_code)
    x = np.ldexp(np.where(finite, n, np.uint64(0)).astype(np.float64), np.where(finite, exponent, 0))
    if fmt.infinity_code is not None:
        x = np.where(magnitude == np.uint64(fmt.infinity_code), np.inf, x)
    x = np.where(code & np.uint64(fmt.sign_mask) != 0, -x, x)
    if fmt.nan == "negative-zero":
        x = np.where(code == np.uint64(fmt.sign_mask), np.nan, x)
    elif fmt.nan == "above":
        x = np.where(magnitude > np.uint64(fmt.largest_code + fmt.has_infinity), np.nan, x)
    return x


def values(fmt: Format, finite: bool = False) -> Carriers:
    """Every value once, ascending (−inf first, −0 before +0), then NaN; only the finite ones if asked.

    For formats of at most 16 bits; `UsageError` above, where `from_ordinals` gives ranges.

    >>> from fpsmt.floats import float4_e2m1fn
    >>> values(float4_e2m1fn)[5:11].tolist()
    [-1.0, -0.5, -0.0, 0.0, 0.5, 1.0]
    """
    if fmt.bits > 16:
        raise UsageError(
            f"{fmt} has 2^{fmt.bits} codes, too many to list (at most 2^16): "
            "use from_ordinals for a range of its values"
        )
    if not embeds(fmt):
        return _array(all_values(fmt, finite))
    top = fmt.largest_code + (fmt.has_infinity and not finite)
    up = np.arange(top + 1, dtype=np.uint64)
    parts = [up[:0:-1] | np.uint64(fmt.sign_mask), up]
    if fmt.has_signed_zero:
        parts.insert(1, np.array([fmt.sign_mask], dtype=np.uint64))
    if fmt.nan_code is not None and not finite:
        parts.append(np.array([fmt.nan_code], dtype=np.uint64))
    return decode(fmt, np.concatenate(parts))


def ordinals(fmt: Format, carriers: ArrayLike) -> NDArray[Any]:
    """Places on the line of floats (int64): 0 for both zeros, neighbours differ by 1.

    Raises `UsageError` on NaN and on numbers that are not values of the format.  Formats of more than 64
    bits give an object array of ints.
    """
    if not embeds(fmt):
        return _each(
            carriers, lambda x: _of_format(fmt, x).ordinal, np.int64 if fmt.bits <= 64 else object
        )
    x = _carrier(carriers)
    if np.isnan(x).any():
        raise UsageError("NaN has no place on the line of floats")
    magnitude = (encode(fmt, x) & np.uint64(fmt.sign_mask - 1)).astype(np.int64)
    return np.where(np.signbit(x), -magnitude, magnitude)


def from_ordinals(fmt: Format, places: ArrayLike) -> Carriers:
    """The values at these places on the line of floats (0 gives +0); `UsageError` beyond the last one.

    >>> from fpsmt.floats import float16
    >>> from_ordinals(float16, [-1, 0, 1, 31744]).tolist()
    [-5.960464477539063e-08, 0.0, 5.960464477539063e-08, inf]
    """
    if not embeds(fmt):
        return _each(places, lambda place: from_ordinal(fmt, int(place)), object)
    given = np.asarray(places)
    if given.dtype.kind not in "iu" and given.size:
        raise UsageError(f"ordinals are integers, not {given.dtype}")
    top = fmt.largest_code + fmt.has_infinity
    bad = (given > top) | (given < -top)
    if bad.any():
        raise UsageError(f"{fmt} has no value at ordinal {given[bad].flat[0]}: its largest is {fmt.largest_code}")
    place = given.astype(np.int64)
    size = decode(fmt, np.abs(place))
    return np.where(place < 0, -size, size)


# -- scalars ----------------------------------------------------------------------------------------------


def to_carrier(floats: Iterable[Float]) -> Carriers:
    """A one-dimensional array of these values: float64 when all their formats embed, else of objects."""
    given = list(floats)
    if all(embeds(f) for f in {x.format for x in given}):
        return np.array([float(x) for x in given], dtype=np.float64)
    return _array(given)


def to_floats(fmt: Format, carriers: ArrayLike) -> list[Float]:
    """The elements, in C order, as values of the format; `UsageError` when one is not.

    >>> from fpsmt.floats import float16
    >>> to_floats(float16, [0.1])
    Traceback (most recent call last):
    ...
    fpsmt.errors.UsageError: np.float64(0.1) (element 0) is not a value of float16: round it first
    """
    if embeds(fmt):
        return [Float(fmt, code) for code in encode(fmt, carriers).reshape(-1).tolist()]
    return list(_objects(fmt, carriers).reshape(-1))


def are_numbers(fmt: Format, carriers: ArrayLike) -> NDArray[np.bool_]:
    """Where the elements are finite values of the format.

    >>> from fpsmt.floats import float8_e4m3
    >>> are_numbers(float8_e4m3, [240.0, 9.5, 256.0, np.inf]).tolist()
    [True, False, False, False]
    """
    x = np.asarray(carriers, dtype=np.float64)
    finite = np.where(np.isfinite(x), x, 0.0)
    nearest = Context(fmt, Mode.RNE, Overflow.SATURATE, Subnormals.GRADUAL)
    good: NDArray[np.bool_] = (finite == x) & (round_array(nearest, finite) == finite)
    return good


def _carrier(x: ArrayLike) -> NDArray[np.float64]:
    """The argument as float64 without changing a value."""
    array = np.asarray(x)
    if array.dtype == np.float64:
        return array
    if array.dtype == object or array.dtype.kind not in "iuf" or (array.dtype.kind == "f" and array.itemsize > 8):
        if array.size == 0:
            return array.astype(np.float64)
        raise UsageError(f"carriers are float64 arrays, not {array.dtype}: use to_carrier for lists of Float")
    result = array.astype(np.float64)
    if array.dtype.kind in "iu" and array.itemsize == 8 and (np.abs(result) >= 2.0**53).any():
        raise UsageError("an integer of 2^53 or more need not be a float64: round it with fpsmt.floats.round_real")
    return result


def _objects(fmt: Format, x: ArrayLike) -> Carriers:
    """The argument as an object array of values of the format."""
    return _each(x, lambda each: _of_format(fmt, each), object)


def _of_format(fmt: Format, x: Any) -> Float:
    if isinstance(x, Float):
        if x.format == fmt:
            return x
        if x.is_nan:
            return nan(fmt)
        if x.is_infinite or x.is_zero:
            return exactly(fmt, float(x))
        return exactly(fmt, x.fraction)
    return exactly(fmt, float(x) if isinstance(x, np.floating) else int(x) if isinstance(x, np.integer) else x)


def _each(x: ArrayLike, function: Callable[[Any], Any], dtype: Any) -> Carriers:
    array = np.asarray(x, dtype=object)
    out = np.empty(array.shape, dtype=dtype)
    for index in np.ndindex(array.shape):
        out[index] = function(array[index])
    return out


def _array(floats: Iterable[Float]) -> Carriers:
    given = list(floats)
    out = np.empty(len(given), dtype=object)
    out[:] = given
    return out
