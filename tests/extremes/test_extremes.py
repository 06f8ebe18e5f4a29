"""Exact extremes against every tree, one by one."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Float, context, exactly, float16, float32, format_named, nearest
from fpsmt.networks.executions import execution
from fpsmt.networks.extremes import Box, BoxSum, Extremes, extremes, number
from fpsmt.networks.outcomes import Sum
from tests.extremes.strategies import box_sums, members, same_number, sums

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much]


def results(problem: Sum) -> list[Float]:
    """The result under every schedule."""
    trees = problem.execution.schedules(problem.n, problem.bias is not None, problem.is_dot)
    return [problem.evaluate(tree) for tree in trees]


def agrees(found: Extremes, reached: list[Float]) -> None:
    numbers = [number(v) for v in reached if not v.is_nan]
    assert found.nan == any(v.is_nan for v in reached)
    assert same_number(found.low, min(numbers, default=None))
    assert same_number(found.high, max(numbers, default=None))


def witnesses_hold(problem: BoxSum, found: Extremes) -> None:
    for name, witness in found.witness.items():
        assert problem.admits(witness.inputs)
        assert witness.inputs.allows(witness.schedule)
        value = witness.inputs.evaluate(witness.schedule)
        assert value == witness.result
        assert value.is_nan if name == "nan" else value == {"low": found.low, "high": found.high}[name]


def expected(problem: Sum) -> list[Float] | None:
    """The results, or None where the reference refuses (a NaN without a code for it, no such tree)."""
    try:
        return results(problem)
    except UsageError:
        return None


@given(sums())
@settings(max_examples=400, deadline=None, suppress_health_check=SLOW)
def test_extremes_are_those_of_all_schedules(problem: Sum) -> None:
    reached = expected(problem)
    if reached is None:
        with pytest.raises((UsageError, Unsupported)):
            extremes(problem)
        return
    try:
        found = extremes(problem)
    except Unsupported:
        overflows = {problem.context.overflow, problem.execution.sum_context(problem.context).overflow}
        product_rule = problem.execution.product_context(problem.context)
        assert any(rule.value == "nan" for rule in overflows | ({product_rule.overflow} if product_rule else set()))
        return
    agrees(found, reached)
    witnesses_hold(BoxSum.of(problem), found)


@given(box_sums())
@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
def test_boxes(problem: BoxSum) -> None:
    leaves = [r for t in problem.terms for r in (t if isinstance(t, tuple) else (t,))]
    leaves += [] if problem.bias is None else [problem.bias]
    every = [members(r) for r in leaves]
    reached: list[Float] = []
    for chosen in product(*every):
        values = iter(chosen)
        terms = tuple(
            (next(values), next(values)) if isinstance(t, tuple) else next(values) for t in problem.terms
        )
        bias = None if problem.bias is None else next(values)
        fixed = Sum(problem.context, terms, bias, problem.execution)  # type: ignore[arg-type]
        assert problem.admits(fixed)
        some = expected(fixed)
        assume(some is not None and len(reached) < 4000)
        reached += some or []
    try:
        found = extremes(problem)
    except Unsupported:
        assume(False)
    agrees(found, reached)
    witnesses_hold(problem, found)
