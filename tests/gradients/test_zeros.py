"""Sums without their zero terms have the results of the whole sums, and their schedules carry over."""

from __future__ import annotations

from random import Random

import pytest

from fpsmt.floats import Float, context, exactly, float8_e4m3, float8_e5m2, float16, from_ordinal, zero
from fpsmt.networks import execution
from fpsmt.networks.outcomes import Sum, reachable_by_scalars
from fpsmt.networks.zeros import without_zeros


@pytest.mark.parametrize("how", [execution(), execution(accumulator="float16")], ids=str)
def test_nothing_is_lost(how) -> None:
    """Zeros of both signs, cancelling terms, subnormals, NaN and infinities; with and without a bias."""
    rng, reduced = Random(3), 0
    for _ in range(700):
        ctx = context(rng.choice([float8_e4m3, float8_e5m2, float16]))
        fmt = how.sum_context(ctx).format
        pool = [zero(fmt), zero(fmt), *(Float(fmt, rng.randrange(1 << fmt.bits)) for _ in range(2))]
        pool.append(from_ordinal(fmt, rng.choice([1, 2, 3])))
        pool += [-x for x in pool]
        terms = tuple(rng.choice(pool) for _ in range(rng.randint(1, 5)))
        bias = rng.choice([None, zero(fmt, True), zero(fmt), exactly(fmt, 1)])
        problem = Sum(ctx, terms, bias, how)
        found = without_zeros(problem)
        if found is None:
            continue
        rest, whole = found
        reduced += 1
        results = reachable_by_scalars(rest)
        assert set(results) == set(reachable_by_scalars(problem))
        for value, tree in results.items():
            assert problem.allows(whole(tree)) and problem.evaluate(whole(tree)) == value
    assert reduced > 300


@pytest.mark.parametrize(
    ("ctx", "how"),
    [
        ("float16:rtn", execution()),
        ("float16:flush", execution()),
        ("float16", execution("left-to-right")),
        ("float16", execution(fma="any")),
        ("float16", execution(bias="any")),
    ],
)
def test_where_zeros_may_matter(ctx: str, how) -> None:
    terms = tuple(exactly(float16, x) for x in (1, 0, -1))
    assert without_zeros(Sum(context(ctx), terms, exactly(float16, 1), how)) is None
