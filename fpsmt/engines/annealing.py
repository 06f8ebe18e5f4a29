"""Search for a summation tree whose result is as large, or as small, as possible: simulated annealing over all trees.

A move takes a subtree out and puts it in somewhere else, or changes what a node fuses.  Compiled; nothing here is
trusted: a tree counts when the reference interpreter has run it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.floats import compiled
from fpsmt.floats.compiled import parameters
from fpsmt.floats.machine import jit
from fpsmt.floats.rounding import Context
from fpsmt.networks.sums import SumFormats
from fpsmt.networks.trees import Tree

Array = NDArray[np.float64]

NEVER, ANY, ALWAYS, EXACT = 0, 1, 2, 3  #: what nodes with products may do
RULES = {"never": NEVER, "any": ANY, "always": ALWAYS}


@dataclass(frozen=True)
class Leaves:
    """The leaves of one sum: `values` in the accumulator, of which the first `products` are products w·x."""

    values: Array
    products: int
    weights: Array
    factors: Array


@dataclass(frozen=True)
class Nodes:
    """How nodes compute: the accumulator, the formats of the factors, and one of NEVER, ANY, ALWAYS, EXACT."""

    acc: Context
    formats: SumFormats
    rule: int

    @property
    def kernels(self) -> tuple[Any, Any, Any]:
        w, x, fmt = self.formats.weights, self.formats.terms, self.acc.format
        return (
            parameters(self.acc),
            parameters(self.acc, (w, x, fmt)),
            parameters(self.acc, (w, x, w, x)),
        )


def anneal(leaves: Leaves, nodes: Nodes, sign: float, moves: int, seed: int) -> tuple[Tree, float]:
    """A tree over the leaves 0…m−1 (m ≥ 2, all finite) that makes sign × result large, and the result.

    Leaves that are zero products are left out of the search and joined to its tree at the end, where they do nothing.
    """
    count = len(leaves.values)
    dead = [k for k in range(leaves.products) if leaves.weights[k] == 0 or leaves.factors[k] == 0]
    live = [k for k in range(count) if k not in set(dead)]
    if len(live) < 2:
        live, dead = list(range(count)), []
    m, products = len(live), sum(k < leaves.products for k in live)
    pick = np.array(live)
    padded_w, padded_x = np.zeros(m), np.zeros(m)
    padded_w[:products] = leaves.weights[pick[:products]]
    padded_x[:products] = leaves.factors[pick[:products]]
    left, right, how = (np.full(2 * m - 1, -1, np.int64) for _ in range(3))
    value = _anneal(
        leaves.values[pick].astype(np.float64), padded_w, padded_x, products, nodes.rule, *nodes.kernels,
        sign, moves, seed, left, right, how,
    )  # fmt: skip
    tree = _tree(left, right, how, live)
    for k in dead:
        fuse = nodes.rule == ALWAYS
        tree = ("fma", k, tree) if fuse else (tree, k)
    return tree, float(value)


def _tree(left: NDArray[np.int64], right: NDArray[np.int64], how: NDArray[np.int64], names: list[int]) -> Tree:
    """The nested tuple of the arrays; the root is the last node."""
    m = len(names)
    made: list[Any] = [*names, *[None] * (m - 1)]
    todo = [2 * m - 2]
    while todo:
        node = todo[-1]
        a, b = int(left[node]), int(right[node])
        waiting = [k for k in (a, b) if made[k] is None]
        if waiting:
            todo += waiting
            continue
        todo.pop()
        made[node] = {0: (made[a], made[b]), 1: ("fma", made[a], made[b]), 2: ("fma", made[b], made[a])}[int(how[node])]
    return made[2 * m - 2]  # type: ignore[no-any-return]


@jit
def _fusing(a: int, b: int, products: int, rule: int, wish: int) -> int:
    """0: rounds each child first; 1 or 2: fuses the left or right child, a product.  3: two exact products."""
    one, two = a < products, b < products
    if rule == 0 or not (one or two):
        return 0
    if rule == 3:
        return 3 if one and two else 1 if one else 2
    if rule == 1:
        return 1 if wish == 1 and one else 2 if wish == 2 and two else 0
    if one and two:
        return 1 if wish == 1 else 2
    return 1 if one else 2


@jit
def _value(
    node: int, left: Any, right: Any, wish: Any, values: Any, w: Any, x: Any, products: int, rule: int,
    add: Any, fma: Any, pairs: Any,
) -> float:  # fmt: skip
    a, b = left[node], right[node]
    way = _fusing(a, b, products, rule, wish[node])
    if way == 0:
        return compiled.add(values[a], values[b], add)  # type: ignore[no-any-return]
    if way == 1:
        return compiled.fma(w[a], x[a], values[b], fma)  # type: ignore[no-any-return]
    if way == 2:
        return compiled.fma(w[b], x[b], values[a], fma)  # type: ignore[no-any-return]
    return compiled.add_products(w[a], x[a], w[b], x[b], pairs)  # type: ignore[no-any-return]


@jit
def _anneal(
    leaves: Any, w: Any, x: Any, products: int, rule: int, add: Any, fma: Any, pairs: Any,
    sign: float, moves: int, seed: int, out_left: Any, out_right: Any, out_how: Any,
) -> float:  # fmt: skip
    np.random.seed(seed)
    m = leaves.size
    nodes = 2 * m - 1
    left, right, parent = np.full(nodes, -1), np.full(nodes, -1), np.full(nodes, -1)
    wish, values = np.zeros(nodes, np.int64), np.empty(nodes)
    values[:m] = leaves
    order = np.argsort(-sign * leaves)
    node = order[0]
    for k in range(1, m):
        top = m + k - 1
        left[top], right[top] = node, order[k]
        parent[node], parent[order[k]] = top, top
        values[top] = _value(top, left, right, wish, values, w, x, products, rule, add, fma, pairs)
        node = top
    root = node
    best_left, best_right, best_wish, best_root = left.copy(), right.copy(), wish.copy(), root
    score = best = sign * values[root]
    scale = 0.0
    for k in range(m):
        scale += abs(leaves[k])
    heat = 0.08 * math.ldexp(0.5 * scale, 1 - add.precision)
    changed, before = np.empty(4 * nodes, np.int64), np.empty(4 * nodes)
    for move in range(moves):
        if math.isnan(score) or math.isinf(score):
            break
        warm = heat * (1.0 - move / moves) + 1e-300
        count = 0
        if (rule == 1 or rule == 2) and np.random.random() < 0.25:
            node = m + np.random.randint(m - 1)
            old = wish[node]
            wish[node] = np.random.randint(3)
            at = node
            while at != -1:
                new = _value(at, left, right, wish, values, w, x, products, rule, add, fma, pairs)
                if new == values[at]:
                    break
                changed[count], before[count] = at, values[at]
                count += 1
                values[at] = new
                at = parent[at]
            new_score = sign * values[root]
            if new_score >= score or np.random.random() < math.exp((new_score - score) / warm):
                score = new_score
            else:
                wish[node] = old
                for k in range(count - 1, -1, -1):
                    values[changed[k]] = before[k]
        else:
            node = np.random.randint(nodes)
            place = np.random.randint(nodes)
            joint = parent[node]
            if joint == -1 or place in (joint, node):
                continue
            sibling = right[joint] if left[joint] == node else left[joint]
            if place == sibling:
                continue
            at = place
            while at != -1 and at != node:
                at = parent[at]
            if at == node:
                continue
            old_root, above = root, parent[joint]
            # out
            parent[sibling] = above
            if above == -1:
                root = sibling
            elif left[above] == joint:
                left[above] = sibling
            else:
                right[above] = sibling
            # in
            over = parent[place]
            old_left, old_right = left[joint], right[joint]
            left[joint], right[joint] = place, node
            parent[joint], parent[place] = over, joint
            if over == -1:
                root = joint
            elif left[over] == place:
                left[over] = joint
            else:
                right[over] = joint
            for start in (above, joint):
                at = start
                while at != -1:
                    new = _value(at, left, right, wish, values, w, x, products, rule, add, fma, pairs)
                    if new == values[at] and at != joint:  # what is above a joint has a new child in any case
                        break
                    changed[count], before[count] = at, values[at]
                    count += 1
                    values[at] = new
                    at = parent[at]
            new_score = sign * values[root]
            if new_score >= score or np.random.random() < math.exp((new_score - score) / warm):
                score = new_score
            else:
                for k in range(count - 1, -1, -1):
                    values[changed[k]] = before[k]
                # out again
                parent[place] = over
                if over != -1:
                    if left[over] == joint:
                        left[over] = place
                    else:
                        right[over] = place
                # back in
                left[joint], right[joint] = old_left, old_right
                parent[sibling], parent[joint] = joint, above
                if above != -1:
                    if left[above] == sibling:
                        left[above] = joint
                    else:
                        right[above] = joint
                root = old_root
        if score > best:
            best, best_root = score, root
            best_left[:], best_right[:], best_wish[:] = left, right, wish
    # the root last: exchange two names where it is not
    for node in range(m, nodes):
        name = best_root if node == nodes - 1 else nodes - 1 if node == best_root else node
        a, b = best_left[name], best_right[name]
        way = _fusing(a, b, products, rule, best_wish[name])
        out_how[node] = 0 if way == 3 or rule == 3 else way
        out_left[node] = nodes - 1 if a == best_root else best_root if a == nodes - 1 else a
        out_right[node] = nodes - 1 if b == best_root else best_root if b == nodes - 1 else b
    return sign * best
