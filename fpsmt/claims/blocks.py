"""All pairs of a domain told apart under every implementation, block by block.  For formats of at most 16 bits.

One map with a positive power of two as its weight, and two inputs xᵢ < xⱼ whose values it moves to disjoint allowed
sets. Rounding is monotone, so for l ≤ i the values at x_l, …, xᵢ lie between those at x_l and xᵢ, and so on the right
side. Where every set allowed between them lies below a number T, and every set allowed between the values at xⱼ and
x_r lies at or above T, or the other way round, this one map tells every input of [x_l, xᵢ] from every input of [xⱼ,
x_r] under every implementation: a *block*.  A *recipe* (y, e) gives maps for all i and all distances j − i = 1, 2, 4,
…: w such that w·(xⱼ − xᵢ) is in [2^e, 2^(e+1)) where that is finite, and b such that the middle between them is moved
to about y.

A pair that is in no block is told apart where maps in a *grid* join two places with disjoint allowed sets: weight w,
biases k·2^e for |k| ≤ count (see `fpsmt.claims.distinguishability`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.distinguishability import Reading, Setting
from fpsmt.claims.pairs import index_of
from fpsmt.claims.places import allowed_by_index, listed, offset
from fpsmt.errors import Unsupported
from fpsmt.floats import compiled as kernel
from fpsmt.floats import float64
from fpsmt.floats.machine import jit
from fpsmt.floats.vector import from_ordinals

MOST_OPEN = 1 << 17  #: pairs in no block that are looked at one by one


@dataclass(frozen=True)
class Recipe:
    """Maps that move pairs to the place y, 2^e apart."""

    place: float
    exponent: int


@dataclass(frozen=True)
class Grid:
    """The maps w = 2^weight, b = k·2^exponent for |k| ≤ count."""

    weight: int
    exponent: int
    count: int


@dataclass(frozen=True)
class Blocks:
    """What recipes leave: `pairs` (indices) in no block; more than were listed when `overflow`."""

    inputs: int
    pairs: NDArray[np.int64]
    overflow: bool


def in_no_block(setting: Setting, recipes: Sequence[Recipe]) -> Blocks:
    """The pairs of inputs that no block of the recipes holds."""
    ctx, fmt = setting.context, setting.context.format
    if not listed(fmt):
        raise Unsupported(f"the values of {fmt} are too many to list as float64 numbers")
    x = _inputs(setting)
    low, high = allowed_by_index(setting.implementation, ctx)
    least, most = _tables(low[:-1], high[:-1])
    which = {Reading.ANY: 0, Reading.FINITE_ON_PAIR: 1, Reading.FINITE_ON_DOMAIN: 2}[setting.reading]
    scales = max(1, int(np.ceil(np.log2(max(len(x) - 1, 2)))))
    given = np.array([(r.place, r.exponent) for r in recipes], np.float64)
    rights = np.zeros((len(recipes), scales, len(x)), np.int32)
    lefts = np.zeros_like(rights)
    parameters, casting = kernel.parameters(ctx), kernel.parameters(ctx, float64)
    _find(
        x, given, which, fmt.emax, parameters, casting, fmt.emin, fmt.fraction_bits, offset(fmt), low, high, least,
        most, lefts, rights,
    )  # fmt: skip
    found = np.zeros((MOST_OPEN, 2), np.int64)
    count = int(_uncovered(len(x), lefts, rights, found))
    return Blocks(len(x), found[: min(count, MOST_OPEN)], count > MOST_OPEN)


def not_joined(setting: Setting, pairs: NDArray[np.int64], grids: Sequence[Grid]) -> NDArray[np.int64]:
    """The pairs (indices) that the maps of the grids leave to some implementation."""
    ctx, fmt = setting.context, setting.context.format
    low, high = allowed_by_index(setting.implementation, ctx)
    which = {Reading.ANY: 0, Reading.FINITE_ON_PAIR: 1, Reading.FINITE_ON_DOMAIN: 2}[setting.reading]
    maps = []
    for g in grids:
        w, step = np.ldexp(1.0, g.weight), np.ldexp(1.0, g.exponent)
        biases = np.arange(-g.count, g.count + 1) * step
        parameters = np.append(w, biases)
        rounded = parameters.copy()
        _cast(rounded, kernel.parameters(ctx, float64))
        good = np.isfinite(rounded) & (rounded == parameters)  # values of the format
        if good[0]:
            maps.append(np.stack([np.full(int(good[1:].sum()), w), biases[good[1:]]]))
    if not maps or not len(pairs):
        return pairs
    left: NDArray[np.int64] = pairs[
        _joined_apart(
            _inputs(setting), pairs, np.ascontiguousarray(np.concatenate(maps, axis=1)), which, kernel.parameters(ctx),
            fmt.emin, fmt.fraction_bits, offset(fmt), low, high,
        )
        == 0
    ]  # fmt: skip
    return left


def _inputs(setting: Setting) -> NDArray[np.float64]:
    x = from_ordinals(setting.context.format, np.arange(setting.low.ordinal, setting.high.ordinal + 1))
    return np.ascontiguousarray(x)


def _tables(low: NDArray[np.int64], high: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Least `low` and greatest `high` of every 2^level consecutive places."""
    levels = max(1, len(low).bit_length())
    least, most = np.tile(low, (levels, 1)), np.tile(high, (levels, 1))
    for level in range(1, levels):
        half, size = 1 << (level - 1), len(low) - (1 << level) + 1
        if size > 0:
            least[level, :size] = np.minimum(least[level - 1, :size], least[level - 1, half : half + size])
            most[level, :size] = np.maximum(most[level - 1, :size], most[level - 1, half : half + size])
    return least, most


