"""Compiled float64 evaluation with a proved error bound, for vectors of narrow formats.

`value(which, x)` is within a relative `ERROR` of f(x); `rounded` rounds both ends of that interval and leaves
the element undecided where they differ.  No library function is used, only + − × ÷ √ of binary64, so the bound rests on
IEEE arithmetic and on one polynomial, checked in exact rationals by the tests.  u = 2^−53; inputs have at most 26 bits.

*e^x, |x| ≤ 600.*  k = ⌊x/ln 2 + ½⌋ computed in float64 gives |x − k·ln 2| ≤ 0.35.  LN2_HIGH has 33 bits, so
k·LN2_HIGH is exact; LN2_HIGH + LN2_LOW misses ln 2 by less than 2^−85.  Then r = (x − k·LN2_HIGH) − k·LN2_LOW has
absolute error ≤ u(0.36 + 0.36 + 2^−23) + 2^−75 < 0.75u, and none for k = 0.  The Taylor polynomial of
q(r) = (e^r − 1)/r to r^13 misses it by a relative 2^−56; Horner's rule on its 13 steps adds at most
27u·q(0.36)/q(−0.36) < 39u (N. Higham, Accuracy and Stability, 5.1).  p = r·q: relative 42u plus, for k ≠ 0, absolute
1.1u from r.  As |p| ≤ 0.45 that is at most 20u absolute, and 1 + p ≥ 0.69 is off by a relative 32u; 2^k is exact.

*e^x − 1*: p itself for k = 0 (relative 42u), else (2^k − 1) + 2^k·p, whose absolute error is at most
22u·2^k + 2u·|result| and whose size is at least 0.2·2^k for k ≥ 1 and 0.29 for k ≤ −1 (then the error is 13u):
relative 112u.

*The rest*: each ⊕ of terms of one sign, ⊗, ⊘, √ keeps the larger relative error, or adds them, plus u; at most four
such errors meet, so all stay below 300u < 2^−44.  tanh = −m/(m + 2) with m = e^−2|x| − 1 in (−1, 0]: m + 2 > 1 is
off by 112u|m| + u|m + 2|, so the quotient by less than 226u.  x² of a 26-bit x is exact.  The tanh form of GELU has
|v| ≤ 600 with a relative 8u, so e^−v is off by 4800u + 32u < 2^−40.  Beyond |x| = 600 (or |v| = 600) the argument is
clamped: the value is then nearer than 2^−800 to its limit or smaller than 2^−700, where no format with
emin ≥ −300 can tell (or, for growing functions, beyond every format with emax ≤ 127).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.floats import Context, Format, float64
from fpsmt.floats import compiled as kernel
from fpsmt.floats.machine import from_bits, jit
from fpsmt.functions.definitions import SELU_ALPHA, SELU_SCALE
from fpsmt.functions.function import Function

ERROR = 2.0**-43  #: relative; the analysis gives 2^−44, the rest covers the two roundings of y·(1 ± ERROR)
ERROR_GELU = 2.0**-39

LN2_HIGH = float.fromhex("0x1.62e42feep-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
PER_LN2 = float.fromhex("0x1.71547652b82fep+0")
HALF_LN2 = 0.34657359027997264
MOST = 600.0
GELU_LINEAR = 1.5957691216057308  #: 2√(2/π)
GELU_CUBIC = 0.044715
SELU_HIGH, SELU_LOW = float(SELU_SCALE), float(SELU_SCALE * SELU_ALPHA)

#: 1/14!, …, 1/2!, 1/1!: coefficients of (e^r − 1)/r from r^13 down.
COEFFICIENTS = (
    1 / 87178291200, 1 / 6227020800, 1 / 479001600, 1 / 39916800, 1 / 3628800, 1 / 362880, 1 / 40320, 1 / 5040,
    1 / 720, 1 / 120, 1 / 24, 1 / 6, 0.5, 1.0,
)  # fmt: skip

NAMES = (
    "exp", "sigmoid", "logsigmoid'", "sigmoid'", "tanh", "tanh'", "elu", "celu", "selu", "elu'", "celu'", "selu'",
    "swish", "mish", "gelu_tanh", "cosh", "gaussian", "sqrt", "sqrt1p_square",
)  # fmt: skip
_NUMBERS = {name: number for number, name in enumerate(NAMES)}


@jit
def reduced(x: float) -> tuple[float, float]:
    """(2^k, p) with e^x = 2^k·(1 + p), |x| ≤ 1300."""
    k = np.floor(x * PER_LN2 + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    q = COEFFICIENTS[0]
    for i in range(1, 14):
        q = q * r + COEFFICIENTS[i]
    return from_bits(np.uint64(np.int64(k) + 1023) << np.uint64(52)), r * q


@jit
def exponential(x: float) -> float:
    """e^x for |x| ≤ 600, clamped beyond."""
    scale, p = reduced(min(max(x, -MOST), MOST))
    return scale * (1.0 + p)


@jit
def less_one(x: float) -> float:
    """e^x − 1 for |x| ≤ 600, clamped beyond."""
    scale, p = reduced(min(max(x, -MOST), MOST))
    if scale == 1.0:
        return p
    return (scale - 1.0) + scale * p


@jit
def logistic(x: float) -> float:
    """1/(1 + e^−x)."""
    return 1.0 / (1.0 + exponential(-x))


@jit
def value(which: int, x: float) -> float:
    """The function numbered `which` in `NAMES` at a finite x of at most 26 bits."""
    if which == 0:
        return exponential(x)
    if which == 1:
        return logistic(x)
    if which == 2:
        return logistic(-x)
    if which == 3:
        e = exponential(-abs(x))
        return e / ((1.0 + e) * (1.0 + e))
    if which == 4:
        m = less_one(-2.0 * abs(x))
        t = -m / (m + 2.0)
        return t if x >= 0.0 else -t
    if which == 5:
        e = exponential(-2.0 * abs(x))
        return 4.0 * e / ((1.0 + e) * (1.0 + e))
    if which <= 7:
        return x if x >= 0.0 else less_one(x)
    if which == 8:
        return SELU_HIGH * x if x >= 0.0 else SELU_LOW * less_one(x)
    if which <= 10:
        return 1.0 if x >= 0.0 else exponential(x)
    if which == 11:
        return SELU_HIGH if x >= 0.0 else SELU_LOW * exponential(x)
    if which == 12:
        return x * logistic(x)
    if which == 13:
        if x >= 0.0:
            e = exponential(-x)
            return x * ((1.0 + 2.0 * e) / (1.0 + 2.0 * e * (1.0 + e)))
        e = exponential(x)
        w = e * (e + 2.0)
        return x * (w / (w + 2.0))
    if which == 14:
        v = min(max(GELU_LINEAR * (x + GELU_CUBIC * (x * x * x)), -MOST), MOST)
        return x * logistic(v)
    if which == 15:
        e = exponential(abs(x))
        return 0.5 * (e + 1.0 / e)
    if which == 16:
        return exponential(-(x * x))
    if which == 17:
        return np.sqrt(x)
    return np.sqrt(1.0 + x * x)


@jit
def _rounded(which: int, error: float, x: Any, k: Any, out: Any, undecided: Any) -> None:
    for i in range(x.size):
        v = x[i]
        if v != v:
            out[i] = v
            undecided[i] = False
            continue
        if v == 0.0 or abs(v) > 1e300:
            undecided[i] = True
            continue
        y = value(which, v)
        a = kernel.cast(y * (1.0 - error), k)
        b = kernel.cast(y * (1.0 + error), k)
        out[i] = a
        undecided[i] = a != b  # also when both are NaN


def rounded(function: Function, ctx: Context, x: NDArray[Any], fmt: Format) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """(values, undecided) on a flat array of `fmt`, or None when there is no kernel for these.

    Zeros, infinities, exact values and whatever is too near a rounding breakpoint are undecided.  `ctx` must
    not flush inputs.
    """
    number = _NUMBERS.get(function.name)
    narrow = all(f.precision <= 26 and f.emax <= 127 and f.emin >= -300 for f in (fmt, ctx.format))
    if number is None or not narrow:
        return None
    error = ERROR_GELU if function.name == "gelu_tanh" else ERROR
    out, undecided = np.empty(x.shape), np.empty(x.shape, dtype=np.bool_)
    _rounded(number, error, x, kernel.parameters(ctx, float64), out, undecided)
    return out, undecided
