"""Trees: structure, text, JSON, counting and drawing; deep trees do not recurse."""

from __future__ import annotations

import json
from collections import Counter
from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpsmt.errors import UsageError
from fpsmt.networks import shapes
from fpsmt.networks.executions import Execution
from fpsmt.networks.orders import parse_order
from fpsmt.networks.trees import (
    balanced,
    canonical,
    check_tree,
    fold,
    height,
    leaves,
    left_fold,
    partings,
    read_tree,
    relabel,
    render,
    right_fold,
    same_tree,
    size,
    steps,
    tree_from_json,
    tree_text,
    tree_to_json,
    unfuse,
)

DEEP = 100_000


@st.composite
def trees(draw: st.DrawFn, most: int = 9) -> object:
    """Trees over 0…n−1 in any order, some nodes fused."""
    items: list[object] = list(draw(st.permutations(range(draw(st.integers(1, most))))))
    while len(items) > 1:
        a = items.pop(draw(st.integers(0, len(items) - 1)))
        k = draw(st.integers(0, len(items) - 1))
        fuse = isinstance(a, int) and draw(st.booleans())
        items[k] = ("fma", a, items[k]) if fuse else (a, items[k])
    return items[0]


def brute_force(n: int) -> set[str]:
    """All trees over all permutations, by splitting every permutation in every way."""

    def plane(items: tuple[int, ...]) -> list[object]:
        if len(items) == 1:
            return [items[0]]
        return [(a, b) for k in range(1, len(items)) for a in plane(items[:k]) for b in plane(items[k:])]

    return {tree_text(canonical(t)) for order in permutations(range(n)) for t in plane(order)}


@given(trees())
def test_text_and_json_round_trip(tree):
    assert read_tree(tree_text(tree)) == tree
    assert tree_from_json(json.loads(json.dumps(tree_to_json(tree))), size(tree)) == tree
    assert read_tree(json.dumps(tree_to_json(tree))) == tree
    assert read_tree(tree_text(tree).replace("+", " + ")) == tree


@given(trees(), st.randoms(use_true_random=False))
def test_canonical_is_the_same_for_commuted_trees(tree, random):
    def shuffled(a, b):
        return (a, b) if random.random() < 0.5 else (b, a)

    commuted = fold(tree, lambda i: i, shuffled, lambda i, b: ("fma", i, b))
    assert canonical(commuted) == canonical(tree) == canonical(canonical(tree))
    assert same_tree(commuted, tree)
    assert sorted(leaves(canonical(tree))) == list(range(size(tree)))


@given(trees())
def test_steps_compute_height_and_size(tree):
    def recursive_height(t):
        if isinstance(t, int):
            return 0
        return 1 + max(recursive_height(t[-2]), recursive_height(t[-1]))

    assert height(tree) == recursive_height(tree)
    assert len(steps(tree)) == 2 * size(tree) - 1
    check_tree(tree, size(tree))
    assert leaves(unfuse(tree)) == leaves(tree)


def test_fused_nodes_do_not_commute():
    assert canonical(("fma", 0, 1)) != canonical(("fma", 1, 0))
    assert not same_tree(("fma", 0, 1), (0, 1))


def test_deep_trees():
    left, right = left_fold(range(DEEP)), right_fold(range(DEEP))
    assert height(left) == height(right) == DEEP - 1
    check_tree(left, DEEP)
    some = 20_000
    assert not same_tree(left_fold(range(some)), right_fold(range(some)))
    assert same_tree(left_fold(range(some)), relabel(right_fold(range(some - 1, -1, -1)), lambda i: i))
    text = tree_text(left)
    assert tree_text(read_tree(text)) == text
    data = json.loads(json.dumps(tree_to_json(left)))
    assert tree_text(tree_from_json(data, DEEP)) == text
    assert render(left, most=3).endswith(f"... {2 * DEEP - 1 - 3} more nodes")
    rng = Random(1)
    check_tree(shapes.random_any(20_000, rng), 20_000)
    check_tree(shapes.random_parenthesisation(20_000, rng), 20_000)


def test_deep_json_lists_are_read():
    nested: object = 0
    for k in range(1, 20_000):
        nested = [nested, k]
    assert tree_text(tree_from_json(nested, 20_000)) == tree_text(left_fold(range(20_000)))


@pytest.mark.parametrize(
    ("tree", "n", "message"),
    [
        (((0, 1), 1), 3, "twice"),
        ((0, 1), 3, "leaves out terms 2"),
        ((0, 3), 2, "leaf 3"),
        ((0, -1), 2, "leaf -1"),
        ((0,), 1, "tuple of length 1"),
        ((True, 0), 2, "True"),
        (((0, 1), "x"), 3, "'x'"),
        (("fma", (0, 1), 2), 3, "not a leaf"),
        (0, 0, "empty sum"),
    ],
)
def test_malformed_trees(tree, n, message):
    with pytest.raises(UsageError, match=message):
        check_tree(tree, n)


