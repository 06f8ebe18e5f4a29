"""What claims about a network's executions share: executions, schedules and activation outputs in words and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.functions import read_value
from fpsmt.claims.sums import value_from_json, value_to_json
from fpsmt.errors import UsageError
from fpsmt.floats import Float
from fpsmt.networks.executions import Execution
from fpsmt.networks.interpreter import ActivationOutputs, Executions, Schedules, run
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Activation, Affine
from fpsmt.networks.trees import Tree, tree_from_json, tree_text


class OfNetwork(Claim):
    """Claims that are equal when their hashes are, and `_records`: what the JSON only names, and what it does not."""

    @property
    def _records(self) -> list[Any]:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.hash == other.hash and self._records == other._records

    def __hash__(self) -> int:
        return hash(self.hash)


def check_executions(network: Network, executions: Executions) -> None:
    """A usage error unless executions given by name are those of affine nodes."""
    if isinstance(executions, Mapping):
        for name in executions:
            if not isinstance(network.node(name), Affine):
                raise UsageError(f"an execution is given for {name!r}, which is not an affine node")


def network_text(network: Network, executions: Executions) -> str:
    """The network and its executions, in words."""
    if isinstance(executions, Execution):
        how = str(executions)
    else:
        how = "; ".join(f"{name}: {e}" for name, e in executions.items()) or "the papers' model"
    formats = dict.fromkeys(str(node.format) for node in network.of_kind(Affine)) or [str(network.output.format)]
    size = f"{len(network.nodes)} nodes, {network.parameters} parameters in {' and '.join(formats)}"
    return f"N of {size}, sha256 {network.digest[:12]}; {how}"


def network_records(network: Network) -> list[Any]:
    """What a network's JSON only names: contexts, formats, implementations."""
    names = ("format", "context", "formats", "implementation")
    return [[getattr(node, name, None) for name in names] for node in network.nodes]


def executions_to_json(executions: Executions) -> Json:
    if isinstance(executions, Execution):
        return executions.to_json()
    return {"nodes": {name: e.to_json() for name, e in executions.items()}}


def executions_from_json(data: Json) -> Executions:
    """Reads `executions_to_json`."""
    if "nodes" in data:
        return {str(name): Execution.from_json(e) for name, e in data["nodes"].items()}
    return Execution.from_json(data)


def schedules_to_json(schedules: Schedules) -> Json:
    """``"node:output index"`` → tree, as text."""
    return {f"{name}:{i}": tree_text(tree) for (name, i), tree in schedules.items()}


def schedules_from_json(data: Json) -> dict[tuple[str, int], Tree]:
    """Reads `schedules_to_json`; trees may be text or nested lists."""
    if not isinstance(data, Mapping):
        raise UsageError('a schedule of a network is an object {"node:output index": tree, …}')
    found: dict[tuple[str, int], Tree] = {}
    for key, tree in data.items():
        name, colon, place = str(key).rpartition(":")
        if not colon or not place.isdecimal():
            raise UsageError(f"{key!r} does not name a sum: write node:output index, e.g. affine1:0")
        found[name, int(place)] = tree_from_json(tree)
    return found


def executed_from_json(
    network: Network, executions: Executions, data: Json, what: str
) -> tuple[tuple[Float, ...], tuple[Float, ...]]:
    """The input of a counterexample to `what`, and the outputs of its execution by the reference interpreter.

    {"input": [value, …], "schedules": {"node:output index": tree, …}, "outputs": […]}: values are text that is exactly
    a value of the input's format (hex, decimal).  Sums that are left out of the schedules run by the default of their
    execution.  "outputs", which may be left out, is a list of [implementation, site, x, y] (x and y as [format, hex])
    of inexact activations; others give correctly rounded results.
    """
    if not isinstance(data, Mapping) or not {"input", "schedules"} <= data.keys():
        raise UsageError(f'a counterexample to {what} is {{"input": [value, …], "schedules": {{…}}}}')
    x = tuple(read_value(network.input.format, v) for v in data["input"])
    outputs = outputs_from_json(network, data.get("outputs", []))
    return x, run(network, x, executions, schedules_from_json(data["schedules"]), outputs).output


def outputs_to_json(outputs: ActivationOutputs) -> Json:
    """A list of [implementation, site, x, y]."""
    return [[text, site, value_to_json(x), value_to_json(y)] for (text, site, x), y in outputs.items()]


def outputs_from_json(network: Network, data: Json) -> ActivationOutputs:
    """Reads `outputs_to_json`; a usage error for outputs of monotone implementations."""
    careful = {str(n.implementation) for n in network.of_kind(Activation) if n.implementation.monotone}
    found: dict[tuple[str, str, Float], Float] = {}
    try:
        for text, site, x, y in data:
            found[str(text), str(site), value_from_json(x)] = value_from_json(y)
    except (TypeError, ValueError, IndexError) as error:
        raise UsageError(f"activation outputs are lists of [implementation, site, x, y]: {error}") from None
    for text, _, _ in found:
        if text in careful:
            raise UsageError(f"outputs of {text} are given: that they belong to a monotone function is not checked")
    return found