@jit
def _cast(x: Any, k: Any) -> None:
    for i in range(x.size):
        x[i] = kernel.cast(x[i], k)


@jit
def _exponent(x: float) -> int:
    return int(np.floor(np.log2(x)))


@jit
def _fits(a: int, b: int, threshold: int, below: bool, least: Any, most: Any) -> bool:
    """All sets allowed at the places a…b are below the threshold, or (not below) at or above it."""
    if a > b:
        a, b = b, a
    level = 0
    while (2 << level) <= b - a + 1:
        level += 1
    second = b - (1 << level) + 1
    if below:
        return max(most[level, a], most[level, second]) < threshold
    return min(least[level, a], least[level, second]) >= threshold


@jit
def _place(x: float, w: float, b: float, which: int, k: Any, emin: int, fraction_bits: int, shift: int) -> int:
    """The place of w⊗x⊕b, or −1 where the reading or NaN forbids it."""
    product = kernel.mul(w, x, k)
    y = kernel.add(product, b, k)
    if y != y or (which > 0 and not (np.isfinite(product) and np.isfinite(y))):
        return -1
    return index_of(y, emin, fraction_bits, shift)


@jit
def _step(distance: int) -> int:
    """Between the i that are tried for a distance."""
    return max(1, min(distance >> 1, 64))


