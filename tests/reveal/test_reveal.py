"""`reveal` on synthetic routines of known order, on routines that are no sums, and on numpy's."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fpsmt import floats
from fpsmt.engines.clusters import Contradiction
from fpsmt.engines.probes import NoSum, Varying
from fpsmt.engines.reveal import Revealed, reveal
from fpsmt.engines.targets import Raised, load_target
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import context, exactly, float32, format_named
from fpsmt.networks import evaluate_tree_batch, parse_order
from fpsmt.networks.trees import Tree, balanced, canonical, same_tree, steps

DTYPES: dict[str, Any] = {
    "float16": np.float16, "float32": np.float32, "float64": np.float64, "bfloat16": ml_dtypes.bfloat16,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
FAMILIES = [
    "left-to-right", "right-to-left", "pairwise", "lanes:4", "lanes:8", "blocks:4", "any", "contiguous", "sequential",
    "balanced",
]  # fmt: skip


def tree_of(family: str, n: int, seed: int = 1) -> Tree:
    if family == "balanced":
        return balanced(range(n))
    order = parse_order(family)
    return order.default_tree(n) if order.fixed else order.random_tree(n, Random(seed))


def summing(tree: Tree, accumulator: Any, result: Any = None) -> Callable[..., Any]:
    """A routine that adds numpy scalars in the order of the tree."""
    program = steps(tree)

    def routine(*arrays: Any) -> Any:
        values: list[Any] = []
        for op, a, b in program:
            if op == "leaf":
                product = accumulator(arrays[0][a])
                values.append(product if len(arrays) == 1 else accumulator(product * accumulator(arrays[1][a])))
            else:
                values.append(accumulator(values[a] + values[b]))
        return values[-1] if result is None else result(values[-1])

    return routine


def fusing(tree: Tree, fmt: str) -> Callable[..., Any]:
    """A dot product in the order of the tree, with its fused nodes, by the exact scalar arithmetic."""
    program, ctx = steps(tree), context(fmt)

    def routine(w: Any, x: Any) -> Any:
        pairs = [tuple(exactly(ctx.format, float(v)) for v in pair) for pair in zip(w, x, strict=True)]
        values: list[Any] = []
        for op, a, b in program:
            if op == "leaf":
                values.append(floats.mul(ctx, *pairs[a]))
            elif op == "fma":
                left, right = pairs[program[a].left]
                values.append(floats.fma(ctx, left, right, values[b]))
            else:
                values.append(floats.add(ctx, values[a], values[b]))
        return DTYPES[fmt](float(values[-1]))

    return routine


def bound(found: Revealed) -> float:
    """The number of calls that docs/reveal.md promises for these orders."""
    width = min(found.format.precision, found.accumulator.format.precision if found.accumulator else 53)
    each = 2.5 + math.log2(found.n) / max(1, width - 2) + (found.kind == "dot")
    return each * found.n + 20


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("fmt", "n"), [("float32", 200), ("float64", 61), ("float16", 100), ("bfloat16", 40)])
def test_families(family: str, fmt: str, n: int) -> None:
    tree = tree_of(family, n)
    found = reveal(summing(tree, DTYPES[fmt]), n, fmt, vectors=60)
    assert found.tree is not None and same_tree(found.tree, tree)
    assert (found.agrees, found.compared, found.from_zero, str(found.accumulator)) == (True, 60, False, fmt)
    assert found.calls <= bound(found)
    if parse_order("any" if family == "balanced" else family).fixed:
        assert found.family == family
    assert found.order is not None and parse_order(str(found.order)) == found.order


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(4))
def test_few_terms(n: int, seed: int) -> None:
    tree = tree_of("any", n, seed)
    found = reveal(summing(tree, np.float32), n, "float32", vectors=30)
    assert found.tree == canonical(tree)
    assert found.agrees


@pytest.mark.parametrize(
    ("fmt", "accumulator", "result"),
    [
        ("float16", "float32", "float16"), ("float16", "float32", "float32"), ("bfloat16", "float32", "bfloat16"),
        ("float32", "float64", "float32"), ("float8_e5m2", "float16", "float8_e5m2"),
    ],
)  # fmt: skip
def test_accumulators(fmt: str, accumulator: str, result: str) -> None:
    tree = tree_of("any", 30)
    found = reveal(summing(tree, DTYPES[accumulator], DTYPES[result]), 30, fmt, vectors=60)
    assert found.tree is not None and same_tree(found.tree, tree)
    assert (found.agrees, str(found.accumulator)) == (True, accumulator)


def test_float16_in_float64_rounds_nothing_observable() -> None:
    found = reveal(lambda x: np.float16(np.add.accumulate(x.astype(np.float64))[-1]), 12, "float16", vectors=60)
    assert (found.tree, found.accumulator, found.agrees) == (None, None, True)
    assert found.multi_term == [list(found.shape)] and sorted(found.shape) == list(range(12))


@pytest.mark.parametrize("fmt", ["float16", "float32"])
@pytest.mark.parametrize("rule", ["never", "always", "any"])
@pytest.mark.parametrize("family", ["left-to-right", "lanes:4", "any"])
def test_fused_products(fmt: str, rule: str, family: str) -> None:
    from fpsmt.networks import execution

    n = 24
    how = execution(family, fma=rule)
    tree = how.default_schedule(n) if how.order.fixed and rule != "any" else how.random_schedule(n, Random(3))
    found = reveal(fusing(tree, fmt), n, fmt, "dot", vectors=60)
    assert found.tree is not None and same_tree(found.tree, tree)
    assert found.agrees and found.calls <= bound(found)
    assert found.products == {"never": "rounded", "always": "fused"}.get(rule, found.products)
    assert found.execution is not None and found.execution.allows(found.tree, n)


def test_exact_products_are_told_from_rounded_ones() -> None:
    tree = tree_of("any", 20)
    exact = reveal(summing(tree, np.float32, np.float16), 20, "float16", "dot", vectors=60)
    program = steps(tree)

    def rounding(w: Any, x: Any) -> Any:
        values: list[Any] = []
        for op, a, b in program:
            values.append(np.float32(w[a] * x[a]) if op == "leaf" else np.float32(values[a] + values[b]))
        return values[-1]

    rounded = reveal(rounding, 20, "float16", "dot", vectors=60)
    assert (exact.products, exact.agrees) == ("rounded", True)
    assert (rounded.products, rounded.agrees) == ("rounded to float16", True)


def test_two_exact_products_in_one_addition() -> None:
    ctx = context("float32")

    def routine(w: Any, x: Any) -> Any:
        a, b, c, d = (exactly(float32, float(v)) for v in (w[0], x[0], w[1], x[1]))
        first = floats.add_products(ctx, a, b, c, d)
        e, f = exactly(float32, float(w[2])), exactly(float32, float(x[2]))
        return np.float32(float(floats.fma(ctx, e, f, first)))

    found = reveal(routine, 3, "float32", "dot", vectors=60)
    assert (found.products, found.agrees, found.tree) == ("exact", True, ((0, 1), 2))


def test_different_precisions() -> None:
    """Eight terms one by one in float64, added to a float32 sum of the others."""

    def routine(x: Any) -> Any:
        acc = np.float32(0)
        for v in x[:12]:
            acc = np.float32(acc + v)
        tail = np.float64(x[12])
        for v in x[13:]:
            tail = tail + np.float64(v)
        return np.float32(tail + acc)

    found = reveal(routine, 20, "float32", vectors=120)
    assert found.agrees and found.accumulator is None and found.execution is None
    assert found.contexts is not None and {str(c) for c in found.contexts} == {"float32", "float64"}


# -- multi-term nodes ---------------------------------------------------------------------------------------


def exact_four(x: Any) -> Any:
    acc = np.float32(0)
    for k in range(0, len(x), 4):
        parts = [acc, *x[k : k + 4]]
        if np.isfinite(parts).all():
            total = sum(Fraction(float(part)) for part in parts)
            acc = np.float32(float(floats.round_real(context("float32"), total)))
        else:
            acc = np.float32(np.sum(parts))
    return acc


def cutting_four(x: Any) -> Any:
    """Terms are aligned to the largest and cut off below its last bit, then added exactly."""
    acc = Fraction(0)
    for k in range(0, len(x), 4):
        parts = [acc, *(Fraction(float(v)) for v in x[k : k + 4] if np.isfinite(v))]
        unit = Fraction(2) ** (max((math.frexp(float(p))[1] for p in parts if p), default=0) - 24)
        total = sum(math.trunc(p / unit) for p in parts) * unit
        acc = Fraction(max(-3e38, min(3e38, float(np.float32(min(3e38, max(-3e38, float(total))))))))
    return np.float32(float(acc))


def test_exact_additions_of_many_terms() -> None:
    found = reveal(exact_four, 12, "float32", vectors=120)
    assert found.tree is None and found.order is None and found.agrees
    assert [len(parts) for parts in found.multi_term] == [5, 5, 4]
    assert sorted(found.multi_term[-1]) == [0, 1, 2, 3]
    assert any("exactly" in note for note in found.notes)


def test_cutting_additions_of_many_terms() -> None:
    found = reveal(cutting_four, 12, "float32", vectors=60)
    assert found.tree is None and found.agrees is None
    assert [len(parts) for parts in found.multi_term] == [5, 5, 4]
    assert any("cut off" in note for note in found.notes)


def test_correctly_rounded_sum_is_one_node() -> None:
    def routine(x: Any) -> Any:
        return np.float32(math.fsum(map(float, x)))

    found = reveal(routine, 9, "float32", vectors=60)
    assert found.agrees and len(found.shape) == 9
    assert any("refused" in note for note in found.notes)


# -- bad routines -------------------------------------------------------------------------------------------


def test_random_order_is_reported() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(Varying, match=r"varies|two results"):
        reveal(lambda x: np.add.accumulate(x[rng.permutation(len(x))])[-1], 40, "float32")


def branching(x: Any) -> Any:
    return np.add.accumulate(x if x[1] > x[-2] else x[::-1])[-1]


def by_size(x: Any) -> Any:
    return np.add.accumulate(x[np.argsort(np.abs(x))])[-1]


@pytest.mark.parametrize("routine", [branching, by_size])
def test_order_that_depends_on_values_is_never_a_tree(routine: Callable[..., Any]) -> None:
    try:
        found = reveal(routine, 30, "float32", vectors=120)
    except (Contradiction, NoSum):
        return
    if found.tree is None and found.agrees is None:
        assert any("sorts its terms" in note for note in found.notes)
        return
    assert found.agrees is False and found.mismatch is not None
    terms = np.array(found.mismatch.terms, np.float32)
    assert float(routine(terms)) == found.mismatch.routine != found.mismatch.model


@pytest.mark.parametrize(
    ("routine", "error", "message"),
    [
        (lambda x: x, Unsupported, "returned an array of shape"),
        (lambda x: None, Unsupported, "one real number is expected"),
        (lambda x: "3", Unsupported, "one real number is expected"),
        (lambda x: 1 / 0, Raised, "raised ZeroDivisionError on 8 terms of float32"),
        (lambda x: np.float32("nan"), NoSum, "not a number"),
        (lambda x: x.mean(), NoSum, "does not behave as a sum"),
        (lambda x: x.max(), NoSum, "does not behave as a sum"),
        (lambda x: np.float32(1) + x.sum(), NoSum, "does not behave as a sum"),
    ],
)
def test_routines_that_are_no_sums(routine: Callable[..., Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        reveal(routine, 8, "float32")


def test_a_routine_that_leaves_a_term_out_does_not_agree() -> None:
    try:
        found = reveal(lambda x: np.add.accumulate(x[1:])[-1], 8, "float32", vectors=60)
    except Unsupported:
        return
    assert found.agrees is False


def test_a_routine_that_writes_into_its_argument() -> None:
    def routine(x: Any) -> Any:
        for k in range(1, len(x)):
            x[0] += x[k]
        return x[0]

    found = reveal(routine, 10, "float32", vectors=30)
    assert (found.family, found.agrees) == ("left-to-right", True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.sum, 0, "float32"), "at least one term"),
        ((np.sum, 4, "float6_e2m3fn:x"), "unknown format"),
        ((np.sum, 4, "ieee(5,12)"), "cannot be passed"),
        ((np.sum, 4, "float4_e2m1fn"), "too few significand bits"),
        ((np.sum, 4, "float32", "product"), "write sum or dot"),
        ((np.sum, 4, "float32", "sum", 0), "at least one is compared"),
    ],
)
def test_usage(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        reveal(*arguments)


# -- numpy --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fmt", "n", "accumulator"),
    [("float32", 7, "float32"), ("float32", 200, "float32"), ("float64", 300, "float64"), ("float16", 150, "float32")],
)
def test_numpy_sum(fmt: str, n: int, accumulator: str) -> None:
    found = reveal(load_target("numpy:sum", n, format_named(fmt)), n, fmt, vectors=120)
    assert found.agrees and found.from_zero and str(found.accumulator) == accumulator
    assert found.order is not None and found.order.contains(parse_order("pairwise").default_tree(n))
    assert found.calls <= bound(found)


def test_numpy_sum_of_1000_equals_its_tree_on_10000_vectors() -> None:
    found = reveal(load_target("numpy:sum", 1000, float32), 1000, "float32", vectors=60)
    assert found.order is not None and found.execution is not None
    assert found.calls < 2000
    rng = np.random.default_rng(5)
    x = (rng.standard_normal((10_000, 1000)) * 2.0 ** rng.integers(-20, 21, (10_000, 1000))).astype(np.float32)
    tree = found.order.default_tree(1000)
    expected = evaluate_tree_batch(context("float32"), tree, x.T.astype(np.float64), execution=found.execution)
    assert np.array_equal(expected, [float(np.sum(row)) for row in x])


@pytest.mark.parametrize("name", ["numpy:dot", "numpy:matmul", "numpy:einsum"])
def test_numpy_products(name: str) -> None:
    """Which tree depends on the machine; that it is right, or said to be wrong, does not."""
    found = reveal(load_target(name, 96, float32), 96, "float32", "dot", vectors=120)
    if not found.agrees:  # an unknown kernel: then it must say on which vector, or why nothing was compared
        assert found.mismatch is not None or found.notes
        pytest.skip(f"{name} here is no sum that can be modelled: {'; '.join(found.notes)}")
    assert found.model is not None
    rng = np.random.default_rng(1)
    w, x = (rng.standard_normal((96, 500)).astype(np.float32) for _ in range(2))
    routines: dict[str, Callable[..., Any]] = {
        "numpy:dot": np.dot, "numpy:matmul": np.matmul, "numpy:einsum": lambda a, b: np.einsum("i,i->", a, b),
    }  # fmt: skip
    routine = routines[name]
    got = [float(routine(w[:, v].copy(), x[:, v].copy())) for v in range(500)]
    assert np.array_equal(found.model.evaluate(x.astype(np.float64), w.astype(np.float64)), got)
