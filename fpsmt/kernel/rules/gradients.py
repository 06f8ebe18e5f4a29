"""Rules about gradients as executed: all forward and backward executions exhausted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.gradients import GradientInvariant, GradientOutcomes, run_to_json
from fpsmt.errors import EvidenceError, Unsupported, UsageError
from fpsmt.functions import CorrectlyRounded, Implementation
from fpsmt.kernel.kernel import Fails, Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS
from fpsmt.networks.nodes import Activation
from fpsmt.networks.reach import GradientProblem, reachable_gradients

MOST_STORED = 64  #: executions kept in the evidence


@rule("all executions")
def all_executions(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Computes the set of gradients over all forward and backward executions with exact arithmetic.

    An execution is a choice for each sum and each inexact activation.  What a node does depends on the values it reads
    and on its own choices alone, so following every reachable state through the nodes, and in each of them every
    result that its sums can reach (`networks.outcomes`), meets every execution.  States that agree on all that
    later steps read have the same continuations; for an activation that is what its derivative rule makes of its
    input and output.  Each gradient found is returned by an execution that is replayed.
    """
    if not isinstance(claim, GradientOutcomes | GradientInvariant):
        raise EvidenceError(f"executions of reverse mode do not speak about {claim.kind}")
    try:
        found = reachable_gradients(claim.problem)
    except Unsupported as reason:
        return Open(str(reason), "narrow the orders, ask for one component, or state it as a formula for solvers")
    except UsageError as reason:
        return Open(f"some execution has no gradient: {reason}")
    runs = {vector: run_to_json(one) for vector, one in found.items()}
    if isinstance(claim, GradientInvariant):
        if len(found) > 1:
            return Fails({"executions": list(runs.values())[:2]})
        return Holds({"gradient": [x.hex for x in next(iter(found))]}, _trusted(claim.problem))
    for vector, one in runs.items():
        if vector not in claim.outcomes:
            return Fails({"execution": one})
    if set(found) != set(claim.outcomes):
        return Open("some of the gradients are never returned")
    executions = [{"gradient": [x.hex for x in vector], **one} for vector, one in list(runs.items())[:MOST_STORED]]
    return Holds({"gradients": len(found), "executions": executions}, _trusted(claim.problem))


def _trusted(problem: GradientProblem) -> tuple[str, ...]:
    exact = all(_piecewise_linear(node.implementation) for node in problem.network.of_kind(Activation))
    return () if exact else (BALLS,)


def _piecewise_linear(use: Implementation) -> bool:
    """Decided by algebra alone."""
    lines = use.function.lines
    whole = any(line.low is None for line in lines) and any(line.high is None for line in lines)
    return whole and isinstance(use.contract, CorrectlyRounded)
