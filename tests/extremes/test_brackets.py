"""Bounds for every order contain what every order computes, and searches stay inside."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fpsmt.errors import UsageError
from fpsmt.floats import context, float16, float32
from fpsmt.floats.vector import round_array, values
from fpsmt.networks.brackets import a_priori, bracket
from fpsmt.networks.executions import execution
from fpsmt.networks.extreme_tables import program
from fpsmt.networks.extremes import number
from fpsmt.networks.order_search import Recipe, ends, recipes, replay, run
from fpsmt.networks.orders import parse_order
from fpsmt.networks.outcomes import Sum
from fpsmt.networks.packed import PackedSum, order_program
from tests.extremes.strategies import sums

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much]


def inside(outer, value) -> bool:
    if value.is_nan:
        return bool(outer.nan)
    return outer.low is not None and number(outer.low) <= number(value) <= number(outer.high)


@given(sums(5, ("any", "sequential", "contiguous", "depth:4", "pairwise", "left-to-right|lanes:2")))
@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
def test_every_schedule_is_inside(problem: Sum) -> None:
    trees = list(problem.execution.schedules(problem.n, problem.bias is not None, problem.is_dot))
    try:
        results = [problem.evaluate(tree) for tree in trees]
        outer = a_priori(PackedSum.pack(problem))
    except UsageError:  # a NaN in a format without one
        return
    assert all(inside(outer, value) for value in results)
    if outer.exact:
        numbers = [number(v) for v in results if not v.is_nan]
        assert (outer.low is None) == (not numbers)
        assert outer.low is None or (number(outer.low), number(outer.high)) == (min(numbers), max(numbers))  # type: ignore[arg-type]


@pytest.mark.parametrize("ctx", ["float32", "float16", "bfloat16", "float32:RTP", "float16:flush", "float8_e5m2:RTZ"])
@pytest.mark.parametrize("fma", ["never", "any"])
def test_random_orders_of_many_terms_are_inside(ctx: str, fma: str) -> None:
    rng = np.random.default_rng(7)
    kind = context(ctx)
    for scale in (1.0, 1e-4):
        x, w = (round_array(context(kind.format), rng.normal(size=60) * scale) for _ in range(2))
        for order in ("any", "contiguous", "depth:8"):
            packed = PackedSum.of(kind, x, w, execution=execution(order, fma))
            outer = a_priori(packed)
            problem = packed.unpack()
            draw = Random(3)
            for _ in range(12):
                tree = problem.execution.random_schedule(problem.n, draw)
                assert inside(outer, problem.evaluate(tree))


def test_numpy_is_inside() -> None:
    rng = np.random.default_rng(11)
    x = rng.normal(size=5000).astype(np.float32)
    w = rng.normal(size=5000).astype(np.float32)
    outer = a_priori(PackedSum.of(context("float32"), x.astype(float)))
    assert outer.low is not None
    assert outer.high is not None
    for order in (x, np.sort(x), np.sort(x)[::-1], x[np.argsort(np.abs(x))]):
        for total in (np.sum(order), np.cumsum(order)[-1]):
            assert float(outer.low) <= float(total) <= float(outer.high)
    exact = PackedSum.of(context("float32"), x.astype(float), w.astype(float), execution=execution(fma="any"))
    dot = a_priori(exact)
    assert dot.low is not None
    assert dot.high is not None
    assert float(dot.low) <= float(np.dot(w, x)) <= float(dot.high)


def test_integers_are_exact() -> None:
    x = np.arange(1000.0)
    outer = a_priori(PackedSum.of(context("float32"), x))
    assert str(outer.low) == str(outer.high) == "499500.0"


def test_overflow_is_said() -> None:
    both = a_priori(PackedSum.of(context("float16"), np.array([60000.0, 60000, -60000, -60000])))
    assert (str(both.low), str(both.high), both.nan, both.bounded) == ("-inf", "inf", True, False)
    one = a_priori(PackedSum.of(context("float16"), np.array([60000.0, 60000, -1, -1])))
    assert one.low is not None
    assert -2.1 < float(one.low) <= -2
    assert (str(one.high), one.nan) == ("inf", False)
    kept = a_priori(PackedSum.of(context("float16:saturate"), np.array([60000.0, 60000, -60000, -60000])))
    assert (str(kept.low), str(kept.high), kept.nan) == ("-65504.0", "65504.0", False)


@given(st.lists(st.sampled_from(values(float16, finite=True)[::97].tolist()), min_size=2, max_size=40))
@settings(max_examples=40, deadline=None)
def test_recipes_are_schedules(terms: list[float]) -> None:
    """Each recipe is a tree of the family, and its compiled result is the reference's."""
    for order in ("any", "sequential", "contiguous", "depth:8"):
        problem = PackedSum.of(context("float16"), terms, execution=execution(order))
        outer = a_priori(problem)
        for recipe in recipes(problem):
            again = Recipe.from_json(json.loads(json.dumps(recipe.to_json())))
            assert again == recipe
            try:
                value, how = replay(problem, again)
            except UsageError:  # a tree too high for depth:8
                assert order == "depth:8"
                continue
            assert how == "exact scalars"
            assert inside(outer, value)


def test_a_recipe_of_another_family_is_refused() -> None:
    problem = PackedSum.of(context("float16"), [1.0, 2.0, 3.0], execution=execution("sequential"))
    with pytest.raises(UsageError, match="has no tree"):
        run(problem, Recipe("halves"))
    with pytest.raises(UsageError, match="unknown recipe"):
        Recipe("spiral")


@pytest.mark.parametrize("order", ["left-to-right", "right-to-left", "pairwise", "lanes:3", "lanes:8", "blocks:4"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 20, 130, 300])
def test_programs_of_fixed_orders(order: str, n: int) -> None:
    family = parse_order(order)
    built, given_tree = order_program(family, n), program(family.default_tree(n), n)  # type: ignore[arg-type]
    rng = np.random.default_rng(n)
    x = rng.normal(size=n).astype(np.float32).astype(float)
    assert len(built[0]) == len(given_tree[0]) == n - 1
    low, high, _ = ends(PackedSum.of(context("float32"), x, execution=execution(order)), Recipe("order"))
    problem = Sum(context("float32"), PackedSum.of(context("float32"), x).unpack().terms)
    assert low == high == float(problem.evaluate(family.default_tree(n)))


def test_searches_reach_both_sides() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=2000).astype(np.float32).astype(float)
    found = bracket(PackedSum.of(context("float32"), x))
    assert found.reached_low is not None
    assert found.reached_high is not None
    assert found.outer.low is not None
    assert found.outer.high is not None
    exact = sum(map(float, x))
    assert float(found.outer.low) <= float(found.reached_low) < exact
    assert exact < float(found.reached_high) <= float(found.outer.high)
    assert 1 < found.ratio < 20
    assert found.reached_low.format == float32
