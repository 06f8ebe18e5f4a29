"""Rules about activation functions: certified enclosures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.functions import ConstantOn
from fpsmt.errors import EvidenceError
from fpsmt.functions import constant_on
from fpsmt.kernel.kernel import Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS


@rule("enclosure")
def enclosure(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Encloses the range of the real function on the interval and rounds both ends.

    Rounding is monotone, so when the least and the greatest value of the real function round to one float,
    every value between them rounds to it.
    """
    if not isinstance(claim, ConstantOn):
        raise EvidenceError(f"an enclosure does not speak about {claim.kind}")
    value = constant_on(claim.function, claim.context, claim.low, claim.high)
    if value is None or value != claim.value:
        return Open(f"the function is not certified to be {claim.value} on the whole interval")
    return Holds({"value": value.hex}, (BALLS,))
