"""Rules about how far one sum can go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.extremes import SumExtremes, SumWithin, witness_to_json
from fpsmt.errors import EvidenceError
from fpsmt.kernel.kernel import Fails, Holds, Open, Outcome, rule
from fpsmt.kernel.trust import VECTOR
from fpsmt.networks.brackets import a_priori
from fpsmt.networks.extremes import extremes, number


@rule("extremes over all schedules")
def extremes_over_all_schedules(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Computes the extremes from those of the parts of every set of terms; the proof is in `networks.extremes`.

    The ends that it finds have been reached by schedules run with exact arithmetic.
    """
    if not isinstance(claim, SumExtremes):
        raise EvidenceError(f"extremes do not speak about {claim.kind}")
    found = extremes(claim.problem)
    for name, witness in found.witness.items():
        if claim.outside(witness.result):
            return Fails(witness_to_json(claim.problem, found.witness[name]))
    for end, actual in ((claim.low, found.low), (claim.high, found.high)):
        if end is not None and (actual is None or number(end) != number(actual)):
            return Open(f"{end} is not reached")
    if claim.nan_reachable != found.nan:
        return Open("NaN is not reached")
    schedules = {name: witness_to_json(claim.problem, witness) for name, witness in found.witness.items()}
    return Holds({"splits": found.splits, "schedules": schedules}, (VECTOR,))


@rule("a-priori bounds")
def a_priori_bounds(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Computes bounds that hold for every schedule; the theorems and their hypotheses are in `networks.brackets`."""
    if not isinstance(claim, SumWithin):
        raise EvidenceError(f"a-priori bounds do not speak about {claim.kind}")
    outer = a_priori(claim.problem)
    if outer.nan or outer.low is None or outer.high is None:
        return Open(f"NaN is not excluded: {outer.method}")
    if claim.outside(outer.low) or claim.outside(outer.high):
        return Open(f"the bounds are [{outer.low}, {outer.high}] ({outer.method})", "widen the interval")
    return Holds({"method": outer.method, "terms": claim.problem.n}, (VECTOR,))
