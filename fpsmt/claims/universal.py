"""Networks of one activation represent every function on a set of inputs (paper A, Theorem 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.representation import Values
from fpsmt.constructions.sparse import codes_from_text, codes_to_text
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float, context
from fpsmt.floats.vector import Carriers, to_floats, values
from fpsmt.functions import Implementation, implementation_from_json


@claim_kind
@dataclass(frozen=True, eq=False)
class Universal(Claim):
    """Every f: X → (F ∪ {−∞, ∞})^m, for every m, is a network of at most `layers` affine maps, whatever the order.

    X are the `points`, distinct finite inputs of shape (n, inputs); all parameters are finite.  For every order of
    every sum, biases last and nothing fused, the network returns f(x) at every x of X.  Its sums run over the terms of
    weights that are not zero; with `dense`, also over all terms, with weights that are zero among them.

    Zeros are numbers: the two zeros are one input, and as outputs one value.  A format without infinities has values
    in F only.
    """

    kind = "universal"
    context: Context
    implementation: Implementation
    points: Carriers
    layers: int = 4
    dense: bool = False

    def __post_init__(self) -> None:
        points = np.array(self.points, float)
        if points.ndim != 2:
            raise UsageError(f"the inputs have shape {points.shape}: rows of numbers are needed")
        table = Values(self.context.format, points, np.zeros((len(points), 1)))  # checks them
        object.__setattr__(self, "points", table.points)
        if self.layers < 1:
            raise UsageError(f"a network of {self.layers} layers: at least one is needed")

    @property
    def domain(self) -> str:
        """The inputs in words."""
        n, inputs = self.points.shape
        fmt = self.context.format
        power = "" if inputs == 1 else f"^{inputs}"
        if n == len(np.unique(values(fmt, finite=True) + 0.0)) ** inputs if fmt.bits <= 16 else False:
            return f"all {n} finite inputs of {fmt}{power}"
        ends = self.points.min(), self.points.max()
        low, high = (str(x) for x in to_floats(fmt, np.array(ends)))
        return f"{n} inputs of {fmt}{power} from {low} to {high}"

    @property
    def text(self) -> str:
        infinities = "F ∪ {±inf}" if self.context.format.has_infinity else "F"
        zeros = ", terms of weight 0 included" if self.dense else ""
        network = f"network of ≤ {self.layers} layers of {self.implementation.text} in {self.context}"
        return (
            f"∀ f: X → {infinities} ∃ {network} ∀ order{zeros} ∀ x ∈ X: N(x) = f(x), X {self.domain}"
        )

    def fields(self) -> dict[str, Json]:
        return {
            "context": str(self.context),
            "implementation": self.implementation.to_json(),
            "inputs": self.points.shape[1],
            "points": codes_to_text(self.context.format, self.points),
            "layers": self.layers,
            "dense": self.dense,
        }

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> Universal:
        ctx = context(data["context"])
        points = codes_from_text(ctx.format, data["points"]).reshape(-1, int(data["inputs"]))
        use = implementation_from_json(data["implementation"])
        return cls(ctx, use, points, int(data["layers"]), bool(data["dense"]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Universal) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def replay(self, counterexample: Json) -> Replay:
        """Nothing violates it: that no network exists is not shown by executing one."""
        return Replay(False, ("that some function is no such network is not shown by an execution",))

    def floats(self, point: int) -> list[Float]:
        return to_floats(self.context.format, self.points[point])
