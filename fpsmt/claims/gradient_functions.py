"""A network whose gradients are functions of the loss derivative (arXiv 2605.01702, Theorem 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.claims.gradient_representation import check_fits, keep_numbers, replay_both
from fpsmt.constructions.gradient_functions import positive
from fpsmt.constructions.sparse import Digested, SparseNetwork, codes_from_text, codes_to_text, network_from_data
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Format, context, from_ordinal
from fpsmt.floats.vector import Carriers, to_floats


@dataclass(frozen=True, eq=False)
class GradientFunctions(Digested):
    """x → (f(x), y → g(x, y)): `gradients[i, j]` is g at points[i] and the j-th float y > 0; g(x, −y) = −g(x, y).

    Points are distinct, and everything is finite.  Zeros are numbers.
    """

    format: Format
    points: Carriers
    values: Carriers
    gradients: Carriers

    def __post_init__(self) -> None:
        keep_numbers(self, self.format, ("points", "values", "gradients"))
        n, positives = len(self.points), self.format.largest_code
        if self.points.ndim != 1 or n == 0 or self.values.shape != (n,) or self.gradients.shape != (n, positives):
            raise UsageError(
                f"a table of n points has n values and n × {positives} gradients, one for each positive float; here "
                f"are {self.points.shape}, {self.values.shape} and {self.gradients.shape}"
            )
        if len(np.unique(self.points)) != n:
            raise UsageError("an input is in the table twice")

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def upstream(self) -> Carriers:
        """Every finite loss derivative, ascending, with one zero."""
        y = positive(self.format)
        return np.concatenate([-y[::-1], [0.0], y])

    @cached_property
    def all_gradients(self) -> Carriers:
        """g(x, y) for every y of `upstream`."""
        return np.concatenate([-self.gradients[:, ::-1], np.zeros((len(self), 1)), self.gradients], axis=1)

    def to_json(self) -> dict[str, Json]:
        return {name: codes_to_text(self.format, getattr(self, name)) for name in ("points", "values", "gradients")}


def gradient_functions_from_json(fmt: Format, data: Mapping[str, Json]) -> GradientFunctions:
    points, values = (codes_from_text(fmt, data[name]) for name in ("points", "values"))
    return GradientFunctions(fmt, points, values, codes_from_text(fmt, data["gradients"]).reshape(len(points), -1))


@claim_kind
@dataclass(frozen=True)
class RepresentsGradientFunctions(Claim):
    """At every x of the table N(x) = f(x), and D^AD of N at x is g(x, y) for every finite loss derivative y.

    Both passes from left to right, biases last, nothing fused, derivatives correctly rounded with σ′(0) = 0 at a kink.
    """

    kind = "represents gradient functions"
    network: SparseNetwork
    table: GradientFunctions

    def __post_init__(self) -> None:
        check_fits(self.network, self.table.format)

    @property
    def text(self) -> str:
        return (
            f"∀ x ∈ X ∀ y ∈ F: N(x) = f(x) and D^AD(N, x; y) = g(x, y) for {len(self.table)} inputs X, "
            f"{len(self.table.upstream)} loss derivatives, sums of both passes from left to right, and the "
            f"{self.network.text}"
        )

    def fields(self) -> dict[str, Json]:
        return {"network": self.network.to_json(), "table": self.table.to_json()}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> RepresentsGradientFunctions:
        network = network_from_data(data["network"])
        return cls(network, gradient_functions_from_json(network.format, data["table"]))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"point": its index, "upstream": the ordinal of y}."""
        i, place, fmt = int(counterexample["point"]), int(counterexample["upstream"]), self.network.format
        x, value = (to_floats(fmt, column[i : i + 1])[0] for column in (self.table.points, self.table.values))
        g = to_floats(fmt, self.table.all_gradients[i, place + fmt.largest_code : place + fmt.largest_code + 1])[0]
        return replay_both(self.network, [x], from_ordinal(fmt, place), value, [g])


@claim_kind
@dataclass(frozen=True)
class AllGradientFunctions(Claim):
    """Every f, and every g that is odd in y, have a ReLU network of L layers on the whole domain.

    X = [−M, M], M = 2^(emax − 2), all floats; y any finite float.
    """

    kind = "all gradient functions"
    context: Context
    layers: int

    @property
    def text(self) -> str:
        return (
            f"∀ f: X → F, g: X × F → F odd in y ∃ ReLU network N of {self.layers} layers in {self.context} "
            "∀ x ∈ X = [−M, M], M = 2^(emax − 2) ∀ y ∈ F: N(x) = f(x) and D^AD(N, x; y) = g(x, y), sums of both passes "
            "from left to right"
        )

    def fields(self) -> dict[str, Json]:
        return {"context": str(self.context), "layers": self.layers}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> AllGradientFunctions:
        return cls(context(data["context"]), int(data["layers"]))

    def replay(self, counterexample: Json) -> Replay:
        """No single execution shows that a table has no network."""
        return Replay(False, ("no execution refutes that a network exists",))
