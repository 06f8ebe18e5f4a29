"""Inputs with several coordinates: φ(x) = (w₁⊗x₁ ⊕ … ⊕ w_d⊗x_d) ⊕ b, the sum in any one order, the bias last.

The domain is [low, high]^d for the interval of a `Setting`.  Two facts carry the case d = 1 over, whatever the order
is:

*Zero weights elsewhere.*  With w_k = 0 for k ≠ j all products but one are ±0 (inputs are finite), and z ⊕ ±0 is the
number z: φ(x) is the number w_j⊗x_j ⊕ b, finite wherever it is in one dimension.  So if all inputs of the interval
are told apart, all vectors are: they differ in some coordinate.

*Zeros elsewhere.*  If x and y are 0 outside one coordinate, the products there are ±0 for every map: φ(x) and φ(y)
are the numbers w_j⊗x_j ⊕ b and w_j⊗y_j ⊕ b.  So if x_j and y_j are inseparable, x and y are.  (A map that is finite
on the whole box is so in one dimension, where the interval holds 0.)  With other coordinates that are not 0, they
need not be.

An activation gives one number at both zeros (`fpsmt.claims.places`), so that the sign of a zero sum does not matter.
Where inputs are flushed, a subnormal z counts as 0 beside b in one dimension as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.distinguishability import Distinguishable, Inseparable, Setting, setting_from_json
from fpsmt.claims.functions import read_value
from fpsmt.errors import UsageError


def _dimension(dimension: int) -> None:
    if dimension < 1:
        raise UsageError(f"dimension {dimension}: inputs have at least one coordinate")


@claim_kind
@dataclass(frozen=True)
class DistinguishableVectors(Claim):
    """Every two different vectors are told apart by some admissible affine map, for every order of the sum."""

    kind = "distinguishable-vectors"
    setting: Setting
    dimension: int

    def __post_init__(self) -> None:
        _dimension(self.dimension)

    @property
    def text(self) -> str:
        return f"∀ order: in dimension {self.dimension}, {self.scalar.text}"

    @property
    def scalar(self) -> Distinguishable:
        """The same in one dimension."""
        return Distinguishable(self.setting)

    def fields(self) -> dict[str, Json]:
        return {"setting": self.setting.to_json(), "dimension": self.dimension}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> DistinguishableVectors:
        return cls(setting_from_json(data["setting"]), int(data["dimension"]))

    def refutation_needs(self, counterexample: Json) -> list[Claim]:
        """Refuting needs a proof that the two values are inseparable in one dimension."""
        fmt = self.setting.context.format
        return [Inseparable(self.setting, *(read_value(fmt, counterexample[end]) for end in ("x", "y")))]

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"x": hex, "y": hex}, the first coordinates of two vectors that are 0 elsewhere."""
        if not self.setting.low.fraction <= 0 <= self.setting.high.fraction:
            raise UsageError("vectors that are 0 elsewhere are not in a box without 0")
        found = self.scalar.replay(counterexample)
        zeros = ", 0" * (self.dimension - 1)
        lines = (f"x = ({counterexample['x']}{zeros}), x′ = ({counterexample['y']}{zeros})", *found.lines)
        return Replay(found.violates, lines, found.values)
