"""Sparse networks on intervals, compiled: what neurons can return for all inputs of a box and all orders of their sums.

Trusted.  An interval [lo, hi] of floats is propagated through sums and activations:

* w ⊗ · and · ⊕ · are monotone in each argument, because rounding is, so their least and largest values over intervals
  are at ends;
* the least and largest results of Σ over *all* summation trees of m terms come from a dynamic program over the subsets
  of the terms: the extremes of a subset are extremes of the sums of two complementary parts (for at most
  `MOST_TERMS` terms; one or two terms have one tree);
* the bias is added last;
* the activation's least and largest results over consecutive floats are read from a table (every value of the
  format), or at the ends for relu, identity and tables that increase.  The place of zero holds the results at −0 and at
  +0, so that the sign of a zero sum, which may depend on the order, never matters.

A point box gives exactly the set of extremes over all orders; where both ends are one number the value does not depend
on the order.  Where an infinity could meet its negative, or a table holds NaN, the interval is *open* (no bound).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fpsmt.errors import Unsupported
from fpsmt.floats.compiled import add, mul, ordinal
from fpsmt.floats.machine import jit
from fpsmt.floats.vector import encode, from_ordinals

MOST_TERMS = 8
MAX_TABLE_BITS = 16
#: flags of an evaluation: NaN is possible; an activation receives an infinity; it returns one
OPEN, INFINITE, RETURNED = 1, 2, 4
TABLE, RELU, IDENTITY, INCREASING = 0, 1, 2, 3


class Ranges(NamedTuple):
    """The activation for compiled code: least and largest results over 2^level consecutive floats.

    Of an increasing one, whose extremes are at the ends, level 0 alone.
    """

    kind: int
    low: Any
    high: Any
    top: int
    fraction_bits: int
    emin: int


def ranges(network: Any) -> Ranges:
    """Of a network's activation; unsupported for wide formats unless it is relu or identity, correctly rounded."""
    fmt = network.format
    top = fmt.largest_code + fmt.has_infinity
    if fmt.bits > MAX_TABLE_BITS:
        use = network.implementation
        kind = {"relu": RELU, "identity": IDENTITY}.get(use.text)
        if kind is None:
            raise Unsupported(
                f"{use.text} in {fmt}: activations are evaluated on intervals by tables (at most {MAX_TABLE_BITS} "
                "bits), or for relu and identity; use a narrower format"
            )
        return Ranges(kind, np.zeros((1, 1)), np.zeros((1, 1)), top, fmt.fraction_bits, fmt.emin)
    results = network.results()
    line = results[encode(fmt, from_ordinals(fmt, np.arange(-top, top + 1))).astype(np.int64)]
    low, high = line.copy(), line.copy()
    if fmt.has_signed_zero:
        other = results[fmt.sign_mask]
        low[top], high[top] = np.minimum(low[top], other), np.maximum(high[top], other)
    if (low[:-1] <= low[1:]).all() and (high[:-1] <= high[1:]).all():
        return Ranges(INCREASING, low[None], high[None], top, fmt.fraction_bits, fmt.emin)
    lows, highs = [low], [high]
    while 2 << (len(lows) - 1) <= len(line):
        step = 1 << (len(lows) - 1)
        # np.minimum and np.maximum pass NaN on
        lows.append(np.concatenate([np.minimum(lows[-1][:-step], lows[-1][step:]), np.full(step, np.nan)]))
        highs.append(np.concatenate([np.maximum(highs[-1][:-step], highs[-1][step:]), np.full(step, np.nan)]))
    return Ranges(TABLE, np.array(lows), np.array(highs), top, fmt.fraction_bits, fmt.emin)


@jit
def activated(lo: float, hi: float, f: Any) -> tuple[float, float]:
    """The least and largest result between two values; NaN when NaN is among the results."""
    if f.kind == RELU:
        return max(lo, 0.0), max(hi, 0.0)
    if f.kind == IDENTITY:
        return lo, hi
    a = ordinal(lo, f.emin, f.fraction_bits, f.top) + f.top
    b = ordinal(hi, f.emin, f.fraction_bits, f.top) + f.top
    if f.kind == INCREASING:
        return f.low[0, a], f.high[0, b]
    level, span = 0, b - a + 1
    while (2 << level) <= span:
        level += 1
    second = b - (1 << level) + 1
    low, high = f.low[level, a], f.high[level, a]
    if math.isnan(low) or math.isnan(f.low[level, second]):  # min and max may pass over NaN
        return math.nan, math.nan
    return min(low, f.low[level, second]), max(high, f.high[level, second])


