"""Bounds of the outputs on the whole box of a query, computed once for all engines."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.properties import Polytope, Safe
from fpsmt.errors import Unsupported
from fpsmt.kernel.rules.safety_intervals import excluded, output_bounds

Array = NDArray[np.float64]

_ROOTS: WeakKeyDictionary[Safe, dict[int, tuple[Array, Array] | Unsupported | None]] = WeakKeyDictionary()


def root_bounds(claim: Safe, number: int) -> tuple[Array, Array] | None:
    """Bounds of the outputs on the box of a query, as `output_bounds` has them, computed once for all engines."""
    known = _ROOTS.setdefault(claim, {})
    if number not in known:
        try:
            known[number] = output_bounds(claim, claim.safety.queries[number])
        except Unsupported as reason:
            known[number] = reason
    found = known[number]
    if isinstance(found, Unsupported):
        raise found
    return found


def left_at_root(claim: Safe, number: int) -> list[Polytope]:
    """The unsafe sets that these bounds do not exclude."""
    unsafe = claim.safety.queries[number].unsafe
    try:
        found = root_bounds(claim, number)
    except Unsupported:
        return list(unsafe)
    return [] if found is None else [p for p in unsafe if not excluded(p, *found)]
