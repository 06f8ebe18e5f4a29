"""Sets of outcomes by compiled loops: the values of every state of a family, each with the two that it came from.

The same sets as `fpsmt.networks.outcomes` builds from exact scalars, on carriers: NaN is one value, the zeros are two.
A state is a multiset Σ cᵢ·radix[i], or an interval of leaves i·(n+1) + j.  Its values lie side by side in one pool;
each remembers the places of its operands there, so that a schedule is read off without searching.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import Unsupported
from fpsmt.floats.compiled import add, add_products, fma
from fpsmt.floats.machine import bits_of, jit
from fpsmt.networks import subset_tables as kernels
from fpsmt.networks.subset_tables import FUSE_LEFT, FUSE_RIGHT, PAIR, PLAIN, threaded
from fpsmt.networks.trees import Tree

Array = NDArray[Any]

MOST_ADDITIONS = 3_000_000_000  #: of one sum; half a minute
MOST_VALUES = 1 << 24  #: of all states together
FULL, LONG, STOPPED = -1, -2, -3  #: why a kernel gave up


@jit
def _insert(value: float, a: int, b: int, how: int, pool: Any, size: int, slots: Any, stamp: int) -> int:
    """Adds a value to the state whose values are stamped in the hash table `slots`; the new size, or FULL."""
    if math.isnan(value):
        value = math.nan
    code = bits_of(value)
    mask = np.uint64(len(slots) - 1)
    at = ((code * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    while slots[at]["stamp"] == stamp:
        if slots[at]["code"] == code:
            return size
        at = (at + np.uint64(1)) & mask
    if size >= len(pool):
        return -1
    slots[at]["stamp"] = stamp
    slots[at]["code"] = code
    pool[size]["value"] = value
    pool[size]["left"] = a
    pool[size]["right"] = b
    pool[size]["how"] = how
    return size + 1


@jit
def _combine(
    i: int, a_from: int, a_to: int, j: int, b_from: int, b_to: int, pool: Any, size: int, slots: Any, stamp: int,
    leaf: Any, mode: int, k: Any, kf: Any, kp: Any,
) -> int:  # fmt: skip
    """Adds the values of a node over A and B (leaf i and j, or −1) to the state being built."""
    for how in range(4):
        if not kernels.allowed(how, i, j, leaf, mode):
            continue
        for x in range(a_from, a_to):
            for y in range(b_from, b_to):
                a, b = pool[x]["value"], pool[y]["value"]
                if how == PLAIN:
                    v = add(a, b, k)
                elif how == FUSE_LEFT:
                    v = fma(leaf[i, kernels.WL], leaf[i, kernels.XL], b, kf)
                elif how == FUSE_RIGHT:
                    v = fma(leaf[j, kernels.WL], leaf[j, kernels.XL], a, kf)
                else:
                    v = add_products(
                        leaf[i, kernels.WL], leaf[i, kernels.XL], leaf[j, kernels.WL], leaf[j, kernels.XL], kp
                    )  # fmt: skip
                size = _insert(v, x, y, how, pool, size, slots, stamp)
                if size < 0 or 2 * (size - slots[0]["start"]) > len(slots):
                    return -1
    return size


@threaded
def multisets(
    stop: Any, radix: Any, counts: Any, folds: bool, start: Any, pool: Any, slots: Any,
    leaf: Any, mode: int, k: Any, kf: Any, kp: Any, limit: int,
) -> int:  # fmt: skip
    """Fills the pool; start[s] … start[s+1] are the places of state s.  The number of values, or why it gave up."""
    kinds = counts.size
    digit = np.zeros(kinds, np.int64)
    part = np.zeros(kinds, np.int64)
    size, work = 0, 0
    start[0] = start[1] = 0
    for s in range(1, start.size - 1):
        if stop[0]:
            return -3
        i = 0
        while digit[i] == counts[i]:
            digit[i] = 0
            i += 1
        digit[i] += 1
        start[s] = size
        slots[0]["start"] = size
        single = kernels._single(s, radix)
        if single >= 0:
            size = _insert(leaf[single, kernels.LOW], -1, -1, 0, pool, size, slots, s)
            start[s + 1] = size
            continue
        part[:] = 0
        a, i = 0, -1
        while True:
            if folds:  # one part is a single term
                i += 1
                while i < kinds and digit[i] == 0:
                    i += 1
                if i >= kinds:
                    break
                a = radix[i]
            else:
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
            if b == 0 or (a > b and not folds):
                continue
            work += (start[a + 1] - start[a]) * (start[b + 1] - start[b])
            if work > limit:
                return -2
            size = _combine(
                kernels._single(a, radix), start[a], start[a + 1], kernels._single(b, radix), start[b], start[b + 1],
                pool, size, slots, s, leaf, mode, k, kf, kp,
            )  # fmt: skip
            if size < 0:
                return -1
        start[s + 1] = size
    return size


@threaded
def intervals(
    stop: Any, start: Any, end: Any, pool: Any, slots: Any,
    leaf: Any, mode: int, k: Any, kf: Any, kp: Any, limit: int,
) -> int:  # fmt: skip
    """The same for every parenthesisation: start[s] … end[s] are the places of state s = i·(n+1) + j."""
    n = leaf.shape[0]
    row = n + 1
    size, work = 0, 0
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            if stop[0]:
                return -3
            s = i * row + i + length
            start[s] = size
            slots[0]["start"] = size
            if length == 1:
                size = _insert(leaf[i, kernels.LOW], -1, -1, 0, pool, size, slots, s)
            for cut in range(i + 1, i + length):
                a, b = i * row + cut, cut * row + i + length
                work += (end[a] - start[a]) * (end[b] - start[b])
                if work > limit:
                    return -2
                size = _combine(
                    i if cut == i + 1 else -1, start[a], end[a], cut if cut == i + length - 1 else -1, start[b], end[b],
                    pool, size, slots, s, leaf, mode, k, kf, kp,
                )  # fmt: skip
                if size < 0:
                    return -1
            end[s] = size
    return size


POOL = np.dtype([("value", "f8"), ("left", "i8"), ("right", "i8"), ("how", "i8")])
SLOT = np.dtype([("code", "u8"), ("stamp", "i8"), ("start", "i8")])


class OutcomeSet:
    """The values of the whole sum, and a schedule for each."""

    def __init__(self, rows: Array, rules: tuple[Any, ...], pools: list[list[int]], kind: str) -> None:
        """`rows` are the kinds of leaves (`subset_tables.LEAF`), `pools` the terms of each; `kind` is ``any``,
        ``sequential`` or ``contiguous``."""
        self.pools, self.mode = pools, int(rules[0])
        counts = np.array([len(p) for p in pools], dtype=np.int64)
        radix = np.cumprod([1, *(counts[:-1] + 1)]).astype(np.int64)
        states = (len(pools) + 1) ** 2 if kind == "contiguous" else math.prod(int(c) + 1 for c in counts)
        if states > MOST_VALUES:
            raise Unsupported(f"the exact set of outcomes needs more than {MOST_VALUES} sets of terms")
        capacity, width = 1 << 16, 1 << 14
        while True:
            self.pool = np.zeros(capacity, POOL)
            slots = np.zeros(width, SLOT)
            slots["stamp"] = -1
            if kind == "contiguous":
                start, end = np.zeros(states, np.int64), np.zeros(states, np.int64)
                size = kernels.interruptible(intervals, start, end, self.pool, slots, rows, *rules, MOST_ADDITIONS)
                whole = len(pools)
                self.first, self.last = start[whole], end[whole]
                singles = {int(start[i * (len(pools) + 1) + i + 1]): i for i in range(len(pools))}
            else:
                start = np.zeros(states + 1, np.int64)
                size = kernels.interruptible(
                    multisets, radix, counts, kind == "sequential", start, self.pool, slots, rows, *rules,
                    MOST_ADDITIONS,
                )  # fmt: skip
                self.first, self.last = start[states - 1], start[states]
                singles = {int(start[r]): i for i, r in enumerate(radix.tolist())}
            if size >= 0:
                break
            if size == LONG:
                raise Unsupported(f"the exact set of outcomes needs more than {MOST_ADDITIONS} additions")
            if capacity >= MOST_VALUES:
                raise Unsupported(f"the exact set of outcomes needs more than {MOST_VALUES} values of partial sums")
            capacity, width = 4 * capacity, 4 * width
        self.singles = singles

    @property
    def values(self) -> Array:
        """Carriers of the accumulator, in the order in which they were found."""
        return self.pool["value"][self.first : self.last]

    def schedule(self, which: int) -> Tree:
        """A schedule for a value, by its place in `values`; no recursion."""
        pools = [list(p) for p in self.pools]
        todo: list[tuple[int, bool]] = [(int(self.first) + which, False)]
        done: list[Tree] = []
        while todo:
            at, ready = todo.pop()
            if at in self.singles:
                done.append(pools[self.singles[at]].pop(0))
                continue
            _, left, right, how = self.pool[at].tolist()
            if not ready:
                todo += [(at, True), (right, False), (left, False)]
                continue
            b, a = done.pop(), done.pop()
            if self.mode == kernels.EXACT or how in (PLAIN, PAIR):
                done.append((a, b))
            else:
                done.append(("fma", a, b) if how == FUSE_LEFT else ("fma", b, a))
        return done[0]


