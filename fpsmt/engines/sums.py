"""Engines for one sum: all schedules at once."""

from __future__ import annotations

from fpsmt import kernel
from fpsmt.claims.sums import SumInvariant, SumOutcomes, value_to_json
from fpsmt.engines.engine import Options, engine
from fpsmt.kernel import Proved, Unknown, Verdict
from fpsmt.networks.outcomes import Sum, reachable


def outcomes(problem: Sum) -> Proved:
    """The exact set of outcomes of a sum, proved; its schedules are in the evidence.

    >>> from fpsmt.floats import context, exactly, float16
    >>> ones = tuple(exactly(float16, v) for v in (2048, 1, 1))
    >>> [str(v) for v in outcomes(Sum(context("float16"), ones)).claim.outcomes]
    ['2048.0', '2050.0']
    """
    verdict = kernel.apply("all schedules", SumOutcomes(problem, tuple(reachable(problem))))
    assert isinstance(verdict, Proved)
    return verdict


@engine("all schedules", SumOutcomes, SumInvariant)
def all_schedules(claim: SumOutcomes | SumInvariant, options: Options) -> Verdict:
    """Exhausts the schedules through the values of subtrees."""
    verdict = kernel.apply("all schedules", claim)
    if isinstance(verdict, Unknown) and isinstance(claim, SumOutcomes):
        whole = outcomes(claim.problem)
        assert isinstance(whole.claim, SumOutcomes)
        actual = [value_to_json(v) for v in whole.claim.outcomes]
        return kernel.refute(claim, {"outcomes": actual}, [whole])
    return verdict



