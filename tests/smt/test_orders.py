"""Sums with a free order: the pool, the enumeration and brute force agree."""

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import terms as t
from fpsmt.floats import context
from fpsmt.networks.executions import Execution, execution
from fpsmt.networks.sums import evaluate_tree
from fpsmt.networks.trees import check_tree
from fpsmt.smt import solve
from fpsmt.smt.orders import enumerated_sum, ordered_sum
from tests.terms.generators import random_float

CONTEXTS = ["float16", "float8_e5m2", "float8_e4m3fn:saturate", "bfloat16:RTZ", "ieee(3,3):RTP", "float8_e4m3fnuz:nan"]
EXECUTIONS = [
    execution(),
    execution("sequential"),
    execution("contiguous"),
    execution("depth:2"),
    execution("pairwise"),
    execution(fma="any"),
    execution("sequential", fma="always"),
    execution(products="exact", accumulator="float16"),
    execution(fma="any", bias="any", accumulator="float32"),
    execution("contiguous", bias="first"),
    execution(bias="first", fma="always"),
]


def all_choices(free):
    """Every valid assignment of the choice variables."""
    for row in itertools.product(*(range(c.sort.size) for c in free.choices)):
        values = {c.data: k for c, k in zip(free.choices, row)}
        if t.evaluate(free.valid, values):
            yield values


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("run", EXECUTIONS, ids=str)
def test_the_choices_describe_exactly_the_schedules_and_their_values(run, bias, n):
    if not run.order.has(n) or (bias and run.bias == "first" and not run.order.has(n + 1)):
        pytest.skip("the family has no tree of this size")
    rng = random.Random(n)
    ctx = context("float8_e4m3")
    pairs = [(random_float(ctx.format, rng), random_float(ctx.format, rng)) for _ in range(n)]
    b = random_float(ctx.format, rng) if bias else None
    as_terms = [(t.const(w), t.const(x)) for w, x in pairs]
    want = {str(tree): evaluate_tree(ctx, tree, pairs, b, run).result for tree in run.schedules(n, bias)}
    checked = False
    for build, most in ((ordered_sum, 2500), (enumerated_sum, 300)):
        free = build(ctx, as_terms, None if b is None else t.const(b), run)
        if math.prod(c.sort.size for c in free.choices) > most:
            continue
        checked = True
        seen = {}
        for values in all_choices(free):
            tree = free.schedule(values)
            check_tree(tree, n + bias)
            seen[str(tree)] = t.evaluate(free.value, values)
        assert seen == want
    if not checked:
        pytest.skip("too many choices to try them all")


def test_the_pool_describes_few_trees_twice():
    ctx = context("float16")
    xs = [t.var(f"x{i}", ctx.format) for i in range(5)]
    assert sum(1 for _ in all_choices(ordered_sum(ctx, xs))) < 1.3 * 105
    assert sum(1 for _ in all_choices(ordered_sum(ctx, xs, execution=Execution(execution("contiguous").order)))) == 14


@given(st.sampled_from(CONTEXTS), st.integers(3, 4), st.randoms(use_true_random=False))
@settings(max_examples=5, deadline=None)
def test_the_solver_reaches_exactly_the_reachable_results(name, n, rng):
    ctx = context(name)
    terms = [random_float(ctx.format, rng) for _ in range(n)]
    if any(x.is_nan for x in terms):
        return
    reachable = {evaluate_tree(ctx, tree, terms).result for tree in Execution().schedules(n)}
    target = rng.choice(sorted(reachable, key=lambda x: x.code))
    xs = [t.var(f"x{i}", ctx.format) for i in range(n)]
    fixed = [t.same(x, t.const(v)) for x, v in zip(xs, terms)]
    for build in (ordered_sum, enumerated_sum):
        free = build(ctx, xs)
        answer = solve(t.all_of(free.valid, *fixed, t.same(free.value, t.const(target))), timeout=30)
        assert answer.status == "sat"
        assert evaluate_tree(ctx, free.schedule(answer.assignment.values), terms).result == target
        others = t.all_of(*(t.negation(t.same(free.value, t.const(r))) for r in reachable))
        assert solve(t.all_of(free.valid, *fixed, others), timeout=30).status == "unsat"


def test_an_order_dependent_sum_of_unknown_terms():
    ctx = context("float16")
    xs = [t.var(f"x{i}", ctx.format) for i in range(4)]
    first, second = ordered_sum(ctx, xs, name="first"), ordered_sum(ctx, xs, name="second")
    differ = t.negation(t.same(first.value, second.value))
    inside = [t.all_of(t.le(t.const(one), x), t.lt(x, t.const(two))) for x in xs for one, two in [bounds(ctx)]]
    answer = solve(t.all_of(first.valid, second.valid, differ, *inside), timeout=60)
    assert answer.status == "sat"
    values = answer.assignment.values
    summands = [values[f"x{i}"] for i in range(4)]
    results = [evaluate_tree(ctx, free.schedule(values), summands).result for free in (first, second)]
    assert results[0] != results[1]


def bounds(ctx):
    from fpsmt.floats import exactly

    return exactly(ctx.format, 1), exactly(ctx.format, 2)
