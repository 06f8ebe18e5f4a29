"""A network of several inputs has given values and executed gradients (arXiv 2605.01702, Theorem 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.gradient_representation import COLUMNS, Sums, check_fits, keep_numbers, replay_both
from fpsmt.constructions.sparse import Digested, SparseNetwork, codes_from_text, codes_to_text, network_from_data
from fpsmt.errors import UsageError
from fpsmt.floats import Format
from fpsmt.floats.vector import Carriers, to_floats


@dataclass(frozen=True, eq=False)
class VectorGradients(Digested):
    """x → (f(x), h(x), g(x)) for x of d elements: at each of distinct `points`, shape (n, d), the value f, and the
    gradient g, shape (n, d), that reverse mode returns for the loss derivative h.

    All are finite, and g = 0 where h = 0.  Zeros are numbers.
    """

    format: Format
    points: Carriers
    values: Carriers
    upstream: Carriers
    gradients: Carriers

    def __post_init__(self) -> None:
        keep_numbers(self, self.format, COLUMNS)
        shape = self.points.shape
        if len(shape) != 2 or 0 in shape or self.gradients.shape != shape:
            raise UsageError("points and gradients are n rows of d numbers each, n and d at least 1")
        if self.values.shape != shape[:1] or self.upstream.shape != shape[:1]:
            raise UsageError(f"a table of {shape[0]} points has as many values and loss derivatives")
        if len(np.unique(self.points, axis=0)) != len(self):
            raise UsageError("an input is in the table twice")
        lost = (self.upstream == 0.0) & (self.gradients != 0.0).any(axis=1)
        if lost.any():
            raise UsageError(f"row {int(np.argmax(lost))}: only 0 can come back for the loss derivative 0")

    def __len__(self) -> int:
        return len(self.points)

    def to_json(self) -> dict[str, Json]:
        columns = {name: codes_to_text(self.format, getattr(self, name).ravel()) for name in COLUMNS}
        return {"inputs": self.points.shape[1], **columns}


def vector_gradients_from_json(fmt: Format, data: Mapping[str, Json]) -> VectorGradients:
    points, values, upstream, gradients = (codes_from_text(fmt, data[name]) for name in COLUMNS)
    d = int(data["inputs"])
    return VectorGradients(fmt, points.reshape(-1, d), values, upstream, gradients.reshape(-1, d))


@claim_kind
@dataclass(frozen=True)
class RepresentsVectorGradients(Claim):
    """At every x of the table N(x) = f(x), and D^AD of N at x for the loss derivative h(x) is g(x).

    Both passes from left to right, biases last, nothing fused, derivatives correctly rounded with σ′(0) = 0 at a kink.
    """

    kind = "represents vector gradients"
    sums: ClassVar[Sums] = "left-to-right"
    network: SparseNetwork
    table: VectorGradients

    def __post_init__(self) -> None:
        check_fits(self.network, self.table.format, self.table.points.shape[1])

    @property
    def text(self) -> str:
        return (
            f"∀ x ∈ X: N(x) = f(x) and D^AD(N, x; h(x)) = g(x) for {len(self.table)} inputs X of "
            f"{self.network.inputs} elements, sums of both passes from left to right, and the {self.network.text}"
        )

    def fields(self) -> dict[str, Json]:
        return {"network": self.network.to_json(), "table": self.table.to_json()}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> RepresentsVectorGradients:
        network = network_from_data(data["network"])
        return cls(network, vector_gradients_from_json(network.format, data["table"]))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"point": its index}."""
        i, fmt, table = int(counterexample["point"]), self.network.format, self.table
        x, g = to_floats(fmt, table.points[i]), to_floats(fmt, table.gradients[i])
        value, h = (to_floats(fmt, column[i : i + 1])[0] for column in (table.values, table.upstream))
        return replay_both(self.network, x, h, value, g)
