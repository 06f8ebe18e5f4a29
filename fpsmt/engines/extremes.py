"""Engines for how far one sum can go."""

from __future__ import annotations

import time

from fpsmt import kernel
from fpsmt.claims.claim import Json
from fpsmt.claims.extremes import SumExtremes, SumWithin
from fpsmt.engines.engine import Options, engine
from fpsmt.kernel import Proved, Unknown, Verdict
from fpsmt.networks import extremes as exact
from fpsmt.networks.extremes import BoxSum
from fpsmt.networks.order_search import search
from fpsmt.networks.outcomes import Sum


def extremes(problem: Sum | BoxSum) -> Proved:
    """The exact extremes of a sum over all schedules (and terms in boxes), proved; schedules are in the evidence.

    >>> from fpsmt.floats import context, exactly, float16
    >>> x = tuple(exactly(float16, v) for v in (2048, 1, 1))
    >>> extremes(Sum(context("float16"), x)).claim.text
    'over all schedules: min = 2048.0, max = 2050.0, never NaN, for 2048.0 + 1.0 + 1.0 in float16, any'
    """
    boxed = BoxSum.of(problem) if isinstance(problem, Sum) else problem
    found = exact.extremes(boxed)
    verdict = kernel.apply("extremes over all schedules", SumExtremes(boxed, found.low, found.high, found.nan))
    assert isinstance(verdict, Proved)
    return verdict


@engine("extremes over all schedules", SumExtremes)
def extremes_over_all_schedules(claim: SumExtremes, options: Options) -> Verdict:
    """The table of extremes of sets of terms; where a claimed end is not reached, the true ends refute it."""
    verdict = kernel.apply("extremes over all schedules", claim)
    if not isinstance(verdict, Unknown):
        return verdict
    whole = extremes(claim.problem)
    assert isinstance(whole.claim, SumExtremes)
    actual: Json = {name: whole.claim.fields()[name] for name in ("low", "high", "nan_reachable")}
    return kernel.refute(claim, {"extremes": actual}, [whole])


@engine("a-priori bounds", SumWithin)
def a_priori_bounds(claim: SumWithin, options: Options) -> Verdict:
    """Bounds for every schedule."""
    return kernel.apply("a-priori bounds", claim)


@engine("search of orders", SumWithin)
def search_of_orders(claim: SumWithin, options: Options) -> Verdict:
    """Orders that reach far, replayed."""
    start = time.monotonic()
    found = search(claim.problem, seed=options.seed, deadline=start + options.timeout / 2)
    recipes = [end[1] for end in (found.low, found.high) if end is not None and claim.outside(end[0])]
    recipes += [] if found.nan is None else [found.nan]
    if recipes:
        return kernel.refute(claim, {"recipe": recipes[0].to_json()}, seconds=time.monotonic() - start)
    return Unknown(claim, f"none of {found.tried} orders leaves the interval", time.monotonic() - start)
