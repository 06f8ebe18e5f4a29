"""Rules about predictions: bounds of the outputs over every execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.predictions import PredictionInvariant
from fpsmt.errors import EvidenceError, Unsupported
from fpsmt.floats.vector import to_carrier
from fpsmt.kernel.kernel import Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS, VECTOR
from fpsmt.networks.bounds import Interval, enclosures
from fpsmt.networks.nodes import Activation


@rule("bounds on every execution")
def bounds_on_every_execution(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Encloses the outputs over all allowed executions; one of them lies above all others whatever the execution.

    `fpsmt.networks.bounds` proves that every execution's outputs are finite numbers in the enclosures [lᵢ, hᵢ].  When
    hⱼ < lᵢ for all j < i and hⱼ ≤ lᵢ for all j > i, then in every execution output i is above those before it and at
    least those after it: i is the first index of the greatest output.
    """
    if not isinstance(claim, PredictionInvariant):
        raise EvidenceError(f"bounds on outputs do not speak about {claim.kind}")
    try:
        low, high = value_bounds(claim)[claim.network.output.name]
    except Unsupported as reason:
        return Open(str(reason))
    winners = certain_winners(low, high)
    left = np.flatnonzero(winners < 0)
    if left.size:
        what = f"input {left[0]}" if left.size == 1 else f"{left.size} of {len(winners)} inputs"
        return Open(f"the bounds of the outputs of {what} leave more than one class", "search for two executions")
    trusted = (VECTOR, BALLS) if claim.network.of_kind(Activation) else (VECTOR,)
    return Holds({"inputs": len(winners), "predictions": winners.tolist()}, trusted)


def value_bounds(claim: PredictionInvariant) -> dict[str, Interval]:
    """Bounds of each node's values over all executions, of shape (inputs, size)."""
    points = np.stack([to_carrier(x) for x in claim.inputs])
    return enclosures(claim.network, points, executions=claim.executions)


def certain_winners(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.intp]:
    """For each row of bounds the index that every choice of values makes the first greatest one, else −1."""
    count = low.shape[1]
    best = np.argmax(low, axis=1)  # no other index can have a lower bound that is above all upper bounds
    threshold = low[np.arange(len(low)), best][:, None]
    index, chosen = np.arange(count)[None, :], best[:, None]
    beaten = np.where(index < chosen, high < threshold, high <= threshold) | (index == chosen)
    finite = np.isfinite(low).all(axis=1) & np.isfinite(high).all(axis=1)
    return np.where(beaten.all(axis=1) & finite, best, -1)
