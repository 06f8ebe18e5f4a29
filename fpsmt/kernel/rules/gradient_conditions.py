"""The rule about Conditions 2 and 3 of arXiv 2605.01702."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.gradient_conditions import GradientCondition2, GradientCondition3
from fpsmt.errors import EvidenceError
from fpsmt.kernel.kernel import Fails, Holds, Outcome, rule
from fpsmt.kernel.trust import BALLS


@rule("gradient condition")
def gradient_condition(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Computes every requirement of the condition at the witness.

    σ and σ′ are rounded correctly from balls, and the extremes of σ over all floats of an interval are those at its
    ends and beside the turning points; everything else is arithmetic of rationals.
    """
    if not isinstance(claim, GradientCondition2 | GradientCondition3):
        raise EvidenceError(f"a gradient condition does not speak about {claim.kind}")
    if not claim.holds:
        return Fails({})
    return Holds({what: numbers for what, _, numbers in claim.parts()}, (BALLS,))
