"""Claims that two networks agree on a box of inputs: one network in two formats, or under two executions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from fpsmt.claims.claim import Json, Replay, claim_kind
from fpsmt.claims.network_runs import (
    OfNetwork,
    check_executions,
    executed_from_json,
    executions_from_json,
    executions_to_json,
    network_records,
    network_text,
)
from fpsmt.claims.predictions import predicted
from fpsmt.claims.properties import Box, Query, rational, shown
from fpsmt.errors import UsageError
from fpsmt.floats import Float, Format, float32, float64, format_named, nearest_context
from fpsmt.floats.values import ulp
from fpsmt.networks.executions import Execution
from fpsmt.networks.interpreter import Executions
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Affine, Cast, Input, Node, Select, renamed

FIRST, SECOND = "first/", "second/"  #: prefixes of the names of the nodes of the two networks
INPUTS, OUTPUTS = "inputs", "outputs"


@dataclass(frozen=True)
class Relation:
    """When outputs y and z agree.

    ``argmax``: both have a greatest output, of the same index (the first one on a tie).  ``ulps``: each |yⱼ − zⱼ| ≤
    limit·max(ulp(yⱼ), ulp(zⱼ)) with the ulp of the format `unit`.  ``difference``: each |yⱼ − zⱼ| ≤ limit.  Outputs
    that are infinite or NaN agree with nothing, for ``argmax`` NaN alone.  The two zeros are one number.
    """

    name: str
    limit: Fraction = Fraction(0)
    unit: Format | None = None

    def __post_init__(self) -> None:
        if self.name not in ("argmax", "ulps", "difference") or (self.unit is None) != (self.name != "ulps"):
            raise UsageError(f"no relation of outputs: {self.name!r} (argmax, ulps of a format, or difference)")
        if self.limit < 0 or (self.name == "ulps" and (self.limit.denominator != 1 or self.limit >= 1 << 30)):
            raise UsageError(f"the limit {self.limit} is negative, or no number of ulps")

    def agree(self, y: Sequence[Float], z: Sequence[Float]) -> bool:
        """Decided exactly."""
        if self.name == "argmax":
            return predicted(y) is not None and predicted(y) == predicted(z)
        return all(self._near(a, b) for a, b in zip(y, z, strict=True))

    def _near(self, a: Float, b: Float) -> bool:
        if not (a.is_finite and b.is_finite):
            return False
        far = abs(a.fraction - b.fraction)
        if self.unit is None:
            return far <= self.limit
        return far <= self.limit * max(ulp(self.unit, a.fraction), ulp(self.unit, b.fraction))

    @property
    def text(self) -> str:
        if self.name == "argmax":
            return "argmax A(x; s) = argmax B(x; s)"
        unit = "" if self.unit is None else f" ulps of {self.unit}"
        return f"|A(x; s) − B(x; s)| ≤ {self.limit}{unit}"


@claim_kind
@dataclass(frozen=True, eq=False)
class Agree(OfNetwork):
    """For every input of the format in the box and every execution of two networks A and B on it, the outputs agree.

    `network` is both in one, as `side_by_side` makes it: its outputs are those of A and then those of B, in one format.
    *Inputs* and *executions*: as in `fpsmt.claims.Safe`; an activation that is single-valued is one function in both.
    """

    kind = "networks-agree"
    network: Network
    executions: Executions
    box: Box
    relation: Relation

    def __post_init__(self) -> None:
        output = self.network.output
        if len(self.box) != self.network.input.size:
            raise UsageError(f"a box of {len(self.box)} sides, and the network has {self.network.input.size} inputs")
        half = self.network.sizes[output.name] // 2
        both = tuple((k, i) for k in (0, 1) for i in range(half))
        if not isinstance(output, Select) or len(output.nodes) != 2 or output.picks != both:
            raise UsageError("the outputs of two networks are those of the first and then those of the second")
        if self.relation.name == "argmax" and half < 2:
            raise UsageError("there is one output: a class is among at least two; ask for ulps or the difference")
        check_executions(self.network, self.executions)

    @cached_property
    def _records(self) -> list[Any]:
        return [network_records(self.network), self.executions, self.relation]

    @property
    def query(self) -> Query:
        """The box."""
        return Query(self.box, ())

    @property
    def outputs(self) -> int:
        """Of each network."""
        return self.network.sizes[self.network.output.name] // 2

    @property
    def text(self) -> str:
        where = f"∀ x of {self.network.input.format} in a box, ∀ executions s: {self.relation.text}"
        return f"{where}; both together: {network_text(self.network, self._common)}"

    @property
    def _common(self) -> Executions:
        """One execution where all nodes have the same one, for the text."""
        if isinstance(self.executions, Execution):
            return self.executions
        found: dict[str, Execution] = {}
        for name, how in self.executions.items():
            found.setdefault(name.partition("/")[0], how)
        short = all(found[name.partition("/")[0]] == how for name, how in self.executions.items())
        return found if short else self.executions

    def fields(self) -> dict[str, Json]:
        relation = {"name": self.relation.name, "limit": str(self.relation.limit)}
        if self.relation.unit is not None:
            relation["unit"] = str(self.relation.unit)
        return {
            "network": self.network.to_json(),
            "executions": executions_to_json(self.executions),
            "box": [[str(low), str(high)] for low, high in self.box],
            "relation": relation,
        }

    @classmethod
    def from_fields(cls, data: Mapping[str, Json]) -> Agree:
        given = data["relation"]
        unit = format_named(given["unit"]) if "unit" in given else None
        return cls(
            Network.from_json(data["network"]),
            executions_from_json(data["executions"]),
            tuple((rational(low), rational(high)) for low, high in data["box"]),
            Relation(given["name"], rational(given["limit"]), unit),
        )

    def split(self, outputs: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Those of A and those of B."""
        return outputs[: self.outputs], outputs[self.outputs :]

    def replay(self, counterexample: Json) -> Replay:
        """Counterexample: that of a `Safe`, an input and the schedules of both networks.

        Violates when the input is in the box and the outputs of this execution, computed by the reference interpreter,
        do not agree; both are decided in exact rationals.
        """
        x, found = executed_from_json(self.network, self.executions, counterexample, "agreement")
        y, z = self.split(found)
        inside, agree = self.query.has_input(x), self.relation.agree(y, z)
        lines = [f"inputs {shown(x)}", f"outputs of the first {shown(y)}", f"outputs of the second {shown(z)}"]
        if self.relation.name == "argmax":
            lines.append(f"classes {predicted(y)} and {predicted(z)}")
        elif all(v.is_finite for v in found):
            far = max(abs(a.fraction - b.fraction) for a, b in zip(y, z, strict=True))
            lines.append(f"the largest difference is {float(far):.6g}")
        lines.append("they agree" if agree else f"it is not so that {self.relation.text}")
        if not inside:
            lines.append("the input is not in the box")
        return Replay(inside and not agree, tuple(lines), {
            "input": [v.hex for v in x], "outputs": [[v.hex for v in each] for each in (y, z)],
        })  # fmt: skip


