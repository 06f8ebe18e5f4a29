"""Compiled tables of extremes over sets of terms: the inner loops of `fpsmt.networks.extremes`.

A *state* is a set (or multiset) of terms with three facts: its least and greatest values that are not NaN (both NaN
where there are none) and whether NaN can come out.  A *leaf* is a row of `LEAF` numbers.  ±inf and NaN are float64's
own; zeros count as one number.  The arguments ``k``, ``kf`` and ``kp`` are `floats.compiled.parameters` of additions,
fused additions and sums of two products.

Kernels release Python's lock, so that two threads can each fill a half of one level.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from fpsmt.floats.compiled import add, add_products, fma
from fpsmt.floats.machine import jit
from fpsmt.floats.wide import infinite

#: Columns of a leaf: its rounded value (least, greatest); factors (w, x) of the least and of the greatest exact
#: product; the infinite ends of the exact product (±inf; 0 when finite; NaN when every product is NaN);
#: 1 for a product; 1 if the rounded value can be NaN; 1 if the exact product can be NaN.
LEAF = ("low", "high", "w_low", "x_low", "w_high", "x_high", "least", "greatest", "product", "nan", "product_nan")
LOW, HIGH, WL, XL, WH, XH, LEAST, GREATEST, PRODUCT, NAN, PRODUCT_NAN = range(11)

NEVER, ANY, ALWAYS, EXACT = range(4)  #: rules for fused nodes; EXACT keeps products exact
PLAIN, FUSE_LEFT, FUSE_RIGHT, PAIR = range(4)  #: how a node adds
WANT_LOW, WANT_HIGH, WANT_NAN = range(3)


def threaded(function: Any) -> Any:
    """`jit` without Python's global lock."""
    dispatcher = jit(function)
    dispatcher.targetoptions["nogil"] = True
    return dispatcher


def interruptible(kernel: Any, *arguments: Any) -> Any:
    """kernel(stop, …) on another thread, so that an interrupt or a time limit can end it: it looks at stop[0]."""
    stop = np.zeros(1, np.int64)
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(kernel, stop, *arguments)
        try:
            return work.result()
        except BaseException:
            stop[0] = 1
            raise


# -- one node -----------------------------------------------------------------------------------------------


@jit
def clash(a_low: float, a_high: float, b_low: float, b_high: float) -> bool:
    """Can opposite infinities meet?"""
    return (a_high == math.inf and b_low == -math.inf) or (b_high == math.inf and a_low == -math.inf)


@jit
def least(a_low: float, a_high: float, b_low: float, b_high: float, k: Any) -> float:
    """The least sum of a value of A and one of B that is not NaN; NaN when there is none."""
    if math.isinf(a_low) and a_low == -b_low:
        other = a_high if a_low < 0.0 else b_high  # of the side whose least value is −inf; the other side is +inf only
        return infinite(k, False) if other > -math.inf else math.nan
    return add(a_low, b_low, k)


@jit
def greatest(a_low: float, a_high: float, b_low: float, b_high: float, k: Any) -> float:
    """The greatest sum that is not NaN."""
    if math.isinf(a_high) and a_high == -b_high:
        other = a_low if a_high > 0.0 else b_low
        return infinite(k, True) if other < math.inf else math.nan
    return add(a_high, b_high, k)


@jit
def fused_least(leaf: Any, i: int, b_low: float, b_high: float, kf: Any) -> float:
    """The least w·x + b rounded once, over the factors of leaf i."""
    p = leaf[i, LEAST]
    if math.isnan(p) or math.isnan(b_low):
        return math.nan
    if p != 0.0 and p == -b_low:
        other = leaf[i, GREATEST] if p < 0.0 else b_high
        return infinite(kf, False) if other > -math.inf else math.nan
    return fma(leaf[i, WL], leaf[i, XL], b_low, kf)


@jit
def fused_greatest(leaf: Any, i: int, b_low: float, b_high: float, kf: Any) -> float:
    """The greatest w·x + b rounded once."""
    p = leaf[i, GREATEST]
    if math.isnan(p) or math.isnan(b_high):
        return math.nan
    if p != 0.0 and p == -b_high:
        other = leaf[i, LEAST] if p > 0.0 else b_low
        return infinite(kf, True) if other < math.inf else math.nan
    return fma(leaf[i, WH], leaf[i, XH], b_high, kf)