@pytest.mark.parametrize(
    "text",
    ["", "(", "(0+1", "0+1", "(0+1))", "((0+1)", "(0 1)", "(0+1+2)", "(0+)", "()", "fma", "fma(0)", "fma((0+1),2)",
     "(0+1]", "x", "[0,1", "(0)", "((0+1)+2)3", "[\"fma\"]", "\"fma\"", "(\"fma\",0)", "-1", "fma(0,1", "1 2"],
)  # fmt: skip
def test_unreadable_text(text):
    with pytest.raises(UsageError, match="cannot read"):
        read_tree(text)


@pytest.mark.parametrize("data", [[0], [0, 1, 2], ["fma", [0, 1], 2], None, 0.5, [0, -1], {}, ["fma", 0]])
def test_unreadable_json(data):
    with pytest.raises(UsageError):
        tree_from_json(data)


@pytest.mark.parametrize("n", range(1, 6))
def test_all_trees_against_brute_force(n):
    found = [tree_text(t) for t in shapes.all_trees(range(n))]
    assert len(found) == len(set(found)) == shapes.double_factorial(2 * n - 3)
    assert set(found) == brute_force(n)
    assert all(canonical(t) == t for t in shapes.all_trees(range(n)))


@pytest.mark.parametrize("n", range(1, 8))
def test_counts(n):
    assert sum(1 for _ in shapes.all_trees(range(n))) == shapes.double_factorial(2 * n - 3)
    assert sum(1 for _ in shapes.all_parenthesisations(range(n))) == shapes.catalan(n - 1)
    for h in range(n + 1):
        bounded = [tree_text(t) for t in shapes.all_trees(range(n), h)]
        assert len(bounded) == shapes.count_of_height(n, h)
        if n < 7:
            assert bounded == [tree_text(t) for t in shapes.all_trees(range(n)) if height(t) <= h]


def test_random_trees_are_uniform():
    """A χ² statistic far above its mean would show a tree that is drawn too often or never."""
    rng = Random(3)
    for draw, number in (
        (lambda: shapes.random_any(5, rng), 105),
        (lambda: shapes.random_parenthesisation(6, rng), 42),
        (lambda: shapes.random_left_fold(5, rng), 60),
    ):
        times = 100 * number
        counts = Counter(tree_text(draw()) for _ in range(times))
        assert len(counts) == number
        chi = sum((c - 100) ** 2 / 100 for c in counts.values())
        assert chi < number + 6 * (2 * number) ** 0.5


def test_random_of_height_reaches_every_tree():
    rng = Random(4)
    seen = {tree_text(shapes.random_of_height(5, 3, rng)) for _ in range(4000)}
    assert seen == {tree_text(t) for t in shapes.all_trees(range(5), 3)}


def test_render_shows_values_and_fused_nodes():
    tree = ("fma", 2, (0, 1))
    assert render(tree, [None, 1, 2, 3, 9], ["a", "b", "c"]) == (
        "fma = 9\n|-- c\n`-- + = 3\n    |-- a = 1\n    `-- b = 2"
    )
    with pytest.raises(UsageError, match="2 labels for a tree of 5 nodes"):
        render(tree, [1, 2])


def test_shapes():
    assert balanced([0]) == 0
    for n in range(2, 70):
        assert height(balanced(range(n))) == (n - 1).bit_length()
    with pytest.raises(UsageError, match="empty sum"):
        left_fold([])
    with pytest.raises(UsageError, match="empty sum"):
        right_fold([])


# -- where two trees part -----------------------------------------------------------------------------------


def subtrees(tree):
    """Of each step its canonical text, and those of its children."""
    texts, made = [], []
    for op, a, b in steps(tree):
        node = a if op == "leaf" else ("fma", made[a], made[b]) if op == "fma" else (made[a], made[b])
        made.append(node)
        texts.append((tree_text(canonical(node)), [] if op == "leaf" else [texts[a][0], texts[b][0]]))
    return texts


@pytest.mark.parametrize("seed", range(60))
def test_partings_by_the_texts_of_subtrees(seed):
    rng = Random(seed)
    how = Execution(parse_order(rng.choice(["any", "contiguous", "sequential"])), rng.choice(["never", "any"]))
    n = rng.randrange(1, 9)
    trees = [how.random_schedule(n, rng) for _ in range(2)]
    both = [subtrees(tree) for tree in trees]
    common = {text for text, _ in both[0]} & {text for text, _ in both[1]}
    expected = tuple(
        [k for k, (text, below) in enumerate(one) if text not in common and all(t in common for t in below)]
        for one in both
    )
    assert partings(*trees) == expected
    assert (not any(expected)) == same_tree(*trees)


def test_partings_of_deep_trees_and_of_fused_ones():
    n = 20_000
    deep = left_fold(range(n))
    assert partings(deep, deep) == ([], [])
    assert partings(deep, right_fold(range(n))) == ([2], [n])
    assert partings(("fma", 1, 0), ("fma", 0, 1)) == ([2], [2])
    assert partings((("fma", 1, 0), 2), (2, ("fma", 1, 0))) == ([], [])
