"""Exact extremes against every tree, one by one."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import HealthCheck, assume, given, settings

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Float, context, exactly, float8_e4m3fn, float16, float32, from_ordinal, infinity, nearest
from fpsmt.networks.executions import execution
from fpsmt.networks.extremes import Box, BoxSum, Extremes, extremes, number
from fpsmt.networks.outcomes import Sum, reachable, reachable_by_scalars
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
@settings(max_examples=300, deadline=None, suppress_health_check=SLOW)
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


def numbers(fmt, *values):
    return tuple(nearest(fmt, Fraction(v)) for v in values)


def test_seven_terms_in_every_order() -> None:
    for fmt, terms in (
        (float16, numbers(float16, 2048, 3, "1/2", -2047, 1, 5, "3/4")),
        (float32, numbers(float32, 2**24, 3, 1, 1, -(2**24), "1/3", 5)),
    ):
        problem = Sum(context(fmt), terms)
        agrees(extremes(problem), list(reachable_by_scalars(problem)))


@pytest.mark.parametrize("fma", ["never", "any", "always"])
def test_ten_products(fma: str) -> None:
    """Beyond enumeration: the set of outcomes has the same ends."""
    w = numbers(float16, 1.5, -0.75, 33, 7, 0.0999, -12, 3.25, -31, 1, 2)
    x = numbers(float16, 1.0625, 3.5, 2, -5, 77, 4.125, 0.3, 2.03, -1, 0.25)
    problem = Sum(context("float16"), tuple(zip(w, x)), nearest(float16, Fraction(1, 3)), execution("any", fma))
    found = reachable(problem)
    agrees(extremes(problem), list(found))
    assert len(found) > 3


def test_equal_terms_are_pooled() -> None:
    ones = numbers(float16, *[1] * 9, *[2048] * 2, -2048)
    problem = Sum(context("float16"), ones)
    found = extremes(problem)
    assert found.splits < 3**9
    agrees(found, list(reachable(problem)))


def test_a_box_of_all_finite_values() -> None:
    """Two free terms and a fixed one: overflow both ways, and NaN in trees that let infinities meet."""
    top = from_ordinal(float16, float16.largest_code)
    free = Box(-top, top)
    four = BoxSum(context("float16"), (free, free, free, free))
    found = extremes(four)
    assert (found.low, found.high, found.nan) == (infinity(float16, True), infinity(float16), True)
    folds = extremes(BoxSum(context("float16"), (free,) * 3, None, execution("sequential")))
    assert not folds.nan
    one = exactly(float16, 1)
    alone = extremes(BoxSum(context("float16"), (Box(one, one), Box(-one, one))))
    assert (str(alone.low), str(alone.high)) == ("0.0", "2.0")


def test_zero_times_a_box_with_infinity_may_be_nan() -> None:
    nil, inf, one = exactly(float16, 0), infinity(float16), exactly(float16, 1)
    found = extremes(BoxSum(context("float16"), ((nil, Box(-inf, inf)),)))
    assert found.low is not None
    assert found.high is not None
    assert (found.low.is_zero, found.high.is_zero, found.nan) == (True, True, True)
    assert found.witness["nan"].inputs.terms[0][1].is_infinite  # type: ignore[index]
    some = extremes(BoxSum(context("float16"), ((Box(nil, one), inf), (one, one))))
    assert (some.low, some.high, some.nan) == (inf, inf, True)


def test_overflow_to_nan_is_declined() -> None:
    terms = numbers(float8_e4m3fn, 256, 256, -256)
    with pytest.raises(Unsupported, match="overflow to NaN"):
        extremes(Sum(context("float8_e4m3fn:nan"), terms))
    small = extremes(Sum(context("float8_e4m3fn:nan"), numbers(float8_e4m3fn, 16, 1, 1)))
    assert (str(small.low), str(small.high)) == ("16.0", "18.0")


@pytest.mark.parametrize("n", [40, 4096])
def test_too_many_terms_are_declined(n: int) -> None:
    many = tuple(nearest(float32, Fraction(k * k + 1, 7)) for k in range(n))
    with pytest.raises(Unsupported, match="use the bracket"):
        extremes(Sum(context("float32"), many))