@jit
def pair_least(leaf: Any, i: int, j: int, kp: Any) -> float:
    """The least w·x + w′·x′ rounded once."""
    p, q = leaf[i, LEAST], leaf[j, LEAST]
    if math.isnan(p) or math.isnan(q):
        return math.nan
    if p != 0.0 and p == -q:
        other = leaf[i, GREATEST] if p < 0.0 else leaf[j, GREATEST]
        return infinite(kp, False) if other > -math.inf else math.nan
    return add_products(leaf[i, WL], leaf[i, XL], leaf[j, WL], leaf[j, XL], kp)


@jit
def pair_greatest(leaf: Any, i: int, j: int, kp: Any) -> float:
    """The greatest w·x + w′·x′ rounded once."""
    p, q = leaf[i, GREATEST], leaf[j, GREATEST]
    if math.isnan(p) or math.isnan(q):
        return math.nan
    if p != 0.0 and p == -q:
        other = leaf[i, LEAST] if p > 0.0 else leaf[j, LEAST]
        return infinite(kp, True) if other < math.inf else math.nan
    return add_products(leaf[i, WH], leaf[i, XH], leaf[j, WH], leaf[j, XH], kp)


@jit
def allowed(how: int, i: int, j: int, leaf: Any, mode: int) -> bool:
    """May a node over A (leaf i, or −1) and B (leaf j, or −1) add in this way?"""
    left = i >= 0 and leaf[i, PRODUCT] == 1.0
    right = j >= 0 and leaf[j, PRODUCT] == 1.0
    if how == PLAIN:
        return mode <= ANY or not (left or right)
    if how == PAIR:
        return mode == EXACT and left and right
    if mode == NEVER or (mode == EXACT and left and right):
        return False
    return left if how == FUSE_LEFT else right


@jit
def option(
    want: int, how: int, i: int, a_low: float, a_high: float, a_nan: bool,
    j: int, b_low: float, b_high: float, b_nan: bool, leaf: Any, mode: int, k: Any, kf: Any, kp: Any,
) -> float:  # fmt: skip
    """The least or greatest value of a node that adds in this way (NaN when it has none); 1.0 where NaN was wanted
    and is reached."""
    if not allowed(how, i, j, leaf, mode):
        return math.nan
    if want == WANT_NAN:
        if how == FUSE_LEFT:
            a_nan, a_low, a_high = leaf[i, PRODUCT_NAN] == 1.0, leaf[i, LEAST], leaf[i, GREATEST]
        elif how == FUSE_RIGHT:
            b_nan, b_low, b_high = leaf[j, PRODUCT_NAN] == 1.0, leaf[j, LEAST], leaf[j, GREATEST]
        elif how == PAIR:
            a_nan, a_low, a_high = leaf[i, PRODUCT_NAN] == 1.0, leaf[i, LEAST], leaf[i, GREATEST]
            b_nan, b_low, b_high = leaf[j, PRODUCT_NAN] == 1.0, leaf[j, LEAST], leaf[j, GREATEST]
        return 1.0 if a_nan or b_nan or clash(a_low, a_high, b_low, b_high) else math.nan
    if how == PLAIN:
        if want == WANT_LOW:
            return least(a_low, a_high, b_low, b_high, k)
        return greatest(a_low, a_high, b_low, b_high, k)
    if how == PAIR:
        return pair_least(leaf, i, j, kp) if want == WANT_LOW else pair_greatest(leaf, i, j, kp)
    if how == FUSE_RIGHT:
        i, b_low, b_high = j, a_low, a_high
    if want == WANT_LOW:
        return fused_least(leaf, i, b_low, b_high, kf)
    return fused_greatest(leaf, i, b_low, b_high, kf)


