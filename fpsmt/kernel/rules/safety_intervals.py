"""A rule about outputs on boxes of inputs: interval bounds over all executions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.properties import Polytope, Query, Safe
from fpsmt.errors import EvidenceError, Unsupported
from fpsmt.floats.vector import to_carrier
from fpsmt.kernel.kernel import Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS, VECTOR
from fpsmt.networks.bounds import enclosures
from fpsmt.networks.nodes import Activation


@rule("intervals exclude unsafe outputs")
def intervals_exclude_unsafe_outputs(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Encloses the outputs on each box over all allowed executions; no unsafe polytope meets the enclosure.

    The values of the input's format in a box are those between its ends rounded inwards (`Query.floats`); a box without
    one says nothing.  `fpsmt.networks.bounds` proves that every execution's output j is a finite number in [lⱼ, hⱼ]
    wherever these are finite.  A row Σ a·yⱼ ≤ b of which Σ_{a>0} a·lⱼ + Σ_{a<0} a·hⱼ > b (≥ b for a strict row), in
    exact rationals, holds for no such outputs, so neither does a polytope with such a row.
    """
    if not isinstance(claim, Safe):
        raise EvidenceError(f"bounds on outputs do not speak about boxes of {claim.kind}")
    boxes = 0
    for k, query in enumerate(claim.safety.queries):
        try:
            found = output_bounds(claim, query)
        except Unsupported as reason:
            return Open(str(reason))
        if found is None:
            continue
        boxes += 1
        left = [p for p, polytope in enumerate(query.unsafe) if not excluded(polytope, *found)]
        if left:
            return Open(f"the bounds of the outputs on box {k} leave unsafe set {left[0]} open")
    return Holds({"boxes": boxes}, (VECTOR, BALLS) if claim.network.of_kind(Activation) else (VECTOR,))


def output_bounds(claim: Safe, query: Query) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Bounds of the outputs on a box, −inf and +inf where nothing is known; None when the box holds no input."""
    sides = query.floats(claim.network.input.format)
    if sides is None:
        return None
    low, high = (to_carrier([pair[k] for pair in sides])[None, :] for k in (0, 1))
    bottom, top = enclosures(claim.network, low, high, executions=claim.executions)[claim.network.output.name]
    return bottom[0], top[0]


def excluded(polytope: Polytope, low: NDArray[np.float64], high: NDArray[np.float64]) -> bool:
    """Whether a row is false for all finite outputs within these bounds."""
    for row, bound, strict in zip(polytope.rows, polytope.rhs, polytope.strict, strict=True):
        ends = [float(low[j] if a > 0 else high[j]) for j, a in row]
        if np.isfinite([low[j] for j, _ in row]).all() and np.isfinite(ends).all():
            least = sum((a * Fraction(end) for (_, a), end in zip(row, ends, strict=True)), Fraction(0))
            if least > bound or (strict and least == bound):
                return True
    return False
