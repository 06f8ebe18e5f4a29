"""Rules about one sum: all schedules exhausted through the sets of values of its subtrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.sums import SumInvariant, SumOutcomes
from fpsmt.errors import EvidenceError
from fpsmt.kernel.kernel import Fails, Holds, Open, Outcome, rule
from fpsmt.kernel.trust import VECTOR
from fpsmt.networks.outcomes import reachable, uses_compiled
from fpsmt.networks.trees import tree_to_json


@rule("all schedules")
def all_schedules(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Computes the set of results over every allowed schedule: by compiled arithmetic where the sum is long enough,
    by exact scalars else.

    A node's value depends only on the values of its two subtrees, so the values that a set of terms can sum
    to are all roundings of all pairs of values of its splits: the table covers every tree.
    """
    if not isinstance(claim, SumOutcomes | SumInvariant):
        raise EvidenceError(f"schedules do not speak about {claim.kind}")
    found = reachable(claim.problem)
    trees = [tree_to_json(tree) for tree in found.values()]
    trusted = (VECTOR,) if uses_compiled(claim.problem) else ()
    if isinstance(claim, SumInvariant):
        return Holds({"result": next(iter(found)).hex}, trusted) if len(found) == 1 else Fails({"schedules": trees[:2]})
    for value, tree in zip(found, trees, strict=True):
        if value not in claim.outcomes:
            return Fails({"schedule": tree})
    if set(found) != set(claim.outcomes):
        return Open("some of the outcomes are never reached")
    schedules = {value.hex: tree for value, tree in zip(found, trees)}
    return Holds({"outcomes": len(found), "schedules": schedules}, trusted)
