"""Sparse networks of several inputs have the values and gradients of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.gradient_vectors import RepresentsVectorGradients
from fpsmt.errors import EvidenceError
from fpsmt.kernel.kernel import Outcome, rule
from fpsmt.kernel.rules.gradient_representation import passes_compared


@rule("both passes at every vector")
def both_passes_at_vectors(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Runs both passes from left to right through every neuron, at every input of the table; any activation.

    `constructions.gradient_passes` is reverse mode on arrays.  Results are compared with the table as numbers; a result
    that is NaN is not a number of the table.
    """
    if not isinstance(claim, RepresentsVectorGradients):
        raise EvidenceError(f"both passes at every vector do not speak about {claim.kind}")
    return passes_compared(claim.network, claim.table)