@jit
def _clash(a_lo: float, a_hi: float, b_lo: float, b_hi: float) -> bool:
    """An infinity of one interval may meet its negative in the other."""
    return (a_hi == math.inf and b_lo == -math.inf) or (a_lo == -math.inf and b_hi == math.inf)


@jit
def all_trees(m: int, k: Any, at_lo: Any, at_hi: Any) -> bool:
    """Extremes over all trees of m terms, whose own are at_lo[1 << t] and at_hi[1 << t]: of every subset of the terms,
    as a bit mask; False when a NaN is possible."""
    for subset in range(1, 1 << m):
        if subset & (subset - 1) == 0:
            continue
        least, most = math.inf, -math.inf
        part = (subset - 1) & subset
        while part > 0:
            rest = subset ^ part
            if part > rest:  # each split once
                if _clash(at_lo[part], at_hi[part], at_lo[rest], at_hi[rest]):
                    return False
                a, b = add(at_lo[part], at_lo[rest], k), add(at_hi[part], at_hi[rest], k)
                if math.isnan(a) or math.isnan(b):  # overflow in a format that answers with NaN
                    return False
                least, most = min(least, a), max(most, b)
            part = (part - 1) & subset
        at_lo[subset], at_hi[subset] = least, most
    return True


@jit
def _sum(first: int, last: int, sources: Any, weights: Any, lo: Any, hi: Any, k: Any, at_lo: Any, at_hi: Any) -> bool:
    """`all_trees` of the products first … last−1; False also when a product may be NaN."""
    for t in range(last - first):
        w, s = weights[first + t], sources[first + t]
        a, b = mul(w, lo[s], k), mul(w, hi[s], k)
        if math.isnan(a) or math.isnan(b) or (w == 0.0 and (math.isinf(lo[s]) or math.isinf(hi[s]))):
            return False
        at_lo[1 << t], at_hi[1 << t] = (a, b) if w >= 0.0 else (b, a)
    return all_trees(last - first, k, at_lo, at_hi)


@jit
def evaluate(program: Any, q: int, lo: Any, hi: Any, f: Any, k: Any, at_lo: Any, at_hi: Any) -> int:
    """Fills lo[q+i], hi[q+i] for every neuron i of a program from its q inputs in lo[:q], hi[:q]; returns flags.

    program: (starts, sources, weights, bias, plain); neuron i applies the activation unless plain[i].
    """
    starts, sources, weights, bias, plain = program
    flags = 0
    for i in range(len(bias)):
        first, last = starts[i], starts[i + 1]
        if last > first:
            if last - first > MOST_TERMS or not _sum(first, last, sources, weights, lo, hi, k, at_lo, at_hi):
                return OPEN
            full = (1 << (last - first)) - 1
            low, high = at_lo[full], at_hi[full]
            if bias[i] != 0.0:
                low, high = add(low, bias[i], k), add(high, bias[i], k)
                if math.isnan(low) or math.isnan(high):
                    return OPEN
        else:
            low, high = bias[i], bias[i]
        if not plain[i]:
            if math.isinf(low) or math.isinf(high):
                flags |= INFINITE
            low, high = activated(low, high, f)
            if math.isnan(low) or math.isnan(high):
                return OPEN
            if math.isinf(low) or math.isinf(high):
                flags |= RETURNED
        lo[q + i], hi[q + i] = low, high
    return flags


