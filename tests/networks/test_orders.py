"""Order families: enumeration against membership, counts, text, and numpy's pairwise sum bit for bit."""

from __future__ import annotations

from itertools import islice
from math import factorial
from random import Random

import numpy as np
import pytest

from fpsmt.errors import UsageError
from fpsmt.floats import context, float32
from fpsmt.networks import evaluate_tree_batch, parse_order, shapes
from fpsmt.networks.executions import Execution
from fpsmt.networks.orders import ANY, PAIRWISE, AnyOrder, Given, Union, union
from fpsmt.networks.orders import given as given_tree
from fpsmt.networks.sums import SumFormats
from fpsmt.networks.trees import canonical, leaves, same_tree, size, steps, tree_text

FAMILIES = [
    "any", "contiguous", "sequential", "left-to-right", "right-to-left", "pairwise", "lanes:1", "lanes:2", "lanes:3",
    "lanes:4", "lanes:8", "blocks:1", "blocks:2", "blocks:3", "blocks:9", "depth:2", "depth:3", "depth:5",
    "left-to-right|pairwise", "contiguous|sequential", "lanes:2|blocks:2|depth:3",
]  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n", range(1, 7))
def test_enumeration_is_membership(name, n):
    """The family's trees are exactly those of all trees that it contains, each once, canonical."""
    order = parse_order(name)
    every = {tree_text(t): t for t in shapes.all_trees(range(n))}
    inside = {text for text, t in every.items() if order.contains(t)}
    assert order.count(n) == len(inside)
    assert order.has(n) == bool(inside)
    if not inside:
        with pytest.raises(UsageError, match="no tree"):
            order.default_tree(n)
        with pytest.raises(UsageError):
            list(order.trees(n))
        with pytest.raises(UsageError):
            order.random_tree(n, Random(0))
        return
    found = [tree_text(t) for t in order.trees(n)]
    assert len(found) == len(set(found))
    assert set(found) == inside
    assert tree_text(order.default_tree(n)) in inside
    if order.fixed:
        assert found == [tree_text(order.default_tree(n))]
    if order.symmetric:
        rng = Random(5)
        places = list(range(n))
        rng.shuffle(places)
        from fpsmt.networks.trees import relabel

        assert {tree_text(canonical(relabel(every[text], places))) for text in inside} == inside


@pytest.mark.parametrize("name", FAMILIES)
def test_random_and_default_trees_are_inside(name):
    order = parse_order(name)
    rng = Random(7)
    for n in (1, 2, 3, 5, 8, 13, 32):
        if not order.has(n):
            continue
        assert order.contains(order.default_tree(n))
        for _ in range(5):
            tree = order.random_tree(n, rng)
            assert order.contains(tree)
            assert sorted(leaves(tree)) == list(range(n))
            assert canonical(tree) == tree


def test_counts_by_formula():
    for n in range(2, 9):
        assert parse_order("any").count(n) == factorial(2 * n - 2) // (2 ** (n - 1) * factorial(n - 1))
        assert parse_order("contiguous").count(n) == factorial(2 * n - 2) // (factorial(n - 1) * factorial(n))
        assert parse_order("sequential").count(n) == factorial(n) // 2
    assert [ANY.count(n) for n in range(1, 9)] == [1, 1, 3, 15, 105, 945, 10395, 135135]


def test_trees_are_lazy():
    for name in ("any", "contiguous", "sequential", "depth:6", "any|pairwise"):
        assert len(list(islice(parse_order(name).trees(40), 3))) == 3


@pytest.mark.parametrize("name", [*FAMILIES, "((0+1)+2)", "(0+1)|any"])
def test_text_round_trip(name):
    order = parse_order(name)
    assert str(order) == name
    assert parse_order(str(order)) == order
    assert hash(parse_order(name)) == hash(order)


def test_given_trees_and_unions():
    order = parse_order("[2, [1, 0]]")
    assert isinstance(order, Given) and str(order) == "((0+1)+2)"
    assert order.fixed and order.contains((2, (0, 1))) and not order.contains((0, (1, 2)))
    with pytest.raises(UsageError, match="for 3 terms, and the sum has 4"):
        order.default_tree(4)
    assert union(ANY, union(PAIRWISE, ANY)) == Union((ANY, PAIRWISE))
    assert union(ANY, ANY) == ANY == AnyOrder()
    assert ANY.contains(("fma", 1, 0)) and not parse_order("right-to-left").contains(("fma", 2, (0, 1)))
    deep = given_tree(parse_order("left-to-right").default_tree(20_000))
    assert deep == parse_order(str(deep)) and deep.contains(parse_order("left-to-right").default_tree(20_000))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("anything", "unknown order 'anything': write one of any, contiguous"),
        ("lanes", "needs a number"),
        ("lanes:", "not a number"),
        ("lanes:-1", "not a number"),
        ("lanes:0", "at least 1"),
        ("blocks:0", "at least 1"),
        ("depth:1e3", "not a number"),
        ("any|", "unknown order ''"),
        ("fma(0,1)", "no fused nodes"),
        ("((0+1)+1)", "twice"),
        ("((0+1)", "ends too early"),
    ],
)
def test_error_messages(text, message):
    with pytest.raises(UsageError, match=message):
        parse_order(text)


