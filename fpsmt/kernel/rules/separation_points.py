"""Rules about separation points: which floats are one, and whether every implementation has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from fpsmt.claims.adversary import CHUNK, allowed, allowed_on, pattern, points, ranges
from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.functions import read_value
from fpsmt.claims.separation import AlwaysSeparates, Compliant, SeparationCount, SeparationPoints
from fpsmt.errors import EvidenceError
from fpsmt.kernel.kernel import Fails, Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS, VECTOR


@rule("separation points exhausted")
def separation_points(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Compares, for every float inside the run, the set allowed at its predecessor with the one at itself and the one
    at its successor: the float is a separation point of every implementation exactly when the first meets neither.

    If it meets one of them, an implementation may give one result at both; if not, none can, whatever else it does.
    """
    if isinstance(claim, SeparationCount):
        count = sum(len(part) for _, _, part in points(claim.run))
        if count != claim.count:
            return Open(f"there are {count}")
        return Holds({"floats": len(claim.run)}, (VECTOR, BALLS))
    if not isinstance(claim, SeparationPoints):
        raise EvidenceError(f"separation points do not speak about {claim.kind}")
    found = np.concatenate([np.zeros(0, np.int64), *(part for _, _, part in points(claim.run))])
    if ranges(found) == claim.places:
        return Holds({"floats": len(claim.run), "points": claim.count}, (VECTOR, BALLS))
    listed = np.array([p for first, last in claim.places for p in range(first, last + 1)], np.int64)
    return Fails({"eta": claim.run.at(int(np.setxor1d(found, listed)[0])).hex})


@rule("no implementation avoids separation points")
def adversary(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Decides exactly whether an implementation can do without: `fpsmt.claims.adversary`.

    Results on a run have no separation point exactly when they are constant and then alternate between two values, so
    that one implementation avoids them if and only if for some k the sets allowed at the first k places and every
    second one after them have a common value, and so have the sets at the other places.  Allowed sets are intervals.
    """
    if not isinstance(claim, AlwaysSeparates):
        raise EvidenceError(f"avoiding separation points does not speak about {claim.kind}")
    found = pattern(claim.run.low.ordinal, *allowed(claim.run))
    if found is not None:
        return Open(f"an implementation avoids them: {Compliant(claim.run, found).text}")
    return Holds({"floats": len(claim.run)}, (VECTOR, BALLS))


@rule("three disjoint allowed sets")
def three_disjoint(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Three floats of the run whose allowed sets are pairwise disjoint: every implementation takes three values there.

    Results without a separation point are constant and then alternate between two values, so they take at most two.
    By reference arithmetic, for any format and any length of the run.  data: points, three values in hex.
    """
    if not isinstance(claim, AlwaysSeparates):
        raise EvidenceError(f"three disjoint allowed sets do not speak about {claim.kind}")
    run = claim.run
    places = [read_value(run.context.format, x).ordinal for x in data["points"]]
    if len(places) != 3 or not all(run.low.ordinal <= p <= run.high.ordinal for p in places):
        raise EvidenceError("three points of the run are needed")
    sets = sorted(run.allowed(p) for p in places)
    if not all(high < low for (_, high), (low, _) in pairwise(sets)):
        return Open("two of the three allowed sets meet")
    return Holds({"points": " ".join(str(run.at(p)) for p in places)}, (BALLS,))


@rule("compliance exhausted")
def compliance(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Compares the result with the allowed ones at every float of the run."""
    if not isinstance(claim, Compliant):
        raise EvidenceError(f"compliance does not speak about {claim.kind}")
    run, p = claim.run, claim.pattern
    for a in range(run.low.ordinal, run.high.ordinal + 1, CHUNK):
        b = min(a + CHUNK - 1, run.high.ordinal)
        results = p.between(a, b)
        low, high = allowed_on(run, a, b)
        wrong = (results < low) | (high < results)
        if wrong.any():
            return Fails({"x": run.at(a + int(np.argmax(wrong))).hex})
    return Holds({"floats": len(run)}, (VECTOR, BALLS))
