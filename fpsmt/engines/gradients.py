"""Engines for gradients as executed: all forward and backward executions at once."""

from __future__ import annotations

from fpsmt import kernel
from fpsmt.claims.gradients import GradientInvariant, GradientOutcomes
from fpsmt.claims.sums import value_to_json
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported
from fpsmt.kernel import Proved, Unknown, Verdict
from fpsmt.networks.reach import GradientProblem, reachable_gradients


def gradient_outcomes(problem: GradientProblem) -> Proved:
    """The exact set of gradients over all executions, proved; executions that return them are in the evidence.

    Raises `Unsupported`, saying what is too large, beyond the limits of `networks.reach`.

    >>> from fpsmt.floats import exactly, float16
    >>> from fpsmt.networks import PAPER, Network
    >>> net = Network.sequential("float16", 1, [([[1], [1], [1]], None)])
    >>> half = lambda *xs: tuple(exactly(float16, x) for x in xs)
    >>> verdict = gradient_outcomes(GradientProblem(net, half(1), half(2048, 1, 1), backward=PAPER))
    >>> [str(g) for (g,) in verdict.claim.outcomes]
    ['2048.0', '2050.0']
    """
    claim = GradientOutcomes(problem, tuple(reachable_gradients(problem)))
    verdict = kernel.apply("all executions", claim)
    if not isinstance(verdict, Proved):
        raise Unsupported(verdict.reason if isinstance(verdict, Unknown) else str(verdict))
    return verdict


@engine("all executions", GradientOutcomes, GradientInvariant)
def all_executions(claim: GradientOutcomes | GradientInvariant, options: Options) -> Verdict:
    """Follows every reachable state through both passes."""
    verdict = kernel.apply("all executions", claim)
    if not isinstance(verdict, Unknown) or isinstance(claim, GradientInvariant):
        return verdict
    whole = gradient_outcomes(claim.problem)
    assert isinstance(whole.claim, GradientOutcomes)
    actual = [[value_to_json(x) for x in vector] for vector in whole.claim.outcomes]
    return kernel.refute(claim, {"outcomes": actual}, [whole])