@pytest.mark.parametrize("name", [f for f in FAMILIES if "|" not in f])
def test_no_terms(name):
    order = parse_order(name)
    for ask in (order.default_tree, order.count, lambda n: list(order.trees(n))):
        with pytest.raises(UsageError, match="empty sum"):
            ask(0)


# -- what the fixed families mean --------------------------------------------------------------------------


def test_lanes():
    tree = parse_order("lanes:4").default_tree(10)
    assert same_tree(tree, ((((0, 4), 8), (2, 6)), (((1, 5), 9), (3, 7))))
    assert same_tree(parse_order("lanes:3").default_tree(7), ((((0, 3), 6), (2, 5)), (1, 4)))
    assert same_tree(parse_order("lanes:8").default_tree(5), (((0, 4), 2), (1, 3)))
    assert same_tree(parse_order("lanes:999999999").default_tree(3), ((0, 2), 1))


def test_blocks():
    assert parse_order("blocks:3").default_tree(7) == ((((0, 1), 2), ((3, 4), 5)), 6)
    assert parse_order("blocks:4").default_tree(5) == (((0, 1), (2, 3)), 4)
    assert parse_order("blocks:9").default_tree(4) == (((0, 1), 2), 3)


# -- numpy ------------------------------------------------------------------------------------------------


def by_tree(columns: np.ndarray) -> np.ndarray:
    """The sum over axis 0 in numpy's own arithmetic, in the order of the family's tree."""
    values: list[np.ndarray] = []
    for op, a, b in steps(PAIRWISE.default_tree(len(columns))):
        values.append(columns[a] if op == "leaf" else values[a] + values[b])
    return values[-1]


@pytest.mark.parametrize(
    ("dtype", "sizes"), [(np.float32, range(1, 2001)), (np.float64, [*range(1, 300), *range(300, 2001, 17)])]
)
def test_pairwise_is_numpy_sum(dtype, sizes):
    """Float32 for every n from 1 to 2000: values of mixed signs and magnitudes, which another tree rounds otherwise."""
    rng = np.random.default_rng(11)
    differs = 0
    for n in sizes:
        rows = (rng.standard_normal((8, n)) * np.exp2(rng.integers(-6, 7, (8, n)))).astype(dtype)
        columns = np.ascontiguousarray(rows.T)
        expected = np.array([np.sum(row) for row in rows])
        assert by_tree(columns).tobytes() == expected.tobytes(), n
        assert rows.sum(axis=1).tobytes() == expected.tobytes(), n
        differs += n > 20 and columns.cumsum(axis=0)[-1].tobytes() != expected.tobytes()
    assert differs > 0.9 * len(sizes)


@pytest.mark.parametrize("n", [3, 7, 8, 9, 15, 16, 17, 31, 64, 100, 127, 128, 129, 136, 137])
def test_pairwise_tree_revealed(n):
    """Huge values M at i and −M at j swallow all units added between them: what is left counts the terms outside
    the smallest subtree that holds both, for every pair, and these numbers determine a binary tree."""
    tree = PAIRWISE.default_tree(n)
    inside = np.zeros((n, n), dtype=int)
    below: list[list[int]] = []
    for op, a, b in steps(tree):
        below.append([a] if op == "leaf" else below[a] + below[b])
        if op != "leaf":
            both = len(below[-1])
            inside[np.ix_(below[a], below[b])] = inside[np.ix_(below[b], below[a])] = both
    big = 2.0**100
    for i in range(n):
        for j in range(i + 1, n):
            x = np.ones(n)
            x[i], x[j] = big, -big
            assert np.sum(x) == n - inside[i, j], (i, j)


def test_pairwise_is_numpy_float16_sum_with_a_float32_accumulator():
    rng = np.random.default_rng(5)
    how = Execution(PAIRWISE, accumulator=context("float32"))
    for n in (1, 2, 7, 8, 9, 100, 129, 300, 1000):
        rows = (rng.standard_normal((16, n)) * np.exp2(rng.integers(-8, 9, (16, n)))).astype(np.float16)
        rows[0, :] = 32000.0
        ctx = context("float16")
        mine = evaluate_tree_batch(
            ctx, PAIRWISE.default_tree(n), rows.T.astype(np.float64), execution=how,
            formats=SumFormats(ctx.format, ctx.format, ctx.format),
        )  # fmt: skip
        with np.errstate(over="ignore"):
            theirs = np.array([np.sum(row) for row in rows])
        assert mine.astype(np.float16).tobytes() == theirs.tobytes(), n


def test_library_arithmetic_gives_numpy_float32_sum():
    rng = np.random.default_rng(6)
    for n in (5, 20, 130, 777):
        rows = (rng.standard_normal((16, n)) * np.exp2(rng.integers(-20, 21, (16, n)))).astype(np.float32)
        mine = evaluate_tree_batch(context(float32), PAIRWISE.default_tree(n), rows.T.astype(np.float64))
        assert mine.astype(np.float32).tobytes() == np.array([np.sum(row) for row in rows]).tobytes()


def test_numpy_differs_from_the_tree_only_in_the_sign_of_an_all_negative_zero_sum():
    assert not np.signbit(np.sum(np.full(20, -0.0)))
    assert np.signbit(by_tree(np.full((20, 1), -0.0)))
    assert size(PAIRWISE.default_tree(20)) == 20
