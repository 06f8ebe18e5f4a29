"""Every affine map at one pair of inputs: do they tell it apart?  For formats of at most 16 bits.

Maps are (w, b) with finite w and b: up to 2^32.  What a map does to the pair depends on w only through the products
p = w⊗x and q = w⊗x′, so that weights with the same products are tried once.  Whether it is admissible also depends on
the products at the domain's ends; where the domain holds 0 these are, for weights of one sign, nearest to zero for the
least |w|, and so are the sums with b nearest to b, on either side of it: every b that is admissible with some weight of
this sign and these products is admissible with the least one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.distinguishability import Map, Reading, Setting
from fpsmt.claims.places import MAX_BITS, allowed_by_index, listed, offset
from fpsmt.errors import UsageError
from fpsmt.floats import Float, exactly
from fpsmt.floats import compiled as kernel
from fpsmt.floats.machine import jit
from fpsmt.floats.vector import arithmetic, values


@jit
def index_of(y: float, emin: int, fraction_bits: int, shift: int) -> int:
    """The place of a value of the format, plus `shift`; NaN is 2·shift + 1."""
    return 2 * shift + 1 if y != y else shift + kernel.ordinal(y, emin, fraction_bits, shift)


@dataclass(frozen=True)
class Products:
    """Weights, one for each different effect: w, the products at x and x′, and at the domain's ends."""

    w: NDArray[np.float64]
    at: NDArray[np.float64]  #: of shape (4, weights): x, x′, low, high

    @classmethod
    def of(cls, setting: Setting, x: Float, y: Float) -> Products:
        fmt = setting.context.format
        if not listed(fmt):
            raise UsageError(f"the affine maps of {fmt} are too many to try: the limit is {MAX_BITS} bits")
        w = values(fmt, finite=True)
        w = w[np.argsort(np.abs(w), kind="stable")]
        points = [float(v) for v in (x, y, setting.low, setting.high)]
        products = arithmetic(setting.context).mul(w[None, :], np.array(points)[:, None])
        if setting.reading is not Reading.ANY:
            asked = products[2:] if setting.reading is Reading.FINITE_ON_DOMAIN else products[:2]
            good = np.isfinite(asked).all(axis=0)
            w, products = w[good], products[:, good]
        key = [np.signbit(w), products[0] + 0.0, products[1] + 0.0]
        if setting.reading is Reading.FINITE_ON_DOMAIN and not float(setting.low) <= 0 <= float(setting.high):
            key += [products[2] + 0.0, products[3] + 0.0]
        rows = np.stack([np.asarray(k, np.float64).view(np.int64) for k in key])
        first = np.unique(rows, axis=1, return_index=True)[1]  # the first of equal ones has the least |w|
        w, products = w[first], products[:, first]
        with np.errstate(invalid="ignore"):
            farthest_first = np.argsort(-np.abs(products[0] - products[1]), kind="stable")  # for short paths
        return cls(w[farthest_first], np.ascontiguousarray(products[:, farthest_first]))


def maps_to_try(setting: Setting, x: Float, y: Float) -> int:
    """How many maps are left after equal effects are merged."""
    return len(Products.of(setting, x, y).w) * len(values(setting.context.format, finite=True))


@dataclass(frozen=True)
class Trial:
    """What the maps do: how many were admissible, and maps that tell the pair apart under every implementation.

    `joined` are the places, as indices, that are joined with another, with the root of each; `low` and `high` the
    places of what an implementation may give on all of the root's set.
    """

    admissible: int
    telling: list[Map] | None
    root: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]

    def values(self) -> dict[int, int]:
        """An implementation that is constant along every map: the index of each joined place → its result's place."""
        size = np.bincount(self.root, minlength=len(self.root))
        return {int(i): int(self.low[self.root[i]]) for i in np.flatnonzero(size[self.root] > 1)}


