"""One sum or dot product under a schedule: the reference evaluation with a trace, and its twin on arrays.

What is computed, for a node of context C and an execution E (A = E's accumulator, or C):

* A plain term, and the bias, is the leaf's value; if it is not of A's format it is cast to A.
* A product leaf is w·x rounded to E's products context, and then cast to A if that has another format.
* ``(left, right)`` is value(left) + value(right) rounded once to A.
* ``("fma", leaf, right)`` is w·x + value(right) rounded once to A.
* With exact products, ``(left, right)`` rounds w·x + w′·x′, or w·x + value, once to A; a lone product is
  rounded once to A.
* The result is the root's value, cast to C if A is not C.

NaN, ±inf, ±0 and subnormals follow `fpsmt.floats` at each of these roundings; nothing else happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fpsmt import floats
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, Format
from fpsmt.floats.vector import Carriers, arithmetic
from fpsmt.networks.executions import PAPER, Execution
from fpsmt.networks.trees import Step, Tree, check_tree, render, steps

Product = tuple[Float, Float]


@dataclass(frozen=True)
class SumTrace:
    """Everything that happened in one sum.

    `values[k]` is the value at step k of `trees.steps(tree)`, rounded once, in the accumulator's format; it is
    None for a product that was never rounded on its own.  `result` is the last of them in the node's context.
    """

    tree: Tree
    values: tuple[Float | None, ...]
    result: Float

    def text(self, terms: Sequence[object] | None = None) -> str:
        """The tree with the value at each node, on several lines."""
        return render(self.tree, self.values, terms)


def evaluate_tree(
    ctx: Context,
    tree: Tree,
    terms: Sequence[Float] | Sequence[Product],
    bias: Float | None = None,
    execution: Execution = PAPER,
) -> SumTrace:
    """The sum of the terms (values, or pairs (w, x)) and the bias (leaf n) in the order of the tree.

    That the execution allows the tree is not checked (`Execution.allows`); a tree over other leaves, a fused
    leaf that is not a product, or fused nodes with exact products are usage errors, and so is an empty sum.

    >>> from fpsmt.floats import context, exactly, float16
    >>> ctx = context("float16")
    >>> x = [exactly(float16, v) for v in (32000, 32000, 32000, -32000)]
    >>> for tree in ((((0, 1), 2), 3), ((0, 1), (2, 3))):
    ...     print(evaluate_tree(ctx, tree, x).result)
    inf
    64000.0
    """
    pairs: list[Product] = list(terms) if _are_products(terms) else []  # type: ignore[arg-type]
    program, unrounded = _prepared(tree, len(terms), bias is not None, bool(pairs), execution)
    acc = execution.sum_context(ctx)
    values: list[Float | None] = [None] * len(program)
    for k, (op, a, b) in enumerate(program):
        if op == "leaf":
            if k in unrounded:
                continue
            if a == len(terms):
                assert bias is not None
                value = bias
            elif pairs:
                value = floats.mul(execution.product_context(ctx) or acc, *pairs[a])
            else:
                value = terms[a]  # type: ignore[assignment]
            values[k] = value if value.format == acc.format else floats.cast(acc, value)
            continue
        left, right = values[a], values[b]
        if left is None and right is None:
            values[k] = floats.add_products(acc, *pairs[program[a].left], *pairs[program[b].left])
        elif left is None:
            values[k] = floats.fma(acc, *pairs[program[a].left], right)  # type: ignore[arg-type]
        elif right is None:
            values[k] = floats.fma(acc, *pairs[program[b].left], left)
        else:
            values[k] = floats.add(acc, left, right)
    total = values[-1]
    assert total is not None
    return SumTrace(tree, tuple(values), total if acc == ctx else floats.cast(ctx, total))


def _are_products(terms: Sequence[Any]) -> bool:
    kinds = {isinstance(t, tuple) and len(t) == 2 and all(isinstance(v, Float) for v in t) for t in terms}
    if len(kinds) == 2 or (kinds == {False} and not all(isinstance(t, Float) for t in terms)):
        raise UsageError("the terms of a sum are Floats, or all of them pairs (w, x) of Floats")
    return kinds == {True}


def _prepared(
    tree: Tree, n: int, bias: bool, products: bool, execution: Execution
) -> tuple[list[Step], set[int]]:
    """The checked steps, and those leaves whose product is not rounded on its own."""
    if n + bias == 0:
        raise UsageError("an empty sum has no tree to evaluate (its value is +0): leave it out, or give it a bias")
    check_tree(tree, n + bias)
    program = steps(tree)
    exact = products and execution.products == "exact"
    unrounded: set[int] = set()
    for op, a, b in program:
        if op == "fma":
            if not products or program[a].left >= n:
                leaf = program[a].left
                raise UsageError(f"the fused leaf {leaf} is not a product: only w·x can be fused with an addition")
            if exact:
                raise UsageError("exact products leave nothing to fuse: give a tree without fused nodes")
            unrounded.add(a)
        elif op == "add" and exact:
            unrounded.update(k for k in (a, b) if program[k].op == "leaf" and program[k].left < n)
    return program, unrounded


@dataclass(frozen=True)
class SumFormats:
    """The formats of what a sum is made of: plain terms or inputs x, weights w, and the bias."""

    terms: Format
    weights: Format
    bias: Format


def evaluate_tree_batch(
    ctx: Context,
    tree: Tree,
    terms: Carriers,
    weights: Carriers | None = None,
    bias: Carriers | None = None,
    execution: Execution = PAPER,
    formats: SumFormats | None = None,
) -> Carriers:
    """The twin of `evaluate_tree` on arrays of values: bit for bit its `result`, for each element.

    `terms` has shape (n, …) and `weights` (when the terms are products) a shape (n, …) that broadcasts with it;
    `bias` has a shape that broadcasts with (…).  `formats` are those of their elements, by default all
    ctx.format.  Elements that are not values of their format are not noticed.

    >>> from fpsmt.floats import context
    >>> x = np.array([[60000.0, 1.0], [60000.0, 2.0], [-32000.0, 3.0]])
    >>> evaluate_tree_batch(context("float16"), ((0, 1), 2), x).tolist()
    [inf, 6.0]
    """
    formats = formats or SumFormats(ctx.format, ctx.format, ctx.format)
    n, products = len(terms), weights is not None
    if weights is not None and len(weights) != n:
        raise UsageError(f"{len(weights)} weights for {n} inputs")
    program, unrounded = _prepared(tree, n, bias is not None, products, execution)
    acc = execution.sum_context(ctx)
    both = (formats.weights, formats.terms)
    add = arithmetic(acc)
    fma = arithmetic(acc, (*both, acc.format))
    values: list[Any] = [None] * len(program)

    def taken(k: int) -> Any:
        """The value at a step, which nobody needs afterwards; leaves are computed only now, to save memory."""
        if program[k].op == "leaf":
            return None if k in unrounded else _leaf(ctx, execution, formats, program[k].left, terms, weights, bias)
        value, values[k] = values[k], None
        return value

    if len(program) == 1:
        values[0] = taken(0)
    for k, (op, a, b) in enumerate(program):
        if op == "leaf":
            continue
        left, right = taken(a), taken(b)
        i, j = program[a].left, program[b].left
        if left is None and right is None:
            assert weights is not None
            values[k] = arithmetic(acc, both * 2).add_products(weights[i], terms[i], weights[j], terms[j])
        elif left is None:
            assert weights is not None
            values[k] = fma.fma(weights[i], terms[i], right)
        elif right is None:
            assert weights is not None
            values[k] = fma.fma(weights[j], terms[j], left)
        else:
            values[k] = add.add(left, right)
    return values[-1] if acc == ctx else arithmetic(ctx, acc.format).cast(values[-1])


def _leaf(
    ctx: Context,
    execution: Execution,
    formats: SumFormats,
    i: int,
    terms: Carriers,
    weights: Carriers | None,
    bias: Carriers | None,
) -> Carriers:
    acc = execution.sum_context(ctx)
    if i == len(terms):
        assert bias is not None
        value, fmt = np.asarray(bias), formats.bias
    elif weights is not None:
        rounding = execution.product_context(ctx) or acc
        value, fmt = arithmetic(rounding, (formats.weights, formats.terms)).mul(weights[i], terms[i]), rounding.format
    else:
        value, fmt = terms[i], formats.terms
    return value if fmt == acc.format else arithmetic(acc, fmt).cast(value)
