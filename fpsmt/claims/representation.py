"""A network takes given values at given inputs, whatever the order of its sums (paper A, Theorem 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fpsmt.claims.claim import Claim, Json, Replay, claim_kind
from fpsmt.constructions.sparse import Digested, SparseNetwork, codes_from_text, codes_to_text, network_from_data
from fpsmt.errors import UsageError
from fpsmt.floats import Float, Format, add, equal, mul, zero
from fpsmt.floats.vector import Carriers, encode, to_floats
from fpsmt.networks import PAPER, Tree, check_tree, evaluate_tree, tree_from_json

Schedules = Mapping[tuple[int, int], Tree]


@dataclass(frozen=True, eq=False)
class Values(Digested):
    """A table x → f(x): distinct finite `points` of shape (n, d), `values` of shape (n, outputs), finite or ±inf.

    Zeros are numbers: the two zeros are one input, and as outputs one value.
    """

    format: Format
    points: Carriers
    values: Carriers

    def __post_init__(self) -> None:
        for name in ("points", "values"):
            array = np.array(getattr(self, name), dtype=float) + 0.0
            if array.ndim != 2 or 0 in array.shape:
                raise UsageError(f"the table's {name} have shape {array.shape}: rows of numbers are needed")
            if np.isnan(array).any():
                raise UsageError(f"the table has NaN among its {name}, in row {int(np.argmax(np.isnan(array).any(1)))}")
            encode(self.format, array)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if len(self.points) != len(self.values):
            raise UsageError(f"the table has {len(self.points)} inputs and {len(self.values)} values")
        if not np.isfinite(self.points).all():
            raise UsageError("the inputs of a table are finite")
        order = np.lexsort(self.points.T)
        twice = (np.diff(self.points[order], axis=0) == 0).all(axis=1)
        if twice.any():
            raise UsageError(f"the input {self.points[order][int(np.argmax(twice))].tolist()} is in the table twice")

    def __len__(self) -> int:
        return len(self.points)

    @property
    def inputs(self) -> int:
        return int(self.points.shape[1])

    def to_json(self) -> dict[str, Json]:
        return dict(self._json)

    @cached_property
    def _json(self) -> dict[str, Json]:
        return {
            "inputs": self.points.shape[1],
            "outputs": self.values.shape[1],
            "points": codes_to_text(self.format, self.points),
            "values": codes_to_text(self.format, self.values),
        }


def values_from_json(fmt: Format, data: Mapping[str, Json]) -> Values:
    points = codes_from_text(fmt, data["points"]).reshape(-1, int(data["inputs"]))
    return Values(fmt, points, codes_from_text(fmt, data["values"]).reshape(-1, int(data["outputs"])))


@claim_kind
@dataclass(frozen=True)
class Represents(Claim):
    """For every order of every sum, biases last and nothing fused, the network returns the table's value.

    At an input with zeros the network returns it for both zeros.
    """

    kind = "represents"
    network: SparseNetwork
    table: Values

    def __post_init__(self) -> None:
        if self.table.format != self.network.format:
            raise UsageError(f"the table is in {self.table.format}, and the network in {self.network.format}")
        if self.table.inputs != self.network.inputs or self.table.values.shape[1] != self.network.outputs:
            raise UsageError(
                f"the table maps {self.table.inputs} numbers to {self.table.values.shape[1]}, and the network "
                f"{self.network.inputs} to {self.network.outputs}"
            )

    @property
    def text(self) -> str:
        return f"∀ order ∀ x ∈ X: N(x) = f(x) for {len(self.table)} inputs X and the {self.network.text}"

    def fields(self) -> dict[str, Json]:
        return {"network": self.network.to_json(), "table": self.table.to_json()}

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> Represents:
        network = network_from_data(data["network"])
        return cls(network, values_from_json(network.format, data["table"]))

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: {"point": its index, "output": index, "schedules": {"LAYER,SUM": tree}}.

        Sums without a schedule run from left to right.
        """
        index, output = int(counterexample["point"]), int(counterexample["output"])
        schedules = schedules_from_json(self.network, counterexample.get("schedules", {}))
        x = to_floats(self.network.format, self.table.points[index])
        wanted = to_floats(self.network.format, self.table.values[index])[output]
        got = Reference(self.network, x, schedules).value(len(self.network.layers) - 1, output)
        lines = (
            f"x = {', '.join(map(repr, x))}",
            f"output {output} = {got!r} with {len(schedules)} schedules chosen, the table has {wanted!r}",
        )
        differs = not (got == wanted or equal(got, wanted))
        return Replay(differs, lines, {"output": got.hex, "wanted": wanted.hex})


def schedules_to_json(schedules: Schedules, write: Any) -> dict[str, Json]:
    return {f"{layer},{i}": write(tree) for (layer, i), tree in schedules.items()}


def schedules_from_json(network: SparseNetwork, data: Mapping[str, Json]) -> dict[tuple[int, int], Tree]:
    found = {}
    for name, stored in data.items():
        layer, i = map(int, name.split(","))
        tree = tree_from_json(stored)
        check_tree(tree, len(network.layers[layer].terms(i)))
        found[layer, i] = tree
    return found


class Reference:
    """Values of neurons at one input by the reference arithmetic, each computed when it is asked for."""

    def __init__(self, network: SparseNetwork, x: list[Float], schedules: Schedules | None = None) -> None:
        self.network, self.x, self.schedules = network, x, schedules or {}
        self.known: dict[tuple[int, int], Float] = {}
        self.activated: dict[Float, Float] = {}

    def value(self, layer: int, i: int) -> Float:
        """After the activation; of the last layer, its sum."""
        if layer < 0:
            return self.x[i]
        if (layer, i) not in self.known:
            y = self._sum(layer, i)
            if layer < len(self.network.layers) - 1:
                if y not in self.activated:
                    self.activated[y] = self.network.implementation.default(self.network.context, y)
                y = self.activated[y]
            self.known[layer, i] = y
        return self.known[layer, i]

    def _sum(self, layer: int, i: int) -> Float:
        ctx, rows = self.network.context, self.network.layers[layer]
        terms = rows.terms(i)
        weights = to_floats(ctx.format, [w for _, w in terms])
        bias = to_floats(ctx.format, rows.bias[i : i + 1])[0]
        if not terms:
            return bias
        pairs = [(w, self.value(layer - 1, j)) for w, (j, _) in zip(weights, terms, strict=True)]
        if (layer, i) in self.schedules:
            total = evaluate_tree(ctx, self.schedules[layer, i], pairs, None, PAPER).result
        else:
            total = mul(ctx, *pairs[0])
            for w, y in pairs[1:]:
                total = add(ctx, total, mul(ctx, w, y))
        return add(ctx, total, bias if not bias.is_zero else zero(ctx.format))
