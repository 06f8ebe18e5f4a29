"""The sums of a layer at one input, and ways to find schedules of them whose results are large or small.

Heuristic; nothing here is trusted.
"""

from __future__ import annotations

from functools import cached_property
from itertools import islice
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.engines.annealing import EXACT, RULES, Leaves, Nodes, anneal
from fpsmt.floats.vector import arithmetic
from fpsmt.networks.executions import Execution
from fpsmt.networks.nodes import Affine
from fpsmt.networks.orders import AnyOrder, Order, Sequential, Union
from fpsmt.networks.sums import SumFormats, evaluate_tree_batch
from fpsmt.networks.trees import Tree

Array = NDArray[np.float64]

MOST_LISTED = 200  #: families with at most this many schedules of a sum are tried whole
MOST_TABLED = 6  #: sums of at most this many terms may be
RANDOM_TREES = 3  #: schedules drawn for all sums of a node in each attempt


def folds(order: Order) -> bool:
    """The family has the left fold of every permutation."""
    if isinstance(order, Union):
        return any(folds(part) for part in order.parts)
    return isinstance(order, AnyOrder | Sequential)


def anneals(how: Execution) -> bool:
    """Every tree is allowed."""
    parts = how.order.parts if isinstance(how.order, Union) else (how.order,)
    return any(isinstance(part, AnyOrder) for part in parts)


def candidates(how: Execution, n: int, bias: bool, rng: Random) -> list[Tree]:
    """All schedules of a short sum, a few random ones of a long one."""
    if n <= MOST_TABLED:
        listed = list(islice(how.schedules(n, bias), MOST_LISTED + 1))
        if len(listed) <= MOST_LISTED:
            return listed
    return [how.random_schedule(n, rng, bias) for _ in range(RANDOM_TREES)]


