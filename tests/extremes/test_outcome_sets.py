"""Compiled sets of outcomes are those of exact scalars, and every schedule gives its outcome."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from fpsmt.errors import UsageError
from fpsmt.floats import context, exactly, float16
from fpsmt.networks import outcomes
from fpsmt.networks.executions import execution
from fpsmt.networks.outcomes import Sum, reachable, reachable_by_scalars, uses_compiled
from tests.extremes.strategies import sums


@given(sums(6, ("any", "sequential", "contiguous", "contiguous|sequential")))
@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
)
def test_sets_are_those_of_exact_scalars(problem: Sum) -> None:
    reachable.cache_clear()
    before, outcomes.FEW = outcomes.FEW, 1  # small sums too
    try:
        expected = reachable_by_scalars(problem)
    except UsageError:
        with pytest.raises(UsageError):
            reachable(problem)
        return
    finally:
        outcomes.FEW = 1
    try:
        found = reachable(problem)
        compiled = uses_compiled(problem)
    finally:
        outcomes.FEW = before
    assert list(found) == list(expected)
    for value, tree in found.items():
        assert problem.allows(tree)
        assert problem.evaluate(tree) == value
    assert compiled == (problem.n + (problem.bias is not None) > 2)


def test_twelve_terms() -> None:
    numbers = [2048, 1, 3, 5, 0.5, 7, 4096, -4096, 1.5, -2047, 0.25, 9]
    problem = Sum(context("float16"), tuple(exactly(float16, v) for v in numbers))
    found = reachable(problem)
    assert len(found) > 20
    assert uses_compiled(problem)
    some = list(found.items())[:: len(found) // 5]
    assert all(problem.evaluate(tree) == value for value, tree in some)
    folds = reachable(Sum(problem.context, problem.terms, None, execution("sequential")))
    assert set(folds) < set(found)