def side_by_side(one: Network, two: Network) -> Network:
    """Two networks with one input and one output each as one, on the inputs of the first.

    Where the second has another format it reads the inputs rounded to it (nearest even); outputs of two formats are
    cast to one in which both are exact.  Usage errors: sizes that differ, no such format.
    """
    first, second = one.input, two.input
    sizes = [(n.input.size, n.sizes[n.output.name]) for n in (one, two)]
    if sizes[0] != sizes[1]:
        raise UsageError(f"the networks have {sizes[0]} and {sizes[1]} inputs and outputs: these must be as many")
    common = _common_format(one.output.format, two.output.format)
    nodes: list[Node] = [Input(name=INPUTS, context=first.context, size=first.size)]
    ends: list[str] = []
    for prefix, network, node in ((FIRST, one, first), (SECOND, two, second)):
        names = {node.name: INPUTS}
        if node.format != first.format:
            names[node.name] = prefix + node.name
            nodes.append(Cast(name=prefix + node.name, context=nearest_context(node.format), source=INPUTS))
        for other in network.nodes:
            if other is not node:
                names[other.name] = prefix + other.name
                nodes.append(renamed(other, names))
        end = names[network.output.name]
        if network.output.format != common:
            nodes.append(Cast(name=f"{prefix}{OUTPUTS}", context=nearest_context(common), source=end))
            end = f"{prefix}{OUTPUTS}"
        ends.append(end)
    size = sizes[0][1]
    if ends[0] == ends[1]:
        raise UsageError("the networks do nothing: their outputs are the inputs")
    picks = tuple((k, i) for k in (0, 1) for i in range(size))
    nodes.append(Select(name=OUTPUTS, context=nearest_context(common), nodes=tuple(ends), picks=picks))
    return Network(tuple(nodes), (OUTPUTS,))


def both_executions(network: Network, one: Execution, two: Execution) -> Executions:
    """The executions of two networks side by side."""
    return {
        node.name: one if node.name.startswith(FIRST) else two for node in network.nodes if isinstance(node, Affine)
    }


def part(network: Network, number: int) -> Network:
    """One of the networks that stand side by side."""
    output = network.output
    assert isinstance(output, Select)
    needed = {output.nodes[number], network.input.name}
    for node in reversed(network.nodes):
        if node.name in needed:
            needed.update(node.sources)
    return Network(tuple(node for node in network.nodes if node.name in needed), (output.nodes[number],))


def _common_format(one: Format, two: Format) -> Format:
    for fmt in (one, two, float32, float64):
        if all(_holds(fmt, other) for other in (one, two)):
            return fmt
    raise UsageError(f"no format has all values of {one} and of {two}: the outputs cannot be compared")


def _holds(fmt: Format, other: Format) -> bool:
    """Whether all values of another format are exact in this one, infinities and NaN too."""
    if fmt == other:
        return True
    wide = fmt.precision >= other.precision and fmt.largest >= other.largest and fmt.smallest <= other.smallest
    special = fmt.has_infinity >= other.has_infinity and fmt.has_nan >= other.has_nan
    return wide and special and fmt.emin <= other.emin

