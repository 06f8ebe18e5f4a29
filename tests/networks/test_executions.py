"""Executions: which schedules they allow, counted by brute force; text and JSON."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from fpsmt.errors import UsageError
from fpsmt.floats import context
from fpsmt.networks.executions import PAPER, Execution, count_fusings, execution, fusings, parse_execution
from fpsmt.networks.orders import parse_order
from fpsmt.networks.shapes import all_trees
from fpsmt.networks.trees import canonical, relabel, same_tree, tree_text, unfuse

ORDERS = ["any", "contiguous", "sequential", "left-to-right", "right-to-left", "lanes:2", "blocks:2", "depth:2",
          "left-to-right|depth:2"]  # fmt: skip


def every_schedule(n: int, bias: bool) -> list[object]:
    """All trees over the terms with all ways to fuse product leaves."""
    return [fused for tree in all_trees(range(n + bias)) for fused in fusings(tree, n, "any")]


def allowed(how: Execution, tree: object, n: int, bias: bool, products: bool) -> bool:
    """The definition, written again: the order and the bias on the plain tree, then the fma rule node by node."""
    plain = unfuse(tree)
    fits = False
    if not bias:
        fits = how.order.contains(plain)
    else:
        last = isinstance(plain, tuple) and n in plain
        if how.bias in ("last", "any") and last:
            rest = plain[1] if plain[0] == n else plain[0]
            fits = how.order.contains(rest)
        places = {"last": [], "first": [0], "any": list(range(n + 1))}[how.bias]
        for place in places:
            at = [k if k < place else k + 1 for k in range(n)] + [place]
            fits = fits or how.order.contains(relabel(plain, at))

    def nodes(t):
        if isinstance(t, tuple):
            yield t
            yield from nodes(t[-2])
            yield from nodes(t[-1])

    def product(t):
        return isinstance(t, int) and t < n

    free = products and how.products != "exact"
    for t in nodes(tree):
        fused = t[0] == "fma"
        if fused and (not free or how.fma == "never"):
            return False
        if free and how.fma == "always" and not fused and (product(t[0]) or product(t[1])):
            return False
    return fits


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("fma", ["never", "always", "any"])
@pytest.mark.parametrize("bias", ["last", "first", "any"])
def test_schedules_are_what_is_allowed(order, fma, bias):
    how = execution(order, fma, bias=bias)
    rng = Random(2)
    for n, has_bias, products in [(1, 1, 1), (2, 0, 1), (3, 0, 0), (3, 1, 1), (2, 1, 0)]:
        every = every_schedule(n, has_bias)
        expected = {tree_text(t) for t in every if allowed(how, t, n, has_bias, products)}
        assert {tree_text(t) for t in every if how.allows(t, n, has_bias, products)} == expected
        found = [tree_text(t) for t in how.schedules(n, has_bias, products)]
        assert len(found) == len(set(found))
        assert set(found) == expected
        assert tree_text(how.default_schedule(n, has_bias, products)) in expected
        drawn = {tree_text(how.random_schedule(n, rng, has_bias, products)) for _ in range(40)}
        assert drawn <= expected


def test_numbers_of_schedules():
    def count(how, *args):
        return sum(1 for _ in how.schedules(*args))

    assert count(PAPER, 5, True) == 105
    assert count(execution(bias="any"), 5, True) == 945
    assert count(execution(bias="first"), 4, True) == 105
    assert count(execution("left-to-right", bias="any"), 4, True) == 4  # places 0 and 1 commute
    assert count(execution("left-to-right", fma="any"), 4) == 3 * 2 * 2
    assert count(execution("left-to-right", fma="always"), 4) == 2
    assert count(execution(fma="any", products="exact"), 4) == 15
    assert count_fusings(((0, 1), (2, 3)), 4, "any") == 9


def test_random_schedules_reach_all():
    how = execution(fma="any", bias="any")
    rng = Random(1)
    seen = {tree_text(how.random_schedule(2, rng, True)) for _ in range(600)}
    assert seen == {tree_text(t) for t in how.schedules(2, True)}


def test_schedules_are_lazy():
    assert len(list(islice(execution(fma="any", bias="any").schedules(50, True), 5))) == 5


def test_default_schedules():
    assert tree_text(execution(fma="always").default_schedule(3, True)) == "(fma(2,fma(1,0))+3)"
    assert tree_text(execution("right-to-left", fma="always").default_schedule(3)) == "fma(0,fma(2,1))"
    assert tree_text(execution("left-to-right", bias="first").default_schedule(3, True)) == "(((0+3)+1)+2)"
    chain = execution("left-to-right", bias="first", fma="always")
    assert tree_text(chain.default_schedule(2, True)) == "fma(1,fma(0,2))"
    assert PAPER.default_schedule(0, True) == 0 and list(PAPER.schedules(0, True)) == [0] and PAPER.allows(0, 0, True)


def test_bias_and_given_trees():
    tree = parse_order("((0+1)+2)")
    assert list(Execution(tree).schedules(3, True)) == [(((0, 1), 2), 3)]
    # three terms are two products and the bias; the bias last would need a tree over two products
    found = [tree_text(t) for t in Execution(tree, bias="any").schedules(2, True)]
    assert sorted(found) == ["((0+1)+2)", "((0+2)+1)"]
    assert [tree_text(t) for t in Execution(tree, bias="any").schedules(3, True)] == ["(((0+1)+2)+3)"]
    for how in (Execution(tree), Execution(tree, bias="any"), Execution(tree, bias="first")):
        with pytest.raises(UsageError, match="for 3 terms"):
            list(how.schedules(5, True))


def test_allows_up_to_commuting():
    how = execution("left-to-right", fma="any")
    assert how.allows((2, ("fma", 1, 0)), 3)
    assert how.allows(("fma", 2, (1, 0)), 3)
    assert not how.allows(("fma", 0, (1, 2)), 3)
    assert not how.allows(("fma", 2, (0, 1)), 2, bias=True), "the bias is not a product"
    with pytest.raises(UsageError, match="twice"):
        how.allows((0, 0), 2)


@pytest.mark.parametrize(
    "text",
    ["any", "pairwise fma=any", "lanes:8 accumulator=float32 products=exact", "depth:4 fma=always bias=first",
     "((0+1)+2)|any accumulator=ieee(5,12):RTZ products=float16:flush bias=any"],
)  # fmt: skip
def test_text_and_json_round_trip(text):
    how = parse_execution(text)
    assert str(how) == text
    assert Execution.from_json(how.to_json()) == how == parse_execution(str(how))
    assert hash(how) == hash(parse_execution(text))


def test_the_papers_model():
    assert Execution() == PAPER == parse_execution("any fma=never bias=last")
    assert str(PAPER) == "any"
    ctx = context("float16")
    assert PAPER.sum_context(ctx) == PAPER.product_context(ctx) == ctx
    mixed = execution(accumulator="float32")
    assert mixed.product_context(ctx) == context("float32")
    assert execution(products="exact").product_context(ctx) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: execution(fma="sometimes"), "write one of never, always, any"),
        (lambda: execution(bias="middle"), "write one of last, first, any"),
        (lambda: execution(accumulator="float17"), "unknown format"),
        (lambda: execution("anyhow"), "unknown order"),
        (lambda: Execution("any"), "use parse_order"),
        (lambda: Execution(accumulator="float32"), "not a rounding context"),
        (lambda: parse_execution("any fma=any fma=any"), "repeated word"),
        (lambda: parse_execution(""), "unknown order ''"),
        (lambda: Execution.from_json({"order": "any", "speed": 1}), "an execution in JSON"),
        (lambda: list(PAPER.schedules(0)), "empty sum"),
    ],
)
def test_error_messages(make, message):
    with pytest.raises(UsageError, match=message):
        make()


def test_fusings_are_canonical_and_distinct():
    tree = canonical(((0, 1), (2, (3, 4))))
    found = list(fusings(tree, 4, "any"))
    assert len({tree_text(t) for t in found}) == len(found) == count_fusings(tree, 4, "any") == 3 * 2 * 2
    assert all(same_tree(unfuse(t), tree) for t in found)