@jit
def nonzero(program: Any, axis: Any, f: Any, k: Any, found: Any) -> int:
    """Where a program of one input is not exactly zero on a sorted axis: rows (first, last, lo, hi) of `found`.

    Every point of the axis is in one of them, or there the last neuron is ±0 in every order.  A row of one point has
    lo ≠ hi where the order matters, and NaN where no bound is known; a longer row has one value.
    Returns the number of rows, or −1 when `found` is too short.  Divides the axis until each piece is settled.
    """
    size = len(program[3]) + 1
    lo, hi = np.empty(size), np.empty(size)
    at_lo, at_hi = np.empty(1 << MOST_TERMS), np.empty(1 << MOST_TERMS)
    stack = np.empty((2 * 64 + 2, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, len(axis) - 1
    depth, count = 1, 0
    while depth > 0:
        depth -= 1
        a, b = stack[depth, 0], stack[depth, 1]
        lo[0], hi[0] = axis[a], axis[b]
        flags = evaluate(program, 1, lo, hi, f, k, at_lo, at_hi)
        low, high = (math.nan, math.nan) if flags & OPEN else (lo[size - 1], hi[size - 1])
        if low == 0.0 and high == 0.0:
            continue
        if low == high or a == b:
            if count == len(found):
                return -1
            found[count, 0], found[count, 1], found[count, 2], found[count, 3] = a, b, low, high
            count += 1
            continue
        middle = (a + b) // 2
        stack[depth, 0], stack[depth, 1] = middle + 1, b
        stack[depth + 1, 0], stack[depth + 1, 1] = a, middle
        depth += 2
    return count


@jit
def row(program: Any, axis: Any, f: Any, k: Any, low: Any, high: Any) -> None:
    """The extremes of a program of one input at every point of an axis; NaN where no bound is known."""
    size = len(program[3]) + 1
    lo, hi = np.empty(size), np.empty(size)
    at_lo, at_hi = np.empty(1 << MOST_TERMS), np.empty(1 << MOST_TERMS)
    for i in range(len(axis)):
        lo[0] = hi[0] = axis[i]
        flags = evaluate(program, 1, lo, hi, f, k, at_lo, at_hi)
        low[i], high[i] = (math.nan, math.nan) if flags & OPEN else (lo[size - 1], hi[size - 1])


@jit
def nonzero_on_boxes(
    program: Any, coordinate: Any, rows_lo: Any, rows_hi: Any, whole_lo: Any, whole_hi: Any, counts: Any, f: Any,
    k: Any, places: Any, values: Any,
) -> int:  # fmt: skip
    """Where a program of several inputs is not zero on a grid: `places` (an index for each coordinate), `values`.

    Input s depends on coordinate `coordinate[s]`: rows_lo[s, i] … rows_hi[s, i] at its i-th value, within
    whole_lo[s] … whole_hi[s].  The coordinates are fixed one after the other; where the program is zero whatever the
    coordinates that are still free, all of them are passed over.  Returns the number of places, or −1 when too many.
    """
    q, d = len(coordinate), len(counts)
    size = q + len(program[3])
    lo, hi = np.empty(size), np.empty(size)
    at_lo, at_hi = np.empty(1 << MOST_TERMS), np.empty(1 << MOST_TERMS)
    lo[:q], hi[:q] = whole_lo, whole_hi
    index = np.full(d, -1, np.int64)
    passed = np.full(d, -1, np.int64)  # the last value of each coordinate at which everything was zero
    depth, count = 0, 0
    while depth >= 0:
        index[depth] += 1
        i = index[depth]
        if i == counts[depth]:
            for s in range(q):
                if coordinate[s] == depth:
                    lo[s], hi[s] = whole_lo[s], whole_hi[s]
            index[depth] = -1
            passed[depth] = -1
            depth -= 1
            continue
        same = passed[depth] >= 0
        for s in range(q):
            if coordinate[s] == depth:
                lo[s], hi[s] = rows_lo[s, i], rows_hi[s, i]
                if same and (rows_lo[s, passed[depth]] != lo[s] or rows_hi[s, passed[depth]] != hi[s]):
                    same = False
        if same:
            continue
        flags = evaluate(program, q, lo, hi, f, k, at_lo, at_hi)
        low, high = (math.nan, math.nan) if flags & OPEN else (lo[size - 1], hi[size - 1])
        if low == 0.0 and high == 0.0:
            passed[depth] = i
        elif depth < d - 1:
            depth += 1
        else:
            if count == len(values):
                return -1
            places[count, :] = index
            values[count, 0], values[count, 1] = low, high
            count += 1
    return count
