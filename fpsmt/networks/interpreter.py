"""The reference interpreter: a network under fixed schedules and activation outputs, bit for bit.

Everything that an execution may choose is an argument, so that running is a function: an execution for each
affine node, a schedule (summation tree) for each sum, an output for each use of an inexact activation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fpsmt import floats
from fpsmt.errors import UsageError
from fpsmt.floats import Context, Float
from fpsmt.floats.vector import to_floats
from fpsmt.functions import Implementation
from fpsmt.networks.executions import PAPER, Execution
from fpsmt.networks.monotone import check_continuable, check_monotone
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import (
    OPERATIONS,
    Activation,
    Affine,
    Cast,
    Constant,
    Elementwise,
    Extremum,
    Input,
    Node,
    Select,
)
from fpsmt.networks.sums import SumTrace, evaluate_tree
from fpsmt.networks.trees import Tree

#: One execution for every affine node, or one for each by name (missing ones run as `PAPER`).
Executions = Execution | Mapping[str, Execution]

#: The tree of a sum, by node and output index.  Missing ones are the execution's default.
Schedules = Mapping[tuple[str, int], Tree]

#: Outputs of activations by (text of the implementation, site, input).  The site is ``""`` for a
#: single-valued implementation, which is one function for the whole network, else `site_of` the place.
ActivationOutputs = Mapping[tuple[str, str, Float], Float]

#: Values of an input node: of its format, as many as its size.
Values = Sequence[Float]


@dataclass(frozen=True)
class Trace:
    """Every value of one run.

    `values[name]` are the values of a node; `sums[name, i]` is what happened in the i-th sum of an affine node.
    """

    network: Network
    values: Mapping[str, tuple[Float, ...]]
    sums: Mapping[tuple[str, int], SumTrace]

    @property
    def output(self) -> tuple[Float, ...]:
        """The values of the only output; a usage error when there are several."""
        return self.values[self.network.output.name]

    def text(self) -> str:
        """A line for each node with its values."""
        width = max(len(name) for name in self.values)
        return "\n".join(f"{name:<{width}}  {', '.join(map(str, v))}" for name, v in self.values.items())


def execution_of(executions: Executions, name: str) -> Execution:
    """How the sums of this node run."""
    return executions if isinstance(executions, Execution) else executions.get(name, PAPER)


def site_of(node: Activation, index: int) -> str:
    """The key of one use of an activation: one for all uses of a single-valued implementation."""
    return "" if node.implementation.single_valued else f"{node.name}[{index}]"


def run(
    network: Network,
    inputs: Values | Mapping[str, Values],
    executions: Executions = PAPER,
    schedules: Schedules | None = None,
    outputs: ActivationOutputs | None = None,
) -> Trace:
    """The values of all nodes under one execution.

    `inputs`: values by the name of the input, or just the values when there is one input.  NaN and infinities
    propagate as in `fpsmt.floats`; they are values like others.

    An activation's output is, unless `outputs` says otherwise, its correctly rounded value, or the allowed value
    nearest to it where the contract excludes that.  Outputs of implementations that promise to be monotone are
    checked to be so on the inputs that occur (`monotone.check_monotone`), and to be those of some implementation
    that is monotone everywhere (`monotone.check_continuable`).

    Usage errors: inputs of another format or length, a schedule for a sum that does not exist or that its
    execution does not allow, an activation output that the implementation's contract or its monotonicity
    excludes, a NaN where a format has none.

    >>> from fpsmt.floats import exactly, float16
    >>> net = Network.sequential("float16", 2, [([[1, 2048]], [0.5]), "relu"])
    >>> run(net, [exactly(float16, 1), exactly(float16, 1)]).output[0].decimal
    '2048.0'
    """
    given = _named_inputs(network, inputs)
    schedules = schedules or {}
    outputs = outputs or {}
    check_schedules(network, executions, schedules)
    values: dict[str, tuple[Float, ...]] = {}
    sums: dict[tuple[str, int], SumTrace] = {}
    for node in network.nodes:
        sources = [values[s] for s in node.sources]
        if isinstance(node, Input):
            values[node.name] = given[node.name]
        elif isinstance(node, Affine):
            how = execution_of(executions, node.name)
            traces = _affine(node, sources[0], how, schedules)
            sums.update(((node.name, i), trace) for i, trace in enumerate(traces))
            values[node.name] = tuple(trace.result for trace in traces)
        elif isinstance(node, Activation):
            values[node.name] = tuple(_activate(node, i, x, outputs) for i, x in enumerate(sources[0]))
        else:
            values[node.name] = _simple(node, sources)
    _check_monotone(network, values)
    return Trace(network, values, sums)


def _check_monotone(network: Network, values: Mapping[str, tuple[Float, ...]]) -> None:
    used: dict[tuple[Implementation, Context], list[tuple[Float, Float]]] = {}
    for node in network.of_kind(Activation):
        if node.implementation.monotone:
            pairs = used.setdefault((node.implementation, node.context), [])
            pairs += zip(values[node.source], values[node.name], strict=True)
    for (use, ctx), pairs in used.items():
        check_monotone(use, pairs)
        check_continuable(use, ctx, pairs)


def _simple(node: Node, sources: list[tuple[Float, ...]]) -> tuple[Float, ...]:
    if isinstance(node, Constant):
        return tuple(to_floats(node.format, node.values))
    if isinstance(node, Elementwise):
        apply = OPERATIONS[node.operation]
        return tuple(apply(node.context, a, b) for a, b in zip(*sources, strict=True))
    if isinstance(node, Cast):
        return tuple(floats.cast(node.context, x) for x in sources[0])
    if isinstance(node, Select):
        return tuple(sources[k][element] for k, element in node.picks)
    if isinstance(node, Extremum):
        return tuple(_extremum([sources[0][k] for k in group], node.least) for group in node.groups)
    raise UsageError(f"the interpreter does not know nodes of class {type(node).__name__} ({node.name!r})")


def _extremum(values: list[Float], least: bool) -> Float:
    best = values[0]
    for x in values:
        if x.is_nan:
            return x
        if floats.less(x, best) if least else floats.less(best, x):
            best = x
    return best


def _named_inputs(network: Network, inputs: Values | Mapping[str, Values]) -> dict[str, tuple[Float, ...]]:
    named = inputs if isinstance(inputs, Mapping) else {network.input.name: inputs}
    out: dict[str, tuple[Float, ...]] = {}
    for node in network.inputs:
        if node.name not in named:
            raise UsageError(f"no values are given for the input {node.name!r}")
        values = tuple(named[node.name])
        if len(values) != node.size:
            raise UsageError(f"input {node.name!r} has {node.size} values, and {len(values)} are given")
        for k, x in enumerate(values):
            if not isinstance(x, Float) or x.format != node.format:
                what = f"of {x.format}" if isinstance(x, Float) else f"a {type(x).__name__}"
                raise UsageError(f"input {node.name!r}, element {k}: {x} is {what}, not a value of {node.format}")
        out[node.name] = values
    if unknown := named.keys() - out.keys():
        raise UsageError(f"{sorted(unknown)[0]!r} is not an input: the inputs are {', '.join(out)}")
    return out


def check_schedules(network: Network, executions: Executions, schedules: Schedules) -> None:
    """A usage error unless each schedule is for a sum of the network and its execution allows it."""
    if isinstance(executions, Mapping):
        for name in executions:
            if not isinstance(network.node(name), Affine):
                raise UsageError(f"an execution is given for {name!r}, which is not an affine node")
    for (name, i), tree in schedules.items():
        node = network.node(name)
        if not isinstance(node, Affine) or not 0 <= i < len(node.weights):
            raise UsageError(f"a schedule is given for output {i} of {name!r}, which is not a sum of the network")
        how = execution_of(executions, name)
        if not how.allows(tree, len(node.columns(i)), node.bias is not None):
            raise UsageError(f"the schedule of output {i} of {name!r} is not one that its execution ({how}) allows")


def _affine(node: Affine, source: tuple[Float, ...], how: Execution, schedules: Schedules) -> list[SumTrace]:
    weight_format, bias_format = node.formats
    bias = None if node.bias is None else to_floats(bias_format, node.bias)
    traces = []
    for i in range(len(node.weights)):
        columns = node.columns(i)
        weights = to_floats(weight_format, node.weights[i][columns])
        terms = [(w, source[j]) for w, j in zip(weights, columns.tolist(), strict=True)]
        tree = schedules.get((node.name, i))
        if tree is None:
            tree = how.default_schedule(len(terms), bias is not None)
        traces.append(evaluate_tree(node.context, tree, terms, None if bias is None else bias[i], how))
    return traces


def _activate(node: Activation, index: int, x: Float, outputs: ActivationOutputs) -> Float:
    use = node.implementation
    y = outputs.get((use.text, site_of(node, index), x))
    if y is None:
        return use.default(node.context, x)
    if y.format != node.format or not use.contains(node.context, x, y):
        where = f"activation {node.name!r}, element {index}"
        raise UsageError(f"{where}: the output given {y} at {x} is not one that {use.text} allows")
    return y
