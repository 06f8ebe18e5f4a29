"""Sparse networks of several inputs have the values and gradients of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.gradient_vectors import RepresentsVectorGradients
from fpsmt.constructions.gradient_passes import both_passes
from fpsmt.errors import EvidenceError, Unsupported
from fpsmt.kernel.kernel import Fails, Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS, VECTOR


@rule("both passes at every vector")
def both_passes_at_vectors(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Runs both passes from left to right through every neuron, at every input of the table; any activation.

    `constructions.gradient_passes` is reverse mode on arrays.  Results are compared with the table as numbers; a result
    that is NaN is not a number of the table.
    """
    if not isinstance(claim, RepresentsVectorGradients):
        raise EvidenceError(f"both passes at every vector do not speak about {claim.kind}")
    table = claim.table
    try:
        output, gradient = both_passes(claim.network, table.points, table.upstream)
    except Unsupported as reason:
        return Open(str(reason))
    wrong = ~((output == table.values) & (gradient == table.gradients).all(axis=1))
    if wrong.any():
        return Fails({"point": int(np.argmax(wrong))})
    return Holds({"inputs_checked": len(table), "layers": len(claim.network.layers)}, (VECTOR, BALLS))
