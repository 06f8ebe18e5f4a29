"""Sets of outcomes: every tree through the values of its subtrees, against every tree one by one."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Row, Rows, benchmark, compare, seconds
from fpsmt.floats import Float, context
from fpsmt.floats.vector import round_array, to_floats
from fpsmt.networks import Sum, reachable


def _problem(n: int, name: str = "float16") -> Sum:
    ctx = context(name)
    x = np.random.default_rng(n).normal(size=n)
    return Sum(ctx, tuple(to_floats(ctx.format, round_array(ctx, x))))


def _reach(problem: Sum) -> int:
    reachable.cache_clear()
    return len(reachable(problem))


@benchmark("outcomes")
def outcomes() -> Rows:
    """The exact set of outcomes over every tree of every permutation."""
    small = _problem(7)
    peer = compare(f"all {small.execution.order.count(7)} trees", _brute, small)
    yield Row("outcomes of 7 float16 terms, any order", seconds(_reach, small, repeat=3), peer=peer)
    for n in (8, 10):
        yield Row(f"outcomes of {n} float16 terms, any order", seconds(_reach, _problem(n)))


def _brute(problem: Sum) -> float:
    """Every tree one by one, and the same set."""
    found: set[Float] = set()
    trees = problem.execution.schedules(problem.n, products=False)
    taken = seconds(lambda: found.update(problem.evaluate(tree) for tree in trees))
    if found != set(reachable(problem)):
        raise RuntimeError("the sets differ")
    return taken


@benchmark("extremes")
def extreme_results() -> Rows:
    """The least and the greatest result over every tree of every permutation, each with its tree."""
    from fpsmt.networks.extremes import extremes

    extremes(_problem(5))
    small = _problem(10)
    peer = compare("exact set", seconds, _reach, small)
    yield Row("extremes of 10 float16 terms, any order", seconds(extremes, small), peer=peer)
    for n, target in ((16, 0.1), (20, 10.0)):
        yield Row(f"extremes of {n} float16 terms, any order", seconds(extremes, _problem(n)), target)