@jit
def node(
    i: int, a_low: float, a_high: float, a_nan: bool, j: int, b_low: float, b_high: float, b_nan: bool,
    leaf: Any, mode: int, k: Any, kf: Any, kp: Any,
) -> tuple[float, float, bool]:  # fmt: skip
    """(least, greatest, NaN?) of a node over all ways to add."""
    low, high, bad = math.nan, math.nan, False
    for how in range(4):
        if allowed(how, i, j, leaf, mode):
            v = option(0, how, i, a_low, a_high, a_nan, j, b_low, b_high, b_nan, leaf, mode, k, kf, kp)
            if v < low or math.isnan(low):
                low = v
            v = option(1, how, i, a_low, a_high, a_nan, j, b_low, b_high, b_nan, leaf, mode, k, kf, kp)
            if v > high or math.isnan(high):
                high = v
            v = option(2, how, i, a_low, a_high, a_nan, j, b_low, b_high, b_nan, leaf, mode, k, kf, kp)
            bad = bad or v == 1.0
    return low, high, bad


@jit
def first_match(
    want: int, target: float, a: Any, a_low: Any, a_high: Any, a_nan: Any, b: Any, b_low: Any, b_high: Any, b_nan: Any,
    leaf: Any, mode: int, k: Any, kf: Any, kp: Any,
) -> tuple[int, int]:  # fmt: skip
    """(place, how) of the first of these splits that gives the wanted value; (−1, −1) if none does."""
    for s in range(a.size):
        for how in range(4):
            v = option(
                want, how, a[s], a_low[s], a_high[s], a_nan[s], b[s], b_low[s], b_high[s], b_nan[s],
                leaf, mode, k, kf, kp,
            )  # fmt: skip
            if v == target:
                return s, how
    return -1, -1


# -- every tree over sets, as bit masks ---------------------------------------------------------------------


@threaded
def native_level(sets: Any, start: int, stop: int, low: Any, high: Any) -> None:
    """Plain additions by the machine's own, which round like the accumulator; everything is finite."""
    for at in range(start, stop):
        s = sets[at]
        rest = s & (s - 1)
        b = rest
        best = low[s ^ b] + low[b]
        top = high[s ^ b] + high[b]
        while b:
            v = low[s ^ b] + low[b]
            w = high[s ^ b] + high[b]
            best = v if v < best else best
            top = w if w > top else top
            b = (b - 1) & rest
        low[s] = best
        high[s] = top


@jit
def as_read(x: float, tiny: float) -> float:
    """A subnormal operand is 0 where the rules flush it; zeros are one number here."""
    return 0.0 if abs(x) < tiny else x


@jit
def rest_of(s: float, x: float, y: float) -> float:
    """The error of s = x + y in float64 (D. Knuth's TwoSum)."""
    t = s - x
    return (x - (s - t)) + (y - t)


@threaded
def screened_level(sets: Any, start: int, stop: int, low: Any, high: Any, exact: bool, k: Any) -> None:
    """Plain additions, everything finite: the least and greatest exact sums are found first and rounded once.

    Rounding is monotone, so that is the least rounded sum.  Exact sums are compared as (rounded to float64, error);
    `exact` says that float64 holds every sum of two values.
    """
    tiny = abs(k.tiny0)
    for at in range(start, stop):
        s = sets[at]
        rest = s & (s - 1)
        b = rest
        best, best_rest, best_at = math.inf, 0.0, b
        top, top_rest, top_at = -math.inf, 0.0, b
        while b:
            x, y = as_read(low[s ^ b], tiny), as_read(low[b], tiny)
            v = x + y
            if v <= best:
                e = 0.0 if exact else rest_of(v, x, y)
                if v < best or e < best_rest:
                    best, best_rest, best_at = v, e, b
            x, y = as_read(high[s ^ b], tiny), as_read(high[b], tiny)
            v = x + y
            if v >= top:
                e = 0.0 if exact else rest_of(v, x, y)
                if v > top or e > top_rest:
                    top, top_rest, top_at = v, e, b
            b = (b - 1) & rest
        # infinite ends stay: no plain split, or one beyond float64, and the caller turns to the general table
        low[s] = best if best == math.inf else add(low[s ^ best_at], low[best_at], k)
        high[s] = top if top == -math.inf else add(high[s ^ top_at], high[top_at], k)


