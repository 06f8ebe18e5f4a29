"""The tables behind `fpsmt.networks.extremes`, one for each order family: states, their extremes, their splits."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Format, Mode, Subnormals, float32, float64, pow2
from fpsmt.floats.compiled import parameters
from fpsmt.floats.wide import Parameters
from fpsmt.networks import subset_tables as kernels
from fpsmt.networks.orders import AnyOrder, Contiguous, Depth, FixedOrder, Order, Sequential
from fpsmt.networks.trees import steps

Array = NDArray[Any]
Lookup = tuple[Array, Array, Array, Array]

MOST_SPLITS = 30_000_000_000  #: splits of one sum; about a minute on two cores
MOST_STATES = 1 << 24  #: entries of one table
THREADS = 2


@dataclass(frozen=True)
class Leaves:
    """Leaves as rows of numbers (`subset_tables.LEAF`), which of them are equal, and the rules of their additions."""

    rows: NDArray[np.float64]
    kinds: list[int]  #: leaf → the first leaf that is equal
    mode: int
    acc: Context
    k: Any
    kf: Any
    kp: Any


def factor_parameters(acc: Context, formats: set[Format], addend: bool) -> Parameters:
    """Parameters that serve factors of any of these formats, for an fma (`addend`: of the accumulator's format) or a
    sum of two products.  Operands that the context flushes have to be flushed beforehand."""
    last = (acc.format,) if addend else ()
    found = [parameters(acc, (w, x, *last) if addend else (w, x, w, x)) for w in formats for x in formats]
    k = max(found, key=lambda p: p.path)
    return k._replace(tiny0=0.0, tiny1=0.0) if addend else k._replace(tiny0=0.0, tiny1=0.0, tiny2=0.0, tiny3=0.0)


class Table:
    """States of a family, the extremes of each, and the ways to split one."""

    leaf: NDArray[np.float64]
    splits: int = 0

    def ends(self, state: int) -> tuple[float, float, bool]:
        """(least, greatest, NaN?)"""
        _, low, high, nan = self.lookup(np.array([state]))
        return float(low[0]), float(high[0]), bool(nan[0])

    def lookup(self, states: Array) -> Lookup:
        """(row of the leaf or −1, least, greatest, NaN) of each state."""
        raise NotImplementedError

    def candidates(self, state: int) -> tuple[Array, Array]:
        """The splits of a state into two."""
        raise NotImplementedError

    def pools(self) -> dict[int, list[int]]:
        """The terms that each row of `leaf` stands for."""
        raise NotImplementedError

    def infinite(self) -> bool:
        """Is an end of any state infinite?"""
        raise NotImplementedError


class Stored(Table):
    """A table in three arrays, over some leaves in some order."""

    def __init__(self, leaves: Leaves, use: list[int], size: int, singles: Array) -> None:
        if size > MOST_STATES:
            raise Unsupported(f"the extremes of {len(use)} terms need a table of {size:.1e} entries: use the bracket")
        self.use = use
        self.leaf = np.ascontiguousarray(leaves.rows[use])
        self.singles = singles  # the state of each leaf
        self.low, self.high = np.full(size, math.nan), np.full(size, math.nan)
        self.nan = np.full(size, 2, np.uint8)
        self.low[singles], self.high[singles] = self.leaf[:, kernels.LOW], self.leaf[:, kernels.HIGH]
        self.nan[singles] = self.leaf[:, kernels.NAN]
        self.rules = (leaves.mode, leaves.k, leaves.kf, leaves.kp)

    def kind(self, states: Array) -> Array:
        """The leaf of each state, or −1."""
        order = np.argsort(self.singles)
        at = np.minimum(np.searchsorted(self.singles, states, sorter=order), len(order) - 1)
        leaf = order[at]
        return np.where(self.singles[leaf] == states, leaf, -1).astype(np.int64)

    def lookup(self, states: Array) -> Lookup:
        return self.kind(states), self.low[states], self.high[states], self.nan[states] == 1

    def pools(self) -> dict[int, list[int]]:
        return {i: [leaf] for i, leaf in enumerate(self.use)}

    def infinite(self) -> bool:
        return bool(np.isinf(self.low).any() or np.isinf(self.high).any())


class WithLast(Table):
    """A table with the bias added at the very end: state −1 is the whole, −2 the bias."""

    def __init__(self, leaves: Leaves, inner: Table, root: int, bias: int) -> None:
        self.inner, self.root, self.bias = inner, root, bias
        self.splits = inner.splits + 1
        self.leaf = np.concatenate([inner.leaf, leaves.rows[[bias]]])
        row = self.leaf[-1]
        self.last = (len(self.leaf) - 1, row[kernels.LOW], row[kernels.HIGH], row[kernels.NAN] == 1.0)
        at, low, high, nan = (each[0] for each in inner.lookup(np.array([root])))
        self.whole = kernels.node(
            int(at), low, high, bool(nan), *self.last, self.leaf, leaves.mode, leaves.k, leaves.kf, leaves.kp
        )

    def lookup(self, states: Array) -> Lookup:
        found = [
            (-1, *self.whole) if s == -1 else self.last if s == -2 else [e[0] for e in self.inner.lookup(np.array([s]))]
            for s in states.tolist()
        ]
        kind, low, high, nan = zip(*found)
        return np.array(kind), np.array(low), np.array(high), np.array(nan, dtype=bool)

    def candidates(self, state: int) -> tuple[Array, Array]:
        if state == -1:
            return np.array([self.root]), np.array([-2])
        return self.inner.candidates(state)

    def pools(self) -> dict[int, list[int]]:
        return {**self.inner.pools(), len(self.leaf) - 1: [self.bias]}

    def infinite(self) -> bool:
        return self.inner.infinite() or bool(np.isinf([*self.whole[:2], *self.last[1:3]]).any())


# -- every tree ---------------------------------------------------------------------------------------------


def _parts(state: int) -> Array:
    """All subsets of a bit mask, ascending."""
    found = np.zeros(1, np.int64)
    bit = 1
    while bit <= state:
        if state & bit:
            found = np.concatenate([found, found | bit])
        bit <<= 1
    return found


def _levels(n: int) -> list[Array]:
    """The bit masks of 2, 3, …, n elements."""
    masks = np.arange(1 << n, dtype=np.int64)
    sizes = np.zeros(1 << n, np.uint8)
    for i in range(n):
        sizes[1 << i : 2 << i] = sizes[: 1 << i] + np.uint8(1)
    return [masks[sizes == size] for size in range(2, n + 1)]


def _halves(work: Callable[[int, int], None], size: int) -> None:
    """Runs work(start, stop) over a range, on two threads when it is long."""
    if size < 64:
        work(0, size)
        return
    cuts = [size * i // (8 * THREADS) for i in range(8 * THREADS + 1)]
    with ThreadPoolExecutor(THREADS) as pool:
        parts = [pool.submit(work, a, b) for a, b in pairwise(cuts)]
        try:
            for part in parts:
                part.result()
        except BaseException:  # an interrupt or a time limit: only what is running is waited for
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class Subsets(Stored):
    """Every tree over sets of terms, as bit masks; with `height`, every tree of at most that height.

    States of the bounded form are mask + height·2ⁿ.
    """

    def __init__(self, leaves: Leaves, use: list[int], height: int | None = None) -> None:
        n = len(use)
        self.n, self.height = n, height
        levels = 1 if height is None else height + 1
        _affordable(3**n // 2 * (1 if height is None else height), n)
        super().__init__(leaves, use, levels << n, np.array([1 << i for i in range(n)], dtype=np.int64))
        self.splits = 3**n // 2 * max(1, levels - 1)
        if height is not None:
            self._bounded(height)
        elif not self._finite(leaves):
            self._general()

    def root(self) -> int:
        return (1 << self.n) - 1 + ((self.height or 0) << self.n)

    def kind(self, states: Array) -> Array:
        return super().kind(states & ((1 << self.n) - 1))

    def candidates(self, state: int) -> tuple[Array, Array]:
        mask = state & ((1 << self.n) - 1)
        right = _parts(mask & (mask - 1))[1:]
        left = mask ^ right
        if self.height is not None:
            below = ((state >> self.n) - 1) << self.n
            left, right = left + below, right + below
            there = (self.nan[left] < 2) & (self.nan[right] < 2)
            left, right = left[there], right[there]
        return left, right

    def _hidden(self) -> Array:
        """The leaves that may not be added plainly."""
        return self.singles[(self.leaf[:, kernels.PRODUCT] == 1.0) & (self.rules[0] >= kernels.ALWAYS)]

    def _finite(self, leaves: Leaves) -> bool:
        """Fills the tables if everything is finite; says whether it was."""
        mode, k, kf, kp = self.rules
        rows, acc = self.leaf, leaves.acc
        values = rows[:, [kernels.LOW, kernels.HIGH]]
        products = rows[rows[:, kernels.PRODUCT] == 1.0][:, [kernels.LEAST, kernels.GREATEST, kernels.PRODUCT_NAN]]
        if not np.isfinite(values).all() or rows[:, kernels.NAN].any() or (mode != kernels.NEVER and products.any()):
            return False  # (NaN and infinities are not zero)
        usual = acc.mode is Mode.RNE and acc.subnormals is Subnormals.GRADUAL
        single, double = (usual and _same_numbers(acc, fmt) for fmt in (float32, float64))
        kind = np.float32 if single else np.float64
        low, high = np.zeros(1 << self.n, kind), np.zeros(1 << self.n, kind)
        low[self.singles], high[self.singles] = values[:, 0], values[:, 1]
        hidden = self._hidden()
        low[hidden], high[hidden] = math.inf, -math.inf
        fmt = acc.format
        exact = fmt.largest / fmt.smallest < pow2(52)
        for level in _levels(self.n):
            if single or double:
                _halves(lambda a, b: kernels.native_level(level, a, b, low, high), level.size)  # noqa: B023
            else:
                _halves(lambda a, b: kernels.screened_level(level, a, b, low, high, exact, k), level.size)  # noqa: B023
            if mode != kernels.NEVER:
                _halves(lambda a, b: kernels.fused_level(level, a, b, low, high, rows, mode, kf, kp), level.size)  # noqa: B023
            if not (np.isfinite(low[level]).all() and np.isfinite(high[level]).all()):
                return False
        self.nan[:] = 0
        low[hidden], high[hidden] = values[np.isin(self.singles, hidden)].T
        self.low, self.high = low.astype(np.float64), high.astype(np.float64)
        return True

    def _general(self) -> None:
        mode, k, kf, kp = self.rules
        low, high, nan = self.low, self.high, self.nan
        hidden = self._hidden()
        kept = low[hidden], high[hidden], nan[hidden]
        low[hidden], high[hidden], nan[hidden] = math.nan, math.nan, 2
        for level in _levels(self.n):
            _halves(
                lambda a, b: kernels.general_level(
                    level, a, b, low, high, nan, low, high, nan, self.leaf, mode, k, kf, kp  # noqa: B023
                ),
                level.size,
            )
        low[hidden], high[hidden], nan[hidden] = kept

    def _bounded(self, height: int) -> None:
        mode, k, kf, kp = self.rules
        size, hidden = 1 << self.n, self._hidden()
        shown = [each.reshape(-1, size) for each in (self.low, self.high, self.nan)]
        low, high, nan = (each[0].copy() for each in shown)
        low[hidden], high[hidden], nan[hidden] = math.nan, math.nan, 2
        everything = np.concatenate(_levels(self.n)) if self.n > 1 else np.zeros(0, np.int64)
        for h in range(1, height + 1):
            below = (low, high, nan)
            low, high, nan = (each.copy() for each in below)
            after = (low, high, nan)
            _halves(
                lambda a, b: kernels.general_level(
                    everything, a, b, *below, *after, self.leaf, mode, k, kf, kp  # noqa: B023
                ),
                everything.size,
            )
            for whole, part, first in zip(shown, after, shown):
                whole[h] = part
                whole[h][self.singles] = first[0][self.singles]


def _same_numbers(acc: Context, fmt: Format) -> bool:
    """Finite values of the accumulator are those of the format (zeros count as one)."""
    return (acc.format.precision, acc.format.emin, acc.format.largest) == (fmt.precision, fmt.emin, fmt.largest)


class Multisets(Stored):
    """Every tree over multisets of terms: a state is Σ cᵢ·radix[i] for cᵢ terms of kind i."""

    def __init__(self, leaves: Leaves, use: list[int]) -> None:
        names = [leaves.kinds[i] for i in use]
        kinds = list(dict.fromkeys(names))
        self.counts = np.array([names.count(kind) for kind in kinds], dtype=np.int64)
        self.radix = np.cumprod([1, *(self.counts[:-1] + 1)]).astype(np.int64)
        self.splits = self.work()
        _affordable(40 * self.splits, len(use))
        super().__init__(leaves, kinds, math.prod(int(c) + 1 for c in self.counts), self.radix)
        self.terms = {at: [i for i, name in zip(use, names) if name == kind] for at, kind in enumerate(kinds)}
        self.fill()

    def fill(self) -> None:
        self._run(kernels.pooled_table)

    def _run(self, kernel: Any) -> None:
        tables = (self.low, self.high, self.nan)
        kernels.interruptible(kernel, self.radix, self.counts, *tables, self.leaf, *self.rules)

    def work(self) -> int:
        return _pooled_splits(self.counts)

    def root(self) -> int:
        return len(self.low) - 1

    def pools(self) -> dict[int, list[int]]:
        return {at: list(terms) for at, terms in self.terms.items()}

    def candidates(self, state: int) -> tuple[Array, Array]:
        parts = np.zeros(1, np.int64)
        for radix, count in zip(self.radix.tolist(), self.counts.tolist()):
            digit = state // radix % (count + 1)
            parts = (parts[:, None] + radix * np.arange(digit + 1)).reshape(-1)
        parts = parts[(parts > 0) & (parts < state)]
        return parts, state - parts


def _pooled_splits(counts: Array) -> int:
    return math.prod((int(c) + 1) * (int(c) + 2) // 2 for c in counts)


def _count(splits: int) -> str:
    return f"{splits:.1e}" if splits.bit_length() <= 1000 else f"more than 2^{splits.bit_length() - 1}"


def _affordable(splits: int, n: int) -> None:
    if splits > MOST_SPLITS:
        raise Unsupported(
            f"the exact extremes of {n} terms need {_count(splits)} splits, at most {MOST_SPLITS:.0e} are tried: "
            "use the bracket, or narrow the order family"
        )


# -- narrower families --------------------------------------------------------------------------------------


class Folds(Multisets):
    """Left folds of every permutation, over the same states."""

    def fill(self) -> None:
        self._run(kernels.pooled_folds)

    def work(self) -> int:
        return len(self.counts) * math.prod(int(c) + 1 for c in self.counts)

    def candidates(self, state: int) -> tuple[Array, Array]:
        last = self.radix[state // self.radix % (self.counts + 1) > 0]
        return state - last, last


class Intervals(Stored):
    """Every parenthesisation: state i·(n+1) + j holds the leaves i … j−1."""

    def __init__(self, leaves: Leaves, use: list[int]) -> None:
        n = len(use)
        self.n, self.splits = n, n**3 // 6
        _affordable(20 * self.splits, n)
        super().__init__(leaves, use, (n + 1) ** 2, np.arange(n, dtype=np.int64) * (n + 2) + 1)
        kernels.interruptible(kernels.contiguous_table, self.low, self.high, self.nan, self.leaf, *self.rules)

    def root(self) -> int:
        return self.n

    def candidates(self, state: int) -> tuple[Array, Array]:
        i, j = divmod(state, self.n + 1)
        cuts = np.arange(i + 1, j, dtype=np.int64)
        return i * (self.n + 1) + cuts, cuts * (self.n + 1) + j


class Program(Stored):
    """One tree: state i < n is leaf i, state n + m the m-th addition."""

    def __init__(self, leaves: Leaves, use: list[int], left: Array, right: Array) -> None:
        n = len(use)
        self.n, self.left, self.right, self.splits = n, left, right, left.size
        super().__init__(leaves, use, n + left.size, np.arange(n, dtype=np.int64))
        kernels.program_table(left, right, self.low, self.high, self.nan, self.leaf, *self.rules)

    def root(self) -> int:
        return len(self.low) - 1

    def kind(self, states: Array) -> Array:
        return np.where(states < self.n, states, -1)

    def candidates(self, state: int) -> tuple[Array, Array]:
        return self.left[[state - self.n]], self.right[[state - self.n]]


def program(tree: Any, n: int) -> tuple[Array, Array]:
    """The additions of a tree in order: slots of their operands (a leaf's number, or n + the number of an addition).

    >>> [each.tolist() for each in program(((0, 1), 2), 3)]
    [[0, 3], [1, 2]]
    """
    slot: list[int] = []
    left: list[int] = []
    right: list[int] = []
    for op, a, b in steps(tree):
        if op == "leaf":
            slot.append(a)
        else:
            slot.append(n + len(left))
            left.append(slot[a])
            right.append(slot[b])
    return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)


def family(leaves: Leaves, order: Order, use: list[int]) -> tuple[Table, int]:
    """The table of an order family over these leaves, and its root; `Unsupported` when it would be too large."""
    n = len(use)
    table: Any
    if n == 1 or isinstance(order, FixedOrder):
        tree = order.default_tree(n)
        table = Program(leaves, use, *program(tree, n))
    elif isinstance(order, AnyOrder) or (isinstance(order, Depth) and order.height >= n - 1):
        counts = np.unique([leaves.kinds[i] for i in use], return_counts=True)[1]
        pooled = 8 * _pooled_splits(counts) < 3**n // 2
        table = Multisets(leaves, use) if pooled else Subsets(leaves, use)
    elif isinstance(order, Depth):
        order.default_tree(n)
        table = Subsets(leaves, use, order.height)
    elif isinstance(order, Sequential):
        table = Folds(leaves, use)
    elif isinstance(order, Contiguous):
        table = Intervals(leaves, use)
    else:
        raise UsageError(f"the extremes of the order {order} are not known to this version")
    return table, table.root()
