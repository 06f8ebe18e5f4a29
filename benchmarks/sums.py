"""Sets of outcomes: every tree through the values of its subtrees, against every tree one by one."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.measure import Row, Rows, benchmark, compare, seconds, solver_seconds
from fpsmt.floats import Float, context
from fpsmt.floats.vector import round_array, to_floats
from fpsmt.networks import Sum, reachable
from fpsmt.networks.extremes import extremes


def _problem(n: int, name: str = "float16", draw: int = 0) -> Sum:
    ctx = context(name)
    x = np.random.default_rng(n + 1000 * draw).normal(size=n)
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
    few, seven, ten = _problem(4), _problem(7), _problem(10)
    peer = compare("z3: no order gives more", _no_order_gives_more, few)
    yield Row("extremes of 4 float16 terms, any order", _ends(4), peer=peer)
    peer = compare(f"all {seven.execution.order.count(7)} trees", _brute_extremes, seven)
    yield Row("extremes of 7 float16 terms, any order", _ends(7), peer=peer)
    yield Row("extremes of 10 float16 terms, any order", _ends(10), peer=compare("exact set", _exact, ten))
    for name in ("float16", "float32"):
        _ends(13, name)
        for n, draws, target in ((16, 3, 0.1), (20, 1, 10.0)):
            yield Row(f"extremes of {n} {name} terms, any order", _ends(n, name, draws), target)


def _ends(n: int, name: str = "float16", draws: int = 3) -> float:
    """The least time over a few sums: a sum that was asked for before is remembered."""
    return min(seconds(extremes, _problem(n, name, draw)) for draw in range(1, draws + 1))


def _exact(problem: Sum) -> float:
    return seconds(_reach, problem)


def _brute_extremes(problem: Sum) -> float:
    """Every tree one by one, and the same ends."""
    found: list[Float] = []
    trees = problem.execution.schedules(problem.n, products=False)
    taken = seconds(lambda: found.extend(problem.evaluate(tree) for tree in trees))
    ends = extremes(problem)
    if (min(found, key=lambda y: y.ordinal), max(found, key=lambda y: y.ordinal)) != (ends.low, ends.high):
        raise RuntimeError("the extremes differ")
    return taken


def _no_order_gives_more(problem: Sum) -> float:
    """The greatest result as a query whose order is a variable: unsat."""
    from fpsmt.smt.orders import ordered_sum
    from fpsmt.terms import all_of, const, lt

    free = ordered_sum(problem.context, [const(x) for x in problem.terms])
    more = lt(const(extremes(problem).high), free.value)
    return solver_seconds(all_of(free.valid, more), "z3", "unsat")


@benchmark("reveal")
def revealed() -> Rows:
    """Trees of numpy's float32 sum, by calls: fewer than 2 per term, where asking about every pair takes n(n − 1)/2."""
    from fpsmt.engines.reveal import reveal

    for n in (100, 1000, 4000):
        start = time.perf_counter()
        calls = reveal(np.sum, n, vectors=60).calls
        taken = time.perf_counter() - start
        yield Row(f"tree of np.sum, {n} float32: {calls} calls, {calls / n:.2f} n", taken)