@threaded
def fused_level(sets: Any, start: int, stop: int, low: Any, high: Any, leaf: Any, mode: int, kf: Any, kp: Any) -> None:
    """Adds the fused nodes, and the sums of two exact products, to a level whose plain additions are done."""
    for at in range(start, stop):
        s = sets[at]
        bit, i = 1, 0
        while bit <= s:
            if s & bit and leaf[i, PRODUCT] == 1.0:
                other = s ^ bit
                if other & (other - 1):
                    b_low, b_high, j = low[other], high[other], -1
                else:
                    j = 0
                    while 1 << j != other:
                        j += 1
                    b_low, b_high = leaf[j, LOW], leaf[j, HIGH]
                if mode == EXACT and j >= 0 and leaf[j, PRODUCT] == 1.0:
                    v, w = pair_least(leaf, i, j, kp), pair_greatest(leaf, i, j, kp)
                else:
                    v, w = fused_least(leaf, i, b_low, b_high, kf), fused_greatest(leaf, i, b_low, b_high, kf)
                if not v >= low[s]:
                    low[s] = v
                if not w <= high[s]:
                    high[s] = w
            bit <<= 1
            i += 1


@threaded
def general_level(
    sets: Any, start: int, stop: int, low: Any, high: Any, nan: Any, new_low: Any, new_high: Any, new_nan: Any,
    leaf: Any, mode: int, k: Any, kf: Any, kp: Any,
) -> None:  # fmt: skip
    """Every node over the sets, from the tables of their parts; infinities and NaN allowed.

    The tables hold NaN for parts that may not be added plainly; the values of leaves are read from `leaf`.
    """
    tiny = abs(k.tiny0)
    for at in range(start, stop):
        s = sets[at]
        rest = s & (s - 1)
        b = rest
        best, best_sum = math.nan, math.inf
        top, top_sum = math.nan, -math.inf
        bad = False
        while b:
            a = s ^ b
            a_low, b_low, a_high, b_high = low[a], low[b], high[a], high[b]
            v = as_read(a_low, tiny) + as_read(b_low, tiny)
            if v <= best_sum or v != v:
                w = least(a_low, a_high, b_low, b_high, k)
                if v == v:
                    best_sum = v
                if w < best or math.isnan(best):
                    best = w
            v = as_read(a_high, tiny) + as_read(b_high, tiny)
            if v >= top_sum or v != v:
                w = greatest(a_low, a_high, b_low, b_high, k)
                if v == v:
                    top_sum = v
                if w > top or math.isnan(top):
                    top = w
            if nan[a] == 1 or nan[b] == 1:
                bad = bad or (nan[a] < 2 and nan[b] < 2)
            elif clash(a_low, a_high, b_low, b_high):
                bad = True
            b = (b - 1) & rest
        if mode != NEVER:
            bit, i = 1, 0
            while bit <= s:
                if s & bit and leaf[i, PRODUCT] == 1.0:
                    other = s ^ bit
                    j = -1
                    if other & (other - 1):
                        b_low, b_high, b_nan = low[other], high[other], nan[other] == 1
                        there = nan[other] < 2
                    else:
                        j = 0
                        while 1 << j != other:
                            j += 1
                        b_low, b_high, b_nan = leaf[j, LOW], leaf[j, HIGH], leaf[j, NAN] == 1.0
                        there = True
                    how = PAIR if mode == EXACT and j >= 0 and leaf[j, PRODUCT] == 1.0 else FUSE_LEFT
                    if there:
                        v = option(0, how, i, 0.0, 0.0, False, j, b_low, b_high, b_nan, leaf, mode, k, kf, kp)
                        if v < best or math.isnan(best):
                            best = v
                        v = option(1, how, i, 0.0, 0.0, False, j, b_low, b_high, b_nan, leaf, mode, k, kf, kp)
                        if v > top or math.isnan(top):
                            top = v
                        v = option(2, how, i, 0.0, 0.0, False, j, b_low, b_high, b_nan, leaf, mode, k, kf, kp)
                        bad = bad or v == 1.0
                bit <<= 1
                i += 1
        new_low[s], new_high[s] = best, top
        new_nan[s] = 1 if bad else 2 if math.isnan(best) else 0


# -- other families -----------------------------------------------------------------------------------------