def try_all(setting: Setting, x: Float, y: Float) -> Trial:
    """Joins the two places of every admissible map, until a set of joined places has no common result.

    A map with equal products, or with equal sums, joins a place with itself.
    """
    ctx, fmt = setting.context, setting.context.format
    products = Products.of(setting, x, y)
    b = values(fmt, finite=True)
    low, high = allowed_by_index(setting.implementation, ctx)
    root = np.arange(len(low), dtype=np.int64)
    left_low, left_high = low.copy(), high.copy()
    edges = np.zeros((len(low), 4), np.int64)
    which = {Reading.ANY: 0, Reading.FINITE_ON_PAIR: 1, Reading.FINITE_ON_DOMAIN: 2}[setting.reading]
    admissible, count, told = _join(
        products.at, b, which, kernel.parameters(ctx), fmt.emin, fmt.fraction_bits, offset(fmt),
        root, left_low, left_high, edges,
    )  # fmt: skip
    telling = None
    if told:
        links = [tuple(int(v) for v in row) for row in edges[:count]]
        telling = [(exactly(fmt, float(products.w[g])), exactly(fmt, float(b[j]))) for g, j in _path(links, low, high)]
    roots = np.array([_root(root, i) for i in range(len(root))], np.int64)
    return Trial(int(admissible), telling, roots, left_low, left_high)


@jit
def _root(root: Any, i: int) -> int:
    while root[i] != i:
        root[i] = root[root[i]]
        i = root[i]
    return i


@jit
def _join(
    at: Any, b: Any, which: int, k: Any, emin: int, fraction_bits: int, shift: int, root: Any, low: Any, high: Any,
    edges: Any,
) -> tuple[int, int, bool]:  # fmt: skip
    """(admissible maps, edges, told apart): an edge (place, place, weight, bias) for each join of two sets."""
    admissible, count = 0, 0
    for g in range(at.shape[1]):
        p, q = at[0, g], at[1, g]
        for j in range(b.size):
            if which == 2 and not (
                np.isfinite(kernel.add(at[2, g], b[j], k)) and np.isfinite(kernel.add(at[3, g], b[j], k))
            ):
                continue
            if p == q:
                admissible += 1
                continue
            u, v = kernel.add(p, b[j], k), kernel.add(q, b[j], k)
            if which == 1 and not (np.isfinite(u) and np.isfinite(v)):
                continue
            admissible += 1
            if u == v:
                continue
            i, h = index_of(u, emin, fraction_bits, shift), index_of(v, emin, fraction_bits, shift)
            first, second = _root(root, i), _root(root, h)
            if first == second:
                continue
            root[second] = first
            low[first] = max(low[first], low[second])
            high[first] = min(high[first], high[second])
            edges[count, 0], edges[count, 1], edges[count, 2], edges[count, 3] = i, h, g, j
            count += 1
            if low[first] > high[first]:
                return admissible, count, True
    return admissible, count, False


def _path(links: list[tuple[int, ...]], low: NDArray[np.int64], high: NDArray[np.int64]) -> list[tuple[int, int]]:
    """(weight, bias) of the links between two places of the last link's set that allow no common result."""
    i, h, g, j = links[-1]
    if max(low[i], low[h]) > min(high[i], high[h]):
        return [(g, j)]
    around: dict[int, list[tuple[int, int, int]]] = {}
    for i, h, g, j in links:
        around.setdefault(i, []).append((h, g, j))
        around.setdefault(h, []).append((i, g, j))
    members, todo = {links[-1][0]}, [links[-1][0]]
    while todo:
        for h, _, _ in around[todo.pop()]:
            if h not in members:
                members.add(h)
                todo.append(h)
    start, end = max(members, key=lambda i: low[i]), min(members, key=lambda i: high[i])
    back: dict[int, tuple[int, int, int]] = {start: (start, -1, -1)}
    queue = [start]
    for i in queue:
        for h, g, j in around[i]:
            if h not in back:
                back[h] = (i, g, j)
                queue.append(h)
    found = []
    while end != start:
        end, g, j = back[end]
        found.append((g, j))
    return found[::-1]
