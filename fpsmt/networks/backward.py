"""Backward substitution of linear bounds through the steps of a network, compiled; see `fpsmt.networks.relaxation`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpsmt.floats.machine import jit

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

TOGETHER = 16  #: rows that pass a step one after the other


class Chain(NamedTuple):
    """Affine steps z = W h + b one after the other: step k has `sizes[k + 1]` values, `units[k]` of them come before,
    and its weights begin at `at[k]` of `weights`, or are the identity where that is −1."""

    sizes: Indices
    units: Indices
    at: Indices
    weights: Array
    b: Array


def chain(inputs: int, steps: Sequence[tuple[Array | None, Array]]) -> Chain:
    """Of steps (W or None, b)."""
    sizes = np.array([inputs, *(len(b) for _, b in steps)], dtype=np.int64)
    at, flat = np.full(len(steps), -1, dtype=np.int64), [np.zeros(0)]
    for k, (weights, _) in enumerate(steps):
        if weights is not None:
            at[k] = sum(len(f) for f in flat)
            flat.append(np.ascontiguousarray(weights, dtype=np.float64).reshape(-1))
    units = np.concatenate([[0], np.cumsum(sizes[1:])]).astype(np.int64)
    return Chain(sizes, units, at, np.concatenate(flat), np.concatenate([b for _, b in steps]))


@jit
def multiply(a: Array, some: Indices, weights: Array, out: Array) -> None:
    """Adds Σ a[i]·weights[i] over some i, four rows at a time."""
    k = 0
    while k + 4 <= len(some):
        i, j, l, m = some[k], some[k + 1], some[k + 2], some[k + 3]
        p, q, s, t = a[i], a[j], a[l], a[m]
        one, two, three, four = weights[i], weights[j], weights[l], weights[m]
        for c in range(len(out)):
            out[c] += p * one[c] + q * two[c] + s * three[c] + t * four[c]
        k += 4
    while k < len(some):
        p, one = a[some[k]], weights[some[k]]
        for c in range(len(out)):
            out[c] += p * one[c]
        k += 1


@jit
def add_product(rows: Array, matrix: Array, out: Array) -> None:
    """Adds rows·matrix, each row on its own: unlike those of a matrix product, its sums do not depend on the others."""
    every = np.arange(rows.shape[1])
    for r in range(len(rows)):
        multiply(rows[r], every, matrix, out[r])


def product(rows: Array, matrix: Array) -> Array:
    """rows·matrix of C-contiguous arrays by `add_product`."""
    out = np.zeros((len(rows), matrix.shape[1]))
    add_product(np.ascontiguousarray(rows), matrix, out)
    return out


@jit
def substitute(
    rows: Array, box: Indices, last: int, sizes: Indices, units: Indices, at: Indices, weights: Array, b: Array,
    errors: Array, lower: Array, bottom: Array, upper: Array, top: Array, through: Array, added: Array,
    slopes: Array, constants: Array, totals: Array,
) -> None:  # fmt: skip
    """Carries rows (rows, size of step `last`) of its values back to the inputs, into `slopes` (rows, inputs),
    `constants` and their sizes `totals` (rows), all 0 before: a signal that comes while new arrays are returned breaks
    the call.

    `errors` and the lines lower·z + bottom ≤ y ≤ upper·z + top between the values z of a step and what the next step
    reads are (boxes, all units); `box` says which box each row is of.  `through`, (rows, all units) or empty, receives
    the coefficient of each y; `added`, (rows, all units) or empty, is added to the coefficients of the z.  Where a
    coefficient is 0 nothing is added.
    """
    count, keep, adding = len(rows), len(through) > 0, len(added) > 0
    widest = sizes.max()
    now, then, some = np.zeros((TOGETHER, widest)), np.zeros((TOGETHER, widest)), np.zeros(widest, dtype=np.int64)
    for head in range(0, count, TOGETHER):
        part = min(TOGETHER, count - head)
        now[:part, : sizes[last + 1]] = rows[head : head + part]
        for k in range(last, -1, -1):
            n, m, start = sizes[k], sizes[k + 1], at[k]
            shifts = b[units[k] : units[k] + m]
            matrix = weights[start : start + m * n].reshape(m, n) if start >= 0 else weights[:0].reshape(0, n)
            for q in range(part):
                r = head + q
                spans, given = errors[box[r], units[k] : units[k] + m], now[q]
                shift = error = 0.0
                nonzero = 0
                for i in range(m):
                    if adding:
                        given[i] += added[r, units[k] + i]
                    a = given[i]
                    if a != 0.0:
                        some[nonzero] = i
                        nonzero += 1
                        shift += a * shifts[i]
                        error += abs(a) * spans[i]
                constants[r] += shift
                totals[r] += abs(constants[r])
                constants[r] -= error
                totals[r] += abs(constants[r])
                if start >= 0:
                    then[q, :n] = 0.0
                    multiply(given, some[:nonzero], matrix, then[q, :n])
            if start >= 0:
                now, then = then, now
            if k == 0:
                break
            before = units[k - 1]
            for q in range(part):
                r = head + q
                place, given = box[r], now[q]
                if keep:
                    through[r, before : before + n] = given[:n]
                low, high = lower[place, before : before + n], upper[place, before : before + n]
                least, most = bottom[place, before : before + n], top[place, before : before + n]
                offset = 0.0
                for j in range(n):
                    a = given[j]
                    c, d = (low[j], least[j]) if a >= 0.0 else (high[j], most[j])  # NaN stays NaN
                    given[j] = a * c
                    if d != 0.0:
                        offset += a * d
                constants[r] += offset
                totals[r] += abs(constants[r])
        slopes[head : head + part] = now[:part, : sizes[0]]