class Rows:
    """Rows of an affine node with n terms each, at one input."""

    def __init__(self, node: Affine, how: Execution, source: Any, rows: NDArray[np.intp], x: Array) -> None:
        columns = np.array([node.columns(int(i)) for i in rows], dtype=np.intp)
        self.ctx, self.how, self.acc = node.context, how, how.sum_context(node.context)
        self.formats = SumFormats(source, *node.formats)
        self.weights = node.weights[rows[:, None], columns]
        self.x = x[columns]
        self.bias = None if node.bias is None else node.bias[rows]
        self.has_bias, self.n = node.bias is not None, columns.shape[1]
        self.input = x

    @cached_property
    def products(self) -> Array:
        """Every product rounded on its own, in the accumulator: (rows, n)."""
        rounding = self.how.product_context(self.ctx) or self.acc
        out = arithmetic(rounding, (self.formats.weights, self.formats.terms)).mul(self.weights, self.x)
        return out if rounding.format == self.acc.format else arithmetic(self.acc, rounding.format).cast(out)

    @property
    def finite(self) -> bool:
        """No leaf is infinite or NaN."""
        with np.errstate(all="ignore"):
            fine = np.isfinite(self.products).all() and np.isfinite(self.weights * self.x).all()
        return bool(fine and (self.bias is None or np.isfinite(self._bias_in_accumulator()).all()))

    def anneal(self, row: int, sign: float, moves: int, seed: int) -> tuple[Tree, float]:
        """A schedule of one row, among all trees, that makes sign × result large, and the result."""
        values, apart = self.products[row], self.has_bias and self.how.bias == "last"
        if self.has_bias and not apart:
            values = np.append(values, self._bias_in_accumulator()[row])
        rule = EXACT if self.how.products == "exact" else RULES[self.how.fuses(True)]
        leaves = Leaves(values, self.n, self.weights[row], self.x[row])
        tree, value = anneal(leaves, Nodes(self.acc, self.formats, rule), sign, moves, seed)
        if apart:
            tree = (tree, self.n)
            value = float(arithmetic(self.acc).add(value, self._bias_in_accumulator()[row]))
        if self.acc != self.ctx:
            value = float(arithmetic(self.ctx, self.acc.format).cast(value))
        return tree, value

    def under(self, tree: Tree) -> Array:
        """The results of all rows under one schedule."""
        out = evaluate_tree_batch(self.ctx, tree, self.x.T, self.weights.T, self.bias, self.how, self.formats)
        return np.array(out)

    @staticmethod
    @np.errstate(invalid="ignore")
    def keep(best: Array, chosen: dict[int, Tree], want: Array, tree: Tree, found: Array) -> None:
        """Takes over what is better, or NaN."""
        for at in np.flatnonzero((want * (found - best) > 0) | (np.isnan(found) & ~np.isnan(best))):
            best[at] = found[at]
            chosen[int(at)] = tree

    def fold(self, want: Array, rng: Random) -> list[tuple[Tree, float]]:
        """For each row a left fold whose roundings err in the wanted direction, and its result.

        Each step adds the term with the greatest rounding error in that direction, the exact sum taken in float64.
        """
        acc, formats, rows, n = self.acc, self.formats, len(self.x), self.n
        products = self.products
        fuses, exact = self.how.fuses(True), self.how.products == "exact"
        with np.errstate(all="ignore"):
            reals = self.weights * self.x
            at = np.arange(rows)
            mixed = self.has_bias and self.how.bias == "first"
            start = np.argmax(np.abs(reals), axis=1) if rng.random() < 0.5 else np.array(
                [rng.randrange(n) for _ in range(rows)])  # fmt: skip
            total = products[at, start]
            left = np.ones((rows, n), dtype=bool)
            left[at, start] = False
            trees: list[Tree] = [int(k) for k in start]
            if mixed:
                assert self.bias is not None
                total = self._bias_in_accumulator()
                left[:] = True
                trees = [n] * rows
            noise = np.array([[rng.random() for _ in range(n)] for _ in range(rows)])
            fma = arithmetic(acc, (formats.weights, formats.terms, acc.format))
            pairs = arithmetic(acc, (formats.weights, formats.terms) * 2)
            for step in range(n if mixed else n - 1):
                if exact and step == 0 and not mixed:
                    w, v = self.weights[at, start], self.x[at, start]
                    sums = pairs.add_products(self.weights, self.x, w[:, None], v[:, None])
                    options = [(False, sums, sums - reals[at, start][:, None] - reals)]
                else:
                    fused = fma.fma(self.weights, self.x, total[:, None])
                    options = [(not exact, fused, fused - total[:, None] - reals)]
                    if not exact and fuses != "always":
                        plain = arithmetic(acc).add(total[:, None], products)
                        options = [*options, (False, plain, plain - total[:, None] - reals)]
                        options = options[1:] if fuses == "never" else options
                scores = [np.where(left, np.nan_to_num(want[:, None] * e, nan=np.inf), -np.inf) for _, _, e in options]
                kind = np.argmax([s.max(axis=1) for s in scores], axis=0)
                score = np.stack(scores)[kind, at]
                tied = score >= score.max(axis=1)[:, None]
                pick = np.argmax(np.where(tied & left, noise, -1.0), axis=1)
                total = np.stack([o[1] for o in options])[kind, at, pick]
                left[at, pick] = False
                for r in range(rows):
                    j = int(pick[r])
                    trees[r] = ("fma", j, trees[r]) if options[kind[r]][0] else (trees[r], j)
            if self.has_bias and not mixed:
                total = arithmetic(acc).add(total, self._bias_in_accumulator())
                trees = [(tree, n) for tree in trees]
            if acc != self.ctx:
                total = arithmetic(self.ctx, acc.format).cast(total)
        return list(zip(trees, total.tolist(), strict=True))

    def _bias_in_accumulator(self) -> Array:
        assert self.bias is not None
        fmt = self.formats.bias
        return self.bias if fmt == self.acc.format else arithmetic(self.acc, fmt).cast(self.bias)