@jit
def _find(
    x: Any, recipes: Any, which: int, emax: int, k: Any, casting: Any, emin: int, fraction_bits: int, shift: int,
    low: Any, high: Any, least: Any, most: Any, lefts: Any, rights: Any,
) -> None:  # fmt: skip
    """lefts, rights: for recipe, scale and i the ends of the block, rights 0 where there is none."""
    n = x.size
    reach = max(abs(x[0]), abs(x[n - 1]))
    for r in range(recipes.shape[0]):
        for scale in range(rights.shape[1]):
            distance = 1 << scale
            for i in range(0, n - distance, _step(distance)):
                j = i + distance
                far = reach if which == 2 else max(abs(x[i]), abs(x[j]))
                top = min(emax, emax - 1 - _exponent(far))
                exponent = min(int(recipes[r, 1]) - _exponent(x[j] - x[i]), top)
                if exponent < emin - fraction_bits:
                    continue
                w = np.ldexp(1.0, exponent)
                b = kernel.cast(recipes[r, 0] - w * (x[i] + 0.5 * (x[j] - x[i])), casting)
                if not np.isfinite(b):
                    continue
                if which == 2 and (
                    _place(x[0], w, b, which, k, emin, fraction_bits, shift) < 0
                    or _place(x[n - 1], w, b, which, k, emin, fraction_bits, shift) < 0
                ):
                    continue
                u = _place(x[i], w, b, which, k, emin, fraction_bits, shift)
                v = _place(x[j], w, b, which, k, emin, fraction_bits, shift)
                if u < 0 or v < 0:
                    continue
                if high[u] < low[v]:
                    threshold, rising = low[v], True
                elif high[v] < low[u]:
                    threshold, rising = low[u], False
                else:
                    continue
                good, bad = i, -1  # the least l
                while good - bad > 1:
                    middle = (good + bad) // 2
                    at = _place(x[middle], w, b, which, k, emin, fraction_bits, shift)
                    if at >= 0 and _fits(at, u, threshold, rising, least, most):
                        good = middle
                    else:
                        bad = middle
                lefts[r, scale, i] = good
                good, bad = j, n
                while bad - good > 1:
                    middle = (good + bad) // 2
                    at = _place(x[middle], w, b, which, k, emin, fraction_bits, shift)
                    if at >= 0 and _fits(at, v, threshold, not rising, least, most):
                        good = middle
                    else:
                        bad = middle
                rights[r, scale, i] = good


@jit
def _uncovered(n: int, lefts: Any, rights: Any, found: Any) -> int:
    """Pairs (y, y′) in none of the blocks looked at: for each distance those with i next to y or j next to y′."""
    count = 0
    for y in range(n - 1):
        at = y + 1
        while at < n:
            moved = False
            for r in range(rights.shape[0]):
                for scale in range(rights.shape[1]):
                    distance = 1 << scale
                    step = _step(distance)
                    first = (y + step - 1) // step * step
                    last = (min(at, n - 1) - distance) // step * step
                    for t in range(6):
                        i = first + t * step if t < 3 else last - (t - 3) * step
                        if i < y or i + distance > at or i + distance >= n:
                            continue
                        right = rights[r, scale, i]
                        if right >= at and lefts[r, scale, i] <= y:
                            at = right + 1
                            moved = True
            if at < n and not moved:
                if count < found.shape[0]:
                    found[count, 0], found[count, 1] = y, at
                count += 1
                at += 1
                if count > found.shape[0]:
                    return count
    return count


@jit
def _joined_apart(
    x: Any, pairs: Any, maps: Any, which: int, k: Any, emin: int, fraction_bits: int, shift: int, low: Any, high: Any
) -> Any:
    """1 for each pair that the maps join to two places with disjoint sets."""
    told = np.zeros(pairs.shape[0], np.uint8)
    root = np.arange(low.size)
    left_low, left_high = low.copy(), high.copy()
    touched = np.zeros(2 * maps.shape[1], np.int64)
    for p in range(pairs.shape[0]):
        count = 0
        for m in range(maps.shape[1]):
            w, b = maps[0, m], maps[1, m]
            if which == 2 and (
                _place(x[0], w, b, which, k, emin, fraction_bits, shift) < 0
                or _place(x[x.size - 1], w, b, which, k, emin, fraction_bits, shift) < 0
            ):
                continue
            u = _place(x[pairs[p, 0]], w, b, which, k, emin, fraction_bits, shift)
            v = _place(x[pairs[p, 1]], w, b, which, k, emin, fraction_bits, shift)
            if u < 0 or v < 0 or u == v:
                continue
            touched[count], touched[count + 1] = u, v
            count += 2
            while root[u] != u:
                u = root[u]
            while root[v] != v:
                v = root[v]
            if u == v:
                continue
            root[v] = u
            left_low[u], left_high[u] = max(left_low[u], left_low[v]), min(left_high[u], left_high[v])
            if left_low[u] > left_high[u]:
                told[p] = 1
                break
        for c in range(count):
            i = touched[c]
            root[i], left_low[i], left_high[i] = i, low[i], high[i]
    return told