@threaded
def pooled_table(
    stop: Any, radix: Any, counts: Any, low: Any, high: Any, nan: Any, leaf: Any, mode: int, k: Any, kf: Any, kp: Any
) -> None:
    """Every tree over multisets: state Σ cᵢ·radix[i] holds cᵢ terms of kind i; parts have smaller numbers."""
    kinds = counts.size
    digit = np.zeros(kinds, np.int64)
    part = np.zeros(kinds, np.int64)
    for s in range(1, low.size):
        if stop[0]:
            return
        i = 0
        while digit[i] == counts[i]:
            digit[i] = 0
            i += 1
        digit[i] += 1
        size = 0
        for i in range(kinds):
            size += digit[i]
            part[i] = 0
        if size == 1:
            continue
        best, top, bad = math.nan, math.nan, False
        a = 0
        while True:
            i = 0
            while i < kinds and part[i] == digit[i]:
                a -= part[i] * radix[i]
                part[i] = 0
                i += 1
            if i == kinds:
                break
            part[i] += 1
            a += radix[i]
            b = s - a
            if a > b:
                continue
            la, lb = _single(a, radix), _single(b, radix)
            v, w, x = node(
                la, low[a], high[a], nan[a] == 1, lb, low[b], high[b], nan[b] == 1, leaf, mode, k, kf, kp
            )  # fmt: skip
            if v < best or math.isnan(best):
                best = v
            if w > top or math.isnan(top):
                top = w
            bad = bad or x
        low[s], high[s], nan[s] = best, top, bad


@jit
def _single(state: int, radix: Any) -> int:
    """The kind of a state of one term, or −1."""
    for i in range(radix.size):
        if radix[i] == state:
            return i
    return -1


@threaded
def pooled_folds(
    stop: Any, radix: Any, counts: Any, low: Any, high: Any, nan: Any, leaf: Any, mode: int, k: Any, kf: Any, kp: Any
) -> None:
    """Left folds of every permutation, over the states of `pooled_table`."""
    kinds = counts.size
    digit = np.zeros(kinds, np.int64)
    for s in range(1, low.size):
        if stop[0]:
            return
        i = 0
        while digit[i] == counts[i]:
            digit[i] = 0
            i += 1
        digit[i] += 1
        if _single(s, radix) >= 0:
            continue
        best, top, bad = math.nan, math.nan, False
        for i in range(kinds):
            if digit[i] == 0:
                continue
            b = radix[i]
            a = s - b
            v, w, x = node(
                _single(a, radix), low[a], high[a], nan[a] == 1, i, low[b], high[b], nan[b] == 1, leaf, mode, k, kf, kp
            )  # fmt: skip
            if v < best or math.isnan(best):
                best = v
            if w > top or math.isnan(top):
                top = w
            bad = bad or x
        low[s], high[s], nan[s] = best, top, bad


@threaded
def contiguous_table(
    stop: Any, low: Any, high: Any, nan: Any, leaf: Any, mode: int, k: Any, kf: Any, kp: Any
) -> None:
    """Every parenthesisation: state i·(n+1) + j holds the leaves i … j−1; singletons are filled in."""
    n = leaf.shape[0]
    row = n + 1
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length
            if stop[0]:
                return
            best, top, bad = math.nan, math.nan, False
            for cut in range(i + 1, j):
                a, b = i * row + cut, cut * row + j
                v, w, x = node(
                    i if cut == i + 1 else -1, low[a], high[a], nan[a] == 1,
                    cut if cut == j - 1 else -1, low[b], high[b], nan[b] == 1, leaf, mode, k, kf, kp,
                )  # fmt: skip
                if v < best or math.isnan(best):
                    best = v
                if w > top or math.isnan(top):
                    top = w
                bad = bad or x
            low[i * row + j], high[i * row + j], nan[i * row + j] = best, top, bad


@threaded
def program_table(
    left: Any, right: Any, low: Any, high: Any, nan: Any, leaf: Any, mode: int, k: Any, kf: Any, kp: Any
) -> None:
    """One tree: slot i < n is leaf i, slot n + m the sum of the slots left[m] and right[m]; leaves are filled in."""
    n = leaf.shape[0]
    for m in range(left.size):
        a, b = left[m], right[m]
        v, w, x = node(
            a if a < n else -1, low[a], high[a], nan[a] == 1, b if b < n else -1, low[b], high[b], nan[b] == 1,
            leaf, mode, k, kf, kp,
        )  # fmt: skip
        low[n + m], high[n + m], nan[n + m] = v, w, x
